"""Devices, memory and functions by name."""

from .accelerator import Accelerator
from .memory_pool import MemoryPool
from .orchestrator import ComputeOrchestrator
from .unified_buffer import BufferState, UnifiedBuffer

__all__ = ["Accelerator", "BufferState", "ComputeOrchestrator", "MemoryPool", "UnifiedBuffer"]
