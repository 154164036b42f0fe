"""The workflow as a whole command for the tests beside it: data, runs of Nextflow, what its trace says, and the truth, which
is single runs of `cingulum track`.

CINGULUM names the program; the folder it lies in goes first in PATH, behind what a test puts before it.
"""
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["CINGULUM"]).resolve()
TRACK_ARGUMENTS = "--dg prob --nseeds 3000"


def cingulum(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True, **options).stdout


class Case(unittest.TestCase):
    """A folder of its own for each test; it goes away where the test passed."""

    def setUp(self):
        below = pathlib.Path(os.environ.get("CINGULUM_TEST_FOLDER", tempfile.gettempdir()))
        below.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cluster-", dir=below))
        self.addCleanup(self.remove_folder)

    def remove_folder(self):
        result = self._outcome.result
        failed = any(getattr(test, "test_case", test) is self for test, _ in result.failures + result.errors)
        if failed:
            print(f"kept for a look: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def sheet(self, *subjects, voxel="2.5"):
        """A table of phantoms, made once for the whole script."""
        lines = ["subject,session,dwi,bval,bvec,mask"]
        for number, subject in enumerate(subjects):
            data = phantom(number, voxel)
            lines.append(f"{subject},,{data}/dwi.nii.gz,,,{data}/mask.nii.gz")
        path = self.folder / "sheet.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    def assert_single_runs(self, outdir, units, sidecars=True):
        """The workflow's files are those of single runs; units: path below outdir without ending -> (folder of the phantom,
        whether its mask was given). Sidecars of batches speak of a tree, and are tested with `batch`."""
        self.assertTrue(units)
        for name, (data, with_mask) in units.items():
            expected, sidecar = single_run(data, with_mask)
            found = outdir / f"{name}.trx"
            self.assertTrue(found.exists(), f"{found} is missing")
            self.assertEqual(digest(found), expected, f"{found} is not the file of a single run")
            if sidecars:
                merged = json.loads((outdir / f"{name}.json").read_text())["Cingulum"]
                self.assertEqual(without_places(merged), sidecar)


_phantoms = {}


def phantom(number, voxel="2.5"):
    if (number, voxel) not in _phantoms:
        root = pathlib.Path(os.environ.get("CINGULUM_TEST_FOLDER", tempfile.gettempdir())) / f"phantoms-{os.getpid()}"
        root.mkdir(parents=True, exist_ok=True)
        out = root / f"{number}-{voxel}"
        cingulum("phantom", "--preset", "crossing60", "--voxel-size", voxel, "--seed", number + 1, "--quiet", "--out", out)
        _phantoms[number, voxel] = out
    return _phantoms[number, voxel]


def remove_phantoms():
    for out in _phantoms.values():
        shutil.rmtree(out.parent, ignore_errors=True)


def bids_tree(folder, subjects):
    tree = folder / "bids"
    for number, subject in enumerate(subjects):
        into = tree / f"sub-{subject}" / "dwi"
        into.mkdir(parents=True)
        for kind in ("nii.gz", "bval", "bvec"):
            shutil.copy(phantom(number) / f"dwi.{kind}", into / f"sub-{subject}_dwi.{kind}")
    (tree / "dataset_description.json").write_text(json.dumps({"Name": "t", "BIDSVersion": "1.10.0", "DatasetType": "raw"}))
    return tree


def batch_units(subjects):
    """What batches make of such a tree, for assert_single_runs."""
    return {f"sub-{subject}/dwi/sub-{subject}_tract-wholebrain_track-prob_tractogram": (phantom(number), False)
            for number, subject in enumerate(subjects)}


_single_runs = {}


def single_run(data, with_mask=True, arguments=TRACK_ARGUMENTS):
    """SHA-256 of the tractogram that one plain run makes, and its sidecar without places and times."""
    key = (data, with_mask, arguments)
    if key not in _single_runs:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "tracks.trx"
            mask = ["--mask", data / "mask.nii.gz"] if with_mask else []
            cingulum("track", data / "dwi.nii.gz", "--bvals", data / "dwi.bval", "--bvecs", data / "dwi.bvec", *mask, "--quiet",
                     "--device", "cpu", "--out", out, *arguments.split())
            sidecar = json.loads(pathlib.Path(f"{out}.json").read_text())
            _single_runs[key] = digest(out), without_places(sidecar)
    return _single_runs[key]


def without_places(sidecar):
    """What two equal runs in different folders share: all but `run` and the names of files."""
    kept = {name: value for name, value in sidecar.items() if name not in ("run", "file")}
    kept["arguments"] = {"options": {name: value for name, value in sidecar["arguments"]["options"].items()
                                     if name not in ("data", "bvals", "bvecs", "mask")}}
    kept["inputs"] = [{name: value for name, value in entry.items() if name != "path"} for entry in sidecar["inputs"]]
    return kept


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Run:
    """One run of the workflow in a folder, which may be stopped while it goes."""

    def __init__(self, folder, *arguments, before=(), environment=None, command=None, wrap=()):
        self.folder = folder
        self.log = folder / ".nextflow.log"
        paths = [*map(str, before), str(PROGRAM.parent), os.environ["PATH"]]
        variables = dict(os.environ, PATH=":".join(paths), **(environment or {}))
        variables.pop("CINGULUM_THREADS", None)
        words = [*wrap, PROJECT / "tools/nextflow", "run", command or PROJECT / "workflows", *arguments]
        self.output = folder / "output.txt"
        with open(self.output, "w") as output:
            self.process = subprocess.Popen([str(word) for word in words], cwd=folder, env=variables, stdout=output,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self, seconds=500):
        try:
            self.status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError(f"the workflow did not end within {seconds} s:\n{self.said()}")
        return self

    def end(self):
        """Whatever is left of it: Nextflow and, on this machine, its tasks, which are in its session or below it."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def said(self):
        return self.output.read_text()

    def counts(self):
        """succeeded, cached, failed, retries as Nextflow counts them at its end."""
        found = re.findall(r"(succeeded|cached|failed|retries)Count=(\d+)", self.log.read_text())
        if not found:
            raise AssertionError(f"{self.log} has no counts:\n{self.said()}")
        return {name: int(count) for name, count in found}

    def tasks(self, outdir):
        """Rows of the trace."""
        with open(outdir / "pipeline_info" / "trace.txt", newline="") as table:
            return list(csv.DictReader(table, delimiter="\t"))

    def until(self, condition, seconds=300, step=0.05):
        begin = time.monotonic()
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"the workflow ended before what was waited for:\n{self.said()}")
            if time.monotonic() - begin > seconds:
                raise AssertionError(f"what was waited for did not happen within {seconds} s:\n{self.said()}")
            time.sleep(step)
