"""DIPY's tracking functions by signature, tracked by Cingulum.

``from cingulum.dipy import probabilistic_tracking`` in the place of ``from dipy.tracking.tracker import ...``. Besides
DIPY's arguments, those of its GPU trackers are taken: `backend`, `chunk_size`, `chunked`, `is_symmetric`, `max_cross`.
What Cingulum does not have is refused by name.

Where it differs: the same `random_seed` gives the same streamlines, 0 too; a streamline does not depend on threads,
chunks or backend; shorter streamlines than `min_len` and longer ones than `max_len` are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays
from ._errors import InvalidArgumentError, UnavailableError, refused
from ._track import track_batches
from ._tractogram import Tractogram

__all__ = [
    "ThresholdStoppingCriterion",
    "bootstrap_tracking",
    "closestpeak_tracking",
    "deterministic_tracking",
    "eudx_tracking",
    "pft_tracking",
    "probabilistic_tracking",
    "ptt_tracking",
]

_TRACKPOINT = 1  # of DIPY's StreamlineStatus


def ThresholdStoppingCriterion(metric_map: npt.ArrayLike, threshold: float) -> Any:
    """A threshold criterion of DIPY that keeps its map, so that Cingulum can read it.

    Parameters
    ----------
    metric_map : array of shape (x, y, z)
        Tracked where it is above the threshold, trilinearly interpolated.
    threshold : float
        The threshold.

    Returns
    -------
    dipy.tracking.stopping_criterion.ThresholdStoppingCriterion
        With the attributes `metric_map` and `threshold`; DIPY's own trackers take it, too.
    """
    from dipy.tracking.stopping_criterion import ThresholdStoppingCriterion as Criterion

    class KeepingCriterion(Criterion):  # type: ignore[misc]
        metric_map: npt.NDArray[np.float64]
        threshold: float

    values = np.ascontiguousarray(metric_map, dtype=np.float64)
    made = KeepingCriterion(values, threshold)
    made.metric_map = values
    made.threshold = float(threshold)
    return made


def _stopping(criterion: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """The stopping map and rule of a criterion."""
    if isinstance(criterion, (tuple, list)):
        if len(criterion) != 2:
            raise refused("sc", f"a pair (map, threshold) is accepted, not {len(criterion)} values")
        return {"stop_map": criterion[0], "stop_threshold": float(criterion[1]), "stop_rule": "trilinear"}
    if hasattr(criterion, "metric_map") and hasattr(criterion, "threshold"):
        return {
            "stop_map": np.asarray(criterion.metric_map),
            "stop_threshold": float(criterion.threshold),
            "stop_rule": "trilinear",
        }
    name = type(criterion).__name__
    if name == "BinaryStoppingCriterion":
        passes = np.zeros(shape, dtype=np.uint8)
        for voxel in np.ndindex(*shape):
            passes[voxel] = int(criterion.check_point(np.array(voxel, dtype=float))) == _TRACKPOINT
        return {"stop_map": passes, "stop_threshold": 0.5, "stop_rule": "nearest"}
    raise UnavailableError(
        f"sc: a {name} hides its map; give a pair (map, threshold), or the criterion of "
        "cingulum.dipy.ThresholdStoppingCriterion(map, threshold), which DIPY takes, too",
        argument="sc",
    )


def _basis(basis_type: str | None, legacy: bool) -> str:
    if basis_type in (None, "descoteaux07"):
        return "descoteaux07-legacy" if legacy else "descoteaux07"
    if basis_type == "tournier07" and not legacy:
        return "tournier07"
    raise refused("basis_type", f"{basis_type!r} with legacy={legacy}: accepted are descoteaux07, and tournier07 that is not legacy")


def _half(vertices: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which directions of a whole sphere are kept of each antipodal pair."""
    x, y, z = np.where(np.abs(vertices) < 1e-9, 0, vertices).T
    return np.asarray((z > 0) | ((z == 0) & (y > 0)) | ((z == 0) & (y == 0) & (x > 0)), dtype=np.bool_)


