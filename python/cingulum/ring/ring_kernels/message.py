"""Messages: dataclasses with an identity, a priority and a correlation, which can become bytes.

An actor takes any object as a message; these add what travels between processes (`serialize`) and what makes answers
findable (`reply`).
"""

from __future__ import annotations

import dataclasses
import os
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast, dataclass_transform, overload
from uuid import UUID

from ..exceptions import MessageDeserializationError, MessageSerializationError
from . import _msgpack

T = TypeVar("T")

_PRIORITIES = range(256)
_IDENTITIES = ("message_id", "correlation_id")
# The last registration of a name wins.
_types: dict[str, type] = {}

_no_words: Iterator[tuple[int, int]] = iter(())
_words = _no_words


def _new_id() -> UUID:
    """A random UUID of version 4. Bits are drawn for many at a time, since asking the system for each costs a
    microsecond; the identities are made one by one, so that no message waits for those of others."""
    global _words
    words = next(_words, None)
    if words is None:
        _words = struct.iter_unpack("=QQ", os.urandom(16 * 64))
        words = next(_words)
    high, low = words
    return UUID(int=(high & 0xFFFF_FFFF_FFFF_0FFF | 0x4000) << 64 | low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)


def _forget_words() -> None:
    """A forked process draws for itself: identities of two processes must differ."""
    global _words
    _words = _no_words


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_words)


def _check_priority(priority: int) -> None:
    if priority not in _PRIORITIES:
        raise ValueError(f"priority: {priority!r} is not between 0 and 255")


def _to_wire(value: Any) -> Any:
    """The form of what msgpack has none for: identities, arrays, numbers of NumPy."""
    if isinstance(value, UUID):
        return {"__uuid_bin__": value.bytes}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray):
            if value.dtype.hasobject:
                raise TypeError(f"an array of {value.dtype} has no form in bytes")
            return {"__ndarray__": value.tobytes(), "dtype": str(value.dtype), "shape": list(value.shape)}
        if isinstance(value, numpy.generic):
            return value.item()
    raise TypeError(f"a {type(value).__name__} has no form in bytes")


def _from_wire(pairs: dict[Any, Any]) -> Any:
    """What a map stands for."""
    if "__uuid_bin__" in pairs:
        return UUID(bytes=pairs["__uuid_bin__"])
    if "__uuid__" in pairs:
        return UUID(pairs["__uuid__"])
    if "__ndarray__" in pairs:
        import numpy as np

        return np.frombuffer(pairs["__ndarray__"], dtype=pairs["dtype"]).reshape(pairs["shape"]).copy()
    return pairs


def _fields_of(cls: type) -> tuple[str, ...]:
    """Names of the fields of this class itself, never those that a base class kept for itself."""
    kept: tuple[str, ...] | None = cls.__dict__.get("_wire_fields_")
    if kept is None:
        kept = tuple(field.name for field in dataclasses.fields(cls) if not field.name.startswith("_"))
        cls._wire_fields_ = kept  # type: ignore[attr-defined]
    return kept


def _as_identity(value: Any) -> Any:
    """An identity that was written as text or as 16 bytes."""
    if isinstance(value, str):
        return UUID(value)
    if isinstance(value, bytes):
        return UUID(bytes=value)
    return value


def _build(cls: type[T], pairs: dict[str, Any]) -> T:
    names = _fields_of(cls)
    given = {name: pairs[name] for name in names if name in pairs}
    for name in _IDENTITIES:
        if name in given:
            given[name] = _as_identity(given[name])
    return cls(**given)


def _read_map(cls: type, data: bytes) -> dict[str, Any]:
    try:
        pairs = _msgpack.unpack(data, _from_wire)
        if not isinstance(pairs, dict):
            raise ValueError(f"the bytes hold a {type(pairs).__name__}, no map")
        return pairs
    except Exception as error:
        raise MessageDeserializationError(cls, error) from error


def _serialize(self: Any) -> bytes:
    """The message as msgpack: its fields in order, then the name of its class."""
    cls = type(self)
    pairs = {name: getattr(self, name) for name in _fields_of(cls)}
    pairs["__type__"] = cls.__name__
    try:
        return _msgpack.pack(pairs, _to_wire)
    except Exception as error:
        raise MessageSerializationError(cls, error) from error


def _deserialize(cls: type[T], data: bytes) -> T:
    """The message of `serialize`. Unknown fields are left out, missing ones take their defaults."""
    pairs = _read_map(cls, data)
    try:
        return _build(cls, pairs)
    except Exception as error:
        raise MessageDeserializationError(cls, error) from error


def _with_correlation(self: Any, correlation_id: UUID) -> Any:
    """A copy that answers to `correlation_id`; its own identity stays."""
    return dataclasses.replace(self, correlation_id=correlation_id)


