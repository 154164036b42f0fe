"""Hierarchies of Zarr that were made to hurt. Extents that overflow, metadata of the wrong kind, unknown codecs,
JSON that is deep, indices of shards that point anywhere, archives that lie, links that lead out of the folder. Each is refused
with one line that says where and why, and the program lives on. CINGULUM_TEST_ZARR_PROBE names zarr_probe."""
import copy
import io
import json
import os
import struct
import sys
import tempfile
import unittest
import zipfile
import zlib
from pathlib import Path

import google_crc32c
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402
from probe import Probe, Refused  # noqa: E402

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ARRAY = {"zarr_format": 3, "node_type": "array", "shape": [4, 4], "data_type": "uint16", "fill_value": 0,
         "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 4]}},
         "chunk_key_encoding": {"name": "default"}, "codecs": [BYTES], "attributes": {}}
SHARDING = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [BYTES],
                                                          "index_codecs": [BYTES, {"name": "crc32c"}]}}
SHARDED = {**ARRAY, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}}, "codecs": [SHARDING]}
V2 = {"zarr_format": 2, "shape": [4, 4], "chunks": [2, 4], "dtype": "<u2", "compressor": None, "fill_value": 0, "order": "C",
      "filters": None}
ABSENT = 2**64 - 1


def changed(base, path, value):
    """A copy with one member set; `path` goes through keys and indices."""
    document = copy.deepcopy(base)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return document


def without(base, *names):
    return {name: value for name, value in base.items() if name not in names}


# What no extent, level, name or number can be.
STRANGE = [None, True, -1, 1.5, 1e300, 2**64 - 1, 2**63, "4", "", [], {}, [[]], [None]]


