#!/usr/bin/env python3
"""What `cingulum view` takes to answer: `bench/view.py --program cingulum --out view.json [--device cpu|cuda|webgpu]`.

Rows, each with its goal:
- 200 seeds of prob answered at a WebSocket client, beside DIPY on the same seeds and field, both warm, and beside a fresh
  process of the command that the answer names, with its fit kept;
- from the click to the last byte at the client, 200 and 10 000 seeds, with what of it is plan, tracking, copies and server;
  ptt, whose field is made by its first request;
- a drag: 60 requests a second for a minute, how many are answered, whether answers keep their order and are those of a
  request that is asked alone, and the server's memory;
- on GPUs another plan of the same getter beside preparing a tracker (bench_track_session, where it lies beside the program).
Other rows are left out with the reason where something is missing. Only the standard library is used but for DIPY's row.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import platform
import random
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEEDS = 200
STOP = 0.15
ANGLE = 30
STEP_MM = 1.0

# Both by turns with the same seeds, so that what else the machine does falls on both.
DIPY = """
import sys, json, time, os
import numpy as np, nibabel, dipy
from nibabel.streamlines import ArraySequence
from dipy.data import get_sphere
from dipy.tracking.stopping_criterion import ThresholdStoppingCriterion
from dipy.tracking.tracker import probabilistic_tracking
folder, step, angle, threshold = sys.argv[1], *map(float, sys.argv[2:])
sh = nibabel.load(f"{folder}/csd/fod.nii.gz")
data, affine = np.asarray(sh.dataobj).astype(np.float64), sh.affine
stop = ThresholdStoppingCriterion(np.asarray(nibabel.load(f"{folder}/fa.nii.gz").dataobj).astype(float), threshold)
sphere = get_sphere(name="repulsion724")
print(json.dumps({"version": dipy.__version__}), flush=True)
for line in sys.stdin:
    seeds = np.array(json.loads(line))
    begin = time.perf_counter()
    lines = ArraySequence(probabilistic_tracking(seeds, stop, affine, sh=data, sphere=sphere, step_size=step, max_angle=angle,
                                                 max_len=500, random_seed=1, nbr_threads=os.cpu_count(), return_all=False))
    print(json.dumps({"seconds": time.perf_counter() - begin, "points": int(lines.total_nb_rows), "streamlines": len(lines)}), flush=True)
