"""Every codec against numcodecs, both ways: what we encode numcodecs decodes, what numcodecs encodes we decode, and codecs
whose bytes follow from their input give the same bytes. The probe program is in CINGULUM_TEST_CODEC_PROBE."""
import bz2
import gzip
import json
import os
import pathlib
import subprocess
import sys
import unittest
import zlib

import numcodecs
import numpy as np
from numcodecs.checksum32 import CRC32C

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from support import suite  # noqa: E402

PROBE = os.environ["CINGULUM_TEST_CODEC_PROBE"]
LONG = os.environ.get("CINGULUM_TEST_LONG") == "1"

INTEGERS = [order + kind + size for kind in "iu" for size in "1248" for order in "<>"]
FLOATS = [order + "f" + size for size in "248" for order in "<>"]
COMPLEX = [order + "c" + size for size in ("8", "16") for order in "<>"]


def ask(requests):
    """The probe's answers: bytes, or the text of the error."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([PROBE], input=lines, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"the probe ended with {done.returncode}: {done.stderr}"
    answers = done.stdout.splitlines()
    assert len(answers) == len(requests)
    return [bytes.fromhex(line[3:]) if line.startswith("ok ") else line[6:] for line in answers]


def encoding(codec, content):
    return {"do": "encode", "codec": codec, "bytes": bytes(content).hex()}


def decoding(codec, content, room):
    return {"do": "decode", "codec": codec, "bytes": bytes(content).hex(), "room": room}


def as_bytes(encoded):
    return encoded.tobytes() if isinstance(encoded, np.ndarray) else bytes(encoded)


def contents(seed):
    """Byte strings that compress well, badly and not at all, of awkward lengths; not of none, which some codecs of numcodecs
    refuse."""
    random = np.random.default_rng(seed)
    ramp = np.arange(5000, dtype="<u4").tobytes()
    noise = random.integers(0, 256, 70000, dtype=np.uint8).tobytes()
    text = b"".join(b"%d," % (i * i % 977) for i in range(20000))
    found = [b"x", b"ab", bytes(1), bytes(100000), ramp, noise, text, noise[:1023], ramp[:999]]
    for _ in range(200 if LONG else 20):
        size = int(random.integers(1, 5000))
        few = int(random.integers(1, 256))
        found.append(random.integers(0, few, size, dtype=np.uint8).tobytes())
    return found


def numbers(dtype, count, random):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        information = np.iinfo(dtype)
        return random.integers(information.min, information.max, count, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (random.normal(0, 100, count) + 1j * random.normal(0, 100, count)).astype(dtype)
    return random.normal(0, 100, count).astype(dtype)


class Compressors(unittest.TestCase):
    def check(self, theirs, ours, seed=1):
        """`theirs` is a codec of numcodecs, `ours` the probe's words for it."""
        inputs = contents(seed)
        for content, encoded in zip(inputs, ask([encoding(ours, content) for content in inputs])):
            self.assertIsInstance(encoded, bytes, encoded)
            self.assertEqual(as_bytes(theirs.decode(encoded)), content, (ours, len(content)))
        requests = [decoding(ours, as_bytes(theirs.encode(content)), len(content)) for content in inputs]
        for content, decoded in zip(inputs, ask(requests)):
            self.assertEqual(decoded, content, (ours, len(content)))
        # One byte less of room than what comes out.
        requests = [{**request, "room": request["room"] - 1} for request in requests]
        for content, refused in zip(inputs, ask(requests)):
            self.assertIsInstance(refused, str, (ours, len(content)))
            self.assertIn(f"{len(content) - 1} bytes expected", refused)

    def test_gzip(self):
        for level in (0, 1, 5, 9):
            self.check(numcodecs.GZip(level), {"kind": "gzip", "level": level})

    def test_zlib(self):
        for level in (-1, 0, 1, 9):
            self.check(numcodecs.Zlib(level), {"kind": "zlib", "level": level})

    def test_bz2(self):
        for level in (1, 9):
            self.check(numcodecs.BZ2(level), {"kind": "bz2", "level": level})

    def test_zstd(self):
        for level in (-5, 0, 1, 3, 19):
            for checksum in (False, True):
                self.check(numcodecs.Zstd(level, checksum), {"kind": "zstd", "level": level, "checksum": checksum})

    def test_lz4(self):
        for acceleration in (0, 1, 50):
            self.check(numcodecs.LZ4(acceleration), {"kind": "lz4", "level": acceleration})

    def test_blosc_with_every_compressor_and_shuffle(self):
        # The wheels of numcodecs come without snappy.
        for compressor in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
            for shuffle in (0, 1, 2):
                for element_bytes in (1, 4, 8) if not LONG else (1, 2, 4, 8, 12, 16):
                    theirs = numcodecs.Blosc(compressor, clevel=5, shuffle=shuffle)
                    ours = {"kind": "blosc", "level": 5, "compressor": compressor, "shuffle": shuffle,
                            "element_bytes": element_bytes}
                    self.check(Typed(theirs, element_bytes), ours, seed=element_bytes)

    def test_nothing_stays_nothing(self):
        for kind in ("gzip", "zlib", "bz2", "zstd", "lz4", "blosc", "crc32c", "fletcher32"):
            codec = {"kind": kind, "level": 1}
            stored = ask([encoding(codec, b"")])[0]
            self.assertEqual(ask([decoding(codec, stored, 0), decoding(codec, stored, 10)]), [b"", b""], kind)

    def test_blosc_with_snappy_and_with_every_level(self):
        inputs = contents(3)
        for level in range(10):
            ours = {"kind": "blosc", "level": level, "compressor": "snappy", "shuffle": 1, "element_bytes": 4}
            encoded = ask([encoding(ours, content) for content in inputs])
            decoded = ask([decoding(ours, stored, len(content)) for stored, content in zip(encoded, inputs)])
            self.assertEqual(decoded, inputs)


