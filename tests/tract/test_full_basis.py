"""Spherical harmonics of all degrees (asymmetric functions): DIPY's full bases, tracked by `cingulum track --sh`."""
import json
import sys
import unittest
import warnings
from pathlib import Path

import numpy as np
from dipy.core.sphere import Sphere
from dipy.reconst.shm import sf_to_sh, sh_to_sf

from tracking import Folder, read_lines, run, track, track_json, write_image, write_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

warnings.simplefilter("ignore")

BASES = {"tournier07": ("tournier07", False), "descoteaux07": ("descoteaux07", False),
         "descoteaux07-legacy": ("descoteaux07", True)}
AFFINE = np.array([[-2.0, 0, 0, 19], [0, 2, 0, -19], [0, 0, 2, -19], [0, 0, 0, 1]])
SIZE = 20
DEGREE = 8


def directions(count=400):
    """Points of a spiral over the whole sphere; none is the opposite of another."""
    i = np.arange(count) + 0.5
    z = 1 - 2 * i / count
    phi = np.pi * (1 + 5 ** 0.5) * i
    return np.stack([np.sqrt(1 - z * z) * np.cos(phi), np.sqrt(1 - z * z) * np.sin(phi), z], 1)


AHEAD = np.array([np.cos(np.pi / 6), np.sin(np.pi / 6), 0])  # 30 degrees off x, in image axes
BACK = np.array([-1.0, 0, 0])


def two_lobes(points):
    """What travels along +x is led 30 degrees aside, what travels along -x goes straight on."""
    return sum(np.exp(12 * (points @ lobe - 1)) for lobe in (AHEAD, BACK))


def angle_between(a, b):
    return np.degrees(np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1)))


