"""Where streamlines are: exact under another affine, the same in flipped, turned and oblique images, right in
anisotropic voxels; ends at the sub-voxel edge of a stopping map; and further defects of other trackers,
named by the tests, that must not appear here."""
import json
import unittest

import nibabel as nib
import numpy as np

from tracking import (Folder, lengths, peak_field, read_lines, read_trx, run, tensors_of, track, track_json, write_image,
                      write_rows)


def rotation(angles_deg):
    a, b, c = np.radians(angles_deg)
    x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return z @ y @ x


def affine_of(axes, edges, shape, middle=(0, 0, 0)):
    """An affine whose grid has its middle at a place of the world."""
    affine = np.eye(4)
    affine[:3, :3] = axes * np.asarray(edges)
    affine[:3, 3] = np.asarray(middle) - affine[:3, :3] @ ((np.asarray(shape) - 1) / 2)
    return affine


def circles(world):
    """Unit tangents of circles about the world's z axis."""
    direction = np.stack([-world[..., 1], world[..., 0], np.zeros(world.shape[:-1])], axis=-1)
    norm = np.linalg.norm(direction, axis=-1, keepdims=True)
    return direction / np.maximum(norm, 1e-9)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def field(self, name, kind, affine, shape, direction_of_world, ones=None):
        directions = peak_field(shape, affine, direction_of_world)
        stop = write_image(self.folder / f"{name}-stop.nii.gz", np.ones(shape) if ones is None else ones, affine)
        if kind == "sh":  # a lobe (v . d)^8 as a series, in axes of the world
            from dipy.data import get_sphere
            from dipy.reconst.shm import sf_to_sh

            fine = get_sphere(name="repulsion724")
            grid = np.stack(np.meshgrid(*[np.arange(n) for n in shape], indexing="ij"), axis=-1)
            world = direction_of_world(grid @ affine[:3, :3].T + affine[:3, 3])
            series = sf_to_sh((world @ fine.vertices.T) ** 8, fine, sh_order_max=8, basis_type="tournier07",
                              legacy=False, smooth=0)
            path = write_image(self.folder / f"{name}.nii.gz", series, affine)
            return ["--sh", path, "--sh-basis", "tournier07", "--frame", "world", "--stop-map", stop,
                    "--stop-threshold", "0.5", "--dg", "det"]
        values = tensors_of(directions) if kind == "tensor" else directions
        path = write_image(self.folder / f"{name}.nii.gz", values, affine)
        return [f"--{kind}", path, "--frame", "image", "--stop-map", stop, "--stop-threshold", "0.5", "--dg",
                "tensor" if kind == "tensor" else "closest"]


