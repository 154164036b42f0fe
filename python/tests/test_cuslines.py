"""cingulum.cuslines: the names, arguments and results of cuslines."""

import inspect
import math
import subprocess
import sys

import numpy as np
import pytest
from dipy.data import get_sphere
from dipy.reconst.shm import sh_to_sf

import cingulum
import cingulum.cuslines as cuslines
from cingulum.cuslines.numba import CPUTracker

# The signatures of cuslines 2.2.3.
TRACKER = {
    "sphere_symm": False, "max_angle": math.radians(60), "step_size": 0.5, "min_pts": 0, "max_pts": math.inf, "relative_peak_thresh": 0.25,
    "min_separation_angle": math.radians(45), "ngpus": 1, "rng_seed": 0, "rng_offset": 0, "chunk_size": 25000,
}
MODULES = {
    "cingulum.cuslines": ["Tracker", "ProbDirectionGetter", "PttDirectionGetter", "BootDirectionGetter"],
    "cingulum.cuslines.cuda_python": ["GPUTracker", "ProbDirectionGetter", "PttDirectionGetter", "BootDirectionGetter"],
    "cingulum.cuslines.cuda_python.cu_tractography": ["GPUTracker"],
    "cingulum.cuslines.cuda_python.cu_direction_getters": ["GPUDirectionGetter", "BootDirectionGetter"],
    "cingulum.cuslines.cuda_python.cu_propagate_seeds": ["SeedBatchPropagator"],
    "cingulum.cuslines.cuda_python.cutils": ["ModelType", "REAL_SIZE", "REAL_DTYPE", "REAL3_DTYPE", "BLOCK_Y", "div_up"],
    "cingulum.cuslines.cuda_python._globals": ["EXCESS_ALLOC_FACT", "MAX_SLINES_PER_SEED", "MAX_SLINE_LEN", "PMF_THRESHOLD_P", "THR_X_BL", "THR_X_SL", "NORM_EPS"],
    "cingulum.cuslines.webgpu": ["WebGPUTracker", "WebGPUProbDirectionGetter", "WebGPUPttDirectionGetter", "WebGPUBootDirectionGetter"],
    "cingulum.cuslines.metal": ["MetalGPUTracker", "MetalProbDirectionGetter", "MetalPttDirectionGetter", "MetalBootDirectionGetter"],
    "cingulum.cuslines.numba": ["CPUTracker", "CPUProbDirectionGetter", "CPUPttDirectionGetter", "CPUBootDirectionGetter"],
    "cingulum.cuslines.boot_utils": ["prepare_opdt", "prepare_csa"],
    "cingulum.cuslines.generic_tracker": ["GenericTracker"],
}


