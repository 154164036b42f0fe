"""`cingulum info` and `cingulum verify`: facts equal to nibabel's, damage reported, and every edit found by the hash.

CINGULUM names the program, CINGULUM_TEST_IMAGE_DUMP the program image_dump; CINGULUM_TEST_DATA the folder of real data (skipped
without). CINGULUM_TEST_LONG=1 makes 10 000 edits of each kind of file instead of 500.
"""

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)
from suite import run_program as run  # noqa: E402

DUMP = os.path.abspath(os.environ.get("CINGULUM_TEST_IMAGE_DUMP", "build/bin/image_dump"))
DATA = os.environ.get("CINGULUM_TEST_DATA", "")
EDITS = 10_000 if os.environ.get("CINGULUM_TEST_LONG") else 500
SEED = int(os.environ.get("CINGULUM_TEST_SEED", str(random.randrange(2**32))))


def info(*words):
    """The reports on all files, whatever the exit code."""
    return json.loads(run("info", "--json", *words).stdout)["files"]


def write_sidecars(*paths):
    subprocess.run([DUMP, "sidecar", *map(str, paths)], check=True)


class WithFolder(suite.WithFolder):
    def image(self, name="a.nii", shape=(5, 4, 3, 2)):
        rng = np.random.default_rng(1)
        affine = np.array([[-2, 0, 0, 10], [0, 2, 0.1, -20], [0, -0.1, 3, 5], [0, 0, 0, 1.0]])
        path = self.folder / name
        nib.save(nib.Nifti1Image(rng.integers(-500, 500, shape).astype(np.int16), affine), path)
        return path

    def tractogram(self, name):
        rng = np.random.default_rng(2)
        streamlines = [np.cumsum(rng.standard_normal((n, 3)), axis=0).astype(np.float32) for n in (2, 9, 30, 5)]
        path = self.folder / name
        nib.streamlines.save(nib.streamlines.Tractogram(streamlines, affine_to_rasmm=np.eye(4)), str(path))
        return path, streamlines


class Info(WithFolder):
    def test_an_image(self):
        path = self.image("a.nii.gz")
        image = nib.load(path)
        (found,) = info("--range", path)
        self.assertEqual(found["format"], "NIfTI-1")
        self.assertEqual(found["compression"], "gzip")
        self.assertEqual(found["shape"], [5, 4, 3, 2])
        self.assertEqual(found["type"], "int16")
        self.assertEqual(found["axis_codes"], "".join(nib.aff2axcodes(image.affine)))
        np.testing.assert_allclose(found["affine"], image.affine, atol=1e-6)
        np.testing.assert_allclose(found["voxel_mm"], image.header.get_zooms()[:3], atol=1e-6)
        values = image.get_fdata()
        self.assertEqual((found["range"]["smallest"], found["range"]["largest"]), (values.min(), values.max()))
        self.assertAlmostEqual(found["range"]["mean"], values.mean())
        text = run("info", path).stdout
        self.assertIn("a.nii.gz: NIfTI-1 image, gzip\n", text)
        self.assertIn("gzip CRC-32 (not verified; --verify does)", text)
        self.assertIn("gzip CRC-32 verified", run("info", "--verify", path).stdout)
        self.assertIn("no checksum", run("info", "--verify", self.image("b.nii")).stdout)

    def test_gradients_alone_and_together(self):
        bval, bvec, table = self.folder / "a.bval", self.folder / "a.bvec", self.folder / "grad.b"
        bval.write_text("0 1000 1005 2000\n")
        bvec.write_text("0 1 0 0\n0 0 1 0\n0 0 0 1\n")
        table.write_text("0 0 0 0\n1 0 0 1000\n0 1 0 1005\n0 0 1 2000\n0 0.6 0.8 2000\n")
        for order in ((bval, bvec), (bvec, bval)):
            (found,) = info(*order)
            self.assertEqual(found["count"], 4)
            self.assertEqual([(s["b_value"], s["count"]) for s in found["shells"]], [(0, 1), (1002.5, 2), (2000, 1)])
            self.assertEqual(found["frame"], "fsl")
        (found,) = info(table)
        self.assertEqual((found["count"], found["frame"]), (5, "world"))
        self.assertEqual(info(bval)[0]["content"], "b-values")
        self.assertEqual(info(bvec)[0]["content"], "b-vectors")
        other = self.folder / "other.bvec"
        other.write_text("0 1\n0 0\n0 0\n")
        result = run("info", bval, other)
        self.assertEqual(result.returncode, 1)
        self.assertIn("4 b-values need 3 rows of 4 numbers", result.stdout)

    def test_tractograms(self):
        for name in ("a.trk", "a.tck"):
            path, streamlines = self.tractogram(name)
            (found,) = info(path)
            lengths = [np.linalg.norm(np.diff(s.astype(np.float64), axis=0), axis=1).sum() for s in streamlines]
            self.assertEqual(found["format"], name[2:].upper())
            self.assertEqual(found["streamlines"], 4)
            self.assertEqual(found["points"], 46)
            expected = [min(lengths), np.mean(lengths), np.median(lengths), max(lengths)]
            np.testing.assert_allclose(
                [found["length_mm"][key] for key in ("smallest", "mean", "median", "largest")], expected, rtol=1e-5)
            self.assertEqual(found["reference"] is None, name == "a.tck")

    def test_one_damaged_file_does_not_hide_the_others(self):
        good, cut, other = self.image("good.nii"), self.image("cut.nii"), self.folder / "other.txt"
        cut.write_bytes(cut.read_bytes()[:-1])
        other.write_text("nothing of ours\n")
        mif = self.folder / "a.mif"
        mif.write_bytes(b"mrtrix image\ndim: 1,1,1\n")
        result = run("info", cut, good, other, mif)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "cingulum info: 3 of the files cannot be read\n")
        self.assertIn("good.nii: NIfTI-1 image", result.stdout)
        self.assertIn("the file ends at byte 591: 240 bytes of voxels (5 x 4 x 3 x 2 of int16) expected from byte 352 on "
                      "(592 in all), 239 found", result.stdout)
        self.assertIn("neither a NIfTI image nor a tractogram", result.stdout)
        self.assertIn("MRtrix images (.mif, .mih) are not read", result.stdout)
        found = info(cut, good, other, mif)
        self.assertEqual([("error" in entry) for entry in found], [True, False, True, True])

    @suite.needs("data")
    def test_real_files(self):
        data = Path(DATA)
        found = info(data / "dwi-2slices-multishell/b1k_b2k.bval", data / "dwi-2slices-multishell/b1k_b2k.bvec",
                     data / "tractograms/afq-two-bundles.trx", data / "dwi-mrtrix-small/dwi.mif")
        self.assertEqual([round(shell["b_value"], -2) for shell in found[0]["shells"]], [0, 1000, 2000])
        self.assertEqual(found[1]["groups"], {"ARC_L": 486, "ARC_R": 22})
        self.assertIn("MRtrix images", found[2]["error"])
        # Every file of the collection is told apart or refused, and none ends the program.
        files = [path for path in sorted(data.rglob("*")) if path.is_file() and path.stat().st_size < 5_000_000]
        reports = info(*files)
        self.assertGreater(len(reports), 100)
        for report in reports:
            if report["file"].endswith((".nii", ".nii.gz")):
                self.assertNotIn("error", report)