class Affines(Case):
    def test_changing_the_affine_alone_changes_the_world_result_exactly_so(self):
        # Edges of 2 mm and no rotation: voxel coordinates come back from the file exactly.
        shape = (24, 20, 16)
        plain = np.diag([2.0, 2.0, 2.0, 1.0])
        turned = affine_of(rotation([20, -35, 50]), (2, 2, 2), shape, (13, -7, 101))
        mirrored = affine_of(rotation([5, 10, 15]) @ np.diag([-1.0, 1, 1]), (2, 2, 2), shape)
        permuted = affine_of(np.array([[0.0, -1, 0], [0, 0, 1], [-1, 0, 0]]), (2, 2, 2), shape, (-3, 5, 11))
        seeds = write_rows(self.folder / "seeds.txt", np.random.default_rng(1).uniform((4, 4, 4), (19, 15, 11), (60, 3)))
        middle = np.array([23.0, 19.0, 15.0])
        directions = peak_field(shape, plain, lambda world: circles(world - middle))
        voxels, exact = None, 0
        for name, affine in (("plain", plain), ("permuted", permuted), ("turned", turned), ("mirrored", mirrored)):
            values = write_image(self.folder / f"{name}.nii.gz", directions, affine)
            stop = write_image(self.folder / f"{name}-stop.nii.gz", np.ones(shape), affine)
            out = self.folder / f"{name}.trx"
            # The step is a length: half of the smallest edge, which rounding of the affine must not move.
            track("--peaks", values, "--frame", "image", "--stop-map", stop, "--stop-threshold", "0.5", "--dg",
                  "closest", "--step-size", "1mm", "--max-length", "40", "--one-sided", "--seed-file", seeds, "--seed-space", "voxel",
                  "--out", out)
            lines = read_lines(out)
            self.assertGreater(len(lines), 50)
            if voxels is None:
                voxels = [line.astype(np.float64) / 2 for line in lines]
                continue
            stored = nib.load(values).affine.astype(np.float64)
            edges = np.linalg.norm(stored[:3, :3], axis=0)
            self.assertEqual([len(line) for line in lines], [len(voxel) for voxel in voxels], name)
            exact += name == "permuted"
            for line, voxel in zip(lines, voxels):
                x, y, z = voxel.T
                world = np.stack([((m[0] * x + m[1] * y) + m[2] * z) + m[3] for m in stored[:3]], axis=-1)
                if name == "permuted" or np.array_equal(np.float32(1.0 / edges), np.float32([0.5, 0.5, 0.5])):
                    np.testing.assert_array_equal(line, world.astype(np.float32))
                else:  # edges that are 2 only up to rounding
                    self.assertLess(np.abs(line - world).max(), 1e-3)
        self.assertEqual(exact, 1)

    def test_flipped_turned_oblique_and_anisotropic_images_give_the_same_world_result(self):
        base = (40, 40, 12)
        cases = {
            "plain": (np.eye(3), (2, 2, 2), base),
            "flipped": (np.diag([-1.0, 1, -1]), (2, 2, 2), base),
            "permuted": (np.eye(3)[:, [2, 0, 1]], (2, 2, 2), (12, 40, 40)),
            "anisotropic": (np.eye(3), (1.5, 2, 3), (54, 40, 8)),
            "oblique": (rotation([12, 25, 40]), (2, 2, 2), (46, 46, 34)),
            "resampled": (np.eye(3), (1.6, 1.6, 1.6), (50, 50, 15)),
        }
        # mm after 20 mm of a circle of 18 mm radius: storage alone, and where interpolation has other neighbours. A
        # given peak is that of the nearest voxel, so that closest jumps between directions up to 3 degrees apart.
        tolerance = {"tensor": (1e-3, 0.02), "sh": (1e-3, 0.02), "peaks": (1e-3, 0.3)}
        angles = np.linspace(0, 2 * np.pi, 40, endpoint=False) + 0.0123  # no seed on a face of a voxel
        radius = 18.0
        seeds = write_rows(self.folder / "ring.txt",
                           np.stack([radius * np.cos(angles), radius * np.sin(angles), 0 * angles + 0.37], axis=-1))
        directions = write_rows(self.folder / "tangents.txt",
                                np.stack([-np.sin(angles), np.cos(angles), 0 * angles], axis=-1))
        for kind in ("peaks", "tensor", "sh"):
            reference = None
            for name, (axes, edges, shape) in cases.items():
                words = self.field(f"{kind}-{name}", kind, affine_of(axes, edges, shape), shape, circles)
                out = self.folder / f"{kind}-{name}.trx"
                track(*words, "--seed-file", seeds, "--directions", directions, "--step-size", "0.5mm", "--max-length",
                      "20", "--one-sided", "--out", out)
                lines = read_lines(out)
                self.assertEqual(len(lines), 40, f"{kind} {name}")
                self.assertEqual({len(line) for line in lines}, {41}, f"{kind} {name}")
                lines = np.array(lines)
                # Every step has its length in the world, whatever the voxels.
                steps = np.linalg.norm(np.diff(lines.astype(float), axis=1), axis=-1)
                self.assertLess(np.abs(steps - 0.5).max(), 2e-5, f"{kind} {name}")
                # Euler steps of a circle of radius 18 leave it by s h / 2 r = 0.28 mm after 20 mm; interpolation of a
                # nearest peak or a tensor adds its own.
                self.assertLess(np.abs(np.linalg.norm(lines[:, -1, :2], axis=-1) - radius).max(), 1.0)
                if reference is None:
                    reference = lines
                allowed = tolerance[kind][0 if name in ("flipped", "permuted") else 1]
                difference = np.linalg.norm(lines.astype(float) - reference, axis=-1).max()
                print(f"{kind} {name}: {difference:.5f} mm", flush=True)
                self.assertLess(difference, allowed, f"{kind} {name}")

    def test_euler_and_runge_kutta_drift_off_a_circle_as_their_orders_say(self):
        shape = (50, 50, 8)
        words = self.field("drift", "tensor", affine_of(np.eye(3), (1, 1, 1), shape), shape, circles)
        seeds = write_rows(self.folder / "seed.txt", [[15, 0, 0]])
        directions = write_rows(self.folder / "north.txt", [[0, 1, 0]])
        drift = {}
        for name, more in (("euler", []), ("rk4", ["--rk4"])):
            for step in (1.0, 0.5):
                out = self.folder / f"{name}-{step}.trx"
                track(*words, *more, "--seed-file", seeds, "--directions", directions, "--one-sided", "--max-length",
                      "30", "--step-size", f"{step}mm", "--out", out)
                drift[name, step] = np.linalg.norm(read_lines(out)[0][-1, :2]) - 15.0
        # Euler: each step along the tangent leaves the circle by h^2 / 2r: s h / 2r in all.
        for step in (1.0, 0.5):
            self.assertAlmostEqual(drift["euler", step], 30 * step / 30, delta=0.2 * step)
            self.assertLess(abs(drift["rk4", step]), 0.05)


