#!/usr/bin/env python3
"""Makes the corpora of the targets view_messages (good and broken messages of the viewer's socket, targets and ranges) and
field_bytes (heads of fields). The same bytes at every run.

    fuzz/make_view_corpus.py      writes fuzz/corpus/view_messages and fuzz/corpus/field_bytes
Inputs that fuzzing found are added by hand, named found-*, and are left alone.
"""
import json
import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus" / "view_messages"
CORPUS.mkdir(parents=True, exist_ok=True)


def put(name, content):
    (CORPUS / name).write_bytes(content)


def message(kind, body=b"", request=1, magic=b"CGV1", zero=0):
    return magic + struct.pack("<HHI", kind, zero, request) + body


WISH = {"dg": "prob", "sphere": [1, -2.5, 30, 4], "nseeds": 200, "seed": 0, "max-angle": 30, "step-size": "0.5vox", "one-sided": True,
        "rk4": False, "include": [[0, 0, 0, 5], [1, 2, 3, 4]]}
put("track", message(1, json.dumps(WISH).encode()))
put("track-empty", message(1, b"{}"))
put("track-largest-number", message(1, b'{"seed":18446744073709551615}', 0xffffffff))
put("track-no-body", message(1))
put("track-no-object", message(1, b"[1,2,3]"))
put("track-deep", message(1, b"[" * 200))
put("track-infinite", message(1, b'{"a":1e999}'))
put("track-escapes", message(1, b'{"a":"\\u0000","b":"\\ud800"}'))
put("track-not-utf8", message(1, b'{"a":"\xff\xfe"}'))
put("track-twice", message(1, b'{"a":1,"a":2}'))
put("cancel", message(2))
put("cancel-with-body", message(2, b"x"))
put("kind-of-server", message(16, b"\0" * 16))
put("wrong-magic", message(1, b"{}", magic=b"CGV2"))
put("not-zero", message(1, b"{}", zero=1))
put("short", message(1)[:7])
put("nothing", b"")
for number, text in enumerate(("/", "/data/f1", "/data/../f1", "/data/%2e%2e/f1", "/open/00ff", "/api/files", "/page.js", "/..\\x", "bytes=0-9",
                               "bytes=-5", "bytes=5-", "bytes=9-1", "bytes=18446744073709551615-", "bytes=0-1,3-4")):
    put(f"text-{number:02}", text.encode())


FIELDS = CORPUS.parent / "field_bytes"
FIELDS.mkdir(parents=True, exist_ok=True)
TENSOR, AMPLITUDES = 4, 0


def field(kind=TENSOR, magic=b"CGF1", channels=6, stride=8, numbers=48, size=(1, 1, 1), half=0, mirror=0, arrays=()):
    """Ten arrays: directions, edges, offsets of neighbours, neighbours, orbits, slots, records of voxels, and three matrices."""
    head = magic + struct.pack("<IiIIIIIIIII", kind, 0, channels, stride, half, 1, mirror, 0, 0, 0, 0)
    head += struct.pack("<3q", *size) + struct.pack("<12d", 2, 0, 0, -1, 0, 2, 0, -1, 0, 0, 2, -1) + struct.pack("<Q", numbers)
    content = dict(arrays)
    for name, code in (("directions", "d"), ("edges", "I"), ("offsets", "I"), ("neighbours", "I"), ("orbits", "d"), ("slots", "I"),
                       ("records", "I"), ("basis", "f"), ("fit", "f"), ("scale", "f")):
        values = content.get(name, [1] if name == "records" else [])
        columns = {"directions": 3, "orbits": 3, "edges": 2}.get(name, 1)
        head += struct.pack("<Q", len(values) // columns) + struct.pack(f"<{len(values)}{code}", *values)
    return head


def put_field(name, content):
    (FIELDS / name).write_bytes(content)


SPHERE = {"directions": [0, 0, 1, 0, 1, 0, 1, 0, 0], "edges": [0, 1, 0, 2, 1, 2], "offsets": [0, 2, 4, 6], "neighbours": [1, 2, 0, 2, 0, 1]}
put_field("tensor", field())
put_field("tensor-half", field(half=1))
put_field("amplitudes", field(kind=AMPLITUDES, channels=3, stride=4, numbers=40, arrays=SPHERE))
put_field("mirror", field(kind=AMPLITUDES, channels=3, stride=4, numbers=40, mirror=1, arrays={**SPHERE, "orbits": [0, 0, 1], "slots": [0, 1, 2] + [0xffffffff] * 125}))
put_field("neighbour-beyond", field(kind=AMPLITUDES, channels=3, stride=4, numbers=40, arrays={**SPHERE, "neighbours": [1, 2, 0, 2, 0, 3]}))
put_field("offsets-decrease", field(kind=AMPLITUDES, channels=3, stride=4, numbers=40, arrays={**SPHERE, "offsets": [0, 5, 4, 6]}))
put_field("many-numbers", field(numbers=2**60 + 32))
put_field("no-numbers", field(numbers=0))
put_field("no-stride", field(stride=0))
put_field("large-grid", field(size=(65535, 65535, 65535)))
put_field("negative-grid", field(size=(-1, 1, 1)))
put_field("other-magic", field(magic=b"CGF2"))
put_field("cut-short", field()[:-9])
put_field("count-beyond", field()[:176] + b"\xff" * 8)
put_field("nothing", b"")
