"""Phantoms as others see them: nibabel, trx-python, DIPY and MRtrix3 read the files that `cingulum phantom` writes.

The program is named by the variable CINGULUM. What MRtrix3 judges is left out where it is not installed.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nibabel
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PROGRAM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))
TRUE_FA = np.sqrt(0.5 * 2 * 1.4**2 / (1.7**2 + 2 * 0.3**2))  # of eigenvalues 1.7, 0.3, 0.3


def run(*words):
    result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise AssertionError(f"{words}: {result.stderr}")
    return result.stdout


def rotation(degrees):
    x, y, z = np.deg2rad(degrees)
    rx = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
    ry = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    rz = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
    return rz @ ry @ rx


class Phantoms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="cingulum-test-")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def make(self, name, *options):
        path = Path(self.folder.name) / name
        run("phantom", "--out", path, "--quiet", *options)
        return path

    def read_voxel_frame(self, path):
        """Data, b-values and b-vectors along the voxel axes, which is what DIPY takes: the fsl rule undone."""
        image = nibabel.load(path / "dwi.nii.gz")
        vectors = np.loadtxt(path / "dwi.bvec").T
        if np.linalg.det(image.affine[:3, :3]) > 0:
            vectors[:, 0] *= -1
        return image, np.loadtxt(path / "dwi.bval"), vectors

    def test_nibabel_opens_every_file_on_one_grid(self):
        path = self.make("all_files", "--preset", "commissural", "--directions", 12, "--b-values", "1000,2000", "--voxel-size", "1.5x2x3",
                         "--orientation", "PSL", "--rotate", "3,-4,11", "--subsamples", 2)
        description = json.loads((path / "phantom.json").read_text())
        reference = nibabel.load(path / "dwi.nii.gz")
        self.assertEqual(nibabel.aff2axcodes(reference.affine), tuple("PSL"))
        np.testing.assert_allclose(reference.header.get_zooms()[:3], [2, 3, 1.5], rtol=1e-6)
        self.assertEqual(reference.shape[3], np.loadtxt(path / "dwi.bval").size)
        self.assertEqual(reference.shape[:3], tuple(description["geometry"]["size"]))
        names = [b["name"] for b in description["bundles"]]
        self.assertEqual(len(names), 5)
        files = [path / f"bundles/{n}.nii.gz" for n in names] + [path / f"ends/{n}_{e}.nii.gz" for n in names for e in "ab"]
        files += [path / "mask.nii.gz", path / "tissue.nii.gz", path / "fod.nii.gz"]
        for file in files:
            image = nibabel.load(file)
            self.assertEqual(image.shape[:3], reference.shape[:3], file)
            np.testing.assert_allclose(image.affine, reference.affine, atol=1e-5)
            data = image.get_fdata()
            self.assertTrue(np.isfinite(data).all(), file)
            if "fod" not in file.name:
                self.assertTrue(0 <= data.min() and 0 < data.max() <= 1 + 1e-6, file)
        rows = np.array(description["geometry"]["voxel_to_world"])
        np.testing.assert_allclose(reference.affine[:3], rows, atol=1e-5)
        np.testing.assert_allclose(reference.get_sform(), reference.get_qform(), atol=1e-4)

    def test_tissue_is_complete_and_bundles_are_white_matter(self):
        path = self.make("tissue", "--preset", "crossing3", "--directions", 6, "--b-values", "1000")
        white, grey, fluid = np.moveaxis(nibabel.load(path / "tissue.nii.gz").get_fdata(), 3, 0)
        total = white + grey + fluid
        mask = nibabel.load(path / "mask.nii.gz").get_fdata()
        np.testing.assert_array_equal(mask == 1, total >= 0.5 - 1e-6)
        inner = total[3:-3, 3:-3, 3:-3]
        np.testing.assert_allclose(inner, 1, atol=1e-6)
        union = np.zeros_like(white)
        for name in ("along_x", "along_y", "along_z"):
            union = np.maximum(union, nibabel.load(path / f"bundles/{name}.nii.gz").get_fdata())
        self.assertTrue((white >= union - 1e-6).all())
        self.assertTrue((white[union == 0] == 0).all())

    def test_trx_python_reads_true_fibres_and_groups(self):
        from trx.trx_file_memmap import load
        path = self.make("trx", "--preset", "kissing", "--directions", 6, "--b-values", "1000", "--truth-fibres", 7)
        trx = load(str(path / "truth.trx"))
        try:
            self.assertEqual(set(trx.groups), {"upper", "lower"})
            self.assertEqual(len(trx.streamlines), 14)
            for name, sign in (("upper", 1), ("lower", -1)):
                members = np.asarray(trx.groups[name]).ravel()
                self.assertEqual(members.size, 7)
                centre = np.asarray(trx.streamlines[int(members[0])])
                # A circle of radius 30 around (0, +-34.5, 0).
                np.testing.assert_allclose(np.hypot(centre[:, 0], centre[:, 1] - sign * 34.5), 30, atol=1e-4)
                np.testing.assert_allclose(centre[:, 2], 0, atol=1e-6)
        finally:
            trx.close()

    def test_dipy_finds_the_tensor_of_a_straight_bundle(self):
        from dipy.core.gradients import gradient_table
        from dipy.reconst.dti import TensorModel
        for orientation, degrees in (("RAS", "0,0,0"), ("LAS", "0,0,0"), ("SRA", "10,-20,35"), ("ILP", "-8,5,60")):
            path = self.make(f"dti_{orientation}", "--preset", "straight", "--snr", "inf", "--orientation", orientation,
                             "--rotate", degrees, "--directions", 20, "--b-values", 1000)
            image, b_values, vectors = self.read_voxel_frame(path)
            np.testing.assert_allclose(np.linalg.norm(vectors[b_values > 0], axis=1), 1, atol=1e-6)
            gradients = gradient_table(b_values, bvecs=vectors)
            pure = nibabel.load(path / "bundles/straight.nii.gz").get_fdata() > 0.999
            self.assertGreater(pure.sum(), 50)
            fit = TensorModel(gradients).fit(image.get_fdata()[pure])
            np.testing.assert_allclose(fit.fa, TRUE_FA, atol=1e-5)
            np.testing.assert_allclose(fit.md, 2.3e-3 / 3, atol=1e-8)
            # From voxel axes into the world.
            axes = image.affine[:3, :3] / np.linalg.norm(image.affine[:3, :3], axis=0)
            world = fit.evecs[:, :, 0] @ axes.T
            self.assertGreater(np.abs(world[:, 0]).min(), 1 - 1e-9, orientation)

    def test_dipy_sees_the_curve_of_an_arc(self):
        from dipy.core.gradients import gradient_table
        from dipy.reconst.dti import TensorModel
        path = self.make("arcs", "--preset", "arcs", "--snr", "inf", "--voxel-size", "1.5x1.5x3", "--orientation", "LPS")
        image, b_values, vectors = self.read_voxel_frame(path)
        pure = nibabel.load(path / "bundles/arc30.nii.gz").get_fdata() > 0.999
        self.assertGreater(pure.sum(), 40)
        fit = TensorModel(gradient_table(b_values, bvecs=vectors)).fit(image.get_fdata()[pure])
        axes = image.affine[:3, :3] / np.linalg.norm(image.affine[:3, :3], axis=0)
        found = fit.evecs[:, :, 0] @ axes.T
        places = nibabel.affines.apply_affine(image.affine, np.argwhere(pure)) - [-22, -22, -14]
        tangent = np.stack([-places[:, 1], places[:, 0], 0 * places[:, 0]], 1)
        tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
        angle = np.degrees(np.arccos(np.minimum(1, np.abs(np.sum(found * tangent, 1)))))
        self.assertLess(angle.max(), 0.3)

    def test_orientations_hold_the_same_numbers(self):
        options = ("--preset", "deadend", "--directions", 6, "--b-values", 700, "--seed", 11)
        plain = nibabel.load(self.make("ras", *options) / "dwi.nii.gz")
        for code in ("LAS", "PIR", "SLA"):
            other = nibabel.load(self.make(code.lower(), *options, "--orientation", code) / "dwi.nii.gz")
            back = nibabel.as_closest_canonical(other)
            np.testing.assert_array_equal(back.get_fdata(), plain.get_fdata())
            np.testing.assert_allclose(back.affine, plain.affine, atol=1e-5)

    def test_the_same_bytes_for_any_number_of_threads(self):
        options = ("--preset", "bottleneck", "--directions", 6, "--b-values", 1000, "--seed", 3)
        first = self.make("t1", *options, "--threads", 1)
        names = sorted(p.relative_to(first) for p in first.rglob("*") if p.is_file())
        self.assertEqual(len(names), 9 + 6)
        for threads in (2, 8):
            other = self.make(f"t{threads}", *options, "--threads", threads)
            for name in names:
                self.assertEqual((first / name).read_bytes(), (other / name).read_bytes(), name)

    @suite.needs("mrtrix")
    def test_mrtrix_reads_gradients_and_fods_in_the_world(self):
        for orientation, degrees in (("RAS", "0,0,0"), ("LAS", "12,0,-30"), ("PSR", "0,25,10")):
            path = self.make(f"mrtrix_{orientation}", "--preset", "crossing60", "--snr", "inf", "--orientation", orientation,
                             "--rotate", degrees, "--directions", 20, "--b-values", 1000)
            def mrtrix(*words):
                subprocess.run([str(w) for w in words], check=True, capture_output=True)
            mrtrix("dwi2tensor", path / "dwi.nii.gz", path / "dt.nii", "-fslgrad", path / "dwi.bvec", path / "dwi.bval", "-nthreads", 1)
            mrtrix("tensor2metric", path / "dt.nii", "-vector", path / "v1.nii", "-modulate", "none", "-nthreads", 1)
            mrtrix("sh2peaks", path / "fod.nii.gz", path / "peaks.nii", "-num", 2, "-nthreads", 1)
            first = nibabel.load(path / "bundles/first.nii.gz").get_fdata()
            second = nibabel.load(path / "bundles/second.nii.gz").get_fdata()
            direction = {"first": [np.cos(np.pi / 6), 0.5, 0], "second": [np.cos(np.pi / 6), -0.5, 0]}
            only = (first > 0.999) & (second == 0)
            v1 = nibabel.load(path / "v1.nii").get_fdata()[only]
            self.assertGreater(np.abs(v1 @ direction["first"]).min(), 1 - 1e-6, orientation)
            peaks = nibabel.load(path / "peaks.nii").get_fdata()
            one = peaks[only][:, :3]
            one /= np.linalg.norm(one, axis=1, keepdims=True)
            self.assertGreater(np.abs(one @ direction["first"]).min(), 1 - 1e-5, orientation)
            both = peaks[(first > 0.999) & (second > 0.999)].reshape(-1, 2, 3)
            self.assertGreater(len(both), 20)
            both /= np.linalg.norm(both, axis=2, keepdims=True)
            for name in direction:
                near = np.abs(both @ direction[name]).max(axis=1)
                self.assertGreater(near.min(), np.cos(np.radians(5)), (orientation, name))

    def test_b_tables_from_files_are_measured_as_read(self):
        source = self.make("table_source", "--preset", "helix", "--directions", 10, "--b-values", "900,1800", "--snr", "inf")
        copy = self.make("table_copy", "--preset", "helix", "--bvals", source / "dwi.bval", "--bvecs", source / "dwi.bvec", "--snr", "inf")
        a, b = (nibabel.load(p / "dwi.nii.gz").get_fdata() for p in (source, copy))
        np.testing.assert_allclose(a, b, atol=1e-4)
        np.testing.assert_allclose(np.loadtxt(source / "dwi.bvec"), np.loadtxt(copy / "dwi.bvec"), atol=1e-12)

    def test_misuse_is_named(self):
        def refused(message, *options):
            result = subprocess.run([PROGRAM, "phantom", "--preset", "straight", "--out", str(Path(self.folder.name) / "never"), *options],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(message, result.stderr)
        refused("--voxel-size '1x2'", "--voxel-size", "1x2")
        refused("--snr 'x'", "--snr", "x")
        refused("orientation 'RRS'", "--orientation", "RRS")
        refused("exclude each other", "--scheme", "dirs60-b2000", "--directions", "20", "--b-values", "1000")
        refused("given together", "--directions", "20")


if __name__ == "__main__":
    suite.main()