def hostile_metadata():
    """name, document"""
    for value in STRANGE:
        shown = json.dumps(value)
        yield f"shape {shown}", changed(ARRAY, ["shape"], value)
        yield f"extent {shown}", changed(ARRAY, ["shape", 0], value)
        yield f"chunk {shown}", changed(ARRAY, ["chunk_grid", "configuration", "chunk_shape", 0], value)
        yield f"inner chunk {shown}", changed(SHARDED, ["codecs", 0, "configuration", "chunk_shape", 0], value)
        yield f"v2 extent {shown}", changed(V2, ["shape", 1], value)
        yield f"v2 chunk {shown}", changed(V2, ["chunks", 0], value)
        yield f"type {shown}", changed(ARRAY, ["data_type"], value)
        yield f"v2 type {shown}", changed(V2, ["dtype"], value)
        yield f"codec {shown}", changed(ARRAY, ["codecs", 0], value)
        yield f"format {shown}", changed(ARRAY, ["zarr_format"], value)
        if value is not None and value != -1:  # what is null is absent, and -1 is zlib's own choice
            yield f"level {shown}", changed(ARRAY, ["codecs"], [BYTES, {"name": "gzip", "configuration": {"level": value}}])
        if value is not None:
            yield f"v2 compressor {shown}", changed(V2, ["compressor"], value)
            yield f"v2 filters {shown}", changed(V2, ["filters"], [value])
    for name in ("shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs", "fill_value", "node_type", "zarr_format"):
        yield f"without {name}", without(ARRAY, name)
    for name in ("shape", "chunks", "dtype", "order"):
        yield f"v2 without {name}", without(V2, name)
    yield "extents that overflow", {**ARRAY, "shape": [2**40, 2**40]}
    yield "chunks that overflow", changed(ARRAY, ["chunk_grid", "configuration", "chunk_shape"], [2**40, 2**40])
    yield "a hidden overflow", {**ARRAY, "shape": [0, 2**63]}
    yield "v2 extents that overflow", {**V2, "shape": [2**40, 2**40]}
    yield "33 dimensions", {**ARRAY, "shape": [1] * 33,
                            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1] * 33}}}
    yield "another rank", changed(ARRAY, ["chunk_grid", "configuration", "chunk_shape"], [2])
    yield "inner chunks of another rank", changed(SHARDED, ["codecs", 0, "configuration", "chunk_shape"], [2])
    yield "inner chunks that do not divide", changed(SHARDED, ["codecs", 0, "configuration", "chunk_shape"], [3, 2])
    yield "an index that is compressed", changed(SHARDED, ["codecs", 0, "configuration", "index_codecs"],
                                                 [BYTES, {"name": "gzip", "configuration": {"level": 1}}])
    yield "an index nowhere", changed(SHARDED, ["codecs", 0, "configuration", "index_location"], "middle")
    yield "no codecs in shards", changed(SHARDED, ["codecs", 0, "configuration", "codecs"], [])
    deep = SHARDING
    for _ in range(40):
        deep = changed(SHARDING, ["configuration", "codecs"], [deep])
    yield "shards in shards in shards", {**SHARDED, "codecs": [deep]}
    yield "no bytes", {**ARRAY, "codecs": []}
    yield "bytes twice", {**ARRAY, "codecs": [BYTES, BYTES]}
    yield "a filter behind bytes", {**ARRAY, "codecs": [BYTES, {"name": "transpose", "configuration": {"order": [1, 0]}}]}
    for order in ([0, 0], [1], [0, 2], [-1, 0], "A", [1, 0, 2]):
        yield f"order {order}", {**ARRAY, "codecs": [{"name": "transpose", "configuration": {"order": order}}, BYTES]}
    for name in ("lzma", "zfp", "numcodecs.zfpy", "numcodecs.pcodec", "vlen-utf8", "numcodecs.", "", "bytes2", "../zstd", "x" * 9999):
        yield f"codec {name[:20]}", {**ARRAY, "codecs": [BYTES, {"name": name}]}
    for identifier in ("lzma", "vlen-utf8", "json2", "pickle", "zfpy", "pcodec", ""):
        yield f"v2 codec {identifier}", {**V2, "compressor": {"id": identifier}}
    for dtype in ("|O", "<U4", "|S3", "<M8[ns]", "<f3", "<f16", "?", "<i0", "=u2", "u2", [["a", "<u2"]]):
        yield f"v2 type {dtype}", {**V2, "dtype": dtype}
    for name in ("string", "bytes", "r8", "uint128", "float128", "struct", {"name": "numpy.datetime64"}):
        yield f"type {name}", {**ARRAY, "data_type": name}
    yield "a member to be understood", {**ARRAY, "strange": {"must_understand": True}}
    yield "a member of which nothing is said", {**ARRAY, "strange": 1}
    yield "a codec to be understood", {**ARRAY, "codecs": [BYTES, {"name": "strange", "must_understand": True}]}
    yield "a storage transformer", {**ARRAY, "storage_transformers": [{"name": "x"}]}
    for encoding in ("v4", {"name": "v2", "configuration": {"separator": "|"}}, {"name": "default", "configuration": {"separator": "../"}}):
        yield f"keys {encoding}", {**ARRAY, "chunk_key_encoding": encoding}
    yield "v2 separator", {**V2, "dimension_separator": "../"}
    yield "v2 order", {**V2, "order": "A"}
    yield "irregular chunks", {**ARRAY, "chunk_grid": {"name": "rectangular", "configuration": {"chunk_shape": [[1], [1]]}}}
    for fill in ("0xzz", "nan", "Infinity", [1, 2], {}, 70000, -1, 1.5, "AAAAAAA"):
        yield f"fill value {fill}", {**ARRAY, "fill_value": fill}
    yield "names of another rank", {**ARRAY, "dimension_names": ["a"]}
    yield "names of another kind", {**ARRAY, "dimension_names": [1, 2]}
    yield "attributes of another kind", {**ARRAY, "attributes": [1]}
    blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}
    for name, value in {"cname": "lzma", "clevel": 10, "shuffle": "perhaps", "typesize": 0, "blocksize": -1}.items():
        yield f"blosc {name}", {**ARRAY, "codecs": [BYTES, {"name": "blosc", "configuration": {**blosc, name: value}}]}


def hostile_texts():
    yield "nothing", b""
    yield "no JSON", b"{"
    yield "a list", b"[]"
    yield "a number", b"3"
    yield "zero bytes", bytes(100)
    yield "no UTF-8", b'{"zarr_format": "\xff\xfe"}'
    yield "a thousand brackets", b"[" * 1000 + b"]" * 1000
    yield "a hundred thousand brackets", b"[" * 100000
    attributes = b'{"a":' * 70 + b"1" + b"}" * 70
    yield "deep attributes", json.dumps(ARRAY).encode()[:-1].replace(b'"attributes": {}', b'"attributes": ' + attributes) + b"}"
    yield "something behind", json.dumps(ARRAY).encode() + b"x"
    yield "a number too long", json.dumps(ARRAY).encode().replace(b"[4, 4]", b"[1" + b"0" * 400 + b", 4]")


def index(entries):
    plain = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    return plain + struct.pack("<I", google_crc32c.value(plain))


