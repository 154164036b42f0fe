"""`cingulum oct` as whole commands: what is written is what NumPy, zarr-python and SciPy read and compute, places and
transforms are those of the simulated truth, and bad input is refused by name.

CINGULUM names the program.
"""

import csv
import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import scipy.fft
import scipy.ndimage
import zarr

import oct_measures

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import file_calls  # noqa: E402  (beside the folder of the script)
import suite  # noqa: E402
from suite import PROGRAM  # noqa: E402

LONG = os.environ.get("CINGULUM_TEST_LONG") is not None


def run(*words):
    return suite.run_program("oct", *words)


def tree(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def voxels(path):
    return np.asarray(zarr.open_group(str(path), mode="r")["0"][:], dtype=np.float64)


def peak(*command):
    """The most memory that a command held, in bytes."""
    child = subprocess.run([sys.executable, "-c", "import resource, subprocess, sys\n"
                            "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
                            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
                            "sys.exit(code)", *map(str, command)], capture_output=True, text=True, check=True)
    return 1024 * int(child.stdout)


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def raw_tile(folder, nz, lines):
    """A raw tile as (z, y, x), read by NumPy alone."""
    values = np.concatenate([np.fromfile(file, "<f4") for file in sorted(folder.glob("image_*.bin"))])
    return values.reshape((nz, lines, -1), order="F").transpose(0, 2, 1)


class WithFolder(suite.WithFolder):
    verb = ("oct",)

    def refused(self, text, *words, code=1):
        result = run(*words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(text, result.stderr)

    def simulate(self, name="tiles", **options):
        words = ["simulate", "--out", self.folder / name]
        for key, value in options.items():
            words.append(f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}"))
        self.done(*words)
        return self.folder / name


class Tiles(WithFolder):
    def test_raw_tiles_reach_the_mosaic_as_numpy_reads_them(self):
        tiles = self.simulate(grid="2,2", tile="12,24,48", surface=4, galvo_lines=10, files_per_tile=2, slices=2,
                              interval=4)
        truth = json.loads((tiles / "truth.json").read_text())
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "mosaics")
        mosaic = voxels(self.folder / "mosaics/mosaic_grid_3d_z01.ome.zarr")
        self.assertEqual(mosaic.shape, (12, 48, 96))
        last = truth["parameters"]["galvo_last_line"]
        for row in range(2):
            for column in range(2):
                raw = raw_tile(tiles / f"tile_x{column:02}_y{row:02}_z01", 12, 58)
                cut = np.roll(raw, 48 - last - 1, axis=2)[:, :, :48]
                found = mosaic[:, row * 24:(row + 1) * 24, column * 48:(column + 1) * 48]
                np.testing.assert_array_equal(found, cut)
        group = zarr.open_group(str(self.folder / "mosaics/mosaic_grid_3d_z01.ome.zarr"), mode="r")
        scale = group.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
        np.testing.assert_allclose(scale, [3.5, 10, 10])
        rows = table(self.folder / "mosaics/shifts_xy.csv")
        self.assertEqual([row["fixed_id"] for row in rows], ["0"])

    def test_simulated_bytes_do_not_depend_on_devices(self):
        found = json.loads(subprocess.run([PROGRAM, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
        gpu = [name for name in ("webgpu", "cuda") if any(d["id"].startswith(name) for d in found["devices"])]
        if not gpu:
            assert not suite.device_is_required("webgpu"), "CINGULUM_TEST_DEVICES names webgpu, and there is none"
            self.skipTest("there is no GPU; `cingulum devices` says why")
        options = {"grid": "1,3", "tile": "20,24,30", "surface": 5, "slices": 2, "interval": 6, "slice_rotation": 2,
                   "galvo_lines": 6, "tissue_radius": 0.8, "missing": "1,0,1"}
        for layout in ("raw", "table"):
            cpu = tree(self.simulate(f"{layout}-cpu", layout=layout, sample=True, device="cpu", **options))
            for device in (*gpu, f"cpu,{gpu[0]}"):
                other = self.simulate(f"{layout}-{device}", layout=layout, sample=True, device=device, **options)
                self.assertTrue(tree(other) == cpu, f"{layout}, {device}")
        said = json.loads(self.done("simulate", "--out", self.folder / "named", "--grid", "1,1", "--tile", "4,4,4",
                                    "--device", gpu[0], "--json").stdout)
        self.assertEqual(len(said["devices"]), 1)
        self.assertTrue(said["devices"][0].startswith(gpu[0]), said)
        self.refused("nowhere", "simulate", "--out", self.folder / "no", "--device", "nowhere", code=2)

    def test_the_bytes_do_not_depend_on_threads(self):
        one = self.simulate("one", grid="1,2", tile="8,16,16", surface=3, threads=1)
        two = self.simulate("two", grid="1,2", tile="8,16,16", surface=3, threads=3)
        self.assertEqual(tree(one), tree(two))
        other = self.simulate("other", grid="1,2", tile="8,16,16", surface=3, seed=1)
        self.assertNotEqual(tree(one), tree(other))

    def test_a_table_of_tiles_gives_the_mosaic_of_the_raw_ones(self):
        options = {"grid": "2,2", "tile": "8,16,20", "surface": 3}
        raw = self.simulate("raw", **options)
        table = self.simulate("table", layout="table", **options)
        self.done("grid", raw, "--axial-step", 3.5, "--out", self.folder / "a")
        self.done("grid", table / "tiles.csv", "--out", self.folder / "b")
        name = "mosaic_grid_3d_z00.ome.zarr"
        np.testing.assert_array_equal(voxels(self.folder / "a" / name), voxels(self.folder / "b" / name))

    def test_bad_input_is_refused_by_name(self):
        tiles = self.simulate(grid="2,2", tile="8,12,16", surface=3, slices=2, interval=3)
        out = self.folder / "out"
        self.refused("--axial-step", "grid", tiles, "--out", out)
        self.refused("no such file", "grid", self.folder / "absent", "--out", out, code=2)
        shutil.copytree(tiles / "tile_x00_y00_z00", tiles / "tile_x0_y00_z00")
        self.refused("there twice", "grid", tiles, "--axial-step", 3.5, "--out", out)
        shutil.rmtree(tiles / "tile_x0_y00_z00")
        shutil.rmtree(tiles / "tile_x01_y01_z01")
        self.refused("tile x01 y01 z01 is missing", "grid", tiles, "--axial-step", 3.5, "--out", out)
        self.assertFalse(out.exists())
        self.done("grid", tiles, "--axial-step", 3.5, "--out", out, "--allow-missing")
        mosaic = voxels(out / "mosaic_grid_3d_z01.ome.zarr")
        self.assertEqual(np.abs(mosaic[:, 12:, 16:]).max(), 0)
        self.assertGreater(np.abs(mosaic[:, :12, 16:]).min(), 0)
        self.refused("slice 1 is missing", "register", *self.slices_without_middle(), "--out", self.folder / "r")

    def slices_without_middle(self):
        """Slices 0 and 2 of a series."""
        tiles = self.simulate("series", grid="1,1", tile="30,32,32", surface=3, slices=3, interval=4)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "series-mosaics")
        paths = []
        for number in (0, 2):
            paths.append(self.folder / f"slice{number}.ome.zarr")
            self.done("stitch", self.folder / f"series-mosaics/mosaic_grid_3d_z0{number}.ome.zarr", "--out", paths[-1])
        return paths

    def test_an_image_without_units_is_refused_or_told(self):
        table = self.simulate("table", layout="table", grid="1,1", tile="8,16,16", surface=3)
        zarr_json = next((table / "tiles").glob("*.ome.zarr")) / "zarr.json"
        text = zarr_json.read_text()
        zarr_json.write_text(text.replace('"unit"', '"unused"'))
        self.refused("--unit", "grid", table / "tiles.csv", "--out", self.folder / "a")
        self.done("grid", table / "tiles.csv", "--unit", "micrometer", "--out", self.folder / "b")


class Placement(WithFolder):
    def test_tiles_of_a_command_line_lie_where_they_truly_are(self):
        tiles = self.simulate(grid="3,3", tile="20,80,80", surface=4, curvature=2, depth_jitter=0.5, flat_field=0.3,
                              motor_jitter=1.5, motor_angle=0.3, seed=2)
        truth = json.loads((tiles / "truth.json").read_text())
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        slice_path = self.folder / "s.ome.zarr"
        report = json.loads(self.done("stitch", self.folder / "m/mosaic_grid_3d_z00.ome.zarr", "--out", slice_path,
                                      "--json").stdout)
        found = np.array(report["places_px"])
        places = np.array([tile["place_px"] for tile in truth["tiles"]])
        error = (found - found.mean(0)) - (places - places.mean(0))
        self.assertLess(np.sqrt((error**2).sum(1).mean()), 0.5)
        motors = np.array([tile["stage_px"] for tile in truth["tiles"]])
        self.assertGreater(np.sqrt((((motors - motors.mean(0)) - (places - places.mean(0)))**2).sum(1).mean()), 1.0)
        self.assertEqual(list(voxels(slice_path).shape), report["shape"])
        sidecar = json.loads((self.folder / "s.ome.zarr.json").read_text())
        self.assertEqual(sidecar["result"]["places_px"], report["places_px"])

    def test_a_constant_sample_stays_constant_through_grid_and_stitch(self):
        tiles = self.simulate(grid="2,2", tile="6,32,32", surface=-60, curvature=0, tilt="0,0", depth_jitter=0,
                              attenuation=0, speckle=0, texture=0, motor_jitter=1)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        self.done("stitch", self.folder / "m/mosaic_grid_3d_z00.ome.zarr", "--out", self.folder / "s.ome.zarr",
                  "--max-rejected", 1)
        values = voxels(self.folder / "s.ome.zarr")
        self.assertEqual(len(np.unique(values[values != 0])), 1)

    def test_links_beyond_max_rejected_end_with_one(self):
        tiles = self.simulate(grid="2,3", tile="6,32,32", surface=2, texture=0, speckle=1)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        self.refused("--max-rejected", "stitch", self.folder / "m/mosaic_grid_3d_z00.ome.zarr", "--out",
                     self.folder / "s.ome.zarr", "--max-rejected", 0)
        self.assertFalse((self.folder / "s.ome.zarr").exists())


def resize(image, shape):
    """Bilinear with aligned corners, and a Gaussian window before it where the image shrinks."""
    factors = np.array(image.shape) / shape
    blurred = scipy.ndimage.gaussian_filter(image, np.maximum(0, (factors - 1) / 2), mode="mirror")
    places = np.meshgrid(*[np.linspace(0, n - 1, m) for n, m in zip(image.shape, shape)], indexing="ij")
    return scipy.ndimage.map_coordinates(blurred, places, order=1, mode="nearest")


def basic_by_numpy(tiles, size=128):
    """BaSiC's approximate fit as BaSiCPy 2 makes it, written from the description of its steps."""
    data = np.array([resize(tile, (size, size)) for tile in tiles])
    norm = np.linalg.norm(data)
    start = 12.5 / np.linalg.norm(data.reshape(len(data), -1), 2)
    weight = np.ones_like(data)
    last = np.ones((size, size))

    def soft(values, limit):
        return np.sign(values) * np.maximum(np.abs(values) - limit, 0)

    for reweighting in range(10):
        flat, sparse, dual = np.ones((size, size)), np.zeros_like(data), np.zeros_like(data)
        base = data.mean((1, 2)) / data.mean()
        mu = start
        for _ in range(500):
            step = flat + (data - sparse - base[:, None, None] * flat + dual / mu).mean(0)
            flat = scipy.fft.idctn(soft(scipy.fft.dctn(step, norm="ortho"), 1 / mu), norm="ortho")
            sparse = soft(data - base[:, None, None] * flat + dual / mu, weight / mu)
            base = np.maximum((data - sparse).mean((1, 2)) / (data - sparse).mean(), 0)
            residual = data - base[:, None, None] * flat - sparse
            dual += mu * residual
            mu = min(1.5 * mu, start * 1e7)
            if np.linalg.norm(residual) / norm <= 1e-3:
                break
        flat = (base[:, None, None] * flat).mean(0)
        level = flat.mean()
        flat = flat / level
        weight = 1 / (np.abs(sparse / (level * base.mean() + 1e-6)) + 0.1)
        weight /= weight.mean()
        change = np.abs(flat - last).sum() / np.abs(last).sum()
        last = flat
        if reweighting > 0 and change <= 1e-2:
            break
    field = resize(last, tiles[0].shape)
    return field / field.mean()


class Fits(WithFolder):
    def test_the_flat_field_is_found_and_taken_away(self):
        options = {"grid": "3,4", "tile": "16,64,64", "surface": 3, "curvature": 1, "depth_jitter": 0.3}
        tiles = self.simulate(flat_field=0.3, **options)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        mosaic = self.folder / "m/mosaic_grid_3d_z00.ome.zarr"
        self.done("flatfield", mosaic, "--out", self.folder / "flat.ome.zarr", "--field", self.folder / "field.csv")
        field = np.loadtxt(self.folder / "field.csv", delimiter=",")
        v, u = np.meshgrid(*[(2 * np.arange(64) + 1) / 64 - 1] * 2, indexing="ij")
        truth = 1 - 0.3 * (u**2 + v**2)
        truth /= truth.mean()
        self.assertLess(np.sqrt(np.mean((field / truth - 1)**2)), 0.05)
        expected = voxels(mosaic) / np.tile(field, (3, 4))
        np.testing.assert_allclose(voxels(self.folder / "flat.ome.zarr"), expected, rtol=2e-6)
        # The tile grid is kept: the corrected mosaic can be stitched.
        self.done("stitch", self.folder / "flat.ome.zarr", "--out", self.folder / "s.ome.zarr")

    def test_basic_equals_the_fit_written_in_numpy(self):
        tiles = self.simulate(grid="2,3", tile="10,60,72", surface=2, curvature=1, flat_field=0.2)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        mosaic = self.folder / "m/mosaic_grid_3d_z00.ome.zarr"
        self.done("flatfield", mosaic, "--model", "basic", "--out", self.folder / "f.ome.zarr", "--field",
                  self.folder / "field.csv")
        field = np.loadtxt(self.folder / "field.csv", delimiter=",")
        projection = voxels(mosaic).mean(0)
        parts = [projection[60 * r:60 * (r + 1), 72 * c:72 * (c + 1)] for r in range(2) for c in range(3)]
        np.testing.assert_allclose(field, basic_by_numpy(parts), atol=1e-4)

    def slice(self, **options):
        tiles = self.simulate(grid="1,1", **options)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        path = self.folder / "s.ome.zarr"
        self.done("stitch", self.folder / "m/mosaic_grid_3d_z00.ome.zarr", "--out", path)
        return path

    def test_vermeer_equals_numpy(self):
        path = self.slice(tile="40,24,24", surface=6)
        self.done("attenuation", path, "--method", "vermeer", "--strength", 1, "--median", 1, "--out",
                  self.folder / "a.ome.zarr")
        values = voxels(path)
        deeper = np.flip(np.cumsum(np.flip(values, 0), 0), 0) - values
        mu = np.zeros_like(values)
        mu[:-1] = 0.5 * np.log1p(values[:-1] / deeper[:-1])
        depth = np.concatenate([np.zeros((1, 24, 24)), np.cumsum(mu, 0)[:-1]])
        expected = values / np.maximum(np.exp(-2 * depth), 0.05)
        np.testing.assert_allclose(voxels(self.folder / "a.ome.zarr"), expected, rtol=2e-4)

    def test_attenuation_by_li_makes_depth_even(self):
        path = self.slice(tile="110,40,40", surface=30, curvature=0, tilt="0,0", depth_jitter=0, texture=0)
        self.done("attenuation", path, "--strength", 1, "--out", self.folder / "a.ome.zarr")
        planes = voxels(self.folder / "a.ome.zarr").mean((1, 2))
        before = voxels(path).mean((1, 2))
        self.assertLess(before[100:108].mean() / before[36:44].mean(), 0.35)
        self.assertLess(abs(planes[100:108].mean() / planes[36:44].mean() - 1), 0.03)

    def test_profile_and_normalise_equal_numpy(self):
        path = self.slice(tile="30,48,48", surface=-20, axial_profile="10,20", tissue_radius=0.7, attenuation=0.001)
        report = json.loads(self.done("profile", path, "--out", self.folder / "p.ome.zarr", "--json").stdout)
        profile = np.array(report["profile"])
        values = voxels(path)
        np.testing.assert_allclose(voxels(self.folder / "p.ome.zarr"), values / (profile / profile.min())[:, None, None],
                                   rtol=1e-6)
        z = np.arange(30)
        beam = 1 / (1 + ((z - 10) / 20)**2)
        self.assertLess(np.abs(profile / profile.max() - beam / beam.max()).max(), 0.06)
        report = json.loads(self.done("normalise", path, "--out", self.folder / "n.ome.zarr", "--json").stdout)
        caps = np.percentile(values, 99.9, axis=(1, 2))
        background = np.array(report["backgrounds"])
        self.assertAlmostEqual(np.percentile(caps - background, 90), report["span"], places=9)
        expected = np.maximum(np.minimum(values, caps[:, None, None]) - background[:, None, None], 0) / report["span"]
        np.testing.assert_allclose(voxels(self.folder / "n.ome.zarr"), expected, atol=1e-6)


class Series(WithFolder):
    def test_slices_are_registered_and_stacked_as_the_truth_says(self):
        tiles = self.simulate(grid="1,1", tile="26,128,128", surface=2, curvature=0, tilt="0,0", depth_jitter=0,
                              slices=3, interval=10, slice_gains="0.7,1.4", slice_rotation=1, slice_shift=3,
                              motor_shift=4, seed=5)
        truth = json.loads((tiles / "truth.json").read_text())["slices"]
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        slices = []
        for i in range(3):
            slices.append(self.folder / f"slice_z{i:02}.ome.zarr")
            self.done("stitch", self.folder / f"m/mosaic_grid_3d_z{i:02}.ome.zarr", "--out", slices[-1])
        found = json.loads(self.done("register", *slices, "--out", self.folder / "r", "--search-range", 0.02, "--json")
                           .stdout)
        self.assertEqual(len(found), 2)
        for i, pair in enumerate(found):
            turn = truth[i + 1]["rotation_deg"] - truth[i]["rotation_deg"]
            self.assertAlmostEqual(pair["rotation_deg"], turn, delta=0.2)
            self.assertAlmostEqual(pair["interval_planes"], 10, delta=0.8)
        shift = np.array(truth[1]["shift_px"]) + truth[1]["motor_shift_px"]
        # The scene turns about its middle; a motor shift of the first pair turns with it by less than this bound.
        self.assertLess(np.abs(np.array(found[0]["shift_px"]) - shift).max(), 0.7)
        result = json.loads(self.done("stack", *reversed(slices), "--transforms-dir", self.folder / "r", "--out",
                                      self.folder / "v.ome.zarr", "--decisions", self.folder / "d.csv",
                                      "--confidence-high", 0.4, "--json").stdout)
        self.assertEqual([one["transform"] for one in result["slices"]], ["none", "full", "full"])
        self.assertEqual(result["shape"], list(voxels(self.folder / "v.ome.zarr").shape))
        self.assertAlmostEqual(result["shape"][0], 46, delta=2)
        rows = table(self.folder / "d.csv")
        self.assertEqual([row["slice_id"] for row in rows], ["0", "1", "2"])
        self.assertTrue(all(row["reason"] for row in rows))

    def test_slices_that_are_no_series_are_refused_by_name(self):
        tiles = self.simulate(grid="1,1", tile="12,32,32", surface=2, slices=2, interval=4)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        a, b = self.folder / "a.ome.zarr", self.folder / "b.ome.zarr"
        self.done("stitch", self.folder / "m/mosaic_grid_3d_z00.ome.zarr", "--out", a)
        self.done("stitch", self.folder / "m/mosaic_grid_3d_z01.ome.zarr", "--out", b)
        shutil.copytree(a, self.folder / "again.ome.zarr")
        self.refused("are both slice 0", "stack", a, self.folder / "again.ome.zarr", "--out", self.folder / "v.ome.zarr")
        (self.folder / "bad.csv").write_text("fixed_id,moving_id,x_shift_mm,y_shift_mm\n4,5,0,0\n")
        self.refused("no pair of slices 0 and 1", "stack", a, b, "--shifts", self.folder / "bad.csv", "--out",
                     self.folder / "v.ome.zarr")
        self.refused("takes two slices or more", "stack", a, "--out", self.folder / "v.ome.zarr", code=2)
        self.refused("does not say which slice", "stack", self.folder / "m/mosaic_grid_3d_z00.ome.zarr", b, "--out",
                     self.folder / "v.ome.zarr")
        self.assertFalse((self.folder / "v.ome.zarr").exists())


class VoxelStages(WithFolder):
    """The stages that compute on a device, beside NumPy and SciPy."""

    def mosaic(self, **options):
        tiles = self.simulate(**{"grid": "2,3", "tile": "48,40,40", "surface": 14, "tilt": "0,0", **options})
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "mosaics")
        return self.folder / "mosaics/mosaic_grid_3d_z00.ome.zarr", json.loads((tiles / "truth.json").read_text())

    def test_interface_and_projection_are_those_of_scipy(self):
        mosaic, _ = self.mosaic()
        values = voxels(mosaic)
        self.done("aip", mosaic, "--device", "cpu", "--out", self.folder / "aip.ome.zarr")
        mean = voxels(self.folder / "aip.ome.zarr")
        self.assertEqual(mean.shape, (1, *values.shape[1:]))
        np.testing.assert_allclose(mean[0], values.mean(axis=0), rtol=1e-6)
        self.done("interface", mosaic, "--device", "cpu", "--out", self.folder / "i.ome.zarr")
        logarithm = np.log(values)
        box = scipy.ndimage.uniform_filter(logarithm, size=(1, 15, 15), mode="reflect")
        slope = scipy.ndimage.gaussian_filter1d(box, 2.0, axis=0, order=1, mode="reflect")
        expected = np.ceil(np.argmax(slope, axis=0) + 1.0)
        found = voxels(self.folder / "i.ome.zarr")[0]
        self.assertGreater(np.mean(found == expected), 0.999)
        # Smaller boxes are another filter.
        self.done("interface", mosaic, "--device", "cpu", "--s-xy", 3, "--s-z", 1, "--out", self.folder / "j.ome.zarr")
        self.assertLess(np.mean(voxels(self.folder / "j.ome.zarr")[0] == expected), 0.9)

    def test_curvature_is_that_of_the_truth_and_goes(self):
        mosaic, _ = self.mosaic(curvature=6, grid="3,4", tile="48,64,64")
        said = json.loads(self.done("curvature", mosaic, "--device", "cpu", "--s-xy", 5, "--json", "--out",
                                    self.folder / "flat.ome.zarr").stdout)
        found = np.array(said["planes"]).reshape(said["rows"], -1)
        u, v = np.meshgrid(*[(np.arange(n) - (n - 1) / 2) / (n / 2) for n in found.shape], indexing="ij")
        bent = 6 * (u**2 + v**2) / 2
        self.assertLess(np.sqrt(np.mean((found - (bent - bent.mean()))**2)), 0.35)
        for path, most in ((mosaic, None), (self.folder / "flat.ome.zarr", 0.7)):
            out = self.folder / f"{path.name}-map.ome.zarr"
            self.done("interface", path, "--device", "cpu", "--s-xy", 5, "--sub-voxel", "--out", out)
            maps = voxels(out)[0].reshape(3, 64, 4, 64).transpose(0, 2, 1, 3).reshape(12, 64, 64)
            spread = np.sqrt(np.mean((maps - np.median(maps, axis=(1, 2), keepdims=True))**2))
            self.assertTrue(spread > 1.2 if most is None else spread < most, f"{path.name}: {spread}")

    def test_resampling_keeps_constants_and_tells_true_sizes(self):
        mosaic, _ = self.mosaic(speckle=0, texture=0, attenuation=0)
        self.done("resample", mosaic, "--device", "cpu", "--resolution", 25, "--out", self.folder / "r.ome.zarr")
        group = zarr.open_group(str(self.folder / "r.ome.zarr"), mode="r")
        shape = group["0"].shape
        self.assertEqual(shape, (7, 32, 48))
        scale = group.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
        np.testing.assert_allclose(scale, [3.5 * 48 / 7, 25, 25])
        # Deep below the surface everything is one value.
        deep = voxels(self.folder / "r.ome.zarr")[5:]
        np.testing.assert_allclose(deep, deep[0, 0, 0], rtol=1e-6)
        # The grid follows: it stitches.
        self.done("stitch", self.folder / "r.ome.zarr", "--max-rejected", 1, "--search", 3, "--out",
                  self.folder / "s.ome.zarr")

    def test_overlap_is_that_of_the_truth(self):
        tiles = self.simulate(grid="1,1", tile="40,64,64", surface=4, slices=2, interval=17, curvature=0, tilt="0,0",
                              depth_jitter=0)
        self.done("grid", tiles, "--axial-step", 10, "--out", self.folder / "mosaics")
        slices = [self.folder / f"mosaics/mosaic_grid_3d_z0{number}.ome.zarr" for number in (0, 1)]
        said = json.loads(self.done("overlap", *slices, "--slicing-interval", 0.2, "--search-range", 0.1, "--device",
                                    "cpu", "--json").stdout)
        self.assertEqual((said["overlap_planes"], said["expected_planes"]), (23, 20))
        a, b = (voxels(path)[:, 16:-16, 16:-16] for path in slices)
        for number, value in enumerate(said["correlations"]):
            planes = said["first_of_correlations"] + number
            expected = np.corrcoef(a[-planes:].ravel(), b[:planes].ravel())[0, 1]
            self.assertAlmostEqual(value, expected, delta=2e-5)
        self.refused("--slicing-interval", "overlap", *slices, code=2)
        self.refused("two volumes", "overlap", slices[0], "--slicing-interval", 0.2, code=2)

    def test_devices_write_the_same_bytes(self):
        found = json.loads(subprocess.run([PROGRAM, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
        names = [name for name in ("webgpu", "cuda") if any(d["id"].startswith(name) for d in found["devices"])]
        if not names:
            assert not suite.device_is_required("webgpu"), "CINGULUM_TEST_DEVICES names webgpu, and there is none"
            self.skipTest("there is no GPU; `cingulum devices` says why")
        mosaic, _ = self.mosaic()
        for action, words in (("curvature", ()), ("interface", ("--sub-voxel",)), ("aip", ()),
                              ("resample", ("--resolution", 17))):
            (self.folder / "cpu").mkdir(exist_ok=True)
            self.done(action, mosaic, *words, "--device", "cpu", "--out", self.folder / "cpu/v.ome.zarr", "--force")
            expected = tree(self.folder / "cpu/v.ome.zarr")
            for name in names:
                (self.folder / name).mkdir(exist_ok=True)
                self.done(action, mosaic, *words, "--device", name, "--out", self.folder / name / "v.ome.zarr", "--force")
                self.assertEqual(tree(self.folder / name / "v.ome.zarr"), expected, f"{action} on {name}")

    def test_what_is_there_stays_unless_forced(self):
        mosaic, _ = self.mosaic()
        out = self.folder / "v.ome.zarr"
        self.done("aip", mosaic, "--device", "cpu", "--out", out)
        before = tree(out)
        for action in ("aip", "interface", "curvature", "resample", "flatfield", "stitch"):
            self.refused("it exists", action, mosaic, "--out", out)
            self.assertEqual(tree(out), before)
        self.done("interface", mosaic, "--device", "cpu", "--out", out, "--force")
        self.assertNotEqual(tree(out), before)

SCENE = {"grid": "3,3", "tile": "80,96,96", "surface": 14, "curvature": 6, "flat_field": 0.3, "motor_jitter": 1.5,
         "slices": 3, "interval": 40, "slice_gains": "0.7,1.4", "slice_rotation": 0.5, "slice_shift": 2,
         "motor_shift": 3}
SMALL = {"grid": "2,2", "tile": "48,40,40", "overlap": 0.3, "surface": 10, "curvature": 3, "tilt": "0,0",
         "slices": 3, "interval": 16, "depth_jitter": 0.5, "flat_field": 0.2}
# Slices of so many planes that it is they that take memory, and not what is stacked at a time.
DEEP = {**SMALL, "tile": "200,40,40", "interval": 60}


class WholeRun(WithFolder):
    def measured(self, seed, layout, **more):
        name = f"{layout}{seed}"
        tiles = self.simulate(name, seed=seed, layout=layout, sample=True, **SCENE, **more)
        volume = self.folder / f"{name}.ome.zarr"
        source = (tiles, "--axial-step", 3.5) if layout == "raw" else (tiles / "tiles.csv",)
        self.done("run", *source, "--strength", 1, "--device", "cpu", "--out", volume)
        measures = oct_measures.compare(volume, tiles)
        print(f"seed {seed}, {layout}:", {key: round(measures[key], 4) for key in oct_measures.BOUNDS}, flush=True)
        for key, bound in oct_measures.BOUNDS.items():
            self.assertLessEqual(measures[key], bound, f"{key}, seed {seed}, {layout} {more}")
        self.assertGreater(measures["blocks"], 80)
        shutil.rmtree(tiles)
        return volume

    def test_raw_tiles_become_the_sample(self):
        for seed in range(1, 21 if LONG else 2):
            volume = self.measured(seed, "raw", galvo_lines=12)
            self.assertFalse(Path(f"{volume}.work").exists())

    def test_a_table_of_tiles_becomes_the_sample(self):
        for seed in range(2, 12 if LONG else 3):
            self.measured(seed, "table")

    def test_a_constant_stays_constant(self):
        tiles = self.simulate(grid="2,2", tile="40,32,32", surface=-60, curvature=0, tilt="0,0", depth_jitter=0,
                              attenuation=0, speckle=0, texture=0, slices=2, interval=12, layout="table")
        self.done("run", tiles / "tiles.csv", "--max-rejected", 1, "--device", "cpu", "--out",
                  self.folder / "v.ome.zarr")
        values = voxels(self.folder / "v.ome.zarr")
        self.assertEqual(values.shape[1:], (58, 58))
        self.assertEqual(len(np.unique(values)), 1)

    def test_threads_and_devices_write_the_same_bytes(self):
        tiles = self.simulate(**SMALL)
        found = json.loads(subprocess.run([PROGRAM, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
        gpu = [name for name in ("webgpu", "cuda") if any(d["id"].startswith(name) for d in found["devices"])]
        trees = []
        for number, words in enumerate([("cpu", 1), ("cpu", 3)] + [(f"cpu,{name}", 2) for name in gpu]):
            folder = self.folder / str(number)
            folder.mkdir()
            self.done("run", tiles, "--axial-step", 3.5, "--device", words[0], "--threads", words[1], "--pyramid",
                      "auto", "--out", folder / "v.ome.zarr")
            trees.append(tree(folder / "v.ome.zarr"))
            self.assertEqual(trees[-1], trees[0], words)

    def test_tiles_that_stay_in_memory_change_no_byte(self):
        tiles = self.simulate(**SMALL)
        trees = []
        for number, memory in enumerate(["0", "1G"]):
            words = ("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--tile-memory", memory, "--out",
                     self.folder / f"{number}/v.ome.zarr")
            (self.folder / str(number)).mkdir()
            said = json.loads(self.done(*words, "--explain", "--json").stdout)
            self.assertEqual(said["tiles_read_once"], said["tiles_of_slice"] if number == 0 else said["tiles"])
            self.done(*words)
            trees.append(tree(self.folder / f"{number}/v.ome.zarr"))
        self.assertEqual(trees[1], trees[0])

    def test_a_sidecar_repeats_its_run(self):
        tiles = self.simulate(**SMALL)
        volume, again = (self.folder / name / "v.ome.zarr" for name in ("first", "again"))
        volume.parent.mkdir()
        again.parent.mkdir()
        # The names are relative, and the run is repeated from another folder.
        words = [PROGRAM, "oct", "run", "tiles", "--axial-step", "3.5", "--strength", "0.5", "--no-profile", "--pyramid",
                 "2", "--device", "cpu", "--out", "first/v.ome.zarr"]
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True)
        sidecar = Path(f"{volume}.json")
        said = json.loads(sidecar.read_text())
        options = said["arguments"]["options"]
        self.assertEqual({name: options[name] for name in ("axial-step", "strength", "no-profile", "no-crop", "search")},
                         {"axial-step": "3.5", "strength": "0.5", "no-profile": True, "no-crop": False, "search": "12"})
        self.assertEqual(sorted(said["arguments"]["given"]), ["axial-step", "no-profile", "pyramid", "strength", "tiles"])
        self.assertFalse({"device", "memory", "out", "from", "decisions"} & options.keys())
        (tiles_read,) = said["inputs"]
        self.assertEqual((tiles_read["option"], tiles_read["path"], tiles_read["tiles"]), ("tiles", "tiles", 12))
        self.done("run", "--from", sidecar, "--device", "cpu", "--out", again)
        self.assertEqual(tree(again), tree(volume))
        repeated = json.loads(Path(f"{again}.json").read_text())
        self.assertEqual(repeated["result"], said["result"])
        self.assertEqual({**repeated["arguments"]["options"], "tiles": "tiles"}, options)
        self.assertEqual(repeated["inputs"][0]["voxels_xxh3_128"], tiles_read["voxels_xxh3_128"])
        # What is given beside it takes precedence.
        self.done("run", "--from", sidecar, "--strength", 0.9, "--force", "--device", "cpu", "--out", again)
        self.assertNotEqual(tree(again), tree(volume))
        changed = json.loads(Path(f"{again}.json").read_text())["arguments"]["options"]
        self.assertEqual({name for name in options if changed[name] != options[name]}, {"strength", "tiles"})
        # Other tiles: refused, unless they are named.
        path = tiles / "tile_x00_y00_z01/image_00000.bin"
        values = np.fromfile(path, "<f4")
        values[12345] *= 1.5
        values.tofile(path)
        before = tree(again)
        self.refused("not those of the run that is repeated", "run", "--from", sidecar, "--force", "--device", "cpu",
                     "--out", again)
        self.assertEqual(tree(again), before)
        self.done("run", tiles, "--from", sidecar, "--force", "--device", "cpu", "--out", again)
        # Sidecars of something else.
        for text, damage in (("its command is another", {"command": "oct stitch"}), ("no 'arguments'", {"arguments": 1}),
                             ("'options' and 'given'", {"arguments": {"options": []}}),
                             ("no hash of the tiles", {"inputs": ["tiles"]}),
                             ("not a text", {"arguments": {**said["arguments"], "options": {**options, "search": 3}}}),
                             ("strength", {"arguments": {**said["arguments"], "options": {**options, "strength": "-1"}}})):
            bad = self.folder / "bad.json"
            bad.write_text(json.dumps({**said, **damage}))
            result = run("run", "--from", bad, "--device", "cpu", "--out", self.folder / "c.ome.zarr")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(text, result.stderr)
            self.assertIn(str(bad), result.stderr)
        self.assertFalse((self.folder / "c.ome.zarr").exists())
        self.refused("is no option of 'cingulum oct stitch'", "stitch", volume, "--from", sidecar, "--out", again, code=2)

    def test_the_pyramid_is_the_mean_of_eight(self):
        tiles = self.simulate(**SMALL)
        self.done("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--pyramid", 2, "--out",
                  self.folder / "v.ome.zarr")
        group = zarr.open_group(str(self.folder / "v.ome.zarr"), mode="r")
        fine, coarse = (np.asarray(group[name][:], dtype=np.float64) for name in "01")
        even = fine[:fine.shape[0] // 2 * 2, :fine.shape[1] // 2 * 2, :fine.shape[2] // 2 * 2]
        shape = [n // 2 for n in even.shape]
        means = even.reshape(shape[0], 2, shape[1], 2, shape[2], 2).mean((1, 3, 5))
        if fine.shape == even.shape:
            np.testing.assert_allclose(coarse, means, rtol=1e-6)
        self.assertEqual(coarse.shape, tuple((n + 1) // 2 for n in fine.shape))

    def test_the_volume_opens_in_ome_zarr_and_passes_its_models(self):
        from ome_zarr.io import parse_url
        from ome_zarr.reader import Reader
        from ome_zarr_models import open_ome_zarr

        tiles = self.simulate(**SMALL)
        path = self.folder / "v.ome.zarr"
        self.done("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--pyramid", 2, "--out", path)
        group = zarr.open_group(str(path), mode="r")
        multiscale = open_ome_zarr(group).ome_attributes.multiscales[0]
        self.assertEqual([axis.unit for axis in multiscale.axes], ["micrometer"] * 3)
        self.assertEqual(multiscale.datasets[0].coordinateTransformations[0].scale, [3.5, 10.0, 10.0])
        (node,) = Reader(parse_url(str(path)))()
        self.assertEqual([axis["name"] for axis in node.metadata["axes"]], ["z", "y", "x"])
        self.assertEqual(len(node.data), 2)
        for level, data in enumerate(node.data):
            np.testing.assert_array_equal(np.asarray(data), group[str(level)][:])

    def test_resolution_and_what_is_left_out_are_followed(self):
        tiles = self.simulate(**SMALL)
        out = self.folder / "v.ome.zarr"
        self.done("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--resolution", 14, "--no-attenuation",
                  "--no-profile", "--no-flat-field", "--out", out)
        group = zarr.open_group(str(out), mode="r")
        scale = group.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
        np.testing.assert_allclose(scale, [14, 14, 14], rtol=0.1)
        result = json.loads(Path(f"{out}.json").read_text())["result"]
        self.assertIsNone(result["light"])
        self.assertEqual({one["choice"] for one in result["slices"][0]["decisions"]}, {"left out", "left as it is"})

    def test_methods_of_others_are_followed_on_request(self):
        tiles = self.simulate(**SMALL)
        out = self.folder / "v.ome.zarr"
        self.done("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--compat", "linumpy", "--out", out)
        result = json.loads(Path(f"{out}.json").read_text())["result"]
        self.assertEqual(result["slices"][0]["depths_planes"], [0, 0, 0, 0])
        self.assertIn("normalised", [one["choice"] for one in result["slices"][0]["decisions"]])
        # Corners aligned, as scipy.ndimage.zoom has it.
        self.done("grid", tiles, "--axial-step", 3.5, "--slice", 0, "--out", self.folder / "m")
        mosaic = self.folder / "m/mosaic_grid_3d_z00.ome.zarr"
        self.done("resample", mosaic, "--compat", "linumpy", "--device", "cpu", "--resolution", 20, "--out",
                  self.folder / "r.ome.zarr")
        tile = voxels(mosaic)[:, :40, :40]
        found = voxels(self.folder / "r.ome.zarr")[:, :20, :20]
        factors = np.array(tile.shape) / found.shape
        smooth = scipy.ndimage.gaussian_filter(tile, (factors - 1) / 2, mode="reflect")
        places = np.meshgrid(*[np.linspace(0, n - 1, m) for n, m in zip(tile.shape, found.shape)], indexing="ij")
        expected = scipy.ndimage.map_coordinates(smooth, places, order=1, mode="nearest")
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)

    def test_bad_input_is_refused_by_name_before_work(self):
        tiles = self.simulate(**SMALL)
        out = self.folder / "v.ome.zarr"
        run_words = ("run", tiles, "--device", "cpu", "--out", out)
        self.refused("--axial-step", *run_words)
        self.refused("needed", *run_words, "--axial-step", 3.5, "--resolution", 0.01)
        self.refused("--max-rejected", *run_words, "--axial-step", 3.5, "--search", 1, "--smoothing", 0,
                     "--max-rejected", 0)
        shutil.move(tiles / "tile_x01_y01_z01", self.folder / "away")
        self.refused("tile x01 y01 z01 is missing", *run_words, "--axial-step", 3.5)
        shutil.move(self.folder / "away", tiles / "tile_x01_y01_z01")
        for row in range(2):
            for column in range(2):
                shutil.move(tiles / f"tile_x0{column}_y0{row}_z01", self.folder / f"away{row}{column}")
        self.refused("slice z01 is missing", *run_words, "--axial-step", 3.5)
        for row in range(2):
            for column in range(2):
                shutil.move(self.folder / f"away{row}{column}", tiles / f"tile_x0{column}_y0{row}_z01")
        self.assertFalse(out.exists())
        with open(tiles / "tile_x00_y00_z00/image_00000.bin", "ab") as file:
            file.write(b"more")
        self.refused("tile_x00_y00_z00", *run_words, "--axial-step", 3.5)

    def test_a_missing_tile_is_left_empty_where_that_is_allowed(self):
        tiles = self.simulate(**SMALL, missing="1,0,1")
        out = self.folder / "v.ome.zarr"
        result = run("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--allow-missing", "--out", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tile x01 y00 z01 is missing", result.stderr)
        said = json.loads(Path(f"{out}.json").read_text())["result"]
        self.assertEqual(said["slices"][1]["missing_tiles"], ["tile row 0, column 1 of slice 1"])
        self.assertGreater(said["slices"][1]["uncovered_pixels"], 28 * 28 // 2)


class Memory(WithFolder):
    def test_explain_bounds_the_memory_that_is_taken(self):
        tiles = self.simulate(grid="2,3", tile="120,96,96", surface=20, slices=4, interval=30)
        words = ("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--threads", 2, "--out", self.folder / "v.ome.zarr")
        said = json.loads(self.done(*words, "--explain", "--json").stdout)
        self.assertEqual((said["tiles"], said["tiles_of_slice"], said["slices"]), (24, 6, 4))
        self.assertEqual(said["tile_bytes"], 4 * 120 * 96 * 96)
        self.assertFalse((self.folder / "v.ome.zarr").exists())

        program = peak(PROGRAM, "devices")  # what the program and its libraries take before any work
        self.assertLess(peak(PROGRAM, "oct", *words), program + said["memory_bytes"])

    def test_a_slice_larger_than_the_memory_goes_through_files_and_has_the_same_bytes(self):
        # A slice has twice the voxels that the run may hold, and would take six times as much in memory.
        tiles = self.simulate(grid="24,24" if LONG else "16,16", tile="256,32,32", surface=30, slices=2, interval=200,
                              overlap=0.25)
        words = ("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--threads", 1, "--max-rejected", 1)
        out = self.folder / "files/v.ome.zarr"
        out.parent.mkdir()
        slice_bytes = (24 * 24 if LONG else 16 * 16) * 4 * 256 * 32 * 32
        whole = json.loads(self.done(*words, "--explain", "--json", "--out", out).stdout)
        self.assertFalse(whole["slices_in_files"])
        self.assertEqual(whole["tiles_read_once"], whole["tiles_of_slice"])
        self.assertGreater(whole["memory_bytes"], 3 * slice_bytes)
        # The least is what too small a bound is refused with, and what --explain says of it.
        least = json.loads(self.done(*words, "--memory", "1M", "--explain", "--json", "--out", out).stdout)
        self.refused("--memory 1.0 MiB", *words, "--memory", "1M", "--out", out, code=2)
        self.assertFalse(out.exists())
        bound = int(1.05 * least["memory_bytes"])
        self.assertLess(2 * bound, slice_bytes)
        self.assertLess(6 * bound, whole["memory_bytes"])
        words = (*words, "--memory", bound, "--out", out)
        said = json.loads(self.done(*words, "--explain", "--json").stdout)
        self.assertTrue(said["slices_in_files"])
        self.assertEqual(said["tiles_read_once"], 0)
        self.assertLessEqual(said["memory_bytes"], bound)
        self.assertGreater(said["work_bytes"], whole["work_bytes"] + 2 * slice_bytes)
        program = peak(PROGRAM, "devices")
        self.assertLess(peak(PROGRAM, "oct", *words), program + said["memory_bytes"])
        # And in memory.
        other = self.folder / "memory/v.ome.zarr"
        other.parent.mkdir()
        self.done("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--max-rejected", 1, "--out", other)
        self.assertEqual(tree(out), tree(other))
        self.assertEqual(*[json.loads(Path(f"{path}.json").read_text())["result"] for path in (out, other)])
        self.assertEqual([path.name for path in sorted(out.parent.iterdir())], ["v.ome.zarr", "v.ome.zarr.json"])

    def test_any_bound_of_memory_gives_the_same_bytes(self):
        tiles = self.simulate(**DEEP)
        for number, more in enumerate([(), ("--compat", "linumpy"), ("--normalise-planes", "--blending", "average")]):
            base = ("run", tiles, "--axial-step", 3.5, "--device", "cpu", *more)
            trees = []
            least = json.loads(self.done(*base, "--memory", "1M", "--explain", "--json", "--out", self.folder / "x").stdout)
            bounds = [(), ("--memory", least["memory_bytes"]), ("--memory", least["memory_bytes"] + (1 << 20)),
                      ("--memory", least["memory_bytes"] + (2 << 20), "--tile-memory", 2 << 20)]
            for bound in bounds:
                out = self.folder / f"{number}-{len(trees)}/v.ome.zarr"
                out.parent.mkdir()
                said = json.loads(self.done(*base, *bound, "--explain", "--json", "--out", out).stdout)
                self.assertEqual(said["slices_in_files"], bool(bound), said)
                self.assertEqual(said["tiles_read_once"], 4 if not bound else 1 if len(bound) == 4 else 0)
                self.done(*base, *bound, "--out", out)
                trees.append(tree(out))
                self.assertEqual(trees[-1], trees[0], (more, bound))


def grey_png(path):
    """A PNG of 16 bits of grey, read by zlib alone."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        name, body = data[at + 4:at + 8], data[at + 8:at + 8 + size]
        assert zlib.crc32(name + body) == int.from_bytes(data[at + 8 + size:at + 12 + size], "big")
        chunks[name] = chunks.get(name, b"") + body
        at += 12 + size
    width, height = (int.from_bytes(chunks[b"IHDR"][i:i + 4], "big") for i in (0, 4))
    assert tuple(chunks[b"IHDR"][8:]) == (16, 0, 0, 0, 0)
    stream = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 2 * width + 1)
    rows = np.zeros((height + 1, 2 * width + 2), dtype=np.int64)
    for y in range(height):
        kind = stream[y, 0]
        for x in range(2 * width):
            left, above, corner = rows[y + 1, x], rows[y, x + 2], rows[y, x]
            near = min((left, above, corner), key=lambda value: abs(left + above - corner - value))
            guess = (0, left, above, (left + above) // 2, near)[kind]
            rows[y + 1, x + 2] = (int(stream[y, x + 1]) + guess) % 256
    return rows[1:, 2::2] * 256 + rows[1:, 3::2]


class Report(WithFolder):
    def volume(self):
        tiles = self.simulate(**SMALL, missing="1,0,1")
        out = self.folder / "v.ome.zarr"
        self.done("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--allow-missing", "--out", out)
        return out

    def test_a_page_shows_what_the_run_found_and_decided(self):
        volume = self.volume()
        self.done("report", volume, "--out", self.folder / "page.html")
        said = json.loads((self.folder / "page.json").read_text())
        result = json.loads(Path(f"{volume}.json").read_text())["result"]
        page = (self.folder / "page.html").read_text()
        self.assertEqual((said["shape"], len(said["slices"])), (list(voxels(volume).shape), 3))
        for part in ("projections", "seams", "fits", "stack"):
            self.assertIn(f'<section id="{part}">', page)
        self.assertIn("tile x01 y00 z01 is missing", page)
        self.assertGreaterEqual(page.count("data:image/png;base64,"), 3 + 3 + 2)
        html = lambda text: text.replace("'", "&#39;")  # noqa: E731
        decided = [one["reason"] for one in result["stack"] + result["decisions"]]
        self.assertEqual([one["subject"] for one in result["decisions"]],
                         ["focal curvature", "depths of tiles", "light over a tile", "planes of a slice"])
        decided += [one["reason"] for one in result["slices"][2]["decisions"]]
        for reason in decided:
            self.assertIn(html(reason), page)
            self.assertIn(reason, [row["reason"] for row in table(self.folder / "page_decisions.csv")])
        links = table(self.folder / "page_links.csv")
        self.assertEqual(len(links), sum(len(one["links"]) for one in result["slices"]))
        self.assertAlmostEqual(float(links[0]["correlation"]), result["slices"][0]["links"][0]["ncc"])
        tiles = table(self.folder / "page_tiles.csv")
        self.assertEqual((len(tiles), tiles[5]["row_px"]), (12, str(result["slices"][1]["places_px"][1][0])))
        np.testing.assert_allclose([row["gain"] for row in said["slices"]], [one["gain"] for one in result["stack"]])
        values = voxels(volume)
        means = [plane[plane > 0].mean() for plane in values]
        np.testing.assert_allclose(said["plane_means"], means, rtol=1e-9)
        self.refused("it exists", "report", volume, "--out", self.folder / "page.html")
        before = page
        self.done("report", volume, "--out", self.folder / "page.html", "--force")
        self.assertEqual((self.folder / "page.html").read_text(), before)

    def test_a_step_at_a_seam_is_seen(self):
        volume = self.volume()
        self.done("report", volume, "--out", self.folder / "a.html")
        array = zarr.open_group(str(volume), mode="r+")["0"]
        places = json.loads(Path(f"{volume}.json").read_text())["result"]
        first, right = places["slices"][0]["places_px"][:2]
        at = round((first[1] + right[1] + 39) / 2 + places["stack"][0]["place_px"][1])
        array[:, :, at:] = array[:, :, at:] * 1.2
        self.done("report", volume, "--out", self.folder / "b.html")
        steps = [float(table(self.folder / f"{name}_links.csv")[0]["seam_step"]) for name in "ab"]
        self.assertAlmostEqual(steps[1] - steps[0], np.log(1.2), delta=0.05)

    def test_a_projection_is_a_png_of_16_bits(self):
        volume = self.volume()
        self.done("aip", volume, "--device", "cpu", "--out", self.folder / "aip.png")
        mean = voxels(volume).mean(0)
        low, high = np.percentile(mean, [0.1, 99.9])
        expected = np.clip((mean - low) / (high - low), 0, 1) * 65535
        found = grey_png(self.folder / "aip.png")
        self.assertEqual(found.shape, mean.shape)
        self.assertLess(np.abs(found - expected).max(), 1.5)
        self.done("report", volume, "--out", self.folder / "page.html")
        self.assertLess(np.abs(grey_png(self.folder / "page_aip.png") - expected).max(), 1.5)

    def test_what_is_no_volume_of_a_run_is_refused(self):
        tiles = self.simulate(grid="1,1", tile="20,24,24", surface=4)
        self.done("grid", tiles, "--axial-step", 3.5, "--out", self.folder / "m")
        mosaic = self.folder / "m/mosaic_grid_3d_z00.ome.zarr"
        self.refused("page ends with .html", "report", mosaic, "--out", self.folder / "page", code=2)
        self.refused("json", "report", mosaic, "--out", self.folder / "page.html")
        self.done("aip", mosaic, "--device", "cpu", "--out", self.folder / "aip.ome.zarr")
        self.refused("not what `cingulum oct run` says", "report", self.folder / "aip.ome.zarr", "--out",
                     self.folder / "page.html")


class Resume(WithFolder):
    def test_runs_that_were_killed_go_on_and_write_the_same_bytes(self):
        """Killed right before a file call and not after a time: all moments of a run are met on every machine."""
        if not file_calls.LIBRARY:
            self.skipTest("nothing can be preloaded into a build with sanitizers")
        tiles = self.simulate(**DEEP)
        words = [PROGRAM, "oct", "run", str(tiles), "--axial-step", "3.5", "--device", "cpu", "--pyramid", "2", "--quiet",
                 "--force", "--out"]
        whole = self.folder / "whole" / "v.ome.zarr"
        whole.parent.mkdir()
        # Every second one makes its slices through temporary files, and its killers' leftovers are of either kind.
        said = self.done(*words[2:], whole, "--memory", "1M", "--explain", "--json").stdout
        bounded = ["--memory", str(json.loads(said)["memory_bytes"])]
        steps_of = [sum(call.name != "write" for call in file_calls.record([*words, whole, *more], whole.parent))
                    for more in (bounded, [])]
        self.assertNotEqual(*steps_of)
        expected = tree(whole)
        result = json.loads(Path(f"{whole}.json").read_text())["result"]
        draw = random.Random(7)
        runs = 20 if LONG else 4
        ended, taken = [], []  # by the second kill; slices that the third run finds
        for number in range(runs):
            out = self.folder / "killed" / "v.ome.zarr"
            shutil.rmtree(out.parent, ignore_errors=True)
            out.parent.mkdir()
            steps = steps_of[number % 2]
            command = [*words, out, *(bounded if number % 2 == 0 else [])]
            first = draw.randint(number * steps // runs + 1, (number + 1) * steps // runs)
            self.assertTrue(file_calls.run_until(command, out.parent, first), f"step {first} of {steps}")
            # Again, so that what a killed run leaves is found by one that is killed, too.
            ended.append(file_calls.run_until([*words, out], out.parent, draw.randint(1, min(steps_of))))
            taken.append(len(list(out.parent.glob("v.ome.zarr.work/slice_z*.ome.zarr/zarr.json"))))
            subprocess.run([*words, out], check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(tree(out), expected, f"run {number}")
            self.assertEqual(json.loads(Path(f"{out}.json").read_text())["result"], result)
            self.assertEqual([path.name for path in sorted(out.parent.iterdir())], ["v.ome.zarr", "v.ome.zarr.json"])
        self.assertIn(True, ended)
        self.assertGreater(max(taken), 0)

    def test_slices_are_taken_by_what_decides_them(self):
        tiles = self.simulate(**SMALL)
        out = self.folder / "v.ome.zarr"
        words = ("run", tiles, "--axial-step", 3.5, "--device", "cpu", "--keep", "--force", "--out", out)
        self.assertNotIn("were found", self.done(*words).stderr)
        before = tree(out)
        self.assertIn("3 of 3 slices were found", self.done(*words).stderr)
        self.assertEqual(tree(out), before)
        self.assertNotIn("were found", self.done(*words, "--strength", 0.9).stderr)
        self.assertNotEqual(tree(out), before)
        self.assertNotIn("3 of 3", self.done(*words).stderr)
        self.assertEqual(tree(out), before)
        # One voxel of one tile that is another.
        path = tiles / "tile_x00_y00_z01/image_00000.bin"
        values = np.fromfile(path, "<f4")
        values[12345] *= 1.5
        values.tofile(path)
        self.assertNotIn("3 of 3", self.done(*words).stderr)


if __name__ == "__main__":
    suite.main()
