"""fit, fits and estimators: the numbers of the program, and those of DIPY by its rules."""

import inspect
import json
import pickle

import numpy as np
import pytest

import cingulum
from cingulum import _arrays


@pytest.fixture(scope="module")
def files(phantom):
    return {"bvals": phantom / "dwi.bval", "bvecs": phantom / "dwi.bvec", "mask": phantom / "mask.nii.gz"}


def folder_content(folder):
    content = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".json":
            facts = json.loads(path.read_text())
            facts.pop("run", None)
            content[path.name] = facts
        else:
            content[path.name] = path.read_bytes()
    return content


@pytest.mark.parametrize("model", ["dti", "opdt", "csa", "csd"])
def test_arrays_are_what_the_program_writes(tmp_path, phantom, files, run, model):
    import nibabel

    words = [phantom / "dwi.nii.gz", *[part for name, path in files.items() for part in (f"--{name}", path)]]
    dipys = ["--sh-basis", "descoteaux07-legacy", "--frame", "image", "--tensor-order", "dipy"]
    run("fit", *words, *dipys, "--model", model, "--out", tmp_path / "program", "--device", "cpu")
    made = cingulum.fit(phantom / "dwi.nii.gz", model=model, device="cpu", out=tmp_path / "python", **files)
    assert folder_content(tmp_path / "python") == folder_content(tmp_path / "program")
    assert made.model == model and made.mask.any()
    for name, array in made.maps.items():
        image = np.asarray(nibabel.load(tmp_path / f"program/{name}.nii.gz").dataobj)
        assert array.dtype == np.float32 and np.array_equal(array, image), name
    made.save(tmp_path / "saved")
    assert folder_content(tmp_path / "saved") == folder_content(tmp_path / "program")
    with pytest.raises(cingulum.CingulumError):
        made.save(tmp_path / "saved")
    assert pickle.loads(pickle.dumps(made)) == made


def test_arrays_fit_as_files_do(phantom, files, series):
    image, gtab, mask = series
    from_files = cingulum.fit(phantom / "dwi.nii.gz", model="csa", **files)
    for data in (image, np.ascontiguousarray(image.dataobj, dtype=np.float64)):
        made = cingulum.fit(data, gtab, model="csa", mask=mask, affine=image.affine)
        assert np.array_equal(made.sh, from_files.sh)
        assert np.array_equal(made.gfa, from_files.gfa)
        assert np.array_equal(made.mask, from_files.mask)
    assert np.array_equal(made.affine, image.affine)


@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "u2", "u1", "i4", "i8", ">f8"])
@pytest.mark.parametrize("order", ["F", "C"])
def test_large_arrays_become_float32_as_numpy_makes_them(kind, order):
    """By threads where the layout allows it; 101 ** 3 numbers are no multiple of what one thread takes at a time."""
    draw = np.random.default_rng(1)
    if np.dtype(kind).kind == "f":
        values = draw.normal(size=(101, 101, 101)) * 10.0 ** draw.integers(-46, 38, (101, 101, 101))
        values.flat[[0, 5, -1]] = np.nan, 1e39 if kind[-1] == "8" else 0, np.inf
    else:
        bounds = np.iinfo(kind)
        values = draw.integers(bounds.min, bounds.max, (101, 101, 101), dtype=kind, endpoint=True)
    values = np.asarray(values, kind, order=order)
    values.setflags(write=False)
    made = _arrays._as_float32(values)
    assert made.flags.f_contiguous
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(made, values.astype(np.float32))
    assert (made is values) == (kind == "f4" and order == "F")


