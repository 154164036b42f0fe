"""Images and streamlines as numpy arrays, with nothing but numpy: GPU machines have no nibabel. Reads what cingulum and
MRtrix3 write here (NIfTI-1 of one file, little-endian; TRX that is not deflated; TCK of float32), and nothing else."""
import gzip
import json
import struct
import zipfile

import numpy as np

NIFTI_TYPES = {2: "u1", 4: "<i2", 8: "<i4", 16: "<f4", 64: "<f8", 256: "i1", 512: "<u2", 768: "<u4"}


def read_image(path):
    """Voxels, x first, as float32 with the file's scale, and the affine of the sform."""
    with (gzip.open(path) if str(path).endswith(".gz") else open(path, "rb")) as file:
        data = file.read()
    if len(data) < 352 or struct.unpack_from("<i", data, 0)[0] != 348:
        raise OSError(f"{path}: not a little-endian NIfTI-1 image")
    size = struct.unpack_from("<8h", data, 40)
    kind, = struct.unpack_from("<h", data, 70)
    if kind not in NIFTI_TYPES:
        raise OSError(f"{path}: numbers of type {kind} are not read here")
    offset, slope, shift = struct.unpack_from("<3f", data, 108)
    shape = size[1:1 + size[0]]
    values = np.frombuffer(data, NIFTI_TYPES[kind], int(np.prod(shape)), int(offset)).reshape(shape, order="F")
    values = values.astype(np.float32)
    if slope not in (0, 1) or (slope != 0 and shift != 0):
        values = values * np.float32(slope) + np.float32(shift)
    if struct.unpack_from("<h", data, 254)[0] <= 0:
        raise OSError(f"{path}: has no sform")
    affine = np.vstack([np.frombuffer(data, "<f4", 12, 280).reshape(3, 4), [0, 0, 0, 1]]).astype(np.float64)
    return values, affine


def write_like(path, values, like):
    """A packed image of bytes with the header of another file, which holds bytes, too."""
    with gzip.open(like) as file:
        data = file.read()
    if struct.unpack_from("<h", data, 70)[0] != 2:
        raise OSError(f"{like}: not an image of bytes")
    offset = int(struct.unpack_from("<f", data, 108)[0])
    with gzip.open(path, "wb") as file:
        file.write(data[:offset] + values.astype(np.uint8).tobytes(order="F"))


def read_streamlines(path):
    """Points in world mm (n x 3) and where each streamline begins, the end of the last one included."""
    return _read_tck(path) if str(path).endswith(".tck") else _read_trx(path)


def _read_trx(path):
    with zipfile.ZipFile(path) as file:
        header = json.loads(file.read("header.json"))
        names = {name.split(".")[0]: name for name in file.namelist() if "/" not in name}
        kind = names["positions"].rsplit(".", 1)[1]
        points = np.frombuffer(file.read(names["positions"]), "<f" + str(int(kind.removeprefix("float")) // 8))
        points = points.reshape(-1, 3).astype(np.float64)
        width = int(names["offsets"].rsplit(".", 1)[1].removeprefix("uint")) // 8
        begins = np.frombuffer(file.read(names["offsets"]), f"<u{width}").astype(np.int64)
    if len(begins) != header["NB_STREAMLINES"] + 1 or begins[-1] != len(points):
        raise OSError(f"{path}: offsets and positions do not agree")
    return points, begins


def _read_tck(path):
    with open(path, "rb") as file:
        data = file.read()
    head = data[:data.index(b"END")].decode("ascii").splitlines()
    fields = dict(line.split(": ", 1) for line in head if ": " in line)
    if fields["datatype"] != "Float32LE":
        raise OSError(f"{path}: numbers of type {fields['datatype']} are not read here")
    rows = np.frombuffer(data, "<f4", offset=int(fields["file"].split()[1]))
    rows = rows[:len(rows) // 3 * 3].reshape(-1, 3).astype(np.float64)
    # A row of NaN ends a streamline, a row of infinities the file.
    ends = np.flatnonzero(np.isnan(rows[:, 0]))
    points = rows[np.isfinite(rows[:, 0])]
    return points, np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int64)


def lengths(points, begins):
    """In mm, of every streamline."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    sums = np.concatenate([[0], np.cumsum(steps)])
    first, last = begins[:-1], np.maximum(begins[1:] - 1, begins[:-1])
    return sums[last] - sums[first]


def shifted(volume, axis, by):
    """The volume moved by one voxel, False entering at the face."""
    moved = np.zeros_like(volume)
    source, target = [slice(None)] * 3, [slice(None)] * 3
    source[axis] = slice(0, -1) if by > 0 else slice(1, None)
    target[axis] = slice(1, None) if by > 0 else slice(0, -1)
    moved[tuple(target)] = volume[tuple(source)]
    return moved


def grown_by_faces(volume):
    grown = volume.copy()
    for axis in range(3):
        grown |= shifted(volume, axis, 1) | shifted(volume, axis, -1)
    return grown


def grown(volume):
    """With every voxel that touches it, corners included."""
    for axis in range(3):
        volume = volume | shifted(volume, axis, 1) | shifted(volume, axis, -1)
    return volume
