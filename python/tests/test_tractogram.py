"""Tractograms in memory, and what others make of them."""

import pickle

import numpy as np
import pytest

import cingulum


@pytest.fixture(scope="module")
def made(phantom):
    return cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", nseeds=400, dg="prob", device="cpu")


def test_streamlines_are_views_of_the_same_memory(made):
    streamlines = made.streamlines
    assert len(streamlines) == len(made) > 100
    assert streamlines._data is made.positions
    for i in (0, 7, len(made) - 1, -1):
        assert np.array_equal(streamlines[i], made[i])
        assert np.shares_memory(made[i], made.positions)
    with pytest.raises(IndexError):
        made[len(made)]
    assert sum(len(line) for line in made) == len(made.positions)


def test_slices_are_tractograms(made):
    lines = [line.copy() for line in made]
    part = made[10:25]
    assert np.shares_memory(part.positions, made.positions)
    for index in (slice(10, 25), slice(None, None, 3), slice(None, None, -1), [5, 2, 2], made.lengths > 60, slice(3, 3)):
        chosen = made[index]
        wanted = np.arange(len(made))[index]
        assert len(chosen) == len(wanted)
        assert all(np.array_equal(a, lines[b]) for a, b in zip(chosen, wanted))
        assert np.array_equal(chosen.seed_indices, made.seed_indices[wanted])
        assert np.array_equal(chosen.seeds, made.seeds[wanted])


def test_what_is_known_of_a_streamline(made):
    result = made.statistics
    assert result["kept"] == len(made) and result["points"] == len(made.positions)
    lengths = np.array([np.linalg.norm(np.diff(line.astype(float), axis=0), axis=1).sum() for line in made])
    assert np.allclose(made.lengths, lengths)
    assert abs(lengths.mean() - result["mean_length_mm"]) < 0.1
    assert (np.diff(made.seed_indices.astype(int)) >= 0).all()
    # The seed is a point of its streamline.
    for line, seed in zip(made, made.seeds):
        assert np.abs(line - seed).max(axis=1).min() < 1e-3
    names = made.end_reason_names
    counts = {name: 0 for name in names.values()}
    for code in made.end_reasons.ravel():
        counts[names[code]] += 1
    assert counts == result["end_reasons"]


def test_tractograms_pickle_and_compare(made):
    again = pickle.loads(pickle.dumps(made))
    assert again == made and again is not made
    assert made[:10] != made[:11]
    changed = made[:10]
    changed = cingulum.Tractogram(changed.positions + 1, changed.offsets, affine=made.affine, shape=made.shape)
    assert changed != made[:10]


@pytest.mark.parametrize("ending", ["trx", "trk", "tck"])
def test_files_are_read_by_others_and_back(tmp_path, made, ending):
    import nibabel

    path = tmp_path / f"a.{ending}"
    made.save(path)
    back = cingulum.Tractogram.load(path)
    assert np.abs(back.positions - made.positions).max() < 1e-4
    assert np.array_equal(back.offsets, made.offsets)
    assert back.statistics == made.statistics
    if ending == "trx":
        from trx.trx_file_memmap import load

        others = load(str(path)).streamlines
    else:
        others = nibabel.streamlines.load(path).streamlines
    assert len(others) == len(made)
    assert np.abs(np.concatenate(list(others)) - made.positions).max() < 1e-3
    with pytest.raises(cingulum.CingulumError, match="force"):
        made.save(path)
    made.save(path, force=True)
    cingulum.verify(path)


def test_seeds_are_saved_on_request(tmp_path, made):
    made.save(tmp_path / "a.trx")
    made.save(tmp_path / "b.trx", seeds=True)
    assert cingulum.Tractogram.load(tmp_path / "a.trx").data == {}
    back = cingulum.Tractogram.load(tmp_path / "b.trx")
    assert np.array_equal(back.seeds, made.seeds) and np.array_equal(back.end_reasons, made.end_reasons)
    assert back.seeds.dtype == np.float32 and back.end_reasons.dtype == np.uint8
    with pytest.raises(RuntimeError, match="save_seeds"):
        cingulum.Tractogram.load(tmp_path / "a.trx").seeds


def test_dipy_and_trx_python_take_it(tmp_path, made):
    from dipy.io.streamline import load_tractogram, save_tractogram

    stateful = made.to_sft()
    assert np.array_equal(stateful.streamlines._data, made.positions)
    assert np.allclose(stateful.affine, made.affine) and tuple(stateful.dimensions) == made.shape
    save_tractogram(stateful, str(tmp_path / "d.trk"), bbox_valid_check=False)
    back = load_tractogram(str(tmp_path / "d.trk"), "same", bbox_valid_check=False)
    assert np.abs(back.streamlines._data - made.positions).max() < 1e-3
    trx = made.to_trx()
    assert trx.header["NB_STREAMLINES"] == len(made)
    from trx.trx_file_memmap import load, save

    save(trx, str(tmp_path / "e.trx"))
    again = load(str(tmp_path / "e.trx"))
    assert np.array_equal(again.streamlines._data, made.positions)
    ours = cingulum.Tractogram.load(tmp_path / "e.trx")
    assert np.array_equal(ours.positions, made.positions) and np.array_equal(ours.seeds, made.seeds)


def test_tractograms_of_ones_own(tmp_path):
    points = np.arange(30, dtype=float).reshape(10, 3)
    made = cingulum.Tractogram(points, [0, 4, 4, 10], affine=np.diag([2, 2, 2, 1]), shape=(9, 9, 9), data={"weight": [1.0, 2.0, 3.0]})
    assert len(made) == 3 and len(made[1]) == 0 and made.lengths[1] == 0
    made.save(tmp_path / "own.trx")
    back = cingulum.Tractogram.load(tmp_path / "own.trx")
    assert back.positions.dtype == np.float64 and np.array_equal(back.positions, points)
    assert np.array_equal(back.data["weight"][:, 0], [1, 2, 3])
    cingulum.Tractogram(points, [0, 10]).save(tmp_path / "own.tck")
    for offsets in ([1, 10], [0, 11], [0, 6, 4, 10], []):
        with pytest.raises(ValueError, match="^offsets"):
            cingulum.Tractogram(points, offsets)
    with pytest.raises(ValueError, match="^positions"):
        cingulum.Tractogram(points[:, :2], [0, 10])
    with pytest.raises(ValueError, match="affine"):
        cingulum.Tractogram(points, [0, 10]).save(tmp_path / "no.trk")


def test_big_tractograms_become_array_sequences_without_a_copy():
    positions = np.zeros((10_000_000, 3), np.float32)
    made = cingulum.Tractogram(positions, np.arange(0, 10_000_001, 100))
    assert made.streamlines._data is positions
    assert "100,000" in made._repr_html_() and len(made._repr_html_()) < 300_000
