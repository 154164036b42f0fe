"""What notebooks show of tractograms, fits and runtimes."""

import base64
import io
import re
import zlib

import numpy as np
import pytest

import cingulum
from cingulum._pictures import png, views


def pictures_of(text):
    return [base64.b64decode(data) for data in re.findall(r"base64,([^']+)'", text)]


def decoded(data):
    """The pixels of a PNG of ours."""
    columns, rows = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    channels = 3 if data[25] == 2 else 1
    size = int.from_bytes(data[33:37], "big")
    lines = np.frombuffer(zlib.decompress(data[41 : 41 + size]), np.uint8).reshape(rows, 1 + columns * channels)
    return lines[:, 1:].reshape(rows, columns, channels)


def test_pictures_are_png_files():
    image = np.random.default_rng(1).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    assert np.array_equal(decoded(png(image)), image)
    pil = pytest.importorskip("PIL.Image")
    assert np.array_equal(np.asarray(pil.open(io.BytesIO(png(image)))), image)
    assert np.array_equal(np.asarray(pil.open(io.BytesIO(png(image[..., 0])))), image[..., 0])


def test_a_tractogram_is_seen_from_three_sides_coloured_by_direction():
    # One line along x, one along z; the jump between them is no segment.
    line = np.zeros((40, 3), np.float32)
    line[:20, 0] = np.arange(20)
    line[20:, 2] = np.arange(20) + 40
    text = views(line, np.array([0, 20, 40], np.uint64))
    above, front, side = (decoded(data) for data in pictures_of(text))
    assert above[..., 0].max() > 0 and front[..., 0].max() > 0 and front[..., 2].max() > 0
    assert (front[..., 1] == 0).all() and (side[..., 2] > 0).any()
    reds = np.argwhere(front[..., 0] > 0)[:, 0]
    blues = np.argwhere(front[..., 2] > 0)[:, 0]
    assert reds.min() > blues.max()  # z is up
    assert (front.sum(axis=2) > 0).sum() < 45  # nothing is drawn between the lines


def test_representations_are_small(phantom):
    tracks = cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", dg="det", nseeds=300)
    text = tracks._repr_html_()
    assert len(pictures_of(text)) == 3 and f"{len(tracks):,}" in text and "mm" in text and len(text) < 300_000
    rng = np.random.default_rng(2)
    points = np.cumsum(rng.normal(size=(100_000, 50, 3)).astype(np.float32), axis=1).reshape(-1, 3)
    many = cingulum.Tractogram(points, np.arange(100_001) * 50)
    assert len(many._repr_html_()) < 300_000
    assert cingulum.Tractogram(np.zeros((0, 3)), [0])._repr_html_()


def test_a_fit_shows_slices(phantom):
    for model in ("dti", "csa", "csd"):
        files = {name: phantom / f"dwi.{name[:-1]}" for name in ("bvals", "bvecs")}
        fitted = cingulum.fit(phantom / "dwi.nii.gz", model=model, mask=phantom / "mask.nii.gz", **files)
        text = fitted._repr_html_()
        shown = [decoded(data) for data in pictures_of(text)]
        assert len(shown) == 3 and all(image.max() > 100 for image in shown) and len(text) < 300_000