def test_every_module_has_its_names_and_opens_nothing():
    lines = [f"import {module}\nassert all(hasattr({module}, name) for name in {names})" for module, names in MODULES.items()]
    code = "\n".join(["import sys", *lines, "for name in ('dipy', 'nibabel', 'numba', 'cupy', 'trx'): assert name not in sys.modules, name",
                      "text = open('/proc/self/maps').read()", "assert 'wgpu' not in text and 'libcuda.' not in text"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_signatures():
    parameters = inspect.signature(cuslines.Tracker).parameters
    assert list(parameters)[:6] == ["dg", "dataf", "stop_map", "stop_threshold", "sphere_vertices", "sphere_edges"]
    assert {name: parameter.default for name, parameter in list(parameters.items())[6:]} == TRACKER
    ptt = inspect.signature(cuslines.PttDirectionGetter).parameters
    assert {name: p.default for name, p in ptt.items()} == {"odf_lut_res": 128, "probe_length": 0.25, "target_short_step": 0.025, "probe_quality": 8}
    for maker in (cuslines.BootDirectionGetter.from_dipy_opdt, cuslines.BootDirectionGetter.from_dipy_csa):
        assert [p.default for p in list(inspect.signature(maker).parameters.values())[2:]] == [6, False, 0.006, 1]
    assert inspect.signature(CPUTracker.__init__).parameters["chunk_size"].default == 100000
    assert cuslines.BACKEND in {"cuda", "webgpu", "metal", None}


@pytest.fixture(scope="module")
def field(series):
    image, gtab, mask = series
    sphere = get_sphere(name="repulsion724")
    fitted = cingulum.fit(image, gtab, model="csd", mask=mask)
    sf = sh_to_sf(fitted.sh, sphere, sh_order_max=8, basis_type="descoteaux07", legacy=True).clip(0).astype(np.float32)
    fa = cingulum.fit(image, gtab, model="dti", mask=mask).fa
    inside = np.argwhere(fa > 0.4)
    rng = np.random.default_rng(2)
    seeds = inside[rng.integers(len(inside), size=120)] + rng.uniform(-0.4, 0.4, (120, 3))
    return sf, fa, sphere, seeds


@pytest.mark.parametrize("getter", ["prob", "ptt"])
def test_chunks_change_nothing_and_results_are_those_of_track(field, series, getter):
    sf, fa, sphere, seeds = field
    image = series[0]
    dg = {"prob": cuslines.ProbDirectionGetter, "ptt": cuslines.PttDirectionGetter}[getter]()
    results = []
    for chunk in (25000, 7):
        with CPUTracker(dg, sf, fa, 0.2, sphere.vertices, sphere.edges, max_angle=math.radians(40), chunk_size=chunk, rng_seed=3) as tracker:
            results.append(tracker.generate_sft(seeds, image))
    first = results[0]
    assert len(first) > 50
    assert np.array_equal(first.streamlines._data, results[1].streamlines._data)
    assert first.space.name == "VOX" and first.origin.value == "center"
    more = {"ptt_probe_length": "2.0vox", "ptt_probe_quality": 9, "ptt_substeps": 20} if getter == "ptt" else {}
    kept = [i for i, v in enumerate(sphere.vertices) if v[2] > 1e-9 or (abs(v[2]) <= 1e-9 and v[1] > 0)]
    made = cingulum.track(
        sf=sf[..., kept], sphere=sphere.vertices[kept], affine=image.affine, stop_map=fa, stop_threshold=0.2, stop_rule="trilinear", dg=getter,
        preset="cuslines", max_angle=math.degrees(math.radians(40)), seeds=seeds, seed_space="voxel", seed=3, min_length=0, max_length="500vox",
        step_size=0.5, device="cpu", **more,
    )
    assert len(made) == len(first)
    first.to_rasmm()
    assert np.abs(first.streamlines._data - made.positions).max() < 1e-3


def test_asymmetric_amplitudes_keep_both_directions(field, series):
    sf, fa, sphere, seeds = field
    lopsided = sf * (1 + 0.8 * (sphere.vertices[:, 0] > 0))
    build = lambda values: CPUTracker(cuslines.ProbDirectionGetter(), values, fa, 0.2, sphere.vertices, sphere.edges)
    assert "full_sphere" not in build(sf)._field() and build(sf)._field()["sf"].shape[3] == 362
    assert build(lopsided)._field()["full_sphere"] and build(lopsided)._field()["sf"].shape[3] == 724
    assert len(build(lopsided).generate_sft(seeds, series[0])) > 50


def test_trx_and_compression(field, series):
    sf, fa, sphere, seeds = field
    with CPUTracker(cuslines.ProbDirectionGetter(), sf, fa, 0.2, sphere.vertices, sphere.edges, min_pts=10, max_pts=60) as tracker:
        plain = tracker.generate_trx(seeds, series[0])
        tracker.set_compression_parameters(pos_dtype=np.float16, linearize=False)
        half = tracker.generate_trx(seeds, series[0])
        tracker.set_compression_parameters(linearize=True, tol_error=0.5)
        straight = tracker.generate_trx(seeds, series[0])
        tracker.seed_propagator.propagate(seeds)
        propagator = tracker.seed_propagator
    lengths = plain.streamlines._lengths
    assert len(lengths) > 10 and lengths.min() >= 10 and lengths.max() <= 60
    assert plain.streamlines._offsets.dtype == np.uint64 and plain.streamlines._data.dtype == np.float32
    assert half.streamlines._data.dtype == np.float16
    assert np.abs(half.streamlines._data.astype(float) - plain.streamlines._data).max() < 0.1
    assert len(straight.streamlines._data) < len(plain.streamlines._data)
    assert propagator.nSlines == len(propagator.sline_lens) == len(propagator.as_array_sequence())
    assert propagator.sline_lens.sum() == len(propagator.slines) and propagator.get_buffer_size() >= 1
    assert sum(1 for _ in propagator.as_generator()) == propagator.nSlines


def test_the_bootstrap_is_made_from_dipys_arguments(field, series):
    _, fa, sphere, seeds = field
    image, gtab, _ = series
    dg = cuslines.BootDirectionGetter.from_dipy_csa(gtab, sphere, sh_order_max=4)
    with CPUTracker(dg, np.asarray(image.dataobj), fa, 0.2, sphere.vertices, sphere.edges) as tracker:
        assert len(tracker.generate_sft(seeds, image)) > 50
    with pytest.raises(ValueError, match="neither OPDT nor CSA"):
        cuslines.BootDirectionGetter("QBI", 1, *[None] * 6)
    matrices = cuslines.BootDirectionGetter("opdt", 1, *[np.eye(3)] * 5, np.zeros(3))
    with pytest.raises(RuntimeError, match="from_dipy"):
        CPUTracker(matrices, np.asarray(image.dataobj), fa, 0.2, sphere.vertices, sphere.edges).generate_sft(seeds, image)
    from cingulum.cuslines.boot_utils import prepare_opdt

    with pytest.raises(RuntimeError, match="prepare_opdt"):
        prepare_opdt(gtab, sphere)


def test_errors_are_those_of_cuslines(field, series):
    sf, fa, sphere, seeds = field
    with pytest.raises(ValueError, match="dataf"):
        CPUTracker(cuslines.ProbDirectionGetter(), sf[..., :-1], fa, 0.2, sphere.vertices, sphere.edges)
    from cingulum.cuslines.cuda_python import GPUTracker

    if not any(device.backend == "cuda" and device.available for device in cingulum.devices()):
        with pytest.raises(RuntimeError, match="cuda"):
            GPUTracker(cuslines.ProbDirectionGetter(), sf, fa, 0.2, sphere.vertices, sphere.edges).generate_sft(seeds, series[0])


def test_the_name_can_be_lent(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from cuslines.webgpu import WebGPUTracker\n"
        "from cuslines import Tracker, ProbDirectionGetter\n"
        "import cuslines.cuda_python.cutils as cutils\n"
        "import cingulum.cuslines.webgpu\n"
        "assert cingulum.cuslines.webgpu.WebGPUTracker is WebGPUTracker and cutils.ModelType.PTT == 3\n"
        "print(sys.argv[1:])\n"
    )
    words = [sys.executable, "-m", "cingulum.compat", "cuslines", str(script), "a", "b"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "['a', 'b']", done.stderr
    with pytest.raises(ValueError, match="accepted is cuslines"):
        import cingulum.compat

        cingulum.compat.install("numba")


def test_a_tracker_takes_changed_attributes(field, series):
    """The field is prepared once; what it depends on makes another."""
    sf, fa, sphere, seeds = field
    image = series[0]

    def points(tracker):
        return tracker.generate_sft(seeds[:40], image).streamlines._data.copy()

    def tracker():
        return CPUTracker(cuslines.ProbDirectionGetter(), sf, fa, 0.15, sphere.vertices, sphere.edges, max_angle=0.5)

    with tracker() as kept:
        first = points(kept)
        assert np.array_equal(points(kept), first)
        for name, value in (("rng_seed", 5), ("step_size", 0.25), ("max_angle", 0.3), ("tc_threshold", 0.3)):
            before = getattr(kept, name)
            setattr(kept, name, value)
            changed = points(kept)
            with tracker() as other:
                setattr(other, name, value)
                assert np.array_equal(changed, points(other)), name
            assert not np.array_equal(changed, first), name
            setattr(kept, name, before)
        assert np.array_equal(points(kept), first)
