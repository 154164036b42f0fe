"""`cingulum compare`: numbers against nibabel and numpy, equality across formats, exit codes."""
import json
import unittest

import nibabel as nib
import numpy as np

from tracking import Folder, lengths, read_lines, run, track


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.truth = cls.folder.phantom("truth", "--preset", "crossing", "--voxel-size", "2.5")
        for key in (0, 1):
            track("--sh", cls.truth / "fod.nii.gz", "--dg", "prob", "--max-angle", 60, "--nseeds", 100, "--seed",
                  key, "--out", cls.folder / f"{key}.trx")

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def compare(self, *words, check=True):
        return run("compare", *words, "--json", check=check)

    def visited(self, lines):
        """How many of the streamlines pass each voxel, by dense sampling."""
        inverse = np.linalg.inv(nib.load(self.truth / "mask.nii.gz").affine)
        counts = {}
        for line in lines:
            steps = np.linspace(0, 1, 40)[:, None, None]
            dense = (line[:-1] * (1 - steps) + line[1:] * steps).reshape(-1, 3)
            voxels = np.floor(dense @ inverse[:3, :3].T + inverse[:3, 3] + 0.5).astype(int)
            for voxel in set(map(tuple, voxels)):
                counts[voxel] = counts.get(voxel, 0) + 1
        return counts

    def test_counts_lengths_and_overlap_are_those_of_numpy(self):
        files = json.loads(self.compare(self.folder / "0.trx", self.folder / "1.trx").stdout)["files"]
        visited = []
        for key, facts in enumerate(files):
            lines = read_lines(self.folder / f"{key}.trx")
            self.assertEqual(facts["streamlines"], len(lines))
            self.assertEqual(facts["points"], sum(map(len, lines)))
            self.assertAlmostEqual(facts["mean_length_mm"], lengths(lines).mean(), places=3)
            self.assertAlmostEqual(facts["median_length_mm"], np.median(lengths(lines)), delta=0.1)
            crossing = sum((line[0, 0] < 0) != (line[-1, 0] < 0) for line in lines)
            self.assertEqual(facts["commissural"], crossing)
            anywhere = sum(len(set(line[:, 0] < 0)) == 2 for line in lines)
            self.assertEqual(facts["crossing_midline"], anywhere)
            self.assertGreater(anywhere, crossing)
            visited.append(self.visited(lines))
        a, b = visited
        shared = a.keys() & b.keys()
        dice = 2 * len(shared) / (len(a) + len(b))
        weighted = (sum(a[v] for v in shared) / sum(a.values()) + sum(b[v] for v in shared) / sum(b.values())) / 2
        # Dense sampling misses corners that the exact traversal finds.
        self.assertAlmostEqual(files[1]["overlap"]["dice"], dice, delta=0.02)
        self.assertAlmostEqual(files[1]["overlap"]["weighted_dice"], weighted, delta=0.01)
        self.assertFalse(files[1]["equal"])

    def test_equal_streamlines_in_other_formats_are_equal(self):
        run("convert", self.folder / "0.trx", self.folder / "0.tck", "--quiet")
        done = self.compare(self.folder / "0.trx", self.folder / "0.tck", "--exact")
        self.assertTrue(json.loads(done.stdout)["files"][1]["equal"])
        done = self.compare(self.folder / "0.trx", self.folder / "1.trx", "--exact", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("streamline 0", done.stderr)

    def test_bundles_that_both_have_are_compared_and_misuse_is_refused(self):
        files = json.loads(self.compare(self.truth / "truth.trx", self.truth / "truth.trx").stdout)["files"]
        self.assertEqual({name: facts["dice"] for name, facts in files[1]["bundles"].items()},
                         {"first": 1.0, "second": 1.0})
        # Few of the same fibres pass fewer voxels, which ones is known; `first` is wholly in both, by name.
        few = self.folder.phantom("few", "--preset", "crossing", "--voxel-size", "2.5", "--truth-fibres", 7)
        files = json.loads(self.compare(self.truth / "truth.trx", few / "truth.trx").stdout)["files"]
        self.assertEqual(files[1]["bundles"].keys(), {"first", "second"})
        for name, facts in files[1]["bundles"].items():
            a, b = (set(self.visited(self.bundle(path / "truth.trx", name))) for path in (self.truth, few))
            dice = 2 * len(a & b) / (len(a) + len(b))
            self.assertLess(dice, 0.9)
            self.assertAlmostEqual(facts["dice"], dice, delta=0.02)
        done = run("compare", self.folder / "0.trx", check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("at least two tractograms, 1 given", done.stderr)
        table = run("compare", self.folder / "0.trx", self.folder / "1.trx").stdout.splitlines()
        self.assertIn("median mm", table[0])
        for key, row in zip((0, 1), table[1:3]):
            self.assertIn(str(len(read_lines(self.folder / f"{key}.trx"))), row.split())

    @staticmethod
    def bundle(path, name):
        """The streamlines of a group, by trx-python."""
        from trx.trx_file_memmap import load

        trx = load(str(path))
        lines = [np.array(trx.streamlines[i]) for i in trx.groups[name]]
        trx.close()
        return lines


if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
