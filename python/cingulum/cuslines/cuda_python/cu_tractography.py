"""The tracker on GPUs of NVIDIA."""

from ..generic_tracker import GenericTracker

__all__ = ["GPUTracker"]


class GPUTracker(GenericTracker):
    __doc__ = GenericTracker.__doc__
    _device = "cuda"
