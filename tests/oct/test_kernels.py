"""OCT kernels against SciPy and scikit-image in float64: filters, resizing, the tissue interface, transforms, overlap.

Tolerances are relative to the greatest value. Where a coordinate lies within 1e-5 of the last sample a constant boundary
may go either way, and such voxels are left out.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from scipy import ndimage

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import suite  # noqa: E402

PROBE = os.environ["CINGULUM_TEST_OCT_PROBE"]
DEVICE = os.environ.get("CINGULUM_TEST_OCT_DEVICE", "cpu")
MODES = {"reflect": "reflect", "mirror": "mirror", "nearest": "nearest", "constant": "constant", "wrap": "wrap"}
SHAPES = [(1, 1, 37), (2, 3, 5), (17, 23, 31), (13, 64, 70), (40, 9, 11)]


def run(operation, inputs, out_shape, **options):
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, volume in enumerate(inputs):
            path = os.path.join(folder, f"in{i}")
            np.ascontiguousarray(volume, np.float32).tofile(path)
            files.append({"file": path, "shape": list(volume.shape)})
        out = os.path.join(folder, "out")
        request = {"operation": operation, "inputs": files, "out": {"file": out, "shape": list(out_shape)}, **options}
        path = os.path.join(folder, "request.json")
        pathlib.Path(path).write_text(json.dumps(request))
        done = subprocess.run([PROBE, DEVICE, path], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return np.fromfile(out, np.float32), json.loads(done.stdout)


def volume_of(shape, seed=0):
    return np.random.default_rng(seed).uniform(0.01, 4, shape).astype(np.float32)


class Comparison(unittest.TestCase):
    def close(self, ours, theirs, tolerance):
        scale = np.abs(theirs).max() or 1.0
        self.assertLess(np.abs(ours.reshape(theirs.shape) - theirs).max() / scale, tolerance)


class Filters(Comparison):
    def test_gaussians_and_their_derivatives_in_every_boundary_mode(self):
        for seed, shape in enumerate(SHAPES):
            volume = volume_of(shape, seed)
            for name, mode in MODES.items():
                for sigma, orders in (((1, 0.7, 2), (0, 0, 0)), ((2, 0, 1.3), (1, 0, 0)), ((0, 3, 0), (0, 2, 0))):
                    ours, _ = run("gaussian", [volume], shape, sigma=sigma, orders=orders, mode=name, cval=0.7)
                    theirs = ndimage.gaussian_filter(volume.astype(float), sigma, order=orders, mode=mode, cval=0.7)
                    with self.subTest(shape=shape, mode=name, sigma=sigma):
                        self.close(ours, theirs, 5e-6)

    def test_boxes_of_odd_and_even_size(self):
        for seed, shape in enumerate(SHAPES):
            volume = volume_of(shape, seed)
            for name, mode in MODES.items():
                for size in ((1, 15, 15), (2, 4, 3), (5, 1, 8)):
                    ours, _ = run("box", [volume], shape, size=size, mode=name, cval=-0.3)
                    theirs = ndimage.uniform_filter(volume.astype(float), size, mode=mode, cval=-0.3)
                    with self.subTest(shape=shape, mode=name, size=size):
                        self.close(ours, theirs, 5e-6)


class Ranks(unittest.TestCase):
    def test_medians_are_those_of_scipy(self):
        for seed, shape in enumerate(SHAPES):
            volume = volume_of(shape, seed) - 1
            for size in ((1, 3, 3), (3, 3, 3), (1, 10, 10), (2, 4, 1)):
                ours, _ = run("median", [volume], shape, size=size)
                with self.subTest(shape=shape, size=size):
                    np.testing.assert_array_equal(ours.reshape(shape), ndimage.median_filter(volume, size))

    def test_percentiles_are_those_of_numpy(self):
        percents = [0, 0.1, 5, 50, 95, 99.9, 100]
        for seed, shape in enumerate(SHAPES):
            volume = volume_of(shape, seed) - 1
            _, found = run("percentiles", [volume], (1, 1, 1), percents=percents)
            np.testing.assert_allclose(found["values"], np.percentile(volume.astype(float), percents), rtol=1e-12)


class Resizing(Comparison):
    PAIRS = [((40, 37, 61), (13, 12, 20)), ((17, 23, 31), (9, 40, 31)), ((2, 5, 9), (1, 2, 27)), ((64, 1, 90), (21, 1, 45))]

    def test_centres_are_those_of_scikit_image(self):
        from skimage.transform import resize
        for seed, (shape, out) in enumerate(self.PAIRS):
            volume = volume_of(shape, seed)
            for order, tolerance in ((0, 5e-6), (1, 5e-6), (3, 2e-5)):
                for smooth in (False, True):
                    ours, _ = run("resize", [volume], out, order=order, anti_aliasing=smooth)
                    theirs = resize(volume.astype(float), out, order=order, mode="reflect", anti_aliasing=smooth,
                                    preserve_range=True, clip=False)
                    with self.subTest(shape=shape, order=order, smooth=smooth):
                        if order == 0:
                            # Half-way between two samples either is right; halved axes have nothing else.
                            away = self.away_from_ties(shape, out)
                            ours, theirs = ours.reshape(out)[away], theirs[away]
                            self.assertEqual(theirs.size == 0, any(n == 2 * m for n, m in zip(shape, out)))
                            if theirs.size == 0:
                                continue
                        self.close(ours, theirs, tolerance)

    @staticmethod
    def away_from_ties(shape, out):
        axes = []
        for n, m in zip(shape, out):
            at = (np.arange(m) + 0.5) * n / m - 0.5
            axes.append(np.abs(at - np.floor(at) - 0.5) > 1e-6)
        return np.ix_(*axes)

    def test_corners_are_those_of_scipy(self):
        for seed, (shape, out) in enumerate(self.PAIRS):
            volume = volume_of(shape, seed).astype(float)
            sigma = [max(0.0, (n / m - 1) / 2) for n, m in zip(shape, out)]
            for order, tolerance in ((1, 5e-6), (3, 2e-5)):
                for compat in (False, True):
                    ours, _ = run("resize", [volume], out, order=order, align="corner", compat_edge_zero=compat)
                    smooth = ndimage.gaussian_filter(volume, sigma)
                    theirs = ndimage.zoom(smooth, [m / n for n, m in zip(shape, out)], order=order, mode="constant")
                    if not compat:
                        inside = np.ix_(*[np.arange(m) * ((n - 1) / max(m - 1, 1)) <= n - 1 for n, m in zip(shape, out)])
                        ours, theirs = ours.reshape(out)[inside], theirs[inside]
                    with self.subTest(shape=shape, order=order, compat=compat):
                        self.close(ours, theirs, tolerance)

    def test_a_wave_keeps_its_phase(self):
        """Sampled at centres, a wave comes out where it was: within 0.01 of a voxel."""
        n, m = 400, 120
        wave = np.sin(2 * np.pi * (np.arange(n) + 0.5) / 80).astype(np.float32).reshape(1, 1, n)
        ours, _ = run("resize", [wave], (1, 1, m))
        expected = (np.arange(m) + 0.5) * n / m
        angle = np.angle(np.sum(ours[12:-12] * np.exp(-2j * np.pi * expected[12:-12] / 80)))
        self.assertLess(abs(angle + np.pi / 2) * 80 / (2 * np.pi), 0.01 * n / m)


def interface_by_scipy(volume, s_xy, s_z, use_log, mask=None, cutting=False):
    """Section by section as the specification has it, in float64, (z, y, x)."""
    p = volume.astype(float)
    if use_log:
        p = np.where(p > 0, np.log(np.where(p > 0, p, 1)), p)
    p = ndimage.uniform_filter(p, (1, s_xy, s_xy)) if s_xy > 1 else p

    def along_z(values, order):
        if mask is None:
            return ndimage.gaussian_filter1d(values, s_z, axis=0, order=order)
        result = np.zeros_like(values)
        for y in range(values.shape[1]):
            for x in range(values.shape[2]):
                kept = mask[:, y, x]
                if kept.any():
                    result[kept, y, x] = ndimage.gaussian_filter1d(values[kept, y, x], s_z, order=order)
        return result

    response = along_z(p, 1)
    depth = np.ceil(response.argmax(0) + 0.5 * s_z)
    if cutting:
        q = np.abs(along_z(p, 0)).argmax(0)
        depth = np.where(q < depth, q, depth)
    return depth, response


class Interface(unittest.TestCase):
    def test_whole_numbers_are_those_of_scipy_but_for_near_ties(self):
        rng = np.random.default_rng(5)
        for shape, s_xy, s_z in (((60, 40, 45), 15, 2), ((33, 21, 70), 5, 1.3), ((50, 20, 20), 3, 2), ((40, 64, 30), 31, 2)):
            z = np.arange(shape[0])[:, None, None]
            surface = 12 + 6 * rng.random(shape[1:])
            volume = (0.02 + 1 / (1 + np.exp(-(z - surface) / 0.7))) * rng.gamma(4, 0.25, shape)
            volume[rng.random(shape) < 0.01] = 0
            volume = volume.astype(np.float32)
            masks = [None, rng.random(shape) < 0.8]
            for use_log in (True, False):
                for cutting in (False, True):
                    for mask in masks:
                        inputs = [volume] if mask is None else [volume, mask.astype(np.float32)]
                        ours, _ = run("interface", inputs, (1, *shape[1:]), s_xy=s_xy, s_z=s_z, use_log=use_log,
                                      detect_cutting_errors=cutting)
                        theirs, response = interface_by_scipy(volume, s_xy, s_z, use_log, mask, cutting)
                        differ = ours.reshape(theirs.shape) != theirs
                        with self.subTest(shape=shape, use_log=use_log, cutting=cutting, masked=mask is not None):
                            # Two responses within float32 of each other may change places.
                            top = np.sort(response, axis=0)
                            ties = top[-1] - top[-2] < 1e-4 * np.abs(response).max()
                            self.assertLess(np.count_nonzero(differ & ~ties), 3)
                            self.assertLess(np.count_nonzero(differ), 0.05 * differ.size)


class Transforms(Comparison):
    def test_affine_transforms(self):
        rng = np.random.default_rng(2)
        for shape, out in (((20, 31, 25), (18, 30, 33)), ((1, 40, 41), (1, 40, 41))):
            volume = volume_of(shape)
            for order, tolerance in ((0, 0), (1, 2e-6), (3, 2e-5)):
                for mode in ("constant", "mirror", "reflect") + (("nearest", "wrap") if order < 3 else ()):
                    matrix = np.eye(3) + rng.uniform(-0.2, 0.2, (3, 3))
                    if shape[0] == 1:
                        matrix[0] = (1, 0, 0)
                        matrix[:, 0] = (1, 0, 0)
                    offset = np.zeros(3) if shape[0] == 1 else rng.uniform(-2, 2, 3)
                    if shape[0] == 1:
                        offset[1:] = rng.uniform(-2, 2, 2)
                    ours, _ = run("affine", [volume], out, order=order, mode=mode, cval=0.5,
                                  matrix=np.column_stack([matrix, offset]).tolist())
                    theirs = ndimage.affine_transform(volume.astype(float), matrix, offset, out, order=order, cval=0.5,
                                                      mode={"wrap": "grid-wrap"}.get(mode, mode))
                    grid = np.stack(np.meshgrid(*map(np.arange, out), indexing="ij"), -1)
                    at = grid @ matrix.T + offset
                    sure = self.sure(at, shape, order)
                    with self.subTest(shape=shape, order=order, mode=mode):
                        self.assertGreater(sure.mean(), 0.9)
                        difference = np.abs(ours.reshape(out) - theirs)[sure].max()
                        self.assertLessEqual(difference / 4, tolerance)

    @staticmethod
    def sure(at, shape, order):
        """Where rounding decides neither which samples are taken (order 0) nor whether a point lies inside."""
        good = np.ones(at.shape[:-1], bool)
        for axis, n in enumerate(shape):
            if n == 1:
                continue
            c = at[..., axis]
            good &= (np.abs(c) > 1e-5) & (np.abs(c - (n - 1)) > 1e-5)
            if order == 0:
                good &= np.abs(c - np.floor(c) - 0.5) > 1e-5
        return good

    def test_coordinates_and_displacements(self):
        rng = np.random.default_rng(3)
        shape, out = (20, 31, 25), (9, 12, 14)
        volume = volume_of(shape)
        for order, tolerance in ((1, 2e-6), (3, 2e-5)):
            for mode in ("constant", "mirror", "reflect"):
                places = rng.uniform(-3, 33, (3, *out)).astype(np.float32)
                ours, _ = run("map_coordinates", [volume, places.reshape(27, 12, 14)], out, order=order, mode=mode)
                theirs = ndimage.map_coordinates(volume.astype(float), places.astype(float), order=order, mode=mode)
                sure = self.sure(np.moveaxis(places.astype(float), 0, -1), shape, order)
                with self.subTest(order=order, mode=mode):
                    self.assertLess(np.abs(ours.reshape(out) - theirs)[sure].max() / 4, tolerance)
                field = rng.uniform(-4, 4, (3, *shape)).astype(np.float32)
                ours, _ = run("displace", [volume, field.reshape(60, 31, 25)], shape, order=order, mode=mode)
                at = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij")) + field.astype(float)
                theirs = ndimage.map_coordinates(volume.astype(float), at, order=order, mode=mode)
                sure = self.sure(np.moveaxis(at, 0, -1), shape, order)
                with self.subTest(order=order, mode=mode, field=True):
                    self.assertLess(np.abs(ours.reshape(shape) - theirs)[sure].max() / 4, tolerance)


class Overlap(unittest.TestCase):
    def test_correlations_are_those_of_the_plain_formula(self):
        rng = np.random.default_rng(4)
        tissue = ndimage.gaussian_filter(rng.standard_normal((70, 50, 44)), 2)
        fixed = (np.exp(3 * tissue[:40]) * rng.gamma(4, 0.25, (40, 50, 44))).astype(np.float32)
        moving = (0.8 * np.exp(3 * tissue[26:66]) * rng.gamma(4, 0.25, (40, 50, 44))).astype(np.float32)
        _, found = run("overlap", [fixed, moving], (1, 1, 1), search=[12, 5, 25])
        margin = 44 // 4
        f = fixed[:, margin:50 - margin, margin:44 - margin].astype(float)
        m = moving[:, margin:50 - margin, margin:44 - margin].astype(float)
        expected = []
        for o in range(5, 26):
            a, b = f[-o:], m[:o]
            expected.append(np.mean((a - a.mean()) / (a.std() + 1e-8) * (b - b.mean()) / (b.std() + 1e-8)))
        np.testing.assert_allclose(found["correlations"], expected, atol=2e-6)
        self.assertEqual(found["planes"], 5 + int(np.argmax(expected)))
        self.assertAlmostEqual(found["correlation"], max(expected), places=5)


if __name__ == "__main__":
    suite.main()
