"""The backend of CuPy and Numba."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._cupy import find_cupy
from ..exceptions import CUDAError
from .base import Backend, BackendType, KernelExecutionResult, _timed

T = TypeVar("T", bound=np.generic)

_VECTOR_ADD = """
extern "C" __global__ void vector_add(const float* a, const float* b, float* sum, int count) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}
"""
_MATRIX_MULTIPLY = """
extern "C" __global__ void matrix_multiply(const float* a, const float* b, float* product, int rows, int columns,
                                           int inner) {
  const int row = blockDim.y * blockIdx.y + threadIdx.y;
  const int column = blockDim.x * blockIdx.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  float sum = 0;
  for (int i = 0; i < inner; ++i) sum += a[row * inner + i] * b[i * columns + column];
  product[row * columns + column] = sum;
}
"""


class CUDABackend(Backend):
    """Arrays of CuPy. `CUDAError` where there is no CuPy or no GPU.

    Parameters
    ----------
    device_id : int
        Of CUDA.
    """

    def __init__(self, device_id: int = 0) -> None:
        self._cupy, reason = find_cupy()
        if self._cupy is None:
            raise CUDAError(f"CUDA is not available: {reason}")
        self._device_id = device_id
        self.set_device(device_id)

    @property
    def backend_type(self) -> BackendType:
        """CUDA."""
        return BackendType.CUDA

    @property
    def is_available(self) -> bool:
        """Always, once it was made."""
        return True

    @property
    def device_count(self) -> int:
        """How many GPUs CUDA sees."""
        return int(self._cupy.cuda.runtime.getDeviceCount())

    @property
    def device_id(self) -> int:
        """The GPU that it uses."""
        return self._device_id

    def set_device(self, device_id: int) -> None:
        """Uses another GPU."""
        try:
            self._cupy.cuda.Device(device_id).use()
        except Exception as error:
            raise CUDAError(f"device {device_id}: {error}") from error
        self._device_id = device_id

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[T] | type[T]) -> Any:
        """An array whose elements are not set."""
        return self._cupy.empty(shape, dtype)

    def allocate_zeros(self, shape: tuple[int, ...], dtype: np.dtype[T] | type[T]) -> Any:
        """An array of zeros."""
        return self._cupy.zeros(shape, dtype)

    def free(self, array: Any) -> None:
        """Nothing: CuPy frees its arrays."""

    def copy_to_device(self, host_array: NDArray[T]) -> Any:
        """A copy on the GPU."""
        return self._cupy.asarray(host_array)

    def copy_to_host(self, device_array: Any) -> NDArray[T]:
        """A copy on the host."""
        return self._cupy.asnumpy(device_array)  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        """Waits for the work of the current stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    def execute_kernel(
        self,
        kernel: Callable[..., Any],
        grid_size: tuple[int, ...],
        block_size: tuple[int, ...],
        *args: Any,
        **kwargs: Any,
    ) -> KernelExecutionResult:
        """Starts a kernel and waits for it; what it raises is in the result."""
        numbas: Any = kernel

        def start_and_wait() -> None:
            if isinstance(kernel, self._cupy.RawKernel):
                kernel(grid_size, block_size, args, **kwargs)
            elif hasattr(kernel, "__getitem__"):
                numbas[grid_size, block_size](*args, **kwargs)
            else:
                kernel(*args, **kwargs)
            self.synchronize()

        return _timed(start_and_wait)

    def compile_kernel(self, func: Callable[..., Any], signature: str | None = None) -> Callable[..., Any]:
        """The function compiled by Numba for CUDA."""
        if importlib.util.find_spec("numba") is None:
            raise CUDAError("compiling a Python function for CUDA needs Numba")
        cuda: Any = importlib.import_module("numba.cuda")
        return cuda.jit(signature)(func) if signature else cuda.jit(func)  # type: ignore[no-any-return]

    def get_memory_info(self) -> dict[str, int]:
        """Bytes of the GPU: free, total, used."""
        free, total = self._cupy.cuda.Device(self._device_id).mem_info
        return {"free": int(free), "total": int(total), "used": int(total - free)}

    def create_stream(self) -> Any:
        """A stream of CuPy."""
        return self._cupy.cuda.Stream(non_blocking=True)

    def __repr__(self) -> str:
        return f"<CUDABackend: device {self._device_id} of {self.device_count}>"


def _compiled(source: str, name: str) -> Callable[..., Any] | None:
    cupy, _ = find_cupy()
    return None if cupy is None else cupy.RawKernel(source, name)


def get_vector_add_kernel() -> Callable[..., Any] | None:
    """A kernel of (a, b, sum, count); None without CuPy."""
    return _compiled(_VECTOR_ADD, "vector_add")


def get_matrix_multiply_kernel() -> Callable[..., Any] | None:
    """A kernel of (a, b, product, rows, columns, inner); None without CuPy."""
    return _compiled(_MATRIX_MULTIPLY, "matrix_multiply")
