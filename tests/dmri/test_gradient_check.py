"""The gradient check on real data: the series whose b-vectors are `voxel`, its flipped and permuted copies, and a series
of two distant slices, which must raise no alarm."""

import os
import pathlib
import sys
import tempfile
import unittest

import dmri_probe
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)


class GradientCheck(unittest.TestCase):
    def setUp(self):
        self.folder = suite.need_data("dwi-1p8mm-64dir")

    def check(self, columns, frame):
        """Verdict, better frame, name of the best reading, for a copy whose column i is column `columns[i]`, negated
        where its sign says so (1 to 3)."""
        _, vectors = dmri_probe.fsl_gradients(os.path.join(self.folder, "dwi"))
        copy = np.column_stack([np.sign(c) * vectors[:, abs(c) - 1] for c in columns])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "copy.bvec")
            np.savetxt(path, copy.T, fmt="%.8f")
            lines = dmri_probe.run("gradients", os.path.join(self.folder, "dwi.nii.gz"),
                                   os.path.join(self.folder, "dwi.bval"), path,
                                   os.path.join(self.folder, "mask_dipy_otsu.nii.gz"), frame, 2).splitlines()
        _, verdict, better, voxels, _ = lines[0].split()
        self.assertGreater(int(voxels), 20000)  # of the planes in the middle
        return verdict, better, lines[-1]

    def test_the_series_needs_voxel(self):
        verdict, better, message = self.check((1, 2, 3), "fsl")
        self.assertEqual((verdict, better), ("another_is_better", "voxel"))
        self.assertIn("give bvec_frame voxel", message)
        self.assertEqual(self.check((1, 2, 3), "voxel")[0], "agrees")

    def test_a_copy_with_x_negated_needs_fsl(self):
        self.assertEqual(self.check((-1, 2, 3), "fsl")[0], "agrees")
        self.assertEqual(self.check((-1, 2, 3), "voxel")[:2], ("another_is_better", "fsl"))

    def test_copies_that_no_frame_explains_are_named(self):
        for columns, reading in (((1, -2, 3), "(x, -y, z)"), ((2, 1, 3), "(y, x, z)"), ((-3, 1, 2), "(y, z, -x)")):
            verdict, better, message = self.check(columns, "fsl")
            self.assertEqual((verdict, better), ("another_is_better", "-"))
            self.assertIn("read as " + reading, message)

    def test_two_distant_slices_raise_no_alarm(self):
        folder = suite.need_data("dwi-2slices-multishell")
        stem = os.path.join(folder, "b1k_b2k")
        for frame in ("fsl", "voxel"):
            text = dmri_probe.run("gradients", stem + "_example_slices_24_38.nii.gz", stem + ".bval", stem + ".bvec",
                                  stem + "_example_slices_24_38_mask.nii.gz", frame, 2)
            _, verdict, better, voxels, _ = text.splitlines()[0].split()
            self.assertEqual((verdict, better, voxels), ("undecided", "-", "3639"), frame)
            self.assertIn(f"do not tell whether {frame} is right", text.splitlines()[-1])


if __name__ == "__main__":
    suite.main()
