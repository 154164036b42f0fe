"""Ours opens in zarrita, which pages in a browser read Zarr with: arrays of both versions in every codec that it has, and the
levels of OME-Zarr 0.4 and 0.5.

CINGULUM names the program, CINGULUM_TEST_NODE_PACKAGES the folder with package.json and node_modules (tools/bootstrap ... web).
"""
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import zarr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PACKAGES = Path(os.environ.get("CINGULUM_TEST_NODE_PACKAGES", ""))
SCRIPT = Path(__file__).resolve().with_name("read_with_zarrita.mjs")


def digest(values):
    return hashlib.sha256(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()).hexdigest()


@suite.needs("zarrita")
class Zarrita(suite.WithFolder):
    def read(self, store, *paths):
        result = subprocess.run([suite.node_program(), "--input-type=module", "-e", SCRIPT.read_text(), store, *paths],
                                capture_output=True, text=True, check=False, cwd=PACKAGES)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_arrays_of_both_versions_in_its_codecs(self):
        values = np.random.default_rng(7).integers(0, 3000, (37, 50, 41)).astype(np.uint16)
        zarr.create_array(self.folder / "source.zarr", data=values, chunks=(16, 16, 16), zarr_format=3)
        count = 0
        for version in (2, 3):
            for codec in ("none", "zstd", "gzip", "blosc-lz4", "blosc-zstd", "lz4"):
                if version == 3 and codec == "lz4":
                    continue  # no name of its own in v3: numcodecs.lz4, which zarrita has not
                for sharded in ((False, True) if version == 3 else (False,)):
                    with self.subTest(version=version, codec=codec, sharded=sharded):
                        target = self.folder / f"{count}.zarr"
                        count += 1
                        shards = ["--shards", "32,32,32"] if sharded else (["--shards", "none"] if version == 3 else [])
                        self.done("zarr", "copy", self.folder / "source.zarr", target, "--format", version, "--codec", codec,
                                  "--chunks", "16,16,16", *shards, "--quiet")
                        (found,) = self.read(target, "")
                        self.assertEqual(found["shape"], list(values.shape))
                        self.assertEqual(found["type"], "uint16")
                        self.assertEqual(found["digest"], digest(values))
        self.assertEqual(count, 16)

    def test_levels_of_ome_zarr(self):
        values = np.random.default_rng(8).normal(100, 20, (64, 40, 52)).astype(np.float32)
        nib.save(nib.Nifti1Image(values, np.diag([2, 3, 4, 1.0])), self.folder / "in.nii.gz")
        for version, attributes in (("0.4", lambda group: group), ("0.5", lambda group: group["ome"])):
            with self.subTest(version=version):
                target = self.folder / f"{version}.ome.zarr"
                self.done("convert", self.folder / "in.nii.gz", target, "--quiet")
                copy = self.folder / f"copy-{version}.ome.zarr"
                self.done("zarr", "copy", target, copy, "--ome-version", version, "--pyramid", 3, "--quiet")
                group = zarr.open_group(copy, mode="r")
                levels = sorted(name for name, _ in group.arrays())
                self.assertEqual(levels, ["0", "1", "2"])
                for level, found in zip(levels, self.read(copy, *levels), strict=True):
                    self.assertEqual(found["digest"], digest(group[level][:]))
                    multiscales = attributes(found["attributes"])["multiscales"][0]
                    self.assertEqual([axis["name"] for axis in multiscales["axes"]], ["z", "y", "x"])
                    self.assertIn(level, [dataset["path"] for dataset in multiscales["datasets"]])
                np.testing.assert_array_equal(group[levels[0]][:], values.transpose(2, 1, 0))


if __name__ == "__main__":
    suite.main()
