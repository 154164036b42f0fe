"""Every getter on a real series (CINGULUM_TEST_DATA/dwi-1p8mm-64dir): its b-vectors are found to be in another frame
than the default, and a slab of it is tracked. CINGULUM_TEST_LONG=1 tracks the whole brain and prints the table of
docs/design/tractography.md."""
import os
import pathlib
import sys
import unittest

import nibabel as nib
import numpy as np
from scipy.ndimage import binary_dilation

from tracking import LONG, Folder, lengths, read_trx, track, track_json

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

DATA = pathlib.Path(os.environ.get("CINGULUM_TEST_DATA", "")) / "dwi-1p8mm-64dir"
GETTERS = ("boot", "prob", "ptt", "det", "closest", "tensor")


class RealSeries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        suite.need_data("dwi-1p8mm-64dir")
        cls.folder = Folder()
        mask = nib.load(DATA / "mask_dipy_otsu.nii.gz")
        values = np.asarray(mask.dataobj).astype(np.uint8)
        if not LONG:
            middle = values.shape[2] // 2
            values[:, :, :middle - 2] = 0
            values[:, :, middle + 3:] = 0
        cls.mask = cls.folder / "mask.nii.gz"
        nib.save(nib.Nifti1Image(values, mask.affine), cls.mask)
        cls.inverse = np.linalg.inv(mask.affine)
        cls.values = values

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def test_the_frame_of_the_b_vectors_is_found_out(self):
        whole = DATA / "mask_dipy_otsu.nii.gz"
        done = track(DATA / "dwi.nii.gz", "--mask", whole, "--nseeds", 5, "--out", self.folder / "not.trx", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--bvec-frame voxel", done.stderr)
        self.assertFalse((self.folder / "not.trx").exists())
        self.assertFalse((self.folder / "not.trx.json").exists())
        result = track_json(DATA / "dwi.nii.gz", "--mask", whole, "--nseeds", 5, "--bvec-frame", "auto", "--out",
                            self.folder / "auto.trx")
        self.assertEqual(result["model"]["bvec_frame"], "voxel")

    def test_every_getter_tracks_it(self):
        rows = []
        for getter in GETTERS:
            out = self.folder / f"{getter}.trx"
            # The fits of four getters are the same; the quick tier looks at the short ones and one CSD.
            if not LONG and getter in ("det", "closest"):
                model = ["--model", "csa"]
            else:
                model = []
            result = track_json(DATA / "dwi.nii.gz", "--mask", self.mask, "--bvec-frame", "voxel", "--dg", getter,
                                "--nseeds", 20000 if LONG else 300, "--save-seeds", "--out", out, *model)
            facts, run = result["result"], result["run"]
            rows.append((getter, facts["kept"], facts["points"], facts["mean_length_mm"], facts["median_length_mm"],
                         run["prepare_seconds"], run["tracking_and_writing_seconds"]))
            self.assertGreater(facts["kept"], 50, getter)
            if LONG:
                out.unlink()
                continue
            lines, data = read_trx(out)
            self.assertEqual(len(lines), facts["kept"])
            self.assertGreaterEqual(lengths(lines).min(), 2 - 1e-2)
            self.assertLess(data["seed_index"].max(), 300)
            # Streamlines stay in the mask but for the reach of interpolation, a voxel.
            points = np.concatenate(lines) @ self.inverse[:3, :3].T + self.inverse[:3, 3]
            reach = binary_dilation(self.values > 0, np.ones((3, 3, 3)))
            self.assertTrue(reach[tuple(np.floor(points + 0.5).astype(int).T)].all(), getter)
            self.assertTrue(set(np.unique(data["end_reason"])) <= {1, 2, 3, 4})
        print("| getter | kept | points | mean mm | median mm | prepared s | tracked and written s | M points/s |")
        for row in rows:
            print(f"| {row[0]} | {row[1]} | {row[2]} | {row[3]:.1f} | {row[4]:.1f} | {row[5]:.1f} | {row[6]:.1f} | "
                  f"{row[2] / row[6] / 1e6:.2f} |")


if __name__ == "__main__":
    suite.main()
