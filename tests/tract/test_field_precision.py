"""`cingulum track --field-precision half`, limits of memory, and what of a field is stored, as whole commands: the same
bytes on every device that is there, the sidecar says it, what cannot be is refused before anything is written."""
import json
import os
import pathlib
import sys
import unittest

import numpy as np

from tracking import Folder, device_names, run, track, track_json, write_image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)


class FieldPrecision(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        phantom = cls.folder.phantom("phantom", "--preset", "crossing", "--voxel-size", "3")
        cls.cache = cls.folder / "cache"
        cls.cache.mkdir()
        cls.data = [phantom / "dwi.nii.gz", "--mask", phantom / "mask.nii.gz", "--bvec-frame", "fsl", "--fa-threshold",
                    "0.25", "--cache-dir", cls.cache]

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def test_every_device_writes_the_same_file_and_the_field_takes_half(self):
        for getter, more in (("prob", []), ("prob", ["--amplitudes"]), ("det", []), ("closest", ["--amplitudes"]),
                             ("ptt", ["--amplitudes", "--ptt-tries", "100"])):
            words = [*self.data, "--dg", getter, "--nseeds", 12, *more]
            name = getter + str(len(more))
            single = track_json(*words, "--out", self.folder / f"{name}-float.trx", "--device", "cpu")
            half = track_json(*words, "--out", self.folder / f"{name}.trx", "--device", "cpu", "--field-precision", "half")
            self.assertEqual(single["field"]["precision"], "float")
            self.assertEqual(half["field"]["precision"], "half")
            self.assertEqual(half["arguments"]["options"]["field-precision"], "half")
            self.assertIn("field-precision", half["arguments"]["given"])
            voxels = 4 * int(np.prod(half["plan"]["size"]))
            self.assertEqual(half["field"]["bytes"] - voxels, (single["field"]["bytes"] - voxels) // 2)
            expected = (self.folder / f"{name}.trx").read_bytes()
            if getter == "det":  # refined between the directions of the sphere; of the others many stay the same
                self.assertFalse(expected == (self.folder / f"{name}-float.trx").read_bytes(), "halves differ")
            for device in device_names():
                out = self.folder / f"{name}-{device}.trx"
                track(*words, "--out", out, "--device", device, "--field-precision", "half")
                self.assertTrue(out.read_bytes() == expected, f"{getter} on {device}")

    def test_a_sidecar_repeats_it(self):
        first = self.folder / "first.trx"
        track(*self.data, "--dg", "prob", "--nseeds", 20, "--field-precision", "half", "--out", first, "--device", "cpu")
        again = self.folder / "again.trx"
        track("--from", f"{first}.json", "--out", again, "--device", "cpu")
        self.assertTrue(first.read_bytes() == again.read_bytes())

    def test_streamlines_stay_close_to_those_in_float32(self):
        mean = {}
        for precision in ("float", "half"):
            found = track_json(*self.data, "--dg", "det", "--nseeds", 400, "--field-precision", precision, "--device", "cpu",
                               "--out", self.folder / f"close-{precision}.trx")
            mean[precision] = found["result"]["mean_length_mm"]
        self.assertAlmostEqual(mean["half"] / mean["float"], 1, delta=0.02)

    def test_what_halves_cannot_hold_is_refused_and_nothing_is_written(self):
        out = self.folder / "refused.trx"
        for getter, reason in (("boot", "residuals"), ("tensor", "tensors")):
            done = track(*self.data, "--dg", getter, "--nseeds", 5, "--field-precision", "half", "--out", out, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertEqual(list(self.folder.path.glob("refused*")), [])
        for scale, text in ((1e6, "65504"), (1e-7, "below")):
            sf = np.full((4, 4, 4, 321), 0.01 * scale)
            sf[..., 7] = scale
            image = write_image(self.folder / "sf.nii", sf, np.eye(4))
            words = ["--sf", image, "--sphere", "mirror321", "--dg", "prob", "--nseeds", 5, "--amplitude-cutoff", 0,
                     "--out", out, "--force"]
            done = track(*words, "--field-precision", "half", check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertEqual(list(self.folder.path.glob("refused*")), [])
            track(*words)  # what halves cannot hold float32 does
            self.assertTrue(out.exists())
            for path in self.folder.path.glob("refused*"):
                path.unlink()

    def test_voxels_outside_the_mask_are_not_stored(self):
        sf = np.random.default_rng(1).random((8, 8, 8, 321))
        image = write_image(self.folder / "all.nii", sf, np.eye(4))
        bytes_of = {}
        for count in (512, 40):
            mask = np.zeros(512)
            mask[:count] = 1
            mask_image = write_image(self.folder / f"mask{count}.nii", mask.reshape(8, 8, 8), np.eye(4))
            bytes_of[count] = track_json("--sf", image, "--sphere", "mirror321", "--mask", mask_image, "--dg", "prob",
                                         "--nseeds", 5, "--out", self.folder / f"{count}.trx")["field"]["bytes"]
        # A record is 321 amplitudes and the stopping value, in whole lines of 16 numbers; the first is all zero.
        for count, found in bytes_of.items():
            self.assertEqual(found, 4 * (336 * (count + 1) + 32) + 4 * 512)

    def test_a_limit_of_memory_is_refused_with_need_have_and_way_out(self):
        out = self.folder / "limited.trx"
        for device in ["cpu"] + device_names():
            for limit in ("100K", "1K"):
                done = track(*self.data, "--dg", "prob", "--amplitudes", "--nseeds", 5, "--device", device, "--out", out,
                             check=False, env={**os.environ, "CINGULUM_MEMORY_LIMIT": limit})
                self.assertEqual(done.returncode, 1, done.stderr)
                for text in ("needs", "free are", "--field-precision half", "--mask", "CINGULUM_MEMORY_LIMIT"):
                    self.assertIn(text, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertFalse(out.exists())


if __name__ == "__main__":
    suite.main()
