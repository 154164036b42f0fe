"""What an option of `track` and `fit` means is said in one table: wherever options are listed, each row of it is found."""

import inspect
import pathlib

import numpy as np
import pytest

import cingulum
import cingulum.oct
from cingulum import _options

CLONE = pathlib.Path(__file__).resolve().parents[2]


def test_every_row_of_a_reconstruction_is_in_help_page_and_signature(run):
    shown = run("oct", "run", "--help")
    page = (CLONE / "docs" / "commands" / "oct.md").read_text()
    parameters = inspect.signature(cingulum.oct.run).parameters
    rows = _options.options_of("oct run")
    assert len(rows) > 40
    for keyword, row in rows.items():
        assert keyword in parameters, keyword
        assert f"\n{keyword} : " in cingulum.oct.run.__doc__, keyword
        assert row["phase"], keyword
        if row["name"] != "tiles":
            assert f"--{row['name']}" in shown, row["name"]
            assert f"--{row['name']}" in page, row["name"]
    assert "--tissue-radius" not in shown and "--transforms-dir" not in shown


@pytest.mark.parametrize("verb", ["track", "fit"])
def test_every_row_is_in_help_page_signature_and_documentation(verb, run):
    shown = run(verb, "--help")
    page = (CLONE / "docs" / "commands" / f"{verb}.md").read_text()
    function = getattr(cingulum, verb)
    parameters = inspect.signature(function).parameters
    stub = (CLONE / "python" / "cingulum" / "__init__.pyi").read_text()
    stub = stub[stub.index(f"def {verb}(") :]
    stub = stub[: stub.index("\ndef ")]
    rows = _options.options_of(verb)
    assert len(rows) > 25
    for keyword, row in rows.items():
        if row["positional"]:
            continue
        assert f"--{row['name']}" in shown, row["name"]
        assert f"--{row['name']}" in page, row["name"]
        assert keyword in parameters, keyword
        assert f" {keyword}:" in stub, keyword
        assert f"\n{keyword} : " in function.__doc__, keyword
        assert row["phase"], keyword


def test_sidecar_has_the_rows_that_decide_the_result_and_no_other(tmp_path, phantom):
    words = {"dg": "det", "nseeds": 20, "mask": phantom / "mask.nii.gz", "device": "cpu", "keep_partial": True}
    told = cingulum.track(phantom / "dwi.nii.gz", **words, out=tmp_path / "a.trx", chunk_size=7, threads=1)
    options = told["arguments"]["options"]
    rows = {row["name"]: row for row in _options.tables()["track"]["arguments"]}
    deciding = {name for name, row in rows.items() if row["phase"] in ("input", "field", "plan", "seeds", "selection", "output")}
    assert set(options) <= deciding
    assert set(told["arguments"]["given"]) == {"data", "dg", "nseeds", "mask"}
    # A row without a value (no default, not given) is not written; flags and what has a default are.
    assert {name for name in deciding if rows[name]["type"] == "flag" or rows[name]["default"]} <= set(options)


def test_a_tracker_takes_what_a_field_that_stays_allows(phantom):
    rows = _options.options_of("track")
    staying = {name for name, row in rows.items() if row["changes_while_field_stays"]}
    assert {"step_size", "max_angle", "nseeds", "include", "save_seeds", "chunk_size"} <= staying
    assert not staying & {"mask", "model", "sphere", "sh_order", "device", "out", "preset", "threads"}
    with cingulum.Tracker(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", dg="prob", device="cpu", nseeds=200) as tracker:
        own = cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", dg="det", device="cpu", nseeds=150,
                             max_angle=18, step_size="1.2mm", fa_threshold=0.3)  # fmt: skip
        other = tracker.track(dg="det", nseeds=150, max_angle=18, step_size="1.2mm", fa_threshold=0.3)
        # The field was made for another threshold, which its facts say; the streamlines are the same.
        assert len(own) > 10 and np.array_equal(own.positions, other.positions) and np.array_equal(own.offsets, other.offsets)
        with pytest.raises(cingulum.InvalidArgumentError, match="prepared for 0.2"):
            tracker.track(fa_threshold=0.1)
        with pytest.raises(cingulum.InvalidArgumentError, match="another field"):
            tracker.track(dg="boot")
        for name, value in (("mask", None), ("model", "opdt"), ("sh_order", 6), ("device", "cpu")):
            with pytest.raises(cingulum.InvalidArgumentError, match="belongs to the field"):
                tracker.track(**{name: value})
        # What was refused has changed nothing.
        assert tracker.track() == cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", dg="prob", device="cpu", nseeds=200)


def test_a_seed_mask_that_is_a_file_is_taken_anew(phantom):
    words = {"mask": phantom / "mask.nii.gz", "dg": "det", "device": "cpu", "nseeds": 100}
    bundle = sorted((phantom / "bundles").glob("*.nii.gz"))[0]
    with cingulum.Tracker(phantom / "dwi.nii.gz", **words) as tracker:
        assert tracker.track(seed_mask=bundle) == cingulum.track(phantom / "dwi.nii.gz", **words, seed_mask=bundle)
