#!/usr/bin/env python3
"""Many subjects: `cingulum batch` beside a loop of `track`, workers beside each other, DIPY in a pool of processes, `merge`
beside a plain copy, the index of 10 000 subjects, and the cost model of docs/cluster.md. On a GPU (`--device cuda --only gpu`): batch
beside processes of `track` one after another, how busy the device is, what reading alone takes, two workers in half the memory each, and
memory beside what `--explain` says.

    bench/scale.py [--program build/bin/cingulum] [--subjects 24] [--seeds 20000] [--only merge,index,...] [--out FILE.json]

Subjects are the brain phantom in voxels of three sizes and with three numbers of directions, each with noise of its own. All
rows of a part are measured in one run, alternating; of the repetitions the median counts, and the spread stands beside it. The
load of the machine at the beginning of each part stands in the result: on a machine that does other things the figures are of
no use.
"""
import argparse
import gzip
import hashlib
import json
import os
import pathlib
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.pool import ThreadPool

PARTS = ("merge", "index", "batch", "workers", "model", "dipy")
OPTIONS = ["--dg", "prob", "--bvec-frame", "fsl"]

DIPY = """
import sys
import nibabel as nib, numpy as np
from multiprocessing import Pool
from dipy.core.gradients import gradient_table
from dipy.data import default_sphere
from dipy.direction import ProbabilisticDirectionGetter
from dipy.io.gradients import read_bvals_bvecs
from dipy.io.stateful_tractogram import Space, StatefulTractogram
from dipy.io.streamline import save_tractogram
from dipy.reconst.csdeconv import ConstrainedSphericalDeconvModel, auto_response_ssst
from dipy.reconst.dti import TensorModel
from dipy.tracking.local_tracking import LocalTracking
from dipy.tracking.stopping_criterion import ThresholdStoppingCriterion
from dipy.tracking.utils import random_seeds_from_mask


def subject(words):
    base, seeds, out = words
    image = nib.load(base + "_dwi.nii.gz")
    data, affine = np.asarray(image.dataobj), image.affine
    mask = np.asarray(nib.load(base + "_desc-brain_mask.nii.gz").dataobj) > 0
    bvals, bvecs = read_bvals_bvecs(base + "_dwi.bval", base + "_dwi.bvec")
    table = gradient_table(bvals, bvecs=bvecs)
    fa = np.nan_to_num(TensorModel(table).fit(data, mask=mask).fa)
    response, _ = auto_response_ssst(table, data, roi_radii=10, fa_thr=0.7)
    weighted = int((bvals > 50).sum())
    degree = max(l for l in (2, 4, 6, 8) if (l + 1) * (l + 2) // 2 <= weighted)  # as ours lowers it
    fit = ConstrainedSphericalDeconvModel(table, response, sh_order_max=degree).fit(data, mask=mask & (fa > 0.1))
    getter = ProbabilisticDirectionGetter.from_shcoeff(fit.shm_coeff, max_angle=20.0, sphere=default_sphere)
    starts = random_seeds_from_mask(fa > 0.2, affine, seeds_count=int(seeds), seed_count_per_voxel=False, random_seed=1)
    lines = LocalTracking(getter, ThresholdStoppingCriterion(fa, 0.2), starts, affine, step_size=1.0, random_seed=1)
    tractogram = StatefulTractogram(list(lines), image, Space.RASMM)
    save_tractogram(tractogram, out, bbox_valid_check=False)
    return len(tractogram.streamlines)


if __name__ == "__main__":
    processes, seeds, folder, *bases = sys.argv[1:]
    with Pool(int(processes)) as pool:
        jobs = [(base, seeds, f"{folder}/{number}.trk") for number, base in enumerate(bases)]
        print(sum(pool.imap_unordered(subject, jobs)))
"""


