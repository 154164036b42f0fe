"""cingulum.oct: the bits of the verbs, and SciPy's and scikit-image's numbers."""

import json

import numpy as np
import pytest
from scipy import ndimage

import cingulum
import cingulum.oct
import cingulum.zarr


@pytest.fixture(scope="module")
def volume():
    return np.random.default_rng(5).gamma(2.0, 50.0, (24, 30, 26)).astype(np.float32)


def store(path, volume):
    """The volume as an image of OME-Zarr with voxels of 10 micrometres, as the verbs read it."""
    zarr = pytest.importorskip("zarr")
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    scale = [{"type": "scale", "scale": [10.0, 10.0, 10.0]}]
    levels = [{"path": "0", "coordinateTransformations": scale}]
    group = zarr.open_group(str(path), mode="w", zarr_format=3)
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": levels}]}
    group.create_array("0", data=volume, chunks=volume.shape, dimension_names=list("zyx"))
    return path


@pytest.fixture(scope="module")
def stored(volume, tmp_path_factory):
    return store(tmp_path_factory.mktemp("oct") / "volume.ome.zarr", volume)


def written(path):
    return cingulum.zarr.Array(path, "0")[...]


def test_resampling_has_the_bits_of_the_verb(volume, stored, run, tmp_path):
    run("oct", "resample", stored, "--resolution", "17", "--out", tmp_path / "small.ome.zarr", "--device", "cpu", "--quiet")
    ours = cingulum.oct.rescale(volume, 10 / 17, use_gpu=False)
    assert np.array_equal(ours, written(tmp_path / "small.ome.zarr"))


def test_the_interface_has_the_bits_of_the_verb(volume, stored, run, tmp_path):
    for words, options in (([], {}), (["--s-xy", "5", "--s-z", "1.5", "--no-log"], {"s_xy": 5, "s_z": 1.5, "use_log": False})):
        out = tmp_path / f"interface{len(words)}.ome.zarr"
        run("oct", "interface", stored, *words, "--out", out, "--device", "cpu", "--quiet")
        ours = cingulum.oct.find_tissue_interface(np.moveaxis(volume, 0, -1), **options)
        assert ours.dtype == np.int64
        assert np.array_equal(ours, written(out)[0])


def test_the_projection_has_the_bits_of_the_verb(volume, stored, run, tmp_path):
    run("oct", "aip", stored, "--out", tmp_path / "aip.ome.zarr", "--device", "cpu", "--quiet")
    ours = cingulum.oct.aip(volume, use_gpu=False)
    assert np.array_equal(ours, written(tmp_path / "aip.ome.zarr")[0])
    assert np.allclose(ours, volume.mean(axis=0), rtol=1e-5)


def test_the_overlap_is_that_of_the_verb(tmp_path):
    long = np.random.default_rng(6).normal(100, 20, (60, 40, 40)).astype(np.float32)
    fixed, moving = long[:36], long[24:]
    found = cingulum.oct.find_z_overlap(fixed, moving, 0.2, 0.1, 10)
    assert found[0] == 12 and found[1] > 0.99
    # At either end of what is searched.
    assert cingulum.oct.find_z_overlap(fixed, moving, 0.14, 0.1, 10)[0] == 12
    assert cingulum.oct.find_z_overlap(fixed, moving, 0.34, 0.1, 10)[0] == 12
    assert cingulum.oct.find_z_overlap(fixed, moving, 0.5, 0.0, 10) == (-14, 0.0)
    paths = [store(tmp_path / "fixed.ome.zarr", fixed), store(tmp_path / "moving.ome.zarr", moving)]
    said = cingulum.oct.stage("overlap", *paths, slicing_interval=0.2, search_range=0.1, device="cpu")
    assert (said["overlap_planes"], said["correlation"]) == found


