"""What a backend does: memory, copies, and calling kernels."""

from __future__ import annotations

import dataclasses
import enum
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


class BackendType(enum.Enum):
    """What a backend computes by."""

    CPU = enum.auto()
    CUDA = enum.auto()
    METAL = enum.auto()


@dataclasses.dataclass
class KernelExecutionResult:
    """How a call of a kernel ended."""

    success: bool
    execution_time_ms: float
    error: Exception | None = None


def _timed(call: Callable[[], Any]) -> KernelExecutionResult:
    """Makes the call and says how long it took; what it raises is in the result."""
    begin = time.perf_counter()
    error: Exception | None = None
    try:
        call()
    except Exception as raised:
        error = raised
    return KernelExecutionResult(error is None, (time.perf_counter() - begin) * 1e3, error)


class Backend(ABC):
    """What every backend does."""

    @property
    @abstractmethod
    def backend_type(self) -> BackendType:
        """What it computes by."""

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether it can be used."""

    @property
    @abstractmethod
    def device_count(self) -> int:
        """How many devices it has."""

    @abstractmethod
    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[T]) -> NDArray[T]:
        """An array whose elements are not set."""

    @abstractmethod
    def free(self, array: NDArray[T]) -> None:
        """Gives an array back."""

    @abstractmethod
    def copy_to_device(self, host_array: NDArray[T]) -> NDArray[T]:
        """A copy on the device."""

    @abstractmethod
    def copy_to_host(self, device_array: NDArray[T]) -> NDArray[T]:
        """A copy on the host."""

    @abstractmethod
    def synchronize(self) -> None:
        """Waits for its work."""

    @abstractmethod
    def execute_kernel(
        self,
        kernel: Callable[..., Any],
        grid_size: tuple[int, ...],
        block_size: tuple[int, ...],
        *args: Any,
        **kwargs: Any,
    ) -> KernelExecutionResult:
        """Calls a kernel; what it raises is in the result."""

    @abstractmethod
    def compile_kernel(self, func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
        """The function as a kernel."""


class BackendArray(Generic[T]):
    """An array that its backend gets back when nobody holds it any more.

    Parameters
    ----------
    data : array
        Of the backend.
    backend : Backend
        Who made it.
    owns_data : bool
        False: it is not given back.
    """

    def __init__(self, data: NDArray[T], backend: Backend, *, owns_data: bool = True) -> None:
        self._data = data
        self._backend = backend
        self._owns = owns_data

    @property
    def data(self) -> NDArray[T]:
        """The array."""
        return self._data

    @property
    def backend(self) -> Backend:
        """Who made it."""
        return self._backend

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self._data.shape

    @property
    def dtype(self) -> np.dtype[T]:
        """Of its elements."""
        return self._data.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._data.nbytes)

    def to_host(self) -> NDArray[T]:
        """A copy on the host."""
        return self._backend.copy_to_host(self._data)

    def synchronize(self) -> None:
        """Waits for the work of its backend."""
        self._backend.synchronize()

    def __del__(self) -> None:
        if getattr(self, "_owns", False):
            self._backend.free(self._data)

    def __repr__(self) -> str:
        return f"<BackendArray: {self.shape} of {self.dtype}, {self._backend.backend_type.name}>"
