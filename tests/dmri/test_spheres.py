"""Spheres against SciPy's convex hull and DIPY's spheres and hemispheres."""

import os
import subprocess
import tempfile
import unittest
import warnings

import numpy as np
from dipy.core.sphere import HemiSphere, Sphere
from dipy.data import get_sphere
from scipy.spatial import ConvexHull

warnings.filterwarnings("ignore")
PROBE = os.environ["CINGULUM_TEST_DMRI_PROBE"]
NAMES = ["mirror321", "mirror406", "mirror501", "repulsion724", "repulsion362"]


def probe(*arguments):
    lines = subprocess.run([PROBE, "sphere", *arguments], check=True, capture_output=True, text=True).stdout.splitlines()
    kind, count, edge_count = lines[0].split()
    count, edge_count = int(count), int(edge_count)
    directions = np.array([line.split() for line in lines[1:1 + count]], float)
    edges = np.array([line.split() for line in lines[1 + count:]], int)
    assert edges.shape == (edge_count, 2)
    return kind, directions, {tuple(edge) for edge in edges.tolist()}


def edge_set(pairs):
    return {tuple(sorted(pair)) for pair in np.asarray(pairs).tolist()}


def hull_edges(points):
    faces = ConvexHull(points).simplices
    return edge_set(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [0, 2]]]))


def energy(half):
    points = np.vstack([half, -half])
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(len(points), 1)]
    return np.sum(1 / distance)


class Spheres(unittest.TestCase):
    def test_edges_of_named_spheres_are_those_of_scipy_and_dipy(self):
        for name in NAMES:
            kind, half, edges = probe(name)
            self.assertEqual(kind, "half")
            count = len(half)
            whole = np.vstack([half, -half])
            self.assertEqual(edges, {tuple(sorted((a % count, b % count))) for a, b in hull_edges(whole)}, name)
            self.assertEqual(edges, edge_set(HemiSphere(xyz=half).edges), name)
            kind, full, edges = probe(name + "-full")
            self.assertEqual(kind, "full")
            self.assertTrue(np.array_equal(full, whole))
            self.assertEqual(edges, hull_edges(full), name)
            self.assertEqual(edges, edge_set(Sphere(xyz=full).edges), name)

    def test_edges_of_dipys_spheres_given_as_files_are_dipys(self):
        for name in ["repulsion100", "repulsion200", "repulsion724", "symmetric362", "symmetric642",
                     "symmetric724"]:
            sphere = get_sphere(name=name)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "sphere.txt")
                np.savetxt(path, sphere.vertices, fmt="%.17g")
                _, full, edges = probe(path, "full")
                np.testing.assert_allclose(full, sphere.vertices, atol=1e-6)
                self.assertEqual(edges, hull_edges(sphere.vertices), name)
                hemisphere = HemiSphere(xyz=sphere.vertices)
                kind, half, edges = probe(path)
                self.assertEqual(kind, "half")
                np.testing.assert_allclose(np.abs(np.sum(half * hemisphere.vertices, axis=1)), 1, atol=1e-6)
                self.assertEqual(edges, edge_set(hemisphere.edges), name)

    def test_random_directions_are_joined_as_by_scipy(self):
        rng = np.random.default_rng(5)
        for count in (7, 30, 400):
            points = rng.normal(size=(count, 3))
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "sphere.txt")
                np.savetxt(path, points, fmt="%.17g")
                whole = np.vstack([points, -points])
                _, _, edges = probe(path)
                expected = {tuple(sorted((a % count, b % count))) for a, b in hull_edges(whole)}
                self.assertEqual(edges, {edge for edge in expected if edge[0] != edge[1]})

    def test_repulsion_is_as_low_in_energy_as_dipys(self):
        theirs = get_sphere(name="repulsion724").vertices
        _, ours, _ = probe("repulsion724")
        self.assertLess(energy(ours), 1.0001 * energy(theirs[theirs[:, 2] > 0]))


if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
