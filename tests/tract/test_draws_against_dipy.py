"""Directions drawn at one point, by our getters and by DIPY 1.12.1's, from the same data on the same sphere: the same
distribution by a chi-square test, prob also against the distribution computed here; ptt by Kolmogorov and Smirnov's."""
import unittest

import nibabel as nib
import numpy as np
from dipy.core.gradients import gradient_table
from dipy.data import default_sphere
from dipy.direction import BootDirectionGetter, ProbabilisticDirectionGetter
from dipy.reconst.shm import OpdtModel
from dipy.tracking import tracker as dipy_tracker
from dipy.tracking.stopping_criterion import ThresholdStoppingCriterion
from scipy.stats import chi2_contingency, chisquare, ks_2samp

from tracking import LONG, Folder, read_lines, track, write_image, write_rows

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

    def first_arcs(self, edge, count):
        """Displacements of the first step of ptt, by us and by DIPY, in an image of cubes of `edge` mm. Thresholds are
        zero, so that both have the mean amplitude along the probe as support."""
        shape, place = (12, 12, 12), np.float32([5.3, 5.6, 5.8]).astype(float)
        step, probe, angle = 0.5, 1.5, 30
        affine = np.diag([edge, edge, edge, 1.0])
        rng = np.random.default_rng(6)
        lobes = (VERTICES @ AXES[0]) ** 6 + 0.6 * (VERTICES @ AXES[1]) ** 8
        # Nine tenths less on one side, so that it matters how far the probe looks.
        side = np.where(np.arange(12) > 6, 0.1, 1.0)[:, None, None, None]
        sf = (lobes * side * rng.uniform(0.5, 1.5, shape + (len(VERTICES),))).astype(np.float32)
        stop = np.zeros(shape)
        stop[4:8, 4:8, 4:8] = 1
        path = write_image(self.folder / f"ptt-{edge}.nii", sf, affine)
        stop_path = write_image(self.folder / f"ptt-{edge}-stop.nii", stop, affine)
        write_rows(self.folder / "seeds.txt", np.tile(place, (count, 1)))
        write_rows(self.folder / "directions.txt", np.tile(AHEAD, (count, 1)))
        out = self.folder / f"ptt-{edge}.trx"
        track("--sf", path, "--sphere", self.folder / "sphere.txt", "--stop-map", stop_path, "--stop-threshold", 0.1,
              "--dg", "ptt", "--seed-file", self.folder / "seeds.txt", "--seed-space", "voxel", "--directions",
              self.folder / "directions.txt", "--one-sided", "--step-size", f"{step}mm", "--max-length", f"{step}mm",
              "--min-length", 0, "--max-angle", angle, "--ptt-probe-length", f"{probe}mm", "--ptt-weak-links",
              "--ptt-probe-quality", 7, "--ptt-substeps", 1, "--pmf-threshold", 0, "--pmf-threshold-absolute", 0, "--out", out)
        ours = np.array([line[1].astype(float) - line[0] for line in read_lines(out) if len(line) == 2])
        # DIPY makes its random numbers from the place of the seed: places differ by less than they matter.
        theirs_count = count // 8
        seeds = np.tile(place * edge, (theirs_count, 1)) + rng.uniform(-1e-4, 1e-4, (theirs_count, 3)) * edge
        theirs = []
        for line, seed in dipy_tracker.ptt_tracking(
                seeds, ThresholdStoppingCriterion(stop, 0.1), affine, seed_directions=np.tile(AHEAD, (theirs_count, 1)),
                sf=sf.astype(float), min_len=0, max_len=100, step_size=step, max_angle=angle, pmf_threshold=0,
                probe_length=probe, probe_quality=7, sphere=default_sphere, random_seed=50000000, nbr_threads=1,
                save_seeds=True):
            at = int(np.argmin(np.linalg.norm(line - seed, axis=1)))
            if at + 1 < len(line):
                # DIPY adds a step along the initial direction to every point that it stores.
                theirs.append(line[at + 1] - line[at] - step * AHEAD)
        theirs = np.array(theirs)
        self.assertTrue(np.allclose(np.linalg.norm(theirs, axis=1), step, atol=0.15 * step), "DIPY's first step has its shift")
        return ours, theirs

    def test_ptt_draws_as_dipy_where_a_voxel_has_1_mm(self):
        # DIPY 1.12.1 moves its probe by length times edge voxels instead of length over edge, and takes curvatures per
        # voxel for curvatures per mm: its rules are ours where an edge has 1 mm, and only there.
        count = 60000 if LONG else 12000
        across = np.cross(AHEAD, [0, 0, 1.0])
        across /= np.linalg.norm(across)
        up = np.cross(AHEAD, across)
        for edge in (1.0, 2.0):
            ours, theirs = self.first_arcs(edge, count)
            self.assertGreater(len(theirs), 0.9 * count / 8)
            # What is compared are the curvatures (k1, k2). Our step is an arc of its length: its chord is off the tangent
            # by k step / 2. DIPY's is (step, k step^2 / 2), the first term of the arc.
            step = 0.5
            theirs_k = 2 / step**2 * np.stack([theirs @ across, theirs @ up], axis=1)
            sideways = np.stack([ours @ across, ours @ up], axis=1)
            size = np.linalg.norm(sideways, axis=1)
            ours_k = sideways * (2 / step * np.arctan2(size, ours @ AHEAD) / size)[:, None]
            p = [ks_2samp(ours_k[:, i], theirs_k[:, i]).pvalue for i in range(2)]
            p.append(ks_2samp(np.linalg.norm(ours_k, axis=1), np.linalg.norm(theirs_k, axis=1)).pvalue)
            print(f"ptt, edge {edge} mm: p = {p[0]:.2g} and {p[1]:.2g} sideways, {p[2]:.2g} in curvature", flush=True)
            if edge == 1.0:
                self.assertGreater(min(p), 1e-4)
            else:
                self.assertLess(min(p), 1e-6)


if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