def hostile_shards():
    """Inner chunks of 8 bytes, four of them; the index has 68 bytes."""
    chunks = bytes(range(32))
    good = [(0, 8), (8, 8), (16, 8), (24, 8)]

    def shard(entries, body=chunks):
        return body + index(entries)

    for name, entry in {"behind the end": (1000, 8), "across the end": (96, 8), "of another size": (0, 7), "of no bytes": (0, 0),
                        "with an offset that wraps": (2**64 - 8, 16), "with a size that wraps": (8, 2**64 - 8),
                        "half absent": (ABSENT, 8), "half absent, too": (0, ABSENT), "in the index": (40, 8),
                        "across the index": (28, 8), "huge": (0, 2**63)}.items():
        for place in (0, 3):
            yield f"chunk {place} {name}", shard(good[:place] + [entry] + good[place + 1:])
    yield "two chunks in one place", shard([(0, 8), (0, 8), (16, 8), (24, 8)])
    yield "overlapping chunks", shard([(0, 8), (4, 8), (16, 8), (24, 8)])
    yield "all chunks in one place", shard([(8, 8)] * 4)
    yield "no bytes", b""
    yield "an index alone, cut", index(good)[1:]
    yield "an index of fewer chunks", chunks + index(good[:3])
    yield "a wrong checksum", shard(good)[:-1] + b"\0"
    yield "bytes behind", shard(good) + b"x"