class Edges(Case):
    def test_ends_lie_at_the_sub_voxel_edge_of_the_stopping_map(self):
        shape = (30, 9, 9)
        affine = affine_of(np.eye(3), (2, 2, 2), shape)
        i = np.arange(30, dtype=float)
        for edge in (20.0, 20.3, 20.75):  # where the interpolated map is 0.5, in voxels
            ramp = np.clip(0.5 + 0.2 * (edge - i), 0, 1)[:, None, None] * np.ones(shape)
            words = self.field(f"edge-{edge}", "peaks", affine, shape,
                               lambda world: np.broadcast_to([1.0, 0, 0], world.shape), ramp)
            seeds = write_rows(self.folder / f"seeds-{edge}.txt",
                               [[5 + 0.013 * n, 4.0, 4.0 + 0.1 * (n % 3)] for n in range(30)])
            step = 0.25
            out = self.folder / f"edge-{edge}.trx"
            track(*words, "--seed-file", seeds, "--seed-space", "voxel", "--step-size", f"{step}vox", "--save-seeds",
                  "--out", out)
            lines, data = read_trx(out)
            self.assertEqual(len(lines), 30)
            for line, reasons in zip(lines, data["end_reason"]):
                x = (line[:, 0] - affine[0, 3]) / 2
                # The last point is in, one step further is out: it lies within a step of the edge, to 0.001 voxel.
                last = x.max()
                self.assertLess(last, edge + 1e-3)
                self.assertGreater(last + step, edge - 1e-3)
                # The other end leaves the image at its face.
                self.assertLess(x.min(), -0.5 + step + 1e-3)
                self.assertGreaterEqual(x.min(), -0.5 - 1e-4)
                self.assertEqual(sorted(reasons), [1, 2])

    def test_seeds_outside_the_map_are_not_tracked_and_single_points_are_left_out(self):
        shape = (20, 9, 9)
        affine = affine_of(np.eye(3), (2, 2, 2), shape)
        ones = np.ones(shape)
        ones[10:] = 0
        words = self.field("half", "peaks", affine, shape, lambda world: np.broadcast_to([1.0, 0, 0], world.shape), ones)
        seeds = write_rows(self.folder / "both.txt", [[3, 4, 4], [15, 4, 4], [40, 4, 4], [6, 4, 4]])
        result = track_json(*words, "--seed-file", seeds, "--seed-space", "voxel", "--save-seeds", "--out",
                            self.folder / "both.trx")["result"]
        self.assertEqual(result["seeds_outside"], 2)
        self.assertEqual(list(read_trx(self.folder / "both.trx")[1]["seed_index"].ravel()), [0, 3])
        self.assertTrue(all(len(line) > 1 for line in read_lines(self.folder / "both.trx")))

    def test_a_streamline_of_more_than_500_steps_is_whole_and_its_limit_is_named(self):
        shape = (400, 5, 5)
        affine = affine_of(np.eye(3), (1, 1, 1), shape)
        words = self.field("long", "peaks", affine, shape, lambda world: np.broadcast_to([1.0, 0, 0], world.shape))
        seeds = write_rows(self.folder / "long.txt", [[200, 2, 2]])
        track(*words, "--seed-file", seeds, "--seed-space", "voxel", "--step-size", "0.25mm", "--out",
              self.folder / "long.trx", "--save-seeds")
        line = read_lines(self.folder / "long.trx")[0]
        self.assertGreater(len(line), 1590)
        self.assertAlmostEqual(lengths([line])[0], 400, delta=0.6)
        track(*words, "--seed-file", seeds, "--seed-space", "voxel", "--step-size", "0.25mm", "--max-length", "100",
              "--one-sided", "--out", self.folder / "limited.trx", "--save-seeds")
        lines, data = read_trx(self.folder / "limited.trx")
        self.assertAlmostEqual(lengths(lines)[0], 100, delta=0.01)
        self.assertEqual(list(data["end_reason"][0]), [0, 4])