def _reply(self: Any, **kwargs: Any) -> Any:
    """A new message that answers this one; `response_class` says of which class, and the rest are its fields."""
    response_class = kwargs.pop("response_class", type(self))
    kwargs.setdefault("correlation_id", self.message_id)
    return response_class(**kwargs)


@dataclasses.dataclass
class RingKernelMessage:
    """A message with an identity.

    Attributes
    ----------
    message_id : uuid.UUID
        Random, unless given.
    priority : int
        0 to 255; a higher one is more urgent.
    correlation_id : uuid.UUID or None
        The message that this one answers.
    """

    message_id: UUID = dataclasses.field(default_factory=_new_id)
    priority: int = 128
    correlation_id: UUID | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _types.setdefault(cls.__name__, cls)

    def __post_init__(self) -> None:
        _check_priority(self.priority)

    def serialize(self) -> bytes:
        """The message as msgpack: its fields in order, then the name of its class."""
        return _serialize(self)

    @classmethod
    def deserialize(cls: type[T], data: bytes) -> T:
        """The message of `serialize`. Unknown fields are left out, missing ones take their defaults."""
        return _deserialize(cls, data)

    def with_correlation(self, correlation_id: UUID) -> RingKernelMessage:
        """A copy that answers to `correlation_id`; its own identity stays."""
        return cast(RingKernelMessage, _with_correlation(self, correlation_id))

    def reply(self: T, **kwargs: Any) -> T:
        """A new message that answers this one; `response_class` says of which class, the rest are its fields."""
        return cast(T, _reply(self, **kwargs))


def _complete(cls: type, base_fields: tuple[tuple[str, Any, Any], ...]) -> type:
    """The class as a dataclass that has the fields of every message behind its own, and their methods."""
    names = {name for parent in cls.__mro__ for name in parent.__dict__.get("__annotations__", {})}
    if any(name not in names for name, _, _ in base_fields):
        annotations = dict(cls.__dict__.get("__annotations__", {}))
        for name, kind, default in base_fields:
            if name not in names:
                annotations[name] = kind
                setattr(cls, name, default)
        cls.__annotations__ = annotations
        cls = _remade(cls)
    elif "__dataclass_fields__" not in cls.__dict__:
        cls = _remade(cls)
    for name, function in (("serialize", _serialize), ("with_correlation", _with_correlation), ("reply", _reply)):
        if not hasattr(cls, name):
            setattr(cls, name, function)
    if not hasattr(cls, "deserialize"):
        cls.deserialize = classmethod(_deserialize)  # type: ignore[attr-defined]
    return cls


def _remade(cls: type) -> type:
    """The class as a dataclass whose priority is checked."""
    own = cls.__dict__.get("__post_init__")
    inherited = getattr(cls, "__post_init__", None)

    def post_init(self: Any) -> None:
        _check_priority(self.priority)
        if own is not None:
            own(self)
        elif inherited is not None:
            inherited(self)

    cls.__post_init__ = post_init  # type: ignore[attr-defined]
    # A dataclass already: its own methods are made anew, for the fields that joined.
    if "__dataclass_fields__" in cls.__dict__:
        for name in ("__init__", "__repr__", "__eq__", "__match_args__"):
            if name in cls.__dict__:
                delattr(cls, name)
        for name, field in list(cls.__dict__["__dataclass_fields__"].items()):
            if field.default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
                setattr(cls, name, dataclasses.field(default_factory=field.default_factory))
    return dataclasses.dataclass(cls)


@overload
@dataclass_transform(field_specifiers=(dataclasses.field,))
def message(cls: type[T]) -> type[T]: ...
@overload
def message(cls: None = None) -> Callable[[type[T]], type[T]]: ...
def message(cls: type[T] | None = None) -> Any:
    """Makes a class a message: a dataclass with `message_id`, `priority` and `correlation_id` behind its own fields.

    With and without parentheses. The class is found by its name afterwards (`get_message_type`); the last one of a name
    wins.
    """

    def made(target: type[T]) -> type[T]:
        fields = (
            ("message_id", UUID, dataclasses.field(default_factory=_new_id)),
            ("priority", int, 128),
            ("correlation_id", UUID | None, None),
        )
        done = _complete(target, fields)
        _types[done.__name__] = done
        return done

    return made if cls is None else made(cls)


def get_message_type(name: str) -> type[RingKernelMessage] | None:
    """The message class of this name, or None."""
    return _types.get(name)


def deserialize_message(data: bytes) -> RingKernelMessage:
    """A message of whatever class its bytes name; of an unknown one what every message has."""
    pairs = _read_map(RingKernelMessage, data)
    cls = _types.get(str(pairs.get("__type__")), RingKernelMessage)
    try:
        deserialize = getattr(cls, "_of_pairs", None)
        return cast(RingKernelMessage, deserialize(pairs) if deserialize is not None else _build(cls, pairs))
    except Exception as error:
        raise MessageDeserializationError(cls, error) from error
