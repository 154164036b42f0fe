"""track and its relatives: the bytes of the program, whatever the data come as."""

import inspect
import json
import os
import pickle
import re
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cingulum
from cingulum import _options


def without_run(path):
    with open(path, encoding="utf-8") as file:
        sidecar = json.load(file)
    sidecar.pop("run")
    return sidecar


def test_keywords_and_defaults_are_those_of_the_program():
    """Against the help of the program, not the table that made the signature."""
    help_text = subprocess.run([os.environ["CINGULUM"], "track", "--help"], capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"^\s+(?:-\w, )?--([a-z0-9-]+)", help_text, re.M)) - {
        "help", "json", "quiet", "verbose", "progress",
    }
    signature = inspect.signature(cingulum.track)
    keywords = set(signature.parameters) - {"data", "gtab", "affine", "seeds", "progress"}
    assert {_options.keyword(name) for name in options} == keywords
    assert len(keywords) > 70
    assert signature.parameters["dg"].default == "ptt"
    assert signature.parameters["nseeds"].default == 100000
    assert signature.parameters["min_length"].default == 2.0
    assert signature.parameters["ptt_probe_length"].default == "2vox"
    assert signature.parameters["rk4"].default is False
    assert signature.parameters["seed"].default == 0
    for text in ("max_angle", "stop_map", "save_seeds"):
        assert f"\n{text} : " in cingulum.track.__doc__
    assert not re.search(r"--[a-z]", cingulum.track.__doc__)


@pytest.mark.parametrize(
    "options,typed",
    [
        ({"dg": "prob", "nseeds": 400, "save_seeds": True}, "--dg prob --nseeds 400 --save-seeds"),
        (
            {"dg": "ptt", "nseeds": np.int32(300), "seed": 2**63 + 5, "step_size": "0.4vox"},
            "--dg ptt --nseeds 300 --seed 9223372036854775813 --step-size 0.4vox",
        ),
        (
            {"dg": "det", "nseeds": 400, "max_angle": np.float32(25.5), "include": [(0, 0, 0, 20.0), "1,2,3,30"]},
            "--dg det --nseeds 400 --max-angle 25.5 --include 0,0,0,20 --include 1,2,3,30",
        ),
        (
            {"dg": "boot", "nseeds": 200, "model": "csa", "min_points": 20, "float64": True, "rk4": False},
            "--dg boot --nseeds 200 --model csa --min-points 20 --float64",
        ),
        (
            {"dg": "tensor", "seed_grid": (2, 1, 1), "rk4": True, "stop_threshold": 0.3, "float16": True},
            "--dg tensor --seed-grid 2x1x1 --rk4 --stop-threshold 0.3 --float16",
        ),
        ({"dg": "closest", "select": 50, "linearise": 0.1, "shell": None}, "--dg closest --select 50 --linearise 0.1"),
    ],
)
def test_python_writes_the_bytes_of_the_program(tmp_path, phantom, run, options, typed):
    words = [phantom / "dwi.nii.gz", "--mask", phantom / "mask.nii.gz", *typed.split()]
    run("track", *words, "--device", "cpu", "--out", tmp_path / "a.trx", "--quiet")
    data = phantom / "dwi.nii.gz"
    sidecar = cingulum.track(data, mask=phantom / "mask.nii.gz", device="cpu", out=tmp_path / "b.trx", **options)
    bytes_of_program = (tmp_path / "a.trx").read_bytes()
    assert (tmp_path / "b.trx").read_bytes() == bytes_of_program
    told, ours = without_run(tmp_path / "a.trx.json"), without_run(tmp_path / "b.trx.json")
    assert ours.pop("file") == "b.trx" and told.pop("file") == "a.trx"
    assert told["arguments"]["options"].pop("include", None) == (["0,0,0,20", "1,2,3,30"] if "include" in options else None)
    ours["arguments"]["options"].pop("include", None)  # 20 and 20.0 are the same sphere
    assert ours == told
    sidecar.pop("run")
    sidecar["arguments"]["options"].pop("include", None)
    assert sidecar["result"] == told["result"] and sidecar["arguments"] == told["arguments"]
    # In memory, and saved from there.
    made = cingulum.track(data, mask=phantom / "mask.nii.gz", device="cpu", **options)
    made.save(tmp_path / "c.trx")
    assert (tmp_path / "c.trx").read_bytes() == bytes_of_program
    saved = without_run(tmp_path / "c.trx.json")
    saved.pop("file")
    saved["arguments"]["options"].pop("include", None)
    assert saved == told
    assert len(made) == told["result"]["kept"] > 20


