"""Queues by reference: four bands of urgency (`FastMessageQueue`), and a plain ring (`RingBuffer`)."""

from __future__ import annotations

import dataclasses
import enum
from collections import deque
from typing import Any, Generic, TypeVar

from ..exceptions import QueueClosedError, QueueFullError, QueueTimeoutError
from ._waiters import CLOSED, TIMEOUT, Waiters

T = TypeVar("T")


class PriorityBand(enum.IntEnum):
    """A band of priorities; a lower number is more urgent."""

    SYSTEM = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


def get_priority_band(priority: int) -> PriorityBand:
    """The band of a priority: 224 to 255 SYSTEM, from 160 HIGH, from 64 NORMAL, else LOW."""
    if priority >= 224:
        return PriorityBand.SYSTEM
    if priority >= 160:
        return PriorityBand.HIGH
    return PriorityBand.NORMAL if priority >= 64 else PriorityBand.LOW


# By priority, as plain numbers.
_BANDS = tuple(int(get_priority_band(priority)) for priority in range(256))


def _band_of(message: Any) -> int:
    try:
        band: int = _BANDS[message.priority]
    except (AttributeError, IndexError, TypeError):
        return PriorityBand.NORMAL
    return band


@dataclasses.dataclass
class QueueStats:
    """Counts of a queue.

    Attributes
    ----------
    total_enqueued, total_dequeued, total_dropped : int
        Messages since the queue was made.
    current_size, peak_size : int
        Messages in it now, and at most.
    band_counts : dict or None
        Messages in it now, by band.
    """

    total_enqueued: int = 0
    total_dequeued: int = 0
    total_dropped: int = 0
    current_size: int = 0
    peak_size: int = 0
    band_counts: dict[str, int] | None = None


class _BoundedQueue(Generic[T]):
    """What the queues of actors have in common: counts, who waits, and what an actor's life does to its queues."""

    def __init__(self, maxsize: int, kernel_id: str) -> None:
        self._maxsize = maxsize
        self._kernel_id = kernel_id
        self._enqueued = 0
        self._dequeued = 0
        self._dropped = 0
        self._getters = Waiters()
        self._putters = Waiters()
        self._gated = False
        self._closed = False

    @property
    def maxsize(self) -> int:
        """Messages for which there is room."""
        return self._maxsize

    @property
    def qsize(self) -> int:
        """Messages in it."""
        raise NotImplementedError

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return self.qsize == 0

    @property
    def full(self) -> bool:
        """Whether there is no room."""
        return 0 < self._maxsize <= self.qsize

    def _set_gate(self, closed: bool) -> None:
        """While the gate is closed messages are kept, and nobody gets one."""
        raise NotImplementedError

    def _close(self) -> None:
        """What is in it can still be taken; who waits gets QueueClosedError."""
        self._closed = True
        self._set_gate(False)
        self._getters.wake_all(CLOSED)
        self._putters.wake_all(None)

    def __len__(self) -> int:
        return self.qsize