def test_tensors_and_harmonics_are_dipys(series):
    from dipy.reconst.dti import TensorModel
    from dipy.reconst.shm import CsaOdfModel, sf_to_sh, sh_to_sf
    from dipy.core.sphere import Sphere

    image, gtab, mask = series
    brain = np.asarray(mask.dataobj) > 0
    data = np.asarray(image.dataobj, dtype=np.float64)
    made = cingulum.fit(image, gtab, model="dti", mask=mask)
    theirs = TensorModel(gtab, fit_method="WLS", min_signal=1e-3).fit(data, mask=brain)
    assert np.abs(made.fa - theirs.fa)[brain].max() < 2e-3
    assert np.abs(made.tensor - theirs.lower_triangular())[brain].max() < 2e-6
    csa = cingulum.fit(image, gtab, model="csa", mask=mask, min_signal="1e-5")
    model = CsaOdfModel(gtab, sh_order_max=4)
    reference = model.fit(data, mask=brain).shm_coeff
    assert np.abs(csa.sh - reference)[brain].max() < 1e-4 * np.abs(reference[brain]).max() + 1e-5
    directions = cingulum.sphere("small")
    amplitudes = csa.odf(directions)
    expected = sh_to_sf(csa.sh, Sphere(xyz=directions), sh_order_max=4, basis_type="descoteaux07", legacy=True)
    assert np.abs(amplitudes - expected)[brain].max() < 1e-5
    assert np.array_equal(csa.odf(Sphere(xyz=directions)), amplitudes)
    assert csa.odf("small", clip=True).min() >= 0


def test_peaks_are_those_of_the_program(series):
    image, gtab, mask = series
    made = cingulum.fit(image, gtab, model="csd", mask=mask)
    theirs = cingulum.fit(image, gtab, model="csd", mask=mask, peaks=3).maps["peaks"]
    peaks = made.peaks(3)
    assert peaks.shape == (*made.mask.shape, 3, 3)
    assert np.array_equal(peaks.reshape(theirs.shape), theirs)
    assert (peaks[~made.mask] == 0).all() and np.linalg.norm(peaks[made.mask][:, 0], axis=1).min() > 0
    fewer = made.peaks(2, relative_peak_threshold=0.9, min_separation_angle=80)
    assert (fewer[..., 1, :] != 0).sum() < (peaks[..., 1, :] != 0).sum()


def test_estimators_have_parameters_and_fitted_values(series):
    image, gtab, mask = series
    estimator = cingulum.CSA(sh_order=6, sm_lambda=0.01)
    assert estimator.get_params()["sh_order"] == 6 and estimator.sm_lambda == 0.01
    with pytest.raises(AttributeError, match="after fit"):
        estimator.sh_
    fitted = estimator.fit(image, gtab, mask=mask)
    assert fitted is estimator
    same = cingulum.fit(image, gtab, model="csa", mask=mask, sh_order=6, sm_lambda=0.01)
    assert np.array_equal(estimator.sh_, same.sh) and estimator.sh_.shape[3] == 28
    assert cingulum.CSA().set_params(sh_order=8).sh_order == 8
    with pytest.raises(TypeError, match="did you mean 'sh_order'"):
        cingulum.CSD(sh_ordr=4)
    assert repr(estimator) == "CSA(sh_order=6, sm_lambda=0.01)"
    for cls, names in ((cingulum.DTI, ["fa_", "tensor_"]), (cingulum.OPDT, ["sh_", "gfa_"])):
        one = cls().fit(image, gtab, mask=mask)
        assert all(getattr(one, name).shape[:3] == image.shape[:3] for name in names)


def test_fit_says_what_it_needs(series):
    image, gtab, _ = series
    with pytest.raises(TypeError, match="model"):
        cingulum.fit(image, gtab)
    with pytest.raises(ValueError, match="^model"):
        cingulum.fit(image, gtab, model="qti")
    with pytest.raises(AttributeError, match="a fit of dti has no 'sh'"):
        cingulum.fit(image, gtab, model="dti").sh
    signature = inspect.signature(cingulum.fit)
    assert signature.parameters["sh_basis"].default == "descoteaux07-legacy"
    assert signature.parameters["csd_tau"].default == 0.1


def test_a_mask_that_is_made_is_that_of_the_program(tmp_path, phantom, files, series, run):
    import nibabel

    image, gtab, _ = series
    gradients = ["--bvals", files["bvals"], "--bvecs", files["bvecs"]]
    run("fit", phantom / "dwi.nii.gz", *gradients, "--model", "dti", "--out", tmp_path / "program")
    made = cingulum.fit(image, gtab, model="dti")
    assert np.array_equal(made.mask, np.asarray(nibabel.load(tmp_path / "program/mask.nii.gz").dataobj) > 0)
    assert any("median Otsu" in text and "--" not in text for text in made.warnings)
