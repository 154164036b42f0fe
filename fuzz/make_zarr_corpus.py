#!/usr/bin/env python3
"""Makes the corpora of zarr_codecs (chunks as numcodecs encodes them), zarr_metadata and zarr_array (as zarr-python writes
them, and broken ones). The same bytes at every run. Needs zarr and numcodecs.

    fuzz/make_zarr_corpus.py      writes fuzz/corpus/zarr_*
Inputs that fuzzing found are added by hand, named found-*, and are left alone.
"""
import gzip
import json
import tempfile
import warnings
import zlib
from pathlib import Path

import numcodecs
import numpy as np
import zarr
from numcodecs.checksum32 import CRC32C

warnings.simplefilter("ignore")  # of codecs outside of the specification

CORPUS = Path(__file__).resolve().parent / "corpus"


def put(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def bytes_of(encoded):
    return encoded.tobytes() if isinstance(encoded, np.ndarray) else bytes(encoded)


# Numbers of fuzz/zarr_codecs.cpp.
def codec_corpus():
    values = (np.arange(60, dtype="<u2") ** 2 % 251).astype("<u2")  # of the shape that its `permute` has
    content = values.tobytes()
    zeros = bytes(5000)

    def chunk(name, number, stored, size=len(content)):
        put("zarr_codecs", name, bytes([number]) + size.to_bytes(3, "little") + bytes_of(stored))

    def apply(steps, values):
        for step in steps:
            values = step.encode(values)
        return values

    chunk("plain", 0, content)
    chunk("crc32c", 1, CRC32C().encode(content))
    chunk("fletcher32", 2, numcodecs.Fletcher32().encode(content))
    fixed_time = gzip.compress(content, mtime=0)
    chunk("gzip", 3, fixed_time)
    chunk("gzip-two-members", 3, gzip.compress(content[:50], mtime=0) + gzip.compress(content[50:], mtime=0) + bytes(3))
    chunk("zlib", 4, zlib.compress(content, 1))
    chunk("zlib-stored", 4, zlib.compress(content, 0))
    chunk("bz2", 5, numcodecs.BZ2(1).encode(content))
    chunk("bz2-run", 5, numcodecs.BZ2(9).encode(zeros), len(zeros))
    chunk("zstd", 6, numcodecs.Zstd(1).encode(content))
    chunk("zstd-checksum", 6, numcodecs.Zstd(1, True).encode(content))
    chunk("zstd-run", 6, numcodecs.Zstd(19).encode(zeros), len(zeros))
    unsized = bytes.fromhex("28b52ffd") + bytes([0x00, 0x58]) + (len(content) << 3 | 1).to_bytes(3, "little") + content
    chunk("zstd-unsized", 6, unsized)
    chunk("lz4", 7, numcodecs.LZ4().encode(content))
    chunk("lz4-run", 7, numcodecs.LZ4().encode(zeros), len(zeros))
    for compressor in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            chunk(f"blosc-{compressor}-{shuffle}", 8, numcodecs.Blosc(compressor, 5, shuffle).encode(values))
    chunk("blosc-run", 8, numcodecs.Blosc("lz4", 5, 1).encode(np.zeros(5000, "u1")), len(zeros))
    chunk("shuffle-zstd-crc32c", 9, apply([numcodecs.Shuffle(4), numcodecs.Zstd(1), CRC32C()], values))
    chunk("swapped-gzip", 10, gzip.compress(values.view("<u4").byteswap().tobytes(), mtime=0))
    chunk("zstd-lz4", 11, apply([numcodecs.Zstd(1), numcodecs.LZ4()], values))
    chunk("transpose", 12, np.ascontiguousarray(values.reshape(5, 3, 4).transpose(2, 0, 1)))
    chunk("delta", 13, numcodecs.Delta("<i4").encode(values.view("<i4")))
    chunk("delta-wide-lz4", 14, apply([numcodecs.Delta(">i2", ">i8"), numcodecs.LZ4()], values.astype(">i2")))
    chunk("delta-float", 15, numcodecs.Delta("<f4").encode(values[:30].astype("<f4")))
    chunk("scaled", 16, numcodecs.FixedScaleOffset(3.0, 10.0, "<f8", "<i2").encode(values[:15].astype("<f8")))
    scaled = apply([numcodecs.FixedScaleOffset(3.0, 10.0, "|u1", "<f4"), numcodecs.Zlib(1)], values.astype("u1"))
    chunk("scaled-zlib", 17, scaled, 60)
    chunk("rounded-blosc", 18, apply([numcodecs.BitRound(7), numcodecs.Blosc("lz4", 5, 1)], values[:30].astype("<f4")))
    chunk("crc32c-bz2", 19, apply([CRC32C(), numcodecs.BZ2(1)], values))
    # Sizes that lie.
    chunk("zstd-too-small", 6, numcodecs.Zstd(1).encode(content), len(content) - 1)
    chunk("zstd-too-large", 6, numcodecs.Zstd(1).encode(content), len(content) + 1)
    chunk("blosc-cut", 8, bytes_of(numcodecs.Blosc("lz4", 5, 1).encode(values))[:-3])
    chunk("lz4-negative", 7, (-5).to_bytes(4, "little", signed=True) + b"abcdef")
    chunk("empty", 6, b"", 0)


# Options of zarr.create_array by name; chunks of 5 x 4, so that some are not whole.
def arrays():
    shape = {"shape": (7, 9), "chunks": (5, 4)}
    blosc = zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle")
    sharded = {"shape": (7, 9), "chunks": (5, 4), "shards": (10, 8), "dtype": "<u2"}
    inner = zarr.codecs.ShardingCodec(chunk_shape=(2, 2), codecs=[zarr.codecs.BytesCodec(), zarr.codecs.Crc32cCodec()])
    nested = zarr.codecs.ShardingCodec(chunk_shape=(4, 4), codecs=[inner], index_location="start")
    found = {
        "v3-raw": {**shape, "dtype": "<f4", "compressors": None},
        "v3-big-endian": {**shape, "dtype": "<i2", "serializer": zarr.codecs.BytesCodec(endian="big"), "compressors": None},
        "v3-transposed": {**shape, "dtype": "<c8", "filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
        "v3-blosc": {**shape, "dtype": "<f8", "compressors": blosc, "fill_value": float("nan")},
        "v3-gzip-crc32c": {**shape, "dtype": "|u1", "compressors": [zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec()]},
        "v3-bool": {**shape, "dtype": "bool", "dimension_names": ["y", "x"], "fill_value": True},
        "v3-scalar": {"shape": (), "chunks": (), "dtype": "<i8", "fill_value": -3},
        "v3-sharded": {**sharded, "compressors": [zarr.codecs.Crc32cCodec()]},
        "v3-sharded-zstd": {**sharded, "compressors": [zarr.codecs.ZstdCodec(level=1, checksum=True)], "attributes": {"a": [1]}},
        "v3-nested": {"shape": (8, 8), "chunks": (8, 8), "dtype": "<u2", "serializer": nested, "compressors": None},
        "v3-filters": {**shape, "dtype": "<i4", "filters": [zarr.codecs.numcodecs.Delta(dtype="<i4")],
                       "compressors": [zarr.codecs.numcodecs.Shuffle(elementsize=4), zarr.codecs.numcodecs.LZ4()]},
        "v2-zlib": {**shape, "dtype": ">u2", "zarr_format": 2, "compressors": numcodecs.Zlib(1), "order": "F"},
        "v2-blosc": {**shape, "dtype": "<f4", "zarr_format": 2, "compressors": numcodecs.Blosc("lz4", 5, 1)},
        "v2-filters": {**shape, "dtype": "<f4", "zarr_format": 2, "compressors": numcodecs.BZ2(1),
                       "filters": [numcodecs.FixedScaleOffset(0.0, 10.0, "<f4", "<i2")]},
        "v2-plain": {**shape, "dtype": "|i1", "zarr_format": 2, "compressors": None, "fill_value": None},
    }
    for name, options in found.items():
        with tempfile.TemporaryDirectory() as folder:
            array = zarr.create_array(folder, **options)
            values = np.arange(int(np.prod(array.shape, dtype=int))).reshape(array.shape) * 7 % 251
            array[...] = values.astype(array.dtype)
            text = (Path(folder) / ("zarr.json" if array.metadata.zarr_format == 3 else ".zarray")).read_text()
            keys = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name not in
                          ("zarr.json", ".zarray", ".zattrs"))
            yield name, text, keys[0].read_bytes()


def hostile():
    array = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": "default",
             "codecs": ["bytes"]}
    yield "minimal", array
    yield "overflow", {**array, "shape": [2**62, 2**62]}
    yield "long-chunk", {**array, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**59]}}}
    yield "no-chunk", {**array, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0]}}}
    yield "negative", {**array, "shape": [-4]}
    yield "rank", {**array, "shape": [1] * 40, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1] * 40}}}
    yield "unknown-codec", {**array, "codecs": ["bytes", {"name": "lzma"}]}
    yield "must-understand", {**array, "strange": {"must_understand": True}}
    yield "need-not", {**array, "strange": {"must_understand": False}}
    for name, fill in {"nan": "NaN", "bits": "0x7fc00001", "pair": [1, 2], "bool": True, "null": None, "map": {"a": 1}}.items():
        yield f"fill-{name}", {**array, "fill_value": fill}
    deep = array
    for _ in range(70):
        deep = {"attributes": deep}
    yield "deep", deep


