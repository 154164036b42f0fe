"""Our real spherical harmonics against DIPY's, in every convention, even and full bases.

CINGULUM_TEST_SH_DUMP names the program built from tests/numerics/spherical_harmonics_dump.cpp.
Run: CINGULUM_TEST_SH_DUMP=build/bin/spherical_harmonics_dump python3 tests/numerics/test_spherical_harmonics.py
"""

import os
import subprocess
import unittest
import warnings

import numpy as np
from dipy.reconst.shm import real_sh_descoteaux, real_sh_tournier

CONVENTIONS = {
    "descoteaux07_legacy": (0, real_sh_descoteaux, True),
    "descoteaux07": (1, real_sh_descoteaux, False),
    "tournier07": (2, real_sh_tournier, False),
}


def directions():
    """Random ones, the axes, and points on the mirror planes."""
    random = np.random.default_rng(7).normal(size=(200, 3))
    special = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]
    planes = [[1, 2, 0], [0, -1, 2], [3, 0, -1], [-1, -1, 0]]
    points = np.concatenate([random, np.array(special + planes, dtype=float)])
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def ours(convention, degree, full, points):
    lines = "".join(f"{convention} {degree} {int(full)} {x!r} {y!r} {z!r}\n" for x, y, z in points.tolist())
    program = os.environ["CINGULUM_TEST_SH_DUMP"]
    answer = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout
    values = np.array([line.split() for line in answer.splitlines()], dtype=float)
    half = values.shape[1] // 2
    return values[:, :half], values[:, half:]


def dipys(function, legacy, degree, full, points):
    theta = np.arccos(np.clip(points[:, 2], -1, 1))
    phi = np.arctan2(points[:, 1], points[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(degree, theta, phi, full_basis=full, legacy=legacy)[0]


class SphericalHarmonics(unittest.TestCase):
    def compare(self, name, degree, full):
        convention, function, legacy = CONVENTIONS[name]
        points = directions()
        wide, single = ours(convention, degree, full, points)
        expected = dipys(function, legacy, degree, full, points)
        self.assertEqual(wide.shape, expected.shape)
        # DIPY goes through angles, which costs it some digits near the poles.
        np.testing.assert_allclose(wide, expected, rtol=0, atol=3e-14)
        np.testing.assert_allclose(single, expected, rtol=0, atol=4e-6)

    def test_even_bases_equal_those_of_dipy(self):
        for name in CONVENTIONS:
            for degree in range(0, 13, 2):
                with self.subTest(convention=name, degree=degree):
                    self.compare(name, degree, full=False)

    def test_full_bases_equal_those_of_dipy(self):
        for name in CONVENTIONS:
            for degree in range(0, 13):
                with self.subTest(convention=name, degree=degree):
                    self.compare(name, degree, full=True)

    def test_an_impossible_basis_is_refused(self):
        program = os.environ["CINGULUM_TEST_SH_DUMP"]
        answer = subprocess.run([program], input="0 3 0 0 0 1\n", capture_output=True, text=True, check=False)
        self.assertEqual(answer.returncode, 2)
        self.assertIn("degree 3", answer.stderr)


if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
