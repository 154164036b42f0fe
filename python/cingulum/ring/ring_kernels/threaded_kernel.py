"""An actor on a thread of Python's: a function with two queues."""

from __future__ import annotations

import dataclasses
import enum
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from ..exceptions import KernelStateError, QueueFullError, QueueTimeoutError
from .sync_queue import SPSCQueue, SyncQueue, _wait_any

TIn = TypeVar("TIn")
TOut = TypeVar("TOut")


def _check_queue_sizes(config: Any) -> None:
    """ValueError where a queue has no room."""
    for name in ("input_queue_size", "output_queue_size"):
        if getattr(config, name) < 1:
            raise ValueError(f"{name}: {getattr(config, name)} is less than 1")


class ThreadedKernelState(enum.Enum):
    """Where an actor is in its life."""

    CREATED = enum.auto()
    RUNNING = enum.auto()
    STOPPING = enum.auto()
    STOPPED = enum.auto()


@dataclasses.dataclass
class ThreadedKernelConfig:
    """How an actor is set up.

    Attributes
    ----------
    kernel_id : str
        Its name.
    input_queue_size, output_queue_size : int
        Messages for which there is room.
    use_spsc : bool
        Queues for one sending and one reading thread; False: for any number.
    thread_name : str or None
        Of its thread.
    daemon : bool
        Whether the process may end while it runs.
    """

    kernel_id: str
    input_queue_size: int = 4096
    output_queue_size: int = 4096
    use_spsc: bool = True
    thread_name: str | None = None
    daemon: bool = True

    def __post_init__(self) -> None:
        _check_queue_sizes(self)


def _put(queue: Any, item: Any, timeout: float | None) -> bool:
    """Adds an item; False where there was no room in time, or the queue is closed."""
    try:
        return bool(queue.put(item, timeout))
    except (QueueFullError, RuntimeError):
        return False


def _get(queue: Any, timeout: float | None) -> Any:
    """The next item; None where none came in time, or the queue is closed and empty."""
    try:
        return queue.get(timeout)
    except (QueueTimeoutError, RuntimeError):
        return None


@dataclasses.dataclass(eq=False)
class _OnThreadContext(Generic[TIn, TOut]):
    """What the bodies of actors on threads are given, whatever their queues are."""

    kernel_id: str
    input_queue: Any
    output_queue: Any
    _shutdown_event: threading.Event = dataclasses.field(default_factory=threading.Event)

    @property
    def should_terminate(self) -> bool:
        """Whether the actor is to end."""
        return self._shutdown_event.is_set()

    def send(self, message: TOut, timeout: float | None = None) -> bool:
        """Gives an answer out; False where there was no room in time."""
        return _put(self.output_queue, message, timeout)


@dataclasses.dataclass(eq=False)
class ThreadedKernelContext(_OnThreadContext[TIn, TOut]):
    """What the body of an actor is given: its queues, and whether it is to end."""

    input_queue: SyncQueue[TIn] | SPSCQueue[TIn]
    output_queue: SyncQueue[TOut] | SPSCQueue[TOut]

    def receive(self, timeout: float | None = None) -> TIn | None:
        """The next message; None where none came in time, or the actor is to end."""
        return _get(self.input_queue, timeout)  # type: ignore[no-any-return]

    def wait_shutdown(self, timeout: float | None = None) -> bool:
        """Waits until the actor is to end; whether it is."""
        return self._shutdown_event.wait(timeout)


class _OnThread(Generic[TIn, TOut]):
    """What actors on threads have in common, whatever their queues are."""

    _states: Any = ThreadedKernelState

    def __init__(self, kernel_id: str, func: Callable[[Any], Any], config: Any, queues: tuple[Any, Any]) -> None:
        self.kernel_id = kernel_id
        self._func = func
        self._config = config
        self._input, self._output = queues
        self._stop_event = threading.Event()
        self._state = self._states.CREATED
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def _context(self) -> Any:
        raise NotImplementedError

    @property
    def is_running(self) -> bool:
        """Whether its body runs."""
        return self._state is self._states.RUNNING and self._thread is not None and self._thread.is_alive()

    @property
    def error(self) -> Exception | None:
        """What its body raised, or None."""
        return self._error

    def start(self) -> None:
        """Starts its thread."""
        if self._state is not self._states.CREATED:
            raise KernelStateError(self.kernel_id, self._state.name, "start")
        name = self._config.thread_name or f"ring_kernel_{self.kernel_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=self._config.daemon)
        self._state = self._states.RUNNING
        self._thread.start()

    def _run(self) -> None:
        try:
            self._func(self._context())
        except Exception as error:
            self._error = error
        finally:
            # Who waits for an answer learns that none will come.
            self._output.shutdown()

    def stop(self, timeout: float = 5.0) -> None:
        """Tells its body to end and waits for it. A body that does not return in time is left to itself."""
        if self._state in (self._states.STOPPED, self._states.CREATED):
            self._state = self._states.STOPPED
            return
        self._state = self._states.STOPPING
        self._stop_event.set()
        self._input.shutdown()
        self._output.shutdown()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        self._state = self._states.STOPPED

    def _check(self, operation: str) -> None:
        if self._state is not self._states.RUNNING:
            raise KernelStateError(self.kernel_id, self._state.name, operation)

    def send(self, message: TIn, timeout: float | None = None) -> bool:
        """Sends a message; False where there was no room in time."""
        self._check("send message")
        return _put(self._input, message, timeout)

    def receive(self, timeout: float | None = None) -> TOut | None:
        """The next message that it sent; None where none came in time, or it has ended."""
        return _get(self._output, timeout)  # type: ignore[no-any-return]

    def send_nowait(self, message: TIn) -> bool:
        """Sends a message where there is room."""
        self._check("send message")
        return bool(self._input.put_nowait(message))

    def receive_nowait(self) -> TOut | None:
        """The next message that it sent, or None."""
        return self._output.get_nowait()  # type: ignore[no-any-return]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: '{self.kernel_id}', {self._state.name}, {len(self._input)} messages wait>"


