"""Reconstruction of serial optical coherence tomography: arrays in, arrays out, with the bits of ``cingulum oct``.

Functions have the names and arguments of linumpy's, and further keywords: `device` names where they compute (``"cpu"``,
``"cuda"``, ``"webgpu"``), instead of `use_gpu`. The bits are the same on each. Results are float32; complex input is
refused. Arrays of CuPy come back as arrays of CuPy; on the way they pass through host memory.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _native
from ._errors import refused
from ._options import given_of, options_of, parameters_text, signature_of, unknown_keyword
from ._talk import Progress, logger, settle_progress
from ._verbs import run_verb

__all__ = [
    "affine_transform",
    "aip",
    "apply_displacement_field",
    "crop_below_interface",
    "detect_interface_z",
    "find_tissue_interface",
    "find_z_overlap",
    "fix_focal_curvature",
    "map_coordinates",
    "resample_volume",
    "rescale",
    "resize",
    "run",
    "stage",
]

_ORDERS = (0, 1, 3)
_Volume = npt.NDArray[np.float32]


@functools.lru_cache(maxsize=4)
def _stage_on(device: str) -> Any:
    return _native.OctStage(device)


def _kernels(use_gpu: bool, device: str | None) -> Any:
    return _stage_on(device or ("auto" if use_gpu else "cpu"))


def _host(value: Any) -> tuple[Any, Any]:
    """The array in host memory, and what brings a result to where it came from."""
    if hasattr(value, "__cuda_array_interface__"):
        cupy: Any = importlib.import_module("cupy")
        return cupy.asnumpy(cupy.asarray(value)), cupy.asarray
    return value, lambda result: result


def _volume(name: str, value: Any) -> _Volume:
    """float32 (z, y, x); an image is a volume of one plane. What is not finite counts as 0."""
    array = _arrays.numbers(name, value)
    if array.ndim not in (2, 3):
        raise refused(name, f"{array.ndim} dimensions of shape {array.shape}; an image or a volume is needed")
    if 0 in array.shape:
        raise refused(name, f"an array of shape {array.shape} holds nothing")
    return _finite(name, array).reshape(_three(array.shape))


def _finite(name: str, array: npt.NDArray[Any]) -> _Volume:
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(values)
    if finite.all():
        return values
    logger.warning("%s: %d values were not finite and count as 0", name, int(values.size - finite.sum()))
    return np.where(finite, values, np.float32(0))


def _three(sizes: Sequence[int]) -> list[int]:
    """Sizes of a volume: an image has one plane."""
    return [1] * (3 - len(sizes)) + [int(size) for size in sizes]


def _taken(name: str, value: Any) -> tuple[_Volume, int, Callable[[Any], Any]]:
    """The array as a volume, how many axes it has, and what gives a result as many, where the array came from."""
    host, back = _host(value)
    dimensions = np.ndim(host)
    return _volume(name, host), dimensions, lambda made: back(made.reshape(made.shape[3 - dimensions :]))


def _check_order(order: int) -> int:
    if order not in _ORDERS:
        raise refused("order", f"{order}: accepted are 0, 1 and 3")
    return int(order)


def _corner(align: str) -> bool:
    if align not in ("center", "corner"):
        raise refused("align", f"{align!r}: accepted are 'center' and 'corner'")
    return align == "corner"


def _sizes(name: str, given: Sequence[int], dimensions: int) -> list[int]:
    sizes = [int(size) for size in given]
    if len(sizes) != dimensions or min(sizes) < 1:
        raise refused(name, f"{tuple(sizes)}: {dimensions} sizes of at least 1 are needed")
    return _three(sizes)


def _per_axis(name: str, value: float | Sequence[float], dimensions: int) -> list[float]:
    given = np.broadcast_to(np.asarray(value, dtype=np.float64), (dimensions,)) if np.ndim(value) == 0 else value
    numbers = [float(number) for number in given]  # type: ignore[union-attr]
    if len(numbers) != dimensions or not all(np.isfinite(number) and number > 0 for number in numbers):
        raise refused(name, f"{value}: a number above 0 for each of {dimensions} axes is needed")
    return [1.0] * (3 - dimensions) + numbers


def resize(
    image: Any,
    output_shape: Sequence[int],
    order: int = 1,
    anti_aliasing: bool = True,
    use_gpu: bool = True,
    *,
    align: str = "center",
    compat_edge_zero: bool = False,
    device: str | None = None,
) -> Any:
    """An image or a volume with other numbers of voxels.

    Parameters
    ----------
    image : array
        Of two or three axes.
    output_shape : sequence of int
        Of the result.
    order : int, default 1
        0, 1 or 3: nearest, linear, cubic splines.
    anti_aliasing : bool, default True
        A Gaussian first where an axis becomes smaller.
    use_gpu : bool, default True
        The best device; False: the CPU.
    align : str, default "center"
        ``"center"``: voxels are cells. ``"corner"``: first and last samples coincide, as in SciPy's ``zoom``.
    compat_edge_zero : bool, default False
        With corners aligned: what SciPy rounds past the last sample is zero, as there.
    device : str, optional
        Instead of `use_gpu`.

    Returns
    -------
    array of float32
    """
    volume, dimensions, back = _taken("image", image)
    sizes = _sizes("output_shape", output_shape, dimensions)
    return back(
        _kernels(use_gpu, device).resize(
            volume, sizes, _check_order(order), anti_aliasing, _corner(align), compat_edge_zero
        )
    )


def rescale(
    image: Any,
    scale: float | Sequence[float],
    order: int = 1,
    anti_aliasing: bool = True,
    use_gpu: bool = True,
    *,
    align: str = "center",
    device: str | None = None,
) -> Any:
    """An image or a volume scaled by a factor, or by one for each axis; sizes are rounded, half to even.

    Parameters
    ----------
    image : array
        Of two or three axes.
    scale : float or sequence of float
        Voxels of the result for one of the image.
    order, anti_aliasing, use_gpu, align, device
        As for `resize`.

    Returns
    -------
    array of float32
    """
    shape = np.shape(image)
    factors = _per_axis("scale", scale, len(shape))
    sizes = _native.oct_rescaled_shape(_three(shape), factors)
    return resize(image, sizes[3 - len(shape) :], order, anti_aliasing, use_gpu, align=align, device=device)


def resample_volume(
    volume: Any,
    current_spacing: float | Sequence[float],
    target_spacing: float | Sequence[float],
    order: int = 1,
    use_gpu: bool = True,
    *,
    align: str = "center",
    device: str | None = None,
) -> Any:
    """A volume at another spacing; sizes are cut down to whole numbers.

    Parameters
    ----------
    volume : array
        Of two or three axes.
    current_spacing, target_spacing : float or sequence of float
        Of each axis, in one unit.
    order, use_gpu, align, device
        As for `resize`.

    Returns
    -------
    array of float32
    """
    shape = np.shape(volume)
    spacing = _per_axis("current_spacing", current_spacing, len(shape))
    target = _per_axis("target_spacing", target_spacing, len(shape))
    sizes = _native.oct_resampled_shape(_three(shape), spacing, target)
    return resize(volume, sizes[3 - len(shape) :], order, True, use_gpu, align=align, device=device)


def affine_transform(
    image: Any,
    matrix: npt.ArrayLike,
    output_shape: Sequence[int] | None = None,
    order: int = 1,
    use_gpu: bool = True,
    *,
    device: str | None = None,
) -> Any:
    """The image at the places that a matrix gives: of the result's place o, ``matrix @ o`` is looked up.

    Parameters
    ----------
    image : array
        Of n = 2 or 3 axes.
    matrix : array
        Of shape (n,), (n, n), (n, n + 1) or (n + 1, n + 1), in voxels.
    output_shape : sequence of int, optional
        Of the result; the image's unless given.
    order : int, default 1
        0, 1 or 3. What lies outside is 0.
    use_gpu, device
        As for `resize`.

    Returns
    -------
    array of float32
    """
    volume, dimensions, back = _taken("image", image)
    wanted = output_shape if output_shape is not None else volume.shape[3 - dimensions :]
    sizes = _sizes("output_shape", wanted, dimensions)
    given = np.asarray(matrix, dtype=np.float64)
    if given.shape == (dimensions,):
        given = np.diag(given)
    if given.shape == (dimensions + 1, dimensions + 1):
        if not np.array_equal(given[-1], [0] * dimensions + [1]):
            raise refused("matrix", "the last row of a homogeneous matrix is 0, ..., 0, 1")
        given = given[:-1]
    if given.shape not in ((dimensions, dimensions), (dimensions, dimensions + 1)):
        raise refused("matrix", f"its shape is {given.shape}; the image has {dimensions} axes")
    if not np.isfinite(given).all():
        raise refused("matrix", "it has numbers that are not finite")
    full = np.eye(3, 4)
    full[3 - dimensions :, 3 - dimensions : 3] = given[:, :dimensions]
    if given.shape[1] > dimensions:
        full[3 - dimensions :, 3] = given[:, dimensions]
    return back(_kernels(use_gpu, device).transform_affine(volume, full.tolist(), sizes, _check_order(order)))


def _places(name: str, value: Any, dimensions: int) -> tuple[_Volume, tuple[int, ...]]:
    """Three volumes one after the other, of an array (axes, ...), and the shape of what is looked up."""
    array = np.asarray(_arrays.numbers(name, value), dtype=np.float32)
    shape = array.shape[1:]
    if array.shape[0] != dimensions or len(shape) not in (1, 2, 3) or 0 in shape:
        raise refused(name, f"its shape is {array.shape}; ({dimensions}, ...) is needed")
    if not np.isfinite(array).all():
        raise refused(name, "it has numbers that are not finite")
    full = np.zeros((3, *(1,) * (3 - len(shape)), *shape), np.float32)
    full[3 - dimensions :] = array.reshape(dimensions, *(1,) * (3 - len(shape)), *shape)
    return np.ascontiguousarray(full.reshape(-1, *full.shape[2:])), shape


def _looked_up(
    image: Any, name: str, given: Any, order: int, displaced: bool, use_gpu: bool, device: str | None
) -> Any:
    host, back = _host(image)
    places, shape = _places(name, _host(given)[0], np.ndim(host))
    if displaced and len(shape) != np.ndim(host):
        raise refused(name, f"its shape is {np.shape(given)}; a displacement for each voxel is needed")
    made = _kernels(use_gpu, device).sample(_volume("image", host), places, _check_order(order), displaced)
    return back(made.reshape(shape))


def map_coordinates(
    image: Any, coordinates: Any, order: int = 1, use_gpu: bool = True, *, device: str | None = None
) -> Any:
    """The image at given places.

    Parameters
    ----------
    image : array
        Of n = 2 or 3 axes.
    coordinates : array of shape (n, ...)
        Places in voxels.
    order : int, default 1
        0, 1 or 3. What lies outside is 0.
    use_gpu, device
        As for `resize`.

    Returns
    -------
    array of float32
    """
    return _looked_up(image, "coordinates", coordinates, order, False, use_gpu, device)


def apply_displacement_field(image: Any, field: Any, use_gpu: bool = True, *, device: str | None = None) -> Any:
    """The image at each voxel's own place plus a displacement, between voxels linear.

    Parameters
    ----------
    image : array
        Of n = 2 or 3 axes.
    field : array of shape (n, ...)
        Displacements in voxels.
    use_gpu, device
        As for `resize`.

    Returns
    -------
    array of float32
    """
    return _looked_up(image, "field", field, 1, True, use_gpu, device)


def aip(volume: Any, use_gpu: bool = True, *, device: str | None = None) -> Any:
    """The mean over depth: the average intensity projection.

    Parameters
    ----------
    volume : array of shape (z, y, x)
        The volume.
    use_gpu, device
        As for `resize`.

    Returns
    -------
    array of float32 of shape (y, x)
    """
    host, back = _host(volume)
    made = _kernels(use_gpu, device).project_mean(_volume("volume", host))
    return back(made[0])


def find_tissue_interface(
    vol: Any,
    s_xy: float = 15,
    s_z: float = 2,
    use_log: bool = True,
    mask: Any = None,
    order: int = 1,
    detect_cutting_errors: bool = False,
    use_gpu: bool = False,
    *,
    sub_voxel: bool = False,
    device: str | None = None,
) -> npt.NDArray[Any]:
    """Where tissue begins along each A-line.

    Parameters
    ----------
    vol : array of shape (rows, columns, z)
        Depth is the last axis.
    s_xy : int, default 15
        Width of the lateral box, in voxels.
    s_z : float, default 2
        Width of the derivative along depth, in voxels.
    use_log : bool, default True
        The logarithm of positive values.
    mask : array of bool, optional
        Samples that count.
    order : int, default 1
        Of the derivative.
    detect_cutting_errors : bool, default False
        A brighter plane above wins.
    use_gpu, device
        As for `resize`.
    sub_voxel : bool, default False
        Between planes, by a parabola; float32 then.

    Returns
    -------
    array of int64 of shape (rows, columns)
    """
    host, _ = _host(vol)
    if np.ndim(host) != 3:
        raise refused("vol", f"{np.ndim(host)} dimensions; (rows, columns, z) is needed")
    volume = _volume("vol", np.moveaxis(np.asarray(host), -1, 0))
    given = None
    if mask is not None:
        chosen = np.asarray(_host(mask)[0])
        if chosen.shape != np.shape(host):
            raise refused("mask", f"its shape is {chosen.shape}, the volume's {np.shape(host)}")
        given = np.ascontiguousarray(np.moveaxis(chosen.astype(bool), -1, 0), dtype=np.float32)
    found = _kernels(use_gpu, device).find_interface(
        volume, given, int(s_xy), float(s_z), int(order), use_log, detect_cutting_errors, sub_voxel
    )[0]
    return found if sub_voxel else found.astype(np.int64)  # type: ignore[no-any-return]


def detect_interface_z(
    vol: Any,
    sigma_xy: float = 3,
    sigma_z: float = 2,
    use_log: bool = False,
    max_depth_fraction: float = 0.5,
    *,
    device: str | None = "cpu",
) -> int:
    """The plane at which tissue begins, one for the whole volume.

    Parameters
    ----------
    vol : array of shape (z, y, x)
        The volume.
    sigma_xy, sigma_z : float
        Widths of the Gaussian and of its derivative along depth, in voxels.
    use_log : bool, default False
        The logarithm of positive values.
    max_depth_fraction : float, default 0.5
        The share of planes that is looked at.
    device : str, optional
        Where it computes.

    Returns
    -------
    int
    """
    volume = _volume("vol", _host(vol)[0])
    planes = volume.shape[0]
    kernels = _kernels(False, device)
    mean = kernels.project_mean(volume)[0]
    least = kernels.percentiles(mean[None], [5.0], True)[0] if (mean > 0).any() else 0.0
    if use_log:
        volume = np.log(volume, out=volume.copy(), where=volume > 0)
    pad = round(4 * sigma_z)
    padded = np.pad(volume, ((pad, 0), (0, 0), (0, 0)), mode="edge")
    steep = kernels.filter_gaussian(padded, [float(sigma_z), float(sigma_xy), float(sigma_xy)], [1, 0, 0])
    profile = steep[:, mean > least].sum(axis=1, dtype=np.float64)
    return max(0, int(np.argmax(profile[: pad + max(1, int(planes * max_depth_fraction))])) - pad)


def crop_below_interface(
    vol: Any,
    depth_um: float,
    resolution_um: float,
    *,
    crop_above: bool = True,
    sigma_xy: float = 3,
    sigma_z: float = 2,
    use_log: bool = False,
    max_depth_fraction: float = 0.5,
    device: str | None = "cpu",
) -> tuple[Any, int]:
    """The planes from the surface down to a depth.

    Parameters
    ----------
    vol : array of shape (z, y, x)
        The volume.
    depth_um, resolution_um : float
        How deep, and how thick a plane is.
    crop_above : bool, default True
        What lies above the surface goes, too.
    sigma_xy, sigma_z, use_log, max_depth_fraction, device
        As for `detect_interface_z`.

    Returns
    -------
    tuple of array and int
        A view of the volume, and the plane of the surface.
    """
    surface = detect_interface_z(vol, sigma_xy, sigma_z, use_log, max_depth_fraction, device=device)
    return vol[surface if crop_above else 0 : surface + round(depth_um / resolution_um)], surface


def find_z_overlap(
    fixed: Any,
    moving: Any,
    slicing_interval_mm: float,
    search_range_mm: float,
    resolution_um: float,
    use_gpu: bool = False,
    *,
    device: str | None = None,
) -> tuple[int, float]:
    """How many planes the end of one volume and the beginning of the next share.

    Parameters
    ----------
    fixed, moving : array of shape (z, y, x)
        The volumes, with planes of one size.
    slicing_interval_mm, search_range_mm : float
        How far the second begins behind the first, and how much that may be off.
    resolution_um : float
        How thick a plane is.
    use_gpu, device
        As for `resize`.

    Returns
    -------
    tuple of int and float
        Planes, and the correlation there.
    """
    first, second = _volume("fixed", _host(fixed)[0]), _volume("moving", _host(moving)[0])
    if first.shape[1:] != second.shape[1:]:
        raise refused("moving", f"its planes are {second.shape[1:]}, those of fixed {first.shape[1:]}")
    planes = min(first.shape[0], second.shape[0])
    expected = planes - int(1000 * slicing_interval_mm / resolution_um)
    reach = int(1000 * search_range_mm / resolution_um)
    low, high = max(1, expected - reach), min(planes, expected + reach)
    if low >= high:
        return expected, 0.0
    found, correlation, _ = _kernels(use_gpu, device).find_z_overlap(first, second, expected, low, high)
    return found, correlation


def fix_focal_curvature(
    tiles: Any,
    s_xy: int = 15,
    s_z: float = 2,
    use_log: bool = True,
    *,
    model: str = "smooth",
    detect_cutting_errors: bool = False,
    use_gpu: bool = False,
    device: str | None = None,
) -> tuple[_Volume, npt.NDArray[np.float64]]:
    """Tiles without the curvature of the focal plane that they share.

    Parameters
    ----------
    tiles : array of shape (tiles, z, y, x)
        Tiles of one mosaic.
    s_xy, s_z, use_log, detect_cutting_errors
        As for `find_tissue_interface`.
    model : str, default "smooth"
        ``"smooth"``: the median of the tiles' interfaces as a polynomial. ``"basic"``: the fit of BaSiC.
    use_gpu, device
        As for `resize`.

    Returns
    -------
    tuple of arrays
        The tiles, and the curvature in planes, of shape (y, x).
    """
    array = _arrays.numbers("tiles", _host(tiles)[0])
    if array.ndim != 4 or 0 in array.shape:
        raise refused("tiles", f"its shape is {array.shape}; (tiles, z, y, x) is needed")
    if model not in ("smooth", "basic"):
        raise refused("model", f"{model!r}: accepted are 'smooth' and 'basic'")
    flat, curvature = _kernels(use_gpu, device).flatten_tiles(
        _finite("tiles", array), int(s_xy), float(s_z), use_log, model == "basic", detect_cutting_errors
    )
    return flat, curvature


def run(
    tiles: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    progress: Progress | bool | None = None,
    **options: Any,
) -> dict[str, Any]:
    known = options_of("oct run")
    for name in options:
        if name not in known:
            raise unknown_keyword("run", name, known)
    given = given_of("oct run", {**options, "tiles": tiles, "out": out}, "run")
    return json.loads(_native.oct_run(given, settle_progress(progress)))  # type: ignore[no-any-return]


run.__doc__ = f"""From tiles to one volume: ``cingulum oct run``.

