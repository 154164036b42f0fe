#!/usr/bin/env python3
"""Makes the corpus of the target view_messages: good and broken messages of the viewer's socket, targets and ranges. The
same bytes at every run.

    fuzz/make_view_corpus.py      writes fuzz/corpus/view_messages
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
