"""What the tests of tracking share: running the program, small data, reading tractograms by others' readers."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import nibabel as nib
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PROGRAM = os.environ["CINGULUM"]
LONG = os.environ.get("CINGULUM_TEST_LONG", "") not in ("", "0")


def run(*words, check=True, **options):
    """The finished process; its stderr is shown when it should have succeeded and did not."""
    command = [PROGRAM] + [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\nexit {done.returncode}\n{done.stderr}")
    return done


def device_names():
    """What is there beside the CPU; all of it that is required."""
    found = [device["id"].split(":")[0] for device in json.loads(run("devices", "--json").stdout)["devices"]]
    for name in ("webgpu", "cuda"):
        assert name in found or not suite.device_is_required(name), f"CINGULUM_TEST_DEVICES names {name}, and there is none"
    return [name for name in ("webgpu", "cuda") if name in found]


def track(*words, **options):
    return run("track", *words, "--progress", "none", "--quiet", **options)


def track_json(*words):
    return json.loads(track(*words, "--json").stdout)


def read_trx(path):
    """Streamlines (float32 arrays) and per-streamline data, by trx-python."""
    from trx.trx_file_memmap import load

    trx = load(str(path))
    lines = [np.array(line) for line in trx.streamlines]
    data = {name: np.array(values) for name, values in trx.data_per_streamline.items()}
    trx.close()
    return lines, data


def read_lines(path):
    path = str(path)
    if path.endswith(".trx"):
        return read_trx(path)[0]
    return [np.array(line) for line in nib.streamlines.load(path).streamlines]


def lengths(lines):
    return np.array([np.linalg.norm(np.diff(line.astype(float), axis=0), axis=1).sum() for line in lines])


def write_image(path, values, affine):
    nib.save(nib.Nifti1Image(np.asarray(values, dtype=np.float32), affine), str(path))
    return path


def write_rows(path, rows):
    # repr keeps every digit
    path.write_text("".join(" ".join(repr(float(x)) for x in row) + "\n" for row in rows))
    return path


class Folder:
    """A temporary folder with a phantom that all tests of a class share."""

    def __init__(self):
        self._holder = tempfile.TemporaryDirectory(prefix="cingulum-track-")
        self.path = pathlib.Path(self._holder.name)

    def __truediv__(self, name):
        return self.path / name

    def close(self):
        self._holder.cleanup()

    def phantom(self, name, *words):
        run("phantom", "--out", self / name, "--quiet", *words)
        return self / name


def peak_field(shape, affine, direction_of_world):
    """Peaks (image axes) of a unit direction field that is known in the world: one peak per voxel."""
    grid = np.stack(np.meshgrid(*[np.arange(n) for n in shape], indexing="ij"), axis=-1)
    world = grid @ affine[:3, :3].T + affine[:3, 3]
    directions = direction_of_world(world)
    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    return directions @ np.linalg.inv(axes).T


def tensors_of(directions, values=(1.7e-3, 0.3e-3, 0.3e-3)):
    """Dxx Dyy Dzz Dxy Dxz Dyz of tensors whose main direction is given."""
    outer = directions[..., :, None] * directions[..., None, :]
    tensor = values[1] * np.eye(3) + (values[0] - values[1]) * outer
    return np.stack([tensor[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], axis=-1)