class Typed:
    """Blosc takes its type size from the array that it is given."""

    def __init__(self, codec, element_bytes):
        self.codec, self.element_bytes = codec, element_bytes

    def encode(self, content):
        if len(content) % self.element_bytes:
            return self.codec.encode(content)
        return self.codec.encode(np.frombuffer(content, dtype=f"V{self.element_bytes}"))

    def decode(self, encoded):
        return self.codec.decode(encoded)


class Frames(unittest.TestCase):
    """Forms of compressed bytes that encoders of others write."""

    def test_several_gzip_members_and_zeros_behind_them(self):
        stored = gzip.compress(b"one", mtime=7) + gzip.compress(b"two") + bytes(20)
        self.assertEqual(ask([decoding({"kind": "gzip"}, stored, 6)]), [b"onetwo"])

    def test_several_bz2_streams(self):
        stored = bz2.compress(b"one") + bz2.compress(b"two")
        self.assertEqual(ask([decoding({"kind": "bz2"}, stored, 6)]), [b"onetwo"])

    def test_several_zstd_frames_with_and_without_size(self):
        codec = numcodecs.Zstd(1)
        # A frame without content size, with one raw block: RFC 8878, section 3.1.1.
        unsized = bytes.fromhex("28b52ffd") + bytes([0x00, 0x58]) + (3 << 3 | 1).to_bytes(3, "little") + b"mid"
        stored = as_bytes(codec.encode(b"first")) + unsized + as_bytes(codec.encode(b"last"))
        self.assertEqual(ask([decoding({"kind": "zstd"}, stored, 12)]), [b"firstmidlast"])

    def test_bytes_behind_the_end_are_refused(self):
        for kind, stored in (("zlib", zlib.compress(b"content")), ("bz2", bz2.compress(b"content"))):
            self.assertIsInstance(ask([decoding({"kind": kind}, stored + b"x", 7)])[0], str, kind)

    def test_every_cut_is_refused(self):
        content = bytes(range(256)) * 8
        for codec, ours in ((numcodecs.GZip(1), {"kind": "gzip"}), (numcodecs.Zlib(1), {"kind": "zlib"}),
                            (numcodecs.BZ2(1), {"kind": "bz2"}), (numcodecs.Zstd(1), {"kind": "zstd"}),
                            (numcodecs.LZ4(), {"kind": "lz4"}), (numcodecs.Blosc("lz4"), {"kind": "blosc"}),
                            (numcodecs.Blosc("zstd", shuffle=2), {"kind": "blosc"})):
            stored = as_bytes(codec.encode(content))
            answers = ask([decoding(ours, stored[:size], len(content)) for size in range(len(stored))])
            for size, answer in enumerate(answers):
                self.assertIsInstance(answer, str, (ours, size))
                self.assertTrue(answer.startswith(f"codec {ours['kind']}: "), answer)


