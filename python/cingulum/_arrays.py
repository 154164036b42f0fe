"""Arrays and objects of other packages as what the library reads: values, affine and frame.

The library reads volumes where they lie, in any order and with any strides, as float32, float64, integers or booleans.
What is neither (float16, longdouble, the other byte order, numbers off their boundaries) is copied once, to float32.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ._errors import refused
from ._numpy import np, npt


def is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def is_image(value: Any) -> bool:
    """An image of nibabel: told by what it has, so that nibabel is not imported."""
    return hasattr(value, "dataobj") and hasattr(value, "affine")


def numbers(name: str, value: Any) -> npt.NDArray[Any]:
    """An array of numbers, as it is."""
    array = np.asanyarray(value.dataobj) if is_image(value) else np.asanyarray(value)
    if isinstance(array, np.ma.MaskedArray):
        raise refused(name, "a masked array is not accepted; fill it first")
    if array.dtype == object or not (
        np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating) or array.dtype == bool
    ):
        raise refused(name, f"an array of {array.dtype} is not accepted; numbers are needed")
    return np.asarray(array)


def volumes(name: str, value: Any) -> npt.NDArray[Any]:
    """Four axes, x, y, z and the volumes, copied only where the library cannot read them where they lie."""
    array = numbers(name, value)
    if array.ndim != 4:
        raise refused(name, f"{array.ndim} dimensions of shape {array.shape}; 4 are needed")
    if 0 in array.shape:
        raise refused(name, f"an array of shape {array.shape} holds nothing")
    return array if _is_readable(array) else as_float32(array)


def _is_readable(array: npt.NDArray[Any]) -> bool:
    size = array.dtype.itemsize
    known = size in ((4, 8) if array.dtype.kind == "f" else (1, 2, 4, 8))
    on_boundaries = array.flags.aligned and all(stride % size == 0 for stride in array.strides)
    return known and on_boundaries and array.dtype.isnative


def as_float32(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """In Fortran order; the array itself where it is so. What is beyond float32 becomes infinite, which the library
    counts and replaces."""
    with np.errstate(over="ignore"):
        return np.asfortranarray(array, dtype=np.float32)


def mask_image(name: str, value: Any, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """1 where the mask is above zero."""
    array = numbers(name, value)
    check_shape(name, array, shape)
    return np.asfortranarray(array > 0).view(np.uint8)


def scalar_map(name: str, value: Any, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    array = numbers(name, value)
    check_shape(name, array, shape)
    return as_float32(array)


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise refused(name, f"its shape is {array.shape}, that of the data {shape}")


def rows(name: str, value: Any) -> npt.NDArray[np.float64]:
    array = np.ascontiguousarray(numbers(name, value), dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise refused(name, f"its shape is {array.shape}; accepted is (n, 3)")
    if not np.isfinite(array).all():
        raise refused(name, "it has entries that are not finite")
    return array


def affine_of(value: Any, given: Any) -> npt.NDArray[np.float64]:
    """The affine that was given, or that of an image; without either voxels are 1 mm and axes those of the world."""
    if given is None:
        given = value.affine if is_image(value) else None
    if given is None:
        given = np.eye(4)
    array = np.ascontiguousarray(given, dtype=np.float64)
    if array.shape != (4, 4):
        raise refused("affine", f"its shape is {array.shape}; accepted is (4, 4)")
    if not np.isfinite(array).all() or np.linalg.det(array[:3, :3]) == 0:
        raise refused("affine", "it has no inverse")
    return array


def gradients(gtab: Any, bvec_frame: str | None) -> dict[str, Any]:
    """b-values, b-vectors and the axes they are in.

    A GradientTable of DIPY has vectors in image axes; a pair ``(bvals, bvecs)`` is read as FSL's files are, unless
    `bvec_frame` says otherwise.
    """
    if hasattr(gtab, "bvals") and hasattr(gtab, "bvecs"):
        b_values, vectors, frame = gtab.bvals, gtab.bvecs, "voxel"
    elif isinstance(gtab, (tuple, list)) and len(gtab) == 2:
        b_values, vectors, frame = gtab[0], gtab[1], "fsl"
    else:
        raise refused("gtab", "a GradientTable or a pair (bvals, bvecs) is needed with an array")
    if bvec_frame in {"fsl", "voxel", "world"}:
        frame = str(bvec_frame)
    b_values = np.ascontiguousarray(numbers("gtab", b_values), dtype=np.float64)
    vectors = np.asarray(numbers("gtab", vectors), dtype=np.float64)
    if b_values.ndim != 1:
        raise refused("gtab", f"b-values of shape {b_values.shape}; accepted is (n,)")
    if vectors.ndim == 2 and vectors.shape[0] == 3 and vectors.shape[1] != 3:
        vectors = vectors.T
    vectors = np.nan_to_num(vectors)  # DIPY and FSL write nan for the directions of b0 volumes
    vectors = rows("gtab", vectors)
    if len(vectors) != len(b_values):
        raise refused("gtab", f"{len(b_values)} b-values and {len(vectors)} vectors")
    if not np.isfinite(b_values).all() or (b_values < 0).any():
        raise refused("gtab", "b-values that are negative or not finite")
    return {"bvals": b_values, "bvecs": vectors, "bvec_frame": frame}


def series(data: Any, gtab: Any, affine: Any, option: str, bvec_frame: str | None) -> dict[str, Any]:
    """A diffusion series in memory, for the library."""
    values = volumes("data", data)
    table = gradients(gtab, bvec_frame)
    if len(table["bvals"]) != values.shape[3]:
        raise refused("gtab", f"{len(table['bvals'])} b-values for {values.shape[3]} volumes")
    return {"series": values, "series_option": option, "affine": affine_of(data, affine), **table}


def tensor_image(value: Any) -> npt.NDArray[Any]:
    """Six numbers a voxel in DIPY's order, also from 3 x 3 matrices."""
    array = numbers("tensor", value)
    if array.ndim == 5 and array.shape[3:] == (3, 3):
        array = np.stack([array[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))], axis=-1)
    return volumes("tensor", array)


def peaks_image(value: Any) -> npt.NDArray[Any]:
    """Three numbers a peak, as long as its amplitude; also from a PeaksAndMetrics of DIPY, or as (x, y, z, n, 3)."""
    if hasattr(value, "peak_dirs") and hasattr(value, "peak_values"):
        value = np.asarray(value.peak_dirs) * np.asarray(value.peak_values)[..., None]
    array = numbers("peaks", value)
    if array.ndim == 5 and array.shape[4] == 3:
        array = array.reshape(*array.shape[:3], -1)
    return volumes("peaks", array)


def sphere_rows(value: Any) -> npt.NDArray[np.float64]:
    return rows("sphere", value.vertices if hasattr(value, "vertices") else value)


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    into.update(more)
    return into