def _is_whole(vertices: npt.NDArray[np.float64]) -> bool:
    nearest = (vertices @ vertices.T).min(axis=1)
    return bool(nearest.max() < -1 + 1e-6)


def _field(sh: Any, sf: Any, pam: Any, sphere: Any, basis_type: str | None, legacy: bool, is_symmetric: bool) -> dict[str, Any]:
    """What is tracked, from the one of three that is given."""
    given = [name for name, value in (("sh", sh), ("pam", pam), ("sf", sf)) if value is not None]
    if len(given) != 1:
        raise InvalidArgumentError(f"exactly one of sh, pam and sf is needed; given: {', '.join(given) or 'none'}")
    if pam is not None:
        raise UnavailableError(
            "pam: Cingulum does not draw among the peaks of a PeaksAndMetrics; give its shm_coeff as sh, or its odf as sf "
            "with its sphere, or track its peaks with cingulum.track(peaks=pam, dg='closest')",
            argument="pam",
        )
    if sh is not None:
        field: dict[str, Any] = {"sh": np.asarray(sh), "sh_basis": _basis(basis_type, legacy), "frame": "image", "interpolate": "harmonics"}
        field["sphere"] = "repulsion724"
        if sphere is not None:
            rows = _arrays.sphere_rows(sphere)
            field["sphere"] = rows[_half(rows)] if _is_whole(rows) else rows
        return field
    if sphere is None:
        raise InvalidArgumentError("sphere: it is needed with sf", argument="sphere")
    vertices = _arrays.sphere_rows(sphere)
    values = np.asarray(sf)
    if values.ndim != 4 or values.shape[3] != len(vertices):
        raise refused("sf", f"its shape is {values.shape}, and the sphere has {len(vertices)} directions")
    if not _is_whole(vertices):
        return {"sf": values, "sphere": vertices}
    if is_symmetric:
        kept = _half(vertices)
        return {"sf": values[..., kept], "sphere": vertices[kept]}
    return {"sf": values, "sphere": vertices, "full_sphere": True}


_BACKENDS = {"cpu": "cpu", "cuda": "cuda", "webgpu": "webgpu", "metal": "metal", "auto": "auto"}


def _run(
    getter: str, given: dict[str, Any], field: dict[str, Any], shape: tuple[int, ...], options: dict[str, Any]
) -> Iterator[Any]:
    """Starts the run, so that what is wrong is said before the first streamline is asked for.

    `given` are the arguments of a function below, by name.
    """
    if not given["return_all"]:
        raise UnavailableError("return_all: False is not there; end_reasons of cingulum.track say why streamlines end")
    if given["backend"] not in _BACKENDS:
        raise refused("backend", f"{given['backend']!r}: accepted are {', '.join(_BACKENDS)}")
    matrix = np.eye(4) if given["affine"] is None else np.asarray(given["affine"], dtype=np.float64)
    inverse = np.linalg.inv(matrix)
    world = _arrays.rows("seed_positions", given["seed_positions"])
    seeds = world @ inverse[:3, :3].T + inverse[:3, 3]
    settled = {
        **field,
        **_stopping(given["sc"], shape),
        **options,
        "dg": getter,
        "preset": "dipy",
        "seeds": seeds,
        "seed_space": "voxel",
        "step_size": f"{float(given['step_size'])!r}mm",
        "max_angle": float(given["max_angle"]),
        "min_length": float(given["min_len"]),
        "max_length": float(given["max_len"]),
        "seed": int(given["random_seed"]),
        "device": _BACKENDS[given["backend"]],
        "max_directions": 1 if given["max_cross"] is None else (32 if given["max_cross"] <= 0 else int(given["max_cross"])),
        "float64": True,
    }
    if given["chunk_size"] is not None:
        settled["chunk_size"] = int(given["chunk_size"])
    if given["nbr_threads"]:
        settled["threads"] = int(given["nbr_threads"])
    if given["seed_directions"] is not None:
        rows = np.asarray(given["seed_directions"])
        # Some functions of DIPY take several directions for a seed.
        if rows.ndim == 3 and rows.shape[1] == 1:
            rows = rows[:, 0]
        directions = _arrays.rows("seed_directions", rows)
        if directions.shape != seeds.shape:
            raise refused("seed_directions", f"their shape is {directions.shape}, that of the seeds {seeds.shape}")
        settled["directions"] = directions
    data = settled.pop("data", None)
    gtab = settled.pop("gtab", None)
    batches = track_batches(data, gtab, affine=matrix, progress=False, **settled)
    return _streamlines(batches, bool(given["save_seeds"]), bool(given["chunked"]))


