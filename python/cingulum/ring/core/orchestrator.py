"""Functions by name, called and timed."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from .._cupy import find_cupy
from .accelerator import Accelerator
from .memory_pool import MemoryPool

_MOST_KEPT = 65536


@dataclasses.dataclass
class KernelLaunchConfig:
    """How a kernel is started; numbers become tuples of one."""

    grid_size: tuple[int, ...] = (1,)
    block_size: tuple[int, ...] = (256,)
    shared_memory_bytes: int = 0
    stream: object | None = None

    def __post_init__(self) -> None:
        if isinstance(self.grid_size, int):
            self.grid_size = (self.grid_size,)
        if isinstance(self.block_size, int):
            self.block_size = (self.block_size,)


@dataclasses.dataclass
class KernelExecution:
    """One call of a kernel."""

    execution_id: UUID = dataclasses.field(default_factory=uuid4)
    kernel_name: str = ""
    config: KernelLaunchConfig = dataclasses.field(default_factory=KernelLaunchConfig)
    start_time: float = 0.0
    end_time: float = 0.0
    success: bool = False
    error: Exception | None = None

    @property
    def duration_ms(self) -> float:
        """How long it took."""
        return (self.end_time - self.start_time) * 1e3


class ComputeOrchestrator:
    """Functions by name, called one by one. ``async with`` initialises it and shuts it down.

    Of its calls the last 65536 are kept.
    """

    def __init__(self) -> None:
        self._active = False
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._history: deque[KernelExecution] = deque(maxlen=_MOST_KEPT)
        self._accelerator: Accelerator | None = None
        self._memory_pool: MemoryPool | None = None

    async def __aenter__(self) -> ComputeOrchestrator:
        await self.initialize()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: object
    ) -> None:
        await self.shutdown()

    async def initialize(self) -> None:
        """Makes it active."""
        if not self._active:
            self._accelerator = Accelerator()
            self._memory_pool = MemoryPool()
            self._active = True

    async def shutdown(self) -> None:
        """Waits for its work and ends it."""
        if self._active:
            self.synchronize()
            self._active = False

    @property
    def is_active(self) -> bool:
        """Whether it was initialised and not shut down."""
        return self._active

    @property
    def accelerator(self) -> Accelerator | None:
        """The devices; None before `initialize`."""
        return self._accelerator

    @property
    def memory_pool(self) -> MemoryPool | None:
        """The pools; None before `initialize`."""
        return self._memory_pool

    def register_kernel(self, name: str, kernel_func: Callable[..., Any]) -> None:
        """Keeps a function under a name."""
        self._kernels[name] = kernel_func

    def get_kernel(self, name: str) -> Callable[..., Any] | None:
        """The function of a name, or None."""
        return self._kernels.get(name)

    async def launch_kernel(
        self, kernel: Callable[..., Any] | str, config: KernelLaunchConfig, *args: Any, **kwargs: Any
    ) -> KernelExecution:
        """Calls a function, or the one of a name, and awaits it where it is a coroutine. What it raises is kept, too."""
        if isinstance(kernel, str):
            function = self._kernels.get(kernel)
            if function is None:
                known = ", ".join(self._kernels) or "none"
                raise ValueError(f"kernel: '{kernel}' is not registered (known: {known})")
            name = kernel
        else:
            function, name = kernel, getattr(kernel, "__name__", repr(kernel))
        done = KernelExecution(kernel_name=name, config=config, start_time=time.time())
        self._history.append(done)
        try:
            ended = function(*args, **kwargs)
            if inspect.isawaitable(ended):
                await ended
            done.success = True
        except Exception as error:
            done.error = error
            raise
        finally:
            done.end_time = time.time()
        return done

    def create_stream(self) -> object | None:
        """A stream of CuPy; None without it."""
        cupy, _ = find_cupy()
        return None if cupy is None else cupy.cuda.Stream(non_blocking=True)

    def synchronize(self) -> None:
        """Waits for the work of CuPy."""
        if self._accelerator is not None:
            self._accelerator.synchronize()

    def get_execution_history(self, limit: int | None = None, kernel_name: str | None = None) -> list[KernelExecution]:
        """The calls so far, the last `limit` of them, or those of one name."""
        calls = [one for one in self._history if kernel_name is None or one.kernel_name == kernel_name]
        return calls if limit is None else calls[max(0, len(calls) - limit) :]

    def clear_execution_history(self) -> None:
        """Forgets the calls so far."""
        self._history.clear()

    @asynccontextmanager
    async def stream_context(self) -> AsyncIterator[object | None]:
        """A stream that is waited for at the end of ``async with``."""
        stream: Any = self.create_stream()
        try:
            yield stream
        finally:
            if stream is not None:
                stream.synchronize()

    def __repr__(self) -> str:
        return f"<ComputeOrchestrator: {len(self._kernels)} kernels, {len(self._history)} calls>"
