"""Coroutines that wait for a queue: futures in order, with one timer for all of them.

A message goes to the one who waits as the result of its future, so that a hand-over takes one turn of the event loop.
A timer per wait would cost as much as the message: here one timer of the queue looks for waits that are over, and is
set again while there are any.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from typing import Any


class Timeout:
    """What a wait gives that took too long."""


class Closed:
    """What a wait gives whose queue was closed."""


TIMEOUT = Timeout()
CLOSED = Closed()


class Waiters:
    """The coroutines that wait for one event of a queue."""

    __slots__ = ("_deadlines", "_futures", "_timer", "_timer_at")

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[Any]] = deque()
        self._deadlines: dict[asyncio.Future[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self, timeout: float | None) -> Any:
        """What `wake` or `wake_all` gave, or TIMEOUT. Where the task is cancelled after it was woken, `CancelledError`
        has the value as `woken_with`."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._futures.append(future)
        if timeout is not None:
            deadline = loop.time() + timeout
            self._deadlines[future] = deadline
            if self._timer is None or deadline < self._timer_at or self._timer.cancelled():
                self._set_timer(loop, deadline)
        try:
            return await future
        except asyncio.CancelledError as cancelled:
            if future.done() and not future.cancelled():
                cancelled.woken_with = future.result()  # type: ignore[attr-defined]
            elif future in self._futures:
                self._futures.remove(future)
            raise
        finally:
            if timeout is not None:
                self._deadlines.pop(future, None)

    def wake(self, value: Any) -> bool:
        """Gives the value to who has waited longest; False where nobody waits."""
        while self._futures:
            future = self._futures.popleft()
            if not future.done():
                self._finish(future, value)
                return True
        return False

    def wake_all(self, value: Any) -> None:
        """Gives the value to all who wait."""
        while self.wake(value):
            pass

    @staticmethod
    def _finish(future: asyncio.Future[Any], value: Any) -> None:
        loop = future.get_loop()
        if events._get_running_loop() is loop:
            future.set_result(value)
            return

        def finish() -> None:
            if not future.done():
                future.set_result(value)

        loop.call_soon_threadsafe(finish)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = loop.call_at(deadline, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for future, deadline in list(self._deadlines.items()):
            if deadline <= now and not future.done():
                self._futures.remove(future)
                del self._deadlines[future]
                future.set_result(TIMEOUT)
        if self._deadlines:
            self._set_timer(loop, min(self._deadlines.values()))
