"""Memory of devices, and kernels from text that work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._errors import InvalidStateError, UnavailableError, refused

# DLPack's codes of types, by NumPy's kinds.
_TYPE_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Buffer:
    """An array in the memory of a device.

    Other libraries reach it without a copy where the device has addresses: NumPy on the CPU, and through DLPack or
    ``__cuda_array_interface__`` CuPy, PyTorch and others on CUDA. Calls return when their work is done, so that no
    stream has to wait for another.

    Parameters
    ----------
    shape : int or tuple of int
        Of the array; its elements are 0.
    dtype : dtype, default float32
        Of its elements.
    device : str, default "auto"
        ``"cpu"``, ``"cuda"``, ``"cuda:N"``, ``"webgpu"``; ``"auto"`` is the best there is.

    Examples
    --------
    >>> import cingulum
    >>> buffer = cingulum.Buffer.of([1.0, 2.0], device="cpu")
    >>> buffer.numpy().sum()
    3.0
    """

    def __init__(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32, device: str = "auto") -> None:
        self.shape: tuple[int, ...] = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))
        self.dtype: np.dtype[Any] = np.dtype(dtype).newbyteorder("=")
        if any(size < 1 for size in self.shape):
            raise refused("shape", f"{self.shape}: sizes of at least 1 are needed")
        if self.dtype.kind not in _TYPE_CODES:
            raise refused("dtype", f"{self.dtype}: numbers are needed")
        self._memory = _native.DeviceMemory(device, self.nbytes)

    @classmethod
    def of(cls, array: Any, device: str = "auto") -> Buffer:
        """A copy of an array on a device.

        Parameters
        ----------
        array : array
            Of NumPy, or of a library that has it on a GPU of CUDA.
        device : str, default "auto"
            As for `Buffer`. Memory that is on this device already does not pass through the host.

        Returns
        -------
        Buffer
        """
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is None:
            values = np.asarray(array)
            made = cls(values.shape or (1,), values.dtype, device)
            made.copy_from(values.reshape(made.shape))
            return made
        made = cls(interface["shape"] or (1,), np.dtype(interface["typestr"]), device)
        if interface.get("strides") is not None and not _is_packed(interface, made.dtype):
            raise refused("array", "an array of a GPU that is not contiguous is not accepted; copy it first")
        if made._memory.backend() == "cuda":
            made._memory.copy_from_address(interface["data"][0], made.nbytes)
        else:
            made.copy_from(array.get() if hasattr(array, "get") else array.cpu().numpy())
        return made

    @property
    def device(self) -> str:
        """Where it is: ``"cuda:0"``."""
        return self._memory.device()  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """How many elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def copy_from(self, array: npt.ArrayLike) -> None:
        """Takes over the values of an array of the same shape."""
        values = np.ascontiguousarray(array, dtype=self.dtype)
        if values.shape != self.shape:
            raise refused("array", f"its shape is {values.shape}, the buffer's {self.shape}")
        self._memory.upload(values.reshape(-1).view(np.uint8))

    def numpy(self) -> npt.NDArray[Any]:
        """The values in host memory: on the CPU the memory itself, elsewhere a copy."""
        if self._memory.backend() == "cpu":
            return np.asarray(_HostView(self))
        values = np.empty(self.shape, self.dtype)
        self._memory.download(values.reshape(-1).view(np.uint8))
        return values

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self.numpy()
        wanted = values if dtype is None else values.astype(dtype, copy=False)
        return wanted.copy() if copy and self._memory.backend() == "cpu" else wanted

    def __dlpack__(self, stream: Any = None, **kwargs: Any) -> Any:
        """The memory for another library, without a copy. Nothing is under way on it: any stream may use it."""
        self._require_address("DLPack")
        if self._memory.backend() == "cpu":
            return self.numpy().__dlpack__(**kwargs)
        code, bits = _TYPE_CODES[self.dtype.kind], 8 * self.dtype.itemsize
        return _native.dlpack_of(self._memory, self, list(self.shape), code, bits)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._require_address("DLPack")
        return self._memory.dlpack_device()  # type: ignore[no-any-return]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._memory.backend() != "cuda":
            raise AttributeError(f"a buffer on {self.device} has no __cuda_array_interface__")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._memory.address(), False),
            "strides": None,
            "version": 3,
        }

    def _require_address(self, what: str) -> None:
        if not self._memory.address():
            raise UnavailableError(f"memory of {self.device} has no address, which {what} needs; numpy() copies it")

    def __reduce__(self) -> Any:
        raise TypeError(f"a buffer lives in the memory of {self.device} and cannot be pickled; pickle its numpy()")

    def __repr__(self) -> str:
        return f"<Buffer: {self.shape} of {self.dtype} on {self.device}>"


