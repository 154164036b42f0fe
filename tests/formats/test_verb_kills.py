"""Verbs with many or computed outputs: `track`, `fit`, `phantom` and `zarr copy` that are killed leave every file old or
new, and verify calls each whole.

Its variables are those of tests/support/killed_outputs.py.
"""

import json
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import file_calls  # noqa: E402
import suite  # noqa: E402
from killed_outputs import CINGULUM, KillCase, Writer, digest  # noqa: E402


def phantom(folder, variant, force):
    return [CINGULUM, "phantom", "--preset", "straight", "--voxel-size", "6", "--subsamples", "1", "--directions", "6",
            "--b-values", "1000", "--b0", "1", "--rotate", f"0,0,{10 * variant}", "--threads", "2", "--quiet", "--out",
            str(folder), *(["--force"] if force else [])]


class Killed(KillCase):
    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "out"
        self.folder.mkdir()

    def series(self, variant):
        """A series and where its gradients are, as words of a command line."""
        folder = self.scratch / f"phantom{variant}"
        if not folder.exists():
            subprocess.run(phantom(folder, variant, False), check=True, capture_output=True)
        return [f"{folder}/dwi.nii.gz", "--mask", f"{folder}/mask.nii.gz", "--bvals", f"{folder}/dwi.bval", "--bvecs",
                f"{folder}/dwi.bvec", "--device", "cpu"]

    def tracker(self, name):
        command = lambda variant, force: [
            CINGULUM, "track", *self.series(variant), "--dg", "tensor", "--nseeds", "50", "--cache-dir", str(self.scratch / "cache"),
            "--quiet", "--out", str(self.folder / name), *(["--force"] if force else [])]
        return Writer(self.folder, [name], command)

    def fitter(self):
        fit = lambda folder, variant, force: [
            CINGULUM, "fit", *self.series(variant), "--model", "dti", "--quiet", "--out", str(folder),
            *(["--force"] if force else [])]
        subprocess.run(fit(self.scratch / "example", 0, False), check=True, capture_output=True)
        maps = sorted(path.name for path in (self.scratch / "example").glob("*.nii.gz"))
        self.assertIn("fa.nii.gz", maps)
        return Writer(self.folder, [f"fit/{name}" for name in maps],
                      lambda variant, force: fit(self.folder / "fit", variant, force), fills_folder=True)

    def phantom_maker(self):
        subprocess.run(phantom(self.scratch / "example", 0, False), check=True, capture_output=True)
        files = sorted(str(path.relative_to(self.scratch / "example"))
                       for pattern in ("*.nii.gz", "*.trx") for path in (self.scratch / "example").rglob(pattern))
        files.remove("fod.nii.gz")
        self.assertIn("bundles/straight.nii.gz", files)
        bare = [f"p/{name}" for name in files]
        return Writer(self.folder, ["p/fod.nii.gz", *bare],
                      lambda variant, force: phantom(self.folder / "p", variant, force), bare=bare, fills_folder=True)

    def copier(self, name):
        for variant in (0, 1):
            self.series(variant)
            subprocess.run([CINGULUM, "convert", str(self.scratch / f"phantom{variant}" / "dwi.nii.gz"),
                            str(self.scratch / f"source{variant}.ome.zarr"), "--quiet"], check=True, capture_output=True)
        command = lambda variant, force: [
            CINGULUM, "zarr", "copy", str(self.scratch / f"source{variant}.ome.zarr"), str(self.folder / name), "--chunks", "8",
            "--shards", "16", "--pyramid", "2", "--threads", "2", "--quiet", *(["--force"] if force else [])]
        return Writer(self.folder, [name], command)

    def test_track(self):
        self.kill_often(self.tracker("a.trx"))

    def test_track_before_every_step(self):
        self.kill_before_every_step(self.tracker("a.tck"))

    def test_readers_of_a_pending_sidecar_are_told_of_the_file_that_is_there(self):
        if not file_calls.LIBRARY:
            self.skipTest("CINGULUM_TEST_FILE_CALLS names no library")
        writer = self.tracker("a.trk")
        output, again = writer.outputs[0], self.scratch / "again.trk"
        wholes = {"old+pending": self.make_whole(writer, 0), "new+pending": self.make_whole(writer, 1)}
        met = set()
        for step in self.steps_of(writer, 1, True):
            self.make_whole(writer, 0)
            sidecars = writer.sidecars()
            self.assertTrue(file_calls.run_until(writer.command(1, True), writer.folder, step))
            (state,) = self.states_after(writer, wholes["old+pending"], sidecars, wholes["new+pending"]).values()
            if state not in wholes or state in met:
                continue
            met.add(state)
            subprocess.run([CINGULUM, "track", "--from", f"{output}.json", "--device", "cpu", "--quiet", "--force", "--out",
                            str(again)], check=True, capture_output=True)
            self.assertEqual(digest(again), wholes[state][output])
            report = subprocess.run([CINGULUM, "report", str(output), "--force", "--out", str(self.scratch / "page.html")],
                                    check=True, capture_output=True, text=True)
            self.assertNotIn("hash", report.stderr)
            info = json.loads(subprocess.run([CINGULUM, "info", "--json", str(output)], check=True, capture_output=True).stdout)
            self.assertIn("sidecar XXH3-128", info["files"][0]["checksums"])
        self.assertEqual(met, set(wholes))
        self.verify_all()

    def test_fit(self):
        self.kill_often(self.fitter())

    def test_fit_before_every_step(self):
        self.kill_before_every_step(self.fitter())

    def test_phantom(self):
        self.kill_often(self.phantom_maker())

    def test_phantom_before_every_step(self):
        self.kill_before_every_step(self.phantom_maker())

    def test_zarr_copy(self):
        self.kill_often(self.copier("a.ome.zarr"))

    def test_zarr_copy_before_every_step(self):
        self.kill_before_every_step(self.copier("a.ome.zarr.zip"))


if __name__ == "__main__":
    suite.main()
