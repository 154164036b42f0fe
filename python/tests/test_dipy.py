"""cingulum.dipy beside dipy.tracking.tracker: the same arguments, and where nothing is drawn the same paths."""

import inspect

import dipy.tracking.tracker as judge
import numpy as np
import pytest
from dipy.data import default_sphere, get_sphere
from dipy.reconst.shm import sh_to_sf
from dipy.tracking.stopping_criterion import BinaryStoppingCriterion, ThresholdStoppingCriterion

import cingulum
import cingulum.dipy as ours

NAMES = ["probabilistic_tracking", "deterministic_tracking", "ptt_tracking", "closestpeak_tracking", "bootstrap_tracking"]


@pytest.fixture(scope="module")
def field(series):
    """Amplitudes with some roughness, harmonics, a stopping map, seeds in world space with their largest peaks."""
    image, gtab, mask = series
    fitted = cingulum.fit(image, gtab, model="csd", mask=mask)
    fa = cingulum.fit(image, gtab, model="dti", mask=mask).fa
    sf = np.maximum(sh_to_sf(fitted.sh, default_sphere, sh_order_max=8, basis_type="descoteaux07", legacy=True), 0)
    rng = np.random.default_rng(3)
    sf = (sf * rng.uniform(0.7, 1.3, sf.shape)).astype(np.float32)
    inside = np.argwhere(fa > 0.4)
    voxels = inside[rng.integers(len(inside), size=150)].astype(np.float64)
    world = voxels @ image.affine[:3, :3].T + image.affine[:3, 3]
    directions = default_sphere.vertices[np.argmax(sf[tuple(voxels.astype(int).T)], axis=1)]
    return fitted.sh, sf, fa.astype(np.float64), world, directions, image.affine


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_dipys_and_more(name):
    theirs = inspect.signature(getattr(judge, name)).parameters
    mine = inspect.signature(getattr(ours, name)).parameters
    for parameter in theirs.values():
        assert mine[parameter.name].default == parameter.default, parameter
        assert mine[parameter.name].kind == parameter.kind, parameter
    assert set(mine) - set(theirs) == {"backend", "chunk_size", "chunked", "max_cross", "is_symmetric"}
    assert "Parameters\n" in getattr(ours, name).__doc__


@pytest.mark.parametrize("name,angle", [("deterministic_tracking", 30), ("closestpeak_tracking", 45)])
def test_paths_are_dipys(field, name, angle):
    _, sf, fa, world, directions, affine = field
    shared = {"seed_directions": directions, "sf": sf, "sphere": default_sphere, "max_angle": angle, "step_size": 0.5, "min_len": 0, "save_seeds": True}
    criterion = ours.ThresholdStoppingCriterion(fa, 0.15)
    mine = {tuple(np.round(seed, 3)): line for line, seed in getattr(ours, name)(world, criterion, affine, backend="cpu", **shared)}
    if name == "closestpeak_tracking":  # DIPY's takes several directions for each seed
        shared["seed_directions"] = directions[:, None, :]
    theirs = {
        tuple(np.round(seed, 3)): line
        for line, seed in getattr(judge, name)(world, ThresholdStoppingCriterion(fa, 0.15), affine, random_seed=1, **shared)
    }
    both = mine.keys() & theirs.keys()
    assert len(both) > 60
    same = 0
    for key in both:
        a, b = np.asarray(mine[key]), np.asarray(theirs[key])
        # From the seed on, 15 steps to each side: two amplitudes that are equal but for rounding may part the paths later.
        at_a, at_b = (int(np.argmin(np.linalg.norm(line - key, axis=1))) for line in (a, b))
        n = min(at_a, at_b, 15)
        m = min(len(a) - at_a, len(b) - at_b, 15)
        same += bool(np.abs(a[at_a - n : at_a + m] - b[at_b - n : at_b + m]).max() < 0.1)
    assert same >= 0.97 * len(both), (same, len(both))


