"""Queues between threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Generic, TypeVar

from ..exceptions import QueueFullError, QueueTimeoutError

T = TypeVar("T")


class _Line(Generic[T]):
    """A FIFO between threads: no message vanishes uncounted, closing wakes all who wait."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.items: deque[T] = deque()
        self.closed = False
        lock = threading.Lock()
        self.has_items = threading.Condition(lock)
        self.has_room = threading.Condition(lock)
        self.enqueued = 0
        self.dequeued = 0
        self.dropped = 0

    @property
    def is_full(self) -> bool:
        return 0 < self.room <= len(self.items)

    def put(self, item: T, timeout: float | None) -> bool:
        """False where there was no room in time, or the line is closed."""
        with self.has_room:
            if self.is_full and not self.closed and (timeout is None or timeout > 0):
                self.has_room.wait_for(lambda: self.closed or not self.is_full, timeout)
            if self.closed or self.is_full:
                return False
            self.items.append(item)
            self.enqueued += 1
            self.has_items.notify()
            return True

    def get(self, timeout: float | None) -> tuple[bool, T | None]:
        """Whether there was one, and the item. What a closed line still holds is given out."""
        with self.has_items:
            if not self.items and not self.closed and (timeout is None or timeout > 0):
                self.has_items.wait_for(lambda: self.closed or bool(self.items), timeout)
            if not self.items:
                return False, None
            item = self.items.popleft()
            self.dequeued += 1
            self.has_room.notify()
            return True, item

    def clear(self) -> int:
        with self.has_room:
            count = len(self.items)
            self.items.clear()
            self.dropped += count
            self.has_room.notify_all()
            return count

    def close(self) -> None:
        with self.has_room:
            self.closed = True
            self.has_room.notify_all()
            self.has_items.notify_all()


class _OnLine(Generic[T]):
    """What both kinds of queue do alike with their line."""

    _line: _Line[T]

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not self._line.items

    @property
    def full(self) -> bool:
        """Whether there is no room."""
        return self._line.is_full

    def put_nowait(self, item: T) -> bool:
        """Adds an item where there is room."""
        return self._line.put(item, 0)

    def get_nowait(self) -> T | None:
        """The next item, or None."""
        return self._line.get(0)[1]

    def clear(self) -> int:
        """Throws all items away, and says how many they were."""
        return self._line.clear()

    def shutdown(self) -> None:
        """Takes no more items and wakes all who wait."""
        self._line.close()

    def __len__(self) -> int:
        return len(self._line.items)


class SyncQueue(_OnLine[T]):
    """A FIFO for any number of threads.

    Parameters
    ----------
    maxsize : int
        Items for which there is room; 0 is no limit.
    """

    def __init__(self, maxsize: int = 4096) -> None:
        self._line = _Line(maxsize)

    @property
    def maxsize(self) -> int:
        """Items for which there is room."""
        return self._line.room

    @property
    def qsize(self) -> int:
        """Items in it."""
        return len(self._line.items)

    def put(self, item: T, timeout: float | None = None) -> bool:
        """Adds an item. QueueFullError where there was no room in time, RuntimeError after `shutdown`."""
        if self._line.put(item, timeout):
            return True
        if self._line.closed:
            raise RuntimeError("the queue was shut down")
        raise QueueFullError("", self.qsize)

    def get(self, timeout: float | None = None) -> T:
        """The next item. QueueTimeoutError where none came in time, RuntimeError when it is shut down and empty."""
        found, item = self._line.get(timeout)
        if found:
            return item  # type: ignore[return-value]
        if self._line.closed:
            raise RuntimeError("the queue was shut down and is empty")
        raise QueueTimeoutError("", timeout or 0.0, "receive")

    def get_stats(self) -> dict[str, int]:
        """Counts: current_size, max_size, total_enqueued, total_dequeued, total_dropped."""
        line = self._line
        return {
            "current_size": len(line.items),
            "max_size": line.room,
            "total_enqueued": line.enqueued,
            "total_dequeued": line.dequeued,
            "total_dropped": line.dropped,
        }

    def __repr__(self) -> str:
        return f"<SyncQueue: {self.qsize} of {self.maxsize} items>"


class SPSCQueue(_OnLine[T]):
    """A FIFO for one producing and one consuming thread.

    Parameters
    ----------
    capacity : int
        Raised to a power of two; one slot of it stays empty.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = 1 << max(1, capacity - 1).bit_length()
        self._line = _Line(self._capacity - 1)

    @property
    def capacity(self) -> int:
        """Slots; one of them stays empty."""
        return self._capacity

    @property
    def size(self) -> int:
        """Items in it."""
        return len(self._line.items)

    def put(self, item: T, timeout: float | None = None) -> bool:
        """Adds an item; False where there was no room in time, or after `shutdown`."""
        return self._line.put(item, timeout)

    def get(self, timeout: float | None = None) -> T | None:
        """The next item; None where none came in time, or after `shutdown`."""
        return self._line.get(timeout)[1]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.size} of {self._capacity - 1} items>"


def _wait_any(lines: list[_Line[T]], timeout: float | None) -> T | None:
    """The next item of any of these lines."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = 20e-6
    while True:
        for line in lines:
            found, item = line.get(0)
            if found:
                return item
        if all(line.closed for line in lines) or (deadline is not None and time.monotonic() >= deadline):
            return None
        time.sleep(pause)
        pause = min(pause * 2, 1e-3)
