"""Arrays and groups of Zarr, versions 2 and 3: regions read into NumPy and written from it.

Every checksum that is stored is verified; damage is a CorruptError that names array, chunk and cause.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._buffer import Buffer, _is_packed
from ._errors import InvalidArgumentError, InvalidStateError, refused
from ._options import given_of
from ._talk import Progress, settle_progress
from ._verbs import run_verb

__all__ = ["Array", "Group", "copy", "create", "gpu_zarr_context", "open", "read_zarr_to_gpu", "verify"]

# The device on which indexed regions end (`gpu_zarr_context`); None: the host.
_device: contextvars.ContextVar[str | None] = contextvars.ContextVar("_device", default=None)
_ENGINES = {"auto": "auto", "kvikio": "direct", "zarr-gpu": "host"}


def _name(path: str | os.PathLike[str]) -> str:
    return os.fsdecode(os.fspath(path))


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


class Array:
    """An array of a store.

    Parameters
    ----------
    store : path
        A folder or a zip archive.
    path : str
        The array in it; empty where the store is the array.

    Attributes
    ----------
    shape, dtype, chunks : tuple of int, dtype, tuple of int
        As of arrays of zarr-python. Where chunks are sharded, `chunks` are the inner ones and `shards` those with keys.
    attrs : dict
        The attributes.
    fill_value : object
        What chunks that are not stored hold.
    """

    def __init__(self, store: str | os.PathLike[str], path: str = ""):
        self.store = _name(store)
        self.path = path
        self._native = _native.ZarrArray(self.store, path)
        said: dict[str, Any] = json.loads(self._native.describe())
        self.shape: tuple[int, ...] = tuple(said["shape"])
        self.dtype: np.dtype[Any] = np.dtype(said["type"])
        self.chunks: tuple[int, ...] = tuple(said["leaf_chunks"])
        self.shards: tuple[int, ...] | None = None if said["chunks"] == said["leaf_chunks"] else tuple(said["chunks"])
        self.zarr_format: int = said["zarr_format"]
        self.fill_value: Any = said["fill_value"]
        self.dimension_names: tuple[str, ...] = tuple(said["dimension_names"])
        self.coding: str = said["coding"]
        self.attrs: dict[str, Any] = said["attributes"]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def read(
        self,
        origin: Sequence[int] | None = None,
        shape: Sequence[int] | None = None,
        *,
        out: Any = None,
        threads: int = 0,
        complete: bool = False,
        engine: str = "auto",
        progress: Progress | bool | None = False,
    ) -> Any:
        """Reads a region.

        Parameters
        ----------
        origin, shape : sequence of int, optional
            The box; from 0, and to the end, unless given.
        out : array, optional
            Where the elements go: of the region's shape and the array's type, with strides that are not negative. A
            `Buffer`, or a contiguous array that CuPy, PyTorch or others have on a GPU of CUDA, is read into without a
            copy in host memory.
        threads : int, default 0
            0: all processors.
        complete : bool, default False
            Fail where a chunk is not stored, instead of giving the fill value.
        engine : str, default "auto"
            To a GPU: ``"host"``, ``"direct"`` (cuFile) or ``"nvcomp"``; ``"auto"`` chooses.
        progress : callable, bool or None
            As for `track`.

        Returns
        -------
        array
            `out`, or a new array in C order.
        """
        start = self._numbers("origin", origin, [0] * self.ndim)
        extent = self._numbers("shape", shape, [size - first for size, first in zip(self.shape, start)])
        if out is None:
            out = np.empty(extent, dtype=self.dtype)
        if not isinstance(out, np.ndarray):
            self._read_to_device(start, extent, out, threads, complete, engine, progress)
            return out
        if out.shape != tuple(extent):
            raise refused("out", f"its shape is {out.shape}, that of the region {tuple(extent)}")
        if out.dtype != self.dtype or not out.dtype.isnative:
            raise refused("out", f"it is of {out.dtype}, the array of {self.dtype}")
        if any(stride < 0 for stride in out.strides) or not out.flags.writeable:
            raise refused("out", "it must be writable, with strides that are not negative")
        if out.size:
            self._native.read(start, extent, _exported(out), threads, complete, settle_progress(progress))
        return out

    def _read_to_device(
        self,
        origin: list[int],
        shape: list[int],
        out: Any,
        threads: int,
        complete: bool,
        engine: str,
        progress: Progress | bool | None,
    ) -> None:
        told = settle_progress(progress)
        if isinstance(out, Buffer):
            if out.shape != tuple(shape) or out.dtype != self.dtype:
                raise refused("out", f"it is {out.shape} of {out.dtype}, the region {tuple(shape)} of {self.dtype}")
            self._native.read_to_device(origin, shape, out._memory, threads, complete, engine, told)
            return
        interface = getattr(out, "__cuda_array_interface__", None)
        if interface is None:
            raise refused("out", f"a {type(out).__name__} is not accepted; an array or a Buffer is needed")
        if tuple(interface["shape"]) != tuple(shape) or np.dtype(interface["typestr"]) != self.dtype:
            raise refused("out", f"it is {interface['shape']} of {interface['typestr']}, the region {tuple(shape)}")
        if interface.get("strides") is not None and not _is_packed(interface, self.dtype):
            raise refused("out", "an array of a GPU that is not contiguous is not accepted")
        device = f"cuda:{getattr(getattr(out, 'device', None), 'id', getattr(getattr(out, 'device', None), 'index', 0)) or 0}"
        size = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        self._native.read_to_address(
            origin, shape, device, interface["data"][0], size, threads, complete, engine, told
        )

    def write(
        self,
        values: npt.ArrayLike,
        origin: Sequence[int] | None = None,
        *,
        threads: int = 0,
        progress: Progress | bool | None = False,
    ) -> None:
        """Writes a region of an array that lies in a folder.

        Parameters
        ----------
        values : array
            The elements; converted to the array's type where that loses nothing.
        origin : sequence of int, optional
            Where they begin; 0 unless given.
        threads : int, default 0
            0: all processors.
        progress : callable, bool or None
            As for `track`.
        """
        array = np.asarray(values)
        if array.dtype != self.dtype and not np.can_cast(array.dtype, self.dtype, "safe"):
            raise refused("values", f"they are of {array.dtype}, the array of {self.dtype}")
        array = array.astype(self.dtype, copy=False)
        if any(stride < 0 for stride in array.strides) or array.ndim != self.ndim:
            array = np.ascontiguousarray(array)
        if array.ndim != self.ndim:
            raise refused("values", f"{array.ndim} dimensions, the array has {self.ndim}")
        start = self._numbers("origin", origin, [0] * self.ndim)
        if array.size:
            self._native.write(start, list(array.shape), _exported(array), threads, settle_progress(progress))

    def _numbers(self, name: str, given: Sequence[int] | None, default: list[int]) -> list[int]:
        numbers = default if given is None else [int(number) for number in given]
        if len(numbers) != self.ndim or any(number < 0 for number in numbers):
            raise refused(name, f"{given!r}: {self.ndim} numbers of at least 0 are needed")
        return numbers

    def _box(self, key: Any) -> tuple[list[int], list[int], tuple[Any, ...]]:
        """Origin and shape of the box that an index needs, and what of the box it is."""
        parts = list(key) if isinstance(key, tuple) else [key]
        if sum(part is Ellipsis for part in parts) > 1:
            raise IndexError("an index has one ellipsis at most")
        if Ellipsis in [part for part in parts if part is Ellipsis]:
            at = next(i for i, part in enumerate(parts) if part is Ellipsis)
            parts[at : at + 1] = [slice(None)] * (self.ndim - len(parts) + 1)
        parts += [slice(None)] * (self.ndim - len(parts))
        if len(parts) != self.ndim:
            raise IndexError(f"{len(parts)} indices for {self.ndim} dimensions")
        origin: list[int] = []
        shape: list[int] = []
        within: list[Any] = []
        for part, size in zip(parts, self.shape):
            if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
                at = int(part) + (size if part < 0 else 0)
                if not 0 <= at < size:
                    raise IndexError(f"index {part} of {size}")
                origin.append(at)
                shape.append(1)
                within.append(0)
            elif isinstance(part, slice):
                chosen = range(*part.indices(size))
                low, high = (min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1])) if chosen else (0, -1)
                origin.append(low)
                shape.append(high - low + 1)
                within.append(slice(None, None, chosen.step) if chosen else slice(0, 0))
            else:
                raise IndexError(f"an index of {type(part).__name__} is not accepted; numbers and slices are")
        return origin, shape, tuple(within)

    def __getitem__(self, key: Any) -> Any:
        """Elements by numbers and slices, as of NumPy; within `gpu_zarr_context` on the device."""
        origin, shape, within = self._box(key)
        device = _device.get()
        if device is None or 0 in shape:
            return self.read(origin, shape)[within]
        if all(isinstance(part, slice) and part.step in (None, 1) for part in within):
            return _as_cupy(self.read(origin, shape, out=Buffer(shape, self.dtype, device)))
        return _as_cupy(Buffer.of(np.ascontiguousarray(self.read(origin, shape)[within]), device))

    def __setitem__(self, key: Any, values: npt.ArrayLike) -> None:
        origin, shape, within = self._box(key)
        if any(isinstance(part, slice) and part.step not in (None, 1) for part in within):
            raise IndexError("regions that are written have no steps")
        if 0 in shape:
            return
        target = np.empty(shape, dtype=self.dtype)
        target[within] = np.asarray(values)
        self.write(target, origin)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = self.read()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return f"<zarr.Array {_joined(self.store, self.path)}: {self.shape} {self.dtype}, {self.coding}>"

    def __reduce__(self) -> Any:
        return (Array, (self.store, self.path))


def _exported(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Memory as what can be handed over: bytes of the same size stand for types that DLPack does not know."""
    if array.dtype == bool:
        return array.view(np.uint8)
    return array


