"""The random getters (prob, ptt, boot) in images of the same world that are stored otherwise: flipped, with permuted
axes, oblique, anisotropic, resampled. Streamlines start at the same places of the world with other keys; where they
end, how long they are and which parts of space they visit must have the same distribution, by two-sample tests at a
fixed key. A control shows that the tests see a wrong axis, a missing flip and edges taken for cubes."""
import unittest

import numpy as np
from dipy.data import get_sphere
from dipy.reconst.shm import sf_to_sh
from scipy.stats import chi2_contingency, ks_2samp

from test_geometry import affine_of, rotation
from tracking import LONG, Folder, read_trx, track, write_image, write_rows

SEEDS = {"prob": 12000 if LONG else 1500, "ptt": 6000 if LONG else 500, "boot": 6000 if LONG else 800}
LENGTH_MM = 14
# In these the directions of the sphere turn with the image, or interpolation has other neighbours: distributions may
# differ by this much (Kolmogorov and Smirnov's distance; share of streamlines in a cube), which only the long tier can
# tell from none.
INEXACT = ("anisotropic", "oblique", "resampled")
TOLERANCE = 0.05
# Below this probability two samples are called different. Each class makes some 25 comparisons of 5 quantities; keys
# are fixed, so that what passes once passes always.
LEVEL = 1e-4
FINE = get_sphere(name="repulsion724")
SECOND = np.array([0.35, 0.45, 0.82]) / np.linalg.norm([0.35, 0.45, 0.82])
EDGE_NORMAL = np.array([0.8, 0.5, 0.33]) / np.linalg.norm([0.8, 0.5, 0.33])

# axes, edges in mm, voxels: all hold a ball of 22 mm about the world's origin
IMAGES = {
    "plain": (np.eye(3), (2, 2, 2), (24, 24, 24)),
    "flipped": (np.diag([-1.0, 1, -1]), (2, 2, 2), (24, 24, 24)),
    "mirrored": (np.diag([1.0, -1, 1]), (2, 2, 2), (24, 24, 24)),
    "permuted": (np.eye(3)[:, [2, 0, 1]], (2, 2, 2), (24, 24, 24)),
    "anisotropic": (np.eye(3), (1.5, 2, 2.5), (32, 24, 19)),
    "oblique": (rotation([12, 25, 40]) @ np.diag([1.0, 1, -1]), (2, 2, 2), (24, 24, 24)),
    "resampled": (np.eye(3), (1.6, 1.6, 1.6), (30, 30, 30)),
}


def bent(world):
    """Tangents of circles of 40 mm about an axis beside the origin."""
    arm = world - np.array([0.0, -40.0, 0.0])
    direction = np.stack([arm[..., 1], -arm[..., 0], np.full(world.shape[:-1], 6.0)], axis=-1)
    return direction / np.linalg.norm(direction, axis=-1, keepdims=True)


def world_of(affine, shape):
    grid = np.stack(np.meshgrid(*[np.arange(n) for n in shape], indexing="ij"), axis=-1)
    return grid @ affine[:3, :3].T + affine[:3, 3]


def amplitudes(world):
    """A bent and a straight population, polynomials of degree 8: exactly a series of degree 8."""
    v = FINE.vertices
    # Squared three times: NumPy's ** 8 is ten times as slow, and there are ten million of them.
    eighth = bent(world) @ v.T
    for _ in range(3):
        eighth *= eighth
    return eighth + 0.5 * (v @ SECOND) ** 8


def stop_of(world):
    """Linear in space, so that interpolation on any grid is exact: 0.5 on a slanted plane 9 mm from the origin."""
    return 0.5 + (9.0 - world @ EDGE_NORMAL) / 40.0


