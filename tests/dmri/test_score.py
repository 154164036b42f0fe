"""`cingulum score` on tractograms that are made by hand, written by nibabel and trx-python, and judged by numpy.

The program is named by the variable CINGULUM.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import nibabel
import numpy as np
from nibabel.streamlines import ArraySequence, Tractogram

PROGRAM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))


def run(*words):
    result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise AssertionError(f"{words}: {result.stderr}")
    return result.stdout


def score(tracks, truth, *options):
    return json.loads(run("score", tracks, "--truth", truth, "--json", "--quiet", *options))


def line(start, end, count=121):
    return np.linspace(start, end, count).astype(np.float32)


class Scores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        cls.folder = Path(cls.temporary.name)
        for preset, options in (("straight", ()), ("kissing", ("--gap", "0")),
                                ("commissural", ("--orientation", "LPS", "--rotate", "4,-9,17", "--voxel-size", "1.5x2x2.5"))):
            run("phantom", "--preset", preset, "--out", cls.folder / preset, "--directions", 6, "--b-values", 1000, "--quiet", *options)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def save(self, streamlines, name, truth):
        path = self.folder / name
        reference = nibabel.load(self.folder / truth / "mask.nii.gz")
        tractogram = Tractogram(ArraySequence(streamlines), affine_to_rasmm=np.eye(4))
        if name.endswith(".trk"):
            header = {"dimensions": reference.shape, "voxel_sizes": reference.header.get_zooms()[:3],
                      "voxel_to_rasmm": reference.affine, "voxel_order": "".join(nibabel.aff2axcodes(reference.affine))}
            nibabel.streamlines.save(tractogram, str(path), header=header)
        elif name.endswith(".tck"):
            nibabel.streamlines.save(tractogram, str(path))
        else:
            from trx.trx_file_memmap import TrxFile, save
            points = np.concatenate(streamlines)
            trx = TrxFile(nb_vertices=len(points), nb_streamlines=len(streamlines), reference=reference)
            lengths = np.array([len(s) for s in streamlines])
            trx.streamlines._data = points.astype(np.float32)
            trx.streamlines._offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.uint32)
            trx.streamlines._lengths = lengths.astype(np.uint32)
            save(trx, str(path))
            trx.close()
        return path

    def truth_lines(self, preset):
        out = self.folder / f"{preset}-truth.tck"
        if not out.exists():
            run("convert", self.folder / preset / "truth.trx", out, "--quiet")
        return [np.array(s) for s in nibabel.streamlines.load(str(out)).streamlines]

    def test_the_truth_against_itself_in_every_format(self):
        lines = self.truth_lines("commissural")
        found = [score(self.folder / "commissural/truth.trx", self.folder / "commissural")]
        for extension in ("trk", "tck", "trx"):
            found.append(score(self.save(lines, f"truth.{extension}", "commissural"), self.folder / "commissural"))
        for result in found:
            self.assertEqual((result["valid"], result["invalid"], result["no_connection"]), (1, 0, 0))
            self.assertEqual((result["valid_count"], result["bundles_found_count"], result["bundle_count"]), (95, 5, 5))
            self.assertLess(result["angular_error_mean_deg"], 0.02)
            self.assertEqual(result["commissural_count"], 19)
            self.assertEqual(result["distance_mean_mm"], 0)
            self.assertAlmostEqual(result["overlap"], found[0]["overlap"], delta=0.01)
            self.assertAlmostEqual(result["length_mean_mm"], found[0]["length_mean_mm"], places=2)

    def test_verdicts_are_what_the_streamlines_were_made_to_be(self):
        lines = []
        lines += [line((-30, y, 0), (30, y, 0)) for y in (0, 1, -2)]  # valid
        lines += [line((30, 0, 2), (-30, 0, 2))]  # valid, backwards
        lines += [line((-30, 0, 0), (10, 0, 0)), line((-10, 0, 0), (10, 0, 0))]  # lost
        lines += [line((-30, 20, 0), (30, 20, 0))]  # far away
        detour = np.concatenate([line((-30, 0, 0), (-20, 0, 0)), line((-20, 12, 0), (20, 12, 0)), line((20, 0, 0), (30, 0, 0))])
        lines += [detour]  # wrong path
        lines += [np.concatenate([line((-30, 0, 0), (0, 0, 0)), line((0, 1, 0), (-30, 1, 0))])]  # back to its start: invalid
        result = score(self.save(lines, "verdicts.tck", "straight"), self.folder / "straight", "--bootstrap", 50)
        counts = {name: result[name + "_count"] for name in ("valid", "wrong_path", "invalid", "no_connection")}
        self.assertEqual(counts, {"valid": 4, "wrong_path": 1, "invalid": 1, "no_connection": 3})
        self.assertAlmostEqual(result["valid"], 4 / 9)
        self.assertEqual(result["invalid_bundle_count"], 1)
        self.assertEqual(result["false_connections"], [{"from": "straight_a", "to": "straight_a", "count": 1}])
        lengths = [np.linalg.norm(np.diff(s.astype(float), axis=0), axis=1).sum() for s in lines]
        self.assertAlmostEqual(result["length_mean_mm"], np.mean(lengths), places=3)
        self.assertAlmostEqual(result["length_median_mm"], np.median(lengths), places=3)

    def test_cross_over_of_kissing_bundles_is_invalid(self):
        lines = self.truth_lines("kissing")
        upper, lower = lines[0], lines[19]
        half = len(upper) // 2
        over = np.concatenate([upper[:half], lower[half:]])
        result = score(self.save([over, over[::-1], upper], "over.trx", "kissing"), self.folder / "kissing", "--bootstrap", 0)
        self.assertEqual((result["invalid_count"], result["valid_count"], result["bundles_found_count"]), (2, 1, 1))
        self.assertAlmostEqual(result["bundles_found"], 0.5)
        self.assertEqual(result["intervals"], {})
        self.assertEqual(result["bundles"]["lower"]["valid_count"], 0)
        self.assertEqual(result["bundles"]["lower"]["f1"], 0)

    def test_overlap_is_that_of_dense_points(self):
        truth = self.folder / "commissural"
        lines = self.truth_lines("commissural")
        result = score(truth / "truth.trx", truth, "--bootstrap", 0)
        inverse = np.linalg.inv(nibabel.load(truth / "mask.nii.gz").affine)
        # Groups come in the order of the bundles, 19 fibres each.
        for index, (name, found) in enumerate(result["bundles"].items()):
            fraction = nibabel.load(truth / f"bundles/{name}.nii.gz").get_fdata()
            crossed = np.zeros(fraction.shape, bool)
            for s in lines[19 * index:19 * index + 19]:
                steps = np.linspace(0, 1, 400, endpoint=False)[:, None, None]
                dense = (s[:-1].astype(float) + steps * np.diff(s.astype(float), axis=0)).reshape(-1, 3)
                voxels = np.floor(nibabel.affines.apply_affine(inverse, dense) + 0.5).astype(int)
                crossed[tuple(voxels.T)] = True
            for true, values in ((fraction > 0, found), (fraction >= 0.5 - 1e-7, found["half_voxel"])):
                self.assertEqual(values["true_voxel_count"], true.sum(), name)
                # Dense points miss corners that are grazed for less than 1/400 of a step.
                self.assertAlmostEqual(values["found_voxel_count"], (true & crossed).sum(), delta=3)
                self.assertAlmostEqual(values["extra_voxel_count"], (crossed & ~true).sum(), delta=3)
                both, b = values["found_voxel_count"], values["found_voxel_count"] + values["extra_voxel_count"]
                self.assertAlmostEqual(values["overlap"], both / true.sum())
                self.assertAlmostEqual(values["overreach"], values["extra_voxel_count"] / true.sum())
                self.assertAlmostEqual(values["f1"], 2 * both / (true.sum() + b))

    def test_angles_of_turned_streamlines(self):
        angle = np.radians(4)
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        lines = [line((-15, 0, z), (15, 0, z)) @ turn.T.astype(np.float32) for z in (-1, 0, 1)]
        result = score(self.save(lines, "turned.trk", "straight"), self.folder / "straight")
        self.assertAlmostEqual(result["angular_error_mean_deg"], 4, places=3)
        self.assertAlmostEqual(result["angular_error_median_deg"], 4, places=2)
        self.assertEqual(result["share_in_tubes"], 1)

    def test_intervals_hold_the_value_and_do_not_depend_on_threads(self):
        random = np.random.default_rng(4)
        lines = [line((-30, *random.uniform(-2, 2, 2)), (30 if i % 3 else 5, *random.uniform(-2, 2, 2))) for i in range(300)]
        path = self.save(lines, "many.tck", "straight")
        first = score(path, self.folder / "straight", "--threads", 1, "--seed", 5)
        for threads in (2, 8):
            self.assertEqual(score(path, self.folder / "straight", "--threads", threads, "--seed", 5), first)
        self.assertNotEqual(score(path, self.folder / "straight", "--seed", 6)["intervals"], first["intervals"])
        for name, (low, high) in first["intervals"].items():
            value = first
            for part in name.split("."):
                value = value[part]
            self.assertTrue(low - 1e-9 <= value <= high + 1e-9, (name, low, value, high))
        error = np.sqrt(2 / 9 / 300)  # of a share of 2/3
        self.assertAlmostEqual(first["intervals"]["valid"][0], 2 / 3 - 1.96 * error, delta=0.01)

    def test_failures_are_one_line(self):
        straight = self.folder / "straight"
        for code, words, message in ((2, ("score", "x.trx", "--truth", straight), "x.trx"),
                                     (1, ("score", straight / "truth.trx", "--truth", self.folder), "phantom.json"),
                                     (1, ("score", straight / "dwi.bval", "--truth", straight), "dwi.bval")):
            result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, code, words)
            self.assertIn(message, result.stderr)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
