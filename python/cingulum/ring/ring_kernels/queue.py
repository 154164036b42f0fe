"""The queue with a choice of what happens when it is full, and with an order by priority."""

from __future__ import annotations

import dataclasses
import enum
import heapq
import itertools
from collections import deque
from typing import Generic, TypeVar

from ..exceptions import QueueClosedError, QueueFullError, QueueTimeoutError
from ._waiters import CLOSED, TIMEOUT
from .fast_queue import _band_of, _BoundedQueue

T = TypeVar("T")


class BackpressureStrategy(enum.Enum):
    """What a full queue does."""

    BLOCK = enum.auto()
    REJECT = enum.auto()
    DROP_OLDEST = enum.auto()


@dataclasses.dataclass(order=True)
class PriorityItem(Generic[T]):
    """A message in the order of a priority queue: the smaller item comes first.

    Attributes
    ----------
    priority : int
        The message's, negated.
    sequence : int
        When it came.
    message : object
        Not compared.
    """

    priority: int
    sequence: int
    message: T = dataclasses.field(compare=False)


class MessageQueue(_BoundedQueue[T]):
    """Messages in the order of their priority (equal ones as they came), or as they came.

    Parameters
    ----------
    maxsize : int
        Messages for which there is room; 0 is no limit.
    backpressure : BackpressureStrategy
        BLOCK waits for room, REJECT raises QueueFullError, DROP_OLDEST throws the oldest message of the least urgent
        band away.
    use_priority : bool
        False: as they came.
    kernel_id : str
        For errors.
    """

    def __init__(
        self,
        maxsize: int = 4096,
        *,
        backpressure: BackpressureStrategy = BackpressureStrategy.BLOCK,
        use_priority: bool = True,
        kernel_id: str = "",
    ) -> None:
        super().__init__(maxsize, kernel_id)
        self._backpressure = backpressure
        self._use_priority = use_priority
        self._heap: list[PriorityItem[T]] = []
        self._line: deque[T] = deque()
        self._numbers = itertools.count()

    @property
    def qsize(self) -> int:
        """Messages in it."""
        return len(self._heap) if self._use_priority else len(self._line)

    async def put(self, message: T, *, timeout: float | None = None) -> bool:
        """Adds a message. Under BLOCK it waits for room, at most `timeout` seconds, then raises QueueTimeoutError."""
        while not self.put_nowait(message):
            if self._backpressure is BackpressureStrategy.REJECT:
                raise QueueFullError(self._kernel_id, self.qsize)
            if (timeout is not None and timeout <= 0) or await self._putters.wait(timeout) is TIMEOUT:
                raise QueueTimeoutError(self._kernel_id, timeout or 0.0, "send")
        return True

    async def get(self, *, timeout: float | None = None) -> T:
        """The next message; waits for one, at most `timeout` seconds, then raises QueueTimeoutError."""
        while self._gated or not self.qsize:
            if self._closed and not self.qsize:
                raise QueueClosedError(self._kernel_id)
            try:
                woken = await self._getters.wait(timeout)
            except BaseException as error:
                # Cancelled after it was woken: the message is another's.
                if hasattr(error, "woken_with") and self.qsize:
                    self._getters.wake(None)
                raise
            if woken is TIMEOUT:
                raise QueueTimeoutError(self._kernel_id, timeout or 0.0, "receive")
            if woken is CLOSED and not self.qsize:
                raise QueueClosedError(self._kernel_id)
        return self._take()

    async def _wait(self, timeout: float | None) -> T:
        return await self.get(timeout=timeout)

    def get_nowait(self) -> T | None:
        """The next message, or None."""
        return None if self._gated or not self.qsize else self._take()

    def put_nowait(self, message: T) -> bool:
        """Adds a message where there is room; False where there is none. DROP_OLDEST makes room."""
        if self._closed:
            raise QueueClosedError(self._kernel_id)
        if self.full:
            if self._backpressure is not BackpressureStrategy.DROP_OLDEST:
                return False
            self._drop_oldest()
        if self._use_priority:
            priority = getattr(message, "priority", 128)
            heapq.heappush(self._heap, PriorityItem(-priority, next(self._numbers), message))
        else:
            self._line.append(message)
        self._enqueued += 1
        if not self._gated:
            self._getters.wake(None)
        return True

    def clear(self) -> int:
        """Throws all messages away, and says how many they were."""
        count = self.qsize
        self._heap.clear()
        self._line.clear()
        self._dropped += count
        self._putters.wake_all(None)
        return count

    def get_stats(self) -> dict[str, int]:
        """Counts: current_size, max_size, total_enqueued, total_dequeued, total_dropped."""
        return {
            "current_size": self.qsize,
            "max_size": self._maxsize,
            "total_enqueued": self._enqueued,
            "total_dequeued": self._dequeued,
            "total_dropped": self._dropped,
        }

    def _take(self) -> T:
        message = heapq.heappop(self._heap).message if self._use_priority else self._line.popleft()
        self._dequeued += 1
        self._putters.wake(None)
        # One who was woken for a message that another took first is woken again for the next.
        if self.qsize and not self._gated:
            self._getters.wake(None)
        return message

    def _drop_oldest(self) -> None:
        self._dropped += 1
        if not self._use_priority:
            self._line.popleft()
            return
        least = max(_band_of(item.message) for item in self._heap)
        oldest = min((item for item in self._heap if _band_of(item.message) == least), key=lambda item: item.sequence)
        self._heap.remove(oldest)
        heapq.heapify(self._heap)

    def _set_gate(self, closed: bool) -> None:
        self._gated = closed
        if not closed and self.qsize:
            self._getters.wake(None)

    @property
    def _size(self) -> int:
        return self.qsize

    def _accept(self, message: T) -> bool:
        return self.put_nowait(message)

    @property
    def _when_full(self) -> str:
        return self._backpressure.name.lower()

    def __repr__(self) -> str:
        order = "by priority" if self._use_priority else "in order"
        return f"<MessageQueue: {self.qsize} of {self._maxsize} messages, {order}>"