class Case(unittest.TestCase):
    getter = None

    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        count = SEEDS[cls.getter]
        rng = np.random.default_rng(11)
        places = rng.normal(size=(count, 3))
        places *= 3.0 / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1.0)
        cls.seeds = write_rows(cls.folder / "seeds.txt", places)
        cls.directions = write_rows(cls.folder / "directions.txt", bent(places))
        cls.results = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def words(self, name, affine, shape, claimed):
        """Options and files of an image whose values belong to `affine`, and whose header says `claimed`."""
        world = world_of(affine, shape)
        stop = write_image(self.folder / f"{name}-stop.nii", stop_of(world), claimed)
        sh = sf_to_sh(amplitudes(world), FINE, sh_order_max=8, basis_type="tournier07", legacy=False, smooth=0)
        path = write_image(self.folder / f"{name}.nii", sh, claimed)
        return ["--sh", path, "--sh-basis", "tournier07", "--frame", "world", "--stop-map", stop]

    def track(self, name, key, affine, shape, claimed=None):
        words = self.words(name, affine, shape, affine if claimed is None else claimed)
        out = self.folder / f"{name}.trx"
        track(*words, "--dg", self.getter, "--stop-threshold", 0.5, "--seed-file", self.seeds, "--directions",
              self.directions, "--one-sided", "--step-size", "1mm", "--max-length", LENGTH_MM, "--min-length", 0,
              "--seed", key, "--save-seeds", "--out", out, *self.options)
        lines, data = read_trx(out)
        return lines, data["end_reason"][:, 1]

    def quantities(self, lines):
        # From the seed, which both have in common, to the end.
        ends = np.array([line[-1].astype(float) - line[0] for line in lines])
        lengths = np.array([len(line) - 1 for line in lines], dtype=float)
        return {"x": ends[:, 0], "y": ends[:, 1], "z": ends[:, 2], "length": lengths}

    @staticmethod
    def visits(lines):
        """Streamlines that met each cube of 4 mm of the world (by points; every streamline once per cube)."""
        counts = {}
        for line in lines:
            for cube in set(map(tuple, np.floor(np.asarray(line, dtype=float) / 4.0).astype(int))):
                counts[cube] = counts.get(cube, 0) + 1
        return counts

    def compare(self, a, b, tolerance=0.0):
        """The probability of each of six tests; 1 where the difference is within the tolerance."""
        lines_a, reasons_a = a
        lines_b, reasons_b = b
        p = {}
        first, second = self.quantities(lines_a), self.quantities(lines_b)
        for name in first:
            found = ks_2samp(first[name], second[name], method="asymp")
            p[name] = 1.0 if found.statistic < tolerance and found.pvalue < LEVEL else found.pvalue
        visits_a, visits_b = self.visits(lines_a), self.visits(lines_b)
        worst, tests = 1.0, 0
        for cube in set(visits_a) | set(visits_b):
            n, m = visits_a.get(cube, 0), visits_b.get(cube, 0)
            if min(n + m, len(lines_a) + len(lines_b) - n - m) < 40:
                continue
            if abs(n / len(lines_a) - m / len(lines_b)) < tolerance:
                continue
            tests += 1
            worst = min(worst, chi2_contingency([[n, len(lines_a) - n], [m, len(lines_b) - m]]).pvalue)
        p["visits"] = min(1.0, worst * max(tests, 1))  # Bonferroni
        reasons = [[(r == code).sum() for code in (1, 3, 4)] for r in (reasons_a, reasons_b)]
        reasons = np.array(reasons)[:, np.sum(reasons, axis=0) > 0]
        p["reasons"] = chi2_contingency(reasons).pvalue if reasons.shape[1] > 1 else 1.0
        return p

    def whole(self, key, name):
        axes, edges, shape = IMAGES[name]
        return self.track(f"{name}-{key}", key, affine_of(axes, edges, shape), shape)

    def check_same_distribution(self):
        reference = self.whole(100, "plain")
        self.assertEqual(len(reference[0]), SEEDS[self.getter])
        lengths = self.quantities(reference[0])["length"]
        self.assertGreater(lengths.std(), 1)  # it is not all one length
        for key, name in enumerate(IMAGES, 101):
            if not LONG and name in ("plain", "mirrored"):
                continue
            p = self.compare(reference, self.whole(key, name), TOLERANCE if name in INEXACT else 0.0)
            print(f"{self.getter}, {name}: " + ", ".join(f"{k} {v:.3f}" for k, v in p.items()), flush=True)
            for quantity, value in p.items():
                self.assertGreater(value, LEVEL, f"{self.getter} in the {name} image: {quantity}")
        return reference

    def check_controls(self, reference):
        """Headers that do not belong to the values: the tests see each."""
        axes, edges, shape = IMAGES["plain"]
        right = affine_of(axes, edges, shape)
        swapped = affine_of(np.eye(3)[:, [1, 0, 2]], edges, shape)
        flipped = affine_of(np.diag([-1.0, 1, 1]), edges, shape)
        for name, wrong in (("swapped axes", swapped), ("a missing flip", flipped)):
            p = self.compare(reference, self.track(f"control {name}", 200, right, shape, wrong))
            self.assertLess(min(p.values()), 1e-8, name)
        shape = IMAGES["anisotropic"][2]
        right = affine_of(np.eye(3), (1.5, 2, 2.5), shape)
        p = self.compare(reference, self.track("cubes", 201, right, shape, affine_of(np.eye(3), (2, 2, 2), shape)))
        self.assertLess(min(p.values()), 1e-8, "edges taken for cubes")


