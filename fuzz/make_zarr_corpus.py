#!/usr/bin/env python3
"""Makes the corpora of zarr_codecs (chunks as numcodecs encodes them), zarr_metadata and zarr_array (as zarr-python writes
them, and broken ones). The same bytes at every run. Needs zarr and numcodecs.

    fuzz/make_zarr_corpus.py      writes fuzz/corpus/zarr_*
Inputs that fuzzing found are added by hand, named found-*, and are left alone.
"""
import gzip
import zlib
from pathlib import Path

import numcodecs
import numpy as np
from numcodecs.checksum32 import CRC32C

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


if __name__ == "__main__":
    codec_corpus()