class Group:
    """A group: arrays and groups by name.

    Parameters
    ----------
    store : path
        A folder or a zip archive.
    path : str
        The group in it; empty for the root.

    Attributes
    ----------
    attrs : dict
        The attributes.
    """

    def __init__(self, store: str | os.PathLike[str], path: str = ""):
        self.store = _name(store)
        self.path = path
        nodes = json.loads(_native.zarr_nodes(self.store, path))
        if nodes[0]["kind"] != "group":
            raise InvalidArgumentError(f"{_joined(self.store, path)} is an array, not a group")
        self.attrs: dict[str, Any] = nodes[0]["attributes"]
        self.zarr_format: int = nodes[0]["zarr_format"]
        self._kinds: dict[str, str] = {node["path"]: node["kind"] for node in nodes[1:]}

    def __getitem__(self, name: str) -> Array | Group:
        full = _joined(self.path, name.strip("/"))
        if full not in self._kinds:
            raise KeyError(name)
        return Array(self.store, full) if self._kinds[full] == "array" else Group(self.store, full)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _joined(self.path, name.strip("/")) in self._kinds

    def __iter__(self) -> Iterator[str]:
        prefix = f"{self.path}/" if self.path else ""
        for full in self._kinds:
            name = full[len(prefix) :]
            if "/" not in name:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def arrays(self) -> dict[str, Array]:
        """All arrays below this group, by their paths from it."""
        skip = len(self.path) + 1 if self.path else 0
        return {full[skip:]: Array(self.store, full) for full, kind in self._kinds.items() if kind == "array"}

    def __repr__(self) -> str:
        return f"<zarr.Group {_joined(self.store, self.path)}: {', '.join(self) or 'empty'}>"

    def __reduce__(self) -> Any:
        return (Group, (self.store, self.path))