def image(version):
    scales = [{"path": str(k), "coordinateTransformations": [{"type": "scale", "scale": [1.0, 2.0**k, 2.0**k]},
                                                               {"type": "translation", "translation": [0.0, 0.5, 0.25]}]}
              for k in range(2)]
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space"}]
    multiscale = {"name": "image", "axes": axes, "datasets": scales, "type": "mean",
                  "coordinateTransformations": [{"type": "scale", "scale": [1.0, 0.3, 0.3]}]}
    omero = {"channels": [{"label": "a", "color": "FF0000", "window": {"min": 0, "max": 255, "start": 3, "end": 99}}]}
    if version == "0.4":
        return {"multiscales": [{**multiscale, "version": "0.4"}], "omero": omero, "other": 1}
    return {"ome": {"version": version, "multiscales": [multiscale], "omero": omero}}


def image_of_0_6():
    systems = [{"name": "world", "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]}]
    affine = {"type": "affine", "affine": [[2.0, 0.1, 3.0], [0.0, 2.0, 4.0]], "input": "0", "output": "world"}
    return {"ome": {"version": "0.6", "multiscales": [{"coordinateSystems": systems, "datasets": [
        {"path": "0", "coordinateTransformations": [affine]}]}]}}


def metadata_corpus():
    for name, text, chunk in arrays():
        put("zarr_metadata", name, text.encode())
        put("zarr_array", name, text.encode() + b"\0" + chunk)
    for name, document in hostile():
        put("zarr_metadata", f"hostile-{name}", json.dumps(document).encode())
    for version in ("0.4", "0.5"):
        put("zarr_metadata", f"ome-{version}", json.dumps(image(version)).encode())
    put("zarr_metadata", "ome-0.6", json.dumps(image_of_0_6()).encode())


if __name__ == "__main__":
    codec_corpus()
    metadata_corpus()
