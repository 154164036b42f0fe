"""TRX, TRK and TCK against nibabel, trx-python and MRtrix3, in both directions; hostile archives; conversions.

CINGULUM names the program. CINGULUM_TEST_DATA names the folder with real files (tractograms/); without it those tests are
skipped.
"""

import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.streamlines import Tractogram, TrkFile
from nibabel.streamlines.tck import TckFile
from trx import trx_file_memmap as trx_python

import hostile_trx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

CINGULUM = os.environ.get("CINGULUM", "build/bin/cingulum")
DATA = os.environ.get("CINGULUM_TEST_DATA", "")

warnings.simplefilter("ignore")


# Nothing here is about power loss.
os.environ["CINGULUM_NO_SYNC"] = "1"


def run(*words, **options):
    return subprocess.run([CINGULUM, *map(str, words)], capture_output=True, text=True, check=False, **options)


def read_trx(path):
    """A TRX archive without any reader of TRX: zipfile checks the CRCs, numpy the rest."""
    result = {}
    with zipfile.ZipFile(path) as archive:
        result["header"] = json.loads(archive.read("header.json"))
        for name in archive.namelist():
            if name.endswith(".json"):
                continue
            words = name.rsplit("/", 1)[-1].split(".")
            values = np.frombuffer(archive.read(name), np.dtype(words[-1]).newbyteorder("<"))
            if len(words) == 3:
                values = values.reshape(-1, int(words[1]))
            result[name[: -len(".".join(words)) - 0 or None] + words[0] if "/" in name else words[0]] = values
    return result


def split(positions, offsets):
    return [positions[a:b] for a, b in zip(offsets[:-1].astype(int), offsets[1:].astype(int))]


def ulps(a, b):
    """How many float32 numbers lie between, at most."""
    def ordered(x):
        bits = np.ascontiguousarray(x, "<f4").view("<i4").astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    return int(np.abs(ordered(a) - ordered(b)).max(initial=0))


def trackvis_to_world64(header):
    """The map of nibabel's get_affine_trackvis_to_rasmm, in float64 to the end."""
    vox_to_ras = np.array(header["voxel_to_rasmm"], np.float64)
    scale = np.diag([*(1 / np.array(header["voxel_sizes"], np.float64)), 1])
    half = np.eye(4)
    half[:3, 3] = -0.5
    order = header["voxel_order"]
    order = (order.item() if hasattr(order, "item") else order).decode().upper()
    own = nib.orientations.io_orientation(np.array(header["voxel_to_rasmm"], np.float32))
    turn = nib.orientations.inv_ornt_aff(
        nib.orientations.ornt_transform(nib.orientations.axcodes2ornt(order), own), header["dimensions"])
    return vox_to_ras @ (turn @ (half @ scale))


REFERENCES = {
    "ras": ([2, 2, 2], [[2, 0, 0, -90], [0, 2, 0, -126], [0, 0, 2, -72], [0, 0, 0, 1]]),
    "las anisotropic": ([1.5, 2, 3.25], [[-1.5, 0, 0, 90], [0, 2, 0, -126], [0, 0, 3.25, -72], [0, 0, 0, 1]]),
    "lps": ([1, 1, 1], [[-1, 0, 0, 90], [0, -1, 0, 126], [0, 0, 1, -72], [0, 0, 0, 1]]),
    "permuted": ([2, 3, 1], [[0, 0, 1, -20], [-2, 0, 0, 60], [0, 3, 0, -50], [0, 0, 0, 1]]),
    "oblique": ([1.9, 1.7, 2.9], None),
}