def seconds_of(*words, limit=3600):
    """Wall and processor seconds of a process that succeeds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=limit)
    wall = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class GpuWatch:
    """What nvidia-smi says of the first GPU, every 50 ms while the block runs."""

    def __enter__(self):
        words = ["nvidia-smi", "-i", "0", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "-lms", "50"]
        self.child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.samples = []
        self.reader = threading.Thread(target=lambda: self.samples.extend(tuple(map(float, line.split(","))) for line in self.child.stdout))
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.reader.join()

    def busy(self):
        return statistics.mean(sample[0] for sample in self.samples) / 100

    def bytes(self):
        """Above what was taken when the block began."""
        taken = [sample[1] for sample in self.samples]
        return int((max(taken) - taken[0]) * (1 << 20))


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "repetitions": len(values)}


class Scale:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.program = str(pathlib.Path(options.program).resolve())
        self.study = folder / "study"
        self.rows = {}

    def subject(self, number):
        return self.study / f"sub-{number:02}" / "dwi" / f"sub-{number:02}"

    def numbers(self):
        return range(1, self.options.subjects + 1)

    def make_subjects(self):
        """Three sizes of voxels and three numbers of directions, so that the cost model has something to tell apart."""
        for number in self.numbers():
            phantom = self.folder / "phantom"
            voxel, directions = ("3", "3.5", "4")[number % 3], ("32", "64", "96")[number // 3 % 3]
            seconds_of(self.program, "phantom", "--preset", "brain", "--voxel-size", voxel, "--directions", directions, "--b-values", "2000", "--seed", number,
                       "--out", phantom, "--quiet", "--force")
            base = self.subject(number)
            base.parent.mkdir(parents=True)
            for ending in ("nii.gz", "bval", "bvec"):
                shutil.move(phantom / f"dwi.{ending}", f"{base}_dwi.{ending}")
            shutil.move(phantom / "mask.nii.gz", f"{base}_desc-brain_mask.nii.gz")
            shutil.rmtree(phantom)
        (self.study / "dataset_description.json").write_text('{"Name": "phantoms", "BIDSVersion": "1.9.0"}')

    def track_words(self, number, out):
        base = self.subject(number)
        return [self.program, "track", f"{base}_dwi.nii.gz", "--mask", f"{base}_desc-brain_mask.nii.gz", *OPTIONS, "--device", self.options.device, "--nseeds", self.options.seeds, "--out", out,
                "--force", "--quiet"]

    def batch_words(self, out, *more):
        return [self.program, "batch", self.study, out, "participant", *OPTIONS, "--device", self.options.device, "--nseeds", self.options.seeds, "--quiet", "--progress", "none", *more]

    def fresh(self, name):
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        os.sync()
        return path

    def loop(self):
        out = self.fresh("loop")
        out.mkdir()
        start = time.perf_counter()
        for number in self.numbers():
            seconds_of(*self.track_words(number, out / f"{number}.trx"))
        return time.perf_counter() - start

    def loop_of_two(self):
        """Two processes of one thread each, the next as soon as one is done."""
        out = self.fresh("loop")
        out.mkdir()
        words = ["\0".join(map(str, self.track_words(number, out / f"{number}.trx") + ["--threads", "1"])) for number in self.numbers()]
        start = time.perf_counter()
        waiting, running = list(words), []
        while waiting or running:
            while waiting and len(running) < 2:
                running.append(subprocess.Popen(waiting.pop(0).split("\0"), stdout=subprocess.DEVNULL))
            for child in list(running):
                if child.poll() is not None:
                    if child.returncode != 0:
                        raise SystemExit("track failed")
                    running.remove(child)
            time.sleep(0.005)
        return time.perf_counter() - start

    def batch(self, *more):
        return seconds_of(*self.batch_words(self.fresh("out"), *more))[0]

    def workers(self, count):
        out = self.fresh("out")
        start = time.perf_counter()
        children = [subprocess.Popen(list(map(str, self.batch_words(out, "--threads", 1, "--shard", f"{number}/{count}"))), stdout=subprocess.DEVNULL)
                    for number in range(1, count + 1)]
        if any(child.wait() != 0 for child in children):
            raise SystemExit("a worker failed")
        return time.perf_counter() - start

    def measure_batch(self):
        rows = {"loop of track": [], "loop of two tracks of one thread": [], "batch": []}
        for _ in range(self.options.repetitions):
            rows["loop of track"].append(self.loop())
            rows["loop of two tracks of one thread"].append(self.loop_of_two())
            rows["batch"].append(self.batch())
        best = min(statistics.median(rows[name]) for name in rows if name != "batch")
        self.rows["batch"] = {"device": self.options.device, "subjects": self.options.subjects, "seeds": self.options.seeds, "seconds": {name: spread(values) for name, values in rows.items()},
                              "best_loop_over_batch": best / statistics.median(rows["batch"]), "goal": 1}

    def measure_workers(self):
        rows = {1: [], 2: []}
        for _ in range(self.options.repetitions):
            for count in rows:
                rows[count].append(self.workers(count))
        self.rows["workers"] = {"seconds": {f"{count} of one thread": spread(values) for count, values in rows.items()},
                                "two_over_one": statistics.median(rows[1]) / statistics.median(rows[2]), "goal": 1.8}

    def measure_dipy(self):
        script = self.folder / "dipy_pool.py"
        script.write_text(DIPY)
        numbers = list(self.numbers())[: self.options.dipy_subjects]
        out = self.fresh("dipy")
        out.mkdir()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        start = time.perf_counter()
        subprocess.run([sys.executable, str(script), str(os.cpu_count()), str(self.options.seeds), str(out), *[str(self.subject(number)) for number in numbers]],
                       check=True, env=environment, stdout=subprocess.DEVNULL)
        dipy = time.perf_counter() - start
        labels = [word for number in numbers for word in ("--participant-label", f"{number:02}")]
        ours = seconds_of(*self.batch_words(self.fresh("out"), *labels))[0]
        self.rows["dipy"] = {"subjects": len(numbers), "processes": os.cpu_count(), "dipy_seconds": dipy, "batch_seconds": ours, "times": dipy / ours, "goal": 8}

    def measure_model(self):
        """core-s = a + b volumes voxels + c coefficients^2 (voxels of the mask) + d points, fitted on every other subject, for the others.
        Relative errors are fitted, since they are what is asked for; of two runs the one that others disturbed less counts."""
        import numpy as np

        facts, costs = [], []
        for number in self.numbers():
            out = self.folder / "model.trx"
            words = [*self.track_words(number, out), "--threads", 1]
            said = json.loads(subprocess.run(list(map(str, [*words, "--explain", "--json"])), check=True, capture_output=True, text=True).stdout)
            costs.append(min(seconds_of(*words)[1] for _ in range(2)))
            points = json.loads(pathlib.Path(f"{out}.json").read_text())["result"]["points"]
            work = said["work"]
            facts.append([1, work["voxels"] * work["volumes"], work["tracked_voxels"] * work["coefficients"] ** 2, points])
        facts, costs = np.array(facts, dtype=float), np.array(costs)
        scale = facts.max(axis=0)
        from scipy.optimize import nnls

        weights = nnls(facts[::2] / scale / costs[::2, None], np.ones(len(costs[::2])))[0]
        foretold = facts[1::2] / scale @ weights
        errors = np.abs(foretold / costs[1::2] - 1)
        self.rows["model"] = {"terms": ["1", "volumes x voxels", "coefficients^2 x voxels of the mask", "points"], "core_seconds_per_unit": list(weights / scale),
                              "fitted_on": len(costs[::2]), "largest_error": float(errors.max()), "error_of_the_sum": float(abs(foretold.sum() / costs[1::2].sum() - 1)),
                              "goal": 0.15, "core_seconds_of_a_subject": spread(list(costs)),
                              "core_hours_of_10000": float(costs.mean() * 10000 / 3600)}

    def measure_merge(self):
        base = self.subject(1)
        fit = self.folder / "merge.fit"
        seconds_of(self.program, "track", f"{base}_dwi.nii.gz", "--mask", f"{base}_desc-brain_mask.nii.gz", *OPTIONS, "--device", "cpu", "--prepare", fit, "--quiet")
        parts = [self.folder / f"part{number}.trx" for number in range(1, 5)]
        for number, part in enumerate(parts, 1):
            seconds_of(self.program, "track", "--prepared", fit, "--device", "cpu", "--nseeds", self.options.merge_seeds, "--part", f"{number}/4", "--out", part, "--quiet")
        rows = {"copy": [], "merge": []}
        copied, merged = self.folder / "copied.trx", self.folder / "merged.trx"
        for _ in range(3 * self.options.repetitions):
            for path in (copied, merged):
                path.unlink(missing_ok=True)
            os.sync()
            start = time.perf_counter()
            with open(copied, "wb") as out:
                for part in parts:
                    with open(part, "rb") as file:
                        shutil.copyfileobj(file, out, 1 << 20)
                out.flush()
                os.fsync(out.fileno())
            rows["copy"].append(time.perf_counter() - start)
            os.sync()
            rows["merge"].append(seconds_of(self.program, "merge", *parts, "--out", merged, "--quiet", "--force")[0])
        self.rows["merge"] = {"bytes": merged.stat().st_size, "seconds": {name: spread(values) for name, values in rows.items()},
                              "copy_over_merge": statistics.median(rows["copy"]) / statistics.median(rows["merge"]), "goal": 0.7}

    def hashes(self, name):
        out = self.folder / name
        return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.glob("sub-*/dwi/*.trx"))}

    def read_all(self):
        """Every series inflated, by as many threads as there are cores: what a batch cannot be faster than."""

        def inflate(number):
            with gzip.open(f"{self.subject(number)}_dwi.nii.gz") as file:
                return sum(len(block) for block in iter(lambda: file.read(1 << 24), b""))

        start = time.perf_counter()
        with ThreadPool(os.cpu_count()) as pool:
            read = sum(pool.map(inflate, self.numbers()))
        return time.perf_counter() - start, read

    def measure_gpu(self):
        loop, batch, busy = [], [], []
        for _ in range(self.options.repetitions):
            with GpuWatch() as watch:
                loop.append(self.loop())
            loop_busy = watch.busy()
            with GpuWatch() as watch:
                batch.append(self.batch())
            busy.append(watch.busy())
        single = self.hashes("out")
        cores = seconds_of(*self.batch_words(self.fresh("out")))
        reading, read = self.read_all()
        written = sum(path.stat().st_size for path in (self.folder / "out").glob("sub-*/dwi/*.trx"))
        total = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=memory.total", "--format=csv,noheader,nounits"], check=True, capture_output=True, text=True)
        environment = {**os.environ, "CINGULUM_MEMORY_LIMIT": f"{int(total.stdout) // 2}M"}
        out = self.fresh("halves")
        start = time.perf_counter()
        children = [subprocess.Popen(list(map(str, self.batch_words(out, "--shard", f"{number}/2"))), stdout=subprocess.DEVNULL, env=environment) for number in (1, 2)]
        if any(child.wait() != 0 for child in children):
            raise SystemExit("a worker failed")
        halves = time.perf_counter() - start
        on_cpu = []
        for number in (1, 2, 3):
            words = ["cpu" if word == self.options.device else word for word in self.track_words(number, self.folder / "cpu.trx")]
            seconds_of(*words)
            of_batch = next((self.folder / "out").glob(f"sub-{number:02}/dwi/*.trx"))
            on_cpu.append((self.folder / "cpu.trx").read_bytes() == of_batch.read_bytes())
        memory = {}
        for getter in ("prob", "det", "closest", "tensor", "boot", "ptt"):
            words = [getter if word == "prob" else word for word in self.track_words(1, self.folder / "memory.trx")]
            said = json.loads(subprocess.run(list(map(str, [*words, "--explain", "--json"])), check=True, capture_output=True, text=True).stdout)
            time.sleep(0.5)  # until the driver has what the last process had
            with GpuWatch() as watch:
                time.sleep(0.2)
                seconds_of(*words)
            memory[getter] = {"explained_bytes": said["memory"]["device_bytes"], "most_taken_bytes": watch.bytes()}
        self.rows["gpu"] = {"device": self.options.device, "subjects": self.options.subjects, "seeds": self.options.seeds,
                            "seconds": {"processes of track": spread(loop), "batch": spread(batch), "reading and inflating alone, all cores": reading, "two workers in half the memory": halves},
                            "loop_over_batch": statistics.median(loop) / statistics.median(batch), "goal": 3, "busy_share": {"processes of track": loop_busy, "batch": statistics.median(busy)},
                            "cores_busy_in_batch": cores[1] / cores[0], "bytes_inflated": read, "bytes_written": written,
                            "three_subjects_are_those_of_the_cpu": all(on_cpu), "two_workers_give_the_same_bytes": len(single) == self.options.subjects and self.hashes("halves") == single, "memory": memory}

    def measure_index(self):
        """Empty files: all subjects are listed, and of one the header is asked for, which fails."""
        stubs = self.folder / "stubs"
        for number in range(self.options.stubs):
            folder = stubs / f"sub-{number:05}" / "ses-a" / "dwi"
            folder.mkdir(parents=True)
            for ending in ("nii.gz", "bval", "bvec", "json"):
                (folder / f"sub-{number:05}_ses-a_dwi.{ending}").touch()
        times = []
        for _ in range(3):
            times.append(seconds_of(self.program, "batch", stubs, self.folder / "none", "participant", "--explain", "--json", "--shard", f"1/{self.options.stubs}",
                                    "--device", "cpu")[0])
        shutil.rmtree(stubs)
        self.rows["index"] = {"subjects": self.options.stubs, "seconds": spread(times), "goal": 10}

    def run(self):
        wanted = self.options.only.split(",") if self.options.only else PARTS
        if set(wanted) - {"index"}:
            self.make_subjects()
        for part in wanted:
            load = os.getloadavg()[0]
            getattr(self, f"measure_{part}")()
            self.rows[part]["load_before"] = load
            print(json.dumps({part: self.rows[part]}, indent=1), flush=True)
        version = json.loads(subprocess.run([self.program, "--version", "--json"], check=True, capture_output=True, text=True).stdout)
        result = {"bench": "scale", "machine": {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}, "version": version,
                  "repetitions": self.options.repetitions, "rows": self.rows}
        if self.options.out:
            pathlib.Path(self.options.out).write_text(json.dumps(result, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/cingulum")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--subjects", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=20000)
    parser.add_argument("--merge-seeds", type=int, default=400000)
    parser.add_argument("--dipy-subjects", type=int, default=4)
    parser.add_argument("--stubs", type=int, default=10000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cingulum-scale-") as folder:
        Scale(options, pathlib.Path(folder)).run()


if __name__ == "__main__":
    main()
