"""Gradient tables against DIPY (the numbers) and MRtrix3 (the frames, for images of every orientation).

CINGULUM_TEST_IMAGE_DUMP names the program image_dump; CINGULUM_TEST_DATA the folder of real data (skipped without).
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nibabel as nib
import numpy as np
from dipy.io.gradients import read_bvals_bvecs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

DUMP = os.environ.get("CINGULUM_TEST_IMAGE_DUMP", "build/bin/image_dump")
DATA = os.environ.get("CINGULUM_TEST_DATA", "")

PAIRS = [("dwi-1p8mm-64dir/dwi.bval", "dwi-1p8mm-64dir/dwi.bvec"),
         ("dwi-2slices-multishell/b1k_b2k.bval", "dwi-2slices-multishell/b1k_b2k.bvec"),
         ("dwi-mrtrix-small/dwi.bval", "dwi-mrtrix-small/dwi.bvec"),
         ("dwi-mrtrix-small/SIFT_phantom_dwi.bval", "dwi-mrtrix-small/SIFT_phantom_dwi.bvec"),
         ("dwi-mrtrix-small/msmt_dwi.bval", "dwi-mrtrix-small/msmt_dwi.bvec")]


def dump(*words):
    result = subprocess.run([DUMP, *map(str, words)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return json.loads(result.stdout)


def unit(vectors):
    lengths = np.linalg.norm(vectors, axis=1)
    return vectors / np.where(lengths > 0, lengths, 1)[:, None]


class SmallTables(unittest.TestCase):
    """By hand: what stands at the limits."""

    def table(self, b_values, vectors):
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            bval, bvec = Path(folder) / "a.bval", Path(folder) / "a.bvec"
            bval.write_text(" ".join(map(str, b_values)))
            bvec.write_text("\n".join(" ".join(map(str, row)) for row in zip(*vectors)))
            return dump("fsl", bval, bvec)

    def test_a_volume_of_b_50_needs_no_direction_and_one_above_does(self):
        rest = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
        found = self.table([0, 50, 1000, 1000, 1000], [(0, 0, 0), (0, 0, 0), *rest])
        self.assertEqual(found["vectors"][1], [0, 0, 0])
        self.assertEqual(found["warnings"], [])
        with self.assertRaisesRegex(AssertionError, "volume 1: b = 50.5 and no direction"):
            self.table([0, 50.5, 1000, 1000, 1000], [(0, 0, 0), (0, 0, 0), *rest])

    def test_the_worst_of_several_lengths_is_named_and_all_are_normalised(self):
        found = self.table([0, 1000, 1000, 1000, 1000], [(0, 0, 0), (0.5, 0, 0), (0, 3, 0), (0, 0, 1.5), (1, 0, 0)])
        self.assertEqual(found["warnings"], ["3 of 5 vectors are not of unit length (worst 3): normalised, the b-values "
                                             "are kept as they are"])
        self.assertEqual(found["vectors"][1:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])

    def test_one_volume_is_a_table(self):
        found = self.table([1000], [(0, 0.6, 0.8)])
        self.assertEqual((found["b_values"], found["vectors"]), ([1000], [[0, 0.6, 0.8]]))


@suite.needs("data")
class RealTables(unittest.TestCase):
    def test_numbers_equal_dipys(self):
        for bval, bvec in PAIRS:
            with self.subTest(bval=bval):
                found = dump("fsl", Path(DATA) / bval, Path(DATA) / bvec)
                values, vectors = read_bvals_bvecs(str(Path(DATA) / bval), str(Path(DATA) / bvec))
                np.testing.assert_array_equal(found["b_values"], values)
                np.testing.assert_allclose(found["vectors"], unit(np.nan_to_num(vectors)), atol=1e-15)
                self.assertEqual(sum(len(volumes) for _, volumes in found["shells"]), len(values))

    def test_what_we_write_dipy_reads(self):
        found = dump("fsl", *(Path(DATA) / name for name in PAIRS[1]))
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            bval, bvec = Path(folder) / "a.bval", Path(folder) / "a.bvec"
            bval.write_text(found["bvals_text"])
            bvec.write_text(found["bvecs_text"])
            values, vectors = read_bvals_bvecs(str(bval), str(bvec))
            np.testing.assert_array_equal(values, found["b_values"])
            np.testing.assert_array_equal(vectors, found["vectors"])
            table = Path(folder) / "a.b"
            table.write_text(found["mrtrix_text"])
            again = dump("mrtrix", table)
            self.assertEqual(again["vectors"], found["vectors"])
            self.assertEqual(again["b_values"], found["b_values"])


@suite.needs("data", "mrtrix")
class Frames(unittest.TestCase):
    def test_fsl_and_world_frames_agree_with_mrtrix_for_every_orientation(self):
        """MRtrix writes one series with its axes in every order and sense, with FSL files and its own table to each."""
        source = Path(DATA) / "dwi-mrtrix-small/dwi.mif"
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as name:
            folder = Path(name)
            count, handedness = 0, set()
            for order in itertools.permutations((1, 2, 3)):
                for signs in ((1, 1, 1), (-1, 1, 1), (1, -1, -1), (-1, -1, -1)):
                    strides = ",".join(str(n * s) for n, s in zip(order, signs)) + ",4"
                    image, bval, bvec, table = (folder / n for n in ("a.nii", "a.bval", "a.bvec", "a.b"))
                    subprocess.run(
                        ["mrconvert", "-quiet", "-force", source, "-strides", strides, "-export_grad_fsl", bvec, bval,
                         "-export_grad_mrtrix", table, image], check=True)
                    world = dump("mrtrix", table)
                    # Directions in image axes, put back into the world by the image's unit axes.
                    affine = nib.load(image).affine
                    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
                    by_fsl = np.array(dump("directions", image, "fsl", bval, bvec)) @ axes.T
                    np.testing.assert_allclose(by_fsl, world["vectors"], atol=2e-4)
                    # The same from the world's table, given as a pair.
                    (folder / "w.bvec").write_text(world["bvecs_text"])
                    by_world = np.array(dump("directions", image, "world", bval, folder / "w.bvec"))
                    np.testing.assert_allclose(by_world @ axes.T, world["vectors"], atol=1e-6)
                    by_voxel = np.array(dump("directions", image, "voxel", bval, bvec))
                    np.testing.assert_allclose(by_voxel, dump("fsl", bval, bvec)["vectors"], atol=0)
                    handedness.add(bool(np.linalg.det(affine[:3, :3]) > 0))
                    count += 1
            self.assertEqual(count, 24)
            self.assertEqual(handedness, {True, False})


if __name__ == "__main__":
    suite.main()
