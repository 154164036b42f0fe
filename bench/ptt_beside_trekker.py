#!/usr/bin/env python3
"""ptt beside Trekker 0.9, its author's program, on the phantoms `brain` (2.5 mm) and `crossing60`: millimetres of streamline
per processor second, and the score of the same streamlines. Both read CSD as `cingulum fit` writes it, start at the same
seeds, end where they leave voxels of FA above 0.2, and run on one thread; programs take turns, and medians are given with their
spread. Trekker is timed without reading its file and sampling it, ours as the difference to a run of one seed.

    ptt_beside_trekker.py PROGRAM FOLDER OUT.json [SEEDS [REPETITIONS]]

FOLDER receives phantoms and fits, and keeps them. Needs the Python packages trekker, nibabel, numpy.
"""
import json
import pathlib
import resource
import statistics
import subprocess
import sys

import nibabel as nib
import numpy as np

TREKKER = """
import json, resource, sys
import nibabel as nib, numpy as np, Trekker
fod, seeds, mask, out, settings = sys.argv[1:]
tracker = Trekker.initialize(fod.encode())
tracker.numberOfThreads(1)
tracker.seed_coordinates(np.loadtxt(seeds).tolist())
tracker.pathway_stop_at_exit(mask.encode())
for name, value in json.loads(settings).items():
    getattr(tracker, name)(value)
seconds = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
start = seconds()
lines = tracker.run()
took = seconds() - start
lines = [np.asarray(line, dtype=np.float32).T for line in lines]
nib.streamlines.save(nib.streamlines.Tractogram(lines, affine_to_rasmm=np.eye(4)), out)
print("took", took)
"""


def child_seconds(words):
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nexit {done.returncode}\n{done.stderr}")
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before, done.stdout


class Phantom:
    def __init__(self, program, folder, name, words, seeds):
        self.program, self.folder, self.name = program, folder / name, name
        if not (self.folder / "dti" / "fit.json").exists():
            child_seconds([program, "phantom", "--preset", name, "--out", self.folder, "--force", "--quiet", *words])
            for model in ("csd", "dti"):
                child_seconds([program, "fit", self.folder / "dwi.nii.gz", "--bvals", self.folder / "dwi.bval", "--bvecs",
                               self.folder / "dwi.bvec", "--mask", self.folder / "mask.nii.gz", "--model", model, "--out",
                               self.folder / model, "--force", "--quiet"])
        fa = nib.load(self.folder / "dti" / "fa.nii.gz")
        passing = (np.asarray(fa.dataobj) > 0.2) & (np.asarray(nib.load(self.folder / "mask.nii.gz").dataobj) > 0)
        self.mask = self.folder / "passing.nii.gz"
        nib.save(nib.Nifti1Image(passing.astype(np.uint8), fa.affine), self.mask)
        rng = np.random.default_rng(1)
        voxels = np.argwhere(passing)
        places = voxels[rng.integers(0, len(voxels), seeds)] + rng.uniform(-0.5, 0.5, (seeds, 3))
        self.seeds, self.one = self.folder / "seeds.txt", self.folder / "one.txt"
        np.savetxt(self.seeds, nib.affines.apply_affine(fa.affine, places), fmt="%.5f")
        np.savetxt(self.one, nib.affines.apply_affine(fa.affine, places[:1]), fmt="%.5f")
        self.fod = self.folder / "csd" / "fod.nii.gz"

    def trekker(self, settings):
        out = self.folder / "trekker.tck"
        _, said = child_seconds([sys.executable, "-c", TREKKER, self.fod, self.seeds, self.mask, out, json.dumps(settings)])
        return float(said.split("took")[-1]), out

    def ours(self, options):
        out = self.folder / "ours.tck"
        words = [self.program, "track", "--sh", self.fod, "--stop-map", self.mask, "--stop-threshold", 0.5, "--dg", "ptt",
                 "--device", "cpu", "--threads", 1, "--out", out, "--force", "--quiet", *options, "--seed-file"]
        start, _ = child_seconds([*words, self.one])
        whole, _ = child_seconds([*words, self.seeds])
        return whole - start, out

    def row(self, seconds, path):
        lines = nib.streamlines.load(path).streamlines
        mm = float(sum(np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in lines))
        score = json.loads(child_seconds([self.program, "score", path, "--truth", self.folder, "--json"])[1])
        return {"mm_per_s": mm / seconds, "streamlines": len(lines), "mean_mm": mm / max(1, len(lines)),
                **{name: score[name] for name in ("valid", "invalid", "f1")}}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, folder, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    seeds = int(sys.argv[4]) if len(sys.argv) > 4 else 3000
    repetitions = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    folder.mkdir(parents=True, exist_ok=True)
    result = {"seeds": seeds, "repetitions": repetitions, "phantoms": {}}
    for name, words in (("brain", ["--voxel-size", "2.5"]), ("crossing60", [])):
        phantom = Phantom(program, folder, name, words, seeds)
        who = {"Trekker": lambda: phantom.trekker({}), "ours": lambda: phantom.ours([]),
               "Trekker, every point written": lambda: phantom.trekker({"writeInterval": 1}),
               "ours, Trekker's parameters": lambda: phantom.ours(["--preset", "trekker"])}
        rows = {key: [] for key in who}
        for _ in range(repetitions):
            for key, body in who.items():
                rows[key].append(phantom.row(*body()))
        table = {}
        for key, runs in rows.items():
            speeds = sorted(run["mm_per_s"] for run in runs)
            table[key] = {number: statistics.median(run[number] for run in runs) for number in runs[0]}
            table[key]["mm_per_s_spread"] = [speeds[0], speeds[-1]]
            print(f"{name:11s} {key:29s} {table[key]['mm_per_s']:9.0f} mm/s ({speeds[0]:.0f} to {speeds[-1]:.0f}), "
                  f"{table[key]['streamlines']:.0f} of {table[key]['mean_mm']:.1f} mm, valid {table[key]['valid']:.3f}, invalid "
                  f"{table[key]['invalid']:.3f}, F1 {table[key]['f1']:.3f}", flush=True)
        for ours in ("ours", "ours, Trekker's parameters"):
            ratio = statistics.median(a["mm_per_s"] / b["mm_per_s"] for a, b in zip(rows[ours], rows["Trekker"]))
            table[ours]["times_trekker"] = ratio
            print(f"{name:11s} {ours}: {ratio:.1f} times Trekker")
        result["phantoms"][name] = table
    pathlib.Path(out).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