def open(path: str | os.PathLike[str], node: str = "") -> Array | Group:
    """Opens an array or a group.

    Parameters
    ----------
    path : path
        A folder or a zip archive.
    node : str
        What is opened in it; the root unless given.

    Returns
    -------
    Array or Group
    """
    kind = json.loads(_native.zarr_nodes(_name(path), node))[0]["kind"]
    return Array(path, node) if kind == "array" else Group(path, node)


def create(
    path: str | os.PathLike[str],
    values: npt.ArrayLike | None = None,
    *,
    shape: Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | bool | None = None,
    codec: str | None = None,
    fill_value: Any = 0,
    zarr_format: int = 3,
    attributes: dict[str, Any] | None = None,
    dimension_names: Sequence[str] | None = None,
    force: bool = False,
    threads: int = 0,
    progress: Progress | bool | None = False,
) -> Array:
    """Writes a new array, which appears as a whole.

    Parameters
    ----------
    path : path
        A folder, or a zip archive where the name ends with ``.zip``.
    values : array, optional
        The elements; without them `shape` and `dtype` are needed, and all is `fill_value`.
    shape, dtype
        Of the array, where there are no values.
    chunks : sequence of int, optional
        Chosen, about 1 MiB, unless given.
    shards : sequence of int or False, optional
        Chosen, about 64 MiB, unless given; False: no shards.
    codec : str, optional
        ``"none"``, ``"zstd:5"``, ``"blosc-lz4"``, ...
    fill_value : number
        What chunks that are not stored hold.
    zarr_format : int
        2 or 3.
    attributes : dict, optional
        JSON.
    dimension_names : sequence of str, optional
        Of version 3.
    force : bool
        Replace a hierarchy that is there.
    threads : int
        0: all processors.
    progress : callable, bool or None
        As for `track`.

    Returns
    -------
    Array
    """
    elements = None if values is None else np.asarray(values)
    if elements is None and (shape is None or dtype is None):
        raise refused("values", "without them shape and dtype are needed")
    kind = np.dtype(dtype) if dtype is not None else elements.dtype  # type: ignore[union-attr]
    if elements is not None:
        if elements.dtype != kind and not np.can_cast(elements.dtype, kind, "safe"):
            raise refused("values", f"they are of {elements.dtype}, the array of {kind}")
        elements = elements.astype(kind.newbyteorder("="), copy=False)
        if any(stride < 0 for stride in elements.strides):
            elements = np.ascontiguousarray(elements)
    wanted: dict[str, Any] = {
        "zarr_format": zarr_format,
        "shape": list(elements.shape if elements is not None else shape),  # type: ignore[arg-type]
        "type": kind.name,
        "fill_value": fill_value.item() if isinstance(fill_value, np.generic) else fill_value,
        "attributes": attributes or {},
        "sharded": shards is not False,
    }
    if chunks is not None:
        wanted["chunks"] = [int(number) for number in chunks]
    if shards is not None and not isinstance(shards, bool):
        wanted["shards"] = [int(number) for number in shards]
    if codec is not None:
        wanted["codec"] = codec
    if dimension_names is not None:
        wanted["dimension_names"] = list(dimension_names)
    given = None if elements is None else _exported(elements)
    _native.zarr_create(_name(path), json.dumps(wanted), given, force, threads, settle_progress(progress))
    return Array(path)