def reference(name):
    sizes, affine = REFERENCES[name]
    if affine is None:
        a, b = 0.3, -0.2
        turn = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]) @ np.array(
            [[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
        affine = np.eye(4)
        affine[:3, :3] = turn * sizes
        affine[:3, 3] = [-61.5, 33.3, -40.125]
    return np.array(affine, np.float64)


def random_streamlines(seed=1, lengths=(3, 1, 25, 2, 60), scale=60):
    generator = np.random.default_rng(seed)
    return [(generator.random((n, 3)) * scale - scale / 2).astype(np.float32) for n in lengths]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="cingulum-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def convert(self, source, target, *options, fails=None, code=1):
        before = self.content(target)
        result = run("convert", source, self.folder / target, "--json", "--quiet", *options)
        if fails is not None:
            self.assertEqual((result.returncode, result.stdout), (code, ""), f"{source}: {result.stderr}")
            self.assertIn(fails, result.stderr)
            self.assertEqual(self.content(target), before, f"{target} was changed by a conversion that failed")
            return None
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def content(self, target):
        """All files of a target, which may be a folder, and its sidecar, by name."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and not path.is_fifo()]
        return {path.name: path.read_bytes() for path in paths
                if str(path.relative_to(self.folder)).startswith(target)}

    def write_nifti(self, name, affine, shape=(40, 50, 30)):
        path = self.folder / name
        image = nib.Nifti1Image(np.zeros(shape, np.uint8), affine)
        image.set_sform(affine, 1)
        nib.save(image, path)
        return path

    def assert_equal_lists(self, found, expected, largest_ulps=0, atol=0):
        self.assertEqual([len(s) for s in found], [len(s) for s in expected])
        for a, b in zip(found, expected):
            if atol:
                np.testing.assert_allclose(a, b, rtol=0, atol=atol)
            else:
                self.assertLessEqual(ulps(a, b), largest_ulps)


class Trk(Case):
    def save_by_nibabel(self, name, affine, streamlines, order=None, fields=True):
        tractogram = Tractogram(streamlines, affine_to_rasmm=np.eye(4))
        if fields:
            tractogram.data_per_point["fa"] = [np.arange(len(s), dtype="f4")[:, None] for s in streamlines]
            tractogram.data_per_point["direction"] = [s[::-1].copy() for s in streamlines]
            tractogram.data_per_streamline["id"] = np.arange(len(streamlines), dtype="f4")[:, None]
            tractogram.data_per_streamline["ends"] = np.arange(2 * len(streamlines), dtype="f4").reshape(-1, 2)
        header = {"dimensions": [40, 50, 30], "voxel_sizes": np.sqrt((affine[:3, :3] ** 2).sum(0)),
                  "voxel_to_rasmm": affine.astype("f4"),
                  "voxel_order": (order or "".join(nib.aff2axcodes(affine))).encode()}
        nib.streamlines.save(TrkFile(tractogram, header), self.folder / name)
        return self.folder / name

    def test_files_by_nibabel_are_read_exactly(self):
        for name in REFERENCES:
            for order in (None, "LPS", "RAS", "RPI"):
                if name == "permuted" and order:
                    continue
                with self.subTest(reference=name, order=order):
                    path = self.save_by_nibabel("a.trk", reference(name), random_streamlines(), order)
                    self.convert(path, "a.trx", "--force")
                    found = read_trx(self.folder / "a.trx")
                    file = nib.streamlines.load(path, lazy_load=True)
                    matrix = trackvis_to_world64(file.header)
                    raw = np.concatenate([p for p, _, _ in TrkFile._read(str(path), file.header)]).astype(np.float64)
                    exact = (((matrix[:3, 0] * raw[:, :1] + matrix[:3, 1] * raw[:, 1:2]) + matrix[:3, 2] * raw[:, 2:])
                             + matrix[:3, 3])
                    # Rounded once from float64; the composed affine itself is rounded in the last place of float64.
                    self.assertLessEqual(ulps(found["positions"], exact.astype("f4")), 1)
                    np.testing.assert_allclose(found["positions"], exact, rtol=2**-24, atol=1e-12)
                    # nibabel computes in float32.
                    loaded = nib.streamlines.load(path)
                    np.testing.assert_allclose(found["positions"], loaded.streamlines.get_data(), rtol=0, atol=1e-4)
                    np.testing.assert_array_equal(found["dpv/fa"].ravel(), loaded.tractogram.data_per_point["fa"].get_data().ravel())
                    np.testing.assert_array_equal(found["dpv/direction"], loaded.tractogram.data_per_point["direction"].get_data())
                    np.testing.assert_array_equal(found["dps/id"].ravel(), loaded.tractogram.data_per_streamline["id"].ravel())
                    np.testing.assert_array_equal(found["dps/ends"], loaded.tractogram.data_per_streamline["ends"])
                    np.testing.assert_array_equal(found["header"]["VOXEL_TO_RASMM"], file.header["voxel_to_rasmm"])

    def test_a_file_comes_back_bit_for_bit(self):
        for name in REFERENCES:
            path = self.save_by_nibabel("a.trk", reference(name), random_streamlines(2))
            self.convert(path, "b.trk", "--force")
            a, b = path.read_bytes(), (self.folder / "b.trk").read_bytes()
            # The fields are written in the order of the file, so the records are equal byte for byte.
            self.assertEqual(a[1000:], b[1000:], name)

    def test_our_files_are_read_by_nibabel(self):
        streamlines = random_streamlines(3)
        nib.streamlines.save(TckFile(Tractogram(streamlines, affine_to_rasmm=np.eye(4))), self.folder / "a.tck")
        for name in REFERENCES:
            with self.subTest(reference=name):
                affine = reference(name)
                image = self.write_nifti("r.nii.gz", affine)
                self.convert(self.folder / "a.tck", "a.trk", "--reference", image, "--force")
                loaded = nib.streamlines.load(self.folder / "a.trk")
                self.assert_equal_lists(loaded.streamlines, streamlines, atol=1e-4)
                np.testing.assert_array_equal(loaded.header["dimensions"], [40, 50, 30])
                np.testing.assert_array_equal(loaded.header["voxel_to_rasmm"], affine.astype("f4"))
                self.assertEqual(loaded.header["voxel_order"].decode(), "".join(nib.aff2axcodes(affine)))
                np.testing.assert_allclose(loaded.header["voxel_sizes"], np.sqrt((affine[:3, :3] ** 2).sum(0)), rtol=1e-6)
                self.assertEqual(loaded.header["nb_streamlines"], len(streamlines))

    def test_our_fields_are_read_by_nibabel(self):
        path = self.save_by_nibabel("a.trk", reference("oblique"), random_streamlines(4))
        self.convert(path, "a.trx")
        self.convert(self.folder / "a.trx", "b.trk")
        a, b = nib.streamlines.load(path), nib.streamlines.load(self.folder / "b.trk")
        for key in ("fa", "direction"):
            np.testing.assert_array_equal(a.tractogram.data_per_point[key].get_data(),
                                          b.tractogram.data_per_point[key].get_data())
        for key in ("id", "ends"):
            np.testing.assert_array_equal(a.tractogram.data_per_streamline[key], b.tractogram.data_per_streamline[key])

    def test_as_many_streamlines_without_points_as_fit_are_read(self):
        """Nothing but their counts: the file is not a byte longer than the header needs."""
        path = self.save_by_nibabel("a.trk", reference("ras"), random_streamlines(6, (1,)), fields=False)
        header = bytearray(path.read_bytes()[:1000])
        header[988:992] = struct.pack("<i", 3)
        path.write_bytes(bytes(header) + b"\0" * 12)
        summary = self.convert(path, "a.tck")
        self.assertEqual((summary["streamlines"], summary["points"]), (3, 0))
        path.write_bytes(bytes(header) + b"\0" * 11)
        self.convert(path, "b.tck", fails="1011 bytes are too few for the 3 streamlines of the header")

    def test_names_that_fill_the_columns_and_names_of_nothing(self):
        path = self.save_by_nibabel("a.trk", reference("ras"), random_streamlines(6))
        content = bytearray(path.read_bytes())
        self.assertEqual(struct.unpack("<h", content[36:38])[0], 4)  # fa and direction
        # A third name with zero columns, as nibabel itself writes for an empty field.
        content[38 + 2 * 20:38 + 3 * 20] = b"none\x000".ljust(20, b"\0")
        path.write_bytes(content)
        self.convert(path, "a.trx")
        found = read_trx(self.folder / "a.trx")
        self.assertEqual(sorted(name for name in found if name.startswith("dpv/")), ["dpv/direction", "dpv/fa"])

    def test_a_version_1_file_is_read_as_nibabel_does(self):
        path = self.save_by_nibabel("a.trk", reference("ras"), random_streamlines(5))
        content = bytearray(path.read_bytes())
        content[992:996] = struct.pack("<i", 1)
        path.write_bytes(content)
        summary = self.convert(path, "a.tck")
        self.assertTrue(any("version 1" in w for w in summary["warnings"]))
        self.assert_equal_lists(nib.streamlines.load(self.folder / "a.tck").streamlines,
                                nib.streamlines.load(path).streamlines, atol=1e-4)


class Tck(Case):
    def test_files_by_nibabel_and_ours_are_equal(self):
        streamlines = random_streamlines(7)
        path = self.folder / "a.tck"
        nib.streamlines.save(TckFile(Tractogram(streamlines, affine_to_rasmm=np.eye(4))), path)
        self.convert(path, "b.tck")
        self.assert_equal_lists(nib.streamlines.load(self.folder / "b.tck").streamlines, streamlines)

    def test_a_header_that_counts_wrong_is_a_warning(self):
        path = self.folder / "a.tck"
        nib.streamlines.save(TckFile(Tractogram(random_streamlines(7), affine_to_rasmm=np.eye(4))), path)
        content = path.read_bytes()
        self.assertEqual(content.count(b"count: 0000000005"), 1)
        for count, warnings in ((b"0000000005", []), (b"0000000006", [f"{path}: the header counts 6 streamlines, the file has 5"])):
            path.write_bytes(content.replace(b"count: 0000000005", b"count: " + count))
            summary = self.convert(path, "b.tck", "--force")
            self.assertEqual(summary["streamlines"], 5)
            self.assertEqual([text for text in summary["warnings"] if "counts" in text], warnings)

    @suite.needs("mrtrix")
    def test_mrtrix_reads_ours(self):
        streamlines = random_streamlines(8, (30, 5, 12))
        path = self.folder / "a.tck"
        nib.streamlines.save(TckFile(Tractogram(streamlines, affine_to_rasmm=np.eye(4))), path)
        lengths = [np.linalg.norm(np.diff(s, axis=0), axis=1).sum() for s in streamlines]
        for target, options in (("b.tck", []), ("c.tck", ["--float64"])):
            self.convert(path, target, *options)
            info = subprocess.run(["tckinfo", "-count", self.folder / target], capture_output=True, text=True, check=True)
            self.assertIn("actual count in file: 3", info.stdout)
            self.assertIn("count:                00000000000000000003", info.stdout)
            dump = self.folder / "lengths.txt"
            subprocess.run(["tckstats", "-force", "-quiet", "-dump", dump, self.folder / target], check=True, capture_output=True)
            found = np.loadtxt(dump)
            np.testing.assert_allclose(found, lengths, rtol=1e-5)

    @suite.needs("mrtrix")
    def test_files_by_mrtrix_are_read(self):
        points = self.folder / "s-[].txt"
        streamlines = random_streamlines(9, (4, 7))
        for i, s in enumerate(streamlines):
            np.savetxt(self.folder / f"s-{i:03d}.txt", s, fmt="%.9g")
        subprocess.run(["tckconvert", "-quiet", points, self.folder / "m.tck"], check=True, capture_output=True)
        self.convert(self.folder / "m.tck", "b.tck")
        self.assert_equal_lists(nib.streamlines.load(self.folder / "b.tck").streamlines, streamlines)
        # And back into text by MRtrix from ours.
        subprocess.run(["tckconvert", "-quiet", self.folder / "b.tck", self.folder / "t-[].txt"], check=True, capture_output=True)
        for i, s in enumerate(streamlines):
            np.testing.assert_allclose(np.loadtxt(self.folder / f"t-{i:07d}.txt").reshape(-1, 3), s, rtol=1e-5, atol=1e-6)

    def test_notes_are_kept(self):
        path = self.folder / "a.tck"
        nib.streamlines.save(TckFile(Tractogram(random_streamlines(), affine_to_rasmm=np.eye(4)),
                                     header={"method": "iFOD2", "roi": "seed a"}), path)
        self.convert(path, "b.tck")
        header = nib.streamlines.load(self.folder / "b.tck").header
        self.assertEqual((header["method"], header["roi"]), ("iFOD2", "seed a"))

    def test_fields_and_groups_that_are_lost_are_named(self):
        (self.folder / "a.trx").write_bytes(dict(hostile_trx.odd_but_good())["plain"])
        result = run("convert", self.folder / "a.trx", self.folder / "a.tck")
        self.assertEqual(result.returncode, 0)
        for name in ("fa (per point)", "id (per streamline)", "left (group)"):
            self.assertIn(name, result.stderr)

    def test_without_a_grid_the_option_is_named(self):
        nib.streamlines.save(TckFile(Tractogram(random_streamlines(), affine_to_rasmm=np.eye(4))), self.folder / "a.tck")
        for target in ("b.trk", "b.trx"):
            self.convert(self.folder / "a.tck", target, fails="--reference", code=2)
        image = self.write_nifti("r.nii", reference("oblique"))
        self.convert(self.folder / "a.tck", "b.trx", "--reference", image)
        header = read_trx(self.folder / "b.trx")["header"]
        self.assertEqual(header["DIMENSIONS"], [40, 50, 30])
        np.testing.assert_allclose(header["VOXEL_TO_RASMM"], reference("oblique"), rtol=1e-6, atol=1e-5)
        # A tractogram lends its grid too.
        self.convert(self.folder / "a.tck", "c.trx", "--reference", self.folder / "b.trx")
        self.assertEqual((self.folder / "c.trx").read_bytes(), (self.folder / "b.trx").read_bytes())


class Trx(Case):
    TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")

    def by_trx_python(self, position_type="float32", streamlines=None):
        streamlines = streamlines or random_streamlines(10)
        points = sum(map(len, streamlines))
        affine = reference("oblique")
        trx = trx_python.TrxFile(nb_vertices=points, nb_streamlines=len(streamlines))
        trx.header["VOXEL_TO_RASMM"] = affine.astype("f4")
        trx.header["DIMENSIONS"] = np.array([40, 50, 30], np.uint16)
        trx.streamlines._data = np.concatenate(streamlines).astype(position_type)
        lengths = np.array(list(map(len, streamlines)), np.uint32)
        trx.streamlines._lengths = lengths
        trx.streamlines._offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.uint64)
        for i, kind in enumerate(self.TYPES):
            values = (np.arange(points * (1 + i % 3)) % 100).astype(kind).reshape(points, -1)
            sequence = nib.streamlines.ArraySequence()
            sequence._data, sequence._offsets, sequence._lengths = values, trx.streamlines._offsets, lengths
            trx.data_per_vertex[f"v_{kind}"] = sequence
            trx.data_per_streamline[f"s_{kind}"] = (np.arange(len(streamlines) * (1 + i % 2)) % 100).astype(kind).reshape(
                len(streamlines), -1)
        trx.groups = {"left": np.array([0, 2], np.uint32), "right": np.array([1, 3, 4], np.uint32)}
        trx.data_per_group = {"left": {"volume": np.array([[1.5]], np.float32), "centre": np.array([[1, 2, 3]], np.float64)}}
        return trx

    def assert_equal_trx(self, a, b):
        np.testing.assert_array_equal(a.streamlines._data, b.streamlines._data)
        self.assertEqual(a.streamlines._data.dtype, b.streamlines._data.dtype)
        np.testing.assert_array_equal(a.streamlines._offsets, b.streamlines._offsets)
        np.testing.assert_array_equal(a.streamlines._lengths, b.streamlines._lengths)
        for kind, of in (("data_per_vertex", lambda x: x._data), ("data_per_streamline", lambda x: x), ("groups", lambda x: x)):
            left, right = getattr(a, kind), getattr(b, kind)
            self.assertEqual(sorted(left), sorted(right))
            for key in left:
                self.assertEqual(of(left[key]).dtype, of(right[key]).dtype)
                np.testing.assert_array_equal(of(left[key]), of(right[key]))
        self.assertEqual({g: sorted(d) for g, d in a.data_per_group.items()}, {g: sorted(d) for g, d in b.data_per_group.items()})
        for group, data in a.data_per_group.items():
            for key in data:
                np.testing.assert_array_equal(data[key], b.data_per_group[group][key])
        np.testing.assert_array_equal(a.header["VOXEL_TO_RASMM"], b.header["VOXEL_TO_RASMM"])
        np.testing.assert_array_equal(a.header["DIMENSIONS"], b.header["DIMENSIONS"])

    def test_files_by_trx_python_come_back_equal(self):
        for kind in ("float16", "float32", "float64"):
            for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                with self.subTest(kind=kind, compression=compression):
                    trx = self.by_trx_python(kind)
                    path = self.folder / "a.trx"
                    path.unlink(missing_ok=True)
                    trx_python.save(trx, str(path), compression_standard=compression)
                    for target in ("b.trx", "b.trx.d"):
                        self.convert(path, target, "--force")
                        again = trx_python.load(str(self.folder / target))
                        self.assert_equal_trx(again, trx_python.load(str(path)))
                    # And from the folder into an archive.
                    self.convert(self.folder / "b.trx.d", "c.trx", "--force")
                    self.assert_equal_trx(trx_python.load(str(self.folder / "c.trx")), trx_python.load(str(path)))

    def test_folders_by_trx_python_are_read(self):
        trx = self.by_trx_python()
        (self.folder / "d").mkdir()
        path = self.folder / "a.trx"
        trx_python.save(trx, str(path))
        with zipfile.ZipFile(path) as archive:
            archive.extractall(self.folder / "d")
        self.convert(self.folder / "d", "b.trx")
        self.assert_equal_trx(trx_python.load(str(self.folder / "b.trx")), trx_python.load(str(path)))

    def test_half_precision_is_that_of_numpy(self):
        trx = self.by_trx_python("float64", [s.astype("f8") * 1.000000123 for s in random_streamlines(11)])
        trx_python.save(trx, str(self.folder / "a.trx"))
        self.convert(self.folder / "a.trx", "b.trx", "--float16")
        found = read_trx(self.folder / "b.trx")["positions"]
        self.assertEqual(found.dtype, np.float16)
        np.testing.assert_array_equal(found, np.concatenate([s.astype("f8") * 1.000000123 for s in random_streamlines(11)]).astype("f2"))
        self.convert(self.folder / "b.trx", "c.trx", "--float64")
        np.testing.assert_array_equal(read_trx(self.folder / "c.trx")["positions"], found.astype("f8"))

    def test_deflated_archives_of_ours_are_read_by_zipfile_and_trx_python(self):
        for kind in ("float16", "float32", "float64"):
            trx_python.save(self.by_trx_python(kind), str(self.folder / "a.trx"), compression_standard=zipfile.ZIP_STORED)
            self.convert(self.folder / "a.trx", "plain.trx", "--force")
            bytes_of = set()
            for threads in (1, 4):
                self.convert(self.folder / "a.trx", "b.trx", "--force", "--deflate", "--threads", threads)
                bytes_of.add((self.folder / "b.trx").read_bytes())
            self.assertEqual(len(bytes_of), 1)
            self.assert_equal_trx(trx_python.load(str(self.folder / "b.trx")), trx_python.load(str(self.folder / "a.trx")))
            with zipfile.ZipFile(self.folder / "b.trx") as archive, zipfile.ZipFile(self.folder / "plain.trx") as plain:
                self.assertIsNone(archive.testzip())
                self.assertEqual(archive.namelist(), plain.namelist())
                for info in archive.infolist():
                    stored = info.filename == "header.json"
                    self.assertEqual(info.compress_type, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
                    self.assertEqual(info.date_time, (1980, 1, 1, 0, 0, 0))
                    self.assertEqual(archive.read(info), plain.read(info.filename))
            # Back to a stored archive: the same bytes as without the detour.
            self.convert(self.folder / "b.trx", "c.trx", "--force")
            self.assertEqual((self.folder / "c.trx").read_bytes(), (self.folder / "plain.trx").read_bytes())
            facts = json.loads(run("info", "--json", self.folder / "b.trx").stdout)
            self.assertIn('"deflated": true', json.dumps(facts))
            self.assertIn(f'"position_type": "{kind}"', json.dumps(facts))
            self.assertEqual(run("verify", "--require", self.folder / "b.trx").returncode, 0)
        for target in ("x.trk", "x.tck", "x.trx.d"):
            self.convert(self.folder / "a.trx", target, "--deflate", fails="--deflate", code=2)

    def test_numbers_that_shrink_a_thousandfold_are_written_so_that_they_can_be_read(self):
        """60 MB of one point over and over, which a reader would take for a bomb."""
        count = 5000000
        with zipfile.ZipFile(self.folder / "a.trx", "w") as archive:
            archive.writestr("header.json", hostile_trx.header(NB_STREAMLINES=1, NB_VERTICES=count))
            archive.writestr("positions.3.float32", np.zeros((count, 3), "<f4").tobytes())
            archive.writestr("offsets.uint64", np.array([0, count], "<u8").tobytes())
        self.convert(self.folder / "a.trx", "b.trx", "--deflate")
        size = (self.folder / "b.trx").stat().st_size
        self.assertLess(size, 10 << 20)
        self.assertLessEqual(12 * count, (16 << 20) + 8 * size)
        self.convert(self.folder / "b.trx", "c.trx")
        self.assertEqual((read_trx(self.folder / "c.trx")["positions"] == 0).all(), True)
        # What any other zip makes of it is refused.
        with zipfile.ZipFile(self.folder / "d.trx", "w", zipfile.ZIP_DEFLATED) as packed, zipfile.ZipFile(self.folder / "a.trx") as plain:
            for name in plain.namelist():
                packed.writestr(name, plain.read(name))
        self.convert(self.folder / "d.trx", "e.trx", fails="unpack to")

    def test_double_precision_passes_through_unrounded(self):
        exact = [s.astype("f8") * (1 + 2.0**-40) for s in random_streamlines(13)]
        trx_python.save(self.by_trx_python("float64", exact), str(self.folder / "a.trx"))
        for target, options in (("b.trx", ()), ("c.trx", ("--deflate",)), ("d.trx", ("--float64",)), ("e.tck", ()), ("f.trx.d", ())):
            self.convert(self.folder / "a.trx", target, *options)
            self.convert(self.folder / target, "again.trx", "--force", "--reference", self.folder / "a.trx")
            np.testing.assert_array_equal(read_trx(self.folder / "again.trx")["positions"], np.concatenate(exact))

    def test_layout_of_the_archive(self):
        trx_python.save(self.by_trx_python(), str(self.folder / "a.trx"))
        self.convert(self.folder / "a.trx", "b.trx")
        with zipfile.ZipFile(self.folder / "b.trx") as archive:
            infos = archive.infolist()
            self.assertIsNone(archive.testzip())
            self.assertEqual([i.filename for i in infos[:3]], ["header.json", "positions.3.float32", "offsets.uint64"])
            for info in infos:
                self.assertEqual(info.date_time, (1980, 1, 1, 0, 0, 0))
                self.assertEqual(info.compress_type, zipfile.ZIP_STORED)
            content = (self.folder / "b.trx").read_bytes()
            name, extra = struct.unpack("<HH", content[infos[1].header_offset + 26 : infos[1].header_offset + 30])
            self.assertEqual((infos[1].header_offset + 30 + name + extra) % 64, 0, "positions are not aligned")
            self.assertEqual(infos[2].file_size, 8 * (5 + 1))

    def test_empty_and_tiny_tractograms(self):
        for lengths in ((), (1,), (0, 0), (0, 1, 0, 3)):
            content = hostile_trx.parts()
            streamlines = random_streamlines(12, lengths)
            count, points = len(lengths), sum(lengths)
            content = {
                "header.json": hostile_trx.header(NB_STREAMLINES=count, NB_VERTICES=points),
                "positions.3.float32": b"".join(s.tobytes() for s in streamlines),
                "offsets.uint64": np.concatenate([[0], np.cumsum(lengths)]).astype("<u8").tobytes(),
            }
            (self.folder / "a.trx").write_bytes(hostile_trx.build(hostile_trx.entries_of(content)))
            for target in ("b.trx", "b.trk", "b.tck", "b.trx.d"):
                with self.subTest(lengths=lengths, target=target):
                    summary = self.convert(self.folder / "a.trx", target, "--force")
                    self.assertEqual((summary["streamlines"], summary["points"]), (count, points))
                    again = self.convert(self.folder / target, "again.trx", "--force", "--reference", self.folder / "a.trx")
                    self.assertEqual((again["streamlines"], again["points"]), (count, points))
                    if target == "b.trk":
                        # Its sequences leave out what has no points; its reader of records does not.
                        header = nib.streamlines.load(self.folder / target, lazy_load=True).header
                        records = TrkFile._read(str(self.folder / target), header)
                        self.assertEqual([len(points) for points, _, _ in records], list(lengths))
                    if target == "b.tck":  # nibabel leaves out what has no points
                        self.assertEqual([len(s) for s in nib.streamlines.load(self.folder / target).streamlines],
                                         [n for n in lengths if n > 0])
                    if target.startswith("b.trx") and points > 0:
                        self.assertEqual(list(trx_python.load(str(self.folder / target)).streamlines._lengths), list(lengths))


class Hostile(Case):
    def test_every_hostile_archive_is_refused(self):
        count = 0
        for what, content in hostile_trx.hostile():
            path = self.folder / "a.trx"
            path.write_bytes(content)
            result = run("convert", path, self.folder / "out.tck", "--quiet", timeout=10)
            self.assertEqual(result.returncode, 1, f"{what}: {result.stdout}{result.stderr}")
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, f"{what}: {result.stderr}")
            self.assertIn("a.trx", result.stderr, what)
            self.assertEqual(sorted(os.listdir(self.folder)), ["a.trx"], what)
            count += 1
        print(f"{count} hostile archives refused")
        self.assertEqual(count, 418)

    def test_an_entry_inside_another_is_refused_as_overlapping(self):
        (self.folder / "a.trx").write_bytes(dict(hostile_trx.hostile())["an entry inside another"])
        self.convert(self.folder / "a.trx", "b.tck", fails="overlap")

    def test_odd_archives_are_read(self):
        for what, content in hostile_trx.odd_but_good():
            with self.subTest(what):
                (self.folder / "a.trx").write_bytes(content)
                self.convert(self.folder / "a.trx", "b.trx", "--force")
                found = read_trx(self.folder / "b.trx")
                np.testing.assert_array_equal(found["positions"].ravel(), np.arange(24))
                np.testing.assert_array_equal(found["offsets"], [0, 3, 3, 4, 8])
                np.testing.assert_array_equal(found["groups/left"], [0, 3])

    def test_what_is_no_tractogram_is_refused(self):
        for content in (b"", b"hello", b"\x1f\x8b", b"\x1f\x8b\x08\x00" + b"\0" * 20, os.urandom(2000), b"TRACK", b"mrtrix tracks"):
            (self.folder / "x").write_bytes(content)
            self.convert(self.folder / "x", "y.tck", fails="reading")
        os.mkfifo(self.folder / "pipe")
        self.convert(self.folder / "pipe", "y.tck", fails="not a regular file", code=2)
        self.convert(self.folder / "missing", "y.tck", fails="missing", code=2)


class Conversion(Case):
    def test_the_same_run_gives_the_same_bytes(self):
        (self.folder / "a.trx").write_bytes(dict(hostile_trx.odd_but_good())["plain"])
        for suffix in ("trx", "trk", "tck"):
            self.convert(self.folder / "a.trx", f"b.{suffix}")
            first = (self.folder / f"b.{suffix}").read_bytes()
            sidecar = json.loads((self.folder / f"b.{suffix}.json").read_text())
            self.convert(self.folder / "a.trx", f"b.{suffix}", "--force")
            self.assertEqual((self.folder / f"b.{suffix}").read_bytes(), first)
            again = json.loads((self.folder / f"b.{suffix}.json").read_text())
            self.assertEqual(again["bytes"], len(first))
            self.assertRegex(again["xxh3_128"], "^[0-9a-f]{32}$")
            sidecar.pop("run"), again.pop("run")
            self.assertEqual(again, sidecar)

    def test_verify_finds_every_edit_by_the_sidecar(self):
        (self.folder / "a.trx").write_bytes(dict(hostile_trx.odd_but_good())["plain"])
        generator = np.random.default_rng(5)
        for name in ("b.trk", "b.tck", "b.trx"):
            path = self.folder / name
            self.convert(self.folder / "a.trx", name)
            self.assertEqual(run("verify", path).returncode, 0)
            good = path.read_bytes()
            for _ in range(20):
                edited = bytearray(good)
                edited[generator.integers(len(good))] ^= int(generator.integers(1, 256))
                path.write_bytes(edited)
                result = run("verify", path)
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{path}: DAMAGED", result.stdout)

    def test_an_existing_output_is_refused_without_force(self):
        (self.folder / "a.trx").write_bytes(dict(hostile_trx.odd_but_good())["plain"])
        for target in ("b.trx", "b.trk", "b.tck", "b.trx.d"):
            self.convert(self.folder / "a.trx", target)
            self.convert(self.folder / "a.trx", target, "--float64", fails="--force")
            self.convert(self.folder / "a.trx", target, "--force")

    def test_a_file_may_replace_itself(self):
        content = dict(hostile_trx.odd_but_good())["plain"]
        (self.folder / "a.trx").write_bytes(content)
        self.convert(self.folder / "a.trx", "a.trx", "--force", "--float64")
        found = read_trx(self.folder / "a.trx")["positions"]
        self.assertEqual(found.dtype, np.float64)
        np.testing.assert_array_equal(found.ravel(), np.arange(24))

    def test_linearise_keeps_ends_and_fields_and_the_tolerance(self):
        t = np.linspace(0, 6, 400)
        helix = np.stack([20 * np.cos(t), 20 * np.sin(t), 5 * t], 1).astype("f4")
        tractogram = Tractogram([helix], affine_to_rasmm=np.eye(4))
        tractogram.data_per_point["t"] = [t.astype("f4")[:, None]]
        nib.streamlines.save(TrkFile(tractogram, {"dimensions": [90, 90, 90], "voxel_sizes": [1, 1, 1],
                                                  "voxel_to_rasmm": np.eye(4), "voxel_order": b"RAS"}), self.folder / "a.trk")
        summary = self.convert(self.folder / "a.trk", "b.trx", "--linearise", "0.1", "--max-segment-length", "8")
        self.convert(self.folder / "a.trk", "older.trx", "--linearise", "0.1", "--max-segment-mm", "8")
        self.assertEqual((self.folder / "older.trx").read_bytes(), (self.folder / "b.trx").read_bytes())
        self.convert(self.folder / "a.trk", "c.trx", "--max-segment-mm", "8", "--max-segment-length", "8", fails="the same", code=2)
        self.assertEqual(summary["points_read"], 400)
        self.assertLess(summary["points"], 60)
        found = read_trx(self.folder / "b.trx")
        kept, parameter = found["positions"].astype("f8"), found["dpv/t"].ravel()
        np.testing.assert_allclose(kept[[0, -1]], helix[[0, -1]], atol=1e-5)
        np.testing.assert_allclose(kept[:, 2], 5 * parameter, atol=1e-4)
        self.assertLessEqual(np.linalg.norm(np.diff(kept, axis=0), axis=1).max(), 8 + 1e-5)
        for point in helix.astype("f8"):
            a, b = kept[:-1], kept[1:]
            share = np.clip(((point - a) * (b - a)).sum(1) / ((b - a) ** 2).sum(1), 0, 1)
            self.assertLessEqual(np.linalg.norm(point - a - share[:, None] * (b - a), axis=1).min(), 0.1 + 1e-4)

    def test_memory_does_not_grow_with_the_file(self):
        count, length = 20000, 300
        positions = np.random.default_rng(0).random((count * length, 3), np.float32)
        content = {
            "header.json": hostile_trx.header(NB_STREAMLINES=count, NB_VERTICES=count * length),
            "positions.3.float32": positions.tobytes(),
            "offsets.uint64": (np.arange(count + 1, dtype="<u8") * length).tobytes(),
            "dpv/fa.2.float64": np.zeros((count * length, 2), "<f8").tobytes(),
        }
        path = self.folder / "a.trx"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data)
        limit = 64 << 20  # of the 168 MB
        for target in ("b.trx", "b.trk", "b.tck"):
            result = run("convert", path, self.folder / target, "--quiet",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
            self.assertEqual(result.returncode, 0, result.stderr)
            (self.folder / target).unlink()


@suite.needs("data")
class RealFiles(Case):
    # Where we and nibabel disagree on purpose.
    EXCEPTIONS = {}

    def test_all_are_read_or_refused_as_nibabel_does(self):
        files = sorted(p for p in (Path(DATA) / "tractograms").rglob("*")
                       if p.name.endswith((".trk", ".trk.gz", ".tck", ".trx")))
        self.assertGreater(len(files), 15)
        read = refused = 0
        for path in files:
            with self.subTest(path.name):
                try:
                    if path.name.endswith(".trx"):
                        trx = trx_python.load(str(path))
                        expected, offsets = np.array(trx.streamlines._data), np.append(trx.streamlines._offsets, trx.header["NB_VERTICES"])
                    else:
                        streamlines = nib.streamlines.load(path).streamlines
                        expected = streamlines.get_data()
                        offsets = np.concatenate([[0], np.cumsum([len(s) for s in streamlines])])
                except Exception as error:  # noqa: BLE001
                    expected = error
                image = self.write_nifti("r.nii", np.eye(4))
                result = run("convert", path, self.folder / "a.trx", "--force", "--quiet", "--reference", image)
                if path.name in self.EXCEPTIONS:
                    self.assertEqual(result.returncode, self.EXCEPTIONS[path.name])
                    continue
                self.assertEqual(result.returncode, 1 if isinstance(expected, Exception) else 0, f"{expected!r}: {result.stderr}")
                if isinstance(expected, Exception):
                    refused += 1
                    continue
                read += 1
                found = read_trx(self.folder / "a.trx")
                np.testing.assert_array_equal(found["offsets"], offsets)
                if len(expected) > 0:
                    # nibabel's maps are float32: a few units in the last place of the largest coordinate.
                    largest = np.abs(expected).max()
                    np.testing.assert_allclose(found["positions"], expected, rtol=0, atol=4e-7 * max(largest, 100))
                if path.suffix == ".trk" and len(expected) > 0:
                    data = nib.streamlines.load(path).tractogram
                    for name, values in data.data_per_point.items():
                        np.testing.assert_array_equal(found["dpv/" + name.replace(".", "_")].reshape(len(expected), -1), values.get_data())
                    for name, values in data.data_per_streamline.items():
                        np.testing.assert_array_equal(found["dps/" + name.replace(".", "_")].reshape(len(values), -1), values)
                if path.suffix in (".tck", ".trx") and len(expected) > 0:
                    self.assertEqual(ulps(found["positions"], expected), 0)
        print(f"{read} files read as nibabel and trx-python read them, {refused} refused as they refuse them")
        self.assertGreaterEqual(read, 26)
        self.assertGreaterEqual(refused, 3)


if __name__ == "__main__":
    suite.main(warnings="ignore")
