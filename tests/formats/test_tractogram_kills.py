"""Tractogram writers: `cingulum convert` that is killed leaves the old or the new file, and verify calls it whole.

Its variables are those of tests/support/killed_outputs.py.
"""

import sys
import unittest
import zipfile
from pathlib import Path

import numpy as np

import hostile_trx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from killed_outputs import CINGULUM, KillCase, Writer  # noqa: E402


def make_source(path, seed, count):
    length = 60
    generator = np.random.default_rng(seed)
    content = {
        "header.json": hostile_trx.header(NB_STREAMLINES=count, NB_VERTICES=count * length),
        "positions.3.float32": generator.random((count * length, 3), np.float32).tobytes(),
        "offsets.uint64": (np.arange(count + 1, dtype="<u8") * length).tobytes(),
        "dpv/fa.float64": generator.random(count * length).tobytes(),  # enough for a temporary file
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


class Killed(KillCase):
    def writer(self, name, count):
        sources = [self.scratch / f"{variant}.trx" for variant in range(2)]
        for variant, source in enumerate(sources):
            make_source(source, variant, count)
        folder = self.scratch / "out"
        folder.mkdir()
        command = lambda variant, force: [CINGULUM, "convert", str(sources[variant]), str(folder / name), "--quiet",
                                          *(["--force"] if force else [])]
        return Writer(folder, [name], command)

    def check(self, name):
        self.kill_often(self.writer(name, 4000))

    def check_steps(self, name):
        self.kill_before_every_step(self.writer(name, 40))

    def test_trx(self):
        self.check("a.trx")

    def test_trx_folder(self):
        self.check("a.trx.d")

    def test_trk(self):
        self.check("a.trk")

    def test_tck(self):
        self.check("a.tck")

    def test_trx_before_every_step(self):
        self.check_steps("a.trx")

    def test_trx_folder_before_every_step(self):
        self.check_steps("a.trx.d")

    def test_trk_before_every_step(self):
        self.check_steps("a.trk")

    def test_tck_before_every_step(self):
        self.check_steps("a.tck")


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main(warnings="ignore")