def copy(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, progress: Progress | bool | None = None, **options: Any
) -> Any:
    """Copies a hierarchy, with other chunks, codecs or versions where options say so, as ``cingulum zarr copy``.

    Parameters
    ----------
    source, target : path
        Folders or zip archives.
    progress : callable, bool or None
        As for `track`.
    **options
        Those of ``cingulum zarr copy``: `chunks`, `shards`, `codec`, `format`, `crop`, `pyramid`, `force`, ...

    Returns
    -------
    dict
    """
    given = given_of("zarr", {**options, "action": "copy", "paths": [_name(source), _name(target)]}, "copy")
    return run_verb("zarr", given, progress)


def verify(*paths: str | os.PathLike[str], progress: Progress | bool | None = None, **options: Any) -> Any:
    """Reads every chunk and compares every checksum, as ``cingulum zarr verify``.

    Parameters
    ----------
    *paths : path
        Hierarchies.
    progress : callable, bool or None
        As for `track`.
    **options
        `complete`: a missing chunk is damage; `require`: data without a checksum are.

    Returns
    -------
    dict
        Damage raises CorruptError, whose `result` is this dict.
    """
    if not paths:
        raise InvalidStateError("verify() needs at least one path")
    given = given_of("zarr", {**options, "action": "verify", "paths": [_name(path) for path in paths]}, "verify")
    return run_verb("zarr", given, progress)


def _as_cupy(buffer: Buffer) -> Any:
    """The buffer as an array of CuPy over the same memory, where it is on CUDA and CuPy is there."""
    if buffer.device.startswith("cuda") and importlib.util.find_spec("cupy") is not None:
        cupy: Any = importlib.import_module("cupy")
        return cupy.asarray(buffer)
    return buffer


def read_zarr_to_gpu(
    array_path: str | os.PathLike[str], *, prefer: str = "auto", device: str = "gpu", threads: int = 0
) -> Any:
    """An array in the memory of a GPU.

    Parameters
    ----------
    array_path : path
        The array: a folder or a zip archive, also one in an image of OME-Zarr (``x.ome.zarr/0``).
    prefer : str, default "auto"
        ``"kvikio"``: by cuFile, past the host, or an error; ``"zarr-gpu"``: decoded on the host; ``"auto"``: what is
        best for this array.
    device : str, default "gpu"
        The best GPU, or ``"cuda:N"``, ``"webgpu"``, ``"cpu"``.
    threads : int, default 0
        0: all processors.

    Returns
    -------
    array
        Of CuPy where it is there and the device is CUDA's, else a `Buffer`.
    """
    if prefer not in _ENGINES:
        raise refused("prefer", f"{prefer!r}: accepted are {', '.join(map(repr, _ENGINES))}")
    array = Array(array_path)
    buffer = Buffer(array.shape or (1,), array.dtype, device)
    array._read_to_device(
        [0] * array.ndim, list(array.shape), buffer, threads, False, _ENGINES[prefer], False
    )
    return _as_cupy(buffer)


@contextlib.contextmanager
def gpu_zarr_context(device: str = "gpu") -> Iterator[None]:
    """Within it, indexing an `Array` gives elements in the memory of a GPU.

    Parameters
    ----------
    device : str, default "gpu"
        As for `read_zarr_to_gpu`.

    Returns
    -------
    context manager
    """
    before = _device.set(device)
    try:
        yield
    finally:
        _device.reset(before)
