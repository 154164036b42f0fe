"""`track --explain`: what it foretells beside what runs then take and give. Memory is a bound that is not undercut by half,
points and bytes are within a factor of 2 on phantoms, and nothing is written."""
import json
import os
import pathlib
import random
import sys
import unittest

from tracking import LONG, PROGRAM, Folder, run, track, track_json

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

SEED = int(os.environ.get("CINGULUM_TEST_SEED", "20261117"))


def peak_bytes(*words):
    """Greatest resident memory of a run."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.execv(PROGRAM, [PROGRAM, "track", *map(str, words), "--progress", "none", "--quiet"])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise AssertionError(f"track {' '.join(map(str, words))}: status {status}")
    return usage.ru_maxrss * 1024


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.boxes = {}
        for preset, words in (("crossing", ("--voxel-size", "2")), ("arcs", ("--voxel-size", "1.5")), ("kissing", ("--directions", "32", "--b-values", "700,2500"))):
            cls.boxes[preset] = cls.folder.phantom(preset, "--preset", preset, *words)
        cls.brain = cls.folder.phantom("brain", "--preset", "brain", "--voxel-size", "4")

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def explain(self, *words):
        return json.loads(track(*words, "--explain", "--json").stdout)

    def words_of(self, phantom, *more):
        return [phantom / "dwi.nii.gz", "--mask", phantom / "mask.nii.gz", "--device", "cpu", *more]

    def random_run(self, draw):
        """In a box of a phantom little of the mask is in reach of a stopping map; fields that are large, amplitudes and
        the bootstrap's, are drawn for the brain alone, whose mask is what a mask is. Without --chunk-size memory depends on how fast the machine is just
        now: see the test below."""
        getter = draw.choice(["prob", "prob", "det", "closest", "tensor", "boot", "ptt"])
        amplitudes = getter == "ptt" or draw.random() < 0.2
        phantom = self.brain if amplitudes or getter == "boot" else draw.choice([self.brain, *self.boxes.values()])
        slow = getter in ("ptt", "boot")
        words = self.words_of(phantom, "--dg", getter, "--nseeds", draw.choice([300, 2000, 5000] if slow else [300, 5000, 30000, 60000]),
                              "--threads", draw.choice([1, 2]), "--seed", draw.randrange(1 << 30))
        if amplitudes and getter in ("prob", "det", "closest"):
            words += ["--interpolate", "amplitudes"]
        words += ["--chunk-size", draw.choice([1000, 5000, 25000])]
        if draw.random() < 0.3:
            words += ["--save-seeds"]
        if draw.random() < 0.2:
            words += ["--float16"]
        if draw.random() < 0.2 and getter not in ("tensor", "boot"):
            words += ["--field-precision", "half"]
        if draw.random() < 0.3:
            words += ["--fa-threshold", draw.choice(["0.1", "0.2"])]
        if draw.random() < 0.2:
            words += ["--part", draw.choice(["1/2", "2/3"])]
        return words

    def test_memory_is_a_bound_that_is_not_undercut_by_half(self):
        draw = random.Random(SEED)
        out = self.folder / "memory.trx"
        for number in range(50 if LONG else 6):
            words = self.random_run(draw)
            with self.subTest(seed=SEED, number=number, words=" ".join(map(str, words[1:]))):
                bound = self.explain(*words)["memory"]["host_bytes"]
                taken = peak_bytes(*words, "--out", out, "--force")
                self.assertLessEqual(taken, bound)
                self.assertGreaterEqual(2 * taken, bound)

    def test_ranges_that_follow_the_machine_keep_the_bound(self):
        for getter, seeds in (("prob", 60000), ("tensor", 60000), ("det", 10000)):
            words = self.words_of(self.boxes["arcs"], "--dg", getter, "--nseeds", seeds, "--threads", 2)
            self.assertLessEqual(peak_bytes(*words, "--out", self.folder / "ranges.trx", "--force"), self.explain(*words)["memory"]["host_bytes"], getter)

    def test_points_and_bytes_are_within_a_factor_of_two(self):
        for name, phantom in {**self.boxes, "brain": self.brain}.items():
            for getter in ("prob", "det", "closest", "tensor", "boot", "ptt"):
                for more in ((), ("--float16", "--linearise", "0.1")) if getter == "prob" else ((),):
                    words = self.words_of(phantom, "--dg", getter, "--nseeds", 400, *more)
                    out = self.folder / "points.trx"
                    foretold = self.explain(*words)["expected"]
                    made = track_json(*words, "--out", out, "--force")
                    with self.subTest(phantom=name, getter=getter, more=more):
                        written = made["result"]["points_written"]
                        self.assertLess(max(foretold["points"] / written, written / foretold["points"]), 2)
                        size = out.stat().st_size
                        self.assertLess(max(foretold["bytes"] / size, size / foretold["bytes"]), 2)

    def test_the_fit_that_would_be_written_is_no_larger_than_said(self):
        words = self.words_of(self.brain, "--dg", "prob")
        fit = self.folder / "brain.fit"
        said = self.explain(*words, "--prepare", fit)
        self.assertEqual(said["seeds"]["count"], 0)
        self.assertFalse(fit.exists())
        track(*words, "--prepare", fit)
        self.assertLessEqual(fit.stat().st_size, said["expected"]["fit_bytes"] * 1.01)
        self.assertGreaterEqual(2 * fit.stat().st_size, said["expected"]["fit_bytes"])
        # And a run from it takes no more than is said of one.
        prepared = ["--prepared", fit, "--device", "cpu", "--nseeds", 5000]
        bound = self.explain(*prepared)["memory"]["host_bytes"]
        taken = peak_bytes(*prepared, "--out", self.folder / "prepared.trx")
        self.assertLessEqual(taken, bound)
        self.assertGreaterEqual(2 * taken, bound)

    def test_seeds_are_those_of_the_run_and_of_its_part(self):
        phantom = self.boxes["crossing"]
        whole = self.explain(*self.words_of(phantom, "--nseeds", 1001))["seeds"]
        self.assertEqual(whole, {"run": 1001, "first": 0, "count": 1001, "exact": True})
        part = self.explain(*self.words_of(phantom, "--nseeds", 1001, "--part", "2/3"))["seeds"]
        self.assertEqual(part, {"run": 1001, "first": 333, "count": 334, "exact": True})
        in_mask = self.words_of(phantom, "--seed-mask", phantom / "mask.nii.gz", "--seed-grid", "2x1x1", "--dg", "prob", "--fa-threshold", "-1")
        said = self.explain(*in_mask)["seeds"]
        self.assertTrue(said["exact"])
        self.assertEqual(track_json(*in_mask, "--out", self.folder / "grid.trx", "--chunk-size", 100000)["result"]["seeds"], said["count"])
        self.assertFalse(self.explain(*self.words_of(phantom, "--seeds-per-voxel", 1))["seeds"]["exact"])

    def test_nothing_is_written_and_bad_input_is_refused(self):
        empty = self.folder / "empty"
        empty.mkdir()
        words = self.words_of(self.boxes["crossing"])
        said = run("track", *words, "--explain", cwd=empty)
        self.assertIn("memory of the host", said.stdout)
        self.assertEqual(list(empty.iterdir()), [])
        self.assertEqual(run("track", "--explain", cwd=empty, check=False).returncode, 2)
        self.assertEqual(list(empty.iterdir()), [])
        cut = empty / "cut.nii.gz"
        cut.write_bytes((self.boxes["crossing"] / "dwi.nii.gz").read_bytes()[:20])
        for ending in ("bval", "bvec"):
            (empty / f"cut.{ending}").write_text((self.boxes["crossing"] / f"dwi.{ending}").read_text())
        refused = run("track", cut, "--explain", "--json", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("cut.nii.gz", refused.stderr)


if __name__ == "__main__":
    suite.main()
