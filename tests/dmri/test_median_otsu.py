"""Brain masks against DIPY's median_otsu: equal in every voxel."""

import os
import pathlib
import sys
import unittest
import warnings

import dmri_probe
import nibabel as nib
import numpy as np
# Where scikit-image is installed, DIPY takes its threshold, which counts in other bins than DIPY's own.
sys.modules["skimage"] = None
from dipy.segment.mask import median_otsu

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

warnings.filterwarnings("ignore")


class BrainMasks(unittest.TestCase):
    def compare(self, volume, **options):
        names = {"radius": "median_radius", "passes": "numpass", "dilations": "dilate", "finalise": "finalize_mask"}
        _, theirs = median_otsu(volume, **{names[name]: value for name, value in options.items()})
        ours = dmri_probe.brain_mask(volume, **options)
        self.assertTrue(np.array_equal(ours, theirs > 0), options)
        self.assertTrue(0 < ours.sum() < ours.size)

    def test_noisy_ellipsoids_of_odd_shapes(self):
        rng = np.random.default_rng(2)
        for shape in ((23, 31, 17), (40, 9, 12), (16, 20, 2), (7, 5, 30)):
            grid = np.meshgrid(*[np.linspace(-1, 1, n) for n in shape], indexing="ij")
            inside = sum(g**2 for g in grid) < 0.5
            volume = np.where(inside, 100.0, 10.0) + rng.normal(size=shape) * 25
            volume[rng.random(shape) < 0.02] = 0
            self.compare(volume)
            self.compare(volume, radius=1, passes=1)
            self.compare(volume, radius=0, passes=1, finalise=True)
            self.compare(volume, radius=1, passes=2, dilations=2)
            self.compare(np.round(volume / 20), radius=2, passes=3, dilations=1, finalise=True)

    def test_the_real_b0_at_half_resolution(self):
        folder = suite.need_data("dwi-1p8mm-64dir")
        b0 = np.asarray(nib.load(os.path.join(folder, "dwi.nii.gz")).dataobj[..., 64], float)
        self.compare(b0[::2, ::2, ::2])
        # The mask of the data folder was made with these.
        stored = nib.load(os.path.join(folder, "mask_dipy_otsu.nii.gz")).get_fdata() > 0
        self.assertTrue(np.array_equal(dmri_probe.brain_mask(b0, radius=2, passes=1), stored))
        if os.environ.get("CINGULUM_TEST_LONG") == "1":
            self.compare(b0)


if __name__ == "__main__":
    suite.main()
