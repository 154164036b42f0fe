#!/usr/bin/env python3
"""Whole runs of `cingulum track` on a GPU machine, beside their goals; tools/gpu-whole-runs is the way to call it.

Each scenario is a process as it is typed, from files to a file, all in memory. Of four runs the shortest counts, and it
gives all the numbers of its row: the seconds of the process, those from the first seed to the finished file, what the
threads did meanwhile (the sidecar's `run`), processor time and peak memory. The bytes of the file are hashed by the program;
scenarios that differ in chunks or devices alone must have the same hash, or their rows say so.
"""
import argparse
import gzip
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("CINGULUM_PROGRAM", "cingulum")
REPETITIONS = 4
# As long as a field of the brain allows: 30 degrees, and FA of 0.1 stops.
PROB = ["--dg", "prob", "--max-angle", "30", "--fa-threshold", "0.1"]


def typed(words):
    """A command line without the folders of this machine."""
    return " ".join(pathlib.Path(str(word)).name if str(word).startswith("/") else str(word) for word in words)


def run(words, limit=200):
    """Seconds, processor seconds and peak bytes of a process that succeeds; its errors are ours."""
    start = time.perf_counter()
    child = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, said = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise RuntimeError(f"{typed(words)}: more than {limit} s")
    seconds = time.perf_counter() - start
    if child.returncode != 0:
        raise RuntimeError(f"{typed(words)}: {said.strip()}")
    return seconds


def unpacked(path):
    """The image without gzip, in its place."""
    plain = path.with_suffix("")
    with gzip.open(path) as packed, open(plain, "wb") as out:
        shutil.copyfileobj(packed, out, 1 << 22)
    path.unlink()
    return plain


