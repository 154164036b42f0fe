"""On GPUs of NVIDIA."""

from .cu_direction_getters import BootDirectionGetter, ProbDirectionGetter, PttDirectionGetter
from .cu_tractography import GPUTracker

__all__ = ["BootDirectionGetter", "GPUTracker", "ProbDirectionGetter", "PttDirectionGetter"]
