"""What actors count while they work, and what NVIDIA's driver says of its GPUs."""

from __future__ import annotations

import dataclasses
import time
from typing import Any


@dataclasses.dataclass
class RingKernelTelemetry:
    """Counts of one actor.

    Attributes
    ----------
    kernel_id : str
        Its name.
    messages_processed, messages_dropped : int
        Messages that it was given, and that were thrown away.
    queue_depth : int
        Messages that wait for it.
    total_latency_ns, max_latency_ns, min_latency_ns : int
        From a message to the actor's next `receive`; 0 before the first.
    error_count : int
        How often its body raised.
    last_error : str or None
        What it raised.
    uptime_seconds : float
        Since counting began.
    """

    kernel_id: str = ""
    messages_processed: int = 0
    messages_dropped: int = 0
    queue_depth: int = 0
    total_latency_ns: int = 0
    max_latency_ns: int = 0
    min_latency_ns: int = 0
    error_count: int = 0
    last_error: str | None = None
    uptime_seconds: float = 0.0

    @property
    def avg_latency_ns(self) -> float:
        """The mean; 0 before the first message."""
        return self.total_latency_ns / self.messages_processed if self.messages_processed else 0.0

    @property
    def avg_latency_ms(self) -> float:
        """The mean in milliseconds."""
        return self.avg_latency_ns / 1e6

    @property
    def throughput(self) -> float:
        """Messages per second."""
        return self.messages_processed / self.uptime_seconds if self.uptime_seconds > 0 else 0.0

    def record_message(self, latency_ns: int) -> None:
        """Counts a message that was worked on for so long."""
        self.messages_processed += 1
        self.total_latency_ns += latency_ns
        if latency_ns > self.max_latency_ns:
            self.max_latency_ns = latency_ns
        if self.min_latency_ns == 0 or latency_ns < self.min_latency_ns:
            self.min_latency_ns = latency_ns

    def record_drop(self) -> None:
        """Counts a message that was thrown away."""
        self.messages_dropped += 1

    def record_error(self, error: str) -> None:
        """Counts and keeps an error."""
        self.error_count += 1
        self.last_error = error

    def reset(self) -> None:
        """Counts from 0 again; the name stays."""
        fresh = RingKernelTelemetry(self.kernel_id)
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(fresh, field.name))

    def to_dict(self) -> dict[str, object]:
        """The counts by name."""
        return {
            "kernel_id": self.kernel_id,
            "messages_processed": self.messages_processed,
            "messages_dropped": self.messages_dropped,
            "queue_depth": self.queue_depth,
            "avg_latency_ms": self.avg_latency_ms,
            "max_latency_ns": self.max_latency_ns,
            "min_latency_ns": self.min_latency_ns,
            "throughput": self.throughput,
            "error_count": self.error_count,
            "last_error": self.last_error,
            "uptime_seconds": self.uptime_seconds,
        }


@dataclasses.dataclass
class GPUInfo:
    """One GPU as its driver sees it: bytes, shares of 1, degrees Celsius, watts."""

    index: int
    name: str
    uuid: str
    memory_total: int
    memory_used: int
    memory_free: int
    utilization_gpu: float
    utilization_memory: float
    temperature: float
    power_usage: float
    power_limit: float

    @property
    def memory_utilization(self) -> float:
        """The share of memory that is used."""
        return self.memory_used / self.memory_total if self.memory_total else 0.0


class GPUMonitor:
    """NVIDIA's GPUs through NVML; without it every answer is "N/A" and zeros, and never an error."""

    def __init__(self) -> None:
        self._closed = False

    def _read(self) -> list[GPUInfo]:
        if self._closed:
            return []
        from ... import _native

        return [GPUInfo(*info) for info in _native.gpu_infos()]

    @property
    def is_available(self) -> bool:
        """Whether NVML is there and sees a GPU."""
        return bool(self._read())

    @property
    def device_count(self) -> int:
        """How many GPUs it sees."""
        return len(self._read())

    def get_gpu_info(self, device_index: int = 0) -> GPUInfo:
        """One GPU."""
        infos = self._read()
        if 0 <= device_index < len(infos):
            return infos[device_index]
        return GPUInfo(device_index, "N/A", "N/A", 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def get_all_gpu_info(self) -> list[GPUInfo]:
        """All of them."""
        return self._read()

    def get_utilization(self, device_index: int = 0) -> float:
        """The share of time in which the GPU worked. Where actors live on it, that is always all of it."""
        return self.get_gpu_info(device_index).utilization_gpu

    def get_memory_info(self, device_index: int = 0) -> dict[str, int]:
        """Its memory in bytes: used, free, total."""
        info = self.get_gpu_info(device_index)
        return {"used": info.memory_used, "free": info.memory_free, "total": info.memory_total}

    def shutdown(self) -> None:
        """No GPU is seen from now on."""
        self._closed = True

    def __repr__(self) -> str:
        return f"<GPUMonitor: {self.device_count} GPUs>"


@dataclasses.dataclass
class TelemetryCollector:
    """The counts of all actors of a runtime."""

    _kernel_telemetry: dict[str, RingKernelTelemetry] = dataclasses.field(default_factory=dict)
    _gpu_monitor: GPUMonitor = dataclasses.field(default_factory=GPUMonitor)
    _start_time: float = dataclasses.field(default_factory=time.time)

    def register_kernel(self, kernel_id: str) -> RingKernelTelemetry:
        """Counts for this actor from now on; those that there are where it is known."""
        return self._kernel_telemetry.setdefault(kernel_id, RingKernelTelemetry(kernel_id))

    def unregister_kernel(self, kernel_id: str) -> None:
        """Forgets an actor."""
        self._kernel_telemetry.pop(kernel_id, None)

    def get_kernel_telemetry(self, kernel_id: str) -> RingKernelTelemetry | None:
        """The counts of an actor, or None."""
        found = self._kernel_telemetry.get(kernel_id)
        if found is not None:
            found.uptime_seconds = time.time() - self._start_time
        return found

    def get_all_telemetry(self) -> dict[str, RingKernelTelemetry]:
        """The counts of all actors by name."""
        for name in self._kernel_telemetry:
            self.get_kernel_telemetry(name)
        return dict(self._kernel_telemetry)

    def get_summary(self) -> dict[str, object]:
        """Sums over all actors."""
        kept = self._kernel_telemetry.values()
        gpu: Any = self._gpu_monitor.get_utilization() if self._gpu_monitor.is_available else None
        return {
            "kernel_count": len(kept),
            "total_messages_processed": sum(one.messages_processed for one in kept),
            "total_messages_dropped": sum(one.messages_dropped for one in kept),
            "total_errors": sum(one.error_count for one in kept),
            "uptime_seconds": time.time() - self._start_time,
            "gpu_utilization": gpu,
        }

    def reset_all(self) -> None:
        """Counts from 0 again."""
        for one in self._kernel_telemetry.values():
            one.reset()
        self._start_time = time.time()
