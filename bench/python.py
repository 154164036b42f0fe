#!/usr/bin/env python3
"""The Python package beside its peers, in one run: what a call adds to the program, and how much sooner it is done than DIPY,
cuslines and PyDotCompute.

    PYTHONPATH=build/python bench/python.py --program build/bin/cingulum --out build/python.json [--peers PYTHON] [--only WORD]

Sides of a row run alternately, each in a process of its own; the medians of their repetitions are compared. --peers is an
interpreter that has cuslines, numba and pydotcompute; without it their rows are left out and named. The load of the machine
is written with every row: where it is more than the processors, others worked, too, and times are longer on both sides;
processor_seconds, of all threads, are less changed by that.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

MEASURE = """
import json, os, resource, sys, time
def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
def tell(**facts):
    print(json.dumps(facts))
def percentiles(seconds):
    seconds = sorted(seconds)
    return {"p50_us": seconds[len(seconds) // 2] * 1e6, "p99_us": seconds[int(len(seconds) * 0.99)] * 1e6}
"""

# --- tracking: what the package adds to the program
TRACK_IN_PYTHON = """
import cingulum
folder, seeds, device, out = sys.argv[1:]
before, begin = processor_seconds(), time.perf_counter()
cingulum.track(f"{folder}/dwi.nii.gz", mask=f"{folder}/mask.nii.gz", dg="prob", nseeds=int(seeds), device=device, out=out, force=True, progress=False)
tell(seconds=time.perf_counter() - begin, peak=peak_bytes(), processor=processor_seconds() - before)
"""
# The program's process has its start and end in its seconds; these are taken off by a process that does the same.
IMPORT_ALONE = """
import cingulum
begin = time.perf_counter()
cingulum.track
tell(seconds=time.perf_counter() - begin, peak=peak_bytes())
"""

# --- DIPY
MODELS = """
import nibabel, numpy as np
from dipy.core.gradients import gradient_table
from dipy.io.gradients import read_bvals_bvecs
folder, side, model = sys.argv[1:]
image, mask = (nibabel.load(f"{folder}/{name}.nii.gz") for name in ("dwi", "mask"))
b_values, vectors = read_bvals_bvecs(f"{folder}/dwi.bval", f"{folder}/dwi.bvec")
table = gradient_table(b_values, bvecs=vectors * [-1, 1, 1])
data, mask = np.asarray(image.dataobj), np.asarray(mask.dataobj) > 0
from dipy.reconst.csdeconv import ConstrainedSphericalDeconvModel, auto_response_ssst
from dipy.reconst.dti import TensorModel
if side == "ours":
    import cingulum
    cingulum.fit(data[:8, :8, :8], table, model="dti", affine=image.affine, mask=np.ones((8, 8, 8), bool))
    before, begin = processor_seconds(), time.perf_counter()
    fit = cingulum.fit(data, table, model=model, affine=image.affine, mask=mask, progress=False)
    made = [fit.fa, fit.md] if model == "dti" else [fit.sh]
elif model == "dti":
    before, begin = processor_seconds(), time.perf_counter()
    fit = TensorModel(table).fit(data, mask=mask)
    made = [fit.fa, fit.md]
else:
    before, begin = processor_seconds(), time.perf_counter()
    response, _ = auto_response_ssst(table, data, roi_radii=10, fa_thr=0.7)
    made = [ConstrainedSphericalDeconvModel(table, response, sh_order_max=8).fit(data, mask=mask).shm_coeff]
tell(seconds=time.perf_counter() - begin, processor=processor_seconds() - before, peak=peak_bytes(), voxels=int(mask.sum()))
"""
TRACKERS = """
import nibabel, numpy as np
from nibabel.streamlines import ArraySequence
folder, side, count = sys.argv[1:]
sh, fa = np.load(f"{folder}/sh.npy"), np.load(f"{folder}/fa.npy")
affine = nibabel.load(f"{folder}/dwi.nii.gz").affine
places = np.argwhere(fa > 0.3)
chosen = places[np.random.default_rng(1).integers(0, len(places), int(count))]
seeds = nibabel.affines.apply_affine(affine, chosen)
if side == "ours":
    from cingulum.dipy import ThresholdStoppingCriterion, probabilistic_tracking
    more = {"backend": "cpu"}
else:
    from dipy.tracking.stopping_criterion import ThresholdStoppingCriterion
    from dipy.tracking.tracker import probabilistic_tracking
    more = {"nbr_threads": os.cpu_count()}
from dipy.data import get_sphere
stop = ThresholdStoppingCriterion(fa.astype(float), 0.15)
before, begin = processor_seconds(), time.perf_counter()
lines = ArraySequence(probabilistic_tracking(seeds, stop, affine, sh=sh, sphere=get_sphere(name="repulsion724"), random_seed=1, **more))
tell(seconds=time.perf_counter() - begin, processor=processor_seconds() - before, peak=peak_bytes(), streamlines=len(lines), points=int(lines.total_nb_rows))
"""
# Both run once before, so that what compiles has compiled.
CUSLINES = """
import nibabel, numpy as np
folder, side, count = sys.argv[1:]
sf, fa = np.load(f"{folder}/sf.npy"), np.load(f"{folder}/fa.npy").astype(np.float64)
image = nibabel.load(f"{folder}/dwi.nii.gz")
from dipy.data import get_sphere
sphere = get_sphere(name="repulsion724")
half = __import__("dipy.core.sphere", fromlist=["HemiSphere"]).HemiSphere.from_sphere(sphere)
if side == "ours":
    from cingulum.cuslines.numba import CPUProbDirectionGetter, CPUTracker
else:
    from cuslines.numba import CPUProbDirectionGetter, CPUTracker
places = np.argwhere(fa > 0.3)
chosen = places[np.random.default_rng(1).integers(0, len(places), int(count))].astype(np.float64)
with CPUTracker(CPUProbDirectionGetter(), sf, fa, 0.15, half.vertices, half.edges, sphere_symm=True, max_angle=np.radians(20), step_size=0.5, rng_seed=1) as tracker:
    tracker.generate_sft(chosen[:100], image)
    before, begin = processor_seconds(), time.perf_counter()
    sft = tracker.generate_sft(chosen, image)
    seconds, processor = time.perf_counter() - begin, processor_seconds() - before
tell(seconds=seconds, processor=processor, peak=peak_bytes(), streamlines=len(sft), points=int(sft.streamlines.total_nb_rows))
"""
SEQUENCE = """
import numpy as np, cingulum
points = np.zeros((10_000_000, 3), np.float32)
tracks = cingulum.Tractogram(points, np.arange(0, 10_000_001, 100))
import nibabel.streamlines
begin = time.perf_counter()
lines = tracks.streamlines
seconds = time.perf_counter() - begin
assert np.shares_memory(lines._data, points)
tell(seconds=seconds, peak=peak_bytes())
"""

NOTEBOOK = """
import numpy as np, cingulum
steps = np.random.default_rng(1).normal(size=(100_000, 100, 3)).astype(np.float32)
tracks = cingulum.Tractogram(np.cumsum(steps, axis=1).reshape(-1, 3), np.arange(100_001) * 100)
begin = time.perf_counter()
text = tracks._repr_html_()
tell(seconds=time.perf_counter() - begin, bytes=len(text))
"""

# --- actors
ECHO = """
import asyncio
if sys.argv[1] == "ours":
    from cingulum import compat
    compat.install("pydotcompute")
from pydotcompute import RingKernelRuntime, message, ring_kernel
@message
class Number:
    value: float = 0.0
@ring_kernel(kernel_id="echo", input_type=Number, output_type=Number)
async def echo(context):
    while not context.should_terminate:
        try:
            got = await context.receive(timeout=0.1)
            await context.send(Number(value=got.value, correlation_id=got.message_id))
        except Exception:
            continue
async def main():
    async with RingKernelRuntime() as runtime:
        await runtime.launch("echo")
        await runtime.activate("echo")
        took = []
        for number in range(5200):
            begin = time.perf_counter()
            await runtime.send("echo", Number(value=float(number)))
            answer = await runtime.receive("echo", timeout=1.0)
            took.append(time.perf_counter() - begin)
            assert answer.value == number
        count = 20000
        begin = time.perf_counter()
        for start in range(0, count, 2000):
            for number in range(2000):
                await runtime.send("echo", Number(value=float(number)))
            for number in range(2000):
                await runtime.receive("echo", timeout=5.0)
        stream = time.perf_counter() - begin
        tell(**percentiles(took[200:]), messages_per_s=count / stream, loop=type(asyncio.get_running_loop()).__module__)
asyncio.run(main())
"""
NATIVE = """
import asyncio, numpy as np
from cingulum.ring.native import Runtime
with Runtime() as runtime:
    echo = runtime.launch("echo")
    took = []
    for number in range(20200):
        begin = time.perf_counter()
        answer = echo.request(float(number))
        took.append(time.perf_counter() - begin)
        assert answer == number
    blocking = percentiles(took[200:])
    async def main():
        took = []
        for number in range(20200):
            begin = time.perf_counter()
            answer = await echo.ask(float(number))
            took.append(time.perf_counter() - begin)
            assert answer == number
        return percentiles(took[200:])
    awaited = asyncio.run(main())
    many = runtime.launch("many", "batch_echo", stream=True)
    values = np.arange(1_000_000.0)
    many.exchange(values[:1000])
    begin = time.perf_counter()
    assert np.array_equal(many.exchange(values), values)
    tell(blocking=blocking, awaited=awaited, messages_per_s=len(values) / (time.perf_counter() - begin))
"""


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.report = {
            "bench": "the Python package beside its peers",
            "build": subprocess.run([options.program, "--version"], capture_output=True, text=True).stdout.strip(),
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            "repetitions": options.repetitions,
            "statistic": "median",
            "rows": [],
            "left_out": [],
        }

    def wanted(self, name):
        return self.options.only in name

    def run(self, text, *words, python=sys.executable):
        """What a script tells, in a process of its own."""
        environment = {**os.environ, "OMP_NUM_THREADS": str(os.cpu_count()), "CINGULUM_NO_SYNC": "1"}
        done = subprocess.run(
            [python, "-c", MEASURE + text, *map(str, words)], capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it failed")
        return json.loads(done.stdout.strip().splitlines()[-1])

    def alternate(self, sides):
        """Runs the sides alternately; a side is a function that gives facts."""
        results = {name: [] for name in sides}
        for _ in range(self.options.repetitions):
            for name, side in sides.items():
                results[name].append(side())
        return results

    def add(self, name, goal, row):
        row = {"row": name, "goal": goal, **row, "load_1min": round(os.getloadavg()[0], 2)}
        self.report["rows"].append(row)
        self.options.out.write_text(json.dumps(self.report, indent=2) + "\n")
        print(json.dumps(row))

    def compare(self, name, goal, ours, theirs, peer):
        if not self.wanted(name):
            return
        try:
            results = self.alternate({"ours": ours, peer: theirs})
        except (RuntimeError, FileNotFoundError) as error:
            self.report["left_out"].append(f"{name}: {error}")
            print(f"left out: {name}: {error}", file=sys.stderr)
            return
        medians = {side: statistics.median(one["seconds"] for one in runs) for side, runs in results.items()}
        processor = {side: statistics.median(one["processor"] for one in runs) for side, runs in results.items()}
        compared = ("seconds", "processor")
        facts = {side: {key: value for key, value in runs[-1].items() if key not in compared} for side, runs in results.items()}
        spread = {side: [min(one["seconds"] for one in runs), max(one["seconds"] for one in runs)] for side, runs in results.items()}
        self.add(name, goal, {"seconds": medians, "spread": spread, "times": medians[peer] / medians["ours"],
                              "processor_seconds": processor, "processor_times": processor[peer] / processor["ours"],
                              "facts": facts})  # fmt: skip

    # --- rows
    def prepare(self):
        folder = self.folder / "phantom"
        subprocess.run([self.options.program, "phantom", "--preset", "brain", "--voxel-size", str(self.options.voxel_size),
                        "--scheme", "dirs64-b1000", "--out", folder, "--force", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        self.run("""
import cingulum, nibabel, numpy as np
folder = sys.argv[1]
files = {"bvals": f"{folder}/dwi.bval", "bvecs": f"{folder}/dwi.bvec", "mask": f"{folder}/mask.nii.gz"}
csd = cingulum.fit(f"{folder}/dwi.nii.gz", model="csd", **files)
np.save(f"{folder}/sh.npy", csd.sh)
np.save(f"{folder}/fa.npy", cingulum.fit(f"{folder}/dwi.nii.gz", model="dti", **files).fa)
from dipy.core.sphere import HemiSphere
from dipy.data import get_sphere
np.save(f"{folder}/sf.npy", csd.odf(HemiSphere.from_sphere(get_sphere(name="repulsion724")), clip=True))
tell()
""", folder)
        return folder

    def track_row(self, folder, name, seeds):
        if not self.wanted(name):
            return
        out = self.folder / "out.trx"

        def program():
            begin = time.perf_counter()
            with subprocess.Popen(
                [self.options.program, "track", folder / "dwi.nii.gz", "--mask", folder / "mask.nii.gz", "--dg", "prob",
                 "--nseeds", str(seeds), "--device", self.options.device, "--out", out, "--force", "--quiet"],
                stdout=subprocess.DEVNULL, env={**os.environ, "CINGULUM_NO_SYNC": "1"},
            ) as process:  # fmt: skip
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            return {"seconds": time.perf_counter() - begin, "peak": usage.ru_maxrss * 1024,
                    "processor": usage.ru_utime + usage.ru_stime}  # fmt: skip

        results = self.alternate({"ours": lambda: self.run(TRACK_IN_PYTHON, folder, seeds, self.options.device, out), "program": program})
        base = self.run(IMPORT_ALONE)["peak"]
        seconds = {side: statistics.median(one["seconds"] for one in runs) for side, runs in results.items()}
        peak = {side: statistics.median(one["peak"] for one in runs) for side, runs in results.items()}
        # The processor's time of the same runs, which other work on the machine changes less.
        processor = {side: statistics.median(one["processor"] for one in runs) for side, runs in results.items()}
        self.add(name, "below 2 % over the program (100 000 seeds), peak memory within 1.2 times, flat from 0.2 to 2 million", {
            "seeds": seeds, "device": self.options.device, "seconds": seconds, "over_program": seconds["ours"] / seconds["program"] - 1,
            "processor_seconds": processor, "processor_over_program": processor["ours"] / processor["program"] - 1,
            "peak_bytes": peak, "peak_of_the_import": base, "peak_times": peak["ours"] / peak["program"]})  # fmt: skip

    def actors(self):
        name = "actors: a program for PyDotCompute, unchanged"
        if not self.wanted(name) or self.options.peers is None:
            if self.options.peers is None:
                self.report["left_out"].append(f"{name}: no --peers")
            return
        results = self.alternate({
            "ours": lambda: self.run(ECHO, "ours"),
            "PyDotCompute 0.2.0": lambda: self.run(ECHO, "theirs", python=self.options.peers),
            "native": lambda: self.run(NATIVE),
        })  # fmt: skip

        def median(side, *keys):
            values = []
            for one in results[side]:
                for key in keys:
                    one = one[key]
                values.append(one)
            return statistics.median(values)

        theirs = {key: median("PyDotCompute 0.2.0", key) for key in ("p50_us", "p99_us", "messages_per_s")}
        loops = {side: results[side][-1]["loop"] for side in ("ours", "PyDotCompute 0.2.0")}
        self.add(name, "p50 >= 3 times, p99 not worse", {
            "ours": {key: median("ours", key) for key in theirs}, "theirs": theirs, "loops": loops,
            "p50_times": theirs["p50_us"] / median("ours", "p50_us"), "p99_times": theirs["p99_us"] / median("ours", "p99_us")})  # fmt: skip
        for kind, goal in (("blocking", 15), ("awaited", 6)):
            p50 = median("native", kind, "p50_us")
            self.add(f"actors: native, {kind}", f">= {goal} times", {
                "p50_us": p50, "p99_us": median("native", kind, "p99_us"), "p50_times": theirs["p50_us"] / p50})  # fmt: skip
        rate = median("native", "messages_per_s")
        self.add("actors: native, batches", ">= 50 times the messages/s", {
            "messages_per_s": rate, "times": rate / theirs["messages_per_s"]})  # fmt: skip

    def all(self):
        self.actors()
        if self.wanted("ArraySequence"):
            results = [self.run(SEQUENCE)["seconds"] for _ in range(self.options.repetitions)]
            self.add("10 M points as ArraySequence", "5 ms, no copy", {"seconds": statistics.median(results)})
        if self.wanted("notebook"):
            results = [self.run(NOTEBOOK) for _ in range(self.options.repetitions)]
            self.add("notebook: a tractogram of 100 000 streamlines", "0.5 s, 300 kB", {
                "seconds": statistics.median(one["seconds"] for one in results), "bytes": results[-1]["bytes"]})  # fmt: skip
        if self.options.only in ("actors", "ArraySequence", "notebook"):
            return
        folder = self.prepare()
        for seeds in (100_000, 200_000, 2_000_000):
            if seeds <= self.options.most_seeds:
                self.track_row(folder, f"track, {seeds} seeds", seeds)
            else:
                self.report["left_out"].append(f"track, {seeds} seeds: --most-seeds")
        for model, goal in (("dti", 20), ("csd", 10)):
            self.compare(f"fit {model}, arrays to arrays", f">= {goal} times DIPY",
                         lambda model=model: self.run(MODELS, folder, "ours", model),
                         lambda model=model: self.run(MODELS, folder, "theirs", model), "DIPY 1.12.1")
        self.compare("prob to Streamlines", ">= 8 times DIPY", lambda: self.run(TRACKERS, folder, "ours", self.options.peer_seeds),
                     lambda: self.run(TRACKERS, folder, "theirs", self.options.peer_seeds), "DIPY 1.12.1")
        if self.options.peers is None:
            self.report["left_out"].append("cuslines: no --peers")
        else:
            self.compare("cuslines' CPUTracker, prob", ">= 4 times cuslines, its compiling not counted",
                         lambda: self.run(CUSLINES, folder, "ours", self.options.peer_seeds),
                         lambda: self.run(CUSLINES, folder, "theirs", self.options.peer_seeds, python=self.options.peers), "cuslines")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--peers", help="an interpreter that has cuslines, numba and pydotcompute")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--most-seeds", type=int, default=2_000_000, help="rows with more are left out")
    parser.add_argument("--device", default="auto", help="of the rows of track; drivers that auto looks at hold memory on both sides")
    parser.add_argument("--peer-seeds", type=int, default=10_000, help="of the rows beside DIPY's and cuslines' trackers")
    parser.add_argument("--voxel-size", type=float, default=2.5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))
        bench.all()
        options.out.write_text(json.dumps(bench.report, indent=2) + "\n")


if __name__ == "__main__":
    main()
