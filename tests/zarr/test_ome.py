"""OME-Zarr: ours passes ome-zarr-models and opens in ome-zarr, tensorstore and zarr-python with the same numbers; levels equal
means by NumPy; NIfTI there and back is exact; 0.4, 0.5 and 0.6 are read, and what is wrong in them is told.

CINGULUM names the program.
"""

import json
import sys
import warnings
from pathlib import Path

import nibabel as nib
import numpy as np
import tensorstore
import zarr
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
from ome_zarr_models import open_ome_zarr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)
from suite import run_program as run  # noqa: E402


def weights(finer, coarser):
    """Rows: how much of each finer element a coarser one covers."""
    rows = np.zeros((coarser, finer))
    for o in range(coarser):
        begin, end = o * finer / coarser, (o + 1) * finer / coarser
        for i in range(finer):
            rows[o, i] = max(0.0, min(end, i + 1) - max(begin, i))
    return rows / rows.sum(axis=1, keepdims=True)


def level_by_numpy(finer, shape):
    result = finer.astype(np.float64)
    for axis in reversed(range(finer.ndim)):
        if shape[axis] != finer.shape[axis]:
            result = np.moveaxis(np.tensordot(weights(finer.shape[axis], shape[axis]), result, (1, axis)), 0, axis)
    return result


class WithFolder(suite.WithFolder):
    def array(self, values, name="bare.zarr", **options):
        path = self.folder / name
        zarr.save_array(str(path), values, **options)
        return path


class Judges(WithFolder):
    """What others say of our images."""

    def image(self, version, values, *words):
        path = self.folder / f"image{version}-{values.dtype}.ome.zarr"
        source = self.array(values, f"{version}-{values.dtype}.zarr")
        self.done("zarr", "copy", source, path, "--ome-version", version, "--pyramid", "3", "--scale",
                  ",".join(["2.5"] * values.ndim), "--unit", "micrometer", *words)
        return path

    def test_both_versions_pass_the_models_and_open_everywhere(self):
        values = np.random.default_rng(3).normal(50, 9, (21, 34, 45)).astype(np.float32)
        for version in ("0.4", "0.5"):
            with self.subTest(version):
                # tensorstore knows no zstd with a checksum in v2.
                path = self.image(version, values, *(["--codec", "blosc-lz4"] if version == "0.4" else []))
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    model = open_ome_zarr(zarr.open_group(str(path), mode="r"))
                self.assertEqual(type(model).__name__, "Image")
                self.assertEqual(type(model).__module__.split(".")[1], "v" + version.replace(".", ""))
                nodes = list(Reader(parse_url(str(path)))())
                self.assertEqual(len(nodes), 1)
                self.assertEqual(len(nodes[0].data), 3)
                np.testing.assert_array_equal(np.asarray(nodes[0].data[0]), values)
                self.assertEqual([axis["unit"] for axis in nodes[0].metadata["axes"]], ["micrometer"] * 3)
                driver = "zarr" if version == "0.4" else "zarr3"
                store = {"driver": driver, "kvstore": {"driver": "file", "path": str(path / "0")}}
                np.testing.assert_array_equal(tensorstore.open(store).result().read().result(), values)
                np.testing.assert_array_equal(zarr.open_group(str(path), mode="r")["0"][:], values)

    def test_windows_are_exact_percentiles(self):
        rng = np.random.default_rng(4)
        for values in (rng.integers(-3000, 3000, (9, 40, 41)).astype(np.int16), rng.integers(0, 255, (40, 41)).astype(np.uint8),
                       rng.normal(0, 1e3, (9, 40, 41)).astype(np.float32), rng.normal(0, 1, (50, 51)),
                       rng.integers(-2**60, 2**60, (40, 41))):
            with self.subTest(str(values.dtype)):
                path = self.image("0.5", values, "--threads", "2")
                window = zarr.open_group(str(path), mode="r").attrs["ome"]["omero"]["channels"][0]["window"]
                low, high = np.percentile(values, [1, 99.9], method="lower")
                self.assertEqual((window["start"], window["end"]), (float(low), float(high)))
                self.assertEqual((window["min"], window["max"]), (float(values.min()), float(values.max())))


