"""An array in host memory, in CuPy's, or in both, with the knowledge of which is the newer."""

from __future__ import annotations

import enum
import math
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._cupy import find_cupy
from ..exceptions import BufferNotAllocatedError, BufferSyncError, MetalError

T = TypeVar("T", bound=np.generic)


class BufferState(enum.Enum):
    """Which memory is there, and which of both is the newer."""

    UNINITIALIZED = enum.auto()
    HOST_ONLY = enum.auto()
    DEVICE_ONLY = enum.auto()
    SYNCHRONIZED = enum.auto()
    HOST_DIRTY = enum.auto()
    DEVICE_DIRTY = enum.auto()


class UnifiedBuffer(Generic[T]):
    """An array that is copied between host and device when it is asked for. Without CuPy it stays on the host.

    Parameters
    ----------
    shape : int or tuple of int
        Of the array.
    dtype : dtype
        Of its elements.
    pinned : bool
        Host memory that devices reach directly, where CuPy is there.
    """

    def __init__(self, shape: tuple[int, ...] | int, dtype: DTypeLike = np.float32, *, pinned: bool = False) -> None:
        self._shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._pinned = pinned
        self._state = BufferState.UNINITIALIZED
        self._host: Any = None
        self._device: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[T]:
        """Of its elements."""
        return self._dtype

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self._dtype.itemsize

    @property
    def state(self) -> BufferState:
        """Which memory is there, and which is the newer."""
        return self._state

    @property
    def is_allocated(self) -> bool:
        """Whether it has memory."""
        return self._state is not BufferState.UNINITIALIZED

    def allocate(self, *, host: bool = True, device: bool = True) -> UnifiedBuffer[T]:
        """Takes memory; where there is no device, on the host."""
        cupy, _ = find_cupy()
        on_device = device and cupy is not None
        if device and cupy is not None:
            self._device = cupy.empty(self._shape, self._dtype)
        if host or not on_device:
            self._host = self._host_memory(cupy)
        both = self._host is not None and on_device
        self._state = (
            BufferState.SYNCHRONIZED if both else BufferState.DEVICE_ONLY if on_device else BufferState.HOST_ONLY
        )
        return self

    def _host_memory(self, cupy: Any) -> Any:
        if self._pinned and cupy is not None:
            return np.frombuffer(cupy.cuda.alloc_pinned_memory(self.nbytes), self._dtype, self.size).reshape(self._shape)
        return np.empty(self._shape, self._dtype)

    def free(self) -> None:
        """Gives its memory back."""
        self._host = self._device = None
        self._state = BufferState.UNINITIALIZED

    def _require(self) -> None:
        if not self.is_allocated:
            raise BufferNotAllocatedError

    @property
    def host(self) -> NDArray[T]:
        """The array of NumPy; what the device changed is copied first."""
        self._require()
        if self._state in (BufferState.DEVICE_ONLY, BufferState.DEVICE_DIRTY):
            cupy, _ = find_cupy()
            if self._host is None:
                self._host = self._host_memory(cupy)
            self._copy("device to host", lambda: self._device.get(out=self._host))
        return self._host  # type: ignore[no-any-return]

    @property
    def device(self) -> object:
        """The array of CuPy; what the host changed is copied first. Without CuPy the array of NumPy."""
        self._require()
        cupy, _ = find_cupy()
        if cupy is None:
            return self._host
        if self._state in (BufferState.HOST_ONLY, BufferState.HOST_DIRTY):
            if self._device is None:
                self._device = cupy.empty(self._shape, self._dtype)
            self._copy("host to device", lambda: self._device.set(self._host))
        return self._device

    @property
    def metal(self) -> object:
        """Refused: this layer does not reach Metal."""
        self._require()
        raise MetalError("buffers do not reach Metal")

    def _copy(self, direction: str, copy: Any) -> None:
        try:
            copy()
        except Exception as error:
            raise BufferSyncError(direction, error) from error
        self._state = BufferState.SYNCHRONIZED

    def mark_host_dirty(self) -> None:
        """The host's array was changed."""
        self._require()
        self._state = BufferState.HOST_DIRTY

    def mark_device_dirty(self) -> None:
        """The device's array was changed."""
        self._require()
        self._state = BufferState.DEVICE_DIRTY if self._device is not None else BufferState.HOST_DIRTY

    def mark_metal_dirty(self) -> None:
        """As `mark_device_dirty`."""
        self.mark_device_dirty()

    def synchronize(self) -> None:
        """Makes both equal, where both can be there."""
        self._require()
        if self._state is BufferState.DEVICE_DIRTY:
            _ = self.host
        elif self._state is BufferState.HOST_DIRTY and find_cupy()[0] is not None:
            _ = self.device

    async def ensure_on_device(self) -> None:
        """The device has the newest."""
        _ = self.device

    async def ensure_on_host(self) -> None:
        """The host has the newest."""
        _ = self.host

    def _host_to_write(self, *, keeps: bool) -> Any:
        if not self.is_allocated:
            self.allocate()
        if self._host is None or keeps:
            return self.host
        return self._host

    def copy_from(self, data: NDArray[T]) -> None:
        """Takes over the values of an array."""
        np.copyto(self._host_to_write(keeps=False), data)
        self._state = BufferState.HOST_DIRTY

    def copy_to(self, data: NDArray[T]) -> None:
        """Gives its values to an array."""
        np.copyto(data, self.host)

    def zeros(self) -> UnifiedBuffer[T]:
        """All elements become 0."""
        self._host_to_write(keeps=False)[...] = 0
        self._state = BufferState.HOST_DIRTY
        return self

    def fill(self, value: T) -> UnifiedBuffer[T]:
        """All elements become `value`."""
        self._host_to_write(keeps=False)[...] = value
        self._state = BufferState.HOST_DIRTY
        return self

    def __len__(self) -> int:
        return self._shape[0] if self._shape else 0

    def __getitem__(self, key: object) -> NDArray[T]:
        host: Any = self.host
        return host[key]  # type: ignore[no-any-return]

    def __setitem__(self, key: object, value: object) -> None:
        self._require()
        self._host_to_write(keeps=True)[key] = value
        self._state = BufferState.HOST_DIRTY

    def __repr__(self) -> str:
        return f"<UnifiedBuffer: {self._shape} of {self._dtype}, {self._state.name}>"
