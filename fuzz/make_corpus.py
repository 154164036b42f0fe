#!/usr/bin/env python3
"""Makes the corpus of the image targets: small good files, odd ones and broken ones. The same bytes at every run.

    fuzz/make_corpus.py      writes fuzz/corpus/{nifti,gzip,gradients,sidecar,spheres,phantom}
Inputs that fuzzing found are added by hand, named found-*, and are left alone.
"""
import gzip
import itertools
import json
import struct
import zlib
from pathlib import Path

import nibabel as nib
import numpy as np

CORPUS = Path(__file__).resolve().parent / "corpus"


def put(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def nifti(data, affine, cls=nib.Nifti1Image, order="<", scaling=(1, 0), qform=True, extensions=()):
    header = cls.header_class(endianness=order)
    header.set_data_dtype(data.dtype)
    image = cls(data, affine, header)
    image.header.set_sform(affine, 1)
    image.header.set_qform(affine, 1 if qform else 0, strip_shears=True)
    for size in extensions:
        image.header.extensions.append(nib.nifti1.Nifti1Extension("comment", b"e" * size))
    content = bytearray(image.to_bytes())
    if cls is nib.Nifti1Image:
        struct.pack_into(order + "ff", content, 112, *scaling)
    else:
        struct.pack_into(order + "dd", content, 176, *scaling)
    return bytes(content)


def nifti_corpus():
    rng = np.random.default_rng(1)
    affine = np.array([[-2, 0.1, 0, 10], [0.1, 2, 0, -20], [0, 0, 3, 5], [0, 0, 0, 1.0]])
    types = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
    for name, cls, order in itertools.product(types, (nib.Nifti1Image, nib.Nifti2Image), "<>"):
        data = (rng.random((3, 2, 2, 2)) * 100).astype(name)
        version = 1 if cls is nib.Nifti1Image else 2
        put("nifti", f"{name}-{version}-{'little' if order == '<' else 'big'}.nii", nifti(data, affine, cls, order))
    small = (rng.random((3, 2, 2)) * 100).astype(np.int16)
    plain = nifti(small, affine)
    put("nifti", "scaled.nii", nifti(small, affine, scaling=(0.5, -3)))
    put("nifti", "compressed.nii.gz", gzip.compress(plain, 6, mtime=0))
    put("nifti", "members.nii.gz", gzip.compress(plain[:100], 6, mtime=0) + gzip.compress(plain[100:], 1, mtime=0))
    put("nifti", "extensions.nii", nifti(small, affine, extensions=(4, 30)))
    for axes in (1, 2, 5, 7):
        put("nifti", f"axes-{axes}.nii", nifti(rng.random((2, 3, 1, 2, 1, 2, 2)[:axes]).astype(np.float32), np.eye(4)))

    def patched(name, *patches):
        content = bytearray(plain)
        for offset, layout, value in patches:
            struct.pack_into("<" + layout, content, offset, value)
        put("nifti", name, bytes(content))

    nan = float("nan")
    patched("odd-slope-zero.nii", (112, "f", 0))
    patched("odd-slope-nan.nii", (112, "f", nan))
    patched("odd-intercept-nan.nii", (116, "f", nan))
    patched("odd-pixdim-nan.nii", (80, "f", nan), (254, "h", 0))
    patched("odd-pixdim-zero.nii", (84, "f", 0), (254, "h", 0))
    patched("odd-qfac.nii", (76, "f", 0), (254, "h", 0))
    patched("odd-no-forms.nii", (252, "h", 0), (254, "h", 0))
    patched("odd-quaternion.nii", (254, "h", 0), (256, "f", 3.0))
    patched("odd-offset-zero.nii", (108, "f", 0))
    patched("odd-units.nii", (123, "B", 3))
    patched("odd-sform.nii", (280, "f", nan))
    patched("bad-offset.nii", (108, "f", 1e30))
    patched("bad-dims.nii", (42, "h", 32767), (44, "h", 32767), (46, "h", 32767))
    patched("bad-dim-count.nii", (40, "h", 9))
    patched("bad-pair.nii", (344, "4s", b"ni1\0"))
    patched("bad-type.nii", (70, "h", 32))
    put("nifti", "bad-truncated.nii", plain[:-3])
    put("nifti", "bad-header.nii", plain[:200])
    put("nifti", "bad-empty.nii", b"")


def gzip_corpus():
    text = b"the quick brown fox jumps over the lazy dog\n" * 40
    for level in (1, 6, 9):
        put("gzip", f"level-{level}.gz", gzip.compress(text, level, mtime=0))
    put("gzip", "empty.gz", gzip.compress(b"", mtime=0))
    put("gzip", "zeros.gz", gzip.compress(bytes(20000), 9, mtime=0))
    noise = np.random.default_rng(2).bytes(600)
    stored = zlib.compressobj(0, zlib.DEFLATED, 31)
    put("gzip", "stored.gz", stored.compress(noise) + stored.flush())
    fixed = zlib.compressobj(6, zlib.DEFLATED, 31, 8, zlib.Z_FIXED)
    put("gzip", "fixed.gz", fixed.compress(text) + fixed.flush())
    flushed = zlib.compressobj(6, zlib.DEFLATED, 31)
    put("gzip", "flushed.gz", b"".join(flushed.compress(text[i:i + 300]) + flushed.flush(zlib.Z_SYNC_FLUSH)
                                        for i in range(0, 1200, 300)) + flushed.flush())
    one, two = gzip.compress(text[:300], 6, mtime=0), gzip.compress(text[300:], 6, mtime=0)
    put("gzip", "two-members.gz", one + two)
    put("gzip", "padded.gz", one + bytes(512))
    put("gzip", "bad-garbage.gz", one + b"garbage")
    put("gzip", "bad-crc.gz", one[:-8] + bytes([one[-8] ^ 1]) + one[-7:])
    put("gzip", "bad-size.gz", one[:-1] + bytes([one[-1] ^ 1]))
    put("gzip", "bad-truncated.gz", one[:-20])
    put("gzip", "bad-flags.gz", one[:3] + b"\x80" + one[4:])

    def with_header(flags, fields, header_crc=False):
        header = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff" + fields
        if header_crc:
            header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
        return header + one[10:]

    put("gzip", "named.gz", with_header(8, b"name\0"))
    put("gzip", "all-fields.gz", with_header(30, b"\x04\0abcdname\0comment\0", header_crc=True))


def gradients_corpus():
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((7, 3))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    vectors[0] = 0
    values = [0, 1000, 1000, 995, 2000, 2005, 2000]
    bvals = " ".join(map(str, values)) + "\n"
    rows = "\n".join(" ".join(f"{v:.6f}" for v in row) for row in vectors.T) + "\n"
    columns = "\n".join(" ".join(f"{v:.6f}" for v in row) for row in vectors) + "\n"
    put("gradients", "rows", bvals + "\0" + rows)
    put("gradients", "columns", bvals.replace(" ", "\n") + "\0" + columns)
    put("gradients", "windows", bvals.replace("\n", "\r\n") + "\0" + rows.replace("\n", "\r\n"))
    put("gradients", "not-unit", bvals + "\0" + rows.replace("0.", "1."))
    put("gradients", "nan-b0", "0 1000\n\0nan 1\nnan 0\nnan 0\n")
    put("gradients", "three", "0 1000 1000\n\0" + "1 0 0\n0 1 0\n0 0 1\n")
    put("gradients", "bad-count", "0 1000\n\0" + rows)
    put("gradients", "bad-word", "0 b 1000\n\0" + rows)
    put("gradients", "bad-negative", "0 -5\n\0" + "0 1\n0 0\n0 0\n")
    put("gradients", "mrtrix", "# command_history: x\n" + "\n".join(
        f"{v[0]:.6f} {v[1]:.6f} {v[2]:.6f} {b}" for v, b in zip(vectors, values)) + "\n")
    put("gradients", "mrtrix-commas", "0,0,0,0\n1,0,0,1e3\n")
    put("gradients", "empty", "")


def sidecar_corpus():
    content = {"file": "a.nii", "bytes": 376, "xxh3_128": "0" * 32, "list": [1, -2.5, 1e300, None, True, "text \u00e9\n"],
               "nested": {"a": {"b": []}}}
    put("sidecar", "plain.json", json.dumps(content))
    put("sidecar", "indented.json", json.dumps(content, indent=2, ensure_ascii=False))
    put("sidecar", "deep-64.json", "[" * 64 + "]" * 64)
    put("sidecar", "bad-deep.json", "[" * 65 + "]" * 65)
    put("sidecar", "bad-deeper.json", "[" * 5000)
    put("sidecar", "bad-number.json", "[1e999]")
    put("sidecar", "bad-text.json", b'["\xff"]')
    put("sidecar", "bad-end.json", '{"a": 1')
    put("sidecar", "duplicate.json", '{"a": 1, "a": 2}')
    put("sidecar", "numbers.json", "[0, -0, 0.1, 18446744073709551615, -9223372036854775808, 18446744073709551616, 1e-320]")
    put("sidecar", "escapes.json", '["\\u0000\\ud83d\\ude00\\/\\\\\\""]')


def spheres_corpus():
    axes = "1 0 0\n0 1 0\n0 0 1\n"
    opposites = "-1 0 0\n0 -1 0\n0 0 -1\n"
    put("spheres", "octahedron", axes + opposites)
    put("spheres", "half", "# three\n" + axes)
    put("spheres", "windows", (axes + opposites).replace("\n", "\r\n").replace(" ", "\t"))
    cube = [point for point in itertools.product((-1, 0, 1), repeat=3) if any(point)]
    put("spheres", "cube", "".join("{} {} {}\n".format(*point) for point in cube))  # many points on one circle
    put("spheres", "prism", "".join(f"{np.cos(t):.9f} {np.sin(t):.9f} {z}\n" for t in np.arange(0, 6.2, 0.4)
                                    for z in (-0.5, 0.5)))
    rng = np.random.default_rng(4)
    put("spheres", "random", "".join("{:.7g} {:.7g} {:.7g}\n".format(*point) for point in rng.normal(size=(40, 3))))
    cluster = np.array([0.3, -0.2, 0.9]) + rng.normal(size=(12, 3)) * 3e-5
    put("spheres", "cluster", axes + opposites + "".join("{:.12g} {:.12g} {:.12g}\n".format(*p) for p in cluster))
    put("spheres", "bad-plane", "1 0 0\n0 1 0\n1 1 0\n1 -1 0\n")
    put("spheres", "bad-twice", axes + "2 0 0\n")
    put("spheres", "bad-word", axes + "0 0 one\n")
    put("spheres", "bad-count", axes + "1 2\n")
    put("spheres", "bad-numbers", "nan 0 1\n1e308 1e308 1e308\n1e-308 0 0\ninf 0 0\n")
    put("spheres", "bad-empty", "")


def phantom_corpus():
    line = {"cubic": [[-20, 0, 0], [40, 0, 0], [0, 0, 0], [0, 0, 0]]}
    arc = {"helix": {"centre": [0, 0, 0], "cosine": [12, 0, 0], "sine": [0, 12, 0], "rise": [0, 0, 3],
                     "start_angle": 0, "sweep": 2.5}}

    def bundle(name="one", pieces=(line,), radius=((0, 3),), end=4.0, **more):
        return {"name": name, "end_mm": end, "radius_mm": [list(knot) for knot in radius],
                "centre_line": list(pieces), **more}

    def text(bundles=None, **changes):
        content = {"format": "cingulum-phantom", "version": 1, "preset": "straight",
                   "geometry": {"size": [30, 20, 20], "voxel_to_world": [[2, 0, 0, -29], [0, 2, 0, -19], [0, 0, 2, -19]]},
                   "bundles": [bundle()] if bundles is None else bundles}
        content.update(changes)
        return json.dumps({name: value for name, value in content.items() if value is not None})

    put("phantom", "straight.json", text())
    put("phantom", "helix.json", text([bundle(pieces=(arc,), radius=((0, 2), (10, 3), (25, 1.5)))]))
    put("phantom", "two.json", text([bundle(), bundle("two", (arc,), end=1)]))
    put("phantom", "more-members.json", text([bundle(length_mm=40, volume_mm3=1131)], noise={"snr": "inf"}, files={}))
    put("phantom", "bad-version.json", text(version=2))
    put("phantom", "bad-format.json", text(format="phantom"))
    put("phantom", "bad-none.json", text([]))
    put("phantom", "bad-twice.json", text([bundle(), bundle()]))
    put("phantom", "bad-name.json", text([bundle("../one")]))
    put("phantom", "bad-missing.json", text(geometry=None))
    put("phantom", "bad-size.json", text(geometry={"size": [30, 20, 1e9], "voxel_to_world": [[1, 0, 0, 0]] * 3}))
    put("phantom", "bad-affine.json", text(geometry={"size": [3, 2, 1], "voxel_to_world": [[1, 0, 0, 0]] * 3}))
    put("phantom", "bad-radius.json", text([bundle(radius=((0, -1),))]))
    put("phantom", "bad-knots.json", text([bundle(radius=((5, 1), (0, 1)))]))
    put("phantom", "bad-wide.json", text([bundle(pieces=(arc,), radius=((0, 30),))]))
    put("phantom", "bad-long.json", text([bundle(pieces=({"cubic": [[0, 0, 0], [1e300, 0, 0], [0, 0, 0], [0, 0, 0]]},))]))
    put("phantom", "bad-sweep.json", text([bundle(pieces=({"helix": {**arc["helix"], "sweep": 1e12}},))]))
    put("phantom", "bad-gap.json", text([bundle(pieces=(line, arc))]))
    put("phantom", "bad-piece.json", text([bundle(pieces=({"spline": []},))]))
    put("phantom", "bad-types.json", text([bundle(radius=(("a", None),))]))


if __name__ == "__main__":
    nifti_corpus()
    gzip_corpus()
    gradients_corpus()
    sidecar_corpus()
    spheres_corpus()
    phantom_corpus()
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files)} bytes")