Parameters
----------
tiles : path
    A folder of raw tiles, or a table of tiles.
out : path
    The volume, OME-Zarr.
{parameters_text("oct run", ("tiles", "out"))}
progress : callable, bool or None
    As for `track`.

Returns
-------
dict
    Where tiles and slices lie, what was fitted and decided, and the reasons; `output`, `shape`, `devices`.
"""
run.__signature__ = signature_of(  # type: ignore[attr-defined]
    "oct run",
    [
        inspect.Parameter("tiles", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("progress", inspect.Parameter.KEYWORD_ONLY, default=None),
    ],
)


def stage(
    action: str, *paths: str | os.PathLike[str], progress: Progress | bool | None = None, **options: Any
) -> Any:
    """A stage from files to files: ``cingulum oct ACTION``.

    Parameters
    ----------
    action : str
        ``"simulate"``, ``"grid"``, ``"resample"``, ``"curvature"``, ``"stitch"``, ``"stack"``, ...
    *paths : path
        Its inputs.
    progress : callable, bool or None
        As for `track`.
    **options
        Those of the verb: `out`, `force`, `resolution`, ...

    Returns
    -------
    dict
    """
    given = {**options, "action": action}
    if paths:
        given["paths"] = [os.fsdecode(os.fspath(path)) for path in paths]
    return run_verb("oct", given_of("oct", given, action), progress)
