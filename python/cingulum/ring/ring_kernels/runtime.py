"""Actors of the event loop by name, from launch to shutdown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from ..exceptions import KernelAlreadyExistsError, KernelNotFoundError
from ._loop import get_loop_info
from .lifecycle import KernelContext, KernelState, RingKernel, RingKernelConfig, _html_row
from .telemetry import RingKernelTelemetry, TelemetryCollector

TIn = TypeVar("TIn")
TOut = TypeVar("TOut")

_registered: dict[str, dict[str, Any]] = {}


def register_ring_kernel(
    kernel_id: str,
    func: Callable[..., Any],
    input_type: type | None = None,
    output_type: type | None = None,
    **config: Any,
) -> None:
    """Keeps a body under a name, for `RingKernelRuntime.launch`; the last one of a name wins."""
    _registered[kernel_id] = {"func": func, "input_type": input_type, "output_type": output_type, "config": config}


def get_registered_kernel(kernel_id: str) -> dict[str, Any] | None:
    """What was registered under a name: func, input_type, output_type, config; or None."""
    return _registered.get(kernel_id)


class RingKernelRuntime:
    """Actors by name. ``async with`` starts it and shuts it down.

    Parameters
    ----------
    enable_telemetry : bool
        Count messages, latency and errors.
    use_uvloop, use_eager_tasks : bool
        Taken and left alone: the loop that runs is the caller's (`install_uvloop` makes others).
    """

    def __init__(
        self, *, enable_telemetry: bool = True, use_uvloop: bool = True, use_eager_tasks: bool = True
    ) -> None:
        self._kernels: dict[str, RingKernel[Any, Any]] = {}
        self._collector = TelemetryCollector() if enable_telemetry else None
        self._active = False

    async def __aenter__(self) -> RingKernelRuntime:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: object
    ) -> None:
        await self.shutdown()

    async def start(self) -> None:
        """Marks it as active."""
        self._active = True

    async def shutdown(self, timeout: float = 10.0) -> None:
        """Terminates all actors within `timeout` seconds together."""
        if not self._active and not self._kernels:
            return
        while self._kernels:
            share = timeout / len(self._kernels)
            name = next(iter(self._kernels))
            with suppress(Exception):
                await self._kernels[name].terminate(timeout=share)
            self._forget(name)
        self._active = False

    @property
    def is_active(self) -> bool:
        """Whether it was started and not shut down."""
        return self._active

    @property
    def kernel_ids(self) -> list[str]:
        """Names of its actors."""
        return list(self._kernels)

    def _find(self, kernel_id: str) -> RingKernel[Any, Any]:
        try:
            return self._kernels[kernel_id]
        except KeyError:
            raise KernelNotFoundError(kernel_id, list(self._kernels)) from None

    def _forget(self, kernel_id: str) -> None:
        self._kernels.pop(kernel_id, None)
        if self._collector is not None:
            self._collector.unregister_kernel(kernel_id)

    async def launch(
        self,
        kernel_id: str,
        kernel_func: Callable[[KernelContext[TIn, TOut]], Any] | None = None,
        *,
        config: RingKernelConfig | None = None,
        input_type: type[TIn] | None = None,
        output_type: type[TOut] | None = None,
    ) -> RingKernel[TIn, TOut]:
        """Launches an actor; without `kernel_func` the one that was registered under this name."""
        if kernel_id in self._kernels:
            raise KernelAlreadyExistsError(kernel_id)
        if kernel_func is None:
            kept = _registered.get(kernel_id)
            if kept is None:
                raise KernelNotFoundError(kernel_id, list(_registered))
            kernel_func = kept["func"]
            input_type = input_type or kept["input_type"]
            output_type = output_type or kept["output_type"]
            if config is None:
                config = RingKernelConfig(kernel_id, **kept["config"])
        assert kernel_func is not None
        kernel: RingKernel[TIn, TOut] = RingKernel(
            kernel_id, kernel_func, config=config, input_type=input_type, output_type=output_type
        )
        if self._collector is not None:
            kernel._telemetry = self._collector.register_kernel(kernel_id)
        await kernel.launch()
        self._kernels[kernel_id] = kernel
        return kernel

    async def activate(self, kernel_id: str) -> None:
        """Starts the body of an actor."""
        await self._find(kernel_id).activate()

    async def deactivate(self, kernel_id: str) -> None:
        """Holds the messages of an actor back."""
        await self._find(kernel_id).deactivate()

    async def reactivate(self, kernel_id: str) -> None:
        """Gives them out again."""
        await self._find(kernel_id).reactivate()

    async def terminate(self, kernel_id: str, timeout: float = 5.0) -> None:
        """Ends an actor and forgets it; its handle keeps what it sent."""
        kernel = self._find(kernel_id)
        await kernel.terminate(timeout=timeout)
        self._forget(kernel_id)

    async def send(self, kernel_id: str, message: Any, *, timeout: float | None = None) -> None:
        """Sends a message to an actor."""
        kernel = self._kernels.get(kernel_id) or self._find(kernel_id)
        # The way of nearly all messages, without two further coroutines.
        if kernel._takes_messages and kernel._input_type is None and kernel._input._accept(message):
            return
        await kernel.send(message, timeout)

    async def receive(self, kernel_id: str, *, timeout: float | None = None) -> Any:
        """The next message that an actor sent."""
        kernel = self._kernels.get(kernel_id) or self._find(kernel_id)
        if kernel._takes_messages and kernel._output._size:
            return kernel._output._take()
        return await kernel.receive(timeout)

    def get_kernel_state(self, kernel_id: str) -> KernelState:
        """Where an actor is in its life."""
        return self._find(kernel_id).state

    def get_telemetry(self, kernel_id: str) -> RingKernelTelemetry | None:
        """The counts of an actor; None where counting is off."""
        kernel = self._find(kernel_id)
        if self._collector is None:
            return None
        telemetry = self._collector.get_kernel_telemetry(kernel_id)
        self._refresh(kernel, telemetry)
        return telemetry

    @staticmethod
    def _refresh(kernel: RingKernel[Any, Any], telemetry: RingKernelTelemetry | None) -> None:
        if telemetry is not None and kernel._input is not None:
            telemetry.queue_depth = len(kernel._input)

    def get_all_telemetry(self) -> dict[str, RingKernelTelemetry]:
        """The counts of all actors by name; none where counting is off."""
        if self._collector is None:
            return {}
        found = self._collector.get_all_telemetry()
        for name, kernel in self._kernels.items():
            self._refresh(kernel, found.get(name))
        return found

    def get_summary(self) -> dict[str, object]:
        """Sums over all actors."""
        if self._collector is not None:
            return self._collector.get_summary()
        names = ("total_messages_processed", "total_messages_dropped", "total_errors", "uptime_seconds")
        return {"kernel_count": len(self._kernels), **dict.fromkeys(names, 0), "gpu_utilization": None}

    async def send_and_receive(self, kernel_id: str, message: Any, *, timeout: float | None = None) -> Any:
        """Sends a message and gives its answer: the one with its correlation, or, where the actor sets none, the next."""
        return await self._find(kernel_id)._ask(message, timeout)

    @asynccontextmanager
    async def kernel_scope(
        self, kernel_id: str, kernel_func: Callable[[KernelContext[TIn, TOut]], Any] | None = None, **kwargs: Any
    ) -> AsyncIterator[RingKernel[TIn, TOut]]:
        """An actor that is active within ``async with``, and terminated whatever way it is left."""
        kernel: RingKernel[TIn, TOut] = await self.launch(kernel_id, kernel_func, **kwargs)
        await kernel.activate()
        try:
            yield kernel
        finally:
            if kernel_id in self._kernels:
                await self.terminate(kernel_id)

    def get_loop_info(self) -> dict[str, str | bool]:
        """What is known of the event loop."""
        return get_loop_info()

    def __repr__(self) -> str:
        state = "active" if self._active else "not active"
        return f"<RingKernelRuntime: {state}, {len(self._kernels)} actors>"

    def _repr_html_(self) -> str:
        from ..._pictures import table

        rows = [_html_row(kernel) for kernel in self._kernels.values()]
        return table(["actor", "state", "messages waiting", "answers unread"], rows)
