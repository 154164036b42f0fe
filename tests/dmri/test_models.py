"""OPDT, CSA, CSD and responses of `cingulum fit` against DIPY on real and synthetic data, and against MRtrix3's reader.

Tolerances are relative to the largest coefficient of the voxel (our files are float32, so about 1e-7 is the floor).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import nibabel as nib
import numpy as np
from dipy.core.gradients import gradient_table
from dipy.core.sphere import Sphere
from dipy.data import get_sphere, small_sphere
from dipy.reconst.csdeconv import (AxSymShResponse, ConstrainedSphericalDeconvModel, auto_response_ssst,
                                   response_from_mask_ssst)
from dipy.reconst.shm import CsaOdfModel, OpdtModel, sh_to_sf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PROGRAM = os.environ["CINGULUM"]
warnings.simplefilter("ignore")


def run_fit(*arguments, check=True, cwd=None):
    result = subprocess.run([PROGRAM, "fit", *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
    if check and result.returncode != 0:
        raise AssertionError(result.stderr)
    return result


def load(path):
    return np.asarray(nib.load(path).dataobj, dtype=float)


def relative_error(ours, theirs):
    """Per voxel: the largest difference over the largest magnitude."""
    scale = np.abs(theirs).max(-1)
    return np.abs(ours - theirs).max(-1) / np.where(scale > 0, scale, 1)


class Series:
    """A series in files, its gradients as DIPY sees them, and a mask."""

    def __init__(self, folder, data, affine, b_values, vectors, mask):
        self.folder, self.data, self.mask = folder, data.astype(np.float32), mask.astype(bool)
        self.b_values, self.vectors = b_values, vectors
        self.table = gradient_table(b_values, bvecs=vectors, b0_threshold=50)
        nib.save(nib.Nifti1Image(self.data, affine), self.path("dwi.nii.gz"))
        nib.save(nib.Nifti1Image(mask.astype(np.uint8), affine), self.path("mask.nii.gz"))
        np.savetxt(self.path("dwi.bval"), b_values[None], fmt="%.17g")
        np.savetxt(self.path("dwi.bvec"), vectors.T, fmt="%.17g")

    def path(self, name):
        return os.path.join(self.folder, name)

    def fit(self, model, out, *more):
        """In the axes and the basis of DIPY, so that coefficients can be compared one by one."""
        run_fit(self.path("dwi.nii.gz"), "--bvals", self.path("dwi.bval"), "--bvecs", self.path("dwi.bvec"),
                "--mask", self.path("mask.nii.gz"), "--bvec-frame", "voxel", "--sh-basis", "descoteaux07-legacy",
                "--frame", "image", "--model", model, "--out", self.path(out), "--quiet", *more)
        return self.path(out)


def directions(count, seed):
    """Evenly spread on the sphere, turned at random."""
    golden = np.pi * (3 - np.sqrt(5))
    z = 1 - (np.arange(count) + 0.5) / count
    r = np.sqrt(1 - z ** 2)
    points = np.column_stack([r * np.cos(golden * np.arange(count)), r * np.sin(golden * np.arange(count)), z])
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return points @ q.T


def synthetic(folder, seed=1, b=3000.0, shape=(12, 11, 10), count=64):
    """Crossings of two fibres with noise, and in the middle single fibres for the response."""
    rng = np.random.default_rng(seed)
    print("synthetic data, seed", seed)
    vectors = np.vstack([np.zeros((3, 3)), directions(count, seed)])
    b_values = np.r_[0, 0, 0, np.full(count, b)]
    fibres = rng.normal(size=shape + (2, 3))
    fibres /= np.linalg.norm(fibres, axis=-1, keepdims=True)
    share = rng.uniform(0.3, 1, shape)
    share[3:9, 3:9, 3:8] = 1
    cosine = np.einsum("...fi,gi->...fg", fibres, vectors)
    signal = np.exp(-b_values * (0.3e-3 + 1.4e-3 * cosine ** 2))
    data = 500 * (share[..., None] * signal[..., 0, :] + (1 - share[..., None]) * signal[..., 1, :])
    data = np.abs(data + rng.normal(scale=10, size=data.shape))
    return Series(folder, data, np.diag([2, 2, 2, 1.0]), b_values, vectors, np.ones(shape))


def real(folder):
    path = suite.need_data("dwi-1p8mm-64dir")
    box = (slice(40, 88), slice(44, 84), slice(37, 42))
    image = nib.load(os.path.join(path, "dwi.nii.gz"))
    mask = load(os.path.join(path, "mask_dipy_otsu.nii.gz"))[box]
    return Series(folder, np.asarray(image.dataobj[box], dtype=np.float32), image.affine,
                  np.loadtxt(os.path.join(path, "dwi.bval")).ravel(),
                  np.loadtxt(os.path.join(path, "dwi.bvec")).T, mask)


def multi_shell(folder):
    path = suite.need_data("dwi-2slices-multishell")
    image = nib.load(os.path.join(path, "b1k_b2k_example_slices_24_38.nii.gz"))
    mask = load(os.path.join(path, "b1k_b2k_example_slices_24_38_mask.nii.gz"))
    box = (slice(20, 84), slice(20, 84), slice(None))
    return Series(folder, np.asarray(image.dataobj[box], dtype=np.float32), image.affine,
                  np.loadtxt(os.path.join(path, "b1k_b2k.bval")).ravel(),
                  np.loadtxt(os.path.join(path, "b1k_b2k.bvec")).T, mask.reshape(image.shape[:3])[box])


class Models(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def check_q_ball(self, series, model, dipy_model, volumes=None, more=()):
        volumes = slice(None) if volumes is None else volumes
        out = series.fit(model, model, "--sh-order", 4, *more)
        expected = dipy_model.fit(series.data[..., volumes], mask=series.mask)
        ours = load(os.path.join(out, "sh.nii.gz"))[series.mask]
        # DIPY normalises in float32.
        self.assertLess(relative_error(ours, expected.shm_coeff[series.mask]).max(), 2e-5)
        np.testing.assert_allclose(load(os.path.join(out, "gfa.nii.gz"))[series.mask], expected.gfa[series.mask],
                                   atol=2e-5)
        self.assertEqual(np.abs(load(os.path.join(out, "sh.nii.gz"))[~series.mask]).max(initial=0), 0)

    def test_opdt_equals_dipy_on_real_data(self):
        series = real(self.folder)
        self.check_q_ball(series, "opdt", OpdtModel(series.table, 4, smooth=0.006, min_signal=1),
                          more=("--min-signal", 1))

    def test_csa_equals_dipy_on_real_data(self):
        series = real(self.folder)
        self.check_q_ball(series, "csa", CsaOdfModel(series.table, 4, smooth=0.006, min_signal=1),
                          more=("--min-signal", 1))

    def test_opdt_and_csa_equal_dipy_on_synthetic_data_with_its_smallest_signal(self):
        series = synthetic(self.folder)
        self.check_q_ball(series, "opdt", OpdtModel(series.table, 4), more=("--min-signal", "1e-5"))
        self.check_q_ball(series, "csa", CsaOdfModel(series.table, 4), more=("--min-signal", "1e-5"))

    def test_one_shell_of_many_is_taken_whole(self):
        series = multi_shell(self.folder)
        for shell in (1000, 2000):
            keep = np.nonzero((series.b_values <= 50) | (np.abs(series.b_values - shell) < 300))[0]
            self.assertGreater(len(keep), 30)
            table = gradient_table(series.b_values[keep], bvecs=series.vectors[keep], b0_threshold=50)
            shutil.rmtree(series.path("opdt"), ignore_errors=True)
            self.check_q_ball(series, "opdt", OpdtModel(table, 4), keep, ("--shell", shell, "--min-signal", "1e-5"))
            with open(series.path("opdt/fit.json")) as file:
                facts = json.load(file)
            self.assertEqual(facts["parameters"]["volumes"], len(keep))
        run = run_fit(series.path("dwi.nii.gz"), "--bvals", series.path("dwi.bval"), "--bvecs",
                      series.path("dwi.bvec"), "--mask", series.path("mask.nii.gz"), "--bvec-frame", "voxel",
                      "--model", "csa", "--out", series.path("highest"))
        self.assertIn("the highest", run.stderr)
        with open(series.path("highest/fit.json")) as file:
            self.assertAlmostEqual(json.load(file)["parameters"]["shell"]["b_value"], 2000, delta=60)

    def sphere_file(self, sphere):
        path = os.path.join(self.folder, "sphere.txt")
        np.savetxt(path, sphere.vertices, fmt="%.17g")
        return path

    def check_csd(self, series, degree, tolerance, response=None):
        """CSD of DIPY on the same response and directions; returns the share of voxels within the tolerance."""
        if response is None:
            response, _ = auto_response_ssst(series.table, series.data, roi_radii=10, fa_thr=0.7)
        with open(series.path("given.txt"), "w") as file:
            file.write(" ".join(repr(float(x)) for x in (*response[0], response[1])) + "\n")
        out = series.fit("csd", f"csd{degree}", "--sh-order", degree, "--csd-sphere", self.sphere_file(small_sphere),
                         "--response", series.path("given.txt"))
        model = ConstrainedSphericalDeconvModel(series.table, response, sh_order_max=degree)
        expected = model.fit(series.data, mask=series.mask).shm_coeff[series.mask]
        ours = load(os.path.join(out, "fod.nii.gz"))[series.mask]
        error = relative_error(ours, expected)
        print(f"csd degree {degree}: median {np.median(error):.1e}, largest {error.max():.1e}")
        return (error < tolerance).mean()

    def test_csd_equals_dipy_on_synthetic_data(self):
        series = synthetic(self.folder)
        for degree in (8, 6):
            # Each voxel's constraints are a set; one rounding at its border would change it. None does here.
            self.assertEqual(self.check_csd(series, degree, 1e-6), 1.0)

    def test_csd_equals_dipy_on_real_data(self):
        series = real(self.folder)
        series.mask[:, :, 1:] = False
        nib.save(nib.Nifti1Image(series.mask.astype(np.uint8), nib.load(series.path("dwi.nii.gz")).affine),
                 series.path("mask.nii.gz"))
        self.assertGreater(self.check_csd(series, 8, 1e-5, ((1.5e-3, 3.4e-4, 3.4e-4), 300.0)), 0.999)

    def test_a_whole_sphere_constrains_as_its_half(self):
        series = synthetic(self.folder, seed=5, shape=(6, 5, 4))
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 500\n")
        full = get_sphere(name="symmetric362")
        more = ("--response", series.path("given.txt"), "--csd-sphere")
        half = load(series.fit("csd", "half", *more, self.sphere_file(small_sphere)) + "/fod.nii.gz")
        model = ConstrainedSphericalDeconvModel(series.table, (np.array([0.0017, 0.0003, 0.0003]), 500.0),
                                                reg_sphere=full, sh_order_max=8)
        expected = model.fit(series.data).shm_coeff
        self.assertLess(relative_error(half, expected).max(), 1e-6)

    def test_responses_from_files_are_those_of_dipy(self):
        series = synthetic(self.folder, seed=3, shape=(6, 5, 4))
        zonal = [900.0, -500.0, 200.0, -60.0, 12.0]
        np.savetxt(series.path("zonal.txt"), [zonal])
        out = series.fit("csd", "zonal", "--response", series.path("zonal.txt"), "--csd-sphere",
                         self.sphere_file(small_sphere))
        model = ConstrainedSphericalDeconvModel(series.table, AxSymShResponse(500, np.array(zonal)), sh_order_max=8)
        expected = model.fit(series.data).shm_coeff
        self.assertLess(relative_error(load(out + "/fod.nii.gz"), expected).max(), 1e-6)
        np.testing.assert_allclose(np.loadtxt(out + "/response_zonal.txt"), zonal)

    def check_automatic_response(self, series):
        series.mask[:] = True
        nib.save(nib.Nifti1Image(series.mask.astype(np.uint8), nib.load(series.path("dwi.nii.gz")).affine),
                 series.path("mask.nii.gz"))
        for radius, fa in ((10, 0.7), (2, 0.5)):
            (values, s0), _ = auto_response_ssst(series.table, series.data, roi_radii=radius, fa_thr=fa)
            out = series.fit("csd", f"auto{radius}", "--response-radius", radius, "--response-fa", fa, "--sh-order", 4)
            np.testing.assert_allclose(np.loadtxt(out + "/response.txt"), [*values, s0], rtol=1e-5)

    def test_the_automatic_response_is_that_of_dipy_on_synthetic_data(self):
        self.check_automatic_response(synthetic(self.folder, b=1500.0))

    def test_the_automatic_response_is_that_of_dipy_on_real_data(self):
        self.check_automatic_response(real(self.folder))

    def test_too_few_voxels_for_a_response_are_refused_with_advice(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        run = run_fit(series.path("dwi.nii.gz"), "--bvals", series.path("dwi.bval"), "--bvecs",
                      series.path("dwi.bvec"), "--mask", series.path("mask.nii.gz"), "--bvec-frame", "voxel",
                      "--model", "csd", "--response-fa", 0.999, "--out", series.path("none"), check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("--response-fa", run.stderr)
        self.assertFalse(os.path.exists(series.path("none/fit.json")))

    def test_the_order_is_lowered_with_a_warning(self):
        series = synthetic(self.folder, shape=(6, 5, 4), count=20)
        run = run_fit(series.path("dwi.nii.gz"), "--bvals", series.path("dwi.bval"), "--bvecs",
                      series.path("dwi.bvec"), "--mask", series.path("mask.nii.gz"), "--bvec-frame", "voxel",
                      "--model", "opdt", "--sh-order", 8, "--out", series.path("low"), "--json")
        self.assertIn("lowered to 4", run.stderr)
        self.assertEqual(json.loads(run.stdout)["parameters"]["sh_order"], 4)
        self.assertEqual(nib.load(series.path("low/sh.nii.gz")).shape[3], 15)

    def test_amplitudes_agree_with_the_coefficients(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 500\n")
        out = series.fit("csd", "csd", "--response", series.path("given.txt"), "--odf", "--sphere", "repulsion724")
        points = np.loadtxt(out + "/odf_directions.txt")
        self.assertEqual(points.shape, (362, 3))
        expected = sh_to_sf(load(out + "/fod.nii.gz"), Sphere(xyz=points), sh_order_max=8,
                            basis_type="descoteaux07", legacy=True)
        np.testing.assert_allclose(load(out + "/odf.nii.gz"), np.maximum(expected, 0), atol=1e-6)
        self.assertLess(expected.min(), -1e-3)

    def test_the_full_sphere_has_both_ends_of_every_direction(self):
        series = synthetic(self.folder, seed=11, shape=(6, 5, 4))
        own = os.path.join(self.folder, "own.txt")
        np.savetxt(own, get_sphere(name="symmetric362").vertices, fmt="%.17g")
        for sphere, count in (("repulsion724", 724), ("default", 2 * 321), (own, 362)):
            name = os.path.basename(sphere)
            more = ("--odf", "--keep-negative", "--peaks", 4, "--sphere", sphere)
            half = series.fit("opdt", f"half-{name}", *more)
            full = series.fit("opdt", f"full-{name}", *more, "--full-sphere")
            points, kept = np.loadtxt(full + "/odf_directions.txt"), np.loadtxt(half + "/odf_directions.txt")
            self.assertEqual((len(kept), len(points)), (count // 2, count))
            np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-12)
            opposite = (points @ points.T).argmin(axis=1)
            np.testing.assert_allclose(points[opposite], -points, atol=1e-9)
            amplitudes = load(full + "/odf.nii.gz")
            expected = sh_to_sf(load(full + "/sh.nii.gz"), Sphere(xyz=points), sh_order_max=4,
                                basis_type="descoteaux07", legacy=True)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(amplitudes, expected, atol=1e-6 * scale)
            # Even functions: both ends of an axis have the same amplitude, and the half sphere's is among them.
            np.testing.assert_allclose(amplitudes[..., opposite], amplitudes, atol=1e-6 * scale)
            same = (kept @ points.T).argmax(axis=1)
            np.testing.assert_allclose(load(half + "/odf.nii.gz"), amplitudes[..., same], atol=1e-6 * scale)
            with open(full + "/odf.nii.gz.json") as file:
                self.assertFalse(json.load(file)["half_sphere"])
            # Two peaks on the half sphere are four on the full one, opposite in pairs.
            peaks = load(full + "/peaks.nii.gz").reshape(-1, 4, 3)
            lengths = np.linalg.norm(peaks, axis=-1)
            crossing = lengths[:, 3] > 0
            self.assertGreater(crossing.sum(), 10)
            for vectors in peaks[crossing]:
                for vector in vectors:
                    self.assertLess(np.abs(vectors + vector).sum(axis=1).min(), 1e-4 * np.abs(vectors).max())

    @suite.needs("mrtrix")
    def test_mrtrix_reads_the_same_amplitudes_in_scanner_axes(self):
        """An oblique image with a negative determinant: MRtrix3 samples our file in world axes."""
        series = synthetic(self.folder, seed=7, shape=(6, 5, 4))
        turn, _ = np.linalg.qr(np.random.default_rng(11).normal(size=(3, 3)))
        if np.linalg.det(turn) > 0:
            turn[:, 0] *= -1
        affine = np.eye(4)
        affine[:3, :3] = turn * [2, 2.5, 3]
        affine[:3, 3] = [-10, 5, 7]
        for name in ("dwi.nii.gz", "mask.nii.gz"):
            image = nib.load(series.path(name))
            nib.save(nib.Nifti1Image(np.asarray(image.dataobj), affine), series.path(name))
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 500\n")
        common = (series.path("dwi.nii.gz"), "--bvals", series.path("dwi.bval"), "--bvecs", series.path("dwi.bvec"),
                  "--mask", series.path("mask.nii.gz"), "--bvec-frame", "voxel", "--model", "csd", "--response",
                  series.path("given.txt"), "--quiet")
        run_fit(*common, "--out", series.path("world"))
        run_fit(*common, "--out", series.path("image"), "--sh-basis", "descoteaux07", "--frame", "image")
        with open(series.path("world/fod.nii.gz.json")) as file:
            facts = json.load(file)["spherical_harmonics"]
        self.assertEqual((facts["basis"], facts["frame"]), ("tournier07", "world"))
        in_image = directions(50, 2)
        in_world = in_image @ turn.T
        azimuth = np.arctan2(in_world[:, 1], in_world[:, 0])
        inclination = np.arccos(np.clip(in_world[:, 2], -1, 1))
        np.savetxt(series.path("directions.txt"), np.column_stack([azimuth, inclination]), fmt="%.17g")
        subprocess.run(["sh2amp", series.path("world/fod.nii.gz"), series.path("directions.txt"),
                        series.path("amp.nii"), "-quiet"], check=True)
        expected = sh_to_sf(load(series.path("image/fod.nii.gz")), Sphere(xyz=in_image), sh_order_max=8,
                            basis_type="descoteaux07", legacy=False)
        mrtrix = load(series.path("amp.nii"))
        if mrtrix.shape != expected.shape:
            self.fail(f"shapes {mrtrix.shape} and {expected.shape}")
        # MRtrix3 may store the axes in another order; the affine tells.
        order = nib.orientations.ornt_transform(nib.io_orientation(nib.load(series.path("amp.nii")).affine),
                                                nib.io_orientation(affine))
        mrtrix = nib.orientations.apply_orientation(mrtrix, order)
        np.testing.assert_allclose(mrtrix, expected, atol=2e-5)

    def test_the_result_does_not_depend_on_threads(self):
        series = synthetic(self.folder, shape=(12, 13, 14))
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 500\n")
        for model, name in (("csd", "fod"), ("opdt", "sh"), ("csa", "sh"), ("dti", "tensor")):
            more = ("--response", series.path("given.txt")) if model == "csd" else ()
            files = []
            for threads in (1, 2, 8):
                out = series.fit(model, f"{model}{threads}", "--threads", threads, *more)
                with open(f"{out}/{name}.nii.gz", "rb") as file:
                    files.append(file.read())
            self.assertEqual(files[0], files[1])
            self.assertEqual(files[0], files[2])

    def test_grids_and_counts_that_disagree_are_named(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        away = nib.load(series.path("dwi.nii.gz")).affine.copy()
        away[:3, 3] += 1000
        nib.save(nib.Nifti1Image(np.ones((6, 5, 3), np.uint8), away), series.path("small.nii.gz"))
        common = (series.path("dwi.nii.gz"), "--bvecs", series.path("dwi.bvec"), "--model", "dti", "--bvec-frame",
                  "voxel")
        run = run_fit(*common, "--bvals", series.path("dwi.bval"), "--mask", series.path("small.nii.gz"), "--out",
                      series.path("x"), check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("small.nii.gz has another grid than the series", run.stderr)
        self.assertIn("dwi.nii.gz, and 0 % of it lies there", run.stderr)
        self.assertFalse(os.path.exists(series.path("x")))
        np.savetxt(series.path("short.bval"), series.b_values[None, :-1])
        np.savetxt(series.path("short.bvec"), series.vectors.T[:, :-1])
        run = run_fit(series.path("dwi.nii.gz"), "--bvals", series.path("short.bval"), "--bvecs",
                      series.path("short.bvec"), "--model", "dti", "--mask", series.path("mask.nii.gz"), "--out",
                      series.path("x"), check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("67 volumes", run.stderr)
        self.assertIn("66 b-values", run.stderr)
        self.assertFalse(os.path.exists(series.path("x")))

    def test_a_wrong_frame_of_the_vectors_stops_the_run_and_auto_takes_the_right_one(self):
        path = suite.need_data("dwi-1p8mm-64dir")
        common = (f"{path}/dwi.nii.gz", "--bvals", f"{path}/dwi.bval", "--bvecs", f"{path}/dwi.bvec", "--mask",
                  f"{path}/mask_dipy_otsu.nii.gz", "--model", "opdt", "--out", os.path.join(self.folder, "out"))
        run = run_fit(*common, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("--bvec-frame voxel", run.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out")))
        run = run_fit(*common, "--bvec-frame", "auto", "--json")
        self.assertEqual(json.loads(run.stdout)["parameters"]["bvec_frame"], "voxel")

    def test_without_a_mask_one_is_made_and_written(self):
        shape = (24, 24, 20)
        series = synthetic(self.folder, shape=shape)
        series.data[:3], series.data[-3:], series.data[:, :3], series.data[:, -3:] = 5, 5, 5, 5
        nib.save(nib.Nifti1Image(series.data, np.diag([2, 2, 2, 1.0])), series.path("dwi.nii.gz"))
        run = run_fit(series.path("dwi.nii.gz"), "--bvals", series.path("dwi.bval"), "--bvecs",
                      series.path("dwi.bvec"), "--bvec-frame", "voxel", "--model", "dti", "--out", series.path("out"))
        self.assertIn("mask.nii.gz", run.stderr)
        mask = load(series.path("out/mask.nii.gz"))
        self.assertEqual(mask[12, 12, 10], 1)
        self.assertEqual(mask[0, 0, 0], 0)
        self.assertEqual((load(series.path("out/s0.nii.gz")) != 0).sum(), mask.sum())

    def test_an_existing_fit_is_refused_without_force(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        series.fit("opdt", "out")
        before = load(series.path("out/sh.nii.gz"))
        with self.assertRaisesRegex(AssertionError, "it exists.*--force|--force"):
            series.fit("opdt", "out", "--sm-lambda", 0.5)
        np.testing.assert_array_equal(load(series.path("out/sh.nii.gz")), before)
        series.fit("opdt", "out", "--sm-lambda", 0.5, "--force")
        self.assertGreater(np.abs(load(series.path("out/sh.nii.gz")) - before).max(), 0)

    def test_equal_runs_give_equal_bytes_but_for_the_member_run(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        first, second = series.fit("csa", "a", "--peaks", 2), series.fit("csa", "b", "--peaks", 2)
        names = sorted(os.listdir(first))
        self.assertEqual(names, sorted(os.listdir(second)))
        self.assertIn("peaks.nii.gz", names)
        for name in names:
            with open(f"{first}/{name}", "rb") as a, open(f"{second}/{name}", "rb") as b:
                one, two = a.read(), b.read()
            if name == "fit.json":
                one, two = json.loads(one), json.loads(two)
                one.pop("run"), two.pop("run")
            self.assertEqual(one, two, name)

    def contents(self, folder):
        """The files of a fit; of fit.json without the member `run`."""
        result = {}
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", "rb") as file:
                result[name] = file.read()
        facts = json.loads(result["fit.json"])
        facts.pop("run")
        return {**result, "fit.json": facts}

    def test_a_run_is_repeated_from_its_fit_json(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        sphere = series.path("sphere.txt")
        np.savetxt(sphere, get_sphere(name="repulsion724").vertices[:300], fmt="%.17g")
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 500\n")
        first = series.fit("csd", "first", "--response", series.path("given.txt"), "--csd-sphere", sphere, "--csd-lambda", 0.7,
                           "--peaks", 2, "--sh-order", 4)
        summary = f"{first}/fit.json"
        run_fit("--from", summary, "--out", series.path("second"))
        self.assertEqual(self.contents(first), self.contents(series.path("second")))
        # What is repeated can be repeated, and what is given beside it takes precedence.
        run_fit("--from", series.path("second/fit.json"), "--csd-lambda", 0.9, "--out", series.path("third"))
        third = self.contents(series.path("third"))
        self.assertEqual(third["fit.json"]["arguments"]["options"]["csd-lambda"], "0.9")
        self.assertEqual(third["fit.json"]["arguments"]["options"]["peaks"], "2")
        self.assertNotEqual(self.contents(first)["fod.nii.gz"], third["fod.nii.gz"])
        # Each input is one that the run is held to, the file of directions among them.
        inputs = {entry["option"]: entry["path"] for entry in third["fit.json"]["inputs"]}
        self.assertEqual(set(inputs), {"dwi", "bvals", "bvecs", "mask", "response", "csd-sphere"})
        for option, path in inputs.items():
            with self.subTest(option=option):
                with open(path, "rb") as file:
                    whole = file.read()
                with open(path, "ab") as file:
                    file.write(b" ")
                refused = run_fit("--from", summary, "--out", series.path("refused"), check=False)
                with open(path, "wb") as file:
                    file.write(whole)
                self.assertEqual(refused.returncode, 1)
                self.assertIn(f"its input {path} has changed", refused.stderr)
                self.assertFalse(os.path.exists(series.path("refused")))
        other = run_fit("--from", f"{first}/fod.nii.gz", "--out", series.path("refused"), check=False)
        self.assertEqual(other.returncode, 1)
        self.assertIn("fod.nii.gz", other.stderr)

    def test_a_run_with_relative_names_is_repeated_from_another_folder(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        there, elsewhere = os.path.dirname(series.path("dwi.nii.gz")), tempfile.mkdtemp(dir=self.folder)
        run_fit("dwi.nii.gz", "--bvals", "dwi.bval", "--bvecs", "dwi.bvec", "--mask", "mask.nii.gz", "--bvec-frame", "voxel",
                "--model", "dti", "--out", "near", cwd=there)
        run_fit("--from", os.path.join(there, "near", "fit.json"), "--out", "again", cwd=elsewhere)
        for name in ("tensor.nii.gz", "fa.nii.gz"):
            self.assertEqual(self.contents(os.path.join(there, "near"))[name], self.contents(os.path.join(elsewhere, "again"))[name])

    def test_a_missing_series_or_model_is_named(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        for words, said in ((["--model", "dti"], "DWI is missing|dwi is missing"),
                            ([series.path("dwi.nii.gz"), "--bvals", series.path("dwi.bval"), "--bvecs", series.path("dwi.bvec")],
                             "--model is missing: one of dti, opdt, csa, csd")):
            refused = run_fit(*words, "--out", series.path("out"), check=False)
            self.assertEqual(refused.returncode, 2)
            self.assertRegex(refused.stderr, said)

    def test_peaks_are_as_long_as_their_amplitude(self):
        series = synthetic(self.folder, shape=(6, 5, 4))
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 500\n")
        out = series.fit("csd", "peaks", "--response", series.path("given.txt"), "--peaks", 3)
        peaks = load(out + "/peaks.nii.gz").reshape(6, 5, 4, 3, 3)
        lengths = np.linalg.norm(peaks, axis=-1)
        self.assertTrue((np.diff(lengths, axis=-1) <= 0).all())
        self.assertTrue((lengths[..., 0] > 0).all())
        fod = load(out + "/fod.nii.gz")
        for voxel in np.ndindex(6, 5, 4):
            direction = peaks[voxel][0] / lengths[voxel][0]
            value = sh_to_sf(fod[voxel], Sphere(xyz=direction[None]), sh_order_max=8, basis_type="descoteaux07",
                             legacy=True)
            self.assertAlmostEqual(value[0], lengths[voxel][0], places=5)


def run_track(*arguments, check=True):
    result = subprocess.run([PROGRAM, "track", *map(str, arguments), "--device", "cpu", "--progress", "none"],
                            capture_output=True, text=True)
    if check and result.returncode != 0:
        raise AssertionError(result.stderr)
    return result


class FitAndTrack(unittest.TestCase):
    """The same series is treated alike by `fit` and by `track`."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def both(self, series, model, *more, fit=(), track=()):
        """The two commands, each with its own words."""
        common = ("--bvals", series.path("dwi.bval"), "--bvecs", series.path("dwi.bvec"), "--mask",
                  series.path("mask.nii.gz"), "--model", model, *more)
        return (run_fit(series.path("dwi.nii.gz"), *common, "--out", series.path("fit"), "--force", *fit, check=False),
                run_track(series.path("dwi.nii.gz"), *common, "--dg", "det", "--nseeds", 5, "--fa-threshold", 0,
                          "--out", series.path("track.trx"), "--force", *track, check=False))

    def parameters(self, series):
        with open(series.path("fit/fit.json")) as file:
            return json.load(file)["parameters"]

    def two_shells(self, wrong_frame=False):
        """A helix, which no mirror image looks like, with b = 1000 and 3000."""
        folder = os.path.join(self.folder, "phantom")
        subprocess.run([PROGRAM, "phantom", "--preset", "helix", "--snr", "20", "--directions", "30", "--b-values",
                        "1000,3000", "--voxel-size", "2.5", "--out", folder, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        vectors = np.loadtxt(f"{folder}/dwi.bvec").T
        if wrong_frame:
            vectors[:, 0] *= -1
        image = nib.load(f"{folder}/dwi.nii.gz")
        return Series(folder, np.asarray(image.dataobj, dtype=np.float32), image.affine,
                      np.loadtxt(f"{folder}/dwi.bval").ravel(), vectors, load(f"{folder}/mask.nii.gz"))

    def test_the_gradient_check_sees_all_volumes_whatever_the_model_takes(self):
        series = self.two_shells()
        checks = {}
        for model, more in (("dti", ()), ("csa", ("--shell", 3000)), ("opdt", ("--shell", 1000))):
            run_fit(series.path("dwi.nii.gz"), "--bvals", series.path("dwi.bval"), "--bvecs", series.path("dwi.bvec"),
                    "--mask", series.path("mask.nii.gz"), "--model", model, *more, "--out", series.path(model))
            with open(series.path(f"{model}/fit.json")) as file:
                checks[model] = json.load(file)["parameters"]["gradient_check"]
        self.assertEqual(checks["dti"]["verdict"], "agrees")
        self.assertEqual(checks["csa"], checks["dti"])
        self.assertEqual(checks["opdt"], checks["dti"])

    def test_a_wrong_frame_stops_both_with_the_same_words(self):
        series = self.two_shells(wrong_frame=True)
        fit, track = self.both(series, "csa")
        self.assertEqual((fit.returncode, track.returncode), (1, 1))
        said = [run.stderr[run.stderr.index("checking the b-vectors"):] for run in (fit, track)]
        self.assertEqual(said[0], said[1])
        self.assertIn("voxel", said[0])
        self.assertFalse(os.path.exists(series.path("fit/fit.json")))
        self.assertFalse(os.path.exists(series.path("track.trx")))
        fit, track = self.both(series, "csa", "--bvec-frame", "auto")
        self.assertEqual((fit.returncode, track.returncode), (0, 0), fit.stderr + track.stderr)
        self.assertEqual(self.parameters(series)["bvec_frame"], "voxel")
        with open(series.path("track.trx.json")) as file:
            self.assertEqual(json.load(file)["model"]["bvec_frame"], "voxel")

    def test_a_check_that_cannot_be_made_stops_both_unless_the_frame_is_given(self):
        """Four directions determine no tensor; a model of degree 0 can be fitted to them."""
        series = synthetic(self.folder, shape=(6, 5, 4), count=4)
        ones = series.path("stop.nii.gz")
        nib.save(nib.Nifti1Image(np.ones((6, 5, 4), np.float32), np.diag([2, 2, 2, 1.0])), ones)
        fit, track = self.both(series, "csa", track=("--stop-map", ones))
        self.assertEqual((fit.returncode, track.returncode), (2, 2))
        for run in (fit, track):
            self.assertIn("checking the b-vectors: fitting tensors: 7 volumes determine 5 of the 7 unknowns", run.stderr)
        self.assertFalse(os.path.exists(series.path("fit")) or os.path.exists(series.path("track.trx")))
        fit, track = self.both(series, "csa", "--bvec-frame", "voxel", track=("--stop-map", ones))
        self.assertEqual((fit.returncode, track.returncode), (0, 0), fit.stderr + track.stderr)
        self.assertNotIn("gradient_check", self.parameters(series))

    def test_deconvolution_that_does_not_converge_is_a_warning_in_both(self):
        """Signals of noise alone at 46 random directions; degree 8 has 45 coefficients."""
        rng = np.random.default_rng(1)
        shape = (8, 8, 8)
        vectors = rng.normal(size=(46, 3))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        data = rng.uniform(0, 1000, shape + (47,))
        data[..., 0] = 1000
        series = Series(self.folder, data, np.diag([2, 2, 2, 1.0]), np.r_[0, np.full(46, 3000.0)],
                        np.vstack([np.zeros((1, 3)), vectors]), np.ones(shape))
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 1000\n")
        fit, track = self.both(series, "csd", "--bvec-frame", "voxel", "--response", series.path("given.txt"))
        self.assertEqual((fit.returncode, track.returncode), (0, 0), fit.stderr + track.stderr)
        for run in (fit, track):
            self.assertRegex(run.stderr, "(?m)^.*warning.*voxels did not converge in 50 iterations")

    def test_the_response_is_estimated_where_the_options_say_alike_in_both(self):
        """Single fibres lie in the middle of the synthetic series; options that do not find them name what does."""
        series = synthetic(self.folder, b=1500.0)
        options = ("--bvec-frame", "voxel", "--response-fa", 0.6, "--response-radius", 3, "--response-centre", "6,5,4")
        fit, track = self.both(series, "csd", *options)
        self.assertEqual((fit.returncode, track.returncode), (0, 0), fit.stderr + track.stderr)
        with open(series.path("track.trx.json")) as file:
            sidecar = json.load(file)
        with open(series.path("fit/fit.json")) as file:
            parameters = json.load(file)
        response = np.loadtxt(series.path("fit/response.txt"))
        model = sidecar["model"]
        np.testing.assert_array_equal([*model["response_eigenvalues"], model["response_s0"]], response)
        self.assertEqual(model["response_voxels"], parameters["results"]["response"]["voxels"])
        for name, value in (("response_fa", 0.6), ("response_radius", 3), ("response_centre", [6, 5, 4])):
            self.assertEqual(model[name], value)
            self.assertEqual(parameters["parameters"][name], value)
        self.assertEqual(sidecar["arguments"]["options"]["response-fa"], "0.6")
        for run in (fit, track):
            self.assertRegex(run.stderr, r"response from \d+ voxels: eigenvalues")
        plain = self.both(series, "csd", "--bvec-frame", "voxel")
        self.assertEqual([run.returncode for run in plain], [0, 0], plain[0].stderr)
        with open(series.path("track.trx.json")) as file:
            other = json.load(file)["model"]
        self.assertEqual((other["response_fa"], other["response_radius"]), (0.7, 10))
        self.assertNotEqual(other["response_eigenvalues"], model["response_eigenvalues"])

    def test_what_is_not_used_and_what_is_lowered_is_said_alike_in_both(self):
        series = self.two_shells()
        with open(series.path("given.txt"), "w") as file:
            file.write("0.0017 0.0003 0.0003 1000\n")
        given = ("--response", series.path("given.txt"))
        fit, track = self.both(series, "csd", *given)
        self.assertEqual((fit.returncode, track.returncode), (0, 0), fit.stderr + track.stderr)
        unused = [{"b_value": 1000.0, "volumes": 30}]
        for run in (fit, track):
            self.assertRegex(run.stderr, r"(?m)^.*warning.*not used: b = 1000 \(30 volumes\); the model takes one shell, "
                                         r"b = 3000 \(30 volumes\), the highest; --shell B takes another$")
            self.assertRegex(run.stderr, r"(?m)^.*warning.*--sh-order 8 needs 45 directions, there are 30: lowered to 6$")
        self.assertEqual(self.parameters(series)["unused_shells"], unused)
        with open(series.path("track.trx.json")) as file:
            model = json.load(file)["model"]
        self.assertEqual((model["unused_shells"], model["degree"]), (unused, 6))
        # A shell that was asked for: said, and no warning.
        for run in self.both(series, "csd", *given, "--shell", 1000, "--sh-order", 6):
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("not used: b = 3000 (30 volumes); the model takes one shell, b = 1000 (30 volumes)\n", run.stderr)
            self.assertNotIn("warning: not used", run.stderr)

    def test_a_response_that_cannot_be_estimated_names_options_that_there_are(self):
        b_values = np.r_[0, np.full(60, 1000.0)]
        data = np.broadcast_to(500 * np.exp(-b_values * 0.8e-3), (6, 5, 4, 61))  # water, which has no direction
        series = Series(self.folder, data, np.diag([2, 2, 2, 1.0]), b_values,
                        np.vstack([np.zeros((1, 3)), directions(60, 1)]), np.ones((6, 5, 4)))
        fit, track = self.both(series, "csd", "--bvec-frame", "voxel")
        self.assertEqual((fit.returncode, track.returncode), (1, 1))
        for verb, run in (("fit", fit), ("track", track)):
            self.assertIn("estimating the response", run.stderr)
            help_text = subprocess.run([PROGRAM, verb, "--help"], capture_output=True, text=True).stdout
            options = re.findall(r"--[a-z-]+", run.stderr)
            self.assertEqual(options, ["--response-fa", "--response"])
            for option in options:
                self.assertIn(f"  {option} ", help_text)


if __name__ == "__main__":
    suite.main(verbosity=2)
