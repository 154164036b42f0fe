"""Tracking: streamlines from a series, a fit or an image of orientations."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

from . import _arrays, _native
from ._errors import InvalidStateError, refused
from ._numpy import np
from ._options import given_of, options_of, parameters_text, signature_of, unknown_keyword
from ._talk import Progress, settle_progress
from ._tractogram import Tractogram

# Arguments that may be arrays: of what is tracked, of maps on its grid, of rows.
_IMAGES = ("sf", "sh", "peaks", "tensor")
_OUTPUTS = ("out", "output_prefix")


def _from_fit(fit: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What a fit gives to be tracked: coefficients or tensors, and its mask."""
    arrays: dict[str, Any] = {"affine": np.ascontiguousarray(fit.affine)}
    facts: dict[str, Any] = {}
    if fit.model == "dti":
        arrays["tensor"] = _arrays.volumes("tensor", fit.tensor)
        facts = {"tensor_order": fit.tensor_order, "frame": fit.frame}
    else:
        arrays["sh"] = _arrays.volumes("sh", fit.sh)
        facts = {"spherical_harmonics": {"basis": fit.sh_basis, "frame": fit.frame}}
    arrays["image_facts"] = json.dumps(facts)
    if options.get("mask") is None:
        arrays["mask"] = np.asfortranarray(fit.mask).view(np.uint8)
    return arrays


def _image_facts(name: str) -> str:
    """What bare arrays are: DIPY's."""
    if name == "sh":
        return json.dumps({"spherical_harmonics": {"basis": "descoteaux07-legacy", "frame": "image"}})
    if name == "tensor":
        return json.dumps({"tensor_order": "dipy", "frame": "image"})
    return json.dumps({"frame": "image"})


def _is_file(value: Any) -> bool:
    return value is None or _arrays.is_path(value)


