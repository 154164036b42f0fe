#!/usr/bin/env python3
"""Makes the corpus of the target ring_wire: good messages of every type, older forms, and broken ones. The same bytes at
every run. Needs msgpack.

    fuzz/make_ring_corpus.py      writes fuzz/corpus/ring_wire
Inputs that fuzzing found are added by hand, named found-*, and are left alone.
"""
import uuid
from pathlib import Path

import msgpack
import numpy as np

CORPUS = Path(__file__).resolve().parent / "corpus" / "ring_wire"
CORPUS.mkdir(parents=True, exist_ok=True)
ID = uuid.UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


def put(name, content):
    (CORPUS / name).write_bytes(content)


def as_map(value):
    return {"__uuid_bin__": value.bytes}


def array(values, dtype):
    values = np.array(values, dtype=dtype)
    return {"__ndarray__": values.tobytes(), "dtype": str(values.dtype), "shape": list(values.shape)}


def message(kind, correlation=None, **fields):
    return {**fields, "message_id": as_map(ID), "priority": 128, "correlation_id": correlation, "__type__": kind}


NUMBERS = dict(i8=-128, u8=255, i16=-32768, u16=65535, i32=-(2**31), u32=2**32 - 1, i64=-(2**63), u64=2**64 - 1, f32=0.5,
               flag=True, phase=1)
good = {
    "base": message("RingKernelMessage"),
    "base-correlated": message("RingKernelMessage", as_map(ID)),
    "numbers": message("Numbers", **NUMBERS),
    "numbers-small": message("Numbers", **{name: 1 for name in NUMBERS if name != "flag"}),
    "reals": message("Reals", f64=float("nan"), row=array([1, 2, 3, float("inf")], "f4"),
                     grid=array([[1, -2], [3, -4], [5, -6]], "i2")),
    "reals-big-endian": message("Reals", f64=1, row=array([1, 2, 3, 4], ">f4"), grid=array(np.ones((3, 2)), ">i2")),
    "reals-lists": message("Reals", f64=-1, row=[1, 2.5, -3, 4]),
    "texts": message("Texts", origin=as_map(ID), label="grün 🧠"),
    "texts-old": message("Texts", origin={"__uuid__": str(ID)}, label=""),
    "lists": message("Lists", samples=array(np.arange(40), "f8"), picks=array([1, 2, 3], "u4")),
    "lists-plain": message("Lists", samples=[0.5, 1, -2], picks=[]),
    "lists-empty": message("Lists", samples=array([], "f8"), picks=array([], "u4")),
    "ids-bare-text": {"message_id": str(ID), "correlation_id": ID.hex, "__type__": "RingKernelMessage"},
    "ids-bare-bytes": {"message_id": ID.bytes, "correlation_id": ID.bytes, "__type__": "RingKernelMessage"},
    "only-type": {"__type__": "Lists"},
    "future-keys": {**message("Numbers", u8=3), "later": {"x": [1, {"y": None}], "z": b"abc"}, "ext": msgpack.ExtType(5, b"1234")},
    "type-first": {"__type__": "Numbers", "u8": 7},
}
for name, value in good.items():
    put(name, msgpack.packb(value))
put("numbers-single-floats", msgpack.packb(good["numbers"], use_single_float=True))

bad = {
    "bad-type": message("Unknown"),
    "bad-no-type": {"u8": 3},
    "bad-range": message("Numbers", u8=256),
    "bad-kind": message("Numbers", u8="three"),
    "bad-float": message("Numbers", f32=1e300),
    "bad-priority": {**message("RingKernelMessage"), "priority": -1},
    "bad-uuid": {**message("RingKernelMessage"), "message_id": {"__uuid_bin__": b"short"}},
    "bad-dtype": message("Lists", samples={"__ndarray__": b"", "dtype": "object", "shape": [0]}),
    "bad-shape": message("Lists", samples={"__ndarray__": b"12345678", "dtype": "float64", "shape": [2**62, 8]}),
    "bad-reference": message("Lists", samples={"__array_ref__": "00" * 16, "shape": [4], "dtype": "f8", "device": "cpu"}),
    "bad-long-text": message("Texts", label="x" * 21),
    "bad-list": message("Lists", picks=list(range(7))),
}
for name, value in bad.items():
    put(name, msgpack.packb(value))
whole = msgpack.packb(good["reals"])
put("cut-half", whole[: len(whole) // 2])
put("cut-last", whole[:-1])
put("trailing", whole + b"\xc0")
put("twice", b"\x83\xa2u8\x01\xa2u8\x02\xa8__type__\xa7Numbers")
put("empty", b"")
put("huge-map", b"\xdf\xff\xff\xff\xff")
put("deep", b"\x82\xa1x" + b"\x91" * 4000 + b"\xc0" + b"\xa8__type__\xa7Numbers")