class ThreadedRingKernel(_OnThread[TIn, TOut]):
    """An actor on a thread of its own. ``with`` starts and stops it.

    Parameters
    ----------
    kernel_id : str
        Its name.
    kernel_func : callable
        The body; called once with a `ThreadedKernelContext`.
    config : ThreadedKernelConfig, optional
        How it is set up.
    input_type, output_type : type, optional
        Kept for who asks.
    """

    def __init__(
        self,
        kernel_id: str,
        kernel_func: Callable[[ThreadedKernelContext[TIn, TOut]], Any],
        *,
        config: ThreadedKernelConfig | None = None,
        input_type: type[TIn] | None = None,
        output_type: type[TOut] | None = None,
    ) -> None:
        config = config or ThreadedKernelConfig(kernel_id)
        make: Any = SPSCQueue if config.use_spsc else SyncQueue
        super().__init__(
            kernel_id, kernel_func, config, (make(config.input_queue_size), make(config.output_queue_size))
        )
        self._types = (input_type, output_type)

    def _context(self) -> ThreadedKernelContext[TIn, TOut]:
        return ThreadedKernelContext(self.kernel_id, self._input, self._output, self._stop_event)

    @property
    def state(self) -> ThreadedKernelState:
        """Where it is in its life."""
        return self._state  # type: ignore[no-any-return]

    @property
    def config(self) -> ThreadedKernelConfig:
        """How it was set up."""
        return self._config  # type: ignore[no-any-return]


class ThreadedKernelPool:
    """Several actors with one body; messages go to them in turn.

    Parameters
    ----------
    kernel_id_prefix : str
        Their names begin with it.
    kernel_func : callable
        The body.
    num_workers : int
        How many.
    **config_kwargs
        As in `ThreadedKernelConfig`.
    """

    def __init__(
        self,
        kernel_id_prefix: str,
        kernel_func: Callable[[ThreadedKernelContext[Any, Any]], Any],
        num_workers: int = 4,
        **config_kwargs: Any,
    ) -> None:
        self._workers: list[ThreadedRingKernel[Any, Any]] = [
            ThreadedRingKernel(name, kernel_func, config=ThreadedKernelConfig(name, **config_kwargs))
            for name in (f"{kernel_id_prefix}_{number}" for number in range(num_workers))
        ]
        self._next = 0

    def start_all(self) -> None:
        """Starts all of them."""
        for worker in self._workers:
            worker.start()

    def stop_all(self, timeout: float = 5.0) -> None:
        """Stops all of them, within `timeout` seconds together."""
        end = time.monotonic() + timeout
        for worker in self._workers:
            worker._stop_event.set()
        for worker in self._workers:
            worker.stop(max(0.0, end - time.monotonic()))

    def send(self, message: Any, timeout: float | None = None) -> bool:
        """Sends a message to the next in turn."""
        worker = self._workers[self._next]
        self._next = (self._next + 1) % len(self._workers)
        return worker.send(message, timeout)

    def receive_any(self, timeout: float | None = None) -> Any | None:
        """The next message that any of them sent; None where none came in time."""
        return _wait_any([worker._output._line for worker in self._workers], timeout)

    def __enter__(self) -> ThreadedKernelPool:
        self.start_all()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: object) -> None:
        self.stop_all()

    def __len__(self) -> int:
        return len(self._workers)

    def __repr__(self) -> str:
        return f"<ThreadedKernelPool: {len(self._workers)} actors>"
