"""Actors, their queues and messages."""

from ._loop import (
    create_optimized_loop,
    get_loop_info,
    install_eager_task_factory,
    install_uvloop,
    is_eager_tasks_installed,
    is_uvloop_available,
    is_uvloop_installed,
    optimize_current_loop,
)
from .array_message import ArrayMessage, array_message
from .buffer_registry import (
    BufferHandle,
    BufferRegistry,
    get_buffer,
    get_buffer_registry,
    register_buffer,
    release_buffer,
)
from .cython_kernel import (
    CythonKernelConfig,
    CythonKernelContext,
    CythonKernelState,
    CythonRingKernel,
    is_cython_kernel_available,
)
from .fast_queue import FastMessageQueue, PriorityBand, RingBuffer
from .lifecycle import KernelContext, KernelState, RingKernel, RingKernelConfig, managed_kernel
from .message import RingKernelMessage, deserialize_message, get_message_type, message
from .queue import BackpressureStrategy, MessageQueue
from .runtime import RingKernelRuntime, get_registered_kernel, register_ring_kernel
from .sync_queue import SPSCQueue, SyncQueue
from .telemetry import GPUInfo, GPUMonitor, RingKernelTelemetry, TelemetryCollector
from .threaded_kernel import (
    ThreadedKernelConfig,
    ThreadedKernelContext,
    ThreadedKernelPool,
    ThreadedKernelState,
    ThreadedRingKernel,
)

__all__ = [
    "ArrayMessage",
    "BackpressureStrategy",
    "BufferHandle",
    "BufferRegistry",
    "CythonKernelConfig",
    "CythonKernelContext",
    "CythonKernelState",
    "CythonRingKernel",
    "FastMessageQueue",
    "GPUInfo",
    "GPUMonitor",
    "KernelContext",
    "KernelState",
    "MessageQueue",
    "PriorityBand",
    "RingBuffer",
    "RingKernel",
    "RingKernelConfig",
    "RingKernelMessage",
    "RingKernelRuntime",
    "RingKernelTelemetry",
    "SPSCQueue",
    "SyncQueue",
    "TelemetryCollector",
    "ThreadedKernelConfig",
    "ThreadedKernelContext",
    "ThreadedKernelPool",
    "ThreadedKernelState",
    "ThreadedRingKernel",
    "array_message",
    "create_optimized_loop",
    "deserialize_message",
    "get_buffer",
    "get_buffer_registry",
    "get_loop_info",
    "get_message_type",
    "get_registered_kernel",
    "install_eager_task_factory",
    "install_uvloop",
    "is_cython_kernel_available",
    "is_eager_tasks_installed",
    "is_uvloop_available",
    "is_uvloop_installed",
    "managed_kernel",
    "message",
    "optimize_current_loop",
    "register_buffer",
    "register_ring_kernel",
    "release_buffer",
]
