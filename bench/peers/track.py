#!/usr/bin/env python3
"""DIPY, MRtrix3, Trekker and cuslines, those that are there, on the data of bench_track and of `cingulum bench track --peers`: the
same function, seeds, mask, stopping map, step and angle.

    track.py sphere FOLDER                                  writes the directions of DIPY's default half sphere
    track.py names                                          prints the names of all rows that there may be
    track.py track FOLDER THREADS ANGLE THRESHOLD FEW MANY OUT [ONLY [SEEDS]]   tracks and writes what it measured as JSON

What runs on processors takes the first SEEDS seeds, cuslines all of the folder. A rate is points over processor time divided by the threads that the peer can use (DIPY's bootstrap: one).
Getters that are slow take the first seeds only; their number stands in the row. DIPY finds the initial directions itself,
as ours does; how fast it is when they are given stands beside it. Where streamlines of one tool are longer than another's,
whole runs do not compare: then the price of a step is the difference between runs of MANY and of FEW steps, in which
beginning a streamline, reading files and starting the program cancel. With FEW = MANY this is left out, and so is what
needs the bench's fixed points. cuslines computes on a GPU: its rate is that of wall time. Trekker runs with its own defaults,
20 arcs per point; how it compares with ours in millimetres is what bench/ptt_beside_trekker.py measures.
"""
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import numpy as np


TREKKER = """
import resource, sys
import nibabel as nib, numpy as np, Trekker
fod, seeds, mask, threads, out = sys.argv[1:]
tracker = Trekker.initialize(fod.encode())
tracker.numberOfThreads(int(threads))
tracker.seed_coordinates(np.loadtxt(seeds).tolist())
tracker.pathway_stop_at_exit(mask.encode())
seconds = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
start = seconds()
lines = tracker.run()
took = seconds() - start
lines = [np.asarray(line, dtype=np.float32).T for line in lines]
nib.streamlines.save(nib.streamlines.Tractogram(lines, affine_to_rasmm=np.eye(4)), out)
print("took", took)
"""


# Who measures which rows.
NAMES = {
    "cuslines": ("cuslines boot OPDT order 4", "cuslines prob on SF", "cuslines ptt on SF"),
    "dipy": ("DIPY prob on SF", "DIPY det on SF", "DIPY ptt on SF", "DIPY boot OPDT order 4"),
    "trekker": ("Trekker ptt",),
    "mrtrix": ("MRtrix3 SD_STREAM", "MRtrix3 iFOD1"),
    "mrtrix_as_typed": ("MRtrix3 as typed",),
}