def test_arrays_give_the_streamlines_of_files(tmp_path, phantom, series):
    image, gtab, mask = series
    options = {"nseeds": 400, "dg": "prob", "device": "cpu"}
    from_files = cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", **options)
    for data, brain in (
        (image, mask),
        (np.asarray(image.dataobj), np.asarray(mask.dataobj) > 0),
        (np.ascontiguousarray(image.dataobj, dtype=np.float64), np.asarray(mask.dataobj).astype(np.int16)),
    ):
        affine = None if data is image else image.affine
        from_arrays = cingulum.track(data, gtab, mask=brain, affine=affine, **options)
        assert np.array_equal(from_arrays.positions, from_files.positions)
        assert np.array_equal(from_arrays.offsets, from_files.offsets)
        assert np.array_equal(from_arrays.affine, from_files.affine) and from_arrays.shape == from_files.shape
    pair = (np.loadtxt(phantom / "dwi.bval"), np.loadtxt(phantom / "dwi.bvec"))
    by_pair = cingulum.track(image, pair, mask=mask, **options)
    assert np.array_equal(by_pair.positions, from_files.positions)
    inputs = {entry["option"]: entry for entry in by_pair.sidecar["inputs"]}
    assert set(inputs) == {"data", "mask"} and len(inputs["data"]["xxh3_128"]) == 32


def test_images_of_orientations_as_arrays_track_as_files(tmp_path, phantom, run):
    import nibabel

    series = [phantom / "dwi.nii.gz", "--bvals", phantom / "dwi.bval", "--bvecs", phantom / "dwi.bvec", "--mask", phantom / "mask.nii.gz"]
    run("fit", *series, "--model", "csd", "--sh-basis", "descoteaux07-legacy", "--odf", "--peaks", 3, "--out", tmp_path / "csd")
    run("fit", *series, "--model", "dti", "--tensor-order", "dipy", "--frame", "image", "--out", tmp_path / "dti")
    fa = tmp_path / "dti/fa.nii.gz"
    shared = {"nseeds": 300, "device": "cpu", "stop_map": fa, "stop_threshold": 0.15, "mask": phantom / "mask.nii.gz"}
    for name, file, dg in (("sh", "csd/fod", "prob"), ("sf", "csd/odf", "det"), ("peaks", "csd/peaks", "closest"), ("tensor", "dti/tensor", "tensor")):
        path = tmp_path / f"{file}.nii.gz"
        image = nibabel.load(path)
        from_file = cingulum.track(**{name: path}, dg=dg, frame="image" if name != "sf" else None, **shared)
        arrays = {**shared, "stop_map": nibabel.load(fa), "mask": nibabel.load(phantom / "mask.nii.gz")}
        from_array = cingulum.track(**{name: image}, dg=dg, **arrays)
        assert len(from_file) > 20, name
        assert np.array_equal(from_array.positions, from_file.positions), name
        if name == "peaks":
            values = np.asarray(image.dataobj)
            five = values.reshape(*values.shape[:3], -1, 3)
            again = cingulum.track(peaks=five, affine=image.affine, dg=dg, **arrays)
            assert np.array_equal(again.positions, from_file.positions)
        if name == "tensor":
            d = np.asarray(image.dataobj)
            matrix = np.stack([d[..., [0, 1, 3]], d[..., [1, 2, 4]], d[..., [3, 4, 5]]], axis=-1)
            again = cingulum.track(tensor=matrix, affine=image.affine, dg=dg, **arrays)
            assert np.array_equal(again.positions, from_file.positions)


def test_a_fit_can_be_tracked(phantom, series):
    image, gtab, mask = series
    fitted = cingulum.fit(image, gtab, model="csd", mask=mask)
    tensors = cingulum.fit(image, gtab, model="dti", mask=mask)
    shared = {"nseeds": 300, "device": "cpu", "stop_map": tensors.fa, "stop_threshold": 0.15}
    from_fit = cingulum.track(fitted, dg="prob", **shared)
    from_array = cingulum.track(sh=fitted.sh, affine=image.affine, mask=mask, dg="prob", **shared)
    assert len(from_fit) > 50
    assert np.array_equal(from_fit.positions, from_array.positions)
    assert len(cingulum.track(tensors, dg="tensor", nseeds=300, device="cpu")) > 50


