"""The names of cuslines.metal."""

from ..generic_tracker import BootDirectionGetter, GenericTracker, ProbDirectionGetter, PttDirectionGetter

MetalBootDirectionGetter = BootDirectionGetter
MetalProbDirectionGetter = ProbDirectionGetter
MetalPttDirectionGetter = PttDirectionGetter

__all__ = ["MetalGPUTracker", "MetalBootDirectionGetter", "MetalProbDirectionGetter", "MetalPttDirectionGetter"]


class MetalGPUTracker(GenericTracker):
    __doc__ = GenericTracker.__doc__
    _device = "metal"
