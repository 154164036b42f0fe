"""An actor on a thread of Python's whose queues never wait unless they are told to."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, TypeVar

from ._cython import FastSPSCQueue, is_cython_available
from .threaded_kernel import _check_queue_sizes, _OnThread, _OnThreadContext

TIn = TypeVar("TIn")
TOut = TypeVar("TOut")


class CythonKernelState(enum.Enum):
    """Where an actor is in its life."""

    CREATED = enum.auto()
    RUNNING = enum.auto()
    STOPPING = enum.auto()
    STOPPED = enum.auto()


@dataclasses.dataclass
class CythonKernelConfig:
    """How an actor is set up.

    Attributes
    ----------
    kernel_id : str
        Its name.
    input_queue_size, output_queue_size : int
        Messages for which there is room.
    spin_wait_ns : int
        Kept for who asks; waiting threads sleep.
    thread_name : str or None
        Of its thread.
    daemon : bool
        Whether the process may end while it runs.
    """

    kernel_id: str
    input_queue_size: int = 4096
    output_queue_size: int = 4096
    spin_wait_ns: int = 100
    thread_name: str | None = None
    daemon: bool = True

    def __post_init__(self) -> None:
        _check_queue_sizes(self)


@dataclasses.dataclass(eq=False)
class CythonKernelContext(_OnThreadContext[TIn, TOut]):
    """What the body of an actor is given: its queues, and whether it is to end."""

    def receive(self, timeout: float | None = None) -> TIn | None:
        """The next message; None where none came in time, or the actor is to end."""
        return self.input_queue.get(timeout)  # type: ignore[no-any-return]

    def receive_nowait(self) -> TIn | None:
        """The next message, or None."""
        return self.input_queue.get_nowait()  # type: ignore[no-any-return]

    def send_nowait(self, message: TOut) -> bool:
        """Gives an answer out where there is room."""
        return self.output_queue.put_nowait(message)  # type: ignore[no-any-return]


class CythonRingKernel(_OnThread[TIn, TOut]):
    """An actor on a thread of its own. ``with`` starts and stops it.

    Parameters
    ----------
    kernel_id : str
        Its name.
    kernel_func : callable
        The body; called once with a `CythonKernelContext`.
    config : CythonKernelConfig, optional
        How it is set up.
    """

    _states = CythonKernelState

    def __init__(
        self,
        kernel_id: str,
        kernel_func: Callable[[CythonKernelContext[TIn, TOut]], Any],
        *,
        config: CythonKernelConfig | None = None,
    ) -> None:
        config = config or CythonKernelConfig(kernel_id)
        queues = (FastSPSCQueue[Any](config.input_queue_size), FastSPSCQueue[Any](config.output_queue_size))
        super().__init__(kernel_id, kernel_func, config, queues)

    def _context(self) -> CythonKernelContext[TIn, TOut]:
        return CythonKernelContext(self.kernel_id, self._input, self._output, self._stop_event)

    @property
    def state(self) -> CythonKernelState:
        """Where it is in its life."""
        return self._state  # type: ignore[no-any-return]

    @property
    def using_cython(self) -> bool:
        """Whether its queues are `FastSPSCQueue`."""
        return isinstance(self._input, FastSPSCQueue)



def is_cython_kernel_available() -> bool:
    """Whether `CythonRingKernel` can be used."""
    return is_cython_available()
