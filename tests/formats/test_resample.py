"""`cingulum resample` beside nibabel and SciPy: values, types, headers, other voxel sizes beside MRtrix3's mrgrid."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import nibabel as nib
import numpy as np
from nibabel.processing import resample_from_to

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PROGRAM = os.environ["CINGULUM"]
FROM = np.array([[1.8, 0.3, 0, -20], [-0.3, 1.9, 0.2, 5], [0, -0.2, 2.4, 11], [0, 0, 0, 1.0]])
TO = np.array([[-1.1, 0, 0.1, 14.137], [0, 1.3, 0, 3.071], [0.1, 0, 1.2, 9.043], [0, 0, 0, 1.0]])


class Resample(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="cingulum-resample-")
        cls.folder = pathlib.Path(cls.holder.name)
        cls.random = np.random.default_rng(11)
        nib.save(nib.Nifti1Image(np.zeros((30, 28, 26), np.int16), TO), cls.folder / "like.nii.gz")

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def run_program(self, *words, check=True):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: exit {done.returncode}\n{done.stderr}")
        return done

    def save(self, name, values, affine=FROM, slope=None):
        image = nib.Nifti1Image(values, affine, dtype=values.dtype)
        if slope:
            image.header.set_slope_inter(*slope)
        nib.save(image, self.folder / name)
        return self.folder / name

    def resample(self, path, *words):
        out = self.folder / "out.nii.gz"
        self.run_program("resample", path, *(words or ("--like", self.folder / "like.nii.gz")), "--out", out, "--force",
                         "--quiet")
        return nib.load(out)

    def inside(self, shape):
        """Whether the centres of the target lie in the voxels of the source; where it is not a matter of rounding."""
        grid = np.stack(np.meshgrid(*map(np.arange, (30, 28, 26)), indexing="ij"), axis=-1)
        voxels = np.einsum("ij,...j->...i", np.linalg.inv(FROM) @ TO, np.concatenate(
            [grid, np.ones((*grid.shape[:-1], 1))], axis=-1))[..., :3]
        beyond = np.max(np.abs(voxels - (np.array(shape) - 1) / 2) - np.array(shape) / 2, axis=-1)
        self.assertGreater(np.abs(beyond).min(), 1e-5)
        return beyond < 0

    def test_linear_interpolation_is_that_of_scipy_and_zero_outside(self):
        values = self.random.normal(size=(15, 14, 12)).astype(np.float32)
        path = self.save("map.nii.gz", values)
        ours = self.resample(path)
        theirs = resample_from_to(nib.load(path), nib.load(self.folder / "like.nii.gz"), order=1, mode="nearest").get_fdata()
        inside = self.inside(values.shape)
        self.assertTrue(2000 < inside.sum() < inside.size - 2000)
        np.testing.assert_allclose(ours.get_fdata()[inside], theirs[inside], rtol=0, atol=2e-6)
        self.assertFalse(ours.get_fdata()[~inside].any())
        self.assertEqual(ours.get_data_dtype(), np.float32)
        np.testing.assert_allclose(ours.affine, TO, atol=1e-6)

    def test_the_nearest_voxel_keeps_type_scaling_and_every_value(self):
        for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"):
            with self.subTest(name):
                dtype = np.dtype(name)
                values = self.random.integers(0, 100, size=(15, 14, 12)).astype(dtype)
                if dtype.kind == "f":
                    values += dtype.type(1 / 3)
                path = self.save(f"labels-{name}.nii.gz", values)
                ours = self.resample(path, "--like", self.folder / "like.nii.gz", "--interpolation", "nearest")
                theirs = resample_from_to(nib.load(path), nib.load(self.folder / "like.nii.gz"), order=0, mode="nearest")
                inside = self.inside(values.shape)
                self.assertEqual(ours.get_data_dtype(), dtype)
                np.testing.assert_array_equal(np.asarray(ours.dataobj)[inside], theirs.get_fdata()[inside].astype(dtype))
                self.assertFalse(np.asarray(ours.dataobj)[~inside].any())
        path = self.save("scaled.nii.gz", (values * 10).astype(np.int16), slope=(0.25, -3))
        ours = self.resample(path, "--like", self.folder / "like.nii.gz", "--interpolation", "nearest")
        self.assertEqual((ours.get_data_dtype(), ours.dataobj.slope, ours.dataobj.inter), (np.int16, 0.25, -3))
        theirs = resample_from_to(nib.load(path), nib.load(self.folder / "like.nii.gz"), order=0, mode="nearest").get_fdata()
        np.testing.assert_array_equal(ours.get_fdata()[inside], theirs[inside])

    def test_whole_numbers_that_float64_does_not_have_are_not_rounded_silently(self):
        path = self.save("wide.nii.gz", np.full((4, 4, 4), 2**53 + 1, np.int64))
        done = self.run_program("resample", path, "--voxel-size", 1, "--interpolation", "nearest", "--out",
                                self.folder / "wide-out.nii", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("2^53", done.stderr)
        self.assertFalse((self.folder / "wide-out.nii").exists())

    def test_every_volume_of_four_and_five_dimensions(self):
        values = self.random.normal(size=(9, 8, 7, 3, 2)).astype(np.float64)
        ours = self.resample(self.save("five.nii", values)).get_fdata()
        self.assertEqual(ours.shape, (30, 28, 26, 3, 2))
        for i in range(3):
            for j in range(2):
                single = self.resample(self.save("one.nii", values[..., i, j]))
                np.testing.assert_array_equal(ours[..., i, j], single.get_fdata())
        flat = self.resample(self.save("flat.nii", values[:, :, 0, 0, 0]), "--voxel-size", "1x1x1")
        self.assertEqual(flat.ndim, 3)

    def test_bytes_do_not_depend_on_threads(self):
        path = self.save("threads.nii.gz", self.random.normal(size=(30, 20, 20, 2)).astype(np.float32))
        found = set()
        for threads in (1, 3):
            out = self.folder / f"threads{threads}.nii.gz"
            self.run_program("resample", path, "--like", self.folder / "like.nii.gz", "--threads", threads, "--out", out)
            found.add(out.read_bytes())
        self.assertEqual(len(found), 1)

    def test_another_voxel_size_keeps_axes_and_centre(self):
        values = self.random.normal(size=(15, 14, 12)).astype(np.float32)
        path = self.save("size.nii.gz", values)
        ours = self.resample(path, "--voxel-size", "2x2x1")
        edges = np.linalg.norm(ours.affine[:3, :3], axis=0)
        np.testing.assert_allclose(edges, (2, 2, 1), atol=1e-6)
        old = np.linalg.norm(FROM[:3, :3], axis=0)
        self.assertEqual(ours.shape, tuple(np.ceil(np.array(values.shape) * old / edges).astype(int)))
        middle = [image @ [*(np.array(shape) - 1) / 2, 1] for image, shape in ((ours.affine, ours.shape),
                                                                               (FROM, values.shape))]
        np.testing.assert_allclose(*middle, atol=1e-5)
        theirs = resample_from_to(nib.load(path), (ours.shape, ours.affine), order=1, mode="nearest").get_fdata()
        inner = (slice(1, -1),) * 3
        np.testing.assert_allclose(ours.get_fdata()[inner], theirs[inner], rtol=0, atol=1e-5)

    @suite.needs("mrtrix")
    def test_the_grid_of_another_voxel_size_is_mrgrids(self):
        # It rounds the number of voxels, we round it up: sizes for which both are the same.
        path = self.save("mr.nii", self.random.normal(size=(15, 14, 12)).astype(np.float32), np.diag([2, 2.5, 3.1, 1]))
        ours = self.resample(path, "--voxel-size", "1.7")
        subprocess.run(["mrgrid", "-quiet", str(path), "regrid", "-voxel", "1.7", str(self.folder / "theirs.nii")],
                       check=True)
        theirs = nib.load(self.folder / "theirs.nii")
        self.assertEqual(ours.shape, theirs.shape)
        np.testing.assert_allclose(ours.affine, theirs.affine, atol=1e-4)

    def test_the_sidecar_keeps_what_is_said_of_directions_and_refuses_axes_that_turn(self):
        values = self.random.normal(size=(9, 8, 7, 3)).astype(np.float32)
        path = self.save("peaks.nii.gz", values)
        beside = pathlib.Path(f"{path}.json")
        for frame in ("world", "image"):
            beside.write_text(json.dumps({"frame": frame, "xxh3_128": "of another file"}))
            self.resample(path, "--voxel-size", "2")
            sidecar = json.loads((self.folder / "out.nii.gz.json").read_text())
            self.assertEqual((sidecar["frame"], sidecar["command"]), (frame, "resample"))
            self.assertEqual([set(entry) for entry in sidecar["inputs"]], [{"option", "path", "xxh3_128"}] * len(sidecar["inputs"]))
            self.assertEqual(sidecar["inputs"][0]["option"], "IMAGE")
            self.assertEqual(self.run_program("verify", self.folder / "out.nii.gz").returncode, 0)
            done = self.run_program("resample", path, "--like", self.folder / "like.nii.gz", "--out",
                                    self.folder / f"{frame}.nii.gz", check=False)
            self.assertEqual(done.returncode, 0 if frame == "world" else 1, done.stderr)
            self.assertEqual((self.folder / f"{frame}.nii.gz").exists(), frame == "world")
        self.assertIn("image axes", done.stderr)
        beside.write_text(json.dumps({"spherical_harmonics": {"basis": "descoteaux07", "frame": "image"}}))
        done = self.run_program("resample", path, "--like", self.folder / "like.nii.gz", "--out",
                                self.folder / "sh.nii.gz", check=False)
        self.assertEqual(done.returncode, 1)

    def test_misuse_is_refused(self):
        path = self.save("plain.nii.gz", np.ones((4, 4, 4), np.float32))
        like = ["--like", self.folder / "like.nii.gz"]
        bare = nib.Nifti1Image(np.ones((4, 4, 4), np.float32), None)
        nib.save(bare, self.folder / "bare.nii.gz")
        for words, code, text in (([path], 2, "--like or --voxel-size"),
                                  ([path, *like, "--voxel-size", 2], 2, "--like or --voxel-size"),
                                  ([path, "--voxel-size", "2x2"], 2, "--voxel-size '2x2'"),
                                  ([path, "--voxel-size", "0"], 2, "--voxel-size '0'"),
                                  ([path, "--voxel-size", "1x2x3x4"], 2, "--voxel-size '1x2x3x4'"),
                                  ([path, "--voxel-size", "1e-7"], 2, "--voxel-size 1e-07"),
                                  ([path, *like, "--interpolation", "cubic"], 2, "nearest or linear"),
                                  ([self.folder / "bare.nii.gz", *like], 1, "bare.nii.gz has neither sform nor qform"),
                                  ([path, "--like", self.folder / "bare.nii.gz"], 1, "neither sform nor qform"),
                                  ([self.folder / "none.nii", *like], 2, "none.nii")):
            out = self.folder / "refused.nii"
            done = self.run_program("resample", *words, "--out", out, check=False)
            self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
            self.assertIn(text, done.stderr)
            self.assertFalse(out.exists())
        out = self.folder / "there.nii"
        self.run_program("resample", path, *like, "--out", out)
        before = out.read_bytes()
        done = self.run_program("resample", path, "--voxel-size", 3, "--out", out, check=False)
        self.assertIn("--force", done.stderr)
        self.assertEqual(out.read_bytes(), before)
        said = json.loads(self.run_program("resample", path, *like, "--out", out, "--force", "--json").stdout)
        self.assertEqual((said["size"], said["type"], said["volumes"]), ([30, 28, 26], "float32", 1))


if __name__ == "__main__":
    suite.main()
