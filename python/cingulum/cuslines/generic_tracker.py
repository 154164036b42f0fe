"""The tracker and the direction getters, for every backend."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _arrays
from .._errors import InvalidArgumentError, InvalidStateError, UnavailableError
from .._track import Tracker
from .._tractogram import Tractogram

_PMF_THRESHOLD = 0.05
_MOST_STEPS = 500  # of a half


class GPUDirectionGetter:
    """What all direction getters are."""

    _getter: ClassVar[str] = ""

    def _options(self, tracker: GenericTracker) -> dict[str, Any]:
        raise NotImplementedError


class ProbDirectionGetter(GPUDirectionGetter):
    """Directions drawn in proportion to the amplitudes."""

    _getter = "prob"

    def _options(self, tracker: GenericTracker) -> dict[str, Any]:
        return {"pmf_threshold": _PMF_THRESHOLD}


class PttDirectionGetter(GPUDirectionGetter):
    """Parallel transport.

    Parameters
    ----------
    odf_lut_res : int
        Ignored: there is no table.
    probe_length : float
        Between two points of a probe; voxels.
    target_short_step : float
        Length of an internal step, about; voxels.
    probe_quality : int
        Points of a probe behind its first.
    """

    _getter = "ptt"

    def __init__(
        self,
        odf_lut_res: int = 128,
        probe_length: float = 0.25,
        target_short_step: float = 0.025,
        probe_quality: int = 8,
    ):
        self.odf_lut_res = odf_lut_res
        self.probe_length = float(probe_length)
        self.target_short_step = float(target_short_step)
        self.probe_quality = int(probe_quality)

    def _options(self, tracker: GenericTracker) -> dict[str, Any]:
        return {
            "pmf_threshold": _PMF_THRESHOLD,
            "ptt_probe_length": f"{self.probe_quality * self.probe_length!r}vox",
            "ptt_probe_quality": self.probe_quality + 1,
            "ptt_substeps": max(1, round(tracker.step_size / self.target_short_step)),
        }


class BootDirectionGetter(GPUDirectionGetter):
    """Residual bootstrap of OPDT or CSA; made by `from_dipy_opdt` and `from_dipy_csa`.

    Parameters
    ----------
    model_type : str
        ``"OPDT"`` or ``"CSA"``.
    min_signal : float
        Smaller signals count as this.
    H, R, delta_b, delta_q, sampling_matrix, b0s_mask
        Matrices of cuslines. They do not say which gradients they were made of, which Cingulum needs: such a getter
        is refused when it is to track.
    """

    _getter = "boot"

    def __init__(
        self,
        model_type: str,
        min_signal: float,
        H: Any,
        R: Any,
        delta_b: Any,
        delta_q: Any,
        sampling_matrix: Any,
        b0s_mask: Any,
    ):
        if str(model_type).upper() not in {"OPDT", "CSA"}:
            raise InvalidArgumentError(f"model_type: {model_type!r} is neither OPDT nor CSA", argument="model_type")
        self.model_type = str(model_type).upper()
        self.min_signal = float(min_signal)
        self.H, self.R, self.delta_b, self.delta_q = H, R, delta_b, delta_q
        self.sampling_matrix, self.b0s_mask = sampling_matrix, b0s_mask
        self._gtab: Any = None
        self._sh_order = 0
        self._sh_lambda = 0.006

    @classmethod
    def _from_dipy(cls, model: str, gtab: Any, sh_order_max: int, full_basis: bool, sh_lambda: float, min_signal: float) -> BootDirectionGetter:
        if full_basis:
            raise UnavailableError("full_basis: the bootstrap is of even degrees alone", argument="full_basis")
        made = cls(model, min_signal, None, None, None, None, None, np.asarray(gtab.b0s_mask))
        made._gtab, made._sh_order, made._sh_lambda = gtab, int(sh_order_max), float(sh_lambda)
        return made

    @classmethod
    def from_dipy_opdt(
        cls, gtab: Any, sphere: Any, sh_order_max: int = 6, full_basis: bool = False, sh_lambda: float = 0.006, min_signal: float = 1
    ) -> BootDirectionGetter:
        """Of the orientation probability density transform; arguments as of DIPY's OpdtModel."""
        return cls._from_dipy("OPDT", gtab, sh_order_max, full_basis, sh_lambda, min_signal)

    @classmethod
    def from_dipy_csa(
        cls, gtab: Any, sphere: Any, sh_order_max: int = 6, full_basis: bool = False, sh_lambda: float = 0.006, min_signal: float = 1
    ) -> BootDirectionGetter:
        """Of constant solid angle; arguments as of DIPY's CsaOdfModel."""
        return cls._from_dipy("CSA", gtab, sh_order_max, full_basis, sh_lambda, min_signal)

    def _options(self, tracker: GenericTracker) -> dict[str, Any]:
        if self._gtab is None:
            raise UnavailableError(
                "dg: matrices do not say of which gradients they are; make the getter by from_dipy_opdt or from_dipy_csa"
            )
        return {
            "model": self.model_type.lower(),
            "sh_order": self._sh_order,
            "sm_lambda": self._sh_lambda,
            "min_signal": repr(self.min_signal),
            "bvec_frame": "voxel",
            "mask": np.ones(tracker.metric_map.shape, dtype=np.uint8),
        }


