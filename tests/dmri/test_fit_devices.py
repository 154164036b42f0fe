"""Where `cingulum fit` and `cingulum track` fit their models: every device of this machine writes the CPU's files, what
cannot fit is refused with the reason, and the sidecars say where it was."""

import filecmp
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PROGRAM = os.environ["CINGULUM"]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class FitDevices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        made = run("phantom", "--preset", "crossing60", "--voxel-size", 4, "--out", cls.folder / "phantom", "--quiet")
        assert made.returncode == 0, made.stderr
        found = [device["id"] for device in json.loads(run("devices", "--json").stdout)["devices"]]
        cls.cuda, cls.webgpu = (any(name.startswith(backend) for name in found) for backend in ("cuda", "webgpu"))
        assert cls.cuda or not suite.device_is_required("cuda"), "CINGULUM_TEST_DEVICES names cuda, and there is none"

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def series(self):
        phantom = self.folder / "phantom"
        return [phantom / "dwi.nii.gz", "--bvals", phantom / "dwi.bval", "--bvecs", phantom / "dwi.bvec", "--mask",
                phantom / "mask.nii.gz"]

    def fit(self, model, device, out):
        return run("fit", *self.series(), "--model", model, "--response-fa", 0.3, "--response-radius", 1000, "--odf",
                   "--peaks", 2, "--device", device, "--out", out, "--force", "--quiet")

    def test_auto_is_the_gpu_or_the_cpu_and_says_so(self):
        result = self.fit("dti", "auto", self.folder / "auto")
        self.assertEqual(result.returncode, 0, result.stderr)
        said = json.loads((self.folder / "auto" / "fit.json").read_text())["run"]["device"]
        self.assertEqual(said, "cuda:0" if self.cuda else "cpu")  # never the WebGPU, which has no float64

    def test_a_gpu_writes_what_the_cpu_writes(self):
        if not self.cuda:
            self.skipTest("device 'cuda' is not available: there is nothing to compare the CPU with")
        for model in ("dti", "opdt", "csd"):
            for device in ("cpu", "auto"):
                result = self.fit(model, device, self.folder / f"{model}-{device}")
                self.assertEqual(result.returncode, 0, result.stderr)
            maps = sorted(path.name for path in (self.folder / f"{model}-cpu").glob("*.nii.gz"))
            self.assertGreater(len(maps), 2)
            for name in maps:
                self.assertTrue(filecmp.cmp(self.folder / f"{model}-cpu" / name, self.folder / f"{model}-auto" / name,
                                            shallow=False), f"{model} {name}")
            said = {device: json.loads((self.folder / f"{model}-{device}" / "fit.json").read_text())["run"]["device"]
                    for device in ("cpu", "auto")}
            self.assertEqual(said, {"cpu": "cpu", "auto": "cuda:0"})

    def test_what_cannot_fit_is_refused_with_the_reason(self):
        several = self.fit("dti", "cpu,cuda", self.folder / "refused")
        self.assertEqual(several.returncode, 2)
        self.assertIn("a fit runs on one device", several.stderr)
        webgpu = self.fit("dti", "webgpu", self.folder / "refused")
        self.assertEqual(webgpu.returncode, 1)
        self.assertIn("no float64; use --device cpu" if self.webgpu else "device 'webgpu' is not available", webgpu.stderr)
        if not self.cuda:
            absent = self.fit("dti", "cuda", self.folder / "refused")
            self.assertEqual(absent.returncode, 1)
            self.assertIn("device 'cuda' is not available", absent.stderr)
        self.assertFalse((self.folder / "refused").exists())

    def test_a_tractogram_says_where_its_field_was_fitted(self):
        out = self.folder / "tracks.trx"
        result = run("track", *self.series(), "--dg", "boot", "--nseeds", 10, "--out", out, "--device", "cpu", "--quiet")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads((self.folder / "tracks.trx.json").read_text())["run"]["fitted_on"], "cpu")


if __name__ == "__main__":
    suite.main()
