#!/usr/bin/env python3
"""From raw tiles to one volume as a chain of CuPy (or NumPy and SciPy) on zarr-python: resampling, tissue interface, roll,
projection, overlap along z and a stack whose tiles and slices overwrite each other. Prints seconds by stage as JSON.

    oct_chain.py cupy|numpy TILES OUT.zarr TARGET_UM AXIAL_UM INTERVAL_PLANES READERS

Reader threads fetch tiles ahead of the device, which keeps a tile from its upload to its place in the slice, and the slice until
the next one was compared with it: voxels go up once and come down once. Slices are written by a thread behind it, uncompressed
and without shards. A stage's time on the device is measured by synchronising after it. Tiles stand where the stage says; nothing
is fitted.
"""
import concurrent.futures
import json
import re
import sys
import time
from pathlib import Path

import numpy as np

sys.path.pop(0)  # a neighbour is called zarr.py, too
import zarr  # noqa: E402

kind, folder, out, target_um, axial_um, interval, readers = sys.argv[1], Path(sys.argv[2]), sys.argv[3], *map(float, sys.argv[4:8])
if kind == "cupy":
    import cupy as xp
    from cupyx.scipy import ndimage
else:
    import numpy as xp
    from scipy import ndimage

seconds = dict.fromkeys(("wait for reading", "upload", "resample", "interface", "roll", "projection", "place", "overlap",
                         "download", "write"), 0.0)


class Timed:
    def __init__(self, stage):
        self.stage = stage

    def __enter__(self):
        self.begin = time.perf_counter()

    def __exit__(self, *_):
        if kind == "cupy":
            xp.cuda.Device().synchronize()
        seconds[self.stage] += time.perf_counter() - self.begin


def fields(path):
    return {key.strip(): float(value) for key, value in (line.split(":") for line in path.read_text().splitlines() if ":" in line)}


def read(path):
    about = fields(path / "info.txt")
    shape = (int(about["ny"]), int(about["nx"]), int(about["bottom_z"] - about["top_z"]) + 1)
    return np.fromfile(path / "image_00000.bin", dtype="<f4").reshape(shape)


def resample(volume, sizes):
    factors = [n / m for n, m in zip(volume.shape, sizes)]
    smooth = ndimage.gaussian_filter(volume, [max(0.0, (f - 1) / 2) for f in factors])
    return ndimage.zoom(smooth, [m / n for n, m in zip(volume.shape, sizes)], order=1, mode="constant")


def interface(volume):
    p = xp.where(volume > 0, xp.log(volume), volume)
    p = ndimage.uniform_filter(p, (0, 15, 15) if kind == "cupy" else (1, 15, 15))
    return xp.ceil(ndimage.gaussian_filter1d(p, 2, axis=0, order=1).argmax(0) + 1)


def roll(volume, by):
    k = xp.floor(by)
    f = (by - k)[None].astype(xp.float32)
    low = (xp.arange(volume.shape[0])[:, None, None] + k.astype(xp.int64)[None]) % volume.shape[0]
    high = (low + 1) % volume.shape[0]
    return (1 - f) * xp.take_along_axis(volume, low, 0) + f * xp.take_along_axis(volume, high, 0)


def overlap(fixed, moving, expected):
    """The number of shared planes with the best correlation of the middle half, 21 lags."""
    margin = min(fixed.shape[1:]) // 4
    best, found = -2.0, expected
    for count in range(max(1, expected - 10), min(fixed.shape[0], moving.shape[0], expected + 10) + 1):
        a = fixed[-count:, margin:-margin, margin:-margin]
        b = moving[:count, margin:-margin, margin:-margin]
        r = float(xp.mean((a - a.mean()) / (a.std() + 1e-8) * ((b - b.mean()) / (b.std() + 1e-8))))
        if r > best:
            best, found = r, count
    return found


def main():
    begin = time.perf_counter()
    names = sorted(folder.glob("tile_x*_y*_z*"))
    place = {path: tuple(int(n) for n in re.match(r"tile_x(\d+)_y(\d+)_z(\d+)", path.name).groups()) for path in names}
    first = fields(names[0] / "info.txt")
    lateral_um = first["width"] / first["nx"]
    shape = (int(first["bottom_z"] - first["top_z"]) + 1, int(first["ny"]), int(first["nx"]))
    # round(): as the chain's resampler sizes its result.
    sizes = tuple(max(1, round(n * step / target_um)) for n, step in zip(shape, (axial_um, lateral_um, lateral_um)))
    stage = {path: [fields(path / "info.txt")[f"stage_{axis}_pos_mm"] * 1000 / target_um for axis in "yx"] for path in names}
    slices = sorted({z for _, _, z in place.values()})
    origin = [min(at[d] for at in stage.values()) for d in range(2)]
    canvas = [round(max(at[d] for at in stage.values()) - origin[d]) + sizes[d + 1] for d in range(2)]
    step = round(interval * axial_um / target_um)
    depth = sizes[0] + step * (len(slices) - 1)
    array = zarr.create_array(out, shape=(depth, *canvas), chunks=(min(64, depth), 256, 256), dtype="f4", compressors=None)
    read_pool = concurrent.futures.ThreadPoolExecutor(int(readers))
    write_pool = concurrent.futures.ThreadPoolExecutor(1)
    ahead = int(readers)
    order = sorted(names, key=lambda path: place[path][::-1])  # slice, row, column
    waiting = [read_pool.submit(read, path) for path in order[:ahead]]
    before, begin_plane, writes, taken = None, 0, [], 0
    for z in slices:
        now = xp.zeros((sizes[0], *canvas), xp.float32)
        for path in (path for path in order if place[path][2] == z):
            with Timed("wait for reading"):
                raw = waiting.pop(0).result()
            taken += 1
            if taken + ahead - 1 < len(order):
                waiting.append(read_pool.submit(read, order[taken + ahead - 1]))
            with Timed("upload"):
                tile = xp.ascontiguousarray(xp.asarray(raw).transpose(2, 0, 1))
            with Timed("interface"):
                surface = interface(tile)
            with Timed("roll"):
                tile = roll(tile, (surface - xp.median(surface)).astype(xp.float32))
            with Timed("resample"):
                small = resample(tile, sizes)
            with Timed("projection"):
                small.mean(0)
            with Timed("place"):
                row, column = (round(stage[path][d] - origin[d]) for d in range(2))
                now[:, row:row + sizes[1], column:column + sizes[2]] = small
        with Timed("overlap"):
            if before is not None:
                expected = sizes[0] - step
                found = overlap(before, now, max(1, expected)) if expected > 1 else expected
                begin_plane += sizes[0] - found
            before = now
        end = min(depth, begin_plane + sizes[0])
        with Timed("download"):
            volume = now.get() if kind == "cupy" else now
        with Timed("write"):
            for one in writes:
                one.result()
            writes = [write_pool.submit(array.__setitem__, slice(begin_plane, end), volume[:end - begin_plane])]
    with Timed("write"):
        for one in writes:
            one.result()
    print(json.dumps({"peer": kind, "seconds": time.perf_counter() - begin, "stages": seconds, "shape": [depth, *canvas],
                      "zarr": zarr.__version__}))


main()
