"""The devices of this machine."""

from __future__ import annotations

import dataclasses
import enum
import threading
from typing import Any

from .._cupy import find_cupy


class DeviceType(enum.Enum):
    """What a device computes by."""

    CPU = enum.auto()
    CUDA = enum.auto()
    METAL = enum.auto()


@dataclasses.dataclass(frozen=True)
class DeviceProperties:
    """What is known of a device."""

    device_id: int
    device_type: DeviceType
    name: str
    compute_capability: tuple[int, int] | None
    total_memory: int
    multiprocessor_count: int
    max_threads_per_block: int
    max_block_dims: tuple[int, int, int]
    max_grid_dims: tuple[int, int, int]
    warp_size: int
    is_available: bool

    @property
    def compute_capability_str(self) -> str:
        """As ``"8.9"``; ``"N/A"`` where it has none."""
        return "N/A" if self.compute_capability is None else "{}.{}".format(*self.compute_capability)

    @property
    def total_memory_gb(self) -> float:
        """Its memory in units of 2^30 bytes."""
        return self.total_memory / 2**30


def _capability(architecture: str) -> tuple[int, int] | None:
    digits = "".join(character for character in architecture if character.isdigit())
    return (int(digits[:-1]), int(digits[-1])) if len(digits) >= 2 else None


def _properties(index: int, kind: DeviceType, found: dict[str, Any]) -> DeviceProperties:
    can = found["capabilities"]
    return DeviceProperties(
        device_id=index,
        device_type=kind,
        name=found["name"],
        compute_capability=_capability(found["architecture"]) if kind is DeviceType.CUDA else None,
        total_memory=found["memory"]["total_bytes"] or 0,
        multiprocessor_count=can["compute_units"],
        max_threads_per_block=can["max_threads_per_block"],
        max_block_dims=tuple(can["max_block"]),
        max_grid_dims=tuple(can["max_grid"]),
        warp_size=can["subgroup_max"],
        is_available=True,
    )


class Accelerator:
    """The devices of this machine, one object for the process: CUDA's, or the CPU where there are none."""

    _only: Accelerator | None = None
    _making = threading.Lock()

    def __new__(cls) -> Accelerator:
        with cls._making:
            if cls._only is None:
                cls._only = super().__new__(cls)
            return cls._only

    def __init__(self) -> None:
        if not hasattr(self, "_current"):
            self._current = 0
            self._found: list[DeviceProperties] | None = None

    def _look(self) -> list[DeviceProperties]:
        if self._found is None:
            from ..._verbs import run_verb

            listed = run_verb("devices", [])["devices"]
            for kind, backend in ((DeviceType.CUDA, "cuda"), (DeviceType.CPU, "cpu")):
                found = [one for one in listed if one["backend"] == backend]
                if found:
                    self._found = [_properties(index, kind, one) for index, one in enumerate(found)]
                    break
        return self._found or []

    @property
    def cuda_available(self) -> bool:
        """Whether there is a device of CUDA."""
        return any(one.device_type is DeviceType.CUDA for one in self._look())

    @property
    def metal_available(self) -> bool:
        """Whether Metal is reached by this layer: it is not. `cingulum.track` reaches it through WebGPU."""
        return False

    @property
    def device_count(self) -> int:
        """How many devices; at least one."""
        return len(self._look())

    @property
    def current_device(self) -> DeviceProperties:
        """The device of `set_device`; the first at the beginning."""
        return self._look()[self._current]

    @property
    def devices(self) -> list[DeviceProperties]:
        """All devices."""
        return list(self._look())

    def get_device(self, device_id: int) -> DeviceProperties:
        """One device; ValueError where it is not there."""
        if not 0 <= device_id < self.device_count:
            raise ValueError(f"device_id: {device_id} is not between 0 and {self.device_count - 1}")
        return self._look()[device_id]

    def set_device(self, device_id: int) -> None:
        """Makes a device the current one; ValueError where it is not there."""
        self.get_device(device_id)
        self._current = device_id
        cupy, _ = find_cupy()
        if cupy is not None:
            cupy.cuda.Device(device_id).use()

    def synchronize(self) -> None:
        """Waits for the work of CuPy on the current device."""
        cupy, _ = find_cupy()
        if cupy is not None:
            cupy.cuda.Device(self._current).synchronize()

    def get_memory_info(self) -> dict[str, int]:
        """Bytes of the current device: free, total, used; zeros for the CPU."""
        if self.current_device.device_type is not DeviceType.CUDA:
            return {"free": 0, "total": 0, "used": 0}
        from ..._verbs import run_verb

        listed = [one for one in run_verb("devices", [])["devices"] if one["backend"] == "cuda"]
        memory = listed[self._current]["memory"]
        free, total = memory["free_bytes"] or 0, memory["total_bytes"] or 0
        return {"free": free, "total": total, "used": total - free}

    def __repr__(self) -> str:
        return f"<Accelerator: {self.device_count} devices, current {self.current_device.name}>"


def get_accelerator() -> Accelerator:
    """The devices of this machine."""
    return Accelerator()


def cuda_available() -> bool:
    """Whether there is a device of CUDA."""
    return Accelerator().cuda_available


def metal_available() -> bool:
    """Whether Metal is reached by this layer."""
    return Accelerator().metal_available
