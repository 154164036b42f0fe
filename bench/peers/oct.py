#!/usr/bin/env python3
"""The operations of bench_oct as SciPy (two cores or more do not help it) or CuPy do them: milliseconds as JSON, a line
for each.

    oct.py scipy|cupy Z Y X REPETITIONS [WORDS,...]
The formulas are those of the reference pipeline: a Gaussian and zoom, a derivative of logarithms and an argmax, index
cubes for the roll, a correlation for each lag.
"""
import json
import statistics
import sys
import time

kind, shape, repetitions = sys.argv[1], tuple(int(n) for n in sys.argv[2:5]), int(sys.argv[5])
only = [word for word in "".join(sys.argv[6:7]).split(",") if word]
if kind == "cupy":
    import cupy as xp
    from cupyx.scipy import ndimage
else:
    import numpy as xp
    from scipy import ndimage


def measured(scenario, body):
    if only and not any(word in scenario for word in only):
        return
    body()
    times = []
    for _ in range(repetitions):
        if kind == "cupy":
            begin, end = xp.cuda.Event(), xp.cuda.Event()
            begin.record()
            body()
            end.record()
            end.synchronize()
            times.append(xp.cuda.get_elapsed_time(begin, end))
        else:
            begin = time.perf_counter()
            body()
            times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"peer": kind, "scenario": scenario, "unit": "ms", "median": statistics.median(times),
                      "repetitions": repetitions}), flush=True)


generator = xp.random.default_rng(1)
volume = generator.random(shape, dtype=xp.float32) + xp.float32(0.1)
volume[:shape[0] // 3] *= xp.float32(0.05)
third = [-(-n // 3) for n in shape]


def resize():
    smooth = ndimage.gaussian_filter(volume, [(n / m - 1) / 2 for n, m in zip(shape, third)])
    return ndimage.zoom(smooth, [m / n for n, m in zip(shape, third)], order=1, mode="constant")


def interface():
    p = xp.where(volume > 0, xp.log(volume), volume)
    p = ndimage.uniform_filter(p, (0, 15, 15) if kind == "cupy" else (1, 15, 15))
    g = ndimage.gaussian_filter1d(p, 2, axis=0, order=1)
    return xp.ceil(g.argmax(0) + 1)


yy, xx = xp.meshgrid(xp.arange(shape[1]), xp.arange(shape[2]), indexing="ij")
by = (24 * ((yy / shape[1] - 0.5) ** 2 + (xx / shape[2] - 0.5) ** 2)).astype(xp.float32)


def roll():
    k = xp.floor(by)
    f = (by - k)[None]
    low = (xp.arange(shape[0])[:, None, None] + k.astype(xp.int64)[None]) % shape[0]
    high = (low + 1) % shape[0]
    return (1 - f) * xp.take_along_axis(volume, low, 0) + f * xp.take_along_axis(volume, high, 0)


margin = min(shape[1:]) // 4


def overlap():
    best = -2.0
    most = min(40, shape[0])
    for o in range(most - 20, most + 1):
        a = volume[-o:, margin:-margin, margin:-margin]
        b = volume[:o, margin:-margin, margin:-margin]
        r = float(xp.mean((a - a.mean()) / (a.std() + 1e-8) * ((b - b.mean()) / (b.std() + 1e-8))))
        best = max(best, r)
    return best


matrix = xp.asarray([[1, 0.02, 0], [-0.02, 1, 0.05], [0, -0.05, 1]], xp.float32)
offset = xp.asarray([-3, 2, 4], xp.float32)
measured("copy on the device", volume.copy)
measured("resize, a third, anti-aliased", resize)
measured("Gaussian, sigma 1 along each axis", lambda: ndimage.gaussian_filter(volume, 1))
measured("tissue interface, log, box 15, sigma 2", interface)
measured("mean projection", lambda: volume.mean(0))
measured("roll of each A-line", roll)
measured("overlap along z, 21 lags of up to 40 planes", overlap)
measured("affine transform, order 1",
         lambda: ndimage.affine_transform(volume, matrix, offset, order=1, mode="constant", output=xp.float32))
grid = xp.stack(xp.meshgrid(*[xp.arange(n, dtype=xp.float32) for n in shape], indexing="ij"))
places = (xp.tensordot(matrix, grid, 1) + offset[:, None, None, None]).astype(xp.float32)
del grid
measured("map of coordinates, order 1",
         lambda: ndimage.map_coordinates(volume, places, order=1, mode="constant", output=xp.float32))
