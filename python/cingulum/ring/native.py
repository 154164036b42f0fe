"""Actors that run outside of Python: on threads of the library, or on a GPU.

A `Runtime` has actors by name. Their bodies are the library's (`bodies`), or, on a GPU, CUDA C++ from text. Messages
are plain structs of at most 48 bytes; `MessageType` says how they lie in memory.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import struct
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _native
from .._errors import ClosedError, InvalidStateError, make_error, refused

__all__ = ["Actor", "MessageType", "Runtime", "bodies"]

_MOST_BYTES = 48
_RECORDS = (np.void, np.ndarray, tuple)
# Answers that come without a wait do not give others a turn: after this time one is given.
_TURN_AFTER = 1e-3


def bodies() -> list[str]:
    """Names of the library's bodies.

    ``echo`` answers what it gets, ``batch_echo`` does so for streams; ``sum`` and ``sum_of_squares`` take an array of
    float64 and answer with one number. The others are those of ``cingulum ring run``.
    """
    return _native.ring_bodies()  # type: ignore[no-any-return]


class MessageType:
    """How a message lies in memory.

    Parameters
    ----------
    name : str
        By which actors tell messages apart: ``message_name`` of the struct in C++.
    dtype : dtype
        Of a structured array, at most 48 bytes; laid out as C++ does it where ``align=True`` was given, else packed.
    """

    def __init__(self, name: str, dtype: DTypeLike) -> None:
        self.name = name
        self.dtype = np.dtype(dtype)
        if self.dtype.itemsize > _MOST_BYTES:
            raise refused("dtype", f"a message of {self.dtype.itemsize} bytes: at most {_MOST_BYTES} fit into one")
        if self.dtype.hasobject:
            raise refused("dtype", "objects of Python cannot be sent")
        self.number = int(_native.message_type(name))
        self._fields = self.dtype.names or ()
        self._bytes = self.dtype.itemsize
        self._struct = _struct_of(self.dtype)
        self._made: Any = namedtuple(name, self._fields) if len(self._fields) > 1 else None  # noqa: PYI024

    def pack(self, *values: Any) -> bytes:
        """A message as bytes: its values in order, or one record."""
        if len(values) == 1 and isinstance(values[0], _RECORDS):
            return np.asarray(values[0], self.dtype).tobytes()
        if self._struct is not None:
            return self._struct.pack(*values)
        return np.asarray(tuple(values) if self._fields else values[0], self.dtype).tobytes()

    def unpack(self, payload: bytes) -> Any:
        """The value of a message with one field; of several a named tuple."""
        if len(payload) != self._bytes:
            raise refused("answer", f"the actor answers with {len(payload)} bytes, '{self.name}' has {self._bytes}")
        if self._struct is None:
            return np.frombuffer(payload, self.dtype)[0]
        values = self._struct.unpack(payload)
        return values[0] if self._made is None else self._made(*values)

    def __repr__(self) -> str:
        return f"<MessageType: '{self.name}', {self.dtype.itemsize} bytes>"


def _struct_of(dtype: np.dtype[Any]) -> struct.Struct | None:
    """The same layout for the module struct, which is faster for single messages; None where it cannot say it."""
    fields = [(dtype, 0)] if dtype.names is None else [dtype.fields[name][:2] for name in dtype.names]  # type: ignore[index]
    text = "="
    at = 0
    for kind, offset in fields:
        if kind.shape or kind.names or kind.char not in "?bBhHiIlLqQefd" or not kind.isnative:
            return None
        text += "x" * (offset - at) + ("q" if kind.char == "l" else "Q" if kind.char == "L" else kind.char)
        at = offset + kind.itemsize
    made = struct.Struct(text + "x" * (dtype.itemsize - at))
    return made if made.size == dtype.itemsize else None


_PING = ("Ping", "f8")
# Messages of the library's bodies: what they take (None: an array) and what they answer.
_MESSAGES: dict[str, tuple[tuple[str, str] | None, tuple[str, str]]] = {
    "echo": (_PING, _PING),
    "batch_echo": (_PING, _PING),
    "sum": (None, ("SumReply", "f8")),
    "sum_of_squares": (None, ("SumReply", "f8")),
}


def _limit(timeout: float | None) -> float:
    return -1.0 if timeout is None else max(0.0, timeout)


class Actor:
    """An actor of a `Runtime`; made by `Runtime.launch`."""

    def __init__(self, runtime: Runtime, name: str, native: Any, takes: MessageType | None, answers: MessageType) -> None:
        self._runtime = runtime
        self._native = native
        self.name = name
        self.takes = takes
        self.answers = answers
        self._pack = None if takes is None else takes.pack
        self._type = 0 if takes is None else takes.number

    @property
    def state(self) -> str:
        """CREATED, LAUNCHED, ACTIVE, DEACTIVATED, TERMINATING, TERMINATED or FAILED."""
        return self._native.state()  # type: ignore[no-any-return]

    @property
    def failure(self) -> str | None:
        """Why it failed, or None."""
        return self._native.failure() or None

    def request(self, *values: Any, timeout: float | None = None) -> Any:
        """Sends a message and waits for its answer; TimedOutError where none comes in `timeout` seconds.

        Parameters
        ----------
        *values
            The message, field by field or as one record; for bodies that take an array, the array.
        timeout : float, optional
            Seconds; without it as long as it takes.

        Returns
        -------
        object
            The value of a message with one field; of several a named tuple.
        """
        limit = -1.0 if timeout is None else timeout if timeout > 0.0 else 0.0
        if self._pack is None:
            return self.answers.unpack(self._native.request_buffer(np.ascontiguousarray(values[0], np.float64), limit))
        return self.answers.unpack(self._native.request(self._type, self._pack(*values), limit))

    async def ask(self, *values: Any, timeout: float | None = None) -> Any:
        """As `request`, awaited: the event loop goes on while the actor works."""
        if self._pack is None:
            raise InvalidStateError(f"actor '{self.name}' takes arrays: request() sends them")
        waiting = self._runtime._waiting_of_loop()
        number = next(waiting.numbers)
        limit = -1.0 if timeout is None else timeout if timeout > 0.0 else 0.0
        payload = self._native.ask(self._type, self._pack(*values), limit, number)
        if payload is None:
            payload = await waiting.answer(number)
        else:
            now = waiting.loop.time()
            if now - waiting.last_turn > _TURN_AFTER:
                waiting.last_turn = now
                await asyncio.sleep(0)
        return self.answers.unpack(payload)

    def exchange(self, messages: ArrayLike, timeout: float | None = 10.0) -> NDArray[Any]:
        """Sends many messages and gives their answers, in order; the actor answers each of them once.

        Parameters
        ----------
        messages : array
            Of the type that the actor takes.
        timeout : float, optional
            Seconds of silence after which TimedOutError is raised.

        Returns
        -------
        array
            Of the type that it answers with.
        """
        if self.takes is None:
            raise InvalidStateError(f"actor '{self.name}' takes arrays: request() sends them")
        sent = np.ascontiguousarray(messages, self.takes.dtype)
        answers = np.empty(sent.shape, self.answers.dtype)
        if sent.size:
            self._native.exchange(self._type, _as_rows(sent), _as_rows(answers), _limit(timeout))
        return answers

    def send(self, *values: Any, timeout: float | None = None) -> None:
        """Sends a message whose answer goes to `receive`, or to the next actor of a pipeline."""
        if self._pack is None:
            raise InvalidStateError(f"actor '{self.name}' takes arrays: request() sends them")
        self._native.send(self._type, self._pack(*values), _limit(timeout))

    def receive(self, timeout: float | None = None) -> Any:
        """The next message that it sent and nobody asked for; TimedOutError where none comes in time."""
        return self.answers.unpack(self._native.receive(_limit(timeout)))

    def deactivate(self) -> None:
        """Holds messages back; they are kept until `reactivate`."""
        self._native.operate("deactivate")

    def reactivate(self) -> None:
        """Gives messages out again."""
        self._native.operate("reactivate")

    def terminate(self, *, drain: bool = True, timeout: float = 5.0) -> dict[str, int]:
        """Ends it. With `drain` it gets what is queued; ``{"drained", "dropped"}`` counts messages."""
        drained, dropped = self._native.terminate(drain, timeout)
        self._runtime._actors.pop(self.name, None)
        return {"drained": drained, "dropped": dropped}

    def telemetry(self) -> dict[str, Any]:
        """Its counts: received, sent, waiting, failures, busy_share, messages_per_s, ..."""
        return json.loads(self._native.telemetry())  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        raise TypeError("an actor lives in this process and cannot be pickled")

    def __repr__(self) -> str:
        return f"<Actor: '{self.name}', {self.state}>"


def _as_rows(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8).reshape(array.size, array.dtype.itemsize)


class _LoopAnswers:
    """The answers that one event loop waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, native: Any) -> None:
        self.loop = loop
        self.native = native
        self.numbers = itertools.count(1)
        self.futures: dict[int, asyncio.Future[bytes]] = {}
        self.last_turn = loop.time()
        self.descriptor = native.answers_descriptor()
        loop.add_reader(self.descriptor, self._read)

    async def answer(self, number: int) -> bytes:
        future: asyncio.Future[bytes] = self.loop.create_future()
        self.futures[number] = future
        try:
            return await future
        except asyncio.CancelledError:
            self.native.drop(number)
            raise
        finally:
            self.futures.pop(number, None)
            self.last_turn = self.loop.time()

    def _read(self) -> None:
        for number, payload, kind, message in self.native.take_answers():
            future = self.futures.get(number)
            if future is None or future.done():
                continue
            if payload is None:
                future.set_exception(make_error(kind, message, "", ""))
            else:
                future.set_result(payload)

    def close(self) -> None:
        """Those who still wait get ClosedError."""
        if self.loop.is_closed():
            return
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if here:
            self._end()
        else:
            self.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.loop.remove_reader(self.descriptor)
        for future in self.futures.values():
            if not future.done():
                future.set_exception(ClosedError("the runtime of the actor was shut down"))


