"""The msgpack of messages: maps, lists, texts, bytes, numbers, and through `default` what a caller makes of the rest.

Own code, so that messages need no further package; the bytes are those of the msgpack package with its defaults.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

_FLOAT = struct.Struct(">d")


def pack(value: Any, default: Callable[[Any], Any]) -> bytes:
    """The value as bytes. `default` turns what has no form of its own into something that has one, or raises."""
    parts: list[bytes] = []
    _pack(value, default, parts.append)
    return b"".join(parts)


def _head(size: int, put: Callable[[bytes], Any], short: int, most: int, codes: tuple[int | None, int, int]) -> None:
    if size <= most:
        put(bytes((short | size,)))
    elif codes[0] is not None and size < 1 << 8:
        put(bytes((codes[0], size)))
    elif size < 1 << 16:
        put(struct.pack(">BH", codes[1], size))
    else:
        put(struct.pack(">BI", codes[2], size))


def _pack(value: Any, default: Callable[[Any], Any], put: Callable[[bytes], Any]) -> None:
    kind = type(value)
    if value is None:
        put(b"\xc0")
    elif kind is bool:
        put(b"\xc3" if value else b"\xc2")
    elif kind is int:
        _pack_integer(value, put)
    elif kind is float:
        put(b"\xcb" + _FLOAT.pack(value))
    elif kind is str:
        text = value.encode("utf-8")
        _head(len(text), put, 0xA0, 31, (0xD9, 0xDA, 0xDB))
        put(text)
    elif kind in (bytes, bytearray, memoryview):
        raw = bytes(value)
        _head(len(raw), put, 0, -1, (0xC4, 0xC5, 0xC6))
        put(raw)
    elif kind is dict:
        _head(len(value), put, 0x80, 15, (None, 0xDE, 0xDF))
        for key, item in value.items():
            _pack(key, default, put)
            _pack(item, default, put)
    elif kind in (list, tuple):
        _head(len(value), put, 0x90, 15, (None, 0xDC, 0xDD))
        for item in value:
            _pack(item, default, put)
    else:
        bases: tuple[Any, ...] = (int, float, str, bytes, dict, list, tuple)
        for base in bases:
            if isinstance(value, base):
                _pack(base(value), default, put)
                return
        _pack(default(value), default, put)


def _pack_integer(value: int, put: Callable[[bytes], Any]) -> None:
    if 0 <= value < 128:
        put(bytes((value,)))
    elif -32 <= value < 0:
        put(bytes((value & 0xFF,)))
    else:
        for code, form, low, high in _INTEGERS:
            if low <= value <= high:
                put(struct.pack(">B" + form, code, value))
                return
        raise OverflowError(f"{value} does not fit into 64 bits")


_INTEGERS = (
    (0xCC, "B", 0, 2**8 - 1),
    (0xCD, "H", 0, 2**16 - 1),
    (0xCE, "I", 0, 2**32 - 1),
    (0xCF, "Q", 0, 2**64 - 1),
    (0xD0, "b", -(2**7), -1),
    (0xD1, "h", -(2**15), -1),
    (0xD2, "i", -(2**31), -1),
    (0xD3, "q", -(2**63), -1),
)
_NUMBERS = {code: struct.Struct(">" + form) for code, form, _, _ in _INTEGERS}
_NUMBERS |= {0xCA: struct.Struct(">f"), 0xCB: _FLOAT}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_SIZES = {1: struct.Struct(">B"), 2: struct.Struct(">H"), 4: struct.Struct(">I")}
# The first byte of a long form: what it is, and in how many bytes its size follows.
_LONG = {
    0xC4: ("bytes", 1), 0xC5: ("bytes", 2), 0xC6: ("bytes", 4),
    0xD9: ("text", 1), 0xDA: ("text", 2), 0xDB: ("text", 4),
    0xDC: ("list", 2), 0xDD: ("list", 4),
    0xDE: ("map", 2), 0xDF: ("map", 4),
}  # fmt: skip
_MOST_LEVELS = 128


def unpack(data: bytes, made_of_map: Callable[[dict[Any, Any]], Any]) -> Any:
    """The value that the bytes hold; every map goes through `made_of_map`. Raises ValueError where they hold none."""
    try:
        value, end = _unpack(memoryview(data), 0, made_of_map, 0)
    except (struct.error, IndexError) as error:
        raise ValueError("the bytes end within a value") from error
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow the value")
    return value


def _unpack(data: memoryview, at: int, made_of_map: Callable[[dict[Any, Any]], Any], level: int) -> tuple[Any, int]:
    if level > _MOST_LEVELS:
        raise ValueError(f"more than {_MOST_LEVELS} values within each other")
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 256, at
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    if first in _NUMBERS:
        number = _NUMBERS[first]
        return number.unpack_from(data, at)[0], at + number.size
    if first < 0x90:
        kind, size = "map", first & 15
    elif first < 0xA0:
        kind, size = "list", first & 15
    elif first < 0xC0:
        kind, size = "text", first & 31
    elif first in _LONG:
        kind, width = _LONG[first]
        size = _SIZES[width].unpack_from(data, at)[0]
        at += width
    else:
        raise ValueError(f"byte {first:#04x} begins no value that messages hold")
    if kind in ("text", "bytes"):
        if at + size > len(data):
            raise ValueError("the bytes end within a value")
        raw = bytes(data[at : at + size])
        return (raw.decode("utf-8") if kind == "text" else raw), at + size
    if kind == "list":
        items = []
        for _ in range(size):
            item, at = _unpack(data, at, made_of_map, level + 1)
            items.append(item)
        return items, at
    pairs = {}
    for _ in range(size):
        key, at = _unpack(data, at, made_of_map, level + 1)
        if not isinstance(key, (str, bytes, int, float)):
            raise ValueError(f"a map has a {type(key).__name__} as key")
        pairs[key], at = _unpack(data, at, made_of_map, level + 1)
    return made_of_map(pairs), at