def _streamlines(batches: Iterator[Tractogram], save_seeds: bool, chunked: bool) -> Iterator[Any]:
    for batch in batches:
        if chunked:
            lengths = np.diff(batch.offsets).astype(np.int64)
            yield (batch.positions, lengths, batch.seeds) if save_seeds else (batch.positions, lengths)
            continue
        for i in range(len(batch)):
            yield (batch[i], batch.seeds[i].astype(np.float64)) if save_seeds else batch[i]


_PARAMETERS = """
    Parameters
    ----------
    seed_positions : array of shape (n, 3)
        Seeds in world space.
    sc : StoppingCriterion, or (map, threshold)
        A BinaryStoppingCriterion, `ThresholdStoppingCriterion` of this module, or a map and its threshold.
    affine : array of shape (4, 4)
        From voxels to world.
    seed_directions : array of shape (n, 3), optional
        Initial directions in image axes; the largest peak unless given.
    {field}
    min_len, max_len : float
        Shorter and longer streamlines are left out; mm.
    step_size : float
        mm.
    voxel_size : ignored
        That of `affine` counts.
    max_angle : float
        Largest angle between steps; degrees.
    pmf_threshold : float
        Smaller amplitudes count as zero.{more}
    sphere : Sphere, optional
        Directions; needed with `sf`.
    basis_type, legacy : str, bool
        Of `sh`, as DIPY names them.
    nbr_threads : int
        0: all.
    random_seed : int
        The key of the run.
    seed_buffer_fraction : ignored
        Memory is bounded by `chunk_size`.
    return_all : bool
        True alone.
    save_seeds : bool
        Give pairs of streamline and seed.
    backend : str
        ``"cpu"``, ``"cuda"``, ``"webgpu"``, ``"metal"`` or ``"auto"``.
    chunk_size : int, optional
        Seeds at a time; the result does not depend on it.
    chunked : bool
        Give (points, lengths[, seeds]) of many streamlines at a time.
    max_cross : int, optional
        Initial directions per seed, at most; 1 unless given, 0 or less: all.
    is_symmetric : bool
        Whether functions on a whole sphere are equal in opposite directions.

    Returns
    -------
    iterator
        Arrays of shape (points, 3), float64, world space.
"""
_FIELD = """sh : array of shape (x, y, z, n), optional
        Spherical harmonics.
    pam : refused
        PeaksAndMetrics.
    sf : array of shape (x, y, z, directions), optional
        Amplitudes on `sphere`. One of the three is needed."""


def _run_functions(getter: str, given: dict[str, Any], options: dict[str, Any]) -> Iterator[Any]:
    """The run of a function below whose field is harmonics or amplitudes; `given` are its arguments by name."""
    field = _field(
        given["sh"], given["sf"], given.get("pam"), given["sphere"],
        given["basis_type"], given["legacy"], given["is_symmetric"],
    )
    values = field.get("sh", field.get("sf"))
    return _run(getter, given, field, tuple(values.shape[:3]), options)  # type: ignore[union-attr]


