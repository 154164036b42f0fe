"""NIfTI images: nibabel's files read by us, ours by nibabel and MRtrix3, and every image of the real data.

CINGULUM_TEST_IMAGE_DUMP names the program image_dump; CINGULUM_TEST_DATA the folder of real data (skipped without).
"""

import gzip
import itertools
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

DUMP = os.environ.get("CINGULUM_TEST_IMAGE_DUMP", "build/bin/image_dump")
DATA = os.environ.get("CINGULUM_TEST_DATA", "")

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES = INTEGERS + ["float32", "float64"]


def rotation(angles):
    """A rotation matrix from three angles."""
    matrix = np.eye(3)
    for axis, angle in enumerate(angles):
        i, j = [k for k in range(3) if k != axis]
        turn = np.eye(3)
        turn[i, i] = turn[j, j] = np.cos(angle)
        turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
        matrix = matrix @ turn
    return matrix


def some_affine(rng, mirrored=False):
    affine = np.eye(4)
    edges = rng.uniform(0.5, 4, 3)
    if mirrored:
        edges[0] *= -1
    affine[:3, :3] = rotation(rng.uniform(-3, 3, 3)) @ np.diag(edges)
    affine[:3, 3] = rng.uniform(-100, 100, 3)
    return affine


def some_data(rng, name, shape):
    """Values over the whole range of a type."""
    dtype = np.dtype(name)
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)).astype(dtype)
    info = np.iinfo(dtype)
    data = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    data.flat[0] = info.min
    data.flat[-1] = info.max
    return data


