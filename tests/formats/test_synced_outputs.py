"""Power cuts, below every layer of our own: the calls that each writing verb really makes. Data are synced before the rename
that gives a file its name, the folder after it, and of a pair the sidecar comes first.

CINGULUM names the program, CINGULUM_TEST_IMAGE_DUMP image_dump, CINGULUM_TEST_FILE_CALLS the library that sees the calls.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import file_calls  # noqa: E402
import suite  # noqa: E402

CINGULUM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))
DUMP = os.path.abspath(os.environ.get("CINGULUM_TEST_IMAGE_DUMP", "build/bin/image_dump"))
GIVES_A_NAME = ("rename", "exchange", "link")


def phantom(folder, *more):
    return [CINGULUM, "phantom", "--preset", "straight", "--voxel-size", "6", "--subsamples", "1", "--directions", "6",
            "--b-values", "1000", "--b0", "1", "--threads", "2", "--quiet", "--out", str(folder), *more]


class Synced(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        cls.addClassCleanup(temporary.cleanup)
        cls.scratch = Path(os.path.realpath(temporary.name))
        cls.phantom = cls.scratch / "phantom"
        subprocess.run(phantom(cls.phantom), check=True, capture_output=True)
        cls.series = [f"{cls.phantom}/dwi.nii.gz", "--mask", f"{cls.phantom}/mask.nii.gz", "--bvals",
                      f"{cls.phantom}/dwi.bval", "--bvecs", f"{cls.phantom}/dwi.bvec", "--device", "cpu"]

    def setUp(self):
        self.empty_folder()

    def empty_folder(self):
        temporary = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        self.addCleanup(temporary.cleanup)
        self.out = Path(os.path.realpath(temporary.name))

    def check(self, command, pairs, bare=()):
        """Twice, the second time over what is there. `pairs` and `bare` are all outputs with and without a sidecar."""
        for force in ([], ["--force"]) if command[0] == CINGULUM else ([], []):
            calls = file_calls.record([*command, *force], self.out)
            for name in (*pairs, *bare):
                self.check_output(calls, self.out / name)
            for name in pairs:
                self.check_pair(calls, self.out / name)
            # Nothing got its name in another way.
            files = {str(path) for path in self.out.rglob("*") if path.is_file()}
            named = {call.other for call in calls if call.name in GIVES_A_NAME}
            self.assertEqual({path for path in files if path not in named and not os.path.dirname(path) in named
                              and not os.path.dirname(os.path.dirname(path)) in named}, set())

    def names_given(self, calls, path):
        """Indices of the calls that gave `path` its name."""
        return [i for i, call in enumerate(calls) if call.name in GIVES_A_NAME and call.other == str(path) and call.result == 0]

    def check_output(self, calls, path):
        indices = self.names_given(calls, path)
        self.assertTrue(indices, f"{path} was not named by a rename")
        for index in indices:
            self.check_data_synced(calls, index)
            self.assertTrue(self.folder_synced_after(calls, index), f"{path.parent} is not synced after {path.name} got its name")

    def check_data_synced(self, calls, index):
        """Everything that was written under the name before this rename was synced after its last write."""
        partial = calls[index].path
        written = [i for i, call in enumerate(calls[:index]) if call.name == "write"
                   and (call.path == partial or call.path.startswith(partial + "/"))]
        self.assertTrue(written, f"nothing was written to {partial}")
        for path in {calls[i].path for i in written}:
            last = max(i for i in written if calls[i].path == path)
            # In a folder a file gets its own name first; it is synced before that.
            synced = any(call.name == "sync" and call.path == path and call.result == 0 for call in calls[last:index])
            self.assertTrue(synced, f"{path} is not synced between its last write and its rename")
        for folder in {os.path.dirname(calls[i].path) for i in written if calls[i].path != partial}:
            named = max(i for i, call in enumerate(calls[:index]) if call.name in GIVES_A_NAME
                        and os.path.dirname(call.other) == folder)
            synced = any(call.name == "sync" and call.path == folder and call.result == 0 for call in calls[named:index])
            self.assertTrue(synced, f"the folder {folder} is not synced before {partial} gets its name")

    def folder_synced_after(self, calls, index, before=None):
        folder = os.path.dirname(calls[index].other)
        return any(call.name == "sync" and call.path == folder and call.result == 0 for call in calls[index:before])

    def check_pair(self, calls, path):
        sidecar = path.with_name(path.name + ".json")
        files_named, sidecars_named = self.names_given(calls, path), self.names_given(calls, sidecar)
        self.assertEqual((len(files_named), len(sidecars_named)), (1, 2), "one file, its pending and its final sidecar")
        (file_named,), (pending, final) = files_named, sidecars_named
        self.assertLess(pending, file_named, f"the sidecar of {path.name} comes after it")
        self.assertLess(file_named, final)
        self.assertTrue(self.folder_synced_after(calls, pending, file_named), "the pending sidecar may be lost")
        self.assertTrue(self.folder_synced_after(calls, file_named, final), "the file may be lost, and the sidecar not")
        self.check_output(calls, sidecar)

    def convert(self, name):
        self.check([CINGULUM, "convert", f"{self.phantom}/truth.trx", str(self.out / name), "--quiet"], [name])

    def test_convert_to_trx(self):
        self.convert("a.trx")

    def test_convert_to_a_trx_folder(self):
        self.convert("a.trx.d")

    def test_convert_to_trk(self):
        self.convert("a.trk")

    def test_convert_to_tck(self):
        self.convert("a.tck")

    def test_track(self):
        for name in ("a.trx", "a.tck"):
            self.empty_folder()
            self.check([CINGULUM, "track", *self.series, "--dg", "tensor", "--nseeds", "50", "--cache-dir",
                        str(self.scratch / "cache"), "--quiet", "--out", str(self.out / name)], [name])

    def test_fit(self):
        subprocess.run([CINGULUM, "fit", *self.series, "--model", "dti", "--quiet", "--out", str(self.scratch / "fit")], check=True,
                       stdout=subprocess.DEVNULL)
        maps = [f"fit/{path.name}" for path in (self.scratch / "fit").glob("*.nii.gz")]
        self.assertIn("fit/fa.nii.gz", maps)
        self.check([CINGULUM, "fit", *self.series, "--model", "dti", "--quiet", "--out", str(self.out / "fit")], maps,
                   ["fit/fit.json"])

    def test_phantom(self):
        files = {str(path.relative_to(self.phantom)) for path in self.phantom.rglob("*") if path.is_file()}
        bare = files - {"fod.nii.gz", "fod.nii.gz.json"}
        self.assertIn("truth.trx", bare)
        self.check(phantom(self.out / "p"), ["p/fod.nii.gz"], [f"p/{name}" for name in bare])

    def test_report(self):
        self.check([CINGULUM, "report", f"{self.phantom}/truth.trx", "--density", str(self.out / "density.nii.gz"), "--quiet",
                    "--out", str(self.out / "page.html")], [], ["density.nii.gz", "page.html"])

    def test_images(self):
        spec, raw = self.scratch / "spec.json", self.scratch / "raw"
        np.arange(64.0).tofile(raw)
        for name in ("a.nii", "a.nii.gz"):
            for content, pairs, bare in (({}, [name], []), (None, [], [name])):
                self.empty_folder()
                members = {"shape": (4, 4, 4), "affine": np.eye(4)[:3].ravel().tolist()}
                spec.write_text(json.dumps(members if content is None else {**members, "sidecar": content}))
                self.check([DUMP, "write", str(spec), str(raw), str(self.out / name)], pairs, bare)


if __name__ == "__main__":
    suite.main()
