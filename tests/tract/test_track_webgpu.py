"""`cingulum track --device webgpu` writes the CPU's file, byte for byte, for every getter on a phantom, in any chunks and
beside other devices; the sidecar differs in `run` alone. On lavapipe in CI, on any adapter elsewhere."""
import json
import pathlib
import sys
import unittest

from tracking import Folder, run, track

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)


def devices():
    return json.loads(run("devices", "--json").stdout)["devices"]


class FilesOfWebgpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        found = [device for device in devices() if device["id"].startswith("webgpu")]
        if not found:
            assert not suite.device_is_required("webgpu"), "CINGULUM_TEST_DEVICES names webgpu, and there is none"
            raise unittest.SkipTest("there is no WebGPU device; `cingulum devices` says why")
        cls.folder = Folder()
        cls.phantom = cls.folder.phantom("phantom", "--preset", "crossing", "--voxel-size", "3")
        cls.data = [cls.phantom / "dwi.nii.gz", "--mask", cls.phantom / "mask.nii.gz", "--bvec-frame", "fsl",
                    "--fa-threshold", "0.25", "--save-seeds"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def compare(self, name, words, ways):
        expected = self.folder / f"{name}-cpu.trx"
        track(*self.data, *words, "--device", "cpu", "--out", expected)
        self.assertGreater(expected.stat().st_size, 1500, name)
        facts = json.loads((self.folder / (expected.name + ".json")).read_text())
        for number, way in enumerate(ways):
            out = self.folder / f"{name}-{number}.trx"
            track(*self.data, *words, *way, "--out", out)
            self.assertEqual(out.read_bytes(), expected.read_bytes(), f"{name}, {way}")
            ours = json.loads((self.folder / (out.name + ".json")).read_text())
            self.assertIn("webgpu", json.dumps(ours["run"]))
            differing = {key for key in facts if facts[key] != ours.get(key)} - {"run", "file"}
            self.assertLessEqual(differing, {"arguments"}, "only --device and the chunk are told apart")

    def test_every_getter_writes_the_cpus_file(self):
        for getter, seeds in (("prob", 30), ("boot", 20), ("ptt", 8), ("det", 30), ("closest", 30), ("tensor", 40)):
            self.compare(getter, ["--dg", getter, "--nseeds", seeds], [["--device", "webgpu"]])

    def test_chunks_and_mixes_of_devices_do_not_show(self):
        self.compare("mix", ["--dg", "tensor", "--nseeds", 60],
                     [["--device", "webgpu", "--chunk-size", 7], ["--device", "webgpu,cpu", "--chunk-size", 11],
                      ["--device", "webgpu,webgpu", "--chunk-size", 13]])

    def test_a_part_of_a_run_is_the_cpus(self):
        whole, merged = self.folder / "whole.trx", self.folder / "merged.trx"
        words = [*self.data, "--dg", "prob", "--nseeds", 50]
        track(*words, "--device", "cpu", "--out", whole)
        for number, device in enumerate(("webgpu", "cpu", "webgpu"), 1):
            track(*words, "--device", device, "--part", f"{number}/3", "--out", self.folder / f"part{number}.trx")
        run("merge", *(self.folder / f"part{number}.trx" for number in (3, 1, 2)), "--out", merged, "--quiet")
        self.assertEqual(merged.read_bytes(), whole.read_bytes())


if __name__ == "__main__":
    suite.main()