def probabilistic_tracking(  # noqa: D103
    seed_positions: Any,
    sc: Any,
    affine: Any,
    *,
    seed_directions: Any = None,
    sh: Any = None,
    pam: Any = None,
    sf: Any = None,
    min_len: float = 2,
    max_len: float = 500,
    step_size: float = 0.2,
    voxel_size: Any = None,
    max_angle: float = 20,
    pmf_threshold: float = 0.1,
    sphere: Any = None,
    basis_type: str | None = None,
    legacy: bool = True,
    nbr_threads: int = 0,
    random_seed: int = 0,
    seed_buffer_fraction: float = 1.0,
    return_all: bool = True,
    save_seeds: bool = False,
    backend: str = "auto",
    chunk_size: int | None = None,
    chunked: bool = False,
    max_cross: int | None = None,
    is_symmetric: bool = True,
) -> Iterator[Any]:
    return _run_functions("prob", locals(), {"pmf_threshold": float(pmf_threshold)})


def deterministic_tracking(  # noqa: D103
    seed_positions: Any,
    sc: Any,
    affine: Any,
    *,
    seed_directions: Any = None,
    sh: Any = None,
    pam: Any = None,
    sf: Any = None,
    min_len: float = 2,
    max_len: float = 500,
    step_size: float = 0.2,
    voxel_size: Any = None,
    max_angle: float = 20,
    pmf_threshold: float = 0.1,
    sphere: Any = None,
    basis_type: str | None = None,
    legacy: bool = True,
    nbr_threads: int = 0,
    random_seed: int = 0,
    seed_buffer_fraction: float = 1.0,
    return_all: bool = True,
    save_seeds: bool = False,
    backend: str = "auto",
    chunk_size: int | None = None,
    chunked: bool = False,
    max_cross: int | None = None,
    is_symmetric: bool = True,
) -> Iterator[Any]:
    return _run_functions("det", locals(), {"pmf_threshold": float(pmf_threshold)})


def ptt_tracking(  # noqa: D103
    seed_positions: Any,
    sc: Any,
    affine: Any,
    *,
    seed_directions: Any = None,
    sh: Any = None,
    pam: Any = None,
    sf: Any = None,
    min_len: float = 2,
    max_len: float = 500,
    step_size: float = 0.5,
    voxel_size: Any = None,
    max_angle: float = 10,
    pmf_threshold: float = 0.1,
    probe_length: float = 1.5,
    probe_radius: float = 0,
    probe_quality: int = 7,
    probe_count: int = 1,
    data_support_exponent: float = 1,
    sphere: Any = None,
    basis_type: str | None = None,
    legacy: bool = True,
    nbr_threads: int = 0,
    random_seed: int = 0,
    seed_buffer_fraction: float = 1.0,
    return_all: bool = True,
    save_seeds: bool = False,
    backend: str = "auto",
    chunk_size: int | None = None,
    chunked: bool = False,
    max_cross: int | None = None,
    is_symmetric: bool = True,
) -> Iterator[Any]:
    given = locals()
    options = {
        "pmf_threshold_absolute": float(pmf_threshold),
        "ptt_probe_length": f"{float(probe_length)!r}mm",
        "ptt_probe_radius": f"{float(probe_radius)!r}mm",
        "ptt_probe_quality": int(probe_quality),
        "ptt_probe_count": int(probe_count),
        "ptt_exponent": float(data_support_exponent),
    }
    return _run_functions("ptt", given, options)


def closestpeak_tracking(  # noqa: D103
    seed_positions: Any,
    sc: Any,
    affine: Any,
    *,
    seed_directions: Any = None,
    sh: Any = None,
    sf: Any = None,
    min_len: float = 2,
    max_len: float = 500,
    step_size: float = 0.5,
    voxel_size: Any = None,
    max_angle: float = 60,
    pmf_threshold: float = 0.1,
    sphere: Any = None,
    basis_type: str | None = None,
    legacy: bool = True,
    nbr_threads: int = 0,
    random_seed: int = 0,
    seed_buffer_fraction: float = 1.0,
    return_all: bool = True,
    save_seeds: bool = False,
    backend: str = "auto",
    chunk_size: int | None = None,
    chunked: bool = False,
    max_cross: int | None = None,
    is_symmetric: bool = True,
) -> Iterator[Any]:
    return _run_functions("closest", locals(), {"pmf_threshold": float(pmf_threshold)})


