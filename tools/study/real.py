"""A real series, of which no truth is known: the share of long streamlines whose both ends reach the border of white
matter, beside MRtrix3's iFOD2 where tckgen is there.

White matter is defined by tissue rather than by a tracker's rule. FA is averaged over 3 x 3 x 3 voxels, so that a hole of
a crossing or a speck of noise makes no border; white is where the mean is above a threshold and the mean diffusivity below
1.1e-3 mm^2/s (fluid is above), the largest piece that hangs together by faces, with what it encloses. The border is every
voxel that touches (by a face, an edge or a corner) both white matter and what is neither white nor fluid: an end counts
when it lies in such a voxel, so within one voxel of the surface, and an end at a ventricle does not.

Two thresholds are measured and shown, since the answer depends on them: Otsu's, which is the data's own, and 0.2, which is
also where several candidates stop.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

from . import design, tables
from .images import grown, grown_by_faces, lengths, read_image, read_streamlines
from .program import Failed, TooLong
from .results import key_of

THRESHOLDS = {"otsu": None, "fa 0.2": 0.2}
FLUID_MD = 1.1e-3
LONG_MM = 20
KEPT = 5000
KEY = 1


def mean27(values):
    """Mean over 3 x 3 x 3 voxels, the image repeated at its faces."""
    for axis in range(3):
        padding = [(0, 0)] * 3
        padding[axis] = (1, 1)
        padded = np.pad(values, padding, mode="edge")
        count = values.shape[axis]
        values = sum(np.take(padded, range(i, i + count), axis=axis) for i in range(3)) / 3
    return values


def reached_from(start, where):
    """All of `where` that hangs together with `start` by faces."""
    found = start & where
    while True:
        more = grown_by_faces(found) & where
        if np.array_equal(more, found):
            return found
        found = more


def largest_piece(volume):
    left, best = volume.copy(), np.zeros_like(volume)
    while left.sum() > best.sum():
        start = np.zeros_like(volume)
        start[tuple(np.argwhere(left)[0])] = True
        piece = reached_from(start, left)
        left &= ~piece
        if piece.sum() > best.sum():
            best = piece
    return best


def otsu(values):
    """The threshold between two classes of the greatest variance between them (Otsu 1979), on 256 bins."""
    counts, edges = np.histogram(values, 256)
    middles = (edges[1:] + edges[:-1]) / 2
    below, sums = np.cumsum(counts), np.cumsum(counts * middles)
    between = (sums[-1] / below[-1] * below - sums) ** 2 / np.maximum(below * (below[-1] - below), 1)
    return float(edges[between.argmax() + 1])


def white_matter(fa, md, mask, threshold=None):
    """White matter and the voxels of its border; by Otsu's threshold unless one is given."""
    mask = mask > 0
    fluid = mask & (md >= FLUID_MD)
    mean = mean27(np.where(mask, fa, 0))
    white = largest_piece(mask & (mean > (otsu(mean[mask]) if threshold is None else threshold)) & ~fluid)
    faces = np.ones_like(white)
    faces[1:-1, 1:-1, 1:-1] = False
    outside = reached_from(faces, ~white)
    white = ~outside & ~fluid
    other = ~white & ~fluid
    return white, grown(white) & grown(other)


def measure_ends(points, begins, affine, tissues):
    """Shares among streamlines of LONG_MM and more: both ends, one or both, at the border. `tissues`: white matter and
    its border, by the name of the threshold."""
    length = lengths(points, begins)
    long = length >= LONG_MM - 1e-3
    first, last = points[begins[:-1][long]], points[begins[1:][long] - 1]
    inverse = np.linalg.inv(affine)
    count = max(int(long.sum()), 1)
    found = {"kept": len(length), "mean_length_mm": float(length.mean()) if len(length) else 0.0,
             "long_share": float(long.mean()) if len(length) else 0.0, "borders": {}}
    for name, (white, border) in tissues.items():
        def at_border(ends):
            voxels = np.floor(ends @ inverse[:3, :3].T + inverse[:3, 3] + 0.5).astype(int)
            inside = np.all((voxels >= 0) & (voxels < border.shape), axis=1)
            met = np.zeros(len(ends), dtype=bool)
            met[inside] = border[tuple(voxels[inside].T)]
            return met

        a, b = at_border(first), at_border(last)
        found["borders"][name] = {
            "both_ends_share": float((a & b).sum() / count), "one_end_share": float((a | b).sum() / count),
            "white_voxels": int(white.sum()), "chance": float((border & white).sum() / max(white.sum(), 1))}
    return found


