"""The other verbs as functions."""

import inspect
import json

import numpy as np
import pytest

import cingulum


@pytest.fixture(scope="module")
def tracks(tmp_path_factory, phantom):
    path = tmp_path_factory.mktemp("verbs") / "tracks.trx"
    cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", nseeds=500, device="cpu", out=path)
    return path


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in {"run", "seconds"}}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def test_score_is_that_of_the_program(tracks, phantom, run):
    ours = cingulum.score(tracks, truth=phantom)
    theirs = json.loads(run("score", tracks, "--truth", phantom, "--json"))
    assert without_times(ours) == without_times(theirs)
    assert 0 < ours["valid"] <= 1


def test_info_verify_compare_convert(tmp_path, tracks, run):
    assert without_times(cingulum.info(tracks)) == without_times(json.loads(run("info", tracks, "--json")))
    assert cingulum.verify(tracks)
    cingulum.convert(tracks, tmp_path / "a.tck")
    same = cingulum.compare(tracks, tmp_path / "a.tck")
    assert without_times(same) == without_times(json.loads(run("compare", tracks, tmp_path / "a.tck", "--json")))
    damaged = bytearray(tracks.read_bytes())
    damaged[len(damaged) // 2] ^= 255
    (tmp_path / "damaged.trx").write_bytes(bytes(damaged))
    with pytest.raises(cingulum.CorruptError) as caught:
        cingulum.verify(tmp_path / "damaged.trx")
    assert caught.value.result["damaged"] == 1


def test_parts_are_merged(tmp_path, phantom):
    words = {"mask": phantom / "mask.nii.gz", "dg": "tensor", "nseeds": 80}
    whole = cingulum.track(phantom / "dwi.nii.gz", **words, out=tmp_path / "whole.trx")
    for number in (1, 2):
        cingulum.track(phantom / "dwi.nii.gz", **words, part=f"{number}/2", out=tmp_path / f"part{number}.trx")
    said = cingulum.merge(tmp_path / "part2.trx", tmp_path / "part1.trx", out=tmp_path / "merged.trx")
    assert (tmp_path / "merged.trx").read_bytes() == (tmp_path / "whole.trx").read_bytes()
    assert said["result"]["seeds"] == 80 and whole is not said
    with pytest.raises(cingulum.CorruptError, match="are missing"):
        cingulum.merge(tmp_path / "part1.trx", out=tmp_path / "half.trx")
    part = cingulum.track(phantom / "dwi.nii.gz", **words, seed_range="0:40")
    other = cingulum.track(phantom / "dwi.nii.gz", **words, part="1/2")
    assert len(part) > 0 and part == other


def test_phantom_and_report(tmp_path, tracks, phantom):
    cingulum.phantom(preset="arcs", voxel_size=4, directions=12, b_values="1000", out=tmp_path / "arcs")
    assert (tmp_path / "arcs/phantom.json").exists() and (tmp_path / "arcs/dwi.nii.gz").exists()
    cingulum.report(tracks, out=tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_signatures_have_every_option():
    from cingulum import _options

    for name in ("merge", "phantom", "score", "report", "compare", "convert", "info", "verify"):
        function = getattr(cingulum, name)
        keywords = set(inspect.signature(function).parameters) - {"progress"}
        assert keywords == set(_options.options_of(name)), name
        assert function.__doc__ and "Parameters\n----------" in function.__doc__


def test_spheres():
    directions = cingulum.sphere()
    assert directions.shape == (321, 3)
    assert np.allclose(np.linalg.norm(directions, axis=1), 1)
    assert cingulum.sphere("repulsion724", full=True).shape == (724, 3)
    with pytest.raises(cingulum.CingulumError):
        cingulum.sphere("no such sphere")


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("nseeds", np.int32(300), [("nseeds", ["300"], False)]),
        ("nseeds", np.float32(300), [("nseeds", ["300"], False)]),
        ("max_angle", np.float32(25.5), [("max-angle", ["25.5"], False)]),
        ("max_angle", np.longdouble(25.5), [("max-angle", ["25.5"], False)]),
        ("seed_grid", np.array([1, 2, 3]), [("seed-grid", ["1x2x3"], False)]),
        ("include", np.array([0, 0, 1.5, 20]), [("include", ["0.0,0.0,1.5,20.0"], False)]),
        ("include", tuple(np.array([0, 0, 1.5, 20])), [("include", ["0.0,0.0,1.5,20.0"], False)]),
        ("include", ["a.nii", np.array([1, 2, 3, 4])], [("include", ["a.nii", "1,2,3,4"], False)]),
        ("force", np.True_, [("force", [], True)]),
        ("force", np.False_, []),
    ],
)
def test_values_of_numpy_are_given_as_those_of_python(name, value, given):
    from cingulum._options import given_of

    assert given_of("track", {name: value}) == given


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nseeds", np.True_, "neither a number nor a text"),
        ("nseeds", np.float64(2.5), "2.5 is not a whole number"),
        ("nseeds", np.datetime64(0, "s"), "a datetime64 is not accepted"),
        ("force", np.int64(1), "neither True nor False"),
        ("force", np.array(True), "neither True nor False"),
    ],
)
def test_values_of_numpy_that_fit_no_option_are_refused(name, value, message):
    from cingulum._options import given_of

    with pytest.raises(cingulum.InvalidArgumentError, match=message):
        given_of("track", {name: value})
