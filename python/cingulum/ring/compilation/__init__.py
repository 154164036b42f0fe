"""Compiling kernels, and keeping them."""

from .cache import KernelCache
from .compiler import KernelCompiler

__all__ = ["KernelCache", "KernelCompiler"]
