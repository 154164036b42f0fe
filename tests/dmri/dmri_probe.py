"""Calls the probe program of the diffusion models; shared by the tests of this folder."""

import os
import subprocess
import tempfile

import numpy as np

PROBE = os.environ["CINGULUM_TEST_DMRI_PROBE"]


def run(*arguments):
    result = subprocess.run([PROBE, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return result.stdout


def fsl_gradients(stem):
    """b-values and vectors (n x 3) as they stand in the files."""
    b_values = np.loadtxt(stem + ".bval").ravel()
    vectors = np.loadtxt(stem + ".bvec")
    return b_values, vectors.T if vectors.shape[0] == 3 else vectors


def fit_tensor(signals, b_values, vectors, method, min_signal=1e-4, threads=2):
    """Maps by name, a row per voxel, and the seconds of the fit."""
    count, volumes = signals.shape
    with tempfile.TemporaryDirectory() as folder:
        signals.astype(np.float32).tofile(os.path.join(folder, "signals"))
        np.savetxt(os.path.join(folder, "gradients"), np.column_stack([vectors, b_values]), fmt="%.17g")
        out = os.path.join(folder, "out")
        text = run("tensor", os.path.join(folder, "signals"), volumes, os.path.join(folder, "gradients"), method,
                   min_signal, threads, out)
        numbers = np.fromfile(out, np.float32).astype(float)
    maps, position = {}, 0
    for name, width in (("tensor", 6), ("evals", 3), ("v1", 3), ("fa", 1), ("md", 1), ("rd", 1), ("s0", 1),
                        ("colour", 3)):
        part = numbers[position:position + count * width].reshape(count, width)
        maps[name] = part if width > 1 else part[:, 0]
        position += count * width
    assert position == len(numbers)
    return maps, [float(word) for word in text.split()]


def brain_mask(volume, radius=4, passes=4, dilations=0, finalise=False, threads=2):
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "volume"), os.path.join(folder, "out")
        volume.astype(float).ravel("F").tofile(source)
        run("mask", source, *volume.shape, radius, passes, dilations, int(finalise), threads, out)
        return np.fromfile(out, np.uint8).reshape(volume.shape, order="F") > 0