class GenericTracker:
    """Tracks amplitudes (prob, ptt) or a diffusion series (boot). A context manager.

    Parameters
    ----------
    dg : ProbDirectionGetter, PttDirectionGetter or BootDirectionGetter
        How directions are chosen.
    dataf : array of shape (x, y, z, n)
        Amplitudes on the sphere; for boot the series.
    stop_map : array of shape (x, y, z)
        Tracked where it is above the threshold.
    stop_threshold : float
        The threshold.
    sphere_vertices, sphere_edges : array
        The sphere.
    sphere_symm : bool
        Whether the sphere is one half of a symmetric one. A whole sphere whose amplitudes are equal in opposite
        directions is folded; asymmetric amplitudes keep both.
    max_angle : float
        Radians.
    step_size : float
        Of the smallest edge of a voxel.
    min_pts, max_pts : int
        Streamlines with fewer or more points are left out.
    relative_peak_thresh, min_separation_angle : float
        Of peaks at the seeds; the angle in radians.
    ngpus : int
        GPUs that share the seeds.
    rng_seed : int
        The key of the run.
    rng_offset : int
        Kept, and without effect.
    chunk_size : int
        Seeds at a time; the result does not depend on it.
    """

    _device: ClassVar[str] = "auto"
    angular_weight: ClassVar[float] = 0.0

    def __init__(
        self,
        dg: GPUDirectionGetter,
        dataf: Any,
        stop_map: Any,
        stop_threshold: float,
        sphere_vertices: Any,
        sphere_edges: Any,
        sphere_symm: bool = False,
        max_angle: float = math.radians(60),
        step_size: float = 0.5,
        min_pts: float = 0,
        max_pts: float = np.inf,
        relative_peak_thresh: float = 0.25,
        min_separation_angle: float = math.radians(45),
        ngpus: int = 1,
        rng_seed: int = 0,
        rng_offset: int = 0,
        chunk_size: int = 25000,
    ):
        self.dg = dg
        self.dataf = np.asarray(dataf)
        if self.dataf.ndim != 4:
            raise InvalidArgumentError(f"dataf: {self.dataf.ndim} dimensions; four are needed", argument="dataf")
        self.metric_map = np.asarray(stop_map)
        self.tc_threshold = float(stop_threshold)
        self.sphere_vertices = _arrays.rows("sphere_vertices", sphere_vertices)
        self.sphere_edges = np.asarray(sphere_edges)
        self.nedges = len(self.sphere_edges)
        self.samplm_nr = len(self.sphere_vertices)
        self.dimx, self.dimy, self.dimz, self.dimt = self.dataf.shape
        self.sphere_symm = bool(sphere_symm)
        self.max_angle = float(max_angle)
        self.step_size = float(step_size)
        self.min_pts, self.max_pts = min_pts, max_pts
        self.relative_peak_thresh = float(relative_peak_thresh)
        self.min_separation_angle = float(min_separation_angle)
        self.ngpus = int(ngpus)
        self.rng_seed, self.rng_offset = int(rng_seed), int(rng_offset)
        self.chunk_size = int(chunk_size)
        self.seed_propagator: SeedBatchPropagator | None = None
        self._prepared: tuple[Any, Tracker] | None = None
        self.set_compression_parameters()
        if dg._getter != "boot" and self.dimt != self.samplm_nr:
            raise InvalidArgumentError(
                f"dataf: its last axis has {self.dimt} entries, the sphere {self.samplm_nr} directions", argument="dataf"
            )

    def set_compression_parameters(
        self,
        pos_dtype: npt.DTypeLike = np.float32,
        linearize: bool = False,
        tol_error: float = 0.1,
        max_segment_length: float = 10,
    ) -> None:
        """How `generate_trx` stores points: their type, and whether points near a line are left out (mm)."""
        self.pos_dtype = np.dtype(pos_dtype)
        self.linearize = bool(linearize)
        self.tol_error = float(tol_error)
        self.max_segment_length = float(max_segment_length)

    def __enter__(self) -> GenericTracker:
        self.seed_propagator = SeedBatchPropagator(self, self.min_pts, self.max_pts)
        return self

    def __exit__(self, *_: object) -> None:
        self.seed_propagator = None
        self._prepared = None

    def _field(self) -> dict[str, Any]:
        from ..dipy import _half, _is_whole

        vertices = self.sphere_vertices
        whole = not self.sphere_symm and _is_whole(vertices)
        if self.dg._getter == "boot":
            return {"sphere": vertices[_half(vertices)] if whole else vertices, "gtab": getattr(self.dg, "_gtab", None), "data": self.dataf}
        if not whole:
            return {"sf": self.dataf, "sphere": vertices}
        opposite = np.argmin(vertices @ vertices.T, axis=1)
        if np.allclose(self.dataf, self.dataf[..., opposite], rtol=1e-5, atol=1e-8):
            kept = _half(vertices)
            return {"sf": self.dataf[..., kept], "sphere": vertices[kept]}
        return {"sf": self.dataf, "sphere": vertices, "full_sphere": True}

    def _arguments(self, seeds: Any, affine: npt.NDArray[np.float64]) -> dict[str, Any]:
        points = {"min_points": int(self.min_pts)} if self.min_pts > 0 else {}
        if np.isfinite(self.max_pts):
            points["max_points"] = int(self.max_pts)
        return {
            **self._field(),
            **self.dg._options(self),
            **points,
            "affine": affine,
            "dg": self.dg._getter,
            "preset": "cuslines",
            "stop_map": self.metric_map,
            "stop_threshold": self.tc_threshold,
            "stop_rule": "trilinear",
            "max_angle": math.degrees(self.max_angle),
            "step_size": f"{self.step_size!r}vox",
            "min_length": 0,
            "max_length": f"{2 * _MOST_STEPS * self.step_size!r}vox",
            "relative_peak_threshold": self.relative_peak_thresh,
            "min_separation_angle": math.degrees(self.min_separation_angle),
            "angular_weight": float(self.angular_weight),
            "seeds": _arrays.rows("seeds", seeds),
            "seed_space": "voxel",
            "seed": self.rng_seed,
            "chunk_size": self.chunk_size,
            "ngpus": self.ngpus,
            "device": self._device,
            "progress": False,
        }

    def _reference(self, ref_img: Any) -> npt.NDArray[np.float64]:
        if tuple(ref_img.shape[:3]) != self.metric_map.shape:
            raise InvalidArgumentError(
                f"ref_img: its shape is {tuple(ref_img.shape[:3])}, that of the data {self.metric_map.shape}", argument="ref_img"
            )
        return np.asarray(ref_img.affine, dtype=np.float64)

    def _track(self, seeds: Any, affine: npt.NDArray[np.float64], **more: Any) -> Tractogram:
        """The field is prepared by the first call, and again where something that it depends on was changed."""
        depends = (
            *(id(held) for held in (self.dg, self.dataf, self.metric_map, self.sphere_vertices)),
            *(self.sphere_symm, self.tc_threshold, self.step_size, self.max_angle, self.relative_peak_thresh),
            *(self.min_separation_angle, self.min_pts, self.max_pts, self.rng_seed, self.chunk_size, self.ngpus),
            *(self.angular_weight, affine.tobytes()),
        )
        if self._prepared is None or self._prepared[0] != depends:
            self._prepared = None  # before another is made: fields are large
            arguments = self._arguments(seeds, affine)
            made = Tracker(arguments.pop("data", None), arguments.pop("gtab", None), **arguments)
            self._prepared = (depends, made)
        return self._prepared[1].track(seeds=_arrays.rows("seeds", seeds), seed_space="voxel", progress=False, **more)

    def generate_sft(self, seeds: Any, ref_img: Any) -> Any:
        """Tracks seeds (voxel space) and gives a StatefulTractogram of DIPY in voxel space, origin at the centre."""
        made = self._track(seeds, self._reference(ref_img))
        made.data = {}
        stateful = made.to_sft()
        stateful.to_vox()
        stateful.to_center()
        return stateful

    def generate_trx(self, seeds: Any, ref_img: Any) -> Any:
        """Tracks seeds (voxel space) and gives a TrxFile of trx-python in world space."""
        more: dict[str, Any] = {}
        if self.pos_dtype == np.float16:
            more["float16"] = True
        elif self.pos_dtype == np.float64:
            more["float64"] = True
        elif self.pos_dtype != np.float32:
            raise InvalidArgumentError(f"pos_dtype: {self.pos_dtype} is none of float16, float32 and float64")
        if self.linearize:
            more["linearise"] = self.tol_error
            more["max_segment_length"] = self.max_segment_length
        made = self._track(seeds, self._reference(ref_img), **more)
        made.data = {}
        return made.to_trx()