class Dump:
    """image_dump kept running over many files."""

    def __init__(self, folder):
        self.raw = Path(folder) / "values.raw"
        self.process = subprocess.Popen([DUMP, "read-many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, path):
        """The header as a dictionary and the values in the image's shape; the values are None when it was refused."""
        self.process.stdin.write(f"{path}\t{self.raw}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"image_dump ended at {path}")
        header = json.loads(line)
        if "error" in header:
            return header, None
        return header, np.fromfile(self.raw).reshape(header["shape"], order="F")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait() != 0:
            raise AssertionError("image_dump failed")


class WithDump(suite.WithFolder):
    def setUp(self):
        super().setUp()
        self.dump = Dump(self.folder)
        self.addCleanup(self.dump.close)

    def affine_of(self, header):
        return np.array(header["affine"]).reshape(3, 4)


def expected_values(image):
    """What nibabel makes of an image, in float64 and through its own scaling."""
    return np.asanyarray(image.dataobj).astype(np.float64)


class FromNibabel(WithDump):
    def check(self, path, image=None):
        image = image if image is not None else nib.load(path)
        header, values = self.dump.read(path)
        self.assertIsNotNone(values, header)
        np.testing.assert_array_equal(values, expected_values(image))
        return header

    def test_every_type_byte_order_version_and_scaling_is_read_as_nibabel_reads_it(self):
        rng = np.random.default_rng(1)
        scalings = [(None, None), (2.5, -7.25), (1e-3, 0.0), (-3.0, 1e4)]
        count = 0
        for name, order, version, ending, scaling in itertools.product(
                TYPES, "<>", (1, 2), ("nii", "nii.gz"), scalings):
            data = some_data(rng, name, (4, 3, 2, 2))
            cls = nib.Nifti1Image if version == 1 else nib.Nifti2Image
            header = cls.header_class(endianness=order)
            header.set_data_dtype(name)
            image = cls(data, some_affine(rng), header)
            image.header.set_slope_inter(*scaling)
            path = self.folder / f"a.{ending}"
            # The bytes are written as they are: nibabel would rescale.
            raw = image.header.copy()
            raw["vox_offset"] = 352 if version == 1 else 544
            raw["magic"] = image.header.single_magic
            raw.set_slope_inter(*scaling)
            content = raw.binaryblock + b"\0\0\0\0" + data.astype(data.dtype.newbyteorder(order)).tobytes(order="F")
            path.write_bytes(gzip.compress(content, 1) if ending == "nii.gz" else content)
            found = self.check(path)
            self.assertEqual(found["type"], name)
            self.assertEqual(found["big_endian"], order == ">")
            self.assertEqual(found["version"], version)
            self.assertEqual(found["compressed"], ending == "nii.gz")
            count += 1
        self.assertEqual(count, 320)

    def test_one_to_seven_axes(self):
        rng = np.random.default_rng(2)
        for axes in range(1, 8):
            data = rng.standard_normal([5, 4, 3, 2, 3, 2, 2][:axes]).astype(np.float32)
            path = self.folder / "a.nii.gz"
            nib.save(nib.Nifti1Image(data, np.eye(4)), path)
            self.assertEqual(self.check(path)["shape"], list(data.shape))

    def test_sform_goes_before_qform_and_qform_before_pixdim(self):
        rng = np.random.default_rng(3)
        for mirrored, trial in itertools.product((False, True), range(20)):
            sform, qform = some_affine(rng, mirrored), some_affine(rng, mirrored)
            for scode, qcode in itertools.product((0, 1, 3), (0, 1, 4)):
                if scode == qcode == 0:
                    continue
                image = nib.Nifti1Image(np.zeros((2, 3, 4), np.uint8), None)
                image.set_sform(sform, scode)
                image.set_qform(qform, qcode)
                path = self.folder / "a.nii"
                nib.save(image, path)
                found, _ = self.dump.read(path)
                self.assertEqual(found["affine_source"], "sform" if scode else "qform")
                np.testing.assert_allclose(self.affine_of(found), nib.load(path).affine[:3], rtol=0, atol=2e-5)
                codes = "".join(nib.aff2axcodes(nib.load(path).affine))
                self.assertEqual(found["axis_codes"], codes, f"trial {trial}")

    def test_without_sform_and_qform_only_the_voxel_size_is_known(self):
        image = nib.Nifti1Image(np.zeros((2, 3, 4), np.uint8), None)
        image.header.set_zooms((2, 3, 4))
        image.header["qform_code"] = image.header["sform_code"] = 0
        path = self.folder / "a.nii"
        nib.save(image, path)
        found, _ = self.dump.read(path)
        self.assertEqual(found["affine_source"], "pixdim")
        np.testing.assert_array_equal(self.affine_of(found), np.diag([2, 3, 4, 1])[:3])
        self.assertTrue(any("neither sform nor qform" in warning for warning in found["warnings"]))

    def test_types_that_are_not_real_numbers_are_named_and_refused(self):
        for code, bits, name in [(1, 1, "binary"), (32, 64, "complex64"), (128, 24, "rgb24"), (1536, 128, "float128"),
                                 (1792, 128, "complex128"), (2048, 256, "complex256"), (2304, 32, "rgba32"),
                                 (77, 8, "unknown type 77")]:
            image = nib.Nifti1Image(np.zeros((2, 3, 400), np.uint8), np.eye(4))
            content = bytearray(image.to_bytes())
            struct.pack_into("<6h", content, 40, 3, 2, 3, 4, 1, 1)
            struct.pack_into("<hh", content, 70, code, bits)
            path = self.folder / "a.nii"
            path.write_bytes(content)
            found, _ = self.dump.read(path)
            self.assertIn(f"voxels of type {name} are not read", found.get("error", "read"))

    def test_extensions_are_skipped(self):
        rng = np.random.default_rng(4)
        data = some_data(rng, "int16", (4, 3, 2))
        for cls in (nib.Nifti1Image, nib.Nifti2Image):
            image = cls(data, np.eye(4))
            for size in (1, 100, 5000):
                image.header.extensions.append(nib.nifti1.Nifti1Extension("comment", b"x" * size))
            path = self.folder / "a.nii.gz"
            nib.save(image, path)
            self.assertEqual(self.check(path)["warnings"], [])


class Oddities(WithDump):
    """Headers that exist in the wild: patched bytes of a good file."""

    def patched(self, *patches, data_type="<i2", ending="nii", cut=None):
        data = np.arange(24, dtype=data_type).reshape((2, 3, 4), order="F")
        image = nib.Nifti1Image(data, np.diag([2.0, 3.0, 4.0, 1.0]))
        image.header.set_slope_inter(1, 0)
        content = bytearray(image.to_bytes())
        struct.pack_into("<ff", content, 112, 1, 0)
        for offset, layout, value in patches:
            struct.pack_into(layout, content, offset, value)
        path = self.folder / f"a.{ending}"
        path.write_bytes(bytes(content[:cut]))
        return self.dump.read(path), data

    def accepted(self, *patches, warning, **options):
        (header, values), data = self.patched(*patches, **options)
        self.assertIsNotNone(values, header)
        self.assertTrue(any(warning in found for found in header["warnings"]), header["warnings"])
        np.testing.assert_array_equal(values.ravel(), data.reshape(values.shape, order="F").ravel())
        return header

    def refused(self, *patches, message, **options):
        (header, _), _ = self.patched(*patches, **options)
        self.assertIn(message, header.get("error", "accepted"))

    def test_the_plain_file_has_no_warning(self):
        (header, _), _ = self.patched()
        self.assertEqual(header["warnings"], [])

    def test_odd_pixdim(self):
        nan = float("nan")
        header = self.accepted((80, "<f", nan), warning="pixdim[1] is nan")
        np.testing.assert_array_equal(self.affine_of(header), np.diag([2, 3, 4, 1])[:3])
        self.accepted((84, "<f", 0.0), warning="pixdim[2] is 0")
        self.accepted((88, "<f", -4.0), warning="pixdim[3] = -4 is negative")
        by_qform = [(254, "<h", 0), (252, "<h", 1)]
        header = self.accepted(*by_qform, (80, "<f", nan), warning="pixdim[1] is nan")
        self.assertEqual(header["voxel_mm"], [1, 3, 4])
        header = self.accepted(*by_qform, (76, "<f", 0.0), warning="qfac (pixdim[0]) is 0")
        self.assertEqual(header["voxel_mm"], [2, 3, 4])
        self.assertGreater(np.linalg.det(self.affine_of(header)[:, :3]), 0)

    def test_odd_scaling(self):
        self.accepted((112, "<f", 0.0), warning="scl_slope is 0")
        self.accepted((112, "<f", 0.0), (116, "<f", 5.0), warning="scl_inter = 5 is ignored")
        self.accepted((112, "<f", float("nan")), warning="scl_slope is nan")
        self.accepted((112, "<f", float("inf")), warning="scl_slope is inf")
        self.refused((116, "<f", float("nan")), message="scl_inter is nan")

    def test_odd_dimensions(self):
        header = self.accepted((40, "<h", 5), (48, "<h", 0), (50, "<h", 1), warning="dim[4] is 0: read as 1")
        self.assertEqual(header["shape"], [2, 3, 4, 1, 1])
        self.refused((40, "<h", 0), message="dim[0] = 0")
        self.refused((40, "<h", 8), message="dim[0] = 8")
        self.refused((40, "<h", -3), message="dim[0] = -3")
        self.refused((42, "<h", 0), message="dim[1] = 0")
        self.refused((44, "<h", -3), message="dim[2] = -3")
        self.refused((46, "<h", 5), message="60 bytes of voxels (2 x 3 x 5 of int16) expected from byte 352 on")

    def test_odd_offset(self):
        self.accepted((108, "<f", 0.0), warning="vox_offset is 0")
        self.accepted((108, "<f", 352.5), warning="vox_offset = 352.5 is not a whole number")
        self.refused((108, "<f", 351.0), message="vox_offset = 351 is not a place behind the header")
        self.refused((108, "<f", -1.0), message="vox_offset = -1")
        self.refused((108, "<f", float("nan")), message="vox_offset = nan")
        self.refused((108, "<f", 1e30), message="vox_offset")
        self.refused((108, "<f", 400.0), message="expected from byte 400 on (448 in all), 0 found")

    def test_odd_units(self):
        header = self.accepted((123, "<B", 1), warning="metres")
        self.assertEqual(header["voxel_mm"], [2000, 3000, 4000])
        header = self.accepted((123, "<B", 3), warning="micrometres")
        np.testing.assert_allclose(header["voxel_mm"], [0.002, 0.003, 0.004])
        self.accepted((123, "<B", 5), warning="spatial unit 5")

    def test_odd_extensions(self):
        shorter = [(40, "<h", 3), (46, "<h", 1), (348, "<B", 1), (108, "<f", 368.0)]
        for size, expected in [(16, None), (8, "says that it has 0 bytes"), (7, "says that it has 7 bytes, 16 are there"),
                               (-1, "says that it has -1 bytes"), (17, "says that it has 17 bytes, 16 are there")]:
            (header, values), _ = self.patched(*shorter, (352, "<i", size), (360, "<i", 0))
            self.assertEqual(values.ravel(order="F").tolist(), [8, 9, 10, 11, 12, 13])
            warnings = [text for text in header["warnings"] if "extension" in text]
            self.assertEqual(len(warnings), 0 if expected is None else 1, header)
            if expected is not None:
                self.assertIn(expected, warnings[0])

    def test_other_files_are_named(self):
        self.refused((344, "<4s", b"ni1\0"), message="pair of .hdr and .img")
        self.refused((344, "<4s", b"\0\0\0\0"), message="ANALYZE")
        self.accepted((0, "<i", 0), warning="sizeof_hdr is 0 instead of 348")
        self.refused((0, "<i", 0), (344, "<4s", b"abcd"), message="not a NIfTI image")
        self.refused((70, "<h", 77), message="unknown type 77")
        self.accepted((72, "<h", 8), warning="bitpix is 8, the type int16 has 16 bits")
        self.refused(cut=0, message="ends at byte 0")
        self.refused(cut=300, message="ends at byte 300")

    def test_singular_sform_is_not_believed(self):
        header = self.accepted((280, "<f", 0.0), (252, "<h", 1), warning="the sform cannot be inverted")
        self.assertEqual(header["affine_source"], "qform")

    def test_forged_sizes_are_refused_before_anything_is_allocated(self):
        huge = [(42 + 2 * i, "<h", 32767) for i in range(7)] + [(40, "<h", 7)]
        self.refused(*huge, message="2^63")
        self.refused(*huge[:3], message="bytes of voxels")
        data = np.zeros((2, 3, 4), np.int16)
        content = bytearray(nib.Nifti1Image(data, np.eye(4)).to_bytes())
        struct.pack_into("<4h", content, 40, 3, 32767, 32767, 32767)
        path = self.folder / "a.nii.gz"
        path.write_bytes(gzip.compress(bytes(content)))
        header, _ = self.dump.read(path)
        self.assertIn("compressed bytes cannot hold more than", header["error"])


class ToOthers(WithDump):
    def write(self, name, data, affine, **spec):
        """Writes data with image_dump; the path."""
        path = self.folder / name
        raw, described = self.folder / "in.raw", self.folder / "spec.json"
        np.asarray(data, np.float64).ravel(order="F").tofile(raw)
        described.write_text(json.dumps({"shape": data.shape, "affine": affine[:3].ravel().tolist(), **spec}))
        subprocess.run([DUMP, "write", described, raw, path], check=True, stdout=subprocess.DEVNULL)
        return path

    def test_nibabel_reads_what_we_write(self):
        rng = np.random.default_rng(5)
        for name, version, ending in itertools.product(TYPES, (1, 2), ("nii", "nii.gz")):
            shape = (5, 4, 3, 2)
            data = some_data(rng, name, shape).astype(np.float64)
            affine = some_affine(rng, mirrored=version == 2)
            path = self.write(f"a.{ending}", data, affine, type=name, version=version, description="a test",
                              intent_name="name", intent_code=1006)
            image = nib.load(path)
            self.assertIsInstance(image, nib.Nifti1Image if version == 1 else nib.Nifti2Image)
            self.assertEqual(image.get_data_dtype(), np.dtype(name))
            if name in ("int64", "uint64"):  # the largest float64 below the range's end is not the end
                np.testing.assert_allclose(expected_values(image), data, rtol=1e-15)
            else:
                np.testing.assert_array_equal(expected_values(image), data)
            atol = 1e-5 if version == 1 else 1e-12
            np.testing.assert_allclose(image.get_sform(), affine, atol=atol)
            np.testing.assert_allclose(image.get_qform(), affine, atol=10 * atol)
            self.assertEqual(image.header["descrip"], b"a test")
            self.assertEqual(image.header.get_intent()[2], "name")
            self.assertEqual(image.header.get_xyzt_units()[0], "mm")
            # Its own check of headers finds nothing to say.
            self.assertEqual(type(image.header).diagnose_binaryblock(image.header.binaryblock), "")

    def test_scaled_integers_are_rounded_to_even_and_clamped(self):
        data = np.array([-1e9, -3.25, -0.75, 0.25, 0.75, 1.25, 1.75, 1e9, np.nan, np.inf]).reshape((10, 1, 1))
        path = self.write("a.nii", data, np.eye(4), type="int16", slope=0.5, intercept=0.0)
        stored = np.asanyarray(nib.load(path).dataobj.get_unscaled()).ravel()
        self.assertEqual(stored.tolist(), [-32768, -6, -2, 0, 2, 2, 4, 32767, 0, 32767])
        path = self.write("a.nii", data, np.eye(4), type="uint8", slope=2.0, intercept=-10.0)
        stored = np.asanyarray(nib.load(path).dataobj.get_unscaled()).ravel()
        self.assertEqual(stored.tolist(), [0, 3, 5, 5, 5, 6, 6, 255, 0, 255])

    def test_a_sheared_affine_has_no_qform(self):
        affine = np.eye(4)
        affine[0, 1] = 0.3
        image = nib.load(self.write("a.nii", np.zeros((2, 2, 2)), affine))
        self.assertEqual(int(image.header["qform_code"]), 0)
        np.testing.assert_allclose(image.affine, affine, atol=1e-6)

    def test_the_axes_that_need_it_make_it_nifti_2(self):
        path = self.write("a.nii.gz", np.zeros((40000, 1, 1)), np.eye(4), type="uint8")
        self.assertIsInstance(nib.load(path), nib.Nifti2Image)

    @suite.needs("mrtrix")
    def test_mrtrix_reads_what_we_write(self):
        rng = np.random.default_rng(6)
        for name, ending in itertools.product(("int16", "uint8", "float32", "float64"), ("nii", "nii.gz")):
            data = some_data(rng, name, (6, 5, 4, 3)).astype(np.float64)
            affine = some_affine(rng)
            path = self.write(f"a.{ending}", data, affine, type=name)

            def ask(*words):
                return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()

            # MRtrix turns the axes towards RAS.
            self.assertEqual(sorted(int(n) for n in ask("mrinfo", "-quiet", "-size", path)), [3, 4, 5, 6])
            minimum, maximum = ask("mrstats", "-quiet", "-allvolumes", "-output", "min", "-output", "max", path)
            np.testing.assert_allclose([float(minimum), float(maximum)], [data.min(), data.max()], rtol=1e-5)
            back = self.folder / "back.nii"
            subprocess.run(["mrconvert", "-quiet", "-force", path, back], check=True)
            again = nib.as_closest_canonical(nib.load(back))
            ours = nib.as_closest_canonical(nib.Nifti1Image(data, affine))
            np.testing.assert_allclose(again.affine, ours.affine, atol=1e-4)
            np.testing.assert_allclose(again.get_fdata(), ours.get_fdata(), rtol=1e-6)

    def test_bytes_do_not_depend_on_the_number_of_threads(self):
        rng = np.random.default_rng(7)
        data = rng.integers(0, 1000, (128, 128, 64, 3)).astype(np.float64)
        contents = [self.write("a.nii.gz", data, np.eye(4), type="int16", threads=n).read_bytes() for n in (1, 2, 8)]
        self.assertEqual(contents[0], contents[1])
        self.assertEqual(contents[0], contents[2])
        plain = gzip.decompress(contents[0])
        np.testing.assert_array_equal(np.frombuffer(plain[352:], "<i2"), data.ravel(order="F"))
        self.assertEqual(contents[0][:10], bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 4, 255]))


@suite.needs("data")
class RealData(WithDump):
    def test_every_image_is_read_or_refused_as_nibabel_does(self):
        seen = {"read": 0, "refused": 0}
        for path in sorted(Path(DATA).rglob("*")):
            if not path.name.endswith((".nii", ".nii.gz", ".hdr")):
                continue
            with self.subTest(path=path):
                header, values = self.dump.read(path)
                if path.suffix == ".hdr":
                    self.assertIsNone(values)
                    self.assertRegex(header["error"], "pair of .hdr and .img|ANALYZE")
                    seen["refused"] += 1
                    continue
                image = nib.load(path)
                self.assertIsNotNone(values, header)
                np.testing.assert_array_equal(values, expected_values(image).reshape(values.shape, order="F"))
                if hasattr(image, "affine") and header["affine_source"] != "pixdim":
                    np.testing.assert_allclose(self.affine_of(header), image.affine[:3], atol=1e-5)
                seen["read"] += 1
        print(seen)
        self.assertGreaterEqual(seen["read"], 21)
        self.assertGreaterEqual(seen["refused"], 3)


if __name__ == "__main__":
    suite.main()
