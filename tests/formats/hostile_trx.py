"""Makes hostile TRX archives: zip and JSON that lie, escape, overlap, overflow or contradict themselves.

hostile() gives (name, bytes) of files that every reader must refuse; odd_but_good() gives files that must be read, so that
the refusals are not those of a builder that makes nothing right. As a script it writes them into a folder.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

STREAMLINES = [3, 0, 1, 4]
POINTS = sum(STREAMLINES)


class Entry:
    """One member of an archive; whatever is given by name overrides the truth."""

    def __init__(self, name, data=b"", deflate=False, stream=None, **lies):
        self.name = name.encode("latin1") if isinstance(name, str) else name
        self.data = data
        self.lies = lies
        if stream is None:
            stream = data
            if deflate:
                coder = zlib.compressobj(9, zlib.DEFLATED, -15)
                stream = coder.compress(data) + coder.flush()
        self.packed = stream
        self.method = 8 if deflate else 0

    def get(self, key, where, truth):
        return self.lies.get(f"{where}_{key}", self.lies.get(key, truth))


def extra64(numbers):
    body = b"".join(struct.pack("<Q", n) for n in numbers)
    return struct.pack("<HH", 1, len(body)) + body


def build(entries, **lies):
    out = bytearray(lies.get("prefix", b""))
    offsets = []
    for e in entries:
        offsets.append(e.lies.get("offset", len(out)))
        name = e.get("name", "local", e.name)
        extra = e.get("extra", "local", b"")
        out += struct.pack("<IHHHIIIIHH", e.get("signature", "local", 0x04034B50), 20, e.get("flags", "local", 0),
                           e.get("method", "local", e.method), e.get("time", "local", 0x00210000),
                           e.get("crc", "local", zlib.crc32(e.data)), e.get("packed", "local", len(e.packed)),
                           e.get("bytes", "local", len(e.data)), e.lies.get("local_name_bytes", len(name)), len(extra))
        out += name + extra + e.packed + e.lies.get("after", b"")
    out += lies.get("gap", b"")
    start = len(out)
    for e, offset in zip(entries, offsets):
        name = e.get("name", "central", e.name)
        extra = e.get("extra", "central", b"")
        out += struct.pack("<IHHHHIIIIHHHHHII", e.get("signature", "central", 0x02014B50), (3 << 8) | 45, 20,
                           e.get("flags", "central", 0), e.get("method", "central", e.method),
                           e.get("time", "central", 0x00210000), e.get("crc", "central", zlib.crc32(e.data)),
                           e.get("packed", "central", len(e.packed)), e.get("bytes", "central", len(e.data)),
                           len(name), e.lies.get("central_extra_bytes", len(extra)), 0, e.lies.get("disk", 0), 0,
                           e.lies.get("attributes", 0o100644 << 16), offset)
        out += name + extra
    size = len(out) - start
    count = lies.get("count", len(entries))
    if "end64" in lies:
        record = dict(size=44, count=len(entries), bytes=size, offset=start, disk=0, locator_disk=0, disks=1, at=len(out),
                      signature=0x06064B50)
        record.update(lies["end64"])
        out += struct.pack("<IQHHIIQQQQ", record["signature"], record["size"], 45, 45, record["disk"], 0,
                           record["count"], record["count"], record["bytes"], record["offset"])
        out += struct.pack("<IIQI", 0x07064B50, record["locator_disk"], record["at"], record["disks"])
    comment = lies.get("comment", b"")
    out += struct.pack("<IHHHHIIH", lies.get("end_signature", 0x06054B50), lies.get("disk", 0), lies.get("start_disk", 0),
                       lies.get("disk_count", count), count, lies.get("directory_bytes", size),
                       lies.get("directory_offset", start), lies.get("comment_bytes", len(comment)))
    out += comment + lies.get("suffix", b"")
    return bytes(out)


def header(**changes):
    content = {"DIMENSIONS": [10, 11, 12], "VOXEL_TO_RASMM": np.eye(4).tolist(), "NB_STREAMLINES": len(STREAMLINES),
               "NB_VERTICES": POINTS}
    content.update(changes)
    return json.dumps({k: v for k, v in content.items() if v is not None}).encode()


def parts():
    """A good file, by the names of its entries."""
    offsets = np.concatenate([[0], np.cumsum(STREAMLINES)]).astype("<u8")
    return {
        "header.json": header(),
        "positions.3.float32": np.arange(POINTS * 3, dtype="<f4").tobytes(),
        "offsets.uint64": offsets.tobytes(),
        "dpv/fa.float32": np.linspace(0, 1, POINTS, dtype="<f4").tobytes(),
        "dps/id.2.int16": np.arange(len(STREAMLINES) * 2, dtype="<i2").tobytes(),
        "groups/left.uint32": np.array([0, 3], "<u4").tobytes(),
        "dpg/left/volume.float32": np.array([2.5], "<f4").tobytes(),
    }


def entries_of(content, **lies_of):
    return [Entry(name, data, **lies_of.get(name, {})) for name, data in content.items()]


def changed(**changes):
    """A good archive with some entries replaced (None: left out) or added."""
    content = parts()
    for name, data in changes.items():
        if data is None:
            content.pop(name)
        else:
            content[name] = data
    return build(entries_of(content))


def hostile():
    good = parts()
    names = list(good)

    # Names that leave the folder, or mean different things to different systems.
    for name in ["../x.float32", "../../etc/passwd", "/etc/passwd", "//server/share", "dpv/../../x.float32", "..", ".",
                 "dpv/..", "./header2.json", "dpv/./x.float32", "dpv//x.float32", "C:/x.float32", "C:\\x.float32", "C:x",
                 "\\\\server\\share", "dpv\\x.float32", "..\\x.float32", "dpv/..\\..\\x", "a\0b.float32", "\0", "\n",
                 "dpv/x\r.float32", "dpv/\x7f.float32", "dpv/\x1b[2J.float32", "", "/", "dpv/x.float32/../../y",
                 "dps/../dpv/fa.float32", "dpg/left/../../../x.float32", "\\", "dpv/x:stream.float32", "../", "a/../"]:
        yield f"name {name!r}", build(entries_of(good) + [Entry(name, b"" if name.endswith("/") else b"abcd")])
    for name in names:
        yield f"duplicate {name}", build(entries_of(good) + [Entry(name, good[name])])
        yield f"duplicate with other content {name}", build([Entry(name, b"\0" * len(good[name]))] + entries_of(good))
        yield f"other local name {name}", build(entries_of(good, **{name: {"local_name": name.upper().encode()}}))
        yield f"wrong crc {name}", build(entries_of(good, **{name: {"crc": 1}}))
        for key, what in (("central_crc", 5), ("local_crc", 5), ("central_time", 7), ("local_flags", 0x800), ("local_method", 8)):
            yield f"{key} {name}", build(entries_of(good, **{name: {key: what}}))
        for flag in (1, 1 << 6, 1 << 13):
            yield f"encrypted {flag} {name}", build(entries_of(good, **{name: {"flags": flag}}))
        yield f"signature {name}", build(entries_of(good, **{name: {"local_signature": 0x04034B51}}))
        yield f"disk {name}", build(entries_of(good, **{name: {"disk": 1}}))
        yield f"symbolic link {name}", build(entries_of(good, **{name: {"attributes": 0o120777 << 16}}))
    for method in (1, 2, 3, 6, 9, 10, 12, 14, 19, 93, 95, 98, 99, 0xFFFF):
        yield f"method {method}", build(entries_of(good, **{"dpv/fa.float32": {"method": method}}))

    # Sizes that lie.
    name = "positions.3.float32"
    true = len(good[name])
    for key in ("bytes", "packed"):
        for where in ("local_", "central_", ""):
            for size in (0, true - 1, true + 1, 0x7FFFFFFF, 0xFFFFFFFE):
                yield f"{where}{key} {size}", build(entries_of(good, **{name: {where + key: size}}))
    for size in (true + 1, 1 << 40, (1 << 40) + 1, 1 << 62, (1 << 63) + 1, (1 << 64) - 1, (1 << 64) - true):
        lie = {"bytes": 0xFFFFFFFF, "packed": 0xFFFFFFFF, "extra": extra64([size, size])}
        yield f"zip64 size {size}", build(entries_of(good, **{name: lie}))
    marked = {"bytes": 0xFFFFFFFF, "packed": 0xFFFFFFFF}
    for what, extra in (("missing", b""), ("short", extra64([true])), ("twice", extra64([true, true]) * 2),
                        ("cut", extra64([true, true])[:-3]), ("odd end", extra64([true, true]) + b"\x07"),
                        ("too long", struct.pack("<HH", 1, 400) + b"\0" * 16)):
        yield f"zip64 field {what}", build(entries_of(good, **{name: {**marked, "extra": extra}}))
    yield "zip64 local only", build(entries_of(good, **{name: {"local_bytes": 0xFFFFFFFF, "local_packed": 0xFFFFFFFF,
                                                               "local_extra": extra64([true + 4, true + 4])}}))
    yield "central extra beyond", build(entries_of(good, **{name: {"central_extra_bytes": 0xFFFF}}))
    yield "local name beyond", build(entries_of(good, **{name: {"local_name_bytes": 0xFFFF}}))

    # Entries over each other.
    for i in range(1, len(names)):
        yield f"offset of {names[i]} is that of the one before", build(
            entries_of(good, **{names[i]: {"offset": 0, "local_name": names[i].encode()}}))
    inner = Entry("dpv/in.float32", np.zeros(POINTS, "<f4").tobytes())
    alone = build([inner])[:-(22 + 46 + len(inner.name))]
    outer = entries_of(good)
    quoted = alone + b"\0" * 3
    holder = Entry("extra.bin", quoted)
    before = len(build(outer)[: -22]) - sum(46 + len(e.name) for e in outer)
    place = before + 30 + len(holder.name)
    yield "an entry inside another", build(outer + [holder, Entry("dpv/in.float32", inner.data, offset=place)])
    for offset in (1, 5, 0x7FFFFFFF, 0xFFFFFFFE):
        yield f"offset {offset}", build(entries_of(good, **{"offsets.uint64": {"offset": offset}}))

    # The end record and the directory.
    entries = lambda: entries_of(good)
    for key, values in {"count": (0, 1, len(names) - 1, len(names) + 1, 0xFFFE, 0xFFFF), "disk": (1, 0xFFFF),
                        "start_disk": (1,), "disk_count": (0, 3), "directory_bytes": (0, 1, 45, 0xFFFFFFFE, 0xFFFFFFFF),
                        "directory_offset": (0, 1, 0xFFFFFFFE, 0xFFFFFFFF), "comment_bytes": (1, 22, 0xFFFF),
                        "end_signature": (0x06054B51, 0)}.items():
        for value in values:
            yield f"end record {key} {value}", build(entries(), **{key: value})
    yield "bytes before the archive", build(entries(), prefix=b"MZ" + b"\0" * 100, directory_offset=0)
    yield "a gap before the directory counted to it", build(entries(), gap=b"\0" * 10, directory_bytes=10)
    yield "bytes after the archive", build(entries(), suffix=b"\0")
    other = build([Entry("header.json", b"{}")])
    yield "an archive in the comment", build(entries(), comment=other)
    yield "two end records", build(entries(), comment=struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0, 0, 0, 0, 0))
    yield "two archives", build(entries()) + build(entries())
    for key, values in {"size": (0, 43, 45, 1 << 63), "count": (0, 1, len(names) + 1, 1 << 60), "bytes": (0, 1 << 63),
                        "offset": (0, 1 << 63, (1 << 64) - 1), "disk": (1,), "locator_disk": (1,), "disks": (2,),
                        "at": (0, 1 << 40, (1 << 64) - 1, (1 << 64) - 56), "signature": (1,)}.items():
        for value in values:
            yield f"zip64 end record {key} {value}", build(entries(), end64={key: value}, directory_offset=0xFFFFFFFF)
    yield "folder with content", build(entries_of(good) + [Entry("dpv/", b"abcd")])
    yield "file and folder", build(entries_of(good) + [Entry("dpv", b"abcd")])
    yield "file and folder below", build(entries_of(good) + [Entry("dpv/fa.float32/x.float32", b"abcd")])

    # Deflated data that lie.
    data = good[name]
    zeros = bytes(1 << 20)
    coder = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = coder.compress(data) + coder.flush()
    bomb_coder = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = b"".join(bomb_coder.compress(zeros) for _ in range(200)) + bomb_coder.flush()
    for what, entry in {
        "cut": Entry(name, data, deflate=True, stream=stream[:-4]),
        "garbage": Entry(name, data, deflate=True, stream=b"\xff" * len(stream)),
        "says less": Entry(name, data, deflate=True, bytes=len(data) - 12),
        "says more": Entry(name, data, deflate=True, bytes=len(data) + 12),
        "trailing": Entry(name, data, deflate=True, stream=stream + b"\0\0\0"),
        "wrong crc": Entry(name, data, deflate=True, crc=9),
        "empty": Entry(name, data, deflate=True, stream=b""),
        "bomb": Entry("dpv/bomb.uint8", b"", deflate=True, stream=bomb, bytes=200 << 20, crc=0),
        "bomb that says little": Entry(name, data, deflate=True, stream=bomb),
        "1 TB": Entry(name, data, deflate=True, bytes=0xFFFFFFFF, extra=extra64([1 << 40])),
        "more than 1 TB": Entry(name, data, deflate=True, bytes=0xFFFFFFFF, extra=extra64([(1 << 40) + 1])),
    }.items():
        rest = {n: d for n, d in good.items() if n.encode() != entry.name}
        yield f"deflate {what}", build(entries_of(rest) + [entry])

    # JSON.
    for what, text in {
        "empty": b"", "no json": b"hello", "cut": header()[:-2], "array": b"[]", "null": b"null", "number": b"3",
        "nested lists": b"[" * 100000, "nested objects": b'{"a":' * 1000 + b"1" + b"}" * 1000,
        "nested member": header(EXTRA=None)[:-1] + b',"x":' + b"[" * 65 + b"]" * 65 + b"}", "nul": b"\0" * 50,
        "not utf-8": header()[:-1] + b',"x":"\xff\xfe"}', "two objects": header() * 2, "NaN": header().replace(b"1.0", b"NaN"),
        "comment": b"/* x */" + header(), "single quotes": header().replace(b'"', b"'"),
    }.items():
        yield f"json {what}", changed(**{"header.json": text})
    for key in ("DIMENSIONS", "VOXEL_TO_RASMM", "NB_STREAMLINES", "NB_VERTICES"):
        for value in (None, "x", [], {}, True, [1, 2], -1, [1, 2, "3"], [[1, 2, 3]]):
            yield f"json {key} = {value}", changed(**{"header.json": header(**{key: value})})
    for key in ("NB_STREAMLINES", "NB_VERTICES"):
        for value in (0, 5, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 1e30, 4.5, 8.5):
            yield f"json {key} = {value}", changed(**{"header.json": header(**{key: value})})
    for value in ([0, 1, 1], [1, 1, -5], [1, 1], [1, 1, 1, 1], [1, 1, 1 << 40], [1.5, 1, 1]):
        yield f"json DIMENSIONS = {value}", changed(**{"header.json": header(DIMENSIONS=value)})
    twisted = np.eye(4)
    twisted[3] = [1, 0, 0, 1]
    for value in (np.eye(3).tolist(), np.eye(5).tolist(), twisted.tolist(), [1] * 15, [[1] * 4] * 3):
        yield f"json affine {value}", changed(**{"header.json": header(VOXEL_TO_RASMM=value)})
    yield "json 1e999", changed(**{"header.json": header().replace(b"1.0", b"1e999", 1)})

    # Arrays that do not fit each other.
    count = len(STREAMLINES)
    for what, offsets in {
        "decreasing": [0, 5, 3, 4, 8], "not from zero": [1, 3, 3, 4, 8], "beyond": [0, 3, 3, 9, 8], "last is less": [0, 3, 3, 4, 7],
        "last is more": [0, 3, 3, 4, 9], "huge": [0, 3, 3, 1 << 63, 8], "short": [0, 3, 3], "long": [0, 3, 3, 4, 8, 8],
        "none": [], "wraps": [0, (1 << 64) - 1, 3, 4, 8],
    }.items():
        yield f"offsets {what}", changed(**{"offsets.uint64": np.array(offsets, "<u8").tobytes()})
    for what, changes in {
        "no header": {"header.json": None}, "no positions": {name: None}, "no offsets": {"offsets.uint64": None},
        "offsets in bytes": {"offsets.uint64": np.zeros(5, "<u8").tobytes()[:-1]},
        "offsets as float": {"offsets.uint64": None, "offsets.float64": np.array([0, 3, 3, 4, 8], "<f8").tobytes()},
        "offsets as uint16": {"offsets.uint64": None, "offsets.uint16": np.array([0, 3, 3, 4, 8], "<u2").tobytes()},
        "offsets twice": {"offsets.uint32": np.array([0, 3, 3, 4, 8], "<u4").tobytes()},
        "positions twice": {"positions.3.float16": np.zeros(POINTS * 3, "<f2").tobytes()},
        "positions short": {name: data[:-12]}, "positions long": {name: data + b"\0" * 12}, "positions odd": {name: data[:-1]},
        "positions empty": {name: b""}, "positions as int": {name: None, "positions.3.int32": data},
        "positions 2 columns": {name: None, "positions.2.float32": data}, "positions 1 column": {name: None, "positions.float32": data},
        "dpv short": {"dpv/fa.float32": good["dpv/fa.float32"][:-4]}, "dpv odd": {"dpv/fa.float32": good["dpv/fa.float32"][:-1]},
        "dpv of no type": {"dpv/x": b"abcd"}, "dpv unknown type": {"dpv/x.float31": b"abcd" * POINTS},
        "dpv too many dots": {"dpv/x.1.2.float32": b"abcd" * POINTS}, "dpv no name": {"dpv/.float32": b"abcd" * POINTS},
        "dpv zero columns": {"dpv/x.0.float32": b""}, "dpv negative columns": {"dpv/x.-1.float32": b"abcd" * POINTS},
        "dpv huge columns": {"dpv/x.18446744073709551615.float32": b"abcd" * POINTS},
        "dpv overflowing columns": {"dpv/x.99999999999999999999999.float32": b"abcd" * POINTS},
        "dpv word columns": {"dpv/x.three.float32": b"abcd" * POINTS},
        "dpv twice by type": {"dpv/fa.float64": np.zeros(POINTS, "<f8").tobytes()},
        "dps short": {"dps/id.2.int16": good["dps/id.2.int16"][:-2]}, "dps long": {"dps/id.2.int16": good["dps/id.2.int16"] * 2},
        "dps object type": {"dps/x.object": b"abcdefgh" * count}, "dps datetime type": {"dps/x.datetime64": b"abcdefgh" * count},
        "group beyond": {"groups/left.uint32": np.array([0, count], "<u4").tobytes()},
        "group far beyond": {"groups/left.uint32": np.array([0, 0xFFFFFFFF], "<u4").tobytes()},
        "group negative": {"groups/left.uint32": None, "groups/left.int64": np.array([-1], "<i8").tobytes()},
        "group odd": {"groups/left.uint32": b"abc"}, "group as float": {"groups/left.uint32": None, "groups/left.float32": b"\0" * 8},
        "group of columns": {"groups/right.2.uint32": b"\0" * 8}, "group twice by type": {"groups/left.uint64": b"\0" * 8},
        "dpg without group": {"dpg/right/volume.float32": b"abcd"}, "dpg short": {"dpg/left/volume.float32": b"abc"},
        "dpg long": {"dpg/left/volume.float32": b"abcdabcd"}, "dpg deep": {"dpg/left/x/volume.float32": b"abcd"},
        "dpg twice by type": {"dpg/left/volume.float64": b"abcdabcd"},
    }.items():
        yield f"arrays: {what}", changed(**changes)
    whole = build(entries_of(good))
    yield "nothing", b""
    yield "only a signature", b"PK\3\4"
    yield "only an end record", whole[-22:]
    yield "without an end record", whole[:-22]
    yield "without its beginning", whole[40:]


def odd_but_good():
    good = parts()
    yield "plain", build(entries_of(good))
    yield "deflated", build([Entry(n, d, deflate=True) for n, d in good.items()])
    yield "comment", build(entries_of(good), comment=b"made by hand")
    yield "folders", build([Entry("dpv/"), Entry("dps/"), Entry("groups/"), Entry("dpg/"), Entry("dpg/left/")] + entries_of(good))
    yield "header last", build(entries_of(dict(reversed(good.items()))))
    yield "zip64 fields", build([Entry(n, d, bytes=0xFFFFFFFF, packed=0xFFFFFFFF, extra=extra64([len(d)] * 2))
                                 for n, d in good.items()])
    yield "zip64 end", build(entries_of(good), end64={}, directory_offset=0xFFFFFFFF)
    yield "descriptors", build([Entry(n, d, flags=8, local_crc=0, local_bytes=0, local_packed=0,
                                      after=struct.pack("<IIII", 0x08074B50, zlib.crc32(d), len(d), len(d)))
                                for n, d in good.items()])
    yield "offsets of old", changed(**{"offsets.uint64": good["offsets.uint64"][:-8]})
    yield "offsets of 32 bits", changed(**{"offsets.uint64": None,
                                           "offsets.uint32": np.array([0, 3, 3, 4, 8], "<u4").tobytes()})
    yield "unknown entry", changed(**{"readme.txt": b"hello"})
    yield "bits", changed(**{"dps/ok.bit": b"\1\0\1\0"})
    yield "flat affine", changed(**{"header.json": header(VOXEL_TO_RASMM=np.eye(4).ravel().tolist())})
    wide = {("positions.3.float64" if n == "positions.3.float32" else n):
            (np.arange(POINTS * 3, dtype="<f8").tobytes() if n == "positions.3.float32" else d) for n, d in good.items()}
    yield "float64 positions", build(entries_of(wide))
    yield "deflated float64 positions", build([Entry(n, d, deflate=n != "header.json") for n, d in wide.items()])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind, files in (("hostile", hostile()), ("good", odd_but_good())):
        for number, (what, content) in enumerate(files):
            (folder / f"{kind}-{number:03d}.trx").write_bytes(content)
            print(f"{kind}-{number:03d}.trx", what)