class WholeRuns:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.out = pathlib.Path(os.environ.get("OUT", ".")) / "track-whole-runs-h200.json"
        self.report = {"bench": "whole runs of tracking", "repetitions": REPETITIONS, "statistic": "shortest",
                       "build": subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout.strip(),
                       "processors": os.cpu_count(), "rows": [], "left_out": []}
        self.begin = time.perf_counter()
        self.hashes = {}

    def write(self):
        self.out.write_text(json.dumps(self.report, indent=2) + "\n")

    def wanted(self, name):
        if self.options.only not in name:
            return False
        if time.perf_counter() - self.begin > self.options.limit:
            self.report["left_out"].append(name)
            return False
        return True

    def add(self, row):
        self.report["rows"].append(row)
        self.write()
        goal = f"goal {row['goal']:g}" if "goal" in row else ""
        reached = "" if "goal" not in row else ("reached" if row["reached"] else "MISSED")
        print(f"{row['scenario']:<46} {row['value']:>8.3f} {row['unit']:<12} {goal:<10} {reached:<8} {row.get('note', '')}",
              flush=True)

    def measure(self, name, words, goal=None, what="file_seconds", ending="trx", same_as=None, arcs=False, keep=None):
        """`what` of the row is compared with the goal: seconds (of the process), file_seconds, prepare_seconds, or with
        `arcs` millions of arcs per second of tracking, which are to be more."""
        if not self.wanted(name):
            return
        file = self.folder / f"out.{ending}"
        best = None
        try:
            for _ in range(REPETITIONS):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds = run([PROGRAM, "track", *words, "--out", file, "--force", "--quiet"])
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                sidecar = json.loads((self.folder / f"out.{ending}.json").read_text())
                spent, result = sidecar["run"], sidecar["result"]
                row = {"seconds": seconds, "file_seconds": spent["tracking_and_writing_seconds"],
                       "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                       **{key: spent[key] for key in ("prepare_seconds", "tracking_seconds", "waiting_seconds",
                                                      "finishing_seconds", "writing_seconds", "steps", "device")},
                       "points": result["points"], "kept": result["kept"], "bytes": sidecar["bytes"],
                       "hash": sidecar["xxh3_128"]}
                row["M_arcs_per_s"] = spent["steps"] * sidecar["plan"]["ptt_substeps"] / spent["tracking_seconds"] * 1e-6
                key = "M_arcs_per_s" if arcs else what
                if best is None or (row[key] > best[key]) == arcs and row[key] != best[key]:
                    best = row
        except (RuntimeError, OSError, KeyError) as problem:
            self.report["left_out"].append(f"{name}: {problem}")
            self.write()
            print(f"{name}: {problem}", flush=True)
            return
        value = best["M_arcs_per_s" if arcs else what]
        if not arcs:
            del best["M_arcs_per_s"]
        row = {"scenario": name, "value": value, "unit": "M arcs/s" if arcs else "s",
               "what": {"seconds": "the whole process", "file_seconds": "from the first seed to the finished file",
                        "prepare_seconds": "from the start to the first seed"}.get(what) if not arcs else "while tracking"}
        if goal is not None:
            row.update(goal=goal, reached=value >= goal if arcs else value <= goal)
        if same_as is not None:
            row["same_bytes"] = best["hash"] == self.hashes.get(same_as)
            if not row["same_bytes"]:
                row["note"] = f"OTHER BYTES than {same_as}"
        self.hashes[name] = best["hash"]
        row["command"] = "cingulum track " + typed(words)
        row.update(best)
        self.add(row)
        if keep is not None:
            shutil.copyfile(file, keep)
        file.unlink()

    def copy(self, name, path):
        """A plain cp: one thread, each byte once."""
        if not path.exists() or not self.wanted(name):
            return
        seconds = min(run(["cp", path, self.folder / "copy"]) for _ in range(REPETITIONS))
        self.add({"scenario": name, "value": seconds, "unit": "s", "what": "the ceiling of one thread",
                  "bytes": path.stat().st_size})
        (self.folder / "copy").unlink()

    def real_series(self):
        if self.options.data is None:
            return
        series = self.folder / "series"
        shutil.copytree(self.options.data, series)
        mask = sorted(series.glob("mask*.nii.gz"))[0]
        words = [series / "dwi.nii.gz", "--mask", mask, "--bvec-frame", "voxel", "--device", "cuda"]
        self.measure("real series to TRX, 200 000 seeds, defaults", [*words, "--nseeds", "200000"], 1.5, "seconds")

    def brain(self):
        brain = self.folder / "brain"
        run([PROGRAM, "phantom", "--preset", "brain", "--type", "float32", "--out", brain, "--quiet"], 300)
        mask = brain / "mask.nii.gz"
        dwi = unpacked(brain / "dwi.nii.gz")
        given = ["--mask", mask, "--bvals", brain / "dwi.bval", "--bvecs", brain / "dwi.bvec"]
        series = [dwi, *given, "--device", "cuda"]
        trx = self.folder / "largest.trx"
        million, name = ["--nseeds", "1000000"], "prob, 1 M seeds, to TRX"
        self.measure(name, [*series, *PROB, *million], 0.5, keep=trx)
        self.copy("cp of that TRX", trx)
        trx.unlink(missing_ok=True)
        for chunk in (5000, 100000, 250000):
            self.measure(f"prob, 1 M seeds, chunks of {chunk}", [*series, *PROB, *million, "--chunk-size", chunk],
                         same_as=name)
        for ending in ("tck", "trk"):
            self.measure(f"prob, 1 M seeds, to {ending.upper()}", [*series, *PROB, *million], ending=ending)
        self.measure("prob, 1 M seeds, float16, linearised",
                     [*series, *PROB, *million, "--float16", "--linearise", "0.1mm"], 0.8)
        self.measure("prob, 1 M seeds, WebGPU", [dwi, *given, "--device", "webgpu", *PROB, *million], 0.9, same_as=name)
        self.measure("prob, 4 M seeds, to TRX", [*series, *PROB, "--nseeds", "4000000"], 1.8)
        self.measure("ptt, defaults, 1 M seeds", [*series, "--dg", "ptt", *million], 150, arcs=True)
        self.measure("boot, 418 MB series, whole process", [*series, "--dg", "boot", "--nseeds", "100000"], 0.8, "seconds")
        self.measure("prob, defaults, 100 000 seeds, whole process", [*series, "--dg", "prob"], what="seconds")
        if not self.wanted("1 GB of amplitudes to a field"):
            return
        csd = self.folder / "csd"
        run([PROGRAM, "fit", dwi, *given, "--model", "csd", "--odf", "--sphere", "repulsion724", "--device", "cuda", "--out",
             csd, "--quiet"], 300)
        amplitudes = unpacked(csd / "odf.nii.gz")
        self.measure("1 GB of amplitudes to a field",
                     ["--sf", amplitudes, "--sphere", csd / "odf_directions.txt", "--mask", mask, "--device", "cuda",
                      "--dg", "prob", "--nseeds", "1000"], 0.6, "prepare_seconds")

    def peers(self):
        """cuslines beside our own rows, by the bench, each with its time limit."""
        if self.options.peers is None:
            return
        packed = self.folder / "peers"
        packed.mkdir()
        subprocess.run(["tar", "-C", packed, "-xf", self.options.peers], check=True)
        environment = {**os.environ, "PYTHONPATH": str(packed)}
        # Headers for kernels that are compiled as they run: those of a toolkit, else those that came along.
        environment.setdefault("CUDA_HOME", "/usr/local/cuda" if pathlib.Path("/usr/local/cuda/include/curand.h").exists()
                               else str(packed / "nvidia/cu13"))
        out = self.out.with_name("track-cuslines-h200.json")
        subprocess.run([PROGRAM, "bench", "track", "--devices", "cuda", "--without", "det", "--peers", "--peer", "cuslines",
                        "--peer-limit", "120", "--repetitions", "2", "--folder", self.folder, "--cache-dir", self.folder,
                        "--out", out, "--force"], env=environment, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="folder of a real series")
    parser.add_argument("--peers", type=pathlib.Path, help="tracking.tar.xz of tools/gpu-peers")
    parser.add_argument("--limit", type=float, default=330, help="seconds after which no scenario begins")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--folder", default="/dev/shm", help="where all files lie")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="whole-runs-") as folder:
        runs = WholeRuns(options, pathlib.Path(folder))
        runs.real_series()
        runs.brain()
        runs.write()
        runs.peers()
    missed = [row["scenario"] for row in runs.report["rows"] if row.get("reached") is False]
    other = [row["scenario"] for row in runs.report["rows"] if row.get("same_bytes") is False]
    for text, names in (("missed", missed), ("other bytes", other), ("left out", runs.report["left_out"])):
        if names:
            print(f"{text}: {'; '.join(names)}")
    sys.exit(1 if other else 0)


if __name__ == "__main__":
    main()