class Rules(Case):
    """What --max-angle and a mask say, held by the streamlines of whole runs."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.phantom = cls.folder.phantom("phantom", "--preset", "crossing60", "--voxel-size", 3, "--snr", 15)

    def track(self, name, *words):
        out = self.folder / f"{name}.trx"
        said = run("track", self.phantom / "dwi.nii.gz", "--mask", self.phantom / "mask.nii.gz", "--nseeds", 400, "--force",
                   "--save-seeds", "--out", out, "--progress", "none", *words).stderr
        return (*read_trx(out), said)

    def test_no_streamline_turns_by_more_than_max_angle_at_its_seed(self):
        turns = {}
        for getter, angle in (("prob", 20), ("boot", 25)):
            for rule in ("first-step", "initial-direction"):
                lines, data, _ = self.track("turns", "--dg", getter, "--max-angle", angle, "--second-half", rule)
                found = []
                for line, seed in zip(lines, data["seed_point"]):
                    line = line.astype(float)
                    at = np.argmin(np.linalg.norm(line - seed, axis=1))
                    if 0 < at < len(line) - 1:
                        a, b = line[at] - line[at - 1], line[at + 1] - line[at]
                        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
                        found.append(np.degrees(np.arccos(min(1, cosine))))
                turns[getter, rule] = np.array(found)
                self.assertGreater(len(found), 100)
            self.assertLess(turns[getter, "first-step"].max(), angle + 0.1)
            self.assertGreater(turns[getter, "initial-direction"].max(), angle + 1)

    def test_ends_stay_in_the_voxels_of_a_mask_whatever_its_type_and_numbers(self):
        image = nib.load(self.phantom / "tissue.nii.gz")
        inside = np.asarray(image.dataobj)[..., 0] > 0.5 if image.ndim == 4 else np.asarray(image.dataobj) > 0
        to_voxel = np.linalg.inv(image.affine)

        def outside(lines):
            ends = np.array([line[i] for line in lines for i in (0, -1)], dtype=float)
            voxels = np.floor(ends @ to_voxel[:3, :3].T + to_voxel[:3, 3] + 0.5 + 1e-4).astype(int)
            return 1 - inside[tuple(np.clip(voxels, 0, np.array(inside.shape) - 1).T)].mean()

        # Interpolated, the first passes up to 0.9 voxel beyond its border, the second up to 0.6.
        for values, threshold, leak in ((np.where(inside, 1.0, 0.0), 0.1, 0.5), (np.where(inside, 7.0, -3.0), 1, 0.1)):
            mask = write_image(self.folder / "binary.nii.gz", values, image.affine)
            words = ["--dg", "det", "--stop-map", mask, "--stop-threshold", threshold]
            lines, data, said = self.track("mask", *words)
            self.assertIn("taken voxel by voxel", said)
            self.assertLess(outside(lines), 0.01)  # a point on a voxel's face may lie on either side in float32
            self.assertEqual(set(np.unique(data["end_reason"])) - {2, 3}, {6})
            leaking, data, _ = self.track("leaks", *words, "--stop-rule", "trilinear")
            self.assertNotIn(6, data["end_reason"])
            self.assertGreater(outside(leaking), leak)

    def test_a_map_of_more_than_two_values_is_interpolated_unless_asked(self):
        image = nib.load(self.phantom / "mask.nii.gz")
        inside = np.asarray(image.dataobj) > 0
        labels = write_image(self.folder / "labels.nii.gz", inside * (1 + np.indices(inside.shape)[0] % 3), image.affine)
        words = ["--dg", "tensor", "--stop-map", labels, "--stop-threshold", 0.5]
        _, data, _ = self.track("labels", *words)
        self.assertNotIn(6, data["end_reason"])
        _, data, _ = self.track("labels", *words, "--stop-rule", "nearest")
        self.assertNotIn(1, data["end_reason"])
        self.assertIn(6, data["end_reason"])


class Defects(Case):
    def sphere_and_lobes(self, directions, sharpness=60.0):
        """Amplitudes on repulsion724 (362 directions, as DIPY has them) with a lobe at each direction."""
        from dipy.data import default_sphere

        vertices = default_sphere.vertices
        write_rows(self.folder / "sphere.txt", vertices)
        value = sum(np.exp(sharpness * ((vertices @ np.asarray(d) / np.linalg.norm(d)) ** 2 - 1)) for d in directions)
        return vertices, value

    def sf_words(self, values, sphere="sphere.txt"):
        shape = (9, 9, 9)
        affine = affine_of(np.eye(3), (2, 2, 2), shape)
        sf = write_image(self.folder / "sf.nii.gz", np.broadcast_to(values, (*shape, len(values))), affine)
        stop = write_image(self.folder / "sf-stop.nii.gz", np.ones(shape), affine)
        return ["--sf", sf, "--sphere", self.folder / sphere, "--stop-map", stop, "--stop-threshold", "0.5"]

    def test_many_peaks_at_a_seed_give_the_strongest_in_order_and_no_more_than_asked(self):
        golden = np.pi * (3 - np.sqrt(5))
        z = (np.arange(14) + 0.5) / 14
        ring = np.sqrt(1 - z * z)
        lobes = np.stack([ring * np.cos(golden * np.arange(14)), ring * np.sin(golden * np.arange(14)), z], axis=-1)
        from dipy.data import default_sphere

        vertices = default_sphere.vertices
        weights = 1 - 0.02 * np.arange(14)
        value = np.max([w * np.exp(80 * ((vertices @ d) ** 2 - 1)) for w, d in zip(weights, lobes)], axis=0)
        write_rows(self.folder / "sphere.txt", vertices)
        words = self.sf_words(value)
        seeds = write_rows(self.folder / "middle.txt", [[4, 4, 4]])
        counts = {}
        for limit in (3, 12, 32):
            out = self.folder / f"lobes-{limit}.trx"
            track(*words, "--dg", "det", "--no-refine", "--max-angle", 20, "--min-separation-angle", 15, "--seed-file",
                  seeds, "--seed-space", "voxel", "--max-directions", limit, "--out", out)
            counts[limit] = read_lines(out)
        self.assertEqual(len(counts[3]), 3)
        self.assertEqual(len(counts[12]), 12)
        self.assertGreaterEqual(len(counts[32]), 13)
        for a, b in zip(counts[3], counts[32]):  # the strongest come first
            np.testing.assert_array_equal(a, b)

    def test_a_sphere_with_antipodal_pairs_does_not_double_streamlines(self):
        vertices, value = self.sphere_and_lobes([[1, 0, 0], [0, 1, 0.2]])
        write_rows(self.folder / "pairs.txt", np.concatenate([vertices, -vertices]))
        seeds = write_rows(self.folder / "middle.txt", [[4, 4, 4]])
        words = ["--dg", "det", "--no-refine", "--seed-file", seeds, "--seed-space", "voxel", "--max-directions", 32]
        track(*self.sf_words(value), *words, "--out", self.folder / "half.trx")
        self.assertEqual(len(read_lines(self.folder / "half.trx")), 2)
        # Harmonics on the full sphere named for comparison with cuslines: again two.
        truth = self.folder.phantom("straight", "--preset", "straight", "--voxel-size", "2.5", "--snr", "inf")
        for name in ("repulsion724", "default", "small"):
            out = self.folder / f"{name}.trx"
            track("--sh", truth / "fod.nii.gz", "--dg", "det", "--sphere", name, "--nseeds", 40, "--out", out,
                  "--save-seeds")
            index = read_trx(out)[1]["seed_index"].ravel()
            self.assertEqual(len(index), len(set(index)), name)

    def test_an_asymmetric_function_is_followed_one_way(self):
        from dipy.data import default_sphere

        full = np.concatenate([default_sphere.vertices, -default_sphere.vertices])
        write_rows(self.folder / "full.txt", full)
        value = np.exp(30 * (full[:, 0] - 1))  # one lobe, towards +x
        seeds = write_rows(self.folder / "middle.txt", [[4, 4, 4]])
        track(*self.sf_words(value, "full.txt"), "--full-sphere", "--dg", "det", "--no-refine", "--seed-file", seeds,
              "--seed-space", "voxel", "--save-seeds", "--out", self.folder / "asymmetric.trx")
        lines, data = read_trx(self.folder / "asymmetric.trx")
        self.assertEqual(len(lines), 1)
        x = lines[0][:, 0]
        self.assertAlmostEqual(x.min(), 0, delta=1e-4)  # against the lobe there is no direction
        self.assertGreater(x.max(), 7)
        self.assertIn(3, data["end_reason"])

    def test_the_pmf_threshold_is_a_parameter(self):
        vertices, _ = self.sphere_and_lobes([[1, 0, 0]])
        value = np.where(np.abs(vertices[:, 0]) > 0.98, 1.0, 0.07)
        words = self.sf_words(value)
        seeds = write_rows(self.folder / "middle.txt", [[4, 4, 4]] * 40)
        spread = {}
        for threshold in ("0.05", "0.1"):
            out = self.folder / f"pmf-{threshold}.trx"
            track(*words, "--dg", "prob", "--pmf-threshold", threshold, "--seed-file", seeds, "--seed-space", "voxel",
                  "--out", out)
            steps = np.concatenate([np.diff(line, axis=0) for line in read_lines(out)])
            spread[threshold] = (np.abs(steps[:, 0]) / np.linalg.norm(steps, axis=1)).min()
        self.assertLess(spread["0.05"], 0.9)
        self.assertGreater(spread["0.1"], 0.979)

    def test_all_volumes_of_a_shell_count_though_b_values_scatter(self):
        phantom = self.folder.phantom("shells", "--preset", "straight", "--voxel-size", "2.5", "--snr", "30")
        bvals = np.loadtxt(phantom / "dwi.bval")
        scattered = np.where(bvals > 50, bvals + np.resize([-5, 0, 5, 10], bvals.shape), bvals)
        np.savetxt(self.folder / "scattered.bval", scattered[None], fmt="%g")
        result = track_json(phantom / "dwi.nii.gz", "--bvals", self.folder / "scattered.bval", "--bvecs",
                            phantom / "dwi.bvec", "--mask", phantom / "mask.nii.gz", "--bvec-frame", "fsl", "--dg",
                            "prob", "--nseeds", 20, "--out", self.folder / "scattered.trx")
        self.assertEqual(result["model"]["weighted_volumes"], int((bvals > 50).sum()))

    def test_a_seed_has_the_same_streamlines_wherever_it_stands_in_the_list(self):
        from dipy.data import default_sphere

        # 724 directions that are all different, and some peaks at every point.
        full = np.concatenate([default_sphere.vertices, -default_sphere.vertices])
        write_rows(self.folder / "full.txt", full)
        lobes = np.array([[1, 0, 0], [-0.7, 0.7, 0.1], [0, -0.2, 1], [0.1, -1, -0.3]])
        lobes = lobes / np.linalg.norm(lobes, axis=1)[:, None]
        value = np.exp(25 * (full @ lobes.T - 1)) @ [1, 0.9, 0.8, 0.7]
        words = self.sf_words(value, "full.txt")
        seeds = write_rows(self.folder / "repeated.txt", [[4.2, 3.9, 4.4]] * 9)
        for getter in ("det", "closest"):
            out = self.folder / f"repeated-{getter}.trx"
            track(*words, "--full-sphere", "--dg", getter, "--seed-file", seeds, "--seed-space", "voxel", "--save-seeds",
                  "--max-directions", 32, "--min-length", 0, "--out", out)
            lines, data = read_trx(out)
            index = data["seed_index"].ravel()
            first = [line for line, i in zip(lines, index) if i == 0]
            self.assertEqual(len(first), 4, getter)
            for n in range(1, 9):
                again = [line for line, i in zip(lines, index) if i == n]
                self.assertEqual(len(again), 4, getter)
                for a, b in zip(first, again):
                    np.testing.assert_array_equal(a, b)

    def test_ptt_starts_along_the_peak_both_ways_whatever_the_first_voxel_holds(self):
        vertices, value = self.sphere_and_lobes([[1, 0, 0]], sharpness=12.0)
        shape = (9, 9, 9)
        affine = affine_of(np.eye(3), (2, 2, 2), shape)
        stop = write_image(self.folder / "ptt-stop.nii.gz", np.ones(shape), affine)
        write_rows(self.folder / "many.txt", [[4, 4, 4]] * 60)
        write_rows(self.folder / "east.txt", [[1, 0, 0]] * 60)
        bytes_of = {}
        for corner in (0.0, 1.0, 1000.0):
            sf = np.broadcast_to(value, (*shape, len(value))).copy()
            sf[0, 0, 0] *= corner
            path = write_image(self.folder / "ptt.nii.gz", sf, affine)
            out = self.folder / f"ptt-{corner}.trx"
            track("--sf", path, "--sphere", self.folder / "sphere.txt", "--stop-map", stop, "--stop-threshold", "0.5",
                  "--dg", "ptt", "--max-angle", 20, "--ptt-probe-length", "2mm", "--seed-file",
                  self.folder / "many.txt", "--seed-space", "voxel", "--directions", self.folder / "east.txt",
                  "--save-seeds", "--out", out)
            bytes_of[corner] = out.read_bytes()
            lines, data = read_trx(out)
            self.assertEqual(len(lines), 60)
            for line, seed in zip(lines, data["seed_point"]):
                at = int(np.flatnonzero((line == seed).all(axis=1))[0])
                # The tangent at the seed is the peak: the first chord of an arc deviates by half of what it turns.
                for step in (line[at + 1] - line[at], line[at] - line[at - 1]):
                    self.assertGreater(step[0] / np.linalg.norm(step), np.cos(np.radians(10.01)))
        self.assertEqual(bytes_of[0.0], bytes_of[1.0])
        self.assertEqual(bytes_of[1000.0], bytes_of[1.0])

    def test_random_numbers_of_chunks_seeds_and_purposes_are_not_shared(self):
        vertices, _ = self.sphere_and_lobes([[1, 0, 0]])
        words = self.sf_words(np.ones(len(vertices)))  # any direction of the cone is as good
        count = 300
        seeds = write_rows(self.folder / "same.txt", [[4, 4, 4]] * count)
        direction = write_rows(self.folder / "same-direction.txt", [[1, 0, 0]] * count)
        out = self.folder / "streams.trx"
        track(*words, "--dg", "prob", "--seed-file", seeds, "--seed-space", "voxel", "--directions", direction,
              "--chunk-size", 50, "--min-length", 0, "--save-seeds", "--out", out)
        lines, data = read_trx(out)
        self.assertEqual(len(lines), count)
        walks, halves = set(), 0
        for line, seed in zip(lines, data["seed_point"]):
            at = int(np.flatnonzero((line == seed).all(axis=1))[0])
            ahead = np.round(np.diff(line[at:], axis=0)[:4], 4)
            behind = np.round(-np.diff(line[:at + 1], axis=0)[::-1][:4], 4)
            for half in (ahead, behind):
                if len(half) == 4:
                    walks.add(half.tobytes())
                    halves += 1
        # Four steps of some 180 choices each: of 10^5 pairs of halves two would be the same once in 10^4 runs.
        self.assertGreater(halves, 1.2 * count)
        self.assertEqual(len(walks), halves)


if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