class Verify(WithFolder):
    def test_without_a_checksum_it_says_so(self):
        path = self.image()
        result = run("verify", path)
        self.assertEqual((result.returncode, result.stdout), (0, f"{path}: complete, no checksum\n"))
        result = run("verify", "--require", path)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "cingulum verify: 1 of 1 file has no checksum, and --require was given\n")

    def test_the_sidecar_and_inner_checksums_are_compared(self):
        plain, packed = self.image("a.nii"), self.image("b.nii.gz")
        write_sidecars(plain, packed)
        result = run("verify", "--require", plain, packed)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, f"{plain}: complete, sidecar XXH3-128 verified\n"
                                        f"{packed}: complete, sidecar XXH3-128 and gzip CRC-32 verified\n")
        plain.write_bytes(plain.read_bytes() + b"x")
        result = run("verify", plain, packed)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{plain}: DAMAGED: {plain}: it is not the file that was written", result.stdout)
        self.assertIn("592 bytes then, 593 now", result.stdout)
        self.assertIn(f"{packed}: complete", result.stdout)
        self.assertEqual(json.loads(run("verify", "--json", plain, packed).stdout)["damaged"], 1)

    def test_gzip_damage_is_found_without_a_sidecar(self):
        path = self.image("a.nii.gz")
        content = bytearray(path.read_bytes())
        content[-6] ^= 1
        path.write_bytes(content)
        result = run("verify", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("CRC-32", result.stdout)
        other = self.folder / "text.gz"
        other.write_bytes(gzip.compress(b"text"))
        self.assertIn("gzip CRC-32 verified", run("verify", other).stdout)

    def test_a_damaged_sidecar_is_told(self):
        path = self.image()
        (self.folder / "a.nii.json").write_text("{")
        result = run("verify", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.nii.json", result.stdout)
        self.assertIn(f"{path}: DAMAGED", result.stdout)

    def test_every_random_edit_is_found(self):
        """Every edit is found in formats without a checksum of their own, with a sidecar."""
        print(f"seed {SEED}, {EDITS} edits of each")
        choose = random.Random(SEED)
        for original in (self.image("a.nii"), self.tractogram("a.trk")[0], self.tractogram("a.tck")[0]):
            write_sidecars(original)
            content = original.read_bytes()
            sidecar = Path(f"{original}.json").read_text()
            missed, done = [], 0
            while done < EDITS:
                batch = []
                for i in range(min(250, EDITS - done)):
                    path = self.folder / f"edit{i}{original.suffix}"
                    path.write_bytes(self.edited(content, choose))
                    Path(f"{path}.json").write_text(sidecar)
                    batch.append(path)
                done += len(batch)
                answer = json.loads(run("verify", "--json", *batch).stdout)
                self.assertEqual(len(answer["files"]), len(batch))
                missed += [entry for entry in answer["files"] if not entry["damaged"]]
            self.assertEqual(missed, [])

    @staticmethod
    def edited(content, choose):
        """One bit, byte, insertion, deletion, exchange, or cut; never the same content."""
        while True:
            edited = bytearray(content)
            at = choose.randrange(len(edited))
            match choose.randrange(6):
                case 0:
                    edited[at] ^= 1 << choose.randrange(8)
                case 1:
                    edited[at] = choose.randrange(256)
                case 2:
                    edited.insert(at, choose.randrange(256))
                case 3:
                    del edited[at:at + choose.randrange(1, 20)]
                case 4:
                    other = choose.randrange(len(edited))
                    edited[at], edited[other] = edited[other], edited[at]
                case 5:
                    del edited[at:]
            if edited != content:
                return bytes(edited)


if __name__ == "__main__":
    suite.main()
