"""Functions as actors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..ring_kernels.message import RingKernelMessage
from ..ring_kernels.runtime import register_ring_kernel

F = TypeVar("F", bound=Callable[..., Any])

_META = "__ring_kernel_meta__"


@overload
def ring_kernel(func: F) -> F: ...
@overload
def ring_kernel(
    func: None = None,
    *,
    kernel_id: str | None = None,
    input_type: type[Any] | None = None,
    output_type: type[Any] | None = None,
    queue_size: int = 4096,
    input_queue_size: int | None = None,
    output_queue_size: int | None = None,
    grid_size: int = 1,
    block_size: int = 256,
    backpressure: str = "block",
    auto_register: bool = True,
) -> Callable[[F], F]: ...
def ring_kernel(
    func: F | None = None,
    *,
    kernel_id: str | None = None,
    input_type: type[RingKernelMessage] | None = None,
    output_type: type[RingKernelMessage] | None = None,
    queue_size: int = 4096,
    input_queue_size: int | None = None,
    output_queue_size: int | None = None,
    grid_size: int = 1,
    block_size: int = 256,
    backpressure: str = "block",
    auto_register: bool = True,
) -> F | Callable[[F], F]:
    """Registers a function as the body of an actor. It can still be called.

    Parameters
    ----------
    func : callable
        With and without parentheses.
    kernel_id : str, optional
        The actor's name; the function's unless given.
    input_type, output_type : type, optional
        Of messages.
    queue_size, input_queue_size, output_queue_size : int
        Messages for which there is room, in both queues or in each.
    grid_size, block_size : int
        Kept for who asks.
    backpressure : str
        What full queues do: ``"block"``, ``"reject"`` or ``"drop_oldest"``.
    auto_register : bool
        False: `RingKernelRuntime.launch` does not find it by its name.
    """

    def made(target: F) -> F:
        name = kernel_id or target.__name__
        config = {
            "input_queue_size": queue_size if input_queue_size is None else input_queue_size,
            "output_queue_size": queue_size if output_queue_size is None else output_queue_size,
            "grid_size": grid_size,
            "block_size": block_size,
            "backpressure_strategy": backpressure,
        }
        meta = {"kernel_id": name, "input_type": input_type, "output_type": output_type, "config": config}
        setattr(target, _META, meta)
        if auto_register:
            register_ring_kernel(name, target, input_type, output_type, **config)
        return target

    return made if func is None else made(func)


def get_ring_kernel_meta(func: Callable[..., Any]) -> dict[str, Any] | None:
    """What `ring_kernel` keeps with a function: kernel_id, input_type, output_type, config; or None."""
    return getattr(func, _META, None)


def is_ring_kernel(func: Callable[..., Any]) -> bool:
    """Whether a function went through `ring_kernel`."""
    return hasattr(func, _META)


class RingKernelBuilder:
    """`ring_kernel` step by step.

    Parameters
    ----------
    kernel_id : str
        The actor's name.
    """

    def __init__(self, kernel_id: str) -> None:
        self._given: dict[str, Any] = {"kernel_id": kernel_id}
        self._handler: Callable[..., Any] | None = None

    def _with(self, name: str, value: Any) -> RingKernelBuilder:
        self._given[name] = value
        return self

    def with_input_type(self, input_type: type) -> RingKernelBuilder:
        """Of messages to the actor."""
        return self._with("input_type", input_type)

    def with_output_type(self, output_type: type) -> RingKernelBuilder:
        """Of messages that it sends."""
        return self._with("output_type", output_type)

    def with_queue_size(self, size: int) -> RingKernelBuilder:
        """Messages for which there is room, in both queues."""
        return self._with("queue_size", size)

    def with_input_queue_size(self, size: int) -> RingKernelBuilder:
        """Messages to the actor for which there is room."""
        return self._with("input_queue_size", size)

    def with_output_queue_size(self, size: int) -> RingKernelBuilder:
        """Messages of the actor for which there is room."""
        return self._with("output_queue_size", size)

    def with_grid_size(self, size: int) -> RingKernelBuilder:
        """Kept for who asks."""
        return self._with("grid_size", size)

    def with_block_size(self, size: int) -> RingKernelBuilder:
        """Kept for who asks."""
        return self._with("block_size", size)

    def with_backpressure(self, strategy: str) -> RingKernelBuilder:
        """What full queues do."""
        return self._with("backpressure", strategy)

    def with_handler(self, handler: Callable[..., Any]) -> RingKernelBuilder:
        """The body."""
        self._handler = handler
        return self

    def build(self) -> Callable[..., Any]:
        """Registers the body; ValueError without one."""
        if self._handler is None:
            raise ValueError("handler: an actor needs a body; call with_handler() first")
        return ring_kernel(**self._given)(self._handler)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<RingKernelBuilder: '{self._given['kernel_id']}', {len(self._given) - 1} settings>"
