"""A TRX archive above 4 GB, and what others make of it: Python's zipfile and trx-python read what we wrote, and we read
it back to the byte. Needs 10 GB of disk: CINGULUM_TEST_LONG=1 only. (Archives with forged zip64 records are among the
hostile files of test_tractograms.py.)
"""
import json
import os
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

import numpy as np
from trx import trx_file_memmap

CINGULUM = os.environ.get("CINGULUM", "build/bin/cingulum")
LONG = os.environ.get("CINGULUM_TEST_LONG", "") not in ("", "0")
os.environ["CINGULUM_NO_SYNC"] = "1"

POINTS_EACH = 1000
STREAMLINES = 380_000  # 12 bytes per point: 4.56 GB
POINTS = POINTS_EACH * STREAMLINES


@unittest.skipUnless(LONG, "writes 9 GB: CINGULUM_TEST_LONG=1")
class Zip64(unittest.TestCase):
    def run_program(self, *words):
        done = subprocess.run([CINGULUM, *map(str, words)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_an_archive_above_four_gigabytes(self):
        with tempfile.TemporaryDirectory(prefix="cingulum-zip64-") as folder:
            folder = Path(folder)
            # The input is a TRX folder whose positions are a hole with some rows in it, so it takes no disk.
            source = folder / "source.trx.d"
            source.mkdir()
            header = {"DIMENSIONS": [100, 100, 100], "VOXEL_TO_RASMM": np.diag([2.0, 2, 2, 1]).tolist(),
                      "NB_STREAMLINES": STREAMLINES, "NB_VERTICES": POINTS}
            (source / "header.json").write_text(json.dumps(header))
            rng = np.random.default_rng(64)
            rows = {at: rng.normal(size=(500, 3)).astype("<f4") * 50
                    for at in (0, POINTS // 2, 2**32 // 12 - 250, POINTS - 500)}  # one over the border of 4 GiB
            with open(source / "positions.3.float32", "wb") as file:
                file.truncate(12 * POINTS)
                for at, values in rows.items():
                    file.seek(12 * at)
                    file.write(values.tobytes())
            (np.arange(STREAMLINES + 1, dtype="<u8") * POINTS_EACH).tofile(source / "offsets.uint64")

            large = folder / "large.trx"
            self.run_program("convert", source, large, "--quiet")
            self.assertGreater(large.stat().st_size, 2**32)

            with zipfile.ZipFile(large) as archive:
                self.assertIsNone(archive.testzip())
                positions = archive.getinfo("positions.3.float32")
                self.assertEqual(positions.file_size, 12 * POINTS)
                self.assertEqual(positions.compress_type, zipfile.ZIP_STORED)
                self.assertGreater(archive.getinfo("offsets.uint64").header_offset, 2**32)
                self.assertEqual({key: json.loads(archive.read("header.json"))[key] for key in header}, header)
                offsets = np.frombuffer(archive.read("offsets.uint64"), "<u8")
                np.testing.assert_array_equal(offsets, np.arange(STREAMLINES + 1) * POINTS_EACH)
            print("zipfile: every checksum is right")

            trx = trx_file_memmap.load(str(large))
            self.assertEqual(len(trx), STREAMLINES)
            data = trx.streamlines._data
            self.assertEqual(data.shape, (POINTS, 3))
            for at, values in rows.items():
                np.testing.assert_array_equal(np.asarray(data[at:at + 500]), values)
            np.testing.assert_array_equal(np.asarray(trx.streamlines[STREAMLINES - 1])[-500:], rows[POINTS - 500])
            trx.close()
            print("trx-python: the same positions")

            facts = json.loads(self.run_program("info", large, "--json"))
            self.assertIn(str(STREAMLINES), json.dumps(facts))
            self.run_program("verify", large)
            self.run_program("compare", "--exact", "--json", large, source)
            print("read back by us: the same streamlines")


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