class FullBases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.points = directions()
        cls.sphere_file = write_rows(cls.folder / "sphere.txt", cls.points)
        cls.middle = write_rows(cls.folder / "seed.txt", [[10, 10, 10]])

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def coefficients(self, name, turn=None):
        basis, legacy = BASES[name]
        points = directions(1500)
        values = two_lobes(points if turn is None else points @ turn)
        return sf_to_sh(values, Sphere(xyz=points), sh_order_max=DEGREE, basis_type=basis, full_basis=True, legacy=legacy)

    def image(self, name, coefficients):
        values = np.broadcast_to(coefficients, (SIZE, SIZE, SIZE, len(coefficients)))
        return write_image(self.folder / name, values, AFFINE)

    def words(self, *more):
        return ["--sphere", self.sphere_file, "--dg", "det", "--seed-file", self.middle, "--seed-space", "voxel",
                "--max-angle", 50, "--step-size", "0.5vox", "--save-seeds", "--force", *more]

    def test_amplitudes_are_those_of_dipy(self):
        """The same streamlines come from the harmonics and from the amplitudes that DIPY makes of them: random functions
        in every voxel, so that a wrong sign or order of any coefficient leads elsewhere."""
        rng = np.random.default_rng(4)
        seeds = write_rows(self.folder / "seeds.txt", rng.uniform(4, 15, (60, 3)))
        for name, (basis, legacy) in BASES.items():
            coefficients = rng.normal(size=(SIZE, SIZE, SIZE, 49)) * 0.05
            coefficients += sf_to_sh(two_lobes(directions(1500)), Sphere(xyz=directions(1500)), sh_order_max=6,
                                     basis_type=basis, full_basis=True, legacy=legacy)
            coefficients = coefficients.astype(np.float32)
            amplitudes = sh_to_sf(coefficients.astype(float), Sphere(xyz=self.points), sh_order_max=6, basis_type=basis,
                                  full_basis=True, legacy=legacy)
            write_image(self.folder / "sh.nii.gz", coefficients, AFFINE)
            write_image(self.folder / "sf.nii.gz", np.maximum(amplitudes, 0), AFFINE)
            common = ["--sphere", self.sphere_file, "--dg", "det", "--seed-file", seeds, "--seed-space", "voxel",
                      "--max-angle", 45, "--step-size", "0.5vox", "--max-directions", 32, "--force"]
            facts = track_json("--sh", self.folder / "sh.nii.gz", "--sh-basis", name, *common, "--out", self.folder / "a.trx")
            track("--sf", self.folder / "sf.nii.gz", "--full-sphere", *common, "--out", self.folder / "b.trx")
            ours, theirs = read_lines(self.folder / "a.trx"), read_lines(self.folder / "b.trx")
            self.assertGreater(len(ours), 60)
            self.assertEqual([len(line) for line in ours], [len(line) for line in theirs], name)
            np.testing.assert_allclose(np.concatenate(ours), np.concatenate(theirs), rtol=0, atol=1e-4, err_msg=name)
            self.assertEqual(facts["model"]["full_basis"], True)
            self.assertEqual((facts["model"]["degree"], facts["model"]["basis"], facts["model"]["frame"]), (6, name, "image"))
            self.assertEqual((facts["field"]["half_sphere"], facts["field"]["directions"]), (False, len(self.points)))

    def test_an_asymmetric_field_leads_forwards_and_backwards_differently(self):
        """In every basis; image x is world -x here. The even part alone leads straight through."""
        for name in BASES:
            coefficients = self.coefficients(name)
            done = track("--sh", self.image("sh.nii.gz", coefficients), "--sh-basis", name, *self.words("--max-directions", 1),
                         "--out", self.folder / "a.trx", check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            (line,) = read_lines(self.folder / "a.trx")
            seed = AFFINE @ [10, 10, 10, 1]
            place = int(np.argmin(np.linalg.norm(line - seed[:3], axis=1)))
            self.assertGreater(min(place, len(line) - 1 - place), 8)
            to_image_axes = np.array([-1.0, 1, 1])
            there = sorted(((line[end] - line[place]) * to_image_axes for end in (0, -1)), key=lambda way: way[0])
            # The nearest directions of the sphere lie within 6 degrees of the lobes.
            self.assertLess(angle_between(there[0], BACK), 6, name)
            self.assertLess(angle_between(there[1], AHEAD), 6, name)
            # Without its odd degrees a function is the same there and back: one line leads both ways, as well as the
            # directions of the sphere have opposites, where the two lobes are 30 degrees off it.
            even = coefficients.copy()
            for l in range(1, DEGREE + 1, 2):
                even[l * l:(l + 1) ** 2] = 0
            track("--sh", self.image("even.nii.gz", even), "--sh-basis", name, *self.words("--max-directions", 1),
                  "--out", self.folder / "b.trx")
            (line,) = read_lines(self.folder / "b.trx")
            place = int(np.argmin(np.linalg.norm(line - seed[:3], axis=1)))
            self.assertLess(angle_between(line[-1] - line[place], line[place] - line[0]), 15, name)

    def test_directions_in_world_axes_are_turned_into_those_of_the_image(self):
        world = self.coefficients("descoteaux07", np.diag([-1.0, 1, 1]))
        track("--sh", self.image("sh.nii.gz", self.coefficients("descoteaux07")), "--sh-basis", "descoteaux07",
              *self.words(), "--out", self.folder / "image.trx")
        track("--sh", self.image("world.nii.gz", world), "--sh-basis", "descoteaux07", "--frame", "world", *self.words(),
              "--out", self.folder / "world.trx")
        image, world = read_lines(self.folder / "image.trx"), read_lines(self.folder / "world.trx")
        self.assertEqual(len(image), len(world))
        for a, b in zip(image, world):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-3)

    def test_what_the_file_does_not_say_is_said(self):
        path = self.image("sh.nii.gz", self.coefficients("descoteaux07-legacy"))
        done = track("--sh", path, *self.words(), "--out", self.folder / "a.trx")
        content = (self.folder / "a.trx").read_bytes()
        self.assertEqual(json.loads((self.folder / "a.trx.json").read_text())["model"]["basis"], "descoteaux07-legacy")
        loud = run("track", "--sh", path, *self.words(), "--progress", "none", "--out", self.folder / "b.trx")
        self.assertIn("harmonics of all degrees up to 8 (descoteaux07-legacy): sampled once on the 400 directions", loud.stderr)
        self.assertEqual((self.folder / "b.trx").read_bytes(), content)
        self.assertEqual(done.stderr, "")
        # And the same on threads and by its sidecar.
        track("--from", self.folder / "a.trx.json", "--threads", 2, "--out", self.folder / "c.trx")
        self.assertEqual((self.folder / "c.trx").read_bytes(), content)
        values = np.zeros((4, 4, 4, 44))
        done = track("--sh", write_image(self.folder / "bad.nii.gz", values, AFFINE), *self.words(), "--out",
                     self.folder / "d.trx", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("44 volumes are spherical harmonics neither of even degrees", done.stderr)


if __name__ == "__main__":
    suite.main()