def test_seeds_and_directions_as_arrays_are_those_of_files(tmp_path, phantom, series):
    image, gtab, mask = series
    rng = np.random.default_rng(5)
    inside = np.argwhere(np.asarray(mask.dataobj) > 0)
    world = inside[rng.integers(len(inside), size=300)] @ image.affine[:3, :3].T + image.affine[:3, 3]
    directions = rng.normal(size=world.shape)
    np.savetxt(tmp_path / "seeds.txt", world, fmt="%.17g")
    np.savetxt(tmp_path / "directions.txt", directions, fmt="%.17g")
    shared = {"mask": phantom / "mask.nii.gz", "dg": "prob", "device": "cpu", "min_length": 0}
    by_file = cingulum.track(phantom / "dwi.nii.gz", seed_file=tmp_path / "seeds.txt", directions=tmp_path / "directions.txt", **shared)
    by_array = cingulum.track(phantom / "dwi.nii.gz", seeds=world, directions=directions, **shared)
    assert len(by_file) > 5
    assert np.array_equal(by_file.positions, by_array.positions)
    backwards = cingulum.track(phantom / "dwi.nii.gz", seeds=world[::-1][::-1], directions=np.asfortranarray(directions), **shared)
    assert np.array_equal(by_file.positions, backwards.positions)


def test_batches_are_the_whole_and_leaving_ends_the_run(phantom):
    options = {"mask": phantom / "mask.nii.gz", "nseeds": 3000, "dg": "prob", "device": "cpu"}
    whole = cingulum.track(phantom / "dwi.nii.gz", **options)
    for chunk in (100, 777):
        parts = list(cingulum.track_batches(phantom / "dwi.nii.gz", chunk_size=chunk, **options))
        assert len(parts) > 2
        assert np.array_equal(np.concatenate([part.positions for part in parts]), whole.positions)
        assert sum(len(part) for part in parts) == len(whole)
        assert np.array_equal(np.concatenate([part.seed_indices for part in parts]), whole.seed_indices)
    endless = {**options, "nseeds": 50_000_000}
    for part in cingulum.track_batches(phantom / "dwi.nii.gz", chunk_size=100, **endless):
        assert len(part)
        break
    with pytest.raises(ValueError, match="out"):
        cingulum.track_batches(phantom / "dwi.nii.gz", out="x.trx", **options)


def test_a_tracker_keeps_the_field(phantom):
    options = {"mask": phantom / "mask.nii.gz", "dg": "prob", "device": "cpu"}
    world = np.zeros((10, 3))
    with cingulum.Tracker(phantom / "dwi.nii.gz", nseeds=200, **options) as tracker:
        for more in ({}, {"nseeds": 500, "seed": 3}, {"seeds": world}, {"select": 40}, {"min_length": 30}, {}):
            given = {} if "seeds" in more or "select" in more else {"nseeds": 200}
            if "nseeds" not in more and not given:
                continue
            expected = cingulum.track(phantom / "dwi.nii.gz", **{**given, **options, **more})
            assert tracker.track(**more) == expected
        assert sum(len(part) for part in tracker.batches(nseeds=500)) == len(cingulum.track(phantom / "dwi.nii.gz", nseeds=500, **options))
        # A loop that is left leaves no thread behind.
        threads = len(os.listdir("/proc/self/task"))
        loop = tracker.batches(nseeds=50_000_000, chunk_size=100)
        assert len(next(loop)) and len(os.listdir("/proc/self/task")) > threads
        loop.close()
        assert len(os.listdir("/proc/self/task")) == threads
        with pytest.raises(ValueError, match="belongs to the field"):
            tracker.track(model="csa")
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(tracker)
    with pytest.raises(RuntimeError, match="closed"):
        tracker.track()