class Prob(Case):
    getter = "prob"
    options = ["--max-angle", 35]

    def test_the_distribution_does_not_depend_on_how_the_world_is_stored(self):
        self.check_controls(self.check_same_distribution())


class Ptt(Case):
    getter = "ptt"
    options = ["--max-angle", 25, "--ptt-probe-length", "3mm", "--ptt-weak-links"]

    def test_the_distribution_does_not_depend_on_how_the_world_is_stored(self):
        self.check_controls(self.check_same_distribution())


class Boot(Case):
    """A series whose noise is a fixed factor of each gradient, the same everywhere: smooth in space, and with residuals
    to draw from. Gradients are those of the world, written as FSL has them in each image."""

    getter = "boot"
    # The finest sphere: peaks lie on its directions, which turn with the image.
    options = ["--max-angle", 60, "--sphere", "mirror501", "--model", "opdt", "--sh-order", 4]

    def words(self, name, affine, shape, claimed):
        rng = np.random.default_rng(12)
        world = world_of(affine, shape)
        gradients = rng.normal(size=(40, 3))
        gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
        signal = 0.7 * np.exp(-2 * (0.3 + 1.4 * (bent(world) @ gradients.T) ** 2))
        signal = signal + 0.3 * np.exp(-2 * (0.3 + 1.4 * (gradients @ SECOND) ** 2))
        series = 300 * np.concatenate([np.ones((*shape, 3)), signal * (1 + 0.2 * rng.normal(size=40))], axis=-1)
        image_axes = claimed[:3, :3] / np.linalg.norm(claimed[:3, :3], axis=0)
        bvecs = np.vstack([np.zeros((3, 3)), gradients @ image_axes])
        if np.linalg.det(image_axes) > 0:
            bvecs[:, 0] *= -1
        np.savetxt(self.folder / f"{name}.bvec", bvecs.T, fmt="%.17g")
        np.savetxt(self.folder / f"{name}.bval", [[0.0] * 3 + [2000.0] * 40], fmt="%g")
        stop = write_image(self.folder / f"{name}-stop.nii", stop_of(world), claimed)
        mask = write_image(self.folder / f"{name}-mask.nii", np.ones(shape), claimed)
        path = write_image(self.folder / f"{name}.nii", series, claimed)
        return [path, "--bvals", self.folder / f"{name}.bval", "--bvecs", self.folder / f"{name}.bvec", "--bvec-frame",
                "fsl", "--mask", mask, "--stop-map", stop]

    def test_the_distribution_does_not_depend_on_how_the_world_is_stored(self):
        self.check_controls(self.check_same_distribution())


del Case

if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
