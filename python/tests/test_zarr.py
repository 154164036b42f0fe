"""cingulum.zarr beside zarr-python: the same elements of every array that both read."""

import os
import pathlib

import numpy as np
import pytest
import zarr as judge
from conftest import data_folder
from hypothesis import given
from hypothesis import strategies as st

import cingulum
import cingulum.zarr as ours


def arrays_below(root):
    """Every array of zarr-python below a folder, with the store and the path by which we open it."""
    for path in sorted(root.rglob("*")):
        if path.name in {".zarray", "zarr.json"} and path.is_file():
            try:
                opened = judge.open(str(path.parent), mode="r")
            except Exception:
                continue
            if isinstance(opened, judge.Array):
                yield path.parent, opened


def test_arrays_of_the_data_equal_zarr_python():
    root = data_folder("zarr")
    equal = refused = 0
    for folder, theirs in arrays_below(root):
        try:
            mine = ours.open(folder)
        except cingulum.CingulumError as error:
            assert error.kind in {"unavailable", "corrupt", "invalid_argument"}, error
            refused += 1
            continue
        assert mine.shape == theirs.shape, folder
        try:
            expected = theirs[...]
        except Exception:
            continue
        if mine.dtype != expected.dtype.newbyteorder("="):
            assert expected.dtype.kind in "V"  # types that zarr-python hands out as bytes
            continue
        assert np.array_equal(mine.read(), expected, equal_nan=expected.dtype.kind in "fc"), folder
        assert dict(theirs.attrs) == mine.attrs, folder
        equal += 1
    assert equal >= 60, (equal, refused)