class Runtime:
    """Actors by name, outside of Python. ``with`` shuts it down.

    Parameters
    ----------
    device : str
        ``"cpu"``: each actor is a thread of the library. ``"cuda"`` or ``"cuda:N"``: each is a block of a kernel that
        stays on the GPU.
    source : str, optional
        CUDA C++ with the bodies of `bodies`, compiled by NVRTC when the runtime is made; needs a GPU of CUDA.
    bodies : mapping, optional
        Of `source`: by which name each is launched, and its type in C++.
    seats, lanes : int
        Of a GPU: actors at a time, and threads of each.

    Examples
    --------
    >>> from cingulum.ring.native import Runtime
    >>> with Runtime() as runtime:
    ...     echo = runtime.launch("echo")
    ...     echo.request(1.5, timeout=5)
    1.5
    """

    def __init__(
        self,
        device: str = "cpu",
        *,
        source: str | None = None,
        bodies: Mapping[str, str] | None = None,
        seats: int = 8,
        lanes: int = 128,
    ) -> None:
        if (source is None) != (bodies is None):
            raise refused("bodies" if bodies is None else "source", "source and bodies are given together")
        if source is not None and device == "cpu":
            device = "cuda"
        self.device = device
        self._native: Any = _native.NativeRuntime(device, source or "", list((bodies or {}).items()), seats, lanes)
        self._from_text = source is not None
        self._actors: dict[str, Actor] = {}
        self._loops: dict[asyncio.AbstractEventLoop, _LoopAnswers] = {}

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()

    def launch(
        self,
        name: str,
        body: str | None = None,
        *,
        takes: MessageType | None = None,
        answers: MessageType | None = None,
        members: Any = None,
        stream: bool = False,
        inbox: int = 4096,
        outbox: int = 4096,
    ) -> Actor:
        """Launches and activates an actor.

        Parameters
        ----------
        name : str
            Its name.
        body : str, optional
            One of `bodies`, or of the text; the actor's name unless given.
        takes, answers : MessageType, optional
            Its messages; known for the library's bodies.
        members : record, optional
            Of a body from text: the members of its struct, as a record of NumPy or as bytes.
        stream : bool
            On a GPU: rings for many messages instead of for answers in microseconds.
        inbox, outbox : int
            Messages for which there is room; powers of two.

        Returns
        -------
        Actor
        """
        body = body or name
        known = None if self._from_text else _MESSAGES.get(body)
        if known is not None:
            takes = takes or (None if known[0] is None else MessageType(*known[0]))
            # An echo answers what it gets.
            answers = answers or (takes if takes is not None and known[0] == known[1] else MessageType(*known[1]))
        elif takes is None or answers is None:
            if not self._from_text and body not in bodies():
                raise refused("body", f"'{body}': known are {', '.join(bodies())}")
            raise refused("takes", f"the messages of '{body}' are not known: give takes and answers")
        raw = members if isinstance(members, bytes) else b"" if members is None else np.asarray(members).tobytes()
        # A struct without members has one byte.
        native = self._native.launch(name, body, raw or b"\0", stream, inbox, outbox)
        actor = Actor(self, name, native, takes, answers)
        self._actors[name] = actor
        return actor

    def __getitem__(self, name: str) -> Actor:
        return self._actors[name]

    @property
    def names(self) -> list[str]:
        """Names of its actors."""
        return self._native.names()  # type: ignore[no-any-return]

    def pipeline(self, names: Sequence[str]) -> None:
        """What each of these sends goes to the next; the last one's is read by `receive`, or answers a request."""
        self._native.pipeline(list(names))

    def shutdown(self, timeout: float = 5.0) -> None:
        """Ends all actors; what is queued is dropped. A second call does nothing."""
        for answers in self._loops.values():
            answers.close()
        self._loops.clear()
        self._native.shutdown(timeout)
        self._actors.clear()

    def _waiting_of_loop(self) -> _LoopAnswers:
        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            if any(not other.is_closed() for other in self._loops):
                raise InvalidStateError("one event loop at a time asks the actors of a runtime")
            self._loops.clear()
            found = self._loops[loop] = _LoopAnswers(loop, self._native)
        return found

    def __reduce__(self) -> Any:
        raise TypeError("a runtime lives in this process and cannot be pickled")

    def __repr__(self) -> str:
        return f"<Runtime: {self.device}, {len(self.names)} actors>"

    def _repr_html_(self) -> str:
        from .._pictures import table

        seen = [actor.telemetry() for actor in self._actors.values()]
        keys = ["name", "state", "received", "sent", "waiting", "failures"]
        return table(["actor", *keys[1:]], [[str(one[key]) for key in keys] for one in seen])