def _gather(data: Any, gtab: Any, affine: Any, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments as arrays for the library, and the rest as options of the verb."""
    options = dict(options)
    arrays: dict[str, Any] = {}
    shape: tuple[int, ...] | None = None
    if _is_file(data) or (isinstance(data, (list, tuple)) and all(_arrays.is_path(part) for part in data)):
        options["data"] = data
    else:
        from ._fit import Fit

        if isinstance(data, Fit):
            arrays = _from_fit(data, options)
            shape = data.mask.shape
        else:
            arrays = _arrays.series(data, gtab, affine, "data", options.get("bvec_frame"))
            shape = arrays["series"].shape[:3]
            gtab = None
    if gtab is not None:
        raise refused("gtab", "it belongs to a series that is an array; for files give bvals and bvecs, or grad")
    for name in _IMAGES:
        value = options.get(name)
        if _is_file(value):
            continue
        if arrays:
            raise refused(name, "only one array can be what is tracked")
        convert = {"tensor": _arrays.tensor_image, "peaks": _arrays.peaks_image}.get(name)
        image = convert(value) if convert else _arrays.volumes(name, value)
        arrays = {name: image, "affine": _arrays.affine_of(value, affine), "image_facts": _image_facts(name)}
        shape = image.shape[:3]
        options[name] = None
    _gather_maps(arrays, options, shape)
    _gather_rows(arrays, options)
    return arrays, options


def _gather_maps(arrays: dict[str, Any], options: dict[str, Any], shape: tuple[int, ...] | None) -> None:
    for name in ("mask", "seed_mask", "stop_map"):
        value = options.get(name)
        if _is_file(value):
            continue
        array = _arrays.numbers(name, value)
        convert = _arrays.scalar_map if name == "stop_map" else _arrays.mask_image
        arrays[name] = convert(name, value, shape or array.shape)
        options[name] = None


def _gather_rows(arrays: dict[str, Any], options: dict[str, Any]) -> None:
    for name, key in (("seed_file", "seeds"), ("directions", "directions")):
        value = options.get(name)
        if _is_file(value):
            continue
        arrays[key] = _arrays.rows(name, value)
        options[name] = None
    sphere = options.get("sphere")
    if sphere is not None and not isinstance(sphere, str) and not _arrays.is_path(sphere):
        arrays["sphere"] = _arrays.sphere_rows(sphere)
        arrays["full_sphere"] = bool(options.get("full_sphere"))
        options["sphere"] = None


def _settle(function: str, seeds: Any, options: dict[str, Any]) -> dict[str, Any]:
    known = options_of("track")
    for name in options:
        if name not in known or name == "data":
            raise unknown_keyword(function, name, [*known, "seeds"])
    if seeds is not None:
        if options.get("seed_file") is not None:
            raise refused("seeds", "seeds and seed_file are the same; give one")
        options = {**options, "seed_file": seeds}
    return options


def track(
    data: Any = None,
    gtab: Any = None,
    *,
    affine: Any = None,
    seeds: Any = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Tractogram | dict[str, Any]:
    arrays, words = _gather(data, gtab, affine, _settle("track", seeds, options))
    to_file = any(words.get(name) is not None for name in _OUTPUTS)
    told = settle_progress(progress)
    handle = _native.TrackHandle(given_of("track", words), arrays)
    handle.prepare(to_file, told)
    if to_file:
        return json.loads(handle.track_file(told))  # type: ignore[no-any-return]
    return Tractogram._of_native(handle.track(told))


def track_batches(
    data: Any = None,
    gtab: Any = None,
    *,
    affine: Any = None,
    seeds: Any = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Iterator[Tractogram]:
    settled = _settle("track_batches", seeds, options)
    _refuse_outputs("track_batches", settled)
    arrays, words = _gather(data, gtab, affine, settled)
    told = settle_progress(progress)
    handle = _native.TrackHandle(given_of("track", words), arrays)
    handle.prepare(False, told)
    return _batches(handle, told)


def _batches(handle: Any, told: Progress | None) -> Iterator[Tractogram]:
    handle.begin_batches(told)
    try:
        while (made := handle.next_batch(told)) is not None:
            yield Tractogram._of_native(made)
    finally:
        handle.end_batches()


def _refuse_outputs(function: str, options: dict[str, Any]) -> None:
    for name in _OUTPUTS:
        if options.get(name) is not None:
            raise refused(name, f"{function} keeps its streamlines in memory; write them with Tractogram.save")


class Tracker:
    """A field that is prepared once and tracked as often as wanted.

    Reading, fitting and preparing are done when it is made; `track` and `batches` take other seeds, rules and
    parameters of the tracking for the same field. It is a context manager, which gives the memory back at its end.

    Parameters
    ----------
    data, gtab, affine, seeds, progress, **options
        As for `track`, without `out`.

    Examples
    --------
    >>> with cingulum.Tracker("dwi.nii.gz", mask="mask.nii.gz", dg="prob") as tracker:  # doctest: +SKIP
    ...     few = tracker.track(nseeds=100)
    ...     many = tracker.track(nseeds=100_000, seed=7)
    """

    def __init__(
        self,
        data: Any = None,
        gtab: Any = None,
        *,
        affine: Any = None,
        seeds: Any = None,
        progress: Progress | bool | None = None,
        **options: Any,
    ):
        settled = _settle("Tracker", seeds, options)
        _refuse_outputs("Tracker", settled)
        arrays, self._options = _gather(data, gtab, affine, settled)
        self._shape: tuple[int, ...] | None = None
        self._progress = progress
        self._handle: Any = _native.TrackHandle(given_of("track", self._options), arrays)
        self._handle.prepare(False, settle_progress(progress))

    def _change(self, seeds: Any, options: dict[str, Any]) -> Any:
        if self._handle is None:
            raise InvalidStateError("this Tracker is closed")
        settled = _settle("Tracker.track", seeds, options)
        # What the field was made for (a threshold, a reach, a kind of getter) is looked at by the library.
        known = options_of("track")
        for name in settled:
            if not known[name]["changes_while_field_stays"]:
                raise refused(name, "it belongs to the field, which is made once; make another Tracker")
        if settled:
            words = {**self._options, **settled}
            arrays: dict[str, Any] = {}
            _gather_maps(arrays, words, tuple(self._handle.geometry()["shape"]))
            _gather_rows(arrays, words)
            self._handle.change(given_of("track", words), arrays)
        else:
            self._handle.change(given_of("track", self._options), {})
        return self._handle

    def track(self, *, seeds: Any = None, progress: Progress | bool | None = None, **options: Any) -> Tractogram:
        """Tracks the field. Options are those of `track` that the field does not depend on.

        Returns
        -------
        Tractogram
        """
        handle = self._change(seeds, options)
        return Tractogram._of_native(handle.track(settle_progress(self._progress if progress is None else progress)))

    def batches(self, *, seeds: Any = None, progress: Progress | bool | None = None, **options: Any) -> Iterator[Tractogram]:
        """The same, batch by batch; leaving the loop cancels the rest.

        Returns
        -------
        iterator of Tractogram
        """
        handle = self._change(seeds, options)
        return _batches(handle, settle_progress(self._progress if progress is None else progress))

    def close(self) -> None:
        """Gives the field back."""
        self._handle = None

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Tracker holds devices and cannot be pickled; pickle what it is made from")


_LEADING = """{summary}

Parameters
----------
data : path, sequence of paths, array, image or Fit, optional
    What is tracked: a diffusion series as a file (b-values, b-vectors, mask and seed mask may follow it), as an array
    of shape (x, y, z, volumes) or an image of nibabel with `gtab`, or a fit. Without data, and without `sf`, `sh`,
    `peaks` or `tensor`, the phantom ``brain`` is made and tracked.
gtab : GradientTable or (bvals, bvecs), optional
    Gradients of a series that is an array. Those of a GradientTable are in image axes, as DIPY has them; a pair is
    read as FSL's files are.
affine : array of shape (4, 4), optional
    From voxels to world; that of an image unless given, else voxels of 1 mm.
seeds : array of shape (n, 3) or path, optional
    Where streamlines begin, in the axes of `seed_space`; the same as `seed_file`.
progress : callable, bool or None
    A callable is given a `ProgressEvent`, in the calling thread; True shows bars of tqdm, False nothing, None bars where
    stderr is a terminal and tqdm is there. What it raises ends the run.
{parameters}

Returns
-------
{returns}

Notes
-----
`sf`, `sh`, `peaks`, `tensor`, `mask`, `seed_mask`, `stop_map`, `seed_file`, `directions` and `sphere` may be arrays, images or
objects of DIPY in the place of files. Bare arrays are DIPY's: harmonics in the basis descoteaux07-legacy, tensors as
lower triangles, all in image axes, unless `sh_basis`, `tensor_order` and `frame` say otherwise. Arrays are read where
they lie, whatever their order and strides; those of float16, longdouble or the other byte order are copied once.

The result depends on the data, the options and `seed` alone, and is that of ``cingulum track`` to the bit.
"""


def _describe(function: Any, summary: str, returns: str, leave_out: tuple[str, ...]) -> None:
    leading = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    kept = ("data", *leave_out)
    function.__signature__ = signature_of("track", leading, kept)
    function.__doc__ = _LEADING.format(summary=summary, parameters=parameters_text("track", kept), returns=returns)


_describe(
    track,
    "Tracks streamlines through a diffusion series, a fit or an image of orientations.",
    "Tractogram, or dict\n    The streamlines; where `out` or `output_prefix` names a file, it is written batch by batch, and\n"
    "    the sidecar is returned.",
    (),
)
_describe(
    track_batches,
    "Tracks as `track` does and gives the streamlines batch by batch, in the order of the seeds.",
    "iterator of Tractogram\n    Leaving the loop cancels what is not tracked yet.",
    _OUTPUTS,
)
