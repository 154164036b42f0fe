"""Tensors and their maps against DIPY's TensorModel.

Tolerances: our maps are float32 of a float64 fit, so FA agrees to 1e-6, eigenvalues to 1e-6 of themselves (or 1e-9
mm^2/s), V1 to 1e-3 degrees of an angle where the two largest eigenvalues differ by 1 % at least.
"""

import os
import pathlib
import sys
import unittest
import warnings

import dmri_probe
import nibabel as nib
import numpy as np
from dipy.core.gradients import gradient_table
from dipy.reconst.dti import TensorModel, ols_fit_tensor, wls_fit_tensor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

warnings.filterwarnings("ignore")


class Tensors(unittest.TestCase):
    def compare(self, signals, b_values, vectors, min_signal=None):
        signals = np.asarray(signals, np.float32)
        table = gradient_table(b_values, bvecs=vectors)
        for method in ("ols", "wls"):
            options = {} if min_signal is None else {"min_signal": min_signal}
            model = TensorModel(table, fit_method=method.upper(), return_S0_hat=True, **options)
            # float64: DIPY takes the logarithm in the type of the data.
            theirs = model.fit(signals.astype(float))
            ours, (_, least, unsolvable) = dmri_probe.fit_tensor(signals, b_values, vectors, method,
                                                                 1e-4 if min_signal is None else min_signal)
            self.assertEqual(unsolvable, 0)
            self.assertAlmostEqual(least, 1e-6 / -model.design_matrix.min(), delta=1e-16)
            np.testing.assert_allclose(ours["fa"], theirs.fa, rtol=0, atol=1e-6)
            np.testing.assert_allclose(ours["evals"], theirs.evals, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(ours["md"], theirs.md, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(ours["rd"], theirs.rd, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(ours["s0"], theirs.S0_hat, rtol=1e-6)
            clamped = np.maximum(signals.astype(float), 1e-4 if min_signal is None else min_signal)
            fit = ols_fit_tensor if method == "ols" else wls_fit_tensor
            lower, _ = fit(model.design_matrix, clamped, return_lower_triangular=True)
            np.testing.assert_allclose(ours["tensor"], lower[:, [0, 2, 5, 1, 3, 4]], rtol=1e-6, atol=2e-9)
            clear = theirs.evals[:, 0] - theirs.evals[:, 1] > 0.01 * theirs.evals[:, 0]
            self.assertTrue(clear.any())
            cross = np.linalg.norm(np.cross(ours["v1"], theirs.evecs[..., 0]), axis=1)
            self.assertLess(np.degrees(cross[clear].max()), 1e-3)
            np.testing.assert_allclose(ours["colour"][clear], theirs.color_fa[clear], atol=1e-5)
            x, y, z = ours["v1"].T
            self.assertTrue(np.all((z > 0) | ((z == 0) & ((y > 0) | ((y == 0) & (x > 0))))))

    def test_whole_brain_series_with_one_b0(self):
        folder = suite.need_data("dwi-1p8mm-64dir")
        image = nib.load(os.path.join(folder, "dwi.nii.gz"))
        slab = np.asarray(image.dataobj[:, :, 36:39], np.float32)
        mask = np.asarray(nib.load(os.path.join(folder, "mask_dipy_otsu.nii.gz")).dataobj[:, :, 36:39]) > 0
        self.compare(slab[mask], *dmri_probe.fsl_gradients(os.path.join(folder, "dwi")))

    def test_two_shells(self):
        folder = suite.need_data("dwi-2slices-multishell")
        stem = os.path.join(folder, "b1k_b2k")
        data = nib.load(stem + "_example_slices_24_38.nii.gz").get_fdata(dtype=np.float32)
        mask = nib.load(stem + "_example_slices_24_38_mask.nii.gz").get_fdata() > 0
        b_values, vectors = dmri_probe.fsl_gradients(stem)
        vectors = np.nan_to_num(vectors)
        self.compare(data[mask][::2], b_values, vectors)

    def test_random_tensors_with_noise_and_small_signals(self):
        rng = np.random.default_rng(8)
        vectors = rng.normal(size=(40, 3))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.vstack([np.zeros((4, 3)), vectors])
        b_values = np.r_[np.zeros(4), np.full(20, 700.0), np.full(20, 1500.0)]
        factors = rng.normal(size=(3000, 3, 3)) * 0.02
        tensors = factors @ np.transpose(factors, (0, 2, 1)) + 2e-4 * np.eye(3)
        clean = 900 * np.exp(-b_values * np.einsum("gi,vij,gj->vg", vectors, tensors, vectors))
        noisy = np.abs(clean + rng.normal(size=clean.shape) * 15)
        noisy[::50, 7] = 0
        noisy[::70] = 0
        self.compare(noisy, b_values, vectors, min_signal=1.0)

    def test_isotropic_and_planar_tensors(self):
        rng = np.random.default_rng(9)
        vectors = rng.normal(size=(30, 3))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.vstack([np.zeros((1, 3)), vectors])
        b_values = np.r_[0, np.full(30, 1000.0)]
        for evals in ((1e-3, 1e-3, 1e-3), (1e-3, 1e-3, 2e-4), (1.7e-3, 3e-4, 3e-4)):
            clean = 1000 * np.exp(-b_values * (vectors**2 @ np.array(evals)))
            ours, _ = dmri_probe.fit_tensor(np.array([clean]), b_values, vectors, "wls")
            model = TensorModel(gradient_table(b_values, bvecs=vectors), fit_method="WLS")
            theirs = model.fit(clean.astype(np.float32).astype(float)[None])
            np.testing.assert_allclose(ours["evals"], theirs.evals, rtol=1e-6)
            np.testing.assert_allclose(ours["fa"], theirs.fa, atol=1e-6)


if __name__ == "__main__":
    suite.main()