@given(
    st.sampled_from([2, 3]),
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.sampled_from(["uint8", "int16", "float32", "float64", "complex64", "bool"]),
    st.randoms(use_true_random=False),
)
def test_random_regions_equal_numpy_and_zarr_python(tmp_path_factory, version, shape, kind, random):
    folder = tmp_path_factory.mktemp("random")
    values = np.random.default_rng(random.randrange(1 << 30)).integers(0, 2 if kind == "bool" else 100, shape).astype(kind)
    chunks = [random.randint(1, size) for size in shape]
    array = judge.create_array(str(folder / "a"), shape=shape, chunks=tuple(chunks), dtype=kind, zarr_format=version)
    array[...] = values
    mine = ours.open(folder / "a")
    assert mine.dtype == values.dtype and mine.shape == values.shape and np.array_equal(mine[...], values)
    index = []
    for size in shape:
        a, b = sorted((random.randint(0, size), random.randint(0, size)))
        index.append(random.choice([slice(a, b), random.randrange(-size, size), slice(None, None, random.choice([1, 2, -1]))]))
    assert np.array_equal(mine[tuple(index)], values[tuple(index)])
    # Into memory of another order.
    out = np.asfortranarray(np.zeros(shape, kind))
    assert mine.read(out=out) is out and np.array_equal(out, values)
    # Written here, read there.
    made = ours.create(folder / "b", np.asfortranarray(values), zarr_format=version, chunks=chunks, shards=False, attributes={"unit": "mm"})
    theirs = judge.open(str(folder / "b"), mode="r")
    assert np.array_equal(theirs[...], values) and theirs.attrs["unit"] == "mm"
    if values.size and all(size > 1 for size in shape):
        box = tuple(slice(0, size // 2) for size in shape)
        made[box] = values[tuple(slice(size - size // 2, size) for size in shape)]
        expected = values.copy()
        expected[box] = values[tuple(slice(size - size // 2, size) for size in shape)]
        assert np.array_equal(judge.open(str(folder / "b"), mode="r")[...], expected)


def test_indices_are_numpys(tmp_path):
    values = np.arange(7 * 5 * 4, dtype=np.int32).reshape(7, 5, 4)
    array = ours.create(tmp_path / "a", values, chunks=[3, 2, 4])
    for index in (
        np.s_[...], np.s_[2], np.s_[-1, 1:3], np.s_[..., 0], np.s_[1:6:2, ::-1, -3:], np.s_[6:1:-2], np.s_[::-3, 4, ::-1],
        np.s_[3:3], np.s_[5:2], np.s_[2, ..., -1], np.s_[100:], np.s_[-100:2, :, 1:2],
    ):
        found = array[index]
        assert np.array_equal(found, values[index]) and found.shape == values[index].shape, index
    for index in (np.s_[7], np.s_[-8], np.s_[0, 0, 0, 0], np.s_[..., ..., 0], np.s_["a"]):
        with pytest.raises(IndexError):
            array[index]
    with pytest.raises(IndexError, match="no steps"):
        array[::2] = 0


def test_groups(tmp_path):
    root = judge.create_group(str(tmp_path / "g"), attributes={"a": 1})
    root.create_array("x", data=np.arange(6).reshape(2, 3))
    root.create_group("inner").create_array("y", data=np.arange(4.0))
    group = ours.open(tmp_path / "g")
    assert isinstance(group, ours.Group) and list(group) == ["inner", "x"] and group.attrs == {"a": 1}
    assert np.array_equal(group["inner"]["y"][:], np.arange(4.0))
    assert np.array_equal(group["inner/y"][1:3], [1, 2]) and "inner/y" in group and "z" not in group
    assert set(group.arrays()) == {"x", "inner/y"}
    with pytest.raises(KeyError):
        group["z"]
    with pytest.raises(FileNotFoundError):
        ours.open(tmp_path / "g", "z")


def test_what_does_not_fit_is_refused(tmp_path):
    array = ours.create(tmp_path / "a", np.arange(24, dtype=np.int16).reshape(4, 6))
    with pytest.raises(ValueError, match="^out"):
        array.read(out=np.zeros((4, 6), np.float32))
    with pytest.raises(ValueError, match="^out"):
        array.read(out=np.zeros((4, 5), np.int16))
    with pytest.raises(ValueError, match="^out"):
        array.read(out=np.zeros((4, 6), np.int16)[::-1])
    with pytest.raises(cingulum.CingulumError):
        array.read([2, 2], [9, 9])
    with pytest.raises(ValueError, match="^values"):
        array.write(np.zeros((4, 6), np.float64))
    with pytest.raises(IndexError):
        array[9, 0]
    with pytest.raises(FileExistsError):
        ours.create(tmp_path / "a", np.zeros(3))


def test_damage_is_named_and_copies_are_equal(tmp_path):
    values = np.random.default_rng(1).random((40, 50)).astype(np.float32)
    ours.create(tmp_path / "a.zarr", values, chunks=[8, 10], codec="zstd:3")
    ours.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks="20,25", shards="none", format=2)
    assert np.array_equal(judge.open(str(tmp_path / "b.zarr"), mode="r")[...], values)
    assert ours.verify(tmp_path / "a.zarr", tmp_path / "b.zarr")["damaged"] == 0
    victim = max((path for path in (tmp_path / "a.zarr").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[len(content) // 3] ^= 1
    victim.write_bytes(bytes(content))
    with pytest.raises(cingulum.CorruptError):
        ours.open(tmp_path / "a.zarr").read()
    with pytest.raises(cingulum.CorruptError) as caught:
        ours.verify(tmp_path / "a.zarr")
    assert caught.value.result["damaged"] == 1


def backends():
    return [device.id for device in cingulum.devices() if device.available]


@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_regions_end_on_every_device_as_zarr_python_reads_them(tmp_path, codec):
    zarr_python = pytest.importorskip("zarr")
    values = np.random.default_rng(3).integers(0, 1000, (37, 41, 5)).astype(np.int32)
    cingulum.zarr.create(tmp_path / "a.zarr", values, chunks=[10, 20, 5], codec=codec)
    judge = zarr_python.open_array(str(tmp_path / "a.zarr"), mode="r")
    array = cingulum.zarr.Array(tmp_path / "a.zarr")
    for device in backends():
        whole = cingulum.zarr.read_zarr_to_gpu(tmp_path / "a.zarr", device=device)
        assert whole.device == device and np.array_equal(whole.numpy(), judge[...])
        buffer = cingulum.Buffer((5, 30, 3), np.int32, device)
        assert array.read((8, 3, 1), (5, 30, 3), out=buffer) is buffer
        assert np.array_equal(buffer.numpy(), judge[8:13, 3:33, 1:4])
        with cingulum.zarr.gpu_zarr_context(device):
            assert np.array_equal(array[2:30, 5:].numpy(), judge[2:30, 5:])
            assert np.array_equal(array[::-3, 4].numpy(), values[::-3, 4])
        assert isinstance(array[0:2], np.ndarray)


def test_what_does_not_fit_a_region_on_a_device_is_refused(tmp_path):
    array = cingulum.zarr.create(tmp_path / "a.zarr", np.arange(12.0).reshape(3, 4))
    with pytest.raises(cingulum.InvalidArgumentError, match="out"):
        array.read(out=cingulum.Buffer((3, 3), np.float64, "cpu"))
    with pytest.raises(cingulum.InvalidArgumentError, match="out"):
        array.read(out=[0] * 12)
    with pytest.raises(ValueError, match="prefer"):
        cingulum.zarr.read_zarr_to_gpu(tmp_path / "a.zarr", prefer="best", device="cpu")
    with pytest.raises(cingulum.CingulumError, match="(?i)cufile|direct|host"):
        cingulum.zarr.read_zarr_to_gpu(tmp_path / "a.zarr", prefer="kvikio", device="webgpu" if "webgpu:0" in backends() else "cpu")
    (tmp_path / "a.zarr" / "c").rename(tmp_path / "moved")
    with pytest.raises(cingulum.CingulumError):
        array.read(out=cingulum.Buffer((3, 4), np.float64, "cpu"), complete=True)
