"""Models of the diffusion signal: fits as arrays, and estimators."""

from __future__ import annotations

import inspect
import json
import os
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from . import _arrays, _native
from ._errors import refused
from ._options import default_of, given_of, options_of, parameters_text, signature_of, unknown_keyword
from ._talk import Progress, settle_progress

# Where Python's results differ from the program's files: DIPY's basis, axes and order.
_DIPYS = {"sh_basis": "descoteaux07-legacy", "frame": "image", "tensor_order": "dipy"}


class Fit:
    """What a model says of every voxel.

    Attributes
    ----------
    model : str
        ``"dti"``, ``"opdt"``, ``"csa"`` or ``"csd"``.
    maps : dict
        Arrays of shape (x, y, z) or (x, y, z, n) by name, zero outside the mask; each is an attribute, too: ``fa``,
        ``md``, ``ad``, ``rd``, ``v1``, ``colour_fa``, ``s0``, ``tensor`` of dti, ``sh`` and ``gfa`` of opdt and csa, ``sh`` of csd.
    mask : array of bool
        Voxels that were fitted.
    affine : array of shape (4, 4)
        From voxels to world.
    facts : dict
        Parameters, inputs and warnings.
    results : dict
        What the fit found besides: the response of csd, voxels that could not be solved.
    """

    def __init__(
        self,
        maps: dict[str, npt.NDArray[np.float32]],
        mask: npt.NDArray[np.bool_],
        affine: npt.NDArray[np.float64],
        facts: dict[str, Any],
        results: dict[str, Any],
        said: dict[str, tuple[str, dict[str, Any]]] | None = None,
        texts: list[tuple[str, str, str]] | None = None,
        run: dict[str, Any] | None = None,
    ):
        self.maps = maps
        self.mask = mask
        self.affine = affine
        self.facts = facts
        self.results = results
        self.run = run or {}
        self._said = said or {}
        self._texts = texts or []

    @classmethod
    def _of_native(cls, made: dict[str, Any]) -> Fit:
        maps: dict[str, npt.NDArray[np.float32]] = {}
        said: dict[str, tuple[str, dict[str, Any]]] = {}
        for name, meaning, more, values in made["maps"]:
            array = values.transpose(2, 1, 0, 3)
            maps[name] = array[..., 0] if array.shape[3] == 1 else array
            said[name] = (meaning, json.loads(more))
        affine = np.vstack([np.asarray(made["affine"]).reshape(3, 4), [0, 0, 0, 1]])
        return cls(
            maps,
            made["mask"].transpose(2, 1, 0).view(bool),
            affine,
            json.loads(made["facts"]),
            json.loads(made["results"]),
            said,
            list(made["texts"]),
            json.loads(made["run"]),
        )

    def __getattr__(self, name: str) -> Any:
        maps = self.__dict__.get("maps", {})
        if name == "sh" and "fod" in maps:
            return maps["fod"]
        if name in maps:
            return maps[name]
        raise AttributeError(f"a fit of {self.__dict__.get('facts', {}).get('model')} has no '{name}'")

    @property
    def model(self) -> str:
        return str(self.facts["model"])

    @property
    def warnings(self) -> list[str]:
        """What was odd about the data."""
        from ._talk import plain_names

        return [plain_names(text) for text in self.facts.get("warnings", [])]

    @property
    def frame(self) -> str:
        """Axes of tensors, coefficients and directions: ``"image"`` or ``"world"``."""
        return str(self.facts["parameters"]["frame"])

    @property
    def sh_basis(self) -> str:
        """Convention of the spherical harmonics."""
        return str(self.facts["parameters"]["sh_basis"])

    @property
    def sh_order(self) -> int:
        """Degree of the spherical harmonics."""
        return int(self.facts["parameters"]["sh_order"])

    @property
    def tensor_order(self) -> str:
        """Order of the six numbers of a tensor."""
        return str(self.facts["parameters"]["tensor_order"])

    def _coefficients(self) -> npt.NDArray[np.float32]:
        if self.model == "dti":
            raise refused("model", "tensors have no spherical harmonics")
        return np.ascontiguousarray(self.sh[self.mask])

    def odf(self, sphere: Any = "default", *, clip: bool = False) -> npt.NDArray[np.float32]:
        """Amplitudes in directions.

        Parameters
        ----------
        sphere : str, array of shape (n, 3) or Sphere
            Directions in the axes of `frame`.
        clip : bool, default False
            Raise negative amplitudes to zero.

        Returns
        -------
        array of shape (x, y, z, n)
        """
        directions = (
            _native.sphere_vertices(os.fspath(sphere), False)
            if isinstance(sphere, (str, os.PathLike))
            else _arrays.sphere_rows(sphere)
        )
        values = _native.sample_harmonics(self._coefficients(), self.sh_order, self.sh_basis, directions, clip)
        result = np.zeros((*self.mask.shape, len(directions)), dtype=np.float32)
        result[self.mask] = values
        return result

    def peaks(
        self,
        n: int = 5,
        *,
        sphere: str = "default",
        relative_peak_threshold: float = 0.25,
        min_separation_angle: float = 25,
    ) -> npt.NDArray[np.float32]:
        """The largest peaks of each voxel.

        Parameters
        ----------
        n : int
            How many.
        sphere : str
            Directions among which they are found.
        relative_peak_threshold : float
            Smallest peak, as a share of the greatest.
        min_separation_angle : float, degrees
            Smallest angle between peaks.

        Returns
        -------
        array of shape (x, y, z, n, 3)
            Directions in the axes of `frame`, as long as their amplitude; zero where there are fewer.
        """
        values = _native.find_peaks(
            self._coefficients(),
            self.sh_order,
            self.sh_basis,
            os.fspath(sphere),
            int(n),
            float(relative_peak_threshold),
            float(min_separation_angle),
        )
        result = np.zeros((*self.mask.shape, n, 3), dtype=np.float32)
        result[self.mask] = values.reshape(-1, n, 3)
        return result

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the folder that ``cingulum fit`` leaves: an image and a sidecar per map, and fit.json.

        Parameters
        ----------
        folder : path
            Made where it is not there.
        force : bool, default False
            Replace a fit that is there.
        """
        # Records of the mask with x fastest, as the library counts voxels.
        order = self.mask.transpose(2, 1, 0)
        maps = []
        for name, array in self.maps.items():
            meaning, more = self._said.get(name, (name, {}))
            values = array if array.ndim == 4 else array[..., None]
            records = np.ascontiguousarray(values.transpose(2, 1, 0, 3)[order], dtype=np.float32)
            maps.append((name, meaning, json.dumps(more), records))
        _native.write_fit(
            os.fsdecode(os.fspath(folder)),
            force,
            self.mask.shape,
            np.ascontiguousarray(self.affine, dtype=np.float64),
            np.asfortranarray(self.mask).view(np.uint8),
            json.dumps(self.facts),
            maps,
            self._texts,
            json.dumps(self.results),
            json.dumps(self.run),
            False,
            None,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fit):
            return NotImplemented
        return (
            self.facts == other.facts
            and self.results == other.results
            and np.array_equal(self.mask, other.mask)
            and np.array_equal(self.affine, other.affine)
            and self.maps.keys() == other.maps.keys()
            and all(np.array_equal(value, other.maps[name]) for name, value in self.maps.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Fit: {self.model}, {int(self.mask.sum())} voxels, maps {', '.join(self.maps)}>"

    def _repr_html_(self) -> str:
        from ._pictures import slices, table

        shown = next((name for name in ("fa", "gfa") if name in self.maps), None)
        # The first coefficient of harmonics is the mean over directions.
        volume = self.maps[shown] if shown is not None else self.sh[..., 0]
        facts = [self.model, f"{int(self.mask.sum()):,}", ", ".join(self.maps)]
        return table(["model", "voxels", "maps"], [facts]) + slices(volume, shown or "mean amplitude")


def fit(
    data: Any = None,
    gtab: Any = None,
    *,
    affine: Any = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Fit:
    known = options_of("fit")
    for name in options:
        if name not in known or name == "dwi":
            raise unknown_keyword("fit", name, known)
    repeats = options.get("from_") is not None
    # What is repeated has its own basis, frame and order.
    values = options if repeats else {**_DIPYS, **options}
    arrays: dict[str, Any] = {}
    if data is None:
        if not repeats:
            raise TypeError("fit() needs the argument 'data': a series, or 'from_' for that of another run")
    elif _arrays.is_path(data):
        values["dwi"] = data
        if gtab is not None:
            raise refused("gtab", "it belongs to a series that is an array; for files give bvals and bvecs, or grad")
        if values.get("mask") is not None and not _arrays.is_path(values["mask"]):
            raise refused("mask", "an array beside a series that is a file; give both as files or both as arrays")
    else:
        arrays = _arrays.series(data, gtab, affine, "dwi", values.get("bvec_frame"))
        mask = values.get("mask")
        if mask is not None and not _arrays.is_path(mask):
            arrays["mask"] = _arrays.mask_image("mask", mask, arrays["series"].shape[:3])
            values["mask"] = None
    if values.get("model") is None and not repeats:
        raise TypeError("fit() needs the argument 'model': dti, opdt, csa or csd")
    made = _native.fit(given_of("fit", values), arrays, settle_progress(progress))
    return Fit._of_native(made)


_parameters = [
    parameter
    for parameter in inspect.signature(fit).parameters.values()
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD
]
_signature = signature_of("fit", _parameters, ("dwi",))
fit.__signature__ = _signature.replace(  # type: ignore[attr-defined]
    parameters=[
        parameter.replace(default=_DIPYS[name]) if name in _DIPYS else parameter
        for name, parameter in _signature.parameters.items()
    ]
)
fit.__doc__ = f"""Fits a model of the diffusion signal in every voxel.

