#!/usr/bin/env python3
"""Makes the corpus of the tractogram targets: small good files, odd ones and broken ones. The same bytes at every run.

    fuzz/make_tractogram_corpus.py      writes fuzz/corpus/{trk,tck,trx,trx_json,zip}
Inputs that fuzzing found are added by hand, named found-*, and are left alone.
"""
import struct
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "formats"))
import hostile_trx  # noqa: E402

CORPUS = Path(__file__).resolve().parent / "corpus"


def put(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def trx_corpus():
    for number, (what, content) in enumerate(hostile_trx.odd_but_good()):
        put("trx", f"good-{number:02d}", content)
        put("zip", f"good-{number:02d}", content)
    for number, (what, content) in enumerate(hostile_trx.hostile()):
        if number % 12 == 0 and len(content) < 3000:
            put("trx", f"hostile-{number:03d}", content)
        if number % 12 == 6 and len(content) < 3000:
            put("zip", f"hostile-{number:03d}", content)
    put("trx_json", "plain", hostile_trx.header())
    put("trx_json", "flat", hostile_trx.header(VOXEL_TO_RASMM=[float(v) for v in np.eye(4).ravel()]))
    put("trx_json", "floats", hostile_trx.header(NB_STREAMLINES=4.0, DIMENSIONS=[1.0, 2, 3]))
    put("trx_json", "more", hostile_trx.header(OTHER={"a": [1, 2, {"b": None}]}))
    put("trx_json", "huge", hostile_trx.header(NB_STREAMLINES=(1 << 64) - 1))
    put("trx_json", "small-numbers", hostile_trx.header(VOXEL_TO_RASMM=[[1e-300, 5e-324, -0.0, 1e300]] * 3 + [[0, 0, 0, 1]]))
    put("trx_json", "bad-deep", b'{"a":' + b"[" * 70)
    put("trx_json", "bad-row", hostile_trx.header(VOXEL_TO_RASMM=[[1, 0, 0, 0]] * 4))
    put("trx_json", "bad-count", hostile_trx.header(NB_VERTICES=-3))


def trk(order="<", version=2, scalars=(), properties=(), streamlines=((1, 2), (), (3, 4, 5)), voxel_order=b"RAS", count=None,
        affine=np.diag([2.0, 2, 2, 1])):
    def names(fields):
        return b"".join((n + (b"\0%d" % c if c > 1 else b"")).ljust(20, b"\0") for n, c in fields).ljust(200, b"\0")
    n_scalars, n_properties = sum(c for _, c in scalars), sum(c for _, c in properties)
    header = b"TRACK\0" + struct.pack(order + "3h3f3f", 10, 11, 12, 2, 2, 2, 0, 0, 0)
    header += struct.pack(order + "h", n_scalars) + names(scalars) + struct.pack(order + "h", n_properties) + names(properties)
    header += struct.pack(order + "16f", *affine.ravel()) + b"\0" * 444 + voxel_order.ljust(4, b"\0") + b"\0" * 4 + b"\0" * 24
    header += b"\0" * 8 + struct.pack(order + "3i", len(streamlines) if count is None else count, version, 1000)
    body = b""
    for s in streamlines:
        body += struct.pack(order + "i", len(s))
        for p in s:
            body += struct.pack(order + f"{3 + n_scalars}f", p, p + 0.5, -p, *range(n_scalars))
        body += struct.pack(order + f"{n_properties}f", *range(n_properties))
    return header + body


def trk_corpus():
    fields = {"scalars": ((b"fa", 1), (b"direction", 3)), "properties": ((b"id", 1), (b"ends", 2))}
    put("trk", "plain", trk())
    put("trk", "fields", trk(**fields))
    put("trk", "fields-big", trk(">", **fields))
    put("trk", "big", trk(">"))
    put("trk", "version-1", trk(version=1))
    put("trk", "version-3", trk(version=3))
    put("trk", "unknown-count", trk(count=0))
    put("trk", "empty", trk(streamlines=()))
    put("trk", "lps", trk(voxel_order=b"LPS"))
    put("trk", "cyclic", trk(voxel_order=b"ASR"))
    put("trk", "no-order", trk(voxel_order=b""))
    put("trk", "no-affine", trk(affine=np.zeros((4, 4))))
    put("trk", "oblique", trk(affine=np.array([[1.9, 0.2, 0.1, 3], [-0.3, 1.8, 0.2, 4], [0.1, -0.2, 2, 5], [0, 0, 0, 1]])))
    put("trk", "bad-count", trk(count=9))
    put("trk", "bad-negative", trk(count=-1))
    put("trk", "bad-singular", trk(affine=np.diag([1.0, 1, 0, 1])))
    put("trk", "bad-order", trk(voxel_order=b"LRS"))
    put("trk", "bad-cut", trk(**fields)[:-3])
    put("trk", "bad-names", trk(scalars=((b"a\0" + b"7", 1),)))
    put("trk", "trailing", trk(count=1))
    put("trk", "nameless", trk(scalars=((b"", 2),)))
    put("trk", "twins", trk(scalars=((b"x", 1), (b"x", 1))))


def tck(kind="Float32LE", lines=(), streamlines=((1, 2), (), (3, 4, 5)), count=None, end=True):
    text = "mrtrix tracks\n" + "".join(line + "\n" for line in lines)
    text += f"count: {len(streamlines) if count is None else count}\ndatatype: {kind}\n"
    offset = len(text) + 20
    text = (text + f"file: . {offset}\nEND\n").ljust(offset, "\0")
    dtype = np.dtype(("<" if kind.endswith("LE") else ">") + ("f8" if "64" in kind else "f4"))
    numbers = []
    for s in streamlines:
        for p in s:
            numbers += [p, p + 0.5, -p]
        numbers += [np.nan] * 3
    if end:
        numbers += [np.inf] * 3
    return text.encode() + np.array(numbers, dtype).tobytes()


def tck_corpus():
    for kind in ("Float32LE", "Float32BE", "Float64LE", "Float64BE"):
        put("tck", kind.lower(), tck(kind))
    put("tck", "notes", tck(lines=("method: iFOD2", "roi: seed a", "roi: stop b:c", "history: one", "two", "", "  three ")))
    put("tck", "empty", tck(streamlines=()))
    put("tck", "count", tck(count=77))
    put("tck", "plain-end", b"mrtrix tracks\nEND\n" + np.array([1, 2, 3] + [np.nan] * 3 + [np.inf] * 3, "<f4").tobytes())
    put("tck", "bad-no-end", tck(end=False))
    put("tck", "bad-cut", tck()[:-5])
    put("tck", "bad-header", tck()[:40])
    put("tck", "bad-type", tck("Float16LE"))
    put("tck", "bad-after", tck() + bytes(12))
    put("tck", "bad-key", tck(lines=(": x",)))
    put("tck", "bad-mixed", tck(streamlines=((1, np.nan),)))


trx_corpus()
trk_corpus()
tck_corpus()
