"""The backend of NumPy."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .base import Backend, BackendType, KernelExecutionResult, _timed

T = TypeVar("T", bound=np.generic)


class CPUBackend(Backend):
    """Arrays of NumPy; a kernel is a function that is called once."""

    def __init__(self) -> None:
        pass

    @property
    def backend_type(self) -> BackendType:
        """CPU."""
        return BackendType.CPU

    @property
    def is_available(self) -> bool:
        """Always."""
        return True

    @property
    def device_count(self) -> int:
        """One."""
        return 1

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[T] | type[T]) -> NDArray[T]:
        """An array whose elements are not set."""
        return np.empty(shape, dtype)

    def allocate_zeros(self, shape: tuple[int, ...], dtype: np.dtype[T] | type[T]) -> NDArray[T]:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def free(self, array: NDArray[T]) -> None:
        """Nothing: NumPy frees its arrays."""

    def copy_to_device(self, host_array: NDArray[T]) -> NDArray[T]:
        """A copy."""
        return host_array.copy()

    def copy_to_host(self, device_array: NDArray[T]) -> NDArray[T]:
        """A copy."""
        return device_array.copy()

    def synchronize(self) -> None:
        """Nothing: calls have ended when they return."""

    def execute_kernel(
        self,
        kernel: Callable[..., Any],
        grid_size: tuple[int, ...],
        block_size: tuple[int, ...],
        *args: Any,
        **kwargs: Any,
    ) -> KernelExecutionResult:
        """Calls the function once; what it raises is in the result."""
        return _timed(lambda: kernel(*args, **kwargs))

    def compile_kernel(self, func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
        """The function compiled by Numba where it is there, else the function."""
        if importlib.util.find_spec("numba") is None:
            return func
        numba: Any = importlib.import_module("numba")
        return numba.njit(signature)(func) if signature else numba.njit(func)  # type: ignore[no-any-return]

    def parallel_for(self, start: int, end: int, func: Callable[[int], None]) -> None:
        """Calls the function with each number, in order, in this thread."""
        for index in range(start, end):
            func(index)

    def __repr__(self) -> str:
        return "<CPUBackend: 1 device>"


def vector_add_cpu(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sum of two arrays."""
    return a + b


def matrix_multiply_cpu(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """The product of two matrices."""
    return a @ b
