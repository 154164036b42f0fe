"""Directions drawn at one point, by our getters and by DIPY 1.12.1's, from the same data on the same sphere: the same
distribution by a chi-square test, prob also against the distribution computed here."""
import unittest

import nibabel as nib
import numpy as np
from dipy.core.gradients import gradient_table
from dipy.data import default_sphere
from dipy.direction import BootDirectionGetter, ProbabilisticDirectionGetter
from dipy.reconst.shm import OpdtModel
from scipy.stats import chi2_contingency, chisquare

from tracking import Folder, read_lines, track, write_image, write_rows

VERTICES = default_sphere.vertices
POINT = np.float32([2.3, 2.6, 1.8]).astype(float)
AHEAD = np.array([0.7, 0.5, 0.1]) / np.linalg.norm([0.7, 0.5, 0.1])
ANGLE = 60
AXES = np.array([[0.9, 0.2, 0.4], [0.4, 0.8, -0.5]])
AXES /= np.linalg.norm(AXES, axis=1)[:, None]


def vertices_of(directions):
    """Which vertex each direction is, up to sign; -1 where it is none."""
    cosines = np.abs(directions @ VERTICES.T)
    nearest = cosines.argmax(axis=1)
    return np.where(cosines.max(axis=1) > 1 - 1e-5, nearest, -1)


def joined(*counts):
    """Tables with the rare vertices joined, so that every cell of the chi-square test is expected to hold some."""
    counts = np.array(counts, dtype=float)
    rare = counts.sum(axis=0) < 12 * len(counts)
    table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    return table[:, table.sum(axis=0) > 0]