"""


def percentiles(values):
    ordered = sorted(values)

    def at(share):
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    return {"p50": at(0.5), "p99": at(0.99), "least": ordered[0], "most": ordered[-1], "count": len(ordered)}


class Digest:
    """A hash of the streamlines of an answer, whatever batches they came in."""

    def __init__(self):
        self.positions, self.seeds = hashlib.blake2b(), hashlib.blake2b()

    def add(self, batch):
        lines, points = struct.unpack("<II", batch[:8])
        positions = 8 + 4 * (lines + 1)
        seeds = positions + 12 * points
        self.positions.update(batch[positions:seeds])
        self.seeds.update(batch[seeds:seeds + 4 * lines])

    def text(self):
        return self.positions.hexdigest() + self.seeds.hexdigest()


class Client:
    """A page that reads and looks at nothing but the heads: what it costs is not the server's."""

    def __init__(self, viewer):
        self.page = viewer.socket()
        self.number = 0
        self.buffer = bytearray(1 << 20)

    def message(self):
        """Kind, number and body (valid until the next call); None where the line is gone."""
        read = self.page.stream.read
        while True:
            head = read(2)
            if len(head) < 2:
                return None
            opcode, size = head[0] & 15, head[1] & 127
            if size >= 126:
                size = int.from_bytes(read(2 if size == 126 else 8), "big")
            if size > len(self.buffer):
                self.buffer = bytearray(2 * size)
            body = memoryview(self.buffer)[:size]
            at = 0
            while at < size:
                got = self.page.stream.readinto(body[at:])
                if not got:
                    return None
                at += got
            if opcode == 9:
                self.page.send(bytes(body), opcode=10)
            elif opcode == 2:
                kind, _, number = struct.unpack("<HHI", body[4:12])
                return kind, number, body[12:]
            elif opcode == 8:
                return None

    def ask(self, request):
        """Seconds until the last byte, the end's JSON and the number of bytes."""
        self.number += 1
        text = json.dumps(request).encode()
        frame = self.page.frame(b"CGV1" + struct.pack("<HHI", 1, 0, self.number) + text)
        begin = time.perf_counter()
        self.page.connection.sendall(frame)
        size = 0
        while True:
            kind, number, body = self.message()
            size += len(body)
            if number != self.number:
                raise RuntimeError(f"an answer to request {number} after request {self.number}")
            if kind == 17:
                return time.perf_counter() - begin, json.loads(bytes(body)), size
            if kind == 18:
                raise RuntimeError(bytes(body).decode())


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        build = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        self.report = {"bench": "the viewer", "build": build, "device": options.device, "processors": os.cpu_count(),
                       "python": platform.python_version(), "rows": [], "left_out": []}

    def write(self):
        if self.options.out:
            self.options.out.write_text(json.dumps(self.report, indent=2) + "\n")

    def add(self, name, goal, row):
        row = {"row": name, "goal": goal, **row, "load_1min": round(os.getloadavg()[0], 2)}
        self.report["rows"].append(row)
        self.write()
        print(json.dumps(row), flush=True)

    def leave_out(self, name, reason):
        self.report["left_out"].append(f"{name}: {reason}")
        self.write()
        print(f"left out: {name}: {reason}", flush=True)

    def wanted(self, name):
        return self.options.only in name

    def run(self, *words):
        subprocess.run([self.options.program, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    # --- data
    def prepare(self):
        """A brain of 2 mm: its series, and harmonics of degree 8 with a map of FA for DIPY, too."""
        brain = self.folder / "brain"
        self.run("phantom", "--preset", "brain", "--voxel-size", self.options.voxel_size, "--scheme", "dirs64-b1000", "--out", brain, "--quiet")
        series = [brain / "dwi.nii.gz", "--mask", brain / "mask.nii.gz"]
        table = ["--bvals", brain / "dwi.bval", "--bvecs", brain / "dwi.bvec"]
        self.run("fit", *series, *table, "--model", "csd", "--sh-basis", "descoteaux07-legacy", "--frame", "image", "--out", self.folder / "csd", "--quiet")
        self.run("fit", *series, *table, "--model", "dti", "--out", self.folder / "dti", "--quiet")
        (self.folder / "fa.nii.gz").symlink_to(self.folder / "dti" / "fa.nii.gz")
        self.field = ["--sh", self.folder / "csd" / "fod.nii.gz", "--stop-map", self.folder / "fa.nii.gz", "--sphere", "repulsion724",
                      "--device", self.options.device]
        self.series = [*series, "--device", self.options.device, "--cache-dir", self.folder / "fits"]
        # Places where something is tracked: the seeds of a run over the whole brain.
        self.run("track", *self.series, "--dg", "prob", "--nseeds", 2000, "--seed", 5, "--save-seeds", "--min-length", 20, "--out", self.folder / "places.trx", "--quiet")
        self.places = self.seed_points(self.folder / "places.trx")

    @staticmethod
    def seed_points(trx):
        with zipfile.ZipFile(trx) as archive:
            name = next(name for name in archive.namelist() if name.startswith("dps/seed_point"))
            data = archive.read(name)
        numbers = struct.unpack(f"<{len(data) // 4}f", data)
        return sorted({tuple(numbers[i:i + 3]) for i in range(0, len(numbers), 3)})

    def spheres(self, count, seed):
        draw = random.Random(seed)
        return [[round(x, 1) for x in draw.choice(self.places)] + [3.0] for _ in range(count)]

    def request(self, sphere, seeds=SEEDS, **more):
        return {"dg": "prob", "sphere": sphere, "nseeds": seeds, "max-angle": ANGLE, "stop-threshold": STOP, "step-size": f"{STEP_MM}mm", **more}

    def viewer(self, words):
        from viewer import Viewer  # needs CINGULUM in the environment

        return Viewer(*words)

    # --- rows
    def beside_dipy(self):
        name = "200 seeds of prob beside DIPY"
        if not self.wanted(name):
            return
        try:
            peer = subprocess.Popen([sys.executable, "-c", DIPY, self.folder, str(STEP_MM), str(ANGLE), str(STOP)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, "OMP_NUM_THREADS": str(os.cpu_count())})
            first = peer.stdout.readline()
            if not first:
                raise ModuleNotFoundError(peer.stderr.read().strip().splitlines()[-1])
        except (OSError, ModuleNotFoundError) as problem:
            return self.leave_out(name, str(problem))
        viewer = self.viewer(self.field)
        try:
            client = Client(viewer)
            ours, theirs, points = [], [], {"ours": 0, "DIPY": 0}
            for i, sphere in enumerate(self.spheres(self.options.requests // 4 + 5, 1)):
                request = self.request(sphere)
                seconds, end, _ = client.ask(request)
                # The seeds of the command, as it says itself; those that found no direction cost either side nothing.
                out = self.folder / "seeds.trx"
                words = shlex.split(end["command"])[2:-2]
                self.run("track", *words, "--min-length", "0", "--save-seeds", "--out", out, "--force", "--quiet")
                peer.stdin.write(json.dumps(self.seed_points(out)) + "\n")
                peer.stdin.flush()
                answer = json.loads(peer.stdout.readline())
                if i < 5:
                    continue
                ours.append(seconds)
                theirs.append(answer["seconds"])
                points["ours"] += end["points"]
                points["DIPY"] += answer["points"]
            times = statistics.median(theirs) / statistics.median(ours)
            self.add(name, ">= 10 times", {
                "ours_ms": percentiles([1e3 * x for x in ours]), "dipy_ms": percentiles([1e3 * x for x in theirs]), "times": times,
                "points": points, "dipy": json.loads(first)["version"],
                "what": "ours to the last byte at a WebSocket client, DIPY to an ArraySequence; harmonics of degree 8, medians"})
        finally:
            peer.stdin.close()
            peer.wait()
            viewer.close()

    def beside_track(self, viewer):
        name = "200 seeds of prob beside a fresh `cingulum track`"
        if not self.wanted(name):
            return
        client = Client(viewer)
        ours, fresh = [], []
        for i, sphere in enumerate(self.spheres(self.options.requests // 4 + 3, 2)):
            seconds, end, _ = client.ask(self.request(sphere))
            words = shlex.split(end["command"])[1:-2]
            begin = time.perf_counter()
            self.run(*words, "--out", self.folder / "fresh.trx", "--force", "--quiet")
            if i >= 3:
                ours.append(seconds)
                fresh.append(time.perf_counter() - begin)
        self.add(name, ">= 5 times", {
            "ours_ms": percentiles([1e3 * x for x in ours]), "track_ms": percentiles([1e3 * x for x in fresh]),
            "times": statistics.median(fresh) / statistics.median(ours), "what": "the command of the answer with --cache-dir, its fit kept"})

    def clicks(self, viewer):
        client = Client(viewer)
        for seeds, count, goal in ((SEEDS, self.options.requests, "H200: p50 <= 5 ms, p99 <= 15 ms"), (10000, max(self.options.requests // 8, 10), "H200: <= 60 ms")):
            name = f"from the click to the last byte, {seeds} seeds of prob"
            if not self.wanted(name):
                continue
            for sphere in self.spheres(10, 3):
                client.ask(self.request(sphere, seeds))
            times, parts, size = [], [], 0
            for sphere in self.spheres(count, 4):
                seconds, end, got = client.ask(self.request(sphere, seeds))
                times.append(1e3 * seconds)
                size += got
                parts.append(end["milliseconds"])
            total = statistics.fmean(times)
            mean = {part: statistics.fmean(one.get(part, 0) for one in parts) for part in ("first", "plan", "tracking", "copies", "total")}
            self.add(name, goal, {
                "ms": percentiles(times), "first_batch_ms": percentiles([one["first"] for one in parts]),
                "shares": {"plan": mean["plan"] / total, "tracking": mean["tracking"] / total, "copies": mean["copies"] / total,
                           "server_and_client": (total - mean["total"]) / total},
                "bytes": size // count, "what": "plan: options, plan and seeds; copies: to world, judging, messages; the rest: server, socket, client"})

    def ptt(self, viewer):
        name = "200 seeds of ptt"
        if not self.wanted(name):
            return
        client = Client(viewer)
        spheres = self.spheres(self.options.requests // 8 + 6, 7)
        plan = {"dg": "ptt", "nseeds": SEEDS}
        first, _, _ = client.ask({**plan, "sphere": spheres[0]})
        times = []
        for i, sphere in enumerate(spheres[1:]):
            seconds, end, _ = client.ask({**plan, "sphere": sphere})
            if i >= 5:
                times.append(1e3 * seconds)
        self.add(name, "as fast as with --dg ptt at the start", {
            "first_ms": 1e3 * first, "ms": percentiles(times), "what": "its own defaults; the first request makes the field of amplitudes"})

    def drag(self, viewer):
        name = "a drag: 60 requests a second, 200 seeds of prob"
        if not self.wanted(name):
            return
        seconds, rate = self.options.drag_seconds, 60
        client = Client(viewer)
        around = self.spheres(1, 6)[0]
        path = [[round(around[0] + 6 * math.sin(i / 40), 1), round(around[1] + 6 * math.cos(i / 40), 1), around[2], 3.0] for i in range(seconds * rate)]
        for sphere in path[:30]:
            client.ask(self.request(sphere))
        first = client.number + 1
        sent_at = {}

        def send():
            begin = time.perf_counter()
            for i, sphere in enumerate(path):
                time.sleep(max(0.0, begin + i / rate - time.perf_counter()))
                number = first + i
                frame = client.page.frame(b"CGV1" + struct.pack("<HHI", 1, 0, number) + json.dumps(self.request(sphere)).encode())
                sent_at[number] = time.perf_counter()
                client.page.connection.sendall(frame)

        resident = []
        sender = threading.Thread(target=send)
        begin = time.perf_counter()
        sender.start()
        answered, hashes, latency, last, older = 0, {}, [], 0, 0
        current, digest = 0, Digest()
        while True:
            kind, number, body = client.message()
            if number < last:
                older += 1
            if number != current:
                current, digest = number, Digest()
            last = max(last, number)
            if kind == 16:
                digest.add(body)
            elif kind == 17:
                answered += 1
                latency.append(1e3 * (time.perf_counter() - sent_at[number]))
                hashes[number] = digest.text()
                if answered % 50 == 0:
                    resident.append(viewer.resident_bytes())
            if number == first + len(path) - 1 and kind in (17, 18):
                break
        took = time.perf_counter() - begin
        sender.join()
        # Asked alone, on another socket: the same batches in all, whatever their sizes were.
        mixed = 0
        alone = Client(viewer)
        draw = random.Random(1)
        for number in draw.sample(sorted(hashes), min(100, len(hashes))):
            alone.number += 1
            alone.page.connection.sendall(alone.page.frame(
                b"CGV1" + struct.pack("<HHI", 1, 0, alone.number) + json.dumps(self.request(path[number - first])).encode()))
            digest = Digest()
            while True:
                kind, _, body = alone.message()
                if kind != 16:
                    break
                digest.add(body)
            mixed += digest.text() != hashes[number]
        half = resident[len(resident) // 10:] or [0]
        self.add(name, "answers/s: >= 20 on two cores, >= 50 on the H200; none after a newer one's, none mixed, memory flat", {
            "answers_per_s": answered / took, "requests": len(path), "answered": answered, "latency_ms": percentiles(latency) if latency else None,
            "after_a_newer_ones": older, "not_those_asked_alone": mixed, "compared": min(100, len(hashes)),
            "resident_bytes": {"after_a_tenth": half[0], "at_the_end": half[-1], "most": max(half)}})

    def other_plans(self):
        name = "another plan of the same getter beside preparing"
        if not self.wanted(name):
            return
        program = pathlib.Path(self.options.program).with_name("bench_track_session")
        if not program.exists():
            return self.leave_out(name, "bench_track_session is not beside the program")
        out = self.folder / "session.json"
        subprocess.run([program, "--device", self.options.device, "--only", "prob", "--requests", "5", "--whole", "2000", "--cache-dir", self.folder, "--out", out],
                       check=True, stdout=subprocess.DEVNULL)
        for scenario in json.loads(out.read_text())["scenarios"]:
            self.add(f"{name}: {scenario['scenario']}", "GPUs: <= 1/10", scenario["plans"])

    def all(self):
        self.prepare()
        self.beside_dipy()
        viewer = self.viewer(self.series)
        try:
            self.report["live_device"] = viewer.request("GET", "/api/files").json()["live"]["device"]
            self.beside_track(viewer)
            self.clicks(viewer)
            self.drag(viewer)
            self.ptt(viewer)
        finally:
            viewer.close()
        self.other_plans()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__)
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--requests", type=int, default=400, help="clicks that count, of 200 seeds")
    parser.add_argument("--drag-seconds", type=int, default=60)
    parser.add_argument("--voxel-size", type=float, default=2)
    options = parser.parse_args()
    os.environ["CINGULUM"] = options.program
    sys.path[:0] = [str(ROOT / "tests/view"), str(ROOT / "tests/support")]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))
        bench.all()
        bench.write()


if __name__ == "__main__":
    main()
