"""An actor of the event loop: a coroutine with two queues, from launch to termination."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

from ..exceptions import (
    KernelFailedError,
    KernelStateError,
    QueueClosedError,
    QueueFullError,
    QueueTimeoutError,
    TypeValidationError,
)
from ._waiters import TIMEOUT, Waiters
from .fast_queue import FastMessageQueue
from .queue import BackpressureStrategy, MessageQueue
from .telemetry import RingKernelTelemetry

TIn = TypeVar("TIn")
TOut = TypeVar("TOut")


class KernelState(enum.Enum):
    """Where an actor is in its life. FAILED: its body raised."""

    CREATED = enum.auto()
    LAUNCHED = enum.auto()
    ACTIVE = enum.auto()
    DEACTIVATED = enum.auto()
    TERMINATING = enum.auto()
    TERMINATED = enum.auto()
    FAILED = enum.auto()


@dataclasses.dataclass
class RingKernelConfig:
    """How an actor is set up.

    Attributes
    ----------
    kernel_id : str
        Its name.
    grid_size, block_size : int
        Kept for who asks; an actor of the event loop has neither.
    input_queue_size, output_queue_size : int
        Messages for which there is room.
    backpressure_strategy : str
        What full queues do: ``"block"``, ``"reject"`` or ``"drop_oldest"``.
    use_fast_queue : bool
        Queues in four bands; False: ordered by priority.
    """

    kernel_id: str
    grid_size: int = 1
    block_size: int = 256
    input_queue_size: int = 4096
    output_queue_size: int = 4096
    backpressure_strategy: str = "block"
    use_fast_queue: bool = True

    def __post_init__(self) -> None:
        for name in ("grid_size", "block_size", "input_queue_size", "output_queue_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is less than 1")


def _make_queue(config: RingKernelConfig, size: int) -> Any:
    strategy = config.backpressure_strategy.lower()
    if not config.use_fast_queue:
        return MessageQueue(size, backpressure=BackpressureStrategy[strategy.upper()], kernel_id=config.kernel_id)
    queue: FastMessageQueue[Any] = FastMessageQueue(size, kernel_id=config.kernel_id)
    queue._when_full = strategy
    return queue


class _Asked:
    """The requests of `send_and_receive` that wait for their answers, each with the identities that answer it."""

    def __init__(self) -> None:
        self.waiting: dict[Waiters, tuple[Any, ...]] = {}
        self.given_up: set[Any] = set()

    def take(self, message: Any) -> bool:
        """Gives an answer to who asked for it: by correlation; one that has none goes to who has waited longest."""
        correlation = getattr(message, "correlation_id", None)
        if correlation is not None:
            for waiter, identities in self.waiting.items():
                if correlation in identities:
                    return self._give(waiter, message)
            if correlation in self.given_up:
                self.given_up.discard(correlation)
                return False
        return self._give(next(iter(self.waiting)), message) if self.waiting else False

    def _give(self, waiter: Waiters, message: Any) -> bool:
        del self.waiting[waiter]
        return waiter.wake(message)


@dataclasses.dataclass(eq=False, repr=False)
class KernelContext(Generic[TIn, TOut]):
    """What the body of an actor is given: its queues, and whether it is to end."""

    kernel_id: str
    input_queue: MessageQueue[TIn] | FastMessageQueue[TIn]
    output_queue: MessageQueue[TOut] | FastMessageQueue[TOut]
    _shutdown_event: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    _active_event: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._asked = _Asked()
        self._telemetry: RingKernelTelemetry | None = None
        self._since = 0
        self._output_type: type | None = None

    @property
    def should_terminate(self) -> bool:
        """Whether the actor is to end."""
        return self._shutdown_event._value  # type: ignore[attr-defined,no-any-return]

    @property
    def is_active(self) -> bool:
        """Whether the actor is to work."""
        return self._active_event.is_set()

    async def receive(self, timeout: float | None = None) -> TIn:
        """The next message; QueueTimeoutError where none came in time. While the actor is deactivated none comes."""
        telemetry = self._telemetry
        if telemetry is not None and self._since:
            telemetry.record_message(perf_counter_ns() - self._since)
            self._since = 0
        queue = self.input_queue
        message = queue._take() if queue._size and not queue._gated else await queue._wait(timeout)
        if telemetry is not None:
            self._since = perf_counter_ns()
        return message

    async def send(self, message: TOut) -> None:
        """Gives an answer out; waits for room where there is none."""
        if self._output_type is not None:
            _check_type(self._output_type, message, f"what actor '{self.kernel_id}' sends")
        if self._asked.waiting and self._asked.take(message):
            return
        queue = self.output_queue
        if not queue._accept(message):
            await queue.put(message)

    async def wait_active(self) -> None:
        """Waits until the actor is to work."""
        await self._active_event.wait()

    def __repr__(self) -> str:
        return f"<KernelContext: '{self.kernel_id}', {len(self.input_queue)} messages wait>"


def _check_type(expected: type, message: Any, context: str) -> None:
    if not isinstance(message, expected):
        import warnings

        warnings.warn(str(TypeValidationError(expected, type(message), context)), RuntimeWarning, stacklevel=3)


class RingKernel(Generic[TIn, TOut]):
    """An actor: a coroutine or function of one `KernelContext`, and the way to it.

    Parameters
    ----------
    kernel_id : str
        Its name.
    kernel_func : callable
        The body; called once, when the actor is activated.
    config : RingKernelConfig, optional
        How it is set up.
    input_type, output_type : type, optional
        What is sent to it and what it sends; another type is warned of.
    """

    def __init__(
        self,
        kernel_id: str,
        kernel_func: Callable[[KernelContext[TIn, TOut]], Any],
        *,
        config: RingKernelConfig | None = None,
        input_type: type[TIn] | None = None,
        output_type: type[TOut] | None = None,
    ) -> None:
        self.kernel_id = kernel_id
        self._func = kernel_func
        self._config = config or RingKernelConfig(kernel_id)
        self._input_type = input_type
        self._output_type = output_type
        self._state = KernelState.CREATED
        self._context: KernelContext[TIn, TOut] | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._telemetry: RingKernelTelemetry | None = None
        self._input: Any = None
        self._output: Any = None
        self._takes_messages = False

    @property
    def state(self) -> KernelState:
        """Where it is in its life."""
        return self._state

    @property
    def config(self) -> RingKernelConfig:
        """How it was set up."""
        return self._config

    @property
    def error(self) -> BaseException | None:
        """What its body raised, or None."""
        return self._error

    def _refuse(self, operation: str) -> KernelStateError | KernelFailedError:
        if self._state is KernelState.FAILED and self._error is not None:
            return KernelFailedError(self.kernel_id, self._error)
        return KernelStateError(self.kernel_id, self._state.name, operation)

    def _move(self, state: KernelState) -> None:
        self._state = state
        self._takes_messages = state in (KernelState.ACTIVE, KernelState.DEACTIVATED)

    async def launch(self) -> None:
        """Makes its queues."""
        if self._state is not KernelState.CREATED:
            raise self._refuse("launch")
        self._input = _make_queue(self._config, self._config.input_queue_size)
        self._output = _make_queue(self._config, self._config.output_queue_size)
        self._context = KernelContext(self.kernel_id, self._input, self._output)
        self._context._telemetry = self._telemetry
        self._context._output_type = self._output_type
        self._move(KernelState.LAUNCHED)

    async def activate(self) -> None:
        """Starts its body."""
        if self._state is not KernelState.LAUNCHED:
            raise self._refuse("activate")
        assert self._context is not None
        self._context._active_event.set()
        self._move(KernelState.ACTIVE)
        self._task = asyncio.create_task(self._run(), name=f"ring_kernel_{self.kernel_id}")

    async def _run(self) -> None:
        try:
            ended = self._func(self._context)  # type: ignore[arg-type]
            if inspect.isawaitable(ended):
                await ended
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if self._state is KernelState.TERMINATING and isinstance(error, (QueueClosedError, QueueTimeoutError)):
                return
            self._fail(error)
            if not isinstance(error, Exception):
                raise

    def _fail(self, error: BaseException) -> None:
        """The body has raised: kept, counted, and told to all who wait."""
        self._error = error
        if self._telemetry is not None:
            self._telemetry.record_error(f"{type(error).__name__}: {error}")
        if self._state is not KernelState.TERMINATING:
            self._move(KernelState.FAILED)
        self._close_queues()

    def _close_queues(self) -> None:
        assert self._context is not None
        self._input._close()
        self._output._close()
        for waiter in list(self._context._asked.waiting):
            waiter.wake(_ENDED)
        self._context._asked.waiting.clear()

    async def deactivate(self) -> None:
        """Holds messages back; they are kept until `reactivate`."""
        if self._state is not KernelState.ACTIVE:
            raise self._refuse("deactivate")
        assert self._context is not None
        self._context._active_event.clear()
        self._input._set_gate(True)
        self._move(KernelState.DEACTIVATED)

    async def reactivate(self) -> None:
        """Gives messages out again."""
        if self._state is not KernelState.DEACTIVATED:
            raise self._refuse("reactivate")
        assert self._context is not None
        self._context._active_event.set()
        self._move(KernelState.ACTIVE)
        self._input._set_gate(False)

    async def terminate(self, timeout: float = 5.0) -> None:
        """Ends it: the body is told, waited for, and cancelled after `timeout` seconds. What it sent stays readable."""
        if self._state in (KernelState.TERMINATED, KernelState.TERMINATING):
            return
        self._move(KernelState.TERMINATING)
        if self._context is not None:
            # The flag first: a body that goes on after any error of a closed queue looks at it.
            self._context._shutdown_event.set()
            self._context._active_event.set()
            self._close_queues()
        if self._task is not None:
            _, late = await asyncio.wait([self._task], timeout=timeout)
            if late:
                self._task.cancel()
                await asyncio.wait([self._task])
        if self._input is not None:
            dropped = self._input.clear()
            if self._telemetry is not None:
                self._telemetry.messages_dropped += dropped
        self._task = None
        self._move(KernelState.TERMINATED)

    async def send(self, message: TIn, timeout: float | None = None) -> None:
        """Sends a message; QueueFullError where there was no room in time."""
        if not self._takes_messages:
            raise self._refuse("send message")
        if self._input_type is not None:
            _check_type(self._input_type, message, f"what is sent to actor '{self.kernel_id}'")
        queue = self._input
        if not queue._accept(message):
            try:
                await queue.put(message, timeout=timeout)
            except QueueFullError:
                if self._telemetry is not None:
                    self._telemetry.record_drop()
                raise

    async def receive(self, timeout: float | None = None) -> TOut:
        """The next message that it sent; QueueTimeoutError where none came in time."""
        queue = self._output
        if queue is not None and queue._size:
            return queue._take()  # type: ignore[no-any-return]
        if not self._takes_messages:
            raise self._refuse("receive message")
        try:
            return await queue._wait(timeout)  # type: ignore[no-any-return]
        except QueueClosedError:
            if self._error is not None:
                raise KernelFailedError(self.kernel_id, self._error) from self._error
            raise

    async def _ask(self, message: Any, timeout: float | None) -> Any:
        """Sends a message and waits for its answer."""
        if not self._takes_messages or self._context is None:
            raise self._refuse("send message")
        asked = self._context._asked
        identities = tuple(
            one
            for one in (getattr(message, "message_id", None), getattr(message, "correlation_id", None))
            if one is not None
        )
        waiter = Waiters()
        asked.waiting[waiter] = identities
        try:
            await self.send(message, timeout)
            answer = await waiter.wait(timeout)
        except BaseException:
            asked.waiting.pop(waiter, None)
            raise
        if answer is TIMEOUT:
            asked.waiting.pop(waiter, None)
            asked.given_up.update(identities)
            raise QueueTimeoutError(self.kernel_id, timeout or 0.0, "receive")
        if answer is _ENDED:
            raise KernelFailedError(self.kernel_id, self._error) if self._error else QueueClosedError(self.kernel_id)
        return answer

    def __repr__(self) -> str:
        waiting = 0 if self._input is None else len(self._input)
        return f"<RingKernel: '{self.kernel_id}', {self._state.name}, {waiting} messages wait>"

    def _repr_html_(self) -> str:
        from ..._pictures import table

        return table(["actor", "state", "messages waiting", "answers unread"], [_html_row(self)])


def _html_row(kernel: RingKernel[Any, Any]) -> list[str]:
    waiting, unread = ("0" if queue is None else str(len(queue)) for queue in (kernel._input, kernel._output))
    return [kernel.kernel_id, kernel._state.name, waiting, unread]


class _Ended:
    """What a request gets whose actor has ended."""


_ENDED = _Ended()


@asynccontextmanager
async def managed_kernel(
    kernel_id: str, kernel_func: Callable[[KernelContext[TIn, TOut]], Any], **kwargs: Any
) -> AsyncIterator[RingKernel[TIn, TOut]]:
    """An actor that is active within ``async with``, and terminated whatever way it is left."""
    kernel: RingKernel[TIn, TOut] = RingKernel(kernel_id, kernel_func, **kwargs)
    await kernel.launch()
    await kernel.activate()
    try:
        yield kernel
    finally:
        await kernel.terminate()