class SeedBatchPropagator:
    """Streamlines of a batch of seeds in voxel space.

    Parameters
    ----------
    gpu_tracker : GenericTracker
        The tracker.
    minlen, maxlen : int
        Points, at least and at most.

    Attributes
    ----------
    nSlines : int
        Streamlines of the last batch.
    slines : array of shape (points, 3)
        Their points.
    sline_lens : array of int
        Points of each.
    """

    def __init__(self, gpu_tracker: GenericTracker, minlen: float = 0, maxlen: float = np.inf):
        self.gpu_tracker = gpu_tracker
        self.minlen, self.maxlen = minlen, maxlen
        self._made: Tractogram | None = None

    def propagate(self, seeds: Any) -> None:
        """Tracks the seeds."""
        points = {"min_points": int(self.minlen)} if self.minlen > 0 else {}
        if np.isfinite(self.maxlen):
            points["max_points"] = int(self.maxlen)
        self._made = self.gpu_tracker._track(seeds, np.eye(4), **points)

    def _result(self) -> Tractogram:
        if self._made is None:
            raise InvalidStateError("propagate() comes first")
        return self._made

    @property
    def nSlines(self) -> int:
        return len(self._result())

    @property
    def slines(self) -> npt.NDArray[Any]:
        return self._result().positions

    @property
    def sline_lens(self) -> npt.NDArray[np.int64]:
        return np.diff(self._result().offsets).astype(np.int64)

    def get_buffer_size(self) -> int:
        """Megabytes of the points, rounded up."""
        return math.ceil(self._result().positions.nbytes / 1e6)

    def as_generator(self) -> Iterator[npt.NDArray[Any]]:
        """One streamline after the other."""
        return iter(self._result())

    def as_array_sequence(self) -> Any:
        """A nibabel ArraySequence."""
        return self._result().streamlines


__all__ = [
    "BootDirectionGetter",
    "GPUDirectionGetter",
    "GenericTracker",
    "ProbDirectionGetter",
    "PttDirectionGetter",
    "SeedBatchPropagator",
]
