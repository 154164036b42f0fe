"""Fixtures of the package's tests: a small phantom, the program, and how skips are told to ctest.

PYTHONPATH names the folder of the package, CINGULUM the program of the same build.
"""

import collections
import os
import pathlib
import subprocess

import numpy as np
import pytest

# Threads of other libraries would stand in the way of the tests beside these.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CINGULUM_NO_SYNC", "1")

try:
    from hypothesis import settings

    settings.register_profile("quick", max_examples=25, deadline=None, database=None, derandomize=True)
    settings.load_profile("quick")
except ImportError:
    pass

ALL_SKIPPED = 77  # what ctest counts as skipped


@pytest.fixture(scope="session")
def program():
    return os.environ["CINGULUM"]


@pytest.fixture(scope="session")
def run(program):
    """Runs the program and gives back what it printed."""

    def call(*words, cwd=None):
        done = subprocess.run([program, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture(scope="session")
def phantom(tmp_path_factory, run):
    """Folder of a small phantom with known fibres."""
    folder = tmp_path_factory.mktemp("phantom") / "phantom"
    # On an oblique grid, so that axes of the image and of the world differ.
    grid = ["--voxel-size", "3", "--rotate", "15,0,25"]
    run("phantom", "--preset", "crossing", *grid, "--scheme", "dirs64-b1000", "--out", folder, "--quiet")
    return folder


@pytest.fixture(scope="session")
def series(phantom):
    """The phantom as nibabel and DIPY read it: image, gradient table, mask."""
    import nibabel
    from dipy.core.gradients import gradient_table
    from dipy.io.gradients import read_bvals_bvecs

    image = nibabel.load(phantom / "dwi.nii.gz")
    b_values, vectors = read_bvals_bvecs(str(phantom / "dwi.bval"), str(phantom / "dwi.bvec"))
    mask = nibabel.load(phantom / "mask.nii.gz")
    # A GradientTable has vectors in image axes; FSL's files have x negated where the determinant is positive.
    assert np.linalg.det(image.affine[:3, :3]) > 0
    vectors = vectors * [-1, 1, 1]
    return image, gradient_table(b_values, bvecs=vectors), mask


def data_folder(name):
    root = os.environ.get("CINGULUM_TEST_DATA", "")
    path = pathlib.Path(root) / name
    if not root or not path.is_dir():
        reason = f"CINGULUM_TEST_DATA has no {name}" if root else "CINGULUM_TEST_DATA is not set"
        if "data" in os.environ.get("CINGULUM_TEST_REQUIRE", "").split(","):
            pytest.fail(f"CINGULUM_TEST_REQUIRE names data: {reason}")
        pytest.skip(reason)
    return path


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = collections.Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.items():
        print(f"skipped: {count}: {reason}", flush=True)


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == 0 and not reporter.stats.get("passed"):
        session.exitstatus = ALL_SKIPPED