class FastMessageQueue(_BoundedQueue[T]):
    """Messages by reference, the most urgent band first, in order within a band.

    Parameters
    ----------
    maxsize : int
        Messages of all bands together; 0 is no limit.
    kernel_id : str
        For errors.
    serialize : bool
        Keep the bytes of messages instead of the messages.
    """

    def __init__(self, maxsize: int = 4096, *, kernel_id: str = "", serialize: bool = False) -> None:
        super().__init__(maxsize, kernel_id)
        self._serialize = serialize
        self._bands: tuple[deque[Any], ...] = (deque(), deque(), deque(), deque())
        self._size = 0
        self._peak = 0
        self._when_full = "block"

    @property
    def qsize(self) -> int:
        """Messages in it."""
        return self._size

    async def put(self, message: T, *, timeout: float | None = None) -> bool:
        """Adds a message; waits for room where there is none, at most `timeout` seconds, then raises QueueFullError."""
        while not self._accept(message):
            if self._when_full == "reject" or (timeout is not None and timeout <= 0):
                raise QueueFullError(self._kernel_id, self._size)
            if await self._putters.wait(timeout) is TIMEOUT:
                raise QueueFullError(self._kernel_id, self._size)
        return True

    async def get(self, *, timeout: float | None = None) -> T:
        """The next message; waits for one, at most `timeout` seconds, then raises QueueTimeoutError."""
        if self._size and not self._gated:
            return self._take()
        return await self._wait(timeout)

    async def _wait(self, timeout: float | None) -> T:
        if self._closed:
            raise QueueClosedError(self._kernel_id)
        try:
            got = await self._getters.wait(timeout)
        except BaseException as error:
            # Cancelled with a message in hand: it goes back to where it was.
            held = getattr(error, "woken_with", CLOSED)
            if held is not CLOSED and held is not TIMEOUT:
                self._return_to_front(held)
            raise
        if got is TIMEOUT:
            raise QueueTimeoutError(self._kernel_id, timeout or 0.0, "receive")
        if got is CLOSED:
            raise QueueClosedError(self._kernel_id)
        return got  # type: ignore[no-any-return]

    def put_nowait(self, message: T) -> bool:
        """Adds a message where there is room; False where there is none."""
        return self._accept(message)

    def get_nowait(self) -> T | None:
        """The next message, or None."""
        if self._size and not self._gated:
            return self._take()
        return None

    def put_batch(self, messages: list[T]) -> int:
        """Adds messages while there is room, and says how many there was room for."""
        for count, message in enumerate(messages):
            if not self._accept(message):
                return count
        return len(messages)

    def get_batch(self, max_count: int) -> list[T]:
        """At most so many messages, without waiting."""
        taken: list[T] = []
        while len(taken) < max_count and self._size and not self._gated:
            taken.append(self._take())
        return taken

    def clear(self) -> int:
        """Throws all messages away, and says how many they were."""
        count = self._size
        for band in self._bands:
            band.clear()
        self._size = 0
        self._dropped += count
        self._putters.wake_all(None)
        return count

    def get_stats(self) -> dict[str, int | dict[str, int]]:
        """Counts: current_size, max_size, peak_size, total_enqueued, total_dequeued, total_dropped, band_counts."""
        return {
            "current_size": self._size,
            "max_size": self._maxsize,
            "peak_size": self._peak,
            "total_enqueued": self._enqueued,
            "total_dequeued": self._dequeued,
            "total_dropped": self._dropped,
            "band_counts": {band.name.lower(): len(self._bands[band]) for band in PriorityBand},
        }

    def _accept(self, message: T) -> bool:
        if self._closed:
            raise QueueClosedError(self._kernel_id)
        item: Any = message.serialize() if self._serialize else message  # type: ignore[attr-defined]
        if not self._size and not self._gated and self._getters.wake(item):
            self._enqueued += 1
            self._dequeued += 1
            if self._peak == 0:
                self._peak = 1
            return True
        if 0 < self._maxsize <= self._size and not self._make_room():
            return False
        self._bands[_band_of(message)].append(item)
        self._size += 1
        self._enqueued += 1
        if self._size > self._peak:
            self._peak = self._size
        return True

    def _make_room(self) -> bool:
        """Under drop_oldest: the oldest message of the least urgent band goes."""
        if self._when_full != "drop_oldest":
            return False
        for band in reversed(self._bands):
            if band:
                band.popleft()
                self._size -= 1
                self._dropped += 1
                return True
        return False

    def _take(self) -> T:
        for band in self._bands:
            if band:
                item = band.popleft()
                break
        self._size -= 1
        self._dequeued += 1
        if self._putters:
            self._putters.wake(None)
        return item  # type: ignore[no-any-return]

    def _return_to_front(self, item: Any) -> None:
        self._dequeued -= 1
        if not self._gated and self._getters.wake(item):
            self._dequeued += 1
            return
        self._bands[_band_of(item)].appendleft(item)
        self._size += 1

    def _set_gate(self, closed: bool) -> None:
        self._gated = closed
        while not closed and self._size and self._getters:
            self._getters.wake(self._take())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._size} of {self._maxsize} messages>"


class RingBuffer(Generic[T]):
    """A FIFO whose capacity is a power of two, at least the one asked for."""

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = 1 << max(0, capacity - 1).bit_length()
        self._items: deque[T] = deque()
        self._getters = Waiters()
        self._putters = Waiters()

    @property
    def capacity(self) -> int:
        """Items for which there is room."""
        return self._capacity

    @property
    def size(self) -> int:
        """Items in it."""
        return len(self._items)

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not self._items

    @property
    def full(self) -> bool:
        """Whether there is no room."""
        return len(self._items) >= self._capacity

    async def put(self, item: T, *, timeout: float | None = None) -> bool:
        """Adds an item; False where there was no room in time."""
        while not self.put_nowait(item):
            if (timeout is not None and timeout <= 0) or await self._putters.wait(timeout) is TIMEOUT:
                return False
        return True

    async def get(self, *, timeout: float | None = None) -> T | None:
        """The next item; None where none came in time."""
        while not self._items:
            if (timeout is not None and timeout <= 0) or await self._getters.wait(timeout) is TIMEOUT:
                return None
        return self.get_nowait()

    def put_nowait(self, item: T) -> bool:
        """Adds an item where there is room."""
        if len(self._items) >= self._capacity:
            return False
        self._items.append(item)
        self._getters.wake(None)
        return True

    def get_nowait(self) -> T | None:
        """The next item, or None."""
        if not self._items:
            return None
        item = self._items.popleft()
        self._putters.wake(None)
        return item

    def clear(self) -> int:
        """Throws all items away, and says how many they were."""
        count = len(self._items)
        self._items.clear()
        self._putters.wake_all(None)
        return count

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<RingBuffer: {len(self._items)} of {self._capacity} items>"
