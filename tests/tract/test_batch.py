"""`cingulum batch`: a BIDS dataset tracked in one process. Each tractogram has the bytes of `cingulum track`; what is wrong
with one subject is named and stops no other; what is finished is not repeated; nothing that is shared names this machine."""
import csv
import getpass
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import nibabel as nib
import numpy as np
from tracking import PROGRAM, Folder, device_names, run, track

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import file_calls  # noqa: E402  (beside the folder of the script)
import suite  # noqa: E402

OPTIONS = ["--dg", "prob", "--nseeds", 300, "--fa-threshold", "0.25", "--device", "cpu", "--bvec-frame", "fsl"]
NAME = "tract-wholebrain_track-prob_tractogram"


def batch(*words, check=True, **options):
    return run("batch", *words, "--progress", "none", check=check, **options)


def failures_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["unit"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


class Study:
    """A raw dataset: sub-01 alone, sub-02 with two sessions, tables inherited from the top; and copies to be spoilt."""

    def __init__(self):
        self.folder = Folder()
        self.path = self.folder / "study"
        self.phantoms = [self.folder.phantom(f"phantom{seed}", "--preset", "crossing", "--voxel-size", "3", "--seed", seed) for seed in (1, 2)]
        self.path.mkdir()
        (self.path / "dataset_description.json").write_text('{"Name": "study", "BIDSVersion": "1.9.0"}')
        for ending in ("bval", "bvec"):
            shutil.copy(self.phantoms[0] / f"dwi.{ending}", self.path / f"dwi.{ending}")
        self.add("01", 0)
        self.add("02", 1, "a")
        self.add("02", 0, "b")

    def base(self, subject, session=None):
        name = f"sub-{subject}" + (f"_ses-{session}" if session else "")
        folder = self.path / f"sub-{subject}"
        return (folder / f"ses-{session}" if session else folder) / "dwi" / name

    def add(self, subject, phantom=0, session=None):
        base = self.base(subject, session)
        base.parent.mkdir(parents=True)
        shutil.copy(self.phantoms[phantom] / "dwi.nii.gz", f"{base}_dwi.nii.gz")
        shutil.copy(self.phantoms[phantom] / "mask.nii.gz", f"{base}_desc-brain_mask.nii.gz")
        return base

    def series(self, subject, session=None):
        return pathlib.Path(f"{self.base(subject, session)}_dwi.nii.gz")

    def output(self, out, subject, session=None):
        return out / self.base(subject, session).relative_to(self.path).with_name(self.base(subject, session).name + f"_{NAME}.trx")

    def close(self):
        self.folder.close()


class Batch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.study = Study()
        cls.units = [("01", None), ("02", "a"), ("02", "b")]
        cls.truth = {}
        for subject, session in cls.units:
            base = cls.study.base(subject, session)
            out = cls.study.folder / f"{base.name}.trx"
            track(f"{base}_dwi.nii.gz", "--bvals", cls.study.path / "dwi.bval", "--bvecs", cls.study.path / "dwi.bvec", "--mask", f"{base}_desc-brain_mask.nii.gz",
                  *OPTIONS, "--out", out)
            cls.truth[subject, session] = out.read_bytes()

    @classmethod
    def tearDownClass(cls):
        cls.study.close()

    def setUp(self):
        self.out = self.study.folder / self.id().split(".")[-1]

    def run_batch(self, *words, out=None, **options):
        return batch(self.study.path, out or self.out, "participant", *OPTIONS, *words, **options)

    def summary(self, *words, **options):
        return json.loads(self.run_batch(*words, "--json", "--quiet", **options).stdout)

    def assert_all_are_there(self, out=None):
        for unit in self.units:
            self.assertEqual(self.study.output(out or self.out, *unit).read_bytes(), self.truth[unit], unit)

    def partial_files(self, out=None):
        return [path for path in (out or self.out).rglob("*") if "partial" in path.name]

    def test_each_tractogram_has_the_bytes_of_track(self):
        for words in (("--threads", 1), ("--threads", 2), ("--threads", 2, "--at-once", 8)):
            out = self.out.with_name(f"{self.out.name}{words[-1]}{len(words)}")
            said = self.summary(*words, out=out)
            self.assertEqual((said["done"], said["finished_before"], said["failed"]), (3, 0, 0))
            self.assert_all_are_there(out)
            self.assertEqual((out / "failures.tsv").read_text(), "unit\tfile\terror\tcommand\n")
            self.assertEqual(self.partial_files(out), [])

    def test_devices_write_the_same_and_know_what_another_finished(self):
        names = device_names()
        if not names:
            self.skipTest("neither WebGPU nor CUDA is there")
        for name in names:
            out = self.out.with_name(f"on-{name}")
            words = [word if word != "cpu" else name for word in OPTIONS]
            batch(self.study.path, out, "participant", *words, "--quiet")
            self.assert_all_are_there(out)
            self.assertEqual(self.summary(out=out)["finished_before"], 3)

    def test_without_a_mask_one_is_made_and_named_after_bids(self):
        base = self.study.add("11")
        mask = pathlib.Path(f"{base}_desc-brain_mask.nii.gz")
        mask.unlink()
        try:
            self.run_batch("--participant-label", "11")
            alone = self.study.folder / "alone.trx"
            track(f"{base}_dwi.nii.gz", "--bvals", self.study.path / "dwi.bval", "--bvecs", self.study.path / "dwi.bvec", *OPTIONS, "--out", alone)
            self.assertEqual(self.study.output(self.out, "11").read_bytes(), alone.read_bytes())
            made = self.out / "sub-11" / "dwi" / "sub-11_desc-brain_mask.nii.gz"
            self.assertEqual(made.read_bytes(), (self.study.folder / "alone.trx.mask.nii.gz").read_bytes())
            # One that was killed after its mask was written goes on.
            for path in (self.study.output(self.out, "11"), self.study.output(self.out, "11").with_suffix(".json")):
                path.unlink()
            self.assertEqual(self.summary("--participant-label", "11")["done"], 1)
        finally:
            shutil.rmtree(base.parent.parent)

    def test_sidecars_are_of_bids_and_every_verb_finds_them(self):
        out = self.study.path / "derivatives" / "cingulum"
        self.run_batch(out=out)
        try:
            file = self.study.output(out, "02", "a")
            sidecar = json.loads(file.with_suffix(".json").read_text())
            raw = "bids:raw:sub-02/ses-a/dwi/sub-02_ses-a"
            self.assertEqual(set(sidecar["Sources"]), {f"{raw}_dwi.nii.gz", "bids:raw:dwi.bval", "bids:raw:dwi.bvec", f"{raw}_desc-brain_mask.nii.gz"})
            self.assertEqual(sidecar["Cingulum"]["plan"]["getter"], "prob")
            self.assertFalse(file.with_name(file.name + ".json").exists())
            description = json.loads((out / "dataset_description.json").read_text())
            self.assertEqual(description["DatasetType"], "derivative")
            self.assertEqual(description["DatasetLinks"], {"raw": "../.."})
            self.assertIn("*_tractogram.*", (out / ".bidsignore").read_text().split())

            said = json.loads(run("info", file, "--json").stdout)["files"][0]
            self.assertIn("sidecar XXH3-128", said["checksums"])
            run("verify", file)
            page = self.study.folder / "report.html"
            run("report", file, "--out", page, "--quiet")
            self.assertIn("fa-threshold", page.read_text())
            again = self.study.folder / "again.trx"
            track("--from", file.with_suffix(".json"), "--device", "cpu", "--out", again)
            self.assertEqual(again.read_bytes(), self.truth["02", "a"])
            # And where the dataset lies elsewhere, by what this machine knows.
            del description["DatasetLinks"]
            (out / "dataset_description.json").write_text(json.dumps(description))
            track("--from", file.with_suffix(".json"), "--device", "cpu", "--out", again, "--force")
            self.assertEqual(again.read_bytes(), self.truth["02", "a"])
            damaged = bytearray(file.read_bytes())
            damaged[-100] ^= 1
            file.write_bytes(damaged)
            self.assertEqual(run("verify", file, check=False).returncode, 1)
        finally:
            shutil.rmtree(self.study.path / "derivatives")

    def test_nothing_that_is_shared_names_host_user_or_path(self):
        region = self.study.folder / "region.nii.gz"
        shutil.copy(self.study.phantoms[0] / "mask.nii.gz", region)
        self.run_batch("--include", region)
        looked_at = set()
        for path in self.out.rglob("*"):
            if not path.is_file() or ".cingulum" in path.parts or path.name == "failures.tsv":
                continue
            text = path.read_bytes().decode("latin-1")
            self.assertFalse(str(self.study.folder.path) in text or os.getcwd() in text, path)
            if path.suffix != ".trx":  # numbers may read like a short name
                looked_at.add(path.suffix or path.name)
                for secret in (socket.gethostname(), getpass.getuser(), pathlib.Path.home().name):
                    self.assertNotRegex(text, rf"\b{re.escape(secret)}\b", path)
        self.assertEqual(looked_at, {".json", ".bidsignore"})
        sidecar = json.loads(self.study.output(self.out, "01").with_suffix(".json").read_text())
        self.assertEqual(sidecar["Cingulum"]["arguments"]["options"]["include"], ["region.nii.gz"])

    def test_what_is_finished_is_not_repeated(self):
        self.run_batch()
        times = {unit: self.study.output(self.out, *unit).stat().st_mtime_ns for unit in self.units}
        said = self.summary()
        self.assertEqual((said["done"], said["finished_before"], said["failed"]), (0, 3, 0))
        # One that is gone is made again, alone.
        self.study.output(self.out, "01").unlink()
        said = self.summary()
        self.assertEqual((said["done"], said["finished_before"], said["failed"]), (1, 2, 0))
        self.assert_all_are_there()
        for unit in self.units[1:]:
            self.assertEqual(self.study.output(self.out, *unit).stat().st_mtime_ns, times[unit])
        # Another plan under the same name is named, and nothing is replaced.
        done = self.run_batch("--max-angle", 20, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("max-angle", failures_of(self.out / "failures.tsv")["sub-02_ses-b"]["error"])
        self.assert_all_are_there()
        self.assertEqual(self.summary("--max-angle", 20, "--force")["done"], 3)
        self.assertNotEqual(self.study.output(self.out, "01").read_bytes(), self.truth["01", None])
        # And so are other inputs, a file that changed, another version.
        self.assertEqual(self.summary("--force")["done"], 3)
        self.assertEqual(failures_of(self.out / "failures.tsv"), {})
        mask = pathlib.Path(f"{self.study.base('01')}_desc-brain_mask.nii.gz")
        kept = mask.read_bytes()
        image = nib.load(mask)
        values = np.asarray(image.dataobj).copy()
        values[:3] = 0
        nib.save(nib.Nifti1Image(values, image.affine), mask)
        other = self.study.output(self.out, "02", "a")
        other.write_bytes(other.read_bytes() + b" ")
        sidecar = self.study.output(self.out, "02", "b").with_suffix(".json")
        sidecar.write_text(sidecar.read_text().replace('"version": "', '"version": "99.'))
        try:
            self.assertEqual(self.run_batch(check=False).returncode, 1)
        finally:
            mask.write_bytes(kept)
        said = failures_of(self.out / "failures.tsv")
        self.assertIn("of other inputs", said["sub-01"]["error"])
        self.assertIn("has changed since", said["sub-02_ses-a"]["error"])
        self.assertIn("by version 99.", said["sub-02_ses-b"]["error"])

    def test_bad_input_is_named_and_stops_nobody(self):
        study = self.study
        bad = {}

        def spoil(subject, file, text):
            bad[f"sub-{subject}"] = (file, text)
            return study.add(subject)

        added = []
        try:
            base = spoil("20", "sub-20_dwi.nii.gz", "")
            series = pathlib.Path(f"{base}_dwi.nii.gz")
            series.write_bytes(series.read_bytes()[: series.stat().st_size // 2])
            base = spoil("21", "sub-21_dwi.nii.gz", "")
            pathlib.Path(f"{base}_dwi.nii.gz").write_bytes(b"")
            base = spoil("22", "sub-22_dwi.nii.gz", "")
            series = pathlib.Path(f"{base}_dwi.nii.gz")
            series.unlink()
            series.symlink_to("nowhere.nii.gz")
            base = spoil("23", "sub-23_dwi.bvec", "two files *.bvec apply")
            for name in ("_acq-x_dwi.nii.gz", "_acq-x_dir-AP_dwi.nii.gz"):
                shutil.copy(f"{base}_dwi.nii.gz", f"{base}{name}")
            os.unlink(f"{base}_dwi.nii.gz")
            os.unlink(f"{base}_acq-x_dwi.nii.gz")
            for name in ("_acq-x_dwi.bvec", "_dwi.bvec"):
                shutil.copy(study.path / "dwi.bvec", f"{base}{name}")
            bad["sub-23_acq-x_dir-AP"] = bad.pop("sub-23")
            base = spoil("24", "sub-24_mask.nii.gz", "two masks apply")
            shutil.copy(f"{base}_desc-brain_mask.nii.gz", f"{base}_mask.nii.gz")
            base = spoil("25", "", "")  # vectors of another frame: axes exchanged
            rows = np.loadtxt(study.path / "dwi.bvec")[[1, 2, 0]]
            np.savetxt(f"{base}_dwi.bvec", rows)
            base = spoil("26", "sub-26_dwi.bvec", "")
            pathlib.Path(f"{base}_dwi.bvec").write_text("1 0 0\n0 1 0\n0 0 1\n")
            base = spoil("27", "sub-27_desc-brain_mask.nii.gz", "")
            pathlib.Path(f"{base}_desc-brain_mask.nii.gz").write_bytes(b"not an image")
            bad["sub-28"] = ("sub-28/dwi", "symbolic links")
            (study.path / "sub-28").mkdir()
            (study.path / "sub-28" / "dwi").symlink_to("dwi")
            bad["sub-2 9"] = ("sub-2 9", "not the name of a subject")
            (study.path / "sub-2 9" / "dwi").mkdir(parents=True)
            bad["sub-30"] = ("sub-30", "no diffusion series")
            (study.path / "sub-30").mkdir()
            added = [path for path in study.path.iterdir() if path.name.startswith(("sub-2", "sub-3"))]
            # The reading of vectors is judged, not believed.
            words = [word for word in OPTIONS if word not in ("--bvec-frame", "fsl")]
            done = batch(study.path, self.out, "participant", *words, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            said = failures_of(self.out / "failures.tsv")
            self.assertEqual(set(said), set(bad))
            for unit, (file, text) in bad.items():
                self.assertIn(file, said[unit]["file"] + said[unit]["error"], unit)
                self.assertIn(text, said[unit]["error"], unit)
                self.assertGreater(len(said[unit]["error"]), 10)
                self.assertIn(unit, done.stderr)
            for unit in self.units:
                self.assertTrue(self.study.output(self.out, *unit).exists(), unit)
            self.assertEqual(self.partial_files(), [])
            written = {path.name for path in self.out.rglob("*_tractogram.*")}
            self.assertEqual(len(written), 6, written)
            # The command of a line repeats that subject: once it is mended, the line is gone and others stay.
            shutil.copy(study.phantoms[0] / "dwi.nii.gz", study.series("21"))
            command = said["sub-21"]["command"]
            self.assertTrue(command.startswith("cingulum batch "))
            subprocess.run(command.replace("cingulum", PROGRAM, 1) + " --quiet --progress none", shell=True, check=True)
            left = failures_of(self.out / "failures.tsv")
            self.assertEqual(set(left), set(bad) - {"sub-21"})
        finally:
            for path in added:
                shutil.rmtree(path)

    def test_a_disk_that_is_full_is_named_and_leaves_nothing_under_a_final_name(self):
        # SIGXFSZ ignored, so that writing beyond the limit fails as a full disk or a quota does.
        def little_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        done = self.run_batch(check=False, preexec_fn=little_room)
        self.assertEqual(done.returncode, 1, done.stderr)
        said = failures_of(self.out / "failures.tsv")
        self.assertEqual(set(said), {"sub-01", "sub-02_ses-a", "sub-02_ses-b"})
        for row in said.values():
            self.assertIn("tractogram.trx", row["error"])
        self.assertEqual(list(self.out.rglob("*_tractogram.*")), [])
        self.run_batch()
        self.assert_all_are_there()

    @unittest.skipUnless(file_calls.LIBRARY, "builds with sanitizers preload nothing")
    def test_a_file_system_without_locks_gets_the_same_files(self):
        """What another left there stays: without locks the living cannot be told from the dead."""
        dead = subprocess.Popen(["true"])
        dead.wait()
        left = pathlib.Path(f"{self.study.output(self.out, '01')}.partial-{dead.pid}-0")
        left.parent.mkdir(parents=True)
        left.write_bytes(b"of another")
        log = self.study.folder / "locks.log"
        done = file_calls.run([PROGRAM, "batch", str(self.study.path), str(self.out), "participant", *map(str, OPTIONS), "--quiet", "--progress", "none"],
                              self.out, CINGULUM_TEST_NO_LOCKS="1", CINGULUM_TEST_CALLS_LOG=str(log))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lock\t", log.read_text())
        self.assert_all_are_there()
        self.assertEqual(self.partial_files(), [left])

    def test_a_killed_worker_loses_what_it_had_under_way_alone(self):
        many = [*self.units]
        for subject in ("40", "41", "42", "43"):
            self.study.add(subject)
            many.append((subject, None))
        try:
            whole = self.out.with_name("whole")
            self.run_batch(out=whole)
            worker = subprocess.Popen([PROGRAM, "batch", str(self.study.path), str(self.out), "participant", *map(str, OPTIONS), "--quiet", "--progress", "none",
                                       "--threads", "1"])
            first = self.study.output(self.out, "01").with_suffix(".json")
            until = time.monotonic() + 100
            while not (first.exists() and '"pending"' not in first.read_text()) and time.monotonic() < until and worker.poll() is None:
                time.sleep(0.005)
            worker.kill()
            worker.wait()
            kept = [unit for unit in many if self.study.output(self.out, *unit).with_suffix(".json").exists()]
            self.assertIn(("01", None), kept)
            finished = {unit: self.study.output(self.out, *unit).stat().st_mtime_ns for unit in kept if self.study.output(self.out, *unit).exists()}
            said = self.summary()
            self.assertEqual(said["failed"], 0)
            self.assertGreaterEqual(said["finished_before"], len(kept) - 1)
            for unit in many:
                self.assertEqual(self.study.output(self.out, *unit).read_bytes(), self.study.output(whole, *unit).read_bytes())
                run("verify", self.study.output(self.out, *unit))
            unchanged = [unit for unit, when in finished.items() if self.study.output(self.out, *unit).stat().st_mtime_ns == when]
            self.assertEqual(len(unchanged), said["finished_before"])
        finally:
            for subject in ("40", "41", "42", "43"):
                shutil.rmtree(self.study.path / f"sub-{subject}")

    def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(self):
        words = [PROGRAM, "batch", str(self.study.path), str(self.out), "participant", *map(str, OPTIONS), "--nseeds", "300000", "--quiet"]
        words.remove("300")
        words.remove("--nseeds")
        worker = subprocess.Popen(words)
        until = time.monotonic() + 60
        while not (self.out / "failures.tsv").exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(timeout=60), 130)
        self.assertEqual(list(self.out.rglob("*_tractogram.trx")), [])
        self.run_batch()
        self.assert_all_are_there()

    def test_labels_lists_and_shards_select(self):
        def units(*words, **options):
            said = json.loads(batch(self.study.path, self.out, "participant", *OPTIONS, "--explain", "--json", *words, **options).stdout)
            return [unit["unit"] for unit in said["units"]], said

        every = ["sub-01", "sub-02_ses-a", "sub-02_ses-b"]
        self.assertEqual(units()[0], every)
        self.assertFalse(self.out.exists())
        self.assertEqual(units("--participant-label", "sub-02")[0], every[1:])
        self.assertEqual(units("--participant-label", "01 02", "--session-label", "b")[0], ["sub-02_ses-b"])
        # As BIDS Apps are called: underscores, and labels that follow one another.
        self.assertEqual(units("--participant_label", "sub-01", "02", "--session_label", "a", "b")[0], every[1:])
        for count in (1, 2, 3, 5):
            shards = [units("--shard", f"{number}/{count}", check=False)[0] for number in range(1, count + 1)]
            self.assertEqual([unit for shard in shards for unit in shard], every)
        table = self.study.folder / "list.tsv"
        table.write_text("participant_id\tage\tsession_id\nsub-02\t3\tb\n01\t4\tn/a\nsub-02\t3\tses-b\nsub-99\t\t\nsub-..\t1\t\n")
        listed, said = units("--list", table)
        self.assertEqual(listed, ["sub-01", "sub-02_ses-b"])
        wrong = {row["unit"]: row["error"] for row in said["failures"]}
        self.assertIn("line 4 of the list lists it a second time", wrong["sub-02"])
        self.assertIn("no such series", wrong["sub-99"])
        self.assertIn("letters and digits", wrong["sub-.."])
        for words in (("--participant-label", ".."), ("--participant-label", "0 /1"), ("--shard", "4/3"), ("--shard", "x"), ("--list", self.study.path / "dwi.bval")):
            self.assertEqual(batch(self.study.path, self.out, "participant", *words, check=False).returncode, 2, words)
        self.assertEqual(batch(self.study.folder / "absent", self.out, "participant", check=False).returncode, 2)
        self.assertEqual(batch(self.study.path, self.study.path, "participant", check=False).returncode, 2)
        self.assertEqual(self.run_batch("--participant-label", "98", check=False).returncode, 1)

    def test_explain_says_of_each_what_track_says(self):
        said = json.loads(batch(self.study.path, self.out, "participant", *OPTIONS, "--explain", "--json").stdout)
        unit = said["units"][1]
        self.assertEqual((unit["subject"], unit["session"], unit["bval"], unit["finished"]), ("02", "a", "dwi.bval", False))
        self.assertEqual(self.out / unit["output"], self.study.output(self.out, "02", "a"))
        base = self.study.base("02", "a")
        alone = json.loads(track(f"{base}_dwi.nii.gz", "--bvals", self.study.path / "dwi.bval", "--bvecs", self.study.path / "dwi.bvec", "--mask",
                                 f"{base}_desc-brain_mask.nii.gz", *OPTIONS, "--explain", "--json").stdout)
        self.assertEqual(unit["explain"], alone)
        self.run_batch("--participant-label", "02")
        said = json.loads(batch(self.study.path, self.out, "participant", *OPTIONS, "--explain", "--json").stdout)
        self.assertEqual([unit["finished"] for unit in said["units"]], [False, True, True])

    def test_shards_of_one_dataset_share_a_folder(self):
        workers = [subprocess.Popen([PROGRAM, "batch", str(self.study.path), str(self.out), "participant", *map(str, OPTIONS), "--quiet", "--progress", "none",
                                     "--shard", f"{number}/2", "--threads", "1"]) for number in (1, 2)]
        self.assertEqual([worker.wait(timeout=300) for worker in workers], [0, 0])
        self.assert_all_are_there()
        self.assertEqual(sorted(path.name for path in self.out.glob("failures*")), ["failures-1of2.tsv", "failures-2of2.tsv"])

    def test_the_page_of_a_cohort_marks_what_is_far_from_the_others(self):
        self.run_batch()
        # Eight copies whose sidecars say a little different lengths, and one that is far.
        source = self.study.output(self.out, "01")
        sidecar = json.loads(source.with_suffix(".json").read_text())
        for number in range(8):
            copy = self.out / f"sub-5{number}" / "dwi" / f"sub-5{number}_{NAME}.trx"
            copy.parent.mkdir(parents=True)
            shutil.copy(source, copy)
            sidecar["Cingulum"]["result"]["mean_length_mm"] = 40 + number if number != 3 else 90
            copy.with_suffix(".json").write_text(json.dumps(sidecar))
        broken = self.out / "sub-60" / "dwi" / f"sub-60_{NAME}.trx"
        broken.parent.mkdir(parents=True)
        broken.write_bytes(b"nothing")
        said = json.loads(batch(self.study.path, self.out, "group", "--json", "--truth", self.study.phantoms[0]).stdout)
        rows = {row["name"]: row for row in said["subjects"]}
        self.assertEqual(len(rows), 12)
        far = [name for name, row in rows.items() if "mean_length_mm" in row["outlying"]]
        self.assertEqual(far, [f"sub-53_{NAME}"])
        self.assertIn("problem", rows[f"sub-60_{NAME}"])
        self.assertEqual(rows[f"sub-01_{NAME}"]["streamlines"], json.loads(run("info", source, "--json").stdout)["files"][0]["streamlines"])
        score = json.loads(run("score", source, "--truth", self.study.phantoms[0], "--json", "--quiet").stdout)
        self.assertAlmostEqual(rows[f"sub-01_{NAME}"]["valid"], score["valid"])
        page = (self.out / "cohort.html").read_text()
        self.assertEqual(page.count("<tr"), 12 + 2)
        self.assertEqual(page.count("data:image/png"), 11)
        self.assertNotIn(str(self.study.folder.path), page)
        self.assertEqual(batch(self.study.path, self.study.folder / "absent", "group", check=False).returncode, 2)

    def test_derivatives_of_qsiprep_are_tracked_with_their_mask(self):
        root = self.study.folder / "qsiprep"
        base = root / "sub-01" / "dwi" / "sub-01_space-ACPC_desc-preproc_dwi"
        base.parent.mkdir(parents=True)
        for ending in ("nii.gz", "bval", "bvec"):
            shutil.copy(self.study.phantoms[0] / f"dwi.{ending}", f"{base}.{ending}")
        mask = root / "sub-01" / "dwi" / "sub-01_space-ACPC_desc-brain_mask.nii.gz"
        shutil.copy(self.study.phantoms[0] / "mask.nii.gz", mask)
        batch(root, self.out, "participant", *OPTIONS)
        made = self.out / "sub-01" / "dwi" / f"sub-01_space-ACPC_{NAME}.trx"
        self.assertEqual(made.read_bytes(), self.truth["01", None])
        self.assertIn("bids:raw:sub-01/dwi/sub-01_space-ACPC_desc-brain_mask.nii.gz", json.loads(made.with_suffix(".json").read_text())["Sources"])


if __name__ == "__main__":
    suite.main()
