"""`track --prepare` and `--prepared`: a run from the file writes what a run from the series writes, also where the series is
not at hand, and a file that is damaged or made for another field is refused by name."""
import json
import pathlib
import random
import shutil
import sys
import unittest

from tracking import Folder, run, track

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)


class Prepared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.phantom = cls.folder.phantom("phantom", "--preset", "crossing", "--voxel-size", "3")
        cls.data = [cls.phantom / "dwi.nii.gz", "--bvec-frame", "fsl", "--fa-threshold", "0.25", "--device", "cpu"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def sidecar(self, path):
        facts = json.loads(path.with_name(path.name + ".json").read_text())
        del facts["run"], facts["file"]
        return facts

    def without_the_series(self, work):
        away = self.folder / "away"
        shutil.move(self.phantom, away)
        try:
            work()
        finally:
            shutil.move(away, self.phantom)

    def test_every_getter_writes_the_file_of_the_series(self):
        mask = ["--mask", self.phantom / "mask.nii.gz"]
        for getter, more in (("prob", [*mask, "--field-precision", "half"]), ("boot", mask), ("ptt", []), ("det", [*mask, "--interpolate", "harmonics"]),
                             ("closest", mask), ("tensor", mask)):
            words = [*self.data, *more, "--dg", getter, "--nseeds", 60, "--save-seeds"]
            whole, fit = self.folder / f"{getter}.trx", self.folder / f"{getter}.fit"
            track(*words, "--out", whole)
            track(*words, "--prepare", fit)
            merged, again = self.folder / f"{getter}-merged.trx", self.folder / f"{getter}-again.trx"

            def work(getter=getter, fit=fit, merged=merged, again=again):
                track("--prepared", fit, "--device", "cpu", "--out", again)
                parts = [self.folder / f"{getter}-{number}.trx" for number in (1, 2, 3)]
                for number, part in enumerate(parts, 1):
                    track("--prepared", fit, "--device", "cpu", "--part", f"{number}/3", "--out", part)
                run("merge", *parts, "--out", merged, "--quiet")

            self.without_the_series(work)
            for made in (again, merged):
                self.assertEqual(made.read_bytes(), whole.read_bytes(), getter)
                self.assertEqual(self.sidecar(made), self.sidecar(whole), getter)

    def test_options_that_leave_the_field_alone_may_change(self):
        fit, ours, theirs = (self.folder / name for name in ("more.fit", "more-ours.trx", "more-theirs.trx"))
        words = [*self.data, "--mask", self.phantom / "mask.nii.gz", "--dg", "prob"]
        track(*words, "--prepare", fit)
        changed = ["--nseeds", 90, "--max-angle", 35, "--seed", 7, "--min-length", 12, "--seed-mask",
                   self.phantom / "mask.nii.gz"]
        track("--prepared", fit, *changed, "--device", "cpu", "--out", ours)
        track(*words, *changed, "--out", theirs)
        self.assertEqual(ours.read_bytes(), theirs.read_bytes())
        self.assertEqual(self.sidecar(ours)["inputs"], self.sidecar(theirs)["inputs"])
        for option, value, said in (("--fa-threshold", 0.3, "stop_threshold"), ("--model", "csa", "model"),
                                    ("--sh-order", 4, "degree"), ("--dg", "boot", "model")):
            out = self.folder / "refused.trx"
            done = track("--prepared", fit, option, value, "--device", "cpu", "--out", out, check=False)
            self.assertNotEqual(done.returncode, 0, option)
            self.assertIn(said, done.stderr)
            self.assertIn("--prepare", done.stderr)
            self.assertFalse(out.exists())

    def test_what_is_no_prepared_run_is_refused(self):
        fit, out = self.folder / "good.fit", self.folder / "never.trx"
        words = [*self.data, "--mask", self.phantom / "mask.nii.gz", "--dg", "tensor", "--nseeds", 20]
        track(*words, "--prepare", fit)
        content, place = fit.read_bytes(), random.Random(11)
        bad = self.folder / "bad.fit"

        def refused(*said, path=bad):
            done = track("--prepared", path, "--device", "cpu", "--out", out, check=False)
            self.assertNotEqual(done.returncode, 0)
            for text in (path.name, *said):
                self.assertIn(text, done.stderr)
            self.assertFalse(out.exists())

        for _ in range(40):
            damaged = bytearray(content)
            damaged[place.randrange(len(content))] ^= 1 << place.randrange(8)
            bad.write_bytes(damaged)
            refused()
        for size in (0, 10, 60, 1000, len(content) // 2, len(content) - 1):
            bad.write_bytes(content[:size])
            refused()
        bad.write_bytes(content + b"\0")
        refused()
        track(*words, "--cache-dir", self.folder / "cache", "--out", self.folder / "kept.trx")
        kept = next((self.folder / "cache").rglob("*.fit"))
        refused("--cache-dir", path=kept)
        track("--prepared", fit, "--device", "cpu", "--out", out)
        out.unlink()

    def test_what_cannot_be_prepared_is_said(self):
        fit = self.folder / "no.fit"
        done = track("--peaks", self.phantom / "mask.nii.gz", "--dg", "closest", "--device", "cpu", "--prepare", fit,
                     check=False)
        self.assertNotEqual(done.returncode, 0)
        for words, said in ((["--out", self.folder / "x.trx"], "exclude"), (["--part", "1/2"], "exclude")):
            done = track(*self.data, "--dg", "tensor", "--prepare", fit, *words, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
        good = self.folder / "twice.fit"
        track(*self.data, "--dg", "tensor", "--prepare", good)
        before = good.read_bytes()
        self.assertNotEqual(track(*self.data, "--dg", "tensor", "--prepare", good, check=False).returncode, 0)
        self.assertEqual(good.read_bytes(), before)
        done = track(*self.data, "--prepared", good, "--out", self.folder / "x.trx", check=False)
        self.assertIn("both name what is tracked", done.stderr)
        self.assertFalse(fit.exists() or (self.folder / "x.trx").exists())


if __name__ == "__main__":
    suite.main()