class Draws(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.affine = np.diag([2.0, 2.0, 2.0, 1.0])
        cls.shape = (5, 6, 5)
        write_rows(cls.folder / "sphere.txt", VERTICES)
        write_image(cls.folder / "stop.nii.gz", np.ones(cls.shape), cls.affine)

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def ours(self, count, *words):
        """The first steps of `count` one-sided streamlines from the point; those that found no direction are left out."""
        write_rows(self.folder / "seeds.txt", np.tile(POINT, (count, 1)))
        write_rows(self.folder / "directions.txt", np.tile(AHEAD, (count, 1)))
        out = self.folder / "steps.trx"
        track(*words, "--stop-map", self.folder / "stop.nii.gz", "--stop-threshold", 0.1, "--sphere",
              self.folder / "sphere.txt", "--seed-file", self.folder / "seeds.txt", "--seed-space", "voxel",
              "--directions", self.folder / "directions.txt", "--one-sided", "--step-size", "1mm", "--max-length",
              "1mm", "--min-length", 0, "--max-angle", ANGLE, "--out", out, "--force")
        lines = [line for line in read_lines(out) if len(line) == 2]
        steps = np.array([line[1].astype(float) - line[0] for line in lines])
        self.assertTrue(np.allclose(np.linalg.norm(steps, axis=1), 1, atol=1e-4))
        self.assertTrue((steps @ AHEAD > 0).all())
        return steps

    def counts(self, directions):
        found = vertices_of(directions)
        self.assertTrue((found >= 0).all(), "a direction that is not of the sphere")
        return np.bincount(found, minlength=len(VERTICES))

    def dipy(self, getter, count):
        drawn = []
        for _ in range(count):
            direction = AHEAD.copy()
            if getter.get_direction(POINT, direction) == 0:
                drawn.append(direction / np.linalg.norm(direction))
        return np.array(drawn)

    def test_prob_draws_as_computed_and_as_dipy(self):
        rng = np.random.default_rng(3)
        lobes = (VERTICES @ AXES[0]) ** 6 + 0.6 * (VERTICES @ AXES[1]) ** 8
        sf = (lobes * rng.uniform(0.8, 1.2, self.shape + (len(VERTICES),))).astype(np.float32)
        path = write_image(self.folder / "sf.nii.gz", sf, self.affine)
        ours = self.counts(self.ours(60000, "--sf", path, "--dg", "prob", "--pmf-threshold", 0.1))
        # The distribution, in float64.
        base, weight = POINT.astype(int), POINT - POINT.astype(int)
        pmf = np.zeros(len(VERTICES))
        for corner in np.ndindex(2, 2, 2):
            share = np.prod(np.where(corner, weight, 1 - weight))
            pmf += share * sf[tuple(base + corner)].astype(float)
        pmf[pmf < 0.1 * pmf.max()] = 0
        pmf[np.abs(VERTICES @ AHEAD) < np.cos(np.radians(ANGLE))] = 0
        self.assertEqual(ours[pmf == 0].sum(), 0, "a direction without weight was drawn")
        expected = pmf / pmf.sum() * ours.sum()
        self.assertGreater(expected[expected > 0].min(), 5)
        p = chisquare(ours[pmf > 0], expected[pmf > 0]).pvalue
        print(f"prob: p = {p:.3f} against the distribution", flush=True)
        self.assertGreater(p, 1e-4)
        getter = ProbabilisticDirectionGetter.from_pmf(sf.astype(float), max_angle=ANGLE, sphere=default_sphere,
                                                       pmf_threshold=0.1)
        theirs = self.counts(self.dipy(getter, 20000))
        p = chi2_contingency(joined(ours, theirs)).pvalue
        print(f"prob: p = {p:.3f} beside DIPY", flush=True)
        self.assertGreater(p, 1e-4)

    def test_boot_draws_as_dipy(self):
        rng = np.random.default_rng(4)
        directions = rng.normal(size=(60, 3))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        bvecs = np.vstack([np.zeros((4, 3)), directions])
        bvals = np.array([0.0] * 4 + [2000.0] * 60)
        cosines = directions @ AXES.T
        fibres = np.exp(-2 * (0.3 + 1.4 * cosines ** 2))
        signal = np.concatenate([np.ones(4), fibres @ [0.6, 0.4]])
        data = (200 * signal + rng.normal(size=self.shape + (64,)) * 30).astype(np.float32)
        path = write_image(self.folder / "dwi.nii.gz", data, self.affine)
        mask = write_image(self.folder / "mask.nii.gz", np.ones(self.shape), self.affine)
        np.savetxt(self.folder / "dwi.bval", bvals[None], fmt="%g")
        np.savetxt(self.folder / "dwi.bvec", bvecs.T, fmt="%.17g")
        steps = self.ours(20000, path, "--bvals", self.folder / "dwi.bval", "--bvecs", self.folder / "dwi.bvec",
                          "--bvec-frame", "voxel", "--mask", mask, "--dg", "boot", "--model", "opdt", "--sh-order", 4)
        ours = self.counts(steps)
        model = OpdtModel(gradient_table(bvals, bvecs=bvecs), sh_order_max=4, smooth=0.006, min_signal=1)
        getter = BootDirectionGetter.from_data(data.astype(float), model, max_angle=ANGLE, sphere=default_sphere,
                                               sh_order=4, max_attempts=5, relative_peak_threshold=0.25,
                                               min_separation_angle=45)
        drawn = self.dipy(getter, 3000)
        theirs = self.counts(drawn)
        stops = np.array([[20000 - len(steps), len(steps)], [3000 - len(drawn), len(drawn)]])
        table = joined(ours, theirs)
        p = chi2_contingency(table).pvalue
        print(f"boot: p = {p:.3f} beside DIPY over {table.shape[1]} directions; no direction in "
              f"{stops[0, 0] / 20000:.4f}, DIPY {stops[1, 0] / 3000:.4f}", flush=True)
        self.assertGreater(table.shape[1], 4)
        self.assertGreater(p, 1e-4)
        if stops[:, 0].sum() > 20:
            self.assertGreater(chi2_contingency(stops).pvalue, 1e-4)


if __name__ == "__main__":
    unittest.main()
