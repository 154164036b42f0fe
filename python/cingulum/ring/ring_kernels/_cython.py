"""The queue of `CythonRingKernel`, which is always there."""

from __future__ import annotations

from typing import TypeVar

from .sync_queue import SPSCQueue

T = TypeVar("T")

CYTHON_AVAILABLE = True


class FastSPSCQueue(SPSCQueue[T]):
    """A FIFO for one producing and one consuming thread; `put` and `get` never wait.

    Parameters
    ----------
    capacity : int
        Raised to a power of two; one slot of it stays empty.
    """

    def put(self, item: T, timeout: float | None = 0) -> bool:
        """Adds an item where there is room."""
        return super().put(item, timeout)

    def get(self, timeout: float | None = 0) -> T | None:
        """The next item, or None."""
        return super().get(timeout)

    def put_wait(self, item: T, timeout: float = 1.0) -> bool:
        """Adds an item; False where there was no room in time."""
        return super().put(item, timeout)

    def get_wait(self, timeout: float = 1.0) -> T | None:
        """The next item; None where none came in time."""
        return super().get(timeout)


def is_cython_available() -> bool:
    """Whether `FastSPSCQueue` is there."""
    return CYTHON_AVAILABLE


__all__ = ["CYTHON_AVAILABLE", "FastSPSCQueue", "is_cython_available"]