def processor_seconds():
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class Peers:
    def __init__(self, folder, threads, angle, threshold, steps, only, seeds):
        import nibabel as nib

        self.nib = nib
        self.folder, self.threads, self.angle, self.threshold, self.only = folder, threads, angle, threshold, only
        fa = nib.load(folder / "dti" / "fa.nii.gz")
        self.affine, self.fa = fa.affine, np.asarray(fa.dataobj, dtype=np.float64)
        self.mask = np.asarray(nib.load(folder / "phantom" / "mask.nii.gz").dataobj) > 0
        self.fa[~self.mask] = 0
        self.edges = np.linalg.norm(self.affine[:3, :3], axis=0)
        self.step = 0.5 * self.edges.min()
        voxels = np.loadtxt(folder / "seeds.txt")
        self.all_seeds = voxels @ self.affine[:3, :3].T + self.affine[:3, 3]
        self.world = self.all_seeds[:seeds]
        self.steps = steps
        self.rows = {}

    def wanted(self, name):
        return self.only in name

    def add(self, name, lines, seconds, wall, threads, seeds):
        lengths = np.array([np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in lines])
        points = int(sum(len(line) for line in lines))
        kept = [line for line, length in zip(lines, lengths) if length >= 2]
        path = self.folder / (name.replace(" ", "-") + ".tck")
        self.nib.streamlines.save(self.nib.streamlines.Tractogram(kept, affine_to_rasmm=np.eye(4)), str(path))
        self.rows[name] = {
            "points_per_s_M": points / (seconds / threads) * 1e-6,
            "processor_s": seconds, "wall_s": wall, "threads": threads, "seeds": seeds, "points": points,
            "kept": len(kept), "mean_length_mm": float(lengths[lengths >= 2].mean()) if len(kept) else 0.0,
            "median_length_mm": float(np.median(lengths[lengths >= 2])) if len(kept) else 0.0,
            "file": str(path),
        }

    def measure(self, name, threads, seeds, body):
        if not self.wanted(name):
            return
        start, wall = processor_seconds(), time.perf_counter()
        lines = [np.asarray(line, dtype=np.float32) for line in body()]
        self.add(name, lines, processor_seconds() - start, time.perf_counter() - wall, threads, seeds)

    def price_of_steps(self, name, threads, note, body):
        """`body(steps)` tracks that many steps at most and returns how many points it made, or who counts them untimed."""
        if not self.wanted(name) or self.steps[0] == self.steps[1]:
            return
        seconds, points = [], []
        for steps in self.steps:
            best = np.inf
            for _ in range(3):
                start = processor_seconds()
                made = body(steps)
                best = min(best, processor_seconds() - start)
            seconds.append(best)
            points.append(made() if callable(made) else made)
        self.rows[name]["fixed_points_per_s_M"] = (points[1] - points[0]) / ((seconds[1] - seconds[0]) / threads) * 1e-6
        self.rows[name]["fixed_points"] = points[1] - points[0]
        self.rows[name]["fixed_note"] = note

    def amplitudes(self, sphere):
        from dipy.core.sphere import Sphere
        from dipy.reconst.shm import order_from_ncoef, sh_to_sf

        # Series are in the world's axes, as MRtrix3 has them; DIPY tracks in the image's.
        turned = Sphere(xyz=sphere.vertices @ (self.affine[:3, :3] / self.edges).T)
        sh = np.asarray(self.nib.load(self.folder / "csd" / "fod.nii.gz").dataobj, dtype=np.float64)
        sf = np.zeros(sh.shape[:3] + (len(sphere.vertices),))
        sf[self.mask] = np.maximum(
            sh_to_sf(sh[self.mask], turned, sh_order_max=order_from_ncoef(sh.shape[-1]), basis_type="tournier07",
                     legacy=False), 0)
        return sf

    def series(self):
        """The diffusion series, and its gradients in the image's axes."""
        from dipy.core.gradients import gradient_table

        data = np.asarray(self.nib.load(self.folder / "phantom" / "dwi.nii.gz").dataobj, dtype=np.float64)
        bvecs = np.loadtxt(self.folder / "phantom" / "dwi.bvec").T.copy()
        if np.linalg.det(self.affine[:3, :3]) > 0:
            bvecs[:, 0] *= -1
        return data, gradient_table(np.loadtxt(self.folder / "phantom" / "dwi.bval"), bvecs=bvecs)

    def cuslines(self):
        import cuslines
        from dipy.data import default_sphere

        inverse = np.linalg.inv(self.affine)
        seeds = self.all_seeds @ inverse[:3, :3].T + inverse[:3, 3]

        def boot():
            data, table = self.series()
            return data, cuslines.BootDirectionGetter.from_dipy_opdt(table, default_sphere, sh_order_max=4)

        for name, prepare in (("boot OPDT order 4", boot),
                              ("prob on SF", lambda: (self.amplitudes(default_sphere), cuslines.ProbDirectionGetter())),
                              ("ptt on SF", lambda: (self.amplitudes(default_sphere), cuslines.PttDirectionGetter()))):
            name = f"cuslines {name}"
            if not self.wanted(name):
                continue
            data, getter = prepare()  # compiles, too
            # A tracker of 2.0.0 propagates once; the first opens the device.
            for where in (seeds[:100], seeds):
                with cuslines.GPUTracker(
                        getter, data, self.fa, self.threshold, default_sphere.vertices, default_sphere.edges,
                        max_angle=np.radians(self.angle), step_size=0.5, relative_peak_thresh=0.25,
                        min_separation_angle=np.radians(45), ngpus=1, rng_seed=1, chunk_size=len(where)) as gpu:
                    start = time.perf_counter()
                    gpu.seed_propagator.propagate(where)
                    seconds = time.perf_counter() - start
                    lines = [np.array(line) for line in gpu.seed_propagator.as_generator()]
                for part in ("H_d", "R_d", "delta_b_d", "delta_q_d", "b0s_mask_d", "sampling_matrix_d"):
                    if hasattr(getter, part):
                        getattr(getter, part).clear()
            world = [line @ self.affine[:3, :3].T + self.affine[:3, 3] for line in lines]
            self.add(name, world, seconds, seconds, 1, len(seeds))

    def dipy(self):
        from dipy.data import default_sphere
        from dipy.tracking import tracker
        from dipy.tracking.stopping_criterion import ThresholdStoppingCriterion

        criterion = ThresholdStoppingCriterion(self.fa, self.threshold)
        common = dict(min_len=2, max_len=500, step_size=self.step, max_angle=self.angle, pmf_threshold=0.1,
                      sphere=default_sphere, random_seed=1, nbr_threads=self.threads)
        if any(self.wanted(f"DIPY {name} on SF") for name in ("prob", "det", "ptt")):
            sf = self.amplitudes(default_sphere)
            # The bench's points that have a peak, and its direction there.
            fixed = (self.folder / "fixed_points.txt").exists()
            points = peaks = np.zeros((0, 3))
            if fixed:
                points = np.loadtxt(self.folder / "fixed_points.txt") @ self.affine[:3, :3].T + self.affine[:3, 3]
                peaks = np.loadtxt(self.folder / "fixed_directions.txt")
            ptt = dict(probe_length=1.5, probe_quality=7)
            for name, method, extra, limit in (
                    ("prob", tracker.probabilistic_tracking, {}, None),
                    ("det", tracker.deterministic_tracking, {}, None),
                    ("ptt", tracker.ptt_tracking, ptt, 400)):
                name, seeds, given = f"DIPY {name} on SF", self.world[:limit], points[:limit]

                def track(where, directions):
                    return method(where.copy(), criterion, self.affine, seed_directions=directions, sf=sf, **extra,
                                  **common)

                self.measure(name, self.threads, len(seeds), lambda: track(seeds, None))
                if self.wanted(name) and limit is None and fixed:
                    start = processor_seconds()
                    count = sum(len(line) for line in track(given, peaks[:limit].copy()))
                    self.rows[name]["given_directions_points_per_s_M"] = (
                        count / ((processor_seconds() - start) / self.threads) * 1e-6)
            if self.wanted("DIPY ptt on SF") and fixed:
                from dipy.direction import PTTDirectionGetter
                from dipy.tracking.local_tracking import LocalTracking

                # The compiled tracker leaves out what is longer than max_len and fails on very short ones; the getter
                # in LocalTracking, compiled too but on one thread, takes the steps one is asked for.
                getter = PTTDirectionGetter.from_pmf(
                    sf, max_angle=self.angle, sphere=default_sphere, pmf_threshold=0.1, probe_length=1.5,
                    probe_radius=0, probe_quality=7, probe_count=1, data_support_exponent=1)
                some = min(1000, len(points))
                self.price_of_steps(
                    "DIPY ptt on SF", self.threads,
                    f"from {some} of the fixed points, PTTDirectionGetter on one thread, times {self.threads}",
                    lambda steps: sum(len(line) for line in LocalTracking(
                        getter, criterion, points[:some], self.affine, step_size=self.step, maxlen=steps, minlen=0,
                        random_seed=1, initial_directions=peaks[:some, None, :], unidirectional=True, return_all=True)))
            del sf
        if self.wanted("DIPY boot OPDT order 4"):
            from dipy.direction import BootDirectionGetter
            from dipy.reconst.shm import OpdtModel
            from dipy.tracking.local_tracking import LocalTracking

            data, table = self.series()
            model = OpdtModel(table, sh_order_max=4, smooth=0.006, min_signal=1)
            getter = BootDirectionGetter.from_data(
                data, model, max_angle=self.angle, sphere=default_sphere, sh_order=4, max_attempts=5,
                relative_peak_threshold=0.25, min_separation_angle=45)
            few = min(100, len(self.world))
            self.measure("DIPY boot OPDT order 4", 1, few, lambda: LocalTracking(
                getter, criterion, self.world[:few], self.affine, step_size=self.step, maxlen=500, minlen=2,
                random_seed=1, max_cross=1))

    def passing_voxels(self):
        """A mask of the voxels where the stopping map passes, for tools that take a mask instead."""
        path = self.folder / "passing.nii.gz"
        passing = (self.fa > self.threshold) & self.mask
        self.nib.save(self.nib.Nifti1Image(passing.astype(np.uint8), self.affine), str(path))
        return path

    def trekker(self):
        if not self.wanted("Trekker ptt"):
            return
        import Trekker  # noqa: F401  # here or not; it prints as it runs, and so gets a process of its own

        few = self.world[:1000]
        np.savetxt(self.folder / "trekker-seeds.txt", few)
        out, wall = self.folder / "trekker.tck", time.perf_counter()
        said = subprocess.run(
            [sys.executable, "-c", TREKKER, str(self.folder / "csd" / "fod.nii.gz"), str(self.folder / "trekker-seeds.txt"),
             str(self.passing_voxels()), str(self.threads), str(out)], check=True, capture_output=True, text=True).stdout
        lines = [np.asarray(line) for line in self.nib.streamlines.load(str(out)).streamlines]
        self.add("Trekker ptt", lines, float(said.split("took")[-1]), time.perf_counter() - wall, self.threads, len(few))

    def mrtrix(self):
        if shutil.which("tckgen") is None:
            return
        mask = self.passing_voxels()
        for algorithm in ("SD_STREAM", "iFOD1"):
            name = f"MRtrix3 {algorithm}"
            if not self.wanted(name):
                continue
            out = self.folder / f"{algorithm}.tck"
            start, wall = processor_seconds(), time.perf_counter()
            # MRtrix3 draws its own seeds: as many, in the voxels where ours lie. It stops by FOD amplitude and mask.
            subprocess.run(
                ["tckgen", str(self.folder / "csd" / "fod.nii.gz"), str(out), "-algorithm", algorithm, "-seed_image",
                 str(mask), "-mask", str(mask), "-seeds", str(len(self.world)), "-select", "0", "-step",
                 str(self.step), "-angle", str(self.angle), "-cutoff", "0.02", "-minlength", "2", "-maxlength", "500",
                 "-nthreads", str(self.threads), "-force", "-quiet"], check=True)
            seconds, wall = processor_seconds() - start, time.perf_counter() - wall
            lines = [np.asarray(line) for line in self.nib.streamlines.load(str(out)).streamlines]
            self.add(name, lines, seconds, wall, self.threads, len(self.world))

            def short(steps):
                subprocess.run(
                    ["tckgen", str(self.folder / "csd" / "fod.nii.gz"), str(out), "-algorithm", algorithm,
                     "-seed_image", str(mask), "-mask", str(mask), "-seeds", str(many), "-select", "0", "-step",
                     str(self.step), "-angle", str(self.angle), "-cutoff", "0.02", "-minlength", "0", "-maxlength",
                     str((steps + 0.01) * self.step), "-seed_unidirectional", "-nthreads", str(self.threads), "-force",
                     "-quiet"], check=True)
                return lambda: int(self.nib.streamlines.load(str(out)).streamlines.total_nb_rows)

            many = max(100000, len(self.world))  # enough that reading the image and starting do not hide the steps
            self.price_of_steps(name, self.threads, f"from {many} seeds of its own in the same voxels, one-sided", short)


    def mrtrix_as_typed(self):
        """From the series to streamlines, as its users do it: response, FODs, tckgen with its defaults; all of our seeds, in
        the mask. Files in between are written, as they are by everyone."""
        phantom, out = self.folder / "phantom", self.folder / "as-typed.tck"
        gradients = ["-fslgrad", str(phantom / "dwi.bvec"), str(phantom / "dwi.bval")]
        series = next(phantom / name for name in ("dwi.nii.gz", "dwi.nii") if (phantom / name).exists())
        mask, response, fod = phantom / "mask.nii.gz", self.folder / "typed-response.txt", self.folder / "typed-fod.nii"
        common = ["-force", "-quiet", "-nthreads", str(self.threads)]
        seeds = len(self.all_seeds)
        start, wall = processor_seconds(), time.perf_counter()
        for words in (["dwi2response", "tournier", series, response, "-mask", mask, *gradients],
                      ["dwi2fod", "csd", series, response, fod, "-mask", mask, *gradients],
                      ["tckgen", fod, out, "-seed_image", mask, "-mask", mask, "-seeds", seeds, "-select", "0"]):
            subprocess.run([*map(str, words), *common], check=True)
        seconds, wall = processor_seconds() - start, time.perf_counter() - wall
        lines = [np.asarray(line) for line in self.nib.streamlines.load(str(out)).streamlines]
        self.add("MRtrix3 as typed", lines, seconds, wall, self.threads, seeds)


def main():
    if sys.argv[1] == "names":
        return print("\n".join(name for names in NAMES.values() for name in names))
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "sphere":
        from dipy.data import default_sphere

        text = "".join(" ".join(repr(float(x)) for x in row) + "\n" for row in default_sphere.vertices)
        (folder / "sphere.txt").write_text(text)
        return
    threads, angle, threshold = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
    steps, out = (int(sys.argv[6]), int(sys.argv[7])), sys.argv[8]
    only = sys.argv[9] if len(sys.argv) > 9 else ""
    seeds = int(sys.argv[10]) if len(sys.argv) > 10 else None
    peers = Peers(folder, threads, angle, threshold, steps, only, seeds)
    for part, names in NAMES.items():
        if not any(peers.wanted(name) for name in names):
            continue
        try:
            getattr(peers, part)()
        except Exception as problem:  # what is not installed or fails is left out, the rest counts
            print(f"no rows of {part}: {type(problem).__name__}: {problem}", file=sys.stderr)
    pathlib.Path(out).write_text(json.dumps(peers.rows, indent=2))


if __name__ == "__main__":
    main()