class Levels(WithFolder):
    def test_means_are_of_what_an_element_covers(self):
        rng = np.random.default_rng(5)
        for values in (rng.normal(50, 9, (21, 34, 45)).astype(np.float32), rng.normal(50, 9, (3, 17, 64)),
                       rng.integers(0, 65535, (12, 13, 14)).astype(np.uint16), rng.integers(-99, 99, (1, 2, 31)).astype(np.int8),
                       (rng.normal(size=(8, 9)) + 1j * rng.normal(size=(8, 9))).astype(np.complex64)):
            with self.subTest(f"{values.dtype} {values.shape}"):
                source = self.array(values, f"{values.dtype}.zarr")
                path = self.folder / f"{values.dtype}.ome.zarr"
                self.done("zarr", "copy", source, path, "--pyramid", "3", "--chunks", "8")
                group = zarr.open_group(str(path), mode="r")
                finer = values
                for level in ("1", "2"):
                    shape = group[level].shape
                    self.assertEqual(shape, tuple(-(-n // 2) for n in finer.shape))
                    if np.iscomplexobj(finer):
                        expected = level_by_numpy(finer.real, shape) + 1j * level_by_numpy(finer.imag, shape)
                    else:
                        expected = level_by_numpy(finer, shape)
                    found = group[level][:]
                    if values.dtype.kind in "ui":
                        # A tie may fall to either side by the last bit of the mean.
                        self.assertLessEqual(np.abs(found - expected).max(), 0.5 + 1e-6)
                    else:
                        np.testing.assert_allclose(found, expected, rtol=2e-7 if values.dtype != np.float64 else 1e-13)
                    finer = found

    def test_scale_and_translation_are_true_at_odd_sizes(self):
        source = self.array(np.zeros((5, 7, 8), np.float32))
        path = self.folder / "a.ome.zarr"
        self.done("zarr", "copy", source, path, "--pyramid", "2", "--scale", "2,3,4")
        first, second = zarr.open_group(str(path), mode="r").attrs["ome"]["multiscales"][0]["datasets"]
        self.assertEqual(first["coordinateTransformations"], [{"type": "scale", "scale": [2.0, 3.0, 4.0]}])
        scale, translation = second["coordinateTransformations"]
        np.testing.assert_allclose(scale["scale"], [2 * 5 / 3, 3 * 7 / 4, 8], rtol=1e-15)
        np.testing.assert_allclose(translation["translation"], [(10 / 3 - 2) / 2, (21 / 4 - 3) / 2, 2], rtol=1e-15)

    def test_labels_take_what_is_there(self):
        labels = np.random.default_rng(6).choice([0, 7, 1000], (9, 10, 11)).astype(np.uint32)
        source = self.array(labels)
        path = self.folder / "a.ome.zarr"
        self.done("zarr", "copy", source, path, "--pyramid", "2", "--downsampling", "nearest")
        index = [[(2 * o + 1) * n // (2 * -(-n // 2)) for o in range(-(-n // 2))] for n in labels.shape]
        np.testing.assert_array_equal(zarr.open_group(str(path), mode="r")["1"][:], labels[np.ix_(*index)])


class Nifti(WithFolder):
    AFFINE = np.array([[-2, 0.1, 0, 10], [0.1, 2, 0.1, -20], [0, -0.1, 3, 5], [0, 0, 0, 1.0]])

    def test_there_and_back_is_exact(self):
        rng = np.random.default_rng(7)
        for dtype in (np.int16, np.uint8, np.float32, np.float64, np.int32, np.uint16):
            for shape in ((9, 8, 7), (9, 8, 7, 3), (6, 5)):
                for out in ("a.ome.zarr", "a.ome.zarr.zip"):
                    with self.subTest(f"{dtype.__name__} {shape} {out}"):
                        values = (rng.normal(100, 40, shape)).astype(dtype)
                        image = nib.Nifti1Image(values, self.AFFINE)
                        nib.save(image, self.folder / "a.nii.gz")
                        self.done("convert", self.folder / "a.nii.gz", self.folder / out, "--force", "--pyramid", "2",
                                  *(["--ome-version", "0.4"] if dtype == np.int16 else []))
                        self.done("convert", self.folder / out, self.folder / "b.nii.gz", "--force")
                        again = nib.load(self.folder / "b.nii.gz")
                        self.assertEqual(again.get_data_dtype(), np.dtype(dtype))
                        np.testing.assert_array_equal(np.asarray(again.dataobj).reshape(shape), values)
                        np.testing.assert_array_equal(again.affine, nib.load(self.folder / "a.nii.gz").affine)

    def test_scaled_integers_are_meant_values_and_come_back_as_stored(self):
        stored = np.random.default_rng(8).integers(-3000, 3000, (9, 8, 7)).astype(np.int16)
        image = nib.Nifti1Image(stored, self.AFFINE)
        image.header.set_slope_inter(0.25, 12)
        nib.save(image, self.folder / "a.nii")
        self.done("convert", self.folder / "a.nii", self.folder / "a.ome.zarr")
        seen = zarr.open_group(str(self.folder / "a.ome.zarr"), mode="r")["0"][:]
        np.testing.assert_array_equal(seen.T, nib.load(self.folder / "a.nii").get_fdata())
        self.done("convert", self.folder / "a.ome.zarr", self.folder / "b.nii")
        again = nib.load(self.folder / "b.nii")
        np.testing.assert_array_equal(again.dataobj.get_unscaled(), nib.load(self.folder / "a.nii").dataobj.get_unscaled())
        self.assertEqual((again.dataobj.slope, again.dataobj.inter), (0.25, 12))

    def test_voxels_are_millimetres_and_dimensions_z_y_x(self):
        values = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
        nib.save(nib.Nifti1Image(values, np.diag([0.5, 2, 3, 1])), self.folder / "a.nii")
        self.done("convert", self.folder / "a.nii", self.folder / "a.ome.zarr")
        group = zarr.open_group(str(self.folder / "a.ome.zarr"), mode="r")
        np.testing.assert_array_equal(group["0"][:], values.T)
        multiscale = group.attrs["ome"]["multiscales"][0]
        self.assertEqual([axis["name"] for axis in multiscale["axes"]], ["z", "y", "x"])
        self.assertEqual(multiscale["datasets"][0]["coordinateTransformations"][0]["scale"], [3, 2, 0.5])

    def test_a_part_keeps_its_place(self):
        values = np.random.default_rng(9).normal(size=(9, 8, 7)).astype(np.float32)
        nib.save(nib.Nifti1Image(values, self.AFFINE), self.folder / "a.nii")
        self.done("convert", self.folder / "a.nii", self.folder / "a.ome.zarr")
        self.done("zarr", "copy", self.folder / "a.ome.zarr", self.folder / "b.ome.zarr", "--crop", "2:,1:5,3:9")
        self.done("convert", self.folder / "b.ome.zarr", self.folder / "b.nii")
        part = nib.load(self.folder / "b.nii")
        np.testing.assert_array_equal(np.asarray(part.dataobj), values[3:9, 1:5, 2:])
        np.testing.assert_allclose(part.affine @ [0, 0, 0, 1], self.AFFINE @ [3, 1, 2, 1], rtol=1e-6)

    def test_units_of_others_are_converted_and_never_guessed_where_they_are_given(self):
        for unit, factor in (("micrometer", 1e-3), ("nanometer", 1e-6), ("millimeter", 1.0)):
            with self.subTest(unit):
                source = self.array(np.zeros((3, 4, 5), np.uint8), f"{unit}.zarr")
                path = self.folder / f"{unit}.ome.zarr"
                self.done("zarr", "copy", source, path, "--scale", "0.5,20,30", "--unit", unit)
                self.done("convert", path, self.folder / "a.nii", "--force")
                np.testing.assert_allclose(nib.load(self.folder / "a.nii").header.get_zooms(),
                                           np.array([30, 20, 0.5]) * factor, rtol=1e-6)


class Metadata(WithFolder):
    """Groups made by hand."""

    def group(self, ome, shape=(4, 5, 6), name="a.ome.zarr", **options):
        path = self.folder / name
        group = zarr.create_group(str(path), attributes={"ome": ome})
        for level in ("0", "1"):
            group.create_array(level, shape=shape, dtype="u1", **options)
        return path

    @staticmethod
    def multiscale(**changes):
        scale = [{"type": "scale", "scale": [1, 2, 3]}]
        result = {"axes": [{"name": n, "type": "space", "unit": "micrometer"} for n in "zyx"],
                  "datasets": [{"path": "0", "coordinateTransformations": scale}]}
        result.update(changes)
        return result

    def levels(self, path):
        return json.loads(self.done("zarr", "info", "--json", path).stdout)["files"][0]["ome"]["levels"]

    def test_transformations_of_the_image_are_composed_with_those_of_levels(self):
        path = self.group({"version": "0.5", "multiscales": [self.multiscale(
            datasets=[{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2, 3]},
                                                                  {"type": "translation", "translation": [1, 1, 1]}]}],
            coordinateTransformations=[{"type": "scale", "scale": [10, 10, 100]},
                                       {"type": "translation", "translation": [0, 7, 0]}])]})
        self.assertEqual(self.levels(path)[0], {"path": "0", "scale": [10, 20, 300], "translation": [10, 17, 100]})

    def six(self, steps, further=()):
        axes = self.multiscale()["axes"]
        return {"version": "0.6", "multiscales": [{
            "coordinateSystems": [{"name": "world", "axes": axes}, {"name": "own", "axes": axes}],
            "datasets": [{"path": "0", "coordinateTransformations": [
                {"type": "sequence", "input": {"path": "0"}, "output": {"name": "own"}, "transformations": steps}]}],
            "coordinateTransformations": list(further)}]}

    def test_0_6_is_read_by_its_coordinate_systems(self):
        affine = [[2, 0, 0, 5], [0, 2, 0, 6], [0, 0, 2, 7]]
        path = self.group(self.six([{"type": "scale", "scale": [1, 2, 3]}, {"type": "identity"}],
                                   [{"type": "affine", "affine": affine, "input": {"name": "own"},
                                     "output": {"name": "world"}}]))
        self.assertEqual(self.levels(path)[0], {"path": "0", "scale": [2, 4, 6], "translation": [5, 6, 7]})
        self.done("zarr", "copy", path, self.folder / "b.ome.zarr", "--ome-version", "0.4")
        self.assertEqual(self.levels(self.folder / "b.ome.zarr")[0]["translation"], [5, 6, 7])

    def test_a_turning_affine_is_shown_and_not_written(self):
        path = self.group(self.six([{"type": "affine", "affine": [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]}]))
        self.assertIn("affine", json.loads(
            self.done("zarr", "info", "--json", path).stdout)["files"][0]["ome"]["levels"][0])
        result = run("zarr", "copy", path, self.folder / "b.ome.zarr")
        self.assertEqual(result.returncode, 1)
        self.assertIn("affine that turns", result.stderr)

    def test_what_is_wrong_is_one_line_with_group_and_field(self):
        good = self.multiscale()["datasets"][0]
        cases = {
            "multiscales[0].axes: 1 axes": self.multiscale(axes=[{"name": "x", "type": "space"}]),
            "multiscales[0].axes[1].name: 'z' is there twice": self.multiscale(
                axes=[{"name": n, "type": "space"} for n in "zzx"]),
            "multiscales[0].axes[2].type: 'channel' stands behind": self.multiscale(
                axes=[{"name": "z", "type": "space"}, {"name": "y", "type": "space"}, {"name": "c", "type": "channel"}]),
            "multiscales[0].datasets: it is empty": self.multiscale(datasets=[]),
            "multiscales[0].datasets[0].path: '../x' is no path": self.multiscale(datasets=[dict(good, path="../x")]),
            "scale: 2 numbers, expected 3": self.multiscale(datasets=[
                {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2]}]}]),
            "scale: entry 1 is 0": self.multiscale(datasets=[
                {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 0, 2]}]}]),
            "coordinateTransformations[0]: it is no scale": self.multiscale(datasets=[
                {"path": "0", "coordinateTransformations": [{"type": "translation", "translation": [1, 2, 3]}]}]),
            "datasets[0]: the array has 3 dimensions, there are 2 axes": self.multiscale(
                axes=self.multiscale()["axes"][1:],
                datasets=[{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2]}]}]),
        }
        for number, (message, multiscale) in enumerate(cases.items()):
            with self.subTest(message):
                path = self.group({"version": "0.5", "multiscales": [multiscale]}, name=f"{number}.ome.zarr")
                result = run("zarr", "info", path)
                self.assertEqual(result.returncode, 1)
                line = next(line for line in result.stdout.splitlines() if "error" in line)
                self.assertIn(message, line)
                self.assertIn(path.name, line)

    def test_versions_and_transformations_that_are_not_known_are_named(self):
        result = run("zarr", "info", self.group({"version": "0.7", "multiscales": [self.multiscale()]}))
        self.assertEqual(result.returncode, 1)
        self.assertIn("OME-Zarr 0.7 is not supported", result.stdout)
        result = run("zarr", "info", self.group(self.six([{"type": "rotation", "rotation": [1]}]), name="b.ome.zarr"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("'rotation' is not supported", result.stdout)

    def test_dimension_names_that_contradict_the_axes_are_refused(self):
        path = self.group({"version": "0.5", "multiscales": [self.multiscale()]}, dimension_names=["x", "y", "z"])
        result = run("zarr", "info", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("dimension 0 of the array is named 'x', the axis 'z'", result.stdout)

    def test_labels_and_other_attributes_go_along(self):
        path = self.folder / "a.ome.zarr"
        group = zarr.create_group(str(path), attributes={
            "ome": {"version": "0.5", "multiscales": [self.multiscale()]}, "mine": [1, 2]})
        group.create_array("0", shape=(4, 5, 6), dtype="u1", attributes={"of": "level"})[:] = 3
        labels = group.create_group("labels", attributes={"ome": {"version": "0.5", "labels": ["cells"]}})
        cells = labels.create_group("cells", attributes={"ome": {
            "version": "0.5", "multiscales": [self.multiscale()], "image-label": {"colors": []}}})
        cells.create_array("0", shape=(4, 5, 6), dtype="u1")[:] = 1
        self.done("zarr", "copy", path, self.folder / "b.ome.zarr", "--ome-version", "0.4")
        old = zarr.open_group(str(self.folder / "b.ome.zarr"), mode="r")
        self.assertEqual(old.metadata.zarr_format, 2)
        self.assertEqual(old.attrs["mine"], [1, 2])
        self.assertEqual(old.attrs["multiscales"][0]["version"], "0.4")
        self.assertEqual(old["labels"].attrs["labels"], ["cells"])
        self.assertEqual(old["labels/cells"].attrs["image-label"]["version"], "0.4")
        self.assertEqual(old["0"].attrs["of"], "level")
        self.done("zarr", "copy", self.folder / "b.ome.zarr", self.folder / "c.ome.zarr")
        new = zarr.open_group(str(self.folder / "c.ome.zarr"), mode="r")
        self.assertEqual(dict(new.attrs)["mine"], [1, 2])
        self.assertEqual(new["labels"].attrs["ome"], {"version": "0.5", "labels": ["cells"]})
        self.assertNotIn("version", new["labels/cells"].attrs["ome"]["image-label"])
        self.assertEqual(dict(new["0"].attrs), {"of": "level"})
        np.testing.assert_array_equal(new["labels/cells/0"][:], 1)


if __name__ == "__main__":
    suite.main()