@pytest.fixture(scope="module")
def small(series):
    """A box of the phantom that tracks in a moment, and what it gives in the order and type that is read in place."""
    image, gtab, mask = series
    box = tuple(slice(size // 2 - 4, size // 2 + 4) for size in image.shape[:3])
    values = np.asfortranarray(np.round(np.asarray(image.dataobj)[box]), dtype=np.float32)
    options = {"affine": image.affine, "nseeds": 60, "dg": "tensor", "device": "cpu", "threads": 1, "min_length": 0, "fa_threshold": 0.05}
    brain = np.ones(values.shape[:3], bool)
    truth = cingulum.track(values, gtab, mask=brain, **options)
    assert len(truth) > 10
    return values, gtab, brain, options, truth


LAYOUTS = st.sampled_from(["C", "F", "strided", "reversed", "big-endian", "read-only", "transposed", "offset"])
TYPES = st.sampled_from(["float32", "float64", "int16", "int32", "uint16", "uint64", "float16"])


def laid_out(values, layout, kind):
    array = values.astype(kind)
    if layout == "C":
        return np.ascontiguousarray(array)
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "strided":
        wide = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
        wide[::2, ::2, ::2, ::2] = array
        return wide[::2, ::2, ::2, ::2]
    if layout == "reversed":
        return np.ascontiguousarray(array[::-1, :, ::-1])[::-1, :, ::-1]
    if layout == "big-endian":
        return array.astype(array.dtype.newbyteorder(">"))
    if layout == "read-only":
        array.flags.writeable = False
        return array
    if layout == "transposed":
        return np.ascontiguousarray(array.transpose(3, 1, 0, 2)).transpose(2, 1, 3, 0)
    raw = np.zeros(array.nbytes + 1, np.uint8)
    moved = raw[1:].view(array.dtype).reshape(array.shape)
    moved[:] = array
    return moved


@given(LAYOUTS, TYPES)
def test_any_layout_and_type_gives_the_same_result(small, layout, kind):
    values, gtab, brain, options, truth = small
    if kind == "float16" and not np.array_equal(values.astype(kind).astype(np.float32), values):
        scaled = values.astype(kind).astype(np.float32)
        truth = cingulum.track(scaled, gtab, mask=brain, **options)
    made = cingulum.track(laid_out(values, layout, kind), gtab, mask=laid_out(brain[..., None], layout, "uint8")[..., 0], **options)
    assert np.array_equal(made.positions, truth.positions)
    assert np.array_equal(made.offsets, truth.offsets)
    assert made.sidecar["inputs"] == truth.sidecar["inputs"]


@pytest.fixture(scope="module")
def fields(series):
    """Arrays of every kind that can be tracked."""
    image, gtab, mask = series
    csa = cingulum.fit(image, gtab, model="csa", mask=mask)
    return {
        "sf": (csa.odf("small", clip=True), {"dg": "prob", "sphere": "small"}),
        "sh": (csa.sh, {"dg": "det"}),
        "peaks": (csa.peaks(2).reshape(*csa.mask.shape, 6), {"dg": "closest"}),
        "tensor": (cingulum.fit(image, gtab, model="dti", mask=mask).tensor, {"dg": "tensor"}),
    }


@pytest.mark.parametrize("kind", ["sf", "sh", "peaks", "tensor"])
@pytest.mark.parametrize("stop", ["map", "the field's own"])
def test_fields_of_any_layout_and_type_give_the_same_result(series, fields, kind, stop):
    values, options = fields[kind]
    options = {**options, "affine": series[0].affine, "nseeds": 40, "device": "cpu", "min_length": 0}
    if stop == "map":
        options.update(stop_map=np.asarray(series[2].dataobj), stop_threshold=0.5)
    truth = cingulum.track(**{kind: np.asfortranarray(values, dtype=np.float32)}, **options)
    assert len(truth) > 10
    for layout, number in (("C", "float32"), ("C", "float64"), ("strided", "float32"), ("reversed", "float64"), ("transposed", "float32")):
        made = cingulum.track(**{kind: laid_out(values, layout, number)}, **options)
        assert np.array_equal(made.positions, truth.positions) and np.array_equal(made.offsets, truth.offsets)
        assert made.sidecar["inputs"] == truth.sidecar["inputs"]


@given(st.sampled_from(["empty", "3d", "5d", "text", "complex", "object", "masked", "few volumes", "nan"]))
def test_what_cannot_be_is_a_clear_error(small, case):
    values, gtab, brain, options, _ = small
    bad = {
        "empty": lambda: values[:0],
        "3d": lambda: values[..., 0],
        "5d": lambda: values[..., None],
        "text": lambda: values.astype(str),
        "complex": lambda: values.astype(complex),
        "object": lambda: values.astype(object),
        "masked": lambda: np.ma.masked_less(values, 3),
        "few volumes": lambda: values[..., :5],
        "nan": lambda: values,
    }[case]()
    if case == "nan":
        made = cingulum.track(np.where(np.arange(values.shape[3]) == 9, np.nan, values), gtab, mask=brain, **options)
        assert made.sidecar["result"]["seeds"] == 60
        return
    with pytest.raises(ValueError, match="^(data|gtab): "):
        cingulum.track(bad, gtab, mask=brain, **options)


def test_masks_and_affines_that_do_not_fit_are_refused(small):
    values, gtab, brain, options, _ = small
    for name in ("mask", "seed_mask", "stop_map"):
        with pytest.raises(ValueError, match=f"^{name}: its shape is"):
            cingulum.track(values, gtab, **{**options, "mask": brain, name: np.ones((2, 3, 4))})
    for affine in (np.zeros((4, 4)), np.eye(3), np.full((4, 4), np.nan)):
        with pytest.raises(ValueError, match="^affine: "):
            cingulum.track(values, gtab, mask=brain, **{**options, "affine": affine})
    with pytest.raises(ValueError, match="^gtab: "):
        cingulum.track(values, None, mask=brain, **options)
    with pytest.raises(ValueError, match="^gtab: "):
        cingulum.track("dwi.nii.gz", gtab)