class _HostView:
    """Memory of the CPU as NumPy looks at it; it keeps the buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "shape": buffer.shape,
            "typestr": buffer.dtype.str,
            "data": (buffer._memory.address(), False),
            "version": 3,
        }


def _is_packed(interface: Mapping[str, Any], dtype: np.dtype[Any]) -> bool:
    stride = dtype.itemsize
    for size, given in zip(reversed(interface["shape"]), reversed(interface["strides"])):
        if size > 1 and given != stride:
            return False
        stride *= size
    return True


class Kernel:
    """A compiled kernel; made by `kernel`. Called with the grid, the block and its arguments."""

    def __init__(self, native: Any, name: str, parameters: Mapping[str, str]) -> None:
        self._native = native
        self.name = name
        self.parameters = dict(parameters)

    @property
    def device(self) -> str:
        """Where it runs."""
        return self._native.device()  # type: ignore[no-any-return]

    @property
    def report(self) -> dict[str, Any]:
        """How it was compiled: from_cache, milliseconds, target, log."""
        return dict(zip(("from_cache", "milliseconds", "target", "log"), self._native.report()))

    def __call__(
        self, grid: int | Sequence[int], block: int | Sequence[int] | None, *args: Any, shared_bytes: int = 0
    ) -> None:
        """Runs it and waits for its end.

        Parameters
        ----------
        grid : int or sequence of int
            Blocks along up to three axes.
        block : int, sequence of int or None
            Threads of each; None where the text fixes them (WGSL).
        *args
            A `Buffer` or an array of NumPy for each buffer, a number for each scalar. Arrays are copied to the device,
            and back where the kernel writes them.
        shared_bytes : int, default 0
            Of CUDA's dynamic shared memory.
        """
        kinds = list(self.parameters.values())
        if len(args) != len(kinds):
            raise refused("args", f"kernel '{self.name}' takes {len(kinds)} arguments, {len(args)} were given")
        held: list[tuple[Buffer, Any, str]] = []
        given: list[Any] = []
        for name, kind, value in zip(self.parameters, kinds, args):
            if kind not in ("in", "out", "inout"):
                given.append(float(value) if kind.startswith("f") else int(value))
                continue
            buffer = value if isinstance(value, Buffer) else _on_device(name, value, kind, self.device)
            held.append((buffer, value, kind))
            given.append(buffer._memory)
        fixed = self._native.fixed_block()
        threads = _three(block) if block is not None else [size or 1 for size in fixed]
        self._native.launch(_three(grid), threads, shared_bytes, given)
        for buffer, value, kind in held:
            if kind != "in" and value is not buffer:
                value[...] = buffer.numpy()

    def __reduce__(self) -> Any:
        raise TypeError(f"a kernel lives on {self.device} and cannot be pickled")

    def __repr__(self) -> str:
        return f"<Kernel: '{self.name}' on {self.device}, {len(self.parameters)} parameters>"


def _on_device(name: str, value: Any, kind: str, device: str) -> Buffer:
    if not isinstance(value, np.ndarray):
        raise refused(name, f"a {type(value).__name__} is not accepted; a Buffer or an array of NumPy is needed")
    if kind != "in" and not value.flags.writeable:
        raise InvalidStateError(f"{name}: the kernel writes it, and the array is read-only")
    return Buffer.of(value, device)


def _three(sizes: int | Sequence[int]) -> list[int]:
    numbers = [int(sizes)] if isinstance(sizes, (int, np.integer)) else [int(size) for size in sizes]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise refused("grid", f"{sizes}: one to three numbers of at least 1 are needed")
    return numbers + [1] * (3 - len(numbers))


def kernel(
    source: str,
    name: str,
    parameters: Mapping[str, str],
    *,
    device: str = "gpu",
    options: Sequence[str] = (),
) -> Kernel:
    """Compiles a kernel: CUDA C++ by NVRTC for a device of CUDA, WGSL for one of WebGPU.

    Parameters
    ----------
    source : str
        The text.
    name : str
        Its entry: a ``__global__`` function in ``extern "C"``, or an ``@compute`` function.
    parameters : mapping
        By name, in order: ``"in"``, ``"out"`` or ``"inout"`` for a buffer, ``"i32"``, ``"u32"``, ``"f32"`` for a number
        and ``"i64"``, ``"u64"``, ``"f64"`` on CUDA. In WGSL buffers are bindings 0, 1, ... of group 0, and all numbers
        together one uniform struct at the next.
    device : str, default "gpu"
        The best GPU, or ``"cuda"``, ``"cuda:N"``, ``"webgpu"``.
    options : sequence of str
        Further options of NVRTC.

    Returns
    -------
    Kernel

    Notes
    -----
    Compiled code is kept in the cache of kernels. A text that does not compile raises CompilationError with the
    compiler's message.
    """
    native = _native.DeviceKernel(device, name, source, list(parameters.items()), list(options))
    return Kernel(native, name, parameters)
