"""Streamlines in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, overload

from . import _native
from ._errors import InvalidStateError, refused
from ._numpy import np, npt
from ._talk import Progress, settle_progress

# What a run notes of every streamline; in files only where the run was asked to (save_seeds).
_SEED_FIELDS = ("seed_index", "seed_point", "end_reason")


class Tractogram:
    """Streamlines, what is known of each, and how they were made.

    Parameters
    ----------
    positions : array of shape (points, 3)
        World coordinates, RAS+ in millimetres, of all points: float32, float64 or float16.
    offsets : array of shape (streamlines + 1,)
        Where each streamline begins in `positions`, and the number of points.
    affine : array of shape (4, 4), optional
        From voxels of the image that was tracked to the world.
    shape : tuple of int, optional
        Of that image.
    data : mapping, optional
        Arrays with a row per streamline.
    sidecar : dict, optional
        Every parameter of the run, the hashes of its inputs and its counts, as in the JSON file beside a tractogram.

    Notes
    -----
    `streamlines`, `tractogram[i]` and slices without a step are views of the same memory.
    """

    def __init__(
        self,
        positions: npt.ArrayLike,
        offsets: npt.ArrayLike,
        *,
        affine: npt.ArrayLike | None = None,
        shape: tuple[int, int, int] | None = None,
        data: Mapping[str, npt.ArrayLike] | None = None,
        sidecar: dict[str, Any] | None = None,
    ):
        points = np.asanyarray(positions)
        if points.dtype not in (np.float16, np.float32, np.float64):
            points = points.astype(np.float32)
        points = points.astype(points.dtype.newbyteorder("="), copy=False)
        if points.ndim != 2 or points.shape[1] != 3:
            raise refused("positions", f"its shape is {points.shape}; accepted is (n, 3)")
        self.positions: npt.NDArray[Any] = points
        starts = np.asarray(offsets)
        if starts.ndim != 1 or len(starts) == 0 or not np.issubdtype(starts.dtype, np.integer):
            raise refused("offsets", "one whole number per streamline and one more are needed")
        if starts[0] != 0 or starts[-1] != len(points) or (np.diff(starts.astype(np.int64)) < 0).any():
            raise refused("offsets", f"they must rise from 0 to the number of points, {len(points)}")
        self.offsets: npt.NDArray[np.uint64] = np.ascontiguousarray(starts, dtype=np.uint64)
        self.affine: npt.NDArray[np.float64] | None = None if affine is None else np.asarray(affine, dtype=np.float64)
        self.shape: tuple[int, int, int] | None = None if shape is None else (int(shape[0]), int(shape[1]), int(shape[2]))
        self.data: dict[str, npt.NDArray[Any]] = {}
        for name, value in (data or {}).items():
            column = np.asarray(value)
            if column.ndim == 1:
                column = column[:, None]
            if column.ndim != 2 or len(column) != len(self):
                raise refused("data", f"'{name}' has the shape {column.shape}; a row per streamline is needed")
            self.data[name] = column
        self.sidecar: dict[str, Any] = sidecar or {}

    @classmethod
    def _of_native(cls, made: Mapping[str, Any]) -> Tractogram:
        positions = made["positions"]
        if positions.dtype == np.uint16:
            positions = positions.view(np.float16)
        data = {}
        for name, value in made["data"].items():
            if isinstance(value, tuple):  # of a file: type, columns, bytes
                kind, columns, raw = value
                value = raw.view(np.dtype("uint8" if kind == "bool" else kind)).reshape(len(raw), columns)
            data[name] = value
        geometry = made.get("geometry")
        affine = shape = None
        if geometry is not None:
            affine = np.vstack([np.asarray(geometry["affine"]).reshape(3, 4), [0, 0, 0, 1]])
            shape = tuple(geometry["shape"])
        text = made.get("sidecar")
        return cls(
            positions, made["offsets"], affine=affine, shape=shape, data=data, sidecar=json.loads(text) if text else None
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, progress: Progress | bool | None = None) -> Tractogram:
        """Reads a TRX, TRK or TCK file, and its sidecar where there is one.

        Parameters
        ----------
        path : path
            The file.
        progress : callable, bool or None
            As for `track`.

        Returns
        -------
        Tractogram
        """
        return cls._of_native(_native.read_tractogram(os.fsdecode(os.fspath(path)), settle_progress(progress)))

    # --- what is in it

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        for i in range(len(self)):
            yield self[i]

    @overload
    def __getitem__(self, index: int) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice | list[int] | npt.NDArray[Any]) -> Tractogram: ...
    def __getitem__(self, index: Any) -> Any:
        """One streamline as an array, or a tractogram of some: by slice, list of numbers or array of bool."""
        if isinstance(index, (int, np.integer)):
            at = int(index) + (len(self) if index < 0 else 0)
            if not 0 <= at < len(self):
                raise IndexError(f"streamline {index} of {len(self)}")
            return self.positions[int(self.offsets[at]) : int(self.offsets[at + 1])]
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(len(self))
            stop = max(start, stop)
            first, last = int(self.offsets[start]), int(self.offsets[stop])
            positions = self.positions[first:last]
            offsets = self.offsets[start : stop + 1] - self.offsets[start]
            data = {name: value[start:stop] for name, value in self.data.items()}
        else:
            chosen = np.arange(len(self))[index]
            lengths = np.diff(self.offsets)[chosen]
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
            places = np.repeat(self.offsets[chosen] - offsets[:-1], lengths.astype(np.int64))
            positions = self.positions[(places + np.arange(int(offsets[-1]), dtype=np.uint64)).astype(np.int64)]
            data = {name: value[chosen] for name, value in self.data.items()}
        return Tractogram(
            positions, offsets, affine=self.affine, shape=self.shape, data=data, sidecar=self.sidecar
        )

    @property
    def streamlines(self) -> Any:
        """A nibabel ArraySequence over the same memory."""
        from nibabel.streamlines.array_sequence import ArraySequence

        sequence = ArraySequence()
        sequence._data = self.positions
        sequence._offsets = self.offsets[:-1].astype(np.int64)
        sequence._lengths = np.diff(self.offsets).astype(np.int64)
        return sequence

    @property
    def lengths(self) -> npt.NDArray[np.float64]:
        """Length of every streamline in millimetres."""
        if len(self.positions) == 0:
            return np.zeros(len(self))
        steps = np.linalg.norm(np.diff(self.positions.astype(np.float64), axis=0), axis=1)
        sums = np.concatenate([[0.0], np.cumsum(steps), [np.nan]])
        first = self.offsets[:-1].astype(np.int64)
        last = np.maximum(self.offsets[1:].astype(np.int64) - 1, first)
        return np.where(self.offsets[1:] > self.offsets[:-1], sums[last] - sums[np.minimum(first, len(sums) - 1)], 0.0)

    def _field(self, name: str) -> npt.NDArray[Any]:
        if name not in self.data:
            raise InvalidStateError(f"this tractogram has no '{name}': files have it where save_seeds was given")
        return self.data[name]

    @property
    def seeds(self) -> npt.NDArray[Any]:
        """Where each streamline began: world coordinates in millimetres."""
        return self._field("seed_point")

    @property
    def seed_indices(self) -> npt.NDArray[Any]:
        """The number of the seed of each streamline."""
        return self._field("seed_index")[:, 0]

    @property
    def end_reasons(self) -> npt.NDArray[Any]:
        """Why each streamline ended: codes of its start and its end, named by `end_reason_names`."""
        return self._field("end_reason")

    @property
    def end_reason_names(self) -> dict[int, str]:
        """What the codes of `end_reasons` mean."""
        return {int(code): name for code, name in self.sidecar.get("end_reason_codes", {}).items()}

    @property
    def statistics(self) -> dict[str, Any]:
        """Counts of the run: seeds, streamlines, kept, points, lengths, end reasons."""
        return dict(self.sidecar.get("result", {}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tractogram):
            return NotImplemented
        mine = {name: value for name, value in self.sidecar.items() if name != "run"}
        theirs = {name: value for name, value in other.sidecar.items() if name != "run"}
        return (
            np.array_equal(self.offsets, other.offsets)
            and self.positions.dtype == other.positions.dtype
            and np.array_equal(self.positions, other.positions)
            and self.shape == other.shape
            and (self.affine is None) == (other.affine is None)
            and (self.affine is None or np.array_equal(self.affine, other.affine))  # type: ignore[arg-type]
            and self.data.keys() == other.data.keys()
            and all(np.array_equal(value, other.data[name]) for name, value in self.data.items())
            and mine == theirs
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Tractogram: {len(self)} streamlines, {len(self.positions)} points, {self.positions.dtype}>"

    def _repr_html_(self) -> str:
        # Some of many streamlines: the picture is the same, and soon there.
        every = max(1, len(self.positions) // 1_000_000)
        lengths = (self if every == 1 else self[::every]).lengths
        rows = [("streamlines", f"{len(self):,}"), ("points", f"{len(self.positions):,}")]
        if len(lengths):
            rows += [("mean length", f"{lengths.mean():.1f} mm"), ("median length", f"{np.median(lengths):.1f} mm")]
        from ._pictures import bars, views

        cells = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{value}</td></tr>" for name, value in rows)
        drawn = f"{views(self.positions, self.offsets)}<div>{bars(lengths, 'mm')}</div>" if len(lengths) else ""
        return f"<table>{cells}</table>{drawn}"

    # --- elsewhere

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        deflate: bool = False,
        seeds: bool | None = None,
        progress: Progress | bool | None = None,
    ) -> None:
        """Writes a file by its extension, ``.trx``, ``.trk`` or ``.tck``, and the sidecar beside it.

        Parameters
        ----------
        path : path
            The file.
        force : bool, default False
            Replace a file that is there.
        deflate : bool, default False
            Compress the arrays of a TRX archive.
        seeds : bool, optional
            Whether seeds and end reasons are written (TRX). By default where the run was told ``save_seeds=True``, so
            that the file has the bytes that the run itself would have written.
        progress : callable, bool or None
            As for `track`.
        """
        name = os.fsdecode(os.fspath(path))
        options = self.sidecar.get("arguments", {}).get("options", {})
        if seeds is None:
            seeds = bool(options.get("save-seeds", not options))
        data = {
            key: np.ascontiguousarray(value)
            for key, value in self.data.items()
            if seeds or key not in _SEED_FIELDS
        }
        affine = None if self.affine is None else np.ascontiguousarray(self.affine)
        if not name.endswith((".trk", ".trx", ".trx.d", "/")) or affine is None or self.shape is None:
            if not name.endswith(".tck"):
                if affine is None or self.shape is None:
                    raise refused("affine", "TRX and TRK need the affine and the shape of the image")
        if name.endswith((".trk", ".tck")):
            data = {}
        positions = np.ascontiguousarray(self.positions)
        sidecar = json.dumps({key: value for key, value in self.sidecar.items() if key not in _OF_A_FILE})
        _native.write_tractogram(
            name,
            positions,
            self.offsets,
            data,
            self.shape,
            affine,
            sidecar if self.sidecar else "",
            force,
            deflate,
            settle_progress(progress),
        )

    def to_sft(self) -> Any:
        """A StatefulTractogram of DIPY in world space, over the same positions."""
        from dipy.io.stateful_tractogram import StatefulTractogram
        from dipy.io.utils import Space

        if self.affine is None or self.shape is None:
            raise refused("affine", "a StatefulTractogram needs the affine and the shape of the image")
        import nibabel

        header = nibabel.Nifti1Header()
        header.set_data_shape(self.shape)
        header.set_sform(self.affine, code=1)
        header.set_qform(self.affine, code=1)
        header.set_xyzt_units("mm")
        reference = nibabel.Nifti1Image(
            np.broadcast_to(np.zeros(1, np.uint8), self.shape), self.affine, header
        )
        per_streamline = {name: value for name, value in self.data.items()}
        return StatefulTractogram(
            self.streamlines, reference, Space.RASMM, data_per_streamline=per_streamline or None
        )

    def to_trx(self) -> Any:
        """A TrxFile of trx-python."""
        from trx.trx_file_memmap import TrxFile

        if self.affine is None or self.shape is None:
            raise refused("affine", "a TrxFile needs the affine and the shape of the image")
        made: Any = TrxFile(nb_streamlines=len(self), nb_vertices=len(self.positions))
        made.header["VOXEL_TO_RASMM"] = self.affine.astype(np.float32)
        made.header["DIMENSIONS"] = np.asarray(self.shape, dtype=np.uint16)
        made.streamlines._data = self.positions
        made.streamlines._offsets = self.offsets[:-1].astype(np.uint64)
        made.streamlines._lengths = np.diff(self.offsets).astype(np.uint32)
        for name, value in self.data.items():
            made.data_per_streamline[name] = value
        return made


# What a sidecar says of the file beside it.
_OF_A_FILE = frozenset({"file", "bytes", "xxh3_128"})