def archive(entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in entries:
            file.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def hostile_archives():
    document = json.dumps(ARRAY).encode()
    chunk = bytes(range(16))
    entries = [("zarr.json", document), ("c/0/0", chunk), ("c/1/0", chunk)]
    good = archive(entries)
    for name in ("../evil", "/evil", "c/../../evil", "c//0", "a\\..\\evil", "C:/evil", "./evil", "c/0/0/"):
        yield f"an entry {name!r}", archive(entries + [(name, b"x")])
    yield "an entry twice", archive(entries + [("zarr.json", document)])
    yield "a file that is a folder", archive(entries + [("zarr.json/a", b"x")])
    yield "nothing", b""
    yield "no archive", b"PK\3\4" + bytes(100)
    yield "an empty archive", archive([])
    yield "an archive of something else", archive([("readme.txt", b"hello")])
    directory = good.index(b"PK\1\2")
    for offset, what in ((16, "CRC"), (20, "packed size"), (24, "size"), (42, "place"), (10, "method"), (8, "flags"), (28, "length of a name")):
        for value in (1, 0xff):
            damaged = bytearray(good)
            damaged[directory + offset] ^= value
            yield f"another {what} ({value})", bytes(damaged)
    end = good.rindex(b"PK\5\6")
    for offset, what in ((10, "number of entries"), (12, "size of the directory"), (16, "place of the directory")):
        damaged = bytearray(good)
        damaged[end + offset] ^= 0x55
        yield f"another {what}", bytes(damaged)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zarr.json", document)
        file.writestr("c/0/0", bytes(10_000_000))
        file.writestr("c/1/0", chunk)
    yield "a chunk that grows a thousandfold", stream.getvalue()


class Hostile(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(os.path.realpath(temporary.name))
        self.probe = Probe()
        self.addCleanup(self.probe.close)
        self.count = 0

    def array(self, document, chunks=()):
        """A new folder with the array."""
        self.count += 1
        path = self.folder / f"{self.count}.zarr"
        path.mkdir()
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        v2 = isinstance(document, dict) and document.get("zarr_format") == 2
        (path / (".zarray" if v2 else "zarr.json")).write_bytes(text)
        for key, content in dict(chunks).items():
            (path / key).parent.mkdir(parents=True, exist_ok=True)
            (path / key).write_bytes(content)
        return path

    def refused(self, path, what, kinds=("corrupt", "not found")):
        try:
            answer = self.probe.read(path)
        except Refused as refusal:
            message = str(refusal)
            self.assertEqual(message.count("\n"), 0, message)
            self.assertLess(len(message), 2000, message)
            self.assertIn(path.name, message, what)
            self.assertIn(refusal.kind, kinds, f"{what}: {message}")
            return message
        self.fail(f"{what}: it was read: {answer}")

    def test_good_ones_are_read(self):
        chunk = bytes(range(16))
        values = np.frombuffer(chunk * 2, "<u2").reshape(4, 4)
        found, _ = self.probe.read(self.array(ARRAY, {"c/0/0": chunk, "c/1/0": chunk}))
        np.testing.assert_array_equal(found, values)
        found, _ = self.probe.read(self.array(V2, {"0.0": chunk, "1.0": chunk}))
        np.testing.assert_array_equal(found, values)
        shard = bytes(range(32)) + index([(0, 8), (8, 8), (16, 8), (ABSENT, ABSENT)])
        found, answer = self.probe.read(self.array(SHARDED, {"c/0/0": shard}))
        self.assertEqual(answer["filled"], 1)
        np.testing.assert_array_equal(found[:2, :2], np.frombuffer(shard[:8], "<u2").reshape(2, 2))
        path = self.folder / "good.zarr.zip"
        path.write_bytes(archive([("zarr.json", json.dumps(ARRAY).encode()), ("c/0/0", chunk), ("c/1/0", chunk)]))
        np.testing.assert_array_equal(self.probe.read(path)[0], values)

    def test_metadata(self):
        cases = list(hostile_metadata())
        self.assertGreater(len(cases), 200)
        for name, document in cases:
            with self.subTest(name):
                self.refused(self.array(document), name)

    def test_texts(self):
        for name, text in hostile_texts():
            with self.subTest(name):
                self.refused(self.array(text), name)

    def test_shards(self):
        for name, shard in hostile_shards():
            with self.subTest(name):
                message = self.refused(self.array(SHARDED, {"c/0/0": shard}), name, ("corrupt",))
                self.assertIn("c/0/0", message)

    def test_archives(self):
        for name, content in hostile_archives():
            with self.subTest(name):
                self.count += 1
                path = self.folder / f"{self.count}.zarr.zip"
                path.write_bytes(content)
                self.refused(path, name)

    def test_chunks_of_another_size(self):
        for size in (0, 1, 15, 17, 32, 1000):
            path = self.array(ARRAY, {"c/0/0": bytes(size), "c/1/0": bytes(16)})
            message = self.refused(path, f"{size} bytes", ("corrupt",))
            self.assertIn("16 bytes were expected", message)
            self.assertIn(f"{size} found", message)

    def test_compressed_bombs(self):
        bomb = zlib.compress(bytes(10_000_000), 9)
        path = self.array({**V2, "compressor": {"id": "zlib", "level": 1}}, {"0.0": bomb, "1.0": bomb})
        self.assertIn("16 bytes expected", self.refused(path, "a bomb", ("corrupt",)))
        # A few bytes that claim to be a chunk of a terabyte.
        huge = {**V2, "shape": [1, 1], "chunks": [2**19, 2**20], "compressor": {"id": "zlib", "level": 1}}
        self.assertIn("hold at most", self.refused(self.array(huge, {"0.0": bomb}), "a lie", ("corrupt",)))
        plain = {**V2, "shape": [1, 1], "chunks": [2**19, 2**20]}
        self.refused(self.array(plain, {"0.0": bytes(100)}), "a lie", ("corrupt",))

    def test_links_out_of_the_folder(self):
        secret = self.folder / "secret"
        secret.write_bytes(bytes(16))
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "0").write_bytes(bytes(16))
        for key, target in (("c/0/0", secret), ("c/0/0", "../../../secret"), ("c/0", self.folder / "elsewhere"),
                            ("c", self.folder / "elsewhere")):
            path = self.array(ARRAY, {})
            (path / key).parent.mkdir(parents=True, exist_ok=True)
            (path / key).symlink_to(target)
            if key == "c":
                (self.folder / "elsewhere" / "0").unlink()
                (self.folder / "elsewhere" / "0").mkdir()
                (self.folder / "elsewhere" / "0" / "0").write_bytes(bytes(16))
            self.assertIn("leads out of the folder", self.refused(path, f"{key} -> {target}", ("corrupt",)))
        # Metadata, too; and what is no file.
        path = self.array(ARRAY)
        document = (path / "zarr.json").rename(self.folder / "zarr.json")
        (path / "zarr.json").symlink_to(document)
        self.assertIn("leads out of the folder", self.refused(path, "metadata", ("corrupt",)))
        path = self.array(ARRAY)
        (path / "c" / "0").mkdir(parents=True)
        os.mkfifo(path / "c" / "0" / "0")
        self.refused(path, "a pipe", ("corrupt",))
        loop = self.array(ARRAY)
        (loop / "c").symlink_to("c")
        self.refused(loop, "a loop", ("input or output", "corrupt"))

    def test_links_inside_the_folder_are_followed(self):
        path = self.array(ARRAY, {"c/0/0": bytes(range(16))})
        (path / "c" / "1").mkdir()
        (path / "c" / "1" / "0").symlink_to("../0/0")
        found, answer = self.probe.read(path)
        self.assertEqual(answer["filled"], 0)
        np.testing.assert_array_equal(found[:2], found[2:])


if __name__ == "__main__":
    suite.main()
