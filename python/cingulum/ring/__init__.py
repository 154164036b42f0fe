"""Actors: programs for PyDotCompute's ring kernels, and native actors beside them.

The modules and names are PyDotCompute 0.2.0's; its programs run with ``cingulum.compat.install("pydotcompute")`` or
``python -m cingulum.compat pydotcompute SCRIPT``. Actors of that kind are coroutines or threads of Python.
`cingulum.ring.native` has actors that run outside of Python: on threads of the library, or on a GPU.
"""

from .core import Accelerator, BufferState, ComputeOrchestrator, MemoryPool, UnifiedBuffer
from .core.accelerator import get_accelerator
from .core.memory_pool import configure_memory_pool
from .decorators import gpu_kernel, kernel, ring_kernel
from .ring_kernels import RingKernelMessage, RingKernelRuntime, message

# The version of the package whose names these are.
__version__ = "0.2.0"

__all__ = [
    "Accelerator",
    "BufferState",
    "ComputeOrchestrator",
    "MemoryPool",
    "RingKernelMessage",
    "RingKernelRuntime",
    "UnifiedBuffer",
    "__version__",
    "configure_memory_pool",
    "get_accelerator",
    "gpu_kernel",
    "kernel",
    "message",
    "ring_kernel",
]