def test_a_reconstruction_has_the_bytes_of_the_verb(run, tmp_path):
    options = {"grid": "2,2", "tile": "40,32,32", "overlap": 0.25, "surface": 8, "slices": 2, "interval": 20}
    cingulum.oct.stage("simulate", out=tmp_path / "raw", device="cpu", **options)
    (tmp_path / "typed").mkdir()
    found = cingulum.oct.run(tmp_path / "raw", tmp_path / "volume.ome.zarr", axial_step=3.5, pyramid="auto", strength=0.5, device="cpu")
    run("oct", "run", tmp_path / "raw", "--axial-step", "3.5", "--pyramid", "auto", "--strength", "0.5", "--device", "cpu",
        "--out", tmp_path / "typed" / "volume.ome.zarr", "--quiet")  # fmt: skip
    volumes = tmp_path / "volume.ome.zarr", tmp_path / "typed" / "volume.ome.zarr"
    ours, theirs = ({p.relative_to(volume): p.read_bytes() for p in volume.rglob("*") if p.is_file()} for volume in volumes)
    assert len(ours) > 3 and ours == theirs
    assert found["devices"] == ["cpu"] and len(found["slices"]) == 2
    assert tuple(found["shape"]) == written(volumes[0]).shape
    sidecar = json.loads((tmp_path / "volume.ome.zarr.json").read_text())
    assert sidecar["result"] == {name: value for name, value in found.items() if name not in ("output", "shape", "devices")}
    # With the options of that run, but for one.
    again = cingulum.oct.run(tmp_path / "raw", tmp_path / "again.ome.zarr", from_=tmp_path / "volume.ome.zarr.json", device="cpu", pyramid="1")
    assert again["stack"] == found["stack"]
    options = json.loads((tmp_path / "again.ome.zarr.json").read_text())["arguments"]["options"]
    assert (options["strength"], options["pyramid"]) == ("0.5", "1")
    with pytest.raises(cingulum.AlreadyExistsError):
        cingulum.oct.run(tmp_path / "raw", volumes[0], axial_step=3.5, device="cpu")
    for keyword, value in (("strength", -1), ("blending", "some"), ("pyramid", "0"), ("memory", 1)):
        with pytest.raises(cingulum.InvalidArgumentError, match=keyword):
            cingulum.oct.run(tmp_path / "raw", tmp_path / "c.ome.zarr", axial_step=3.5, device="cpu", **{keyword: value})
    with pytest.raises(TypeError, match="did you mean 'strength'"):
        cingulum.oct.run(tmp_path / "raw", tmp_path / "c.ome.zarr", strenght=1)
    assert not (tmp_path / "c.ome.zarr").exists()


def test_curvature_has_the_bits_of_the_verb(run, tmp_path):
    said = cingulum.oct.stage("simulate", out=tmp_path / "raw", grid="2,2", tile="40,24,24", surface=12, device="cpu")
    assert (said["tiles"], said["devices"]) == (4, ["cpu"])
    run("oct", "grid", tmp_path / "raw", "--axial-step", "3.5", "--out", tmp_path / "grid", "--quiet")
    (mosaic,) = (path for path in (tmp_path / "grid").iterdir() if path.name.endswith(".ome.zarr"))
    run("oct", "curvature", mosaic, "--out", tmp_path / "flat.ome.zarr", "--device", "cpu", "--quiet")
    whole, flat = written(mosaic), written(tmp_path / "flat.ome.zarr")
    rows, columns = whole.shape[1] // 2, whole.shape[2] // 2

    def tiles(image):
        return np.stack([image[:, r * rows : (r + 1) * rows, c * columns : (c + 1) * columns] for r in (0, 1) for c in (0, 1)])

    ours, curvature = cingulum.oct.fix_focal_curvature(tiles(whole))
    assert np.array_equal(ours, tiles(flat))
    assert curvature.shape == (rows, columns) and abs(curvature.mean()) < 1e-6


def test_transforms_are_scipys(volume):
    # No multiples of a half: SciPy's nearest voxel of those is another.
    matrix = np.array([[0.98, 0.05, 0.02, 1.5], [-0.03, 1.01, 0.04, -2.0], [0.01, -0.02, 0.99, 0.7]]) + np.pi / 1e3
    for order in (0, 1, 3):
        ours = cingulum.oct.affine_transform(volume, matrix, (20, 21, 22), order, use_gpu=False)
        truth = ndimage.affine_transform(volume, matrix[:, :3], matrix[:, 3], (20, 21, 22), order=order)
        # Where nothing is near the edge, which order 0 and SciPy take for inside in other places.
        inside = np.einsum("ij,jzyx->izyx", matrix[:, :3], np.indices(ours.shape)) + matrix[:, 3].reshape(3, 1, 1, 1)
        inside = np.all((inside > 1) & (inside < np.array(volume.shape).reshape(3, 1, 1, 1) - 2), axis=0)
        assert inside.mean() > 0.5
        far = np.abs(ours - truth)[inside] > 2e-4 * volume.max()
        assert far.mean() < (1e-3 if order == 0 else 1e-6), order
    places = np.random.default_rng(7).uniform(1, 20, (3, 5, 6))
    ours = cingulum.oct.map_coordinates(volume, places, use_gpu=False)
    assert ours.shape == (5, 6) and np.allclose(ours, ndimage.map_coordinates(volume, places, order=1), rtol=1e-3)
    field = np.random.default_rng(8).uniform(-1, 1, (3, *volume.shape))
    grid = np.stack(np.meshgrid(*map(np.arange, volume.shape), indexing="ij")) + field
    ours = cingulum.oct.apply_displacement_field(volume, field, use_gpu=False)[2:-2, 2:-2, 2:-2]
    assert np.allclose(ours, ndimage.map_coordinates(volume, grid, order=1)[2:-2, 2:-2, 2:-2], rtol=1e-3, atol=0.02)


