"""Messages whose arrays stay in this process: their bytes name the arrays, and reading them gives the same objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, overload
from uuid import UUID

from ..exceptions import MessageDeserializationError, MessageSerializationError
from . import _msgpack
from .buffer_registry import get_buffer_registry
from .message import RingKernelMessage, _build, _fields_of, _read_map, _to_wire, message

T = TypeVar("T")


def _is_array(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("shape", "dtype", "nbytes", "__getitem__"))


def _serialize(self: Any) -> bytes:
    """The message as msgpack, with the names of its arrays; they are kept until `release_arrays`."""
    cls = type(self)
    registry = get_buffer_registry()
    held: dict[str, UUID] = self.__dict__.setdefault("_array_buffer_ids", {})
    pairs: dict[str, Any] = {}
    references = {}
    for name in _fields_of(cls):
        value = getattr(self, name)
        if not _is_array(value) or getattr(value, "shape", None) is None:
            pairs[name] = value
            continue
        identity = held.get(name)
        if identity is None or registry.get(identity) is not value:
            if identity is not None:
                registry.decrement_ref(identity)
            identity = held[name] = registry.register(value).buffer_id
        handle = registry.get_handle(identity)
        references[name] = identity.hex
        pairs[name] = {
            "__array_ref__": identity.hex,
            "shape": list(value.shape),
            "dtype": str(value.dtype),
            "device": "cpu" if handle is None else handle.device,
        }
    pairs |= {"__array_refs__": references, "__array_msg__": True, "__type__": cls.__name__}
    try:
        return _msgpack.pack(pairs, _to_wire)
    except Exception as error:
        raise MessageSerializationError(cls, error) from error


def _of_pairs(cls: type[T], pairs: dict[str, Any]) -> T:
    for name, value in pairs.items():
        if not isinstance(value, dict) or "__array_ref__" not in value:
            continue
        array = get_buffer_registry().get(UUID(value["__array_ref__"]))
        if array is None:
            raise ValueError(f"the array of '{name}' was released")
        pairs[name] = array
    return _build(cls, pairs)


def _deserialize(cls: type[T], data: bytes) -> T:
    """The message of `serialize`, with the same arrays. An array that was released meanwhile is an error."""
    pairs = _read_map(cls, data)
    try:
        return _of_pairs(cls, pairs)
    except Exception as error:
        raise MessageDeserializationError(cls, error) from error


def _release_arrays(self: Any) -> int:
    """Lets go of the arrays that `serialize` kept, and says how many they were."""
    held: dict[str, UUID] = self.__dict__.get("_array_buffer_ids", {})
    released = sum(get_buffer_registry().release(identity) for identity in held.values())
    held.clear()
    return released


@dataclasses.dataclass
class ArrayMessage(RingKernelMessage):
    """A message whose arrays are named in its bytes, not copied into them."""

    _array_buffer_ids: dict[str, UUID] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def serialize(self) -> bytes:
        """The message as msgpack, with the names of its arrays; they are kept until `release_arrays`."""
        return _serialize(self)

    @classmethod
    def deserialize(cls: type[T], data: bytes) -> T:
        """The message of `serialize`, with the same arrays. An array that was released meanwhile is an error."""
        return _deserialize(cls, data)

    @classmethod
    def _of_pairs(cls: type[T], pairs: dict[str, Any]) -> T:
        return _of_pairs(cls, pairs)

    def release_arrays(self) -> int:
        """Lets go of the arrays that `serialize` kept, and says how many they were."""
        return _release_arrays(self)


@overload
def array_message(cls: type[T]) -> type[T]: ...
@overload
def array_message(cls: None = None) -> Callable[[type[T]], type[T]]: ...
def array_message(cls: type[T] | None = None) -> Any:
    """As `message`, for a class whose arrays are named in its bytes, not copied into them."""

    def made(target: type[T]) -> type[T]:
        done: Any = message(target)
        done.serialize = _serialize
        done.deserialize = classmethod(_deserialize)
        done._of_pairs = classmethod(_of_pairs)
        done.release_arrays = _release_arrays
        return done  # type: ignore[no-any-return]

    return made if cls is None else made(cls)


