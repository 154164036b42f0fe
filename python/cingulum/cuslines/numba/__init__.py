"""The names of cuslines.numba."""

from typing import Any

from ..generic_tracker import BootDirectionGetter, GenericTracker, ProbDirectionGetter, PttDirectionGetter

CPUBootDirectionGetter = BootDirectionGetter
CPUProbDirectionGetter = ProbDirectionGetter
CPUPttDirectionGetter = PttDirectionGetter

__all__ = ["CPUTracker", "CPUBootDirectionGetter", "CPUProbDirectionGetter", "CPUPttDirectionGetter"]


class CPUTracker(GenericTracker):
    __doc__ = GenericTracker.__doc__
    _device = "cpu"

    def __init__(self, *arguments: Any, chunk_size: int = 100000, **keywords: Any):
        if len(arguments) < 17:  # else it is the last of them
            keywords["chunk_size"] = chunk_size
        super().__init__(*arguments, **keywords)
