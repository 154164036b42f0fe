"""Backends: NumPy's, CuPy's, and the place of Metal's."""

from .base import Backend, BackendType
from .cpu import CPUBackend
from .cuda import CUDABackend
from .metal import MetalBackend

__all__ = ["Backend", "BackendType", "CPUBackend", "CUDABackend", "MetalBackend"]