class Checksums(unittest.TestCase):
    def test_bytes_equal_those_of_numcodecs(self):
        for codec, kind in ((CRC32C(), "crc32c"), (numcodecs.Fletcher32(), "fletcher32")):
            inputs = contents(5)
            inputs += [b"\xff" * size for size in (1, 2, 3, 131070, 131072, 4194304, 4194307)]
            theirs = [as_bytes(codec.encode(content)) for content in inputs]
            self.assertEqual(ask([encoding({"kind": kind}, content) for content in inputs]), theirs, kind)
            self.assertEqual(ask([decoding({"kind": kind}, stored, len(stored) - 4) for stored in theirs]), inputs, kind)

    def test_every_flip_is_found(self):
        content = bytes(range(64))
        for kind in ("crc32c", "fletcher32"):
            stored = ask([encoding({"kind": kind}, content)])[0]
            flipped = []
            for bit in range(8 * len(stored)):
                damaged = bytearray(stored)
                damaged[bit // 8] ^= 1 << bit % 8
                flipped.append(decoding({"kind": kind}, damaged, 64))
            for answer in ask(flipped):
                self.assertIsInstance(answer, str)


class Filters(unittest.TestCase):
    def setUp(self):
        self.asked = []  # a request, and the bytes that must come

    def tearDown(self):
        """All requests of a test at once: a process for each would take most of the time."""
        self.assertGreater(len(self.asked), 0)
        for (request, expected), answer in zip(self.asked, ask([request for request, _ in self.asked])):
            self.assertIsInstance(answer, bytes, (request["do"], request["codec"], answer))
            self.assertEqual(answer, expected, (request["do"], request["codec"]))

    def compare(self, theirs, ours, values):
        """Byte for byte, both ways; `values` are an array of the decoded type."""
        encoded = as_bytes(theirs.encode(values))
        decoded = as_bytes(theirs.decode(np.frombuffer(encoded, getattr(theirs, "astype", values.dtype))))
        self.asked += [(encoding(ours, values.tobytes()), encoded), (decoding(ours, encoded, values.nbytes), decoded)]

    def test_shuffle(self):
        random = np.random.default_rng(6)
        for size in (0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 31):
            for count in (0, 1, 2, 15, 16, 17, 100, 1023, 1024, 1025, 5000):
                values = random.integers(0, 256, count * max(size, 1), dtype=np.uint8)
                self.compare(numcodecs.Shuffle(size), {"kind": "shuffle", "element_bytes": size}, values)
        refused = ask([encoding({"kind": "shuffle", "element_bytes": 4}, bytes(7))])[0]
        self.assertIn("a multiple of 4 bytes expected, 7 found", refused)

    def test_delta_of_every_type(self):
        random = np.random.default_rng(7)
        for dtype in INTEGERS + FLOATS + COMPLEX:
            for count in (1, 2, 511, 512, 513, 1500):
                values = numbers(dtype, count, random)
                self.compare(numcodecs.Delta(dtype), {"kind": "delta", "decoded": dtype.replace("|", "<"), "encoded": dtype},
                             values)

    def test_delta_kept_in_another_type(self):
        random = np.random.default_rng(8)
        pairs = [(a, b) for a in INTEGERS for b in INTEGERS if np.promote_types(a, b).kind != "f"]  # summed up as integers
        pairs += [(a, b) for a in FLOATS for b in FLOATS]
        for dtype, astype in pairs:
            if np.dtype(dtype).kind == "f":
                values = random.integers(-50, 50, 700).astype(dtype)  # no rounding, no overflow
            else:
                values = np.cumsum(random.integers(-1 if dtype[1] == "i" else 0, 2, 700)).astype(dtype)
            theirs = numcodecs.Delta(dtype, astype)
            self.compare(theirs, {"kind": "delta", "decoded": dtype, "encoded": astype}, values)

    def test_fixed_scale_offset(self):
        random = np.random.default_rng(9)
        for dtype in INTEGERS + FLOATS:
            for astype in INTEGERS + FLOATS:
                for scale, offset in ((10.0, 3.0), (0.5, -2.5), (3.0, 0.1), (1.0, 0.0)):
                    low, high = (0, 40) if "u" in (dtype[1], astype[1]) else (-40, 40)
                    if dtype[1] == "f":
                        values = random.uniform(low / 10 + 4, high / 10 + 4, 600).astype(dtype)
                    else:
                        values = random.integers(low // 10 + 4, high // 10 + 4, 600).astype(dtype)
                    self.compare(numcodecs.FixedScaleOffset(offset, scale, dtype, astype),
                                 {"kind": "fixedscaleoffset", "decoded": dtype, "encoded": astype, "scale": scale,
                                  "offset": offset}, values)

    def test_fixed_scale_offset_rounds_halves_to_even(self):
        for dtype in ("<f2", "<f4", "<f8"):
            values = np.arange(-20, 21).astype(dtype) / 2
            self.compare(numcodecs.FixedScaleOffset(0.0, 1.0, dtype, "<i1"),
                         {"kind": "fixedscaleoffset", "decoded": dtype, "encoded": "<i1", "scale": 1.0, "offset": 0.0}, values)

    def test_float64_becomes_float16_by_one_rounding(self):
        # Just above halves of the last place of float16: by way of float32 they would go to even.
        values = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40, -1 - 2.0**-11 - 2.0**-40, 2.0**-25 + 2.0**-60,
                           65519.999999999, 65520.0, 1e300])
        with np.errstate(over="ignore"):
            self.compare(numcodecs.Delta("<f8", "<f2"), {"kind": "delta", "decoded": "<f8", "encoded": "<f2"}, values[:1])
            for value in values:
                expected = np.array([value]).astype("<f2").tobytes()
                codec = {"kind": "delta", "decoded": "<f8", "encoded": "<f2"}
                self.asked.append((encoding(codec, np.array([value]).tobytes()), expected))

    def test_bitround(self):
        random = np.random.default_rng(10)
        for dtype, bits in (("<f2", 10), (">f2", 10), ("<f4", 23), (">f4", 23), ("<f8", 52), (">f8", 52)):
            for keep in range(bits + 1):
                values = numbers(dtype, 300, random)
                values[:6] = [0, -0.0, np.inf, -np.inf, 1, 1.5]
                self.compare_rounded(numcodecs.BitRound(keep), {"kind": "bitround", "decoded": dtype, "keep_bits": keep}, values)

    def compare_rounded(self, theirs, ours, values):
        # numcodecs looks up native types alone: the other byte order goes through it natively.
        native = values.astype(values.dtype.newbyteorder("="))
        encoded = theirs.encode(native)
        expected = np.asarray(encoded).view(native.dtype).astype(values.dtype)
        expected = expected.tobytes()
        self.asked += [(encoding(ours, values.tobytes()), expected), (decoding(ours, expected, len(expected)), expected)]

    def test_swapped_bytes(self):
        random = np.random.default_rng(11)
        for size in (1, 2, 3, 4, 8, 16):
            content = random.integers(0, 256, size * 999, dtype=np.uint8)
            expected = content.reshape(-1, size)[:, ::-1].tobytes()
            codec = {"kind": "swap_bytes", "element_bytes": size}
            self.asked += [(encoding(codec, content), expected), (decoding(codec, expected, len(content)), content.tobytes())]

    def test_permuted_dimensions(self):
        random = np.random.default_rng(12)
        for _ in range(200):
            rank = int(random.integers(0, 6))
            shape = [int(n) for n in random.integers(1, 6, rank)]
            order = [int(n) for n in random.permutation(rank)]
            size = int(random.choice([1, 2, 3, 4, 8, 16]))
            values = random.integers(0, 256, shape + [size], dtype=np.uint8)
            expected = np.ascontiguousarray(values.transpose(order + [rank])).tobytes()
            codec = {"kind": "permute", "element_bytes": size, "shape": shape, "order": order}
            self.asked += [(encoding(codec, values.tobytes()), expected), (decoding(codec, expected, values.nbytes), values.tobytes())]
        refused = ask([decoding({"kind": "permute", "element_bytes": 2, "shape": [2, 3], "order": [1, 0]}, bytes(14), 12)])[0]
        self.assertIn("12 bytes expected, 14 found", refused)


if __name__ == "__main__":
    suite.main()
