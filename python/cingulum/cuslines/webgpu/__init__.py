"""The names of cuslines.webgpu."""

from ..generic_tracker import BootDirectionGetter, GenericTracker, ProbDirectionGetter, PttDirectionGetter

WebGPUBootDirectionGetter = BootDirectionGetter
WebGPUProbDirectionGetter = ProbDirectionGetter
WebGPUPttDirectionGetter = PttDirectionGetter

__all__ = ["WebGPUTracker", "WebGPUBootDirectionGetter", "WebGPUProbDirectionGetter", "WebGPUPttDirectionGetter"]


class WebGPUTracker(GenericTracker):
    __doc__ = GenericTracker.__doc__
    _device = "webgpu"
