"""The writer of images, plain and compressed: kill -9 leaves the old or the new image, and verify calls it whole.

CINGULUM_TEST_IMAGE_DUMP names image_dump, which writes them with a sidecar; the rest is as tests/support/killed_outputs.py says.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import file_calls  # noqa: E402
from killed_outputs import SEED, KillCase, Writer, digest, sidecar_of  # noqa: E402

DUMP = os.path.abspath(os.environ.get("CINGULUM_TEST_IMAGE_DUMP", "build/bin/image_dump"))


class ImageCase(KillCase):
    def writer(self, name, shape=(64, 64, 32, 4), sidecar=True):
        rng = np.random.default_rng(SEED)
        folder = self.scratch / "out"
        folder.mkdir()
        for force in (False, True):
            spec = {"shape": shape, "affine": np.eye(4)[:3].ravel().tolist(), "type": "int16", "threads": 2, "force": force}
            if sidecar:
                spec["sidecar"] = {"of": "a test"}
            (self.scratch / f"{force}.json").write_text(json.dumps(spec))
        for variant in range(2):
            rng.integers(0, 5000, np.prod(shape)).astype(np.float64).tofile(self.scratch / f"{variant}.raw")
        command = lambda variant, force: [DUMP, "write", str(self.scratch / f"{force}.json"),
                                          str(self.scratch / f"{variant}.raw"), str(folder / name)]
        return Writer(folder, [name], command, bare=[] if sidecar else [name])


class Killed(ImageCase):
    def test_a_compressed_image_is_the_old_or_the_new_one_whenever_its_writer_is_killed(self):
        self.kill_often(self.writer("a.nii.gz"))

    def test_an_image_is_the_old_or_the_new_one_whenever_its_writer_is_killed(self):
        self.kill_often(self.writer("a.nii"))

    def test_a_compressed_image_and_its_sidecar_fit_before_every_step(self):
        self.kill_before_every_step(self.writer("a.nii.gz", (8, 8, 4)))

    def test_an_image_and_its_sidecar_fit_before_every_step(self):
        self.kill_before_every_step(self.writer("a.nii", (8, 8, 4)))


class Replaced(ImageCase):
    """A writer without a sidecar replaces an image that has one from an earlier run."""

    def test_the_sidecar_of_an_earlier_run_fits_before_every_step_and_goes(self):
        if not file_calls.LIBRARY:
            self.skipTest("CINGULUM_TEST_FILE_CALLS names no library")
        writer = self.writer("a.nii", (8, 8, 4), sidecar=False)
        output = writer.outputs[0]

        def old_image():
            digests = self.make_whole(writer, 0)
            subprocess.run([DUMP, "sidecar", str(output)], check=True)
            return digests

        new, old = self.make_whole(writer, 1), old_image()
        states, step = [], 1
        while True:
            old_image()
            sidecars = writer.sidecars()
            if not file_calls.run_until(writer.command(1, True), writer.folder, step):
                break
            states += self.states_after(writer, old, sidecars, new).values()
            step += 1
        self.verify_all()
        self.assertEqual(set(states), {"old+old", "old+pending", "new+pending", "new+none"})
        self.assertEqual(os.listdir(writer.folder), ["a.nii"])
        self.assertEqual(digest(output), new[output])
        # What is not a sidecar stays.
        sidecar_of(output).write_text('{"of": "somebody"}')
        self.make_whole(writer, 0)
        self.assertEqual(sidecar_of(output).read_text(), '{"of": "somebody"}')


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