def test_images_are_planes(volume):
    image = volume[0]
    small = cingulum.oct.resize(image, (11, 9), use_gpu=False)
    assert small.shape == (11, 9)
    assert np.array_equal(small, cingulum.oct.resize(image[None], (1, 11, 9), use_gpu=False)[0])
    moved = cingulum.oct.affine_transform(image, [[1, 0, 2], [0, 1, -1]], use_gpu=False)
    assert np.array_equal(moved[:-2, 1:], image[2:, :-1])
    assert np.array_equal(cingulum.oct.affine_transform(image, [1, 1], use_gpu=False), image)
    turned = np.indices(image.T.shape)[::-1]
    assert np.array_equal(cingulum.oct.map_coordinates(image, turned, 0, use_gpu=False), image.T)
    assert cingulum.oct.resample_volume(volume, (1, 1, 1), 2.5, use_gpu=False).shape == (9, 12, 10)


def test_corners_align_as_in_scipy_without_its_zero_edge(volume):
    ours = cingulum.oct.resize(volume, (12, 28, 26), anti_aliasing=False, align="corner", use_gpu=False)
    truth = ndimage.zoom(volume, (12 / 24, 28 / 30, 1), order=1)
    # SciPy rounds the last rows past the edge, and so makes them 0.
    assert np.allclose(ours[:-1, :-1], truth[:-1, :-1], rtol=1e-4, atol=0.05) and (truth[:, -1] == 0).all()
    constant = np.ones((111, 16, 16), np.float32)
    assert np.allclose(cingulum.oct.resize(constant, (28, 16, 16), align="corner", use_gpu=False), 1, rtol=1e-6)


def test_the_surface_is_found_and_cropped():
    volume = np.random.default_rng(9).normal(5, 1, (60, 32, 32)).astype(np.float32)
    volume[18:] += 100
    assert abs(cingulum.oct.detect_interface_z(volume) - 18) <= 1
    cropped, surface = cingulum.oct.crop_below_interface(volume, 200, 10)
    assert cropped.shape == (20, 32, 32) and np.array_equal(cropped, volume[surface : surface + 20])
    lines = cingulum.oct.find_tissue_interface(np.moveaxis(volume, 0, -1), s_xy=5, use_log=False)
    assert (np.abs(lines - 18) <= 1).all()
    mask = np.zeros((32, 32, 60), bool)
    mask[..., 10:] = True
    assert np.array_equal(cingulum.oct.find_tissue_interface(np.moveaxis(volume, 0, -1), 5, mask=mask, use_log=False).shape, (32, 32))


def test_every_device_has_the_same_bits(volume):
    others = [device.id for device in cingulum.devices() if device.available and device.id != "cpu"]
    if not others:
        pytest.skip("the CPU is the only device")
    for device in others:
        for call in (
            lambda where: cingulum.oct.resize(volume, (11, 13, 12), device=where),
            lambda where: cingulum.oct.find_tissue_interface(np.moveaxis(volume, 0, -1), sub_voxel=True, device=where),
            lambda where: cingulum.oct.aip(volume, device=where),
        ):
            assert np.array_equal(call("cpu"), call(device))


def test_what_is_not_taken_is_refused_by_name(volume):
    for name, call in (
        ("order", lambda: cingulum.oct.resize(volume, (2, 2, 2), order=2, use_gpu=False)),
        ("output_shape", lambda: cingulum.oct.resize(volume, (2, 2), use_gpu=False)),
        ("image", lambda: cingulum.oct.resize(volume.astype("c8"), (2, 2, 2), use_gpu=False)),
        ("align", lambda: cingulum.oct.resize(volume, (2, 2, 2), align="edge", use_gpu=False)),
        ("matrix", lambda: cingulum.oct.affine_transform(volume, np.eye(2), use_gpu=False)),
        ("moving", lambda: cingulum.oct.find_z_overlap(volume, volume[:, 1:], 0.1, 0.05, 10)),
        ("scale", lambda: cingulum.oct.rescale(volume, 0, use_gpu=False)),
        ("(?i)action", lambda: cingulum.oct.stage("restore")),
    ):
        with pytest.raises(cingulum.InvalidArgumentError, match=name):
            call()


def test_values_that_are_not_finite_count_as_0(volume, caplog):
    damaged = volume.copy()
    damaged[3, 4, 5] = np.nan
    zero = volume.copy()
    zero[3, 4, 5] = 0
    assert np.array_equal(cingulum.oct.aip(damaged, use_gpu=False), cingulum.oct.aip(zero, use_gpu=False))
    assert "not finite" in caplog.text
