"""The direction getters."""

from ..generic_tracker import BootDirectionGetter, GPUDirectionGetter, ProbDirectionGetter, PttDirectionGetter

__all__ = ["BootDirectionGetter", "GPUDirectionGetter", "ProbDirectionGetter", "PttDirectionGetter"]