def test_all_forms_of_the_same_field_agree(field):
    sh, sf, fa, world, _, affine = field
    whole = get_sphere(name="repulsion724")
    kept = ours._half(whole.vertices)
    assert kept.sum() == 362
    values = sh_to_sf(sh, whole, sh_order_max=8, basis_type="descoteaux07", legacy=True).clip(0)
    shared = {"sf": values, "sphere": whole, "backend": "cpu", "random_seed": 4}
    lines = list(ours.probabilistic_tracking(world, (fa, 0.15), affine, **shared))
    assert len(lines) > 50 and lines[0].dtype == np.float64
    # Chunked, chunks of another size, a half of the sphere: the same streamlines.
    points = [chunk for chunk in ours.probabilistic_tracking(world, (fa, 0.15), affine, chunked=True, chunk_size=17, **shared)]
    assert np.array_equal(np.concatenate([p for p, _ in points]), np.concatenate(lines))
    assert sum(len(lengths) for _, lengths in points) == len(lines)
    half = {**shared, "sf": values[..., kept], "sphere": whole.vertices[kept]}
    assert all(np.array_equal(a, b) for a, b in zip(ours.probabilistic_tracking(world, (fa, 0.15), affine, **half), lines, strict=True))
    # Another seed draws otherwise; the same draws the same.
    other = list(ours.probabilistic_tracking(world, (fa, 0.15), affine, **{**shared, "random_seed": 5}))
    assert not np.array_equal(np.concatenate(other), np.concatenate(lines))


def test_every_function_tracks_harmonics(field, series):
    sh, _, fa, world, _, affine = field
    image, gtab, mask = series
    for name in NAMES[:4]:
        lines = list(getattr(ours, name)(world, (fa, 0.15), affine, sh=sh, backend="cpu"))
        assert len(lines) > 50, name
        lengths = [np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in lines]
        assert min(lengths) >= 1.99 and max(lengths) <= 500
    from dipy.reconst.shm import CsaOdfModel

    lines = list(ours.bootstrap_tracking(world, (fa, 0.15), affine, data=np.asarray(image.dataobj), model=CsaOdfModel(gtab, 4), backend="cpu"))
    assert len(lines) > 50


def test_criteria(field, series):
    sh, _, fa, world, _, affine = field
    binary = BinaryStoppingCriterion((fa > 0.15).astype(np.uint8))
    shared = {"sh": sh, "backend": "cpu", "max_len": 60}
    by_criterion = list(ours.deterministic_tracking(world, binary, affine, **shared))
    direct = cingulum.track(
        sh=sh, affine=affine, stop_map=fa > 0.15, stop_threshold=0.5, stop_rule="nearest", preset="dipy", dg="det", seeds=world,
        min_length=2, max_length=60, max_directions=1, interpolate="harmonics", float64=True, device="cpu", step_size="0.2mm",
        max_angle=20, pmf_threshold=0.1, sphere="repulsion724",
    )
    assert len(by_criterion) > 20 and len(direct) == len(by_criterion)
    assert np.abs(np.concatenate(by_criterion) - direct.positions).max() < 1e-3
    with pytest.raises(RuntimeError, match="hides its map"):
        ours.deterministic_tracking(world, ThresholdStoppingCriterion(fa, 0.15), affine, **shared)


def test_what_is_not_there_is_refused_by_name(field):
    sh, sf, fa, world, _, affine = field
    for keywords, match in (
        ({}, "exactly one"),
        ({"sh": sh, "sf": sf}, "exactly one"),
        ({"sf": sf}, "sphere"),
        ({"pam": object()}, "pam"),
        ({"sh": sh, "return_all": False}, "return_all"),
        ({"sh": sh, "backend": "tpu"}, "backend"),
        ({"sh": sh, "basis_type": "tournier07"}, "basis_type"),
        ({"sf": sf[..., :9], "sphere": default_sphere}, "sf"),
    ):
        with pytest.raises(cingulum.CingulumError, match=match):
            ours.probabilistic_tracking(world, (fa, 0.15), affine, **keywords)
    for name in ("eudx_tracking", "pft_tracking"):
        with pytest.raises(cingulum.UnavailableError, match=name):
            getattr(ours, name)(world, (fa, 0.15), affine)
