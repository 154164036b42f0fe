"""`cingulum view --export` writes a whole folder or nothing: what is in it and what is not, folders that are refused, fields
that no browser could hold, a program without the module. What the page does with it is tested in a browser
(tests/view/test_export_page.py)."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)
from viewer import messages_of_file  # noqa: E402

PROGRAM = os.path.abspath(os.environ["CINGULUM"])


def run(*words, **more):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=300, **more)


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        made = run("phantom", "--preset", "crossing", "--voxel-size", "2.5", "--out", cls.folder / "phantom")
        assert made.returncode == 0, made.stderr
        tracked = run("track", "dwi.nii.gz", "--mask", "mask.nii.gz", "--dg", "det", "--nseeds", "300", "--device", "cpu", "--out", "lines.trx",
                      cwd=cls.folder / "phantom")
        assert tracked.returncode == 0, tracked.stderr
        cls.asked = run("view", "--export", cls.folder / "probe/none", cwd=cls.folder)
        cls.left_out = "left out" in cls.asked.stderr

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def setUp(self):
        if self.left_out:
            # What can be said of such a program: it says so at once, and with the way out.
            self.assertEqual(self.asked.returncode, 1, self.asked.stderr)
            self.assertRegex(self.asked.stderr, "install emscripten|build it with Node")
            self.skipTest("the module for browsers was left out of this program")

    def export(self, name, *words, data=("dwi.nii.gz", "lines.trx", "--mask", "mask.nii.gz")):
        return run("view", *data, "--device", "cpu", "--export", self.folder / name, *words, cwd=self.folder / "phantom")

    def test_the_folder_is_whole_and_tells_no_paths(self):
        done = run("view", self.folder / "phantom/dwi.nii.gz", self.folder / "phantom/lines.trx", "--mask", self.folder / "phantom/mask.nii.gz",
                   "--device", "cpu", "--export", self.folder / "whole", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("python3 -m http.server", done.stderr)
        folder = self.folder / "whole"
        listing = json.loads((folder / "api/files").read_text())
        expected = {"index.html", "page.js", "page.css", "browser_host.js", "browser_host.wasm", "api/files", "field/head", "field/records"}
        names = set(files_of(folder))
        self.assertLessEqual(expected, names)
        for file in listing["files"]:
            # A series is not shown, and is the most private of all.
            self.assertEqual(f"data/{file['id']}" in names, file["kind"] == "image", file)
        lines = sorted(int(name.rsplit("/", 1)[1]) for name in names if name.startswith("api/lines/"))
        self.assertEqual(lines, list(range(len(lines))))
        tractogram = next(file["id"] for file in listing["files"] if file["kind"] == "tractogram")
        sample, rest, _ = messages_of_file(lambda number: (folder / f"api/lines/{tractogram}/{number}").read_bytes())
        self.assertEqual(len(lines), len(sample) + 1 + len(rest))
        self.assertEqual((folder / "browser_host.wasm").read_bytes()[:4], b"\0asm")
        index = (folder / "index.html").read_text()
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', index)[1]
        self.assertEqual(policy, "default-src 'self'; img-src 'self' data: blob:; script-src 'self' 'wasm-unsafe-eval'; base-uri 'none'; form-action 'none'")
        self.assertIn("python3 -m http.server", index)
        for name in names:
            self.assertNotIn(str(self.folder).encode(), (folder / name).read_bytes(), name)
        self.assertEqual(sorted(listing["check"]["getters"]), sorted(listing["live"]["getters"]))
        self.assertEqual(sorted(listing["live"]["getters"]), ["closest", "det", "prob", "ptt"])
        self.assertEqual(listing["tracks"]["data"], ["dwi.nii.gz"])
        self.assertEqual([option["name"] for option in listing["tracks"]["options"]], ["mask", "interpolate"])
        # Sums over nothing would be that of no bytes, and all the same.
        sums = [check["sum"] for check in listing["check"]["getters"].values()]
        self.assertEqual(len(set(sums) | {"cbf29ce484222325"}), len(sums) + 1, sums)
        self.assertEqual([path.name for path in self.folder.iterdir() if ".partial-" in path.name], [])
        again = run("view", self.folder / "phantom/dwi.nii.gz", self.folder / "phantom/lines.trx", "--mask", self.folder / "phantom/mask.nii.gz",
                    "--device", "cpu", "--export", self.folder / "whole-again", cwd=self.folder)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(files_of(self.folder / "whole-again"), sorted(names))
        for name in names:
            self.assertEqual((folder / name).read_bytes(), (self.folder / "whole-again" / name).read_bytes(), name)

    def test_half_precision_halves_the_records(self):
        self.assertEqual(self.export("full").returncode, 0)
        self.assertEqual(self.export("half", "--field-precision", "half").returncode, 0)
        full, half = ((self.folder / name / "field/records").stat().st_size for name in ("full", "half"))
        self.assertEqual(full, 2 * half)

    def test_folders_that_are_not_to_be_replaced_are_refused_before_the_work(self):
        kept = self.folder / "kept"
        kept.mkdir()
        (kept / "mine.txt").write_text("mine")
        for words in ((), ("--force",)):
            done = self.export("kept", *words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("kept", done.stderr)
            self.assertNotIn("fit", done.stderr)
        self.assertEqual(files_of(kept), ["mine.txt"])
        done = self.export("not-there/deeper")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("does not exist", done.stderr)
        (self.folder / "a-file").write_text("mine")
        done = self.export("a-file", "--force")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual((self.folder / "a-file").read_text(), "mine")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_cannot_be_written_is_refused(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0o555)
        done = self.export("closed/new")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ermission denied", done.stderr)

    def test_an_empty_folder_is_filled_and_an_export_is_replaced_by_force_alone(self):
        (self.folder / "empty").mkdir()
        self.assertEqual(self.export("empty/").returncode, 0)
        self.assertTrue((self.folder / "empty/index.html").exists())
        before = (self.folder / "empty/field/records").read_bytes()
        done = self.export("empty", "--field-precision", "half")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--force", done.stderr)
        self.assertEqual((self.folder / "empty/field/records").read_bytes(), before)
        self.assertEqual(self.export("empty", "--field-precision", "half", "--force").returncode, 0)
        self.assertNotEqual((self.folder / "empty/field/records").read_bytes(), before)

    def test_options_of_a_server_are_misuse(self):
        for words in (("--port", "8000"), ("--host", "127.0.0.1")):
            done = self.export("misused", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words[0], done.stderr)
        self.assertFalse((self.folder / "misused").exists())

    def test_images_alone_need_no_field(self):
        done = self.export("images", data=("mask.nii.gz",))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("browser_host.wasm", files_of(self.folder / "images"))
        self.assertIsNone(json.loads((self.folder / "images/api/files").read_text())["live"])

    def test_a_failure_leaves_nothing(self):
        done = self.export("failed", data=("mask.nii.gz", "--peaks", "mask.nii.gz"))
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.folder / "failed").exists())
        self.assertEqual([path.name for path in self.folder.iterdir() if ".partial-" in path.name], [])


if __name__ == "__main__":
    suite.main()
