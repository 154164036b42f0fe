"""Arrays that messages name instead of holding them."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any
from uuid import UUID, uuid4


@dataclasses.dataclass
class BufferHandle:
    """What is known of a registered array.

    Attributes
    ----------
    buffer_id : uuid.UUID
        By which it is found.
    shape : tuple of int
        Of the array.
    dtype : str
        Of its elements.
    device : str
        ``"cpu"`` or ``"cuda:N"``.
    size_bytes : int
        Of all elements.
    ref_count : int
        How many hold it.
    """

    buffer_id: UUID
    shape: tuple[int, ...]
    dtype: str
    device: str
    size_bytes: int
    ref_count: int = 1

    def __repr__(self) -> str:
        return f"<BufferHandle: {self.shape} of {self.dtype} on {self.device}, held {self.ref_count} times>"


def _device_of(array: Any) -> str:
    if not hasattr(array, "__cuda_array_interface__"):
        return "cpu"
    return f"cuda:{int(getattr(array.device, 'id', 0))}"


class BufferRegistry:
    """The arrays of this process, one registry for all threads."""

    _only: BufferRegistry | None = None
    _making = threading.Lock()

    def __new__(cls) -> BufferRegistry:
        with cls._making:
            if cls._only is None:
                made = super().__new__(cls)
                made._prepare()
                cls._only = made
            return cls._only

    def __init__(self) -> None:
        pass

    def _prepare(self) -> None:
        self._lock = threading.Lock()
        self._arrays: dict[UUID, tuple[Any, BufferHandle]] = {}
        self._counts = {"registered": 0, "retrieved": 0, "released": 0, "bytes_registered": 0}

    def register(self, array: Any) -> BufferHandle:
        """Keeps the array, without a copy."""
        handle = BufferHandle(uuid4(), tuple(array.shape), str(array.dtype), _device_of(array), int(array.nbytes))
        with self._lock:
            self._arrays[handle.buffer_id] = (array, handle)
            self._counts["registered"] += 1
            self._counts["bytes_registered"] += handle.size_bytes
        return handle

    def get(self, buffer_id: UUID) -> Any | None:
        """The array itself, or None where it was released."""
        with self._lock:
            held = self._arrays.get(buffer_id)
            if held is None:
                return None
            self._counts["retrieved"] += 1
            return held[0]

    def get_handle(self, buffer_id: UUID) -> BufferHandle | None:
        """What is known of the array, or None where it was released."""
        with self._lock:
            held = self._arrays.get(buffer_id)
            return None if held is None else held[1]

    def release(self, buffer_id: UUID) -> bool:
        """Lets go of the array, whoever holds it; False where it is not there."""
        with self._lock:
            return self._release(buffer_id)

    def _release(self, buffer_id: UUID) -> bool:
        if self._arrays.pop(buffer_id, None) is None:
            return False
        self._counts["released"] += 1
        return True

    def increment_ref(self, buffer_id: UUID) -> bool:
        """One more holds the array; False where it is not there."""
        with self._lock:
            held = self._arrays.get(buffer_id)
            if held is None:
                return False
            held[1].ref_count += 1
            return True

    def decrement_ref(self, buffer_id: UUID) -> int:
        """One less holds it: how many still do, 0 where it was released by this, -1 where it is not there."""
        with self._lock:
            held = self._arrays.get(buffer_id)
            if held is None:
                return -1
            held[1].ref_count -= 1
            if held[1].ref_count <= 0:
                self._release(buffer_id)
                return 0
            return held[1].ref_count

    def clear(self) -> int:
        """Lets go of all arrays, and says how many they were."""
        with self._lock:
            count = len(self._arrays)
            self._arrays.clear()
            self._counts["released"] += count
            return count

    def get_stats(self) -> dict[str, int]:
        """Counts since the process began, and how many arrays are held now."""
        with self._lock:
            return {**self._counts, "active_buffers": len(self._arrays)}

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, buffer_id: UUID) -> bool:
        return buffer_id in self._arrays

    def __repr__(self) -> str:
        return f"<BufferRegistry: {len(self._arrays)} arrays>"


def get_buffer_registry() -> BufferRegistry:
    """The registry of this process."""
    return BufferRegistry()


def register_buffer(array: Any) -> BufferHandle:
    """Keeps an array in the registry of this process."""
    return BufferRegistry().register(array)


def get_buffer(buffer_id: UUID) -> Any | None:
    """An array of the registry of this process."""
    return BufferRegistry().get(buffer_id)


def release_buffer(buffer_id: UUID) -> bool:
    """Lets go of an array of the registry of this process."""
    return BufferRegistry().release(buffer_id)