def short_list(study, getter):
    """The program as it is typed, where the study began, what was named, and what the study chose."""
    scored = [row for row in study.results.good(study.program.version) if row["stage"] in design.STAGES]
    found = tables.compared(scored, getter)
    chosen = found.chosen(tables.is_allowed(scored, getter, study.limits)) if found.names else None
    listed = [{}, *design.ANCHORS[getter], *study.also.get(getter, [])]
    return design.unique(listed + ([tables.options_of(scored, getter)[chosen]] if chosen is not None else []))


def prepared(study, folder, frame):
    """The folder of fits, as a condition has it."""
    out = study.work / "real" / folder.name
    if out.exists():
        return out
    masks = sorted(folder.glob("*mask*.nii.gz"))
    if not masks:
        raise Failed(f"{folder} holds no mask: a file *mask*.nii.gz is needed")
    out.parent.mkdir(parents=True, exist_ok=True)
    making = pathlib.Path(tempfile.mkdtemp(prefix=".real-", dir=out.parent))
    try:
        # The response of a brain comes from its middle, as `track` takes it.
        study.program.fit(folder / "dwi.nii.gz", folder / "dwi.bval", folder / "dwi.bvec", frame, masks[0], making,
                          radius=10)
        making.rename(out)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    return out


def ifod2(folder, out, threads):
    command = ["tckgen", str(folder / "fod.nii"), str(out), "-algorithm", "iFOD2", "-seed_image",
               str(folder / "mask.nii.gz"), "-mask", str(folder / "mask.nii.gz"), "-select", str(KEPT), "-seeds",
               str(KEPT * design.SEEDS_PER_KEPT), "-nthreads", str(threads), "-force", "-quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MRTRIX_RNG_SEED": str(KEY)})
    if done.returncode != 0:
        raise Failed(f"tckgen: exit {done.returncode}: {done.stderr.strip()}")


def run(study, getters, folder, frame):
    fits = prepared(study, folder, frame)
    fa, affine = read_image(fits / "fa.nii")
    md, mask = read_image(fits / "md.nii")[0], read_image(fits / "mask.nii.gz")[0]
    tissues = {name: white_matter(fa, md, mask, threshold) for name, threshold in THRESHOLDS.items()}
    items = [(getter, options) for getter in getters for options in short_list(study, getter)]
    if shutil.which("tckgen") is None:
        study.say("tckgen is not installed: the row of MRtrix3's iFOD2 is left out")
    else:
        items.append(("MRtrix3 iFOD2", {}))
    name = f"real {folder.name}, {KEPT} kept"

    def one_run(item):
        getter, options, key = item
        row = {"key": key, "stage": "real", "getter": getter, "condition": name, "group": "real",
               "candidate": design.candidate_name(options), "options": options, "select": KEPT,
               "program": study.program.version}
        with tempfile.TemporaryDirectory(dir=study.scratch) as temporary:
            try:
                if getter in design.GETTERS:
                    out = pathlib.Path(temporary) / "tracks.trx"
                    study.program.track(getter, options, fits, KEPT, out, True, frame, KEY)
                else:
                    out = pathlib.Path(temporary) / "tracks.tck"
                    ifod2(fits, out, study.jobs)
                return {**row, **measure_ends(*read_streamlines(out), affine, tissues)}
            except TooLong as slow:
                return {**row, "error": str(slow), "too_long": True}
            except Failed as failed:
                return {**row, "error": str(failed)}

    pending = [(getter, options, key_of(name, getter, options, study.program.version)) for getter, options in items]
    pending = [item for item in pending if not study.results.is_done(item[2])]
    study.say(f"{name}: {len(items) - len(pending)} of {len(items)} runs are there")
    for row in study.in_parallel(one_run, pending):
        study.results.add(row)
        study.say(f"  {row['getter']} {row['candidate']}: " +
                  (row["error"] if "error" in row else "both ends at the border " + ", ".join(
                      f"{values['both_ends_share']:.3f} ({threshold})" for threshold, values in row["borders"].items())))
