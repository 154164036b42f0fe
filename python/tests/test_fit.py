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


def test_a_run_is_repeated_with_its_own_basis(tmp_path, phantom, files, series, run):
    words = [phantom / "dwi.nii.gz", *[part for name, path in files.items() for part in (f"--{name}", path)]]
    run("fit", *words, "--model", "opdt", "--sm-lambda", "0.02", "--out", tmp_path / "program", "--device", "cpu")
    summary = tmp_path / "program/fit.json"
    again = cingulum.fit(from_=summary, out=tmp_path / "again", device="cpu")
    assert again.sh_basis == "tournier07"
    assert folder_content(tmp_path / "again") == folder_content(tmp_path / "program")
    assert cingulum.fit(from_=summary, sh_basis="descoteaux07-legacy").sh_basis == "descoteaux07-legacy"
    # The same parameters for an array, and the run of an array, which is to be given again.
    image, gtab, mask = series
    made = cingulum.fit(image, gtab, from_=summary, mask=mask)
    assert made.facts["parameters"]["sm_lambda"] == 0.02
    made.save(tmp_path / "array")
    assert cingulum.fit(image, gtab, from_=tmp_path / "array/fit.json", mask=mask) == made
    with pytest.raises(FileNotFoundError, match="<array>"):
        cingulum.fit(from_=tmp_path / "array/fit.json")


def test_arrays_fit_as_files_do(phantom, files, series):
    image, gtab, mask = series
    from_files = cingulum.fit(phantom / "dwi.nii.gz", model="csa", **files)
    for data in (image, np.ascontiguousarray(image.dataobj, dtype=np.float64)):
        made = cingulum.fit(data, gtab, model="csa", mask=mask, affine=image.affine)
        assert np.array_equal(made.sh, from_files.sh)
        assert np.array_equal(made.gfa, from_files.gfa)
        assert np.array_equal(made.mask, from_files.mask)
    assert np.array_equal(made.affine, image.affine)


def test_arrays_are_read_where_they_lie_unless_the_library_cannot():
    values = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    for kind in ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"):
        for array in (values.astype(kind), np.asfortranarray(values, kind), values.astype(kind)[::-1, ::2]):
            assert _arrays.volumes("data", array) is array
    off_boundary = np.frombuffer(b"." + values.tobytes(), "f8", offset=1).reshape(values.shape)
    records = np.zeros(values.shape, [("a", "i2"), ("b", "f8")])
    records["b"] = values
    for array in (values.astype("f2"), values.astype("g"), values.astype(">f8"), off_boundary, records["b"]):
        made = _arrays.volumes("data", array)
        assert made.dtype == np.float32 and made.flags.f_contiguous
        np.testing.assert_array_equal(made, values)


def test_every_voxel_of_a_large_map_is_in_its_place():
    """37 720 voxels: threads fill 16 384 at a time, whose first and last are in the mask."""
    draw = np.random.default_rng(1)
    shape = (41, 40, 23)
    s0 = draw.uniform(100, 1000, shape)
    vectors = np.vstack([np.zeros((1, 3)), cingulum.sphere("small")[::9]])
    b_values = np.where(vectors.any(axis=1), 1000.0, 0.0)
    data = s0[..., None] * np.exp(-b_values * 1e-3)
    mask = np.asfortranarray(draw.random(shape) < 0.5)
    mask.reshape(-1, order="F")[[0, 16383, 16384, 16385, 32767, 32768, -1]] = True
    made = cingulum.fit(data, (b_values, vectors), model="dti", mask=mask, bvec_frame="voxel")
    assert np.array_equal(made.mask, mask)
    np.testing.assert_allclose(made.s0[mask], s0[mask], rtol=1e-5)
    np.testing.assert_allclose(made.tensor[mask], [[1e-3, 0, 1e-3, 0, 0, 1e-3]] * mask.sum(), atol=1e-8)
    assert all((values[~mask] == 0).all() for values in made.maps.values())


def test_maps_beyond_float32_become_infinite_without_a_warning(recwarn):
    made = _arrays.scalar_map("stop_map", np.array([[[1e39, 0.5]]]), (1, 1, 2))
    assert made.dtype == np.float32 and made[0, 0].tolist() == [np.inf, 0.5] and not recwarn.list


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
    with pytest.raises(TypeError, match="data"):
        cingulum.fit(model="dti")
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