Parameters
----------
data : array of shape (x, y, z, volumes), image or path
    The diffusion series; with `from_` that of the run which is repeated, unless given.
gtab : GradientTable or (bvals, bvecs), optional
    Gradients of a series that is an array, as for `track`.
affine : array of shape (4, 4), optional
    From voxels to world; that of an image unless given, else voxels of 1 mm.
progress : callable, bool or None
    As for `track`.
{parameters_text("fit", ("dwi",))}

Returns
-------
Fit
    Harmonics are in DIPY's basis (descoteaux07-legacy), tensors in DIPY's order, both in image axes, unless `sh_basis`,
    `tensor_order` and `frame` say otherwise, or `from_` repeats a run that has others. `mask` may be an array. With
    `out` the folder of ``cingulum fit`` is written, too.
"""


class _Estimator:
    """A model with parameters and `fit`, as scikit-learn has them. Fitted values end with an underscore."""

    _model: ClassVar[str] = ""
    _own: ClassVar[tuple[str, ...]] = ()
    _shared: ClassVar[tuple[str, ...]] = ("b0_threshold", "shell", "bvec_frame", "min_signal", "device", "threads")

    def __init__(self, **parameters: Any):
        self._parameters = {name: self._default(name) for name in self._names()}
        self.set_params(**parameters)

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return (*cls._own, *cls._shared)

    @classmethod
    def _default(cls, name: str) -> Any:
        return _DIPYS.get(name, default_of(options_of("fit")[name]))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return dict(self._parameters)

    def set_params(self, **parameters: Any) -> Any:
        """Sets parameters and returns the estimator."""
        for name, value in parameters.items():
            if name not in self._parameters:
                raise unknown_keyword(type(self).__name__, name, self._parameters)
            self._parameters[name] = value
        return self

    def fit(self, data: Any, gtab: Any = None, *, mask: Any = None, affine: Any = None, **more: Any) -> Any:
        """Fits the model and returns the estimator.

        Parameters
        ----------
        data, gtab, mask, affine
            As for `cingulum.fit`.
        **more
            Further arguments of `cingulum.fit`: `bvals`, `bvecs`, `progress`.
        """
        # Values that are the defaults are not given: some options have a meaning by being given.
        given = {name: value for name, value in self._parameters.items() if value != self._default(name)}
        self.fit_ = fit(data, gtab, model=self._model, mask=mask, affine=affine, **given, **more)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not name.endswith("_"):
            parameters = self.__dict__.get("_parameters", {})
            if name in parameters:
                return parameters[name]
            raise AttributeError(f"{type(self).__name__} has no '{name}'")
        fitted = self.__dict__.get("fit_")
        if fitted is None:
            raise AttributeError(f"'{name}' is there after fit()")
        return getattr(fitted, name[:-1])

    def __repr__(self) -> str:
        changed = ", ".join(f"{k}={v!r}" for k, v in self._parameters.items() if v != self._default(k))
        return f"{type(self).__name__}({changed})"


class DTI(_Estimator):
    """Diffusion tensors. Fitted: ``tensor_``, ``fa_``, ``md_``, ``ad_``, ``rd_``, ``v1_``, ``s0_``, ``colour_fa_``."""

    _model = "dti"
    _own = ("fit_method", "tensor_order", "frame")


class OPDT(_Estimator):
    """Orientation probability density transform. Fitted: ``sh_``, ``gfa_``."""

    _model = "opdt"
    _own = ("sh_order", "sm_lambda", "sh_basis", "frame")


class CSA(_Estimator):
    """Constant solid angle. Fitted: ``sh_``, ``gfa_``."""

    _model = "csa"
    _own = ("sh_order", "sm_lambda", "sh_basis", "frame")


class CSD(_Estimator):
    """Constrained spherical deconvolution. Fitted: ``sh_``, and the response in ``results_``."""

    _model = "csd"
    _own = (
        "sh_order",
        "sh_basis",
        "frame",
        "response",
        "response_fa",
        "response_radius",
        "response_centre",
        "csd_lambda",
        "csd_tau",
        "csd_iterations",
        "csd_sphere",
    )