def bootstrap_tracking(
    seed_positions: Any,
    sc: Any,
    affine: Any,
    *,
    seed_directions: Any = None,
    data: Any = None,
    model: Any = None,
    sh: Any = None,
    sf: Any = None,
    min_len: float = 2,
    max_len: float = 500,
    step_size: float = 0.5,
    voxel_size: Any = None,
    max_angle: float = 60,
    pmf_threshold: float = 0.1,
    sphere: Any = None,
    basis_type: str | None = None,
    legacy: bool = True,
    nbr_threads: int = 0,
    random_seed: int = 0,
    seed_buffer_fraction: float = 1.0,
    return_all: bool = True,
    save_seeds: bool = False,
    backend: str = "auto",
    chunk_size: int | None = None,
    chunked: bool = False,
    max_cross: int | None = None,
    is_symmetric: bool = True,
) -> Iterator[Any]:
    """Residual bootstrap on a q-ball model.

    Parameters
    ----------
    data : array of shape (x, y, z, volumes)
        The diffusion series.
    model : OpdtModel or CsaOdfModel
        Gradients, degree and smallest signal are taken from it; smoothing, which it does not keep, is 0.006.
    seed_positions, sc, affine, **others
        As of `probabilistic_tracking`.

    Returns
    -------
    iterator
        Arrays of shape (points, 3), float64, world space.
    """
    given = locals()
    if data is None or model is None:
        raise InvalidArgumentError("data and model are needed: the signals are resampled")
    name = {"OpdtModel": "opdt", "CsaOdfModel": "csa"}.get(type(model).__name__)
    if name is None:
        raise UnavailableError(f"model: a {type(model).__name__} is not resampled; accepted are OpdtModel and CsaOdfModel")
    values = np.asarray(data)
    field = {
        "data": values,
        "gtab": model.gtab,
        "model": name,
        "sh_order": int(model.sh_order_max),
        "min_signal": repr(float(model.min_signal)),
        "mask": np.ones(values.shape[:3], dtype=np.uint8),
        "bvec_frame": "voxel",
    }
    if sphere is not None:
        vertices = _arrays.sphere_rows(sphere)
        field["sphere"] = vertices[_half(vertices)] if _is_whole(vertices) else vertices
    return _run("boot", given, field, values.shape[:3], {})


def eudx_tracking(*arguments: Any, **keywords: Any) -> Iterator[Any]:
    """EuDX: refused by name.

    Parameters
    ----------
    *arguments, **keywords
        Those of DIPY.

    Returns
    -------
    iterator
        Never.
    """
    raise UnavailableError(
        "eudx_tracking: Cingulum has no EuDX; closestpeak_tracking follows the nearest peak of a function, and "
        "cingulum.track(peaks=pam, dg='closest') that of given peaks"
    )


def pft_tracking(*arguments: Any, **keywords: Any) -> Iterator[Any]:
    """Particle filtering: refused by name.

    Parameters
    ----------
    *arguments, **keywords
        Those of DIPY.

    Returns
    -------
    iterator
        Never.
    """
    raise UnavailableError("pft_tracking: Cingulum has no particle filtering; probabilistic_tracking with the tissue map as sc is nearest")


for _function, _summary, _more in (
    (probabilistic_tracking, "Probabilistic tracking: directions drawn in proportion to the amplitudes.", ""),
    (deterministic_tracking, "Deterministic tracking: the largest amplitude in the cone.", ""),
    (
        ptt_tracking,
        "Parallel transport tractography.",
        "\n    probe_length, probe_radius, probe_quality, probe_count, data_support_exponent : float\n        As of DIPY; mm.",
    ),
    (closestpeak_tracking, "The peak that is nearest to the direction of travel.", ""),
):
    _function.__doc__ = f"{_summary}\n{_PARAMETERS.format(field=_FIELD, more=_more)}"
