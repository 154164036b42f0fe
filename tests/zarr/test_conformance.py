"""Zarr arrays that others have written, each equal to what zarr-python reads, or refused for a reason that is listed here.

CINGULUM_TEST_ZARR_PROBE names the program zarr_probe; CINGULUM_TEST_DATA the folder of real data (skipped without).
"""
import collections
import json
import pathlib
import sys
import unittest
import warnings
import zipfile

import numpy
import zarr

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)
from probe import Probe, Refused  # noqa: E402

# What is refused, by a word of the message, and how often it is in the data.
REFUSED = {
    "strings are not supported": "fixed and variable strings",
    "strings and objects are not supported": "vlen-utf8, json2",
    "objects are not supported": "object arrays",
    "codec 'zfpy' is not supported": "zfp in v2",
    "codec 'numcodecs.zfpy' is not supported": "zfp in v3",
    "codec 'pcodec' is not supported": "pcodec in v2",
    "codec 'numcodecs.pcodec' is not supported": "pcodec in v3",
}


def arrays_in(folder):
    """Folders below `folder` that are arrays."""
    for name in sorted([*folder.rglob("zarr.json"), *folder.rglob(".zarray")]):
        if name.name == ".zarray" or json.loads(name.read_text(encoding="utf-8"))["node_type"] == "array":
            yield name.parent


def zarr_pythons(store, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.open_array(store, path=path, mode="r")
        return numpy.asarray(array[...])


def same(a, b):
    return a.dtype.newbyteorder("<") == b.dtype.newbyteorder("<") and a.shape == b.shape and (
        a.tobytes() == b.astype(b.dtype.newbyteorder("<")).tobytes())


class OthersArrays(unittest.TestCase):
    def setUp(self):
        self.data = suite.need_data("zarr")
        self.probe = Probe()
        self.addCleanup(self.probe.close)
        self.seen = collections.Counter()

    def compare(self, store, path, opened, root=""):
        try:
            ours, _ = self.probe.read(store, path)
        except Refused as refused:
            reasons = [reason for reason in REFUSED if reason in str(refused)]
            self.assertEqual(len(reasons), 1, f"{store} {path} is refused: {refused}")
            self.seen[reasons[0]] += 1
            return
        theirs = zarr_pythons(opened, root + path)
        self.assertTrue(same(ours, theirs), f"{store} {path}: {ours.dtype} {ours.shape}, {theirs.dtype} {theirs.shape}")
        self.seen["equal"] += 1

    def test_every_array_in_a_folder_is_equal_or_refused_for_a_reason(self):
        for array in arrays_in(self.data):
            with self.subTest(array=str(array.relative_to(self.data))):
                self.compare(array, "", str(array))
        print(dict(self.seen))
        self.assertGreaterEqual(self.seen["equal"], 85)
        self.assertGreaterEqual(sum(self.seen.values()), 110)

    def test_every_array_in_an_archive_is_equal_or_refused_for_a_reason(self):
        archives = sorted(self.data.rglob("*.zip"))
        self.assertEqual(len(archives), 8)
        for archive in archives:
            names = zipfile.ZipFile(archive).namelist()
            folders = {name.split("/")[0] for name in names}
            root = f"{folders.pop()}/" if len(folders) == 1 and not any(
                name in names for name in ("zarr.json", ".zgroup", ".zarray")) else ""
            for name in names:
                folder, _, last = name.rpartition("/")
                if last not in ("zarr.json", ".zarray"):
                    continue
                if last == "zarr.json" and json.loads(zipfile.ZipFile(archive).read(name))["node_type"] != "array":
                    continue
                path = folder[len(root):]
                with self.subTest(archive=archive.name, path=path):
                    self.compare(archive, path, zarr.storage.ZipStore(archive, mode="r"), root)
        print(dict(self.seen))
        self.assertGreaterEqual(self.seen["equal"], 50)


if __name__ == "__main__":
    suite.main()
