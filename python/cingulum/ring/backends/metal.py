"""The place of the backend for Metal, which this layer does not reach; tracking reaches it through WebGPU."""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..exceptions import MetalError
from .base import Backend, BackendType, KernelExecutionResult

T = TypeVar("T", bound=np.generic)


class MetalBufferState(enum.Enum):
    """What has become of a buffer."""

    ALLOCATED = enum.auto()
    FREED = enum.auto()
    IN_USE = enum.auto()


@dataclasses.dataclass
class MetalBufferInfo:
    """What is known of a buffer."""

    array_id: int
    size: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    state: MetalBufferState
    created_at: float = dataclasses.field(default_factory=time.time)
    last_accessed: float = dataclasses.field(default_factory=time.time)


def _refuse() -> NoReturn:
    raise MetalError("Metal is not reached by this layer")


class MetalBackend(Backend):
    """Refused: `MetalError`.

    Parameters
    ----------
    device_id : int
        Of Metal.
    """

    def __init__(self, device_id: int = 0) -> None:
        _refuse()

    @property
    def backend_type(self) -> BackendType:
        """METAL."""
        return BackendType.METAL

    @property
    def is_available(self) -> bool:
        """Never."""
        return False

    @property
    def device_count(self) -> int:
        """None."""
        return 0

    @property
    def device_id(self) -> int:
        """Refused."""
        _refuse()

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[T] | type[T]) -> Any:
        """Refused."""
        _refuse()

    def allocate_zeros(self, shape: tuple[int, ...], dtype: np.dtype[T] | type[T]) -> Any:
        """Refused."""
        _refuse()

    def free(self, array: Any) -> None:
        """Refused."""
        _refuse()

    def copy_to_device(self, host_array: NDArray[T]) -> Any:
        """Refused."""
        _refuse()

    def copy_to_host(self, device_array: Any) -> NDArray[T]:
        """Refused."""
        _refuse()

    def synchronize(self) -> None:
        """Refused."""
        _refuse()

    def execute_kernel(
        self,
        kernel: Callable[..., Any],
        grid_size: tuple[int, ...],
        block_size: tuple[int, ...],
        *args: Any,
        **kwargs: Any,
    ) -> KernelExecutionResult:
        """Refused."""
        _refuse()

    def compile_kernel(self, func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
        """Refused."""
        _refuse()

    def get_memory_info(self) -> dict[str, int]:
        """Refused."""
        _refuse()

    def clear_cache(self) -> None:
        """Refused."""
        _refuse()


def get_vector_add_kernel() -> Callable[..., Any] | None:
    """None: Metal is not reached."""
    return None


def get_matrix_multiply_kernel() -> Callable[..., Any] | None:
    """None: Metal is not reached."""
    return None


def get_elementwise_kernel(operation: str) -> Callable[..., Any] | None:
    """None: Metal is not reached."""
    return None
