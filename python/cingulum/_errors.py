"""Failures of the library as Python exceptions.

Every kind of failure has a class that is also the class of Python that fits it, so that ``except ValueError`` and
``except cingulum.InvalidArgumentError`` both catch a refused argument.
"""

from __future__ import annotations

import queue
from typing import Any


class CingulumError(Exception):
    """A failure of Cingulum.

    Attributes
    ----------
    kind : str
        What went wrong, for programs: ``"invalid_argument"``, ``"not_found"``, ``"corrupt"``, ...
    argument : str or None
        The argument that was refused, where it was one.
    file : str or None
        The file at fault, where it was one.
    result : object
        What was found until then, where a function had something to say (`verify`); None otherwise.
    """

    kind: str = "unknown"

    def __init__(self, message: str, *, argument: str | None = None, file: str | None = None, result: Any = None):
        super().__init__(message)
        self.argument = argument
        self.file = file
        self.result = result

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), str(self), self.argument, self.file, self.result))


def _rebuild(cls: type[CingulumError], message: str, argument: str | None, file: str | None, result: Any) -> CingulumError:
    return cls(message, argument=argument, file=file, result=result)


class InvalidArgumentError(CingulumError, ValueError):
    """A value is outside of what is accepted."""

    kind = "invalid_argument"


class InvalidStateError(CingulumError, RuntimeError):
    """The operation is not allowed now."""

    kind = "invalid_state"


class NotFoundError(CingulumError, FileNotFoundError):
    """A file, or what it should hold, is not there."""

    kind = "not_found"


class AlreadyExistsError(CingulumError, FileExistsError):
    """A file is there and would be replaced; give ``force=True``."""

    kind = "already_exists"


class FileError(CingulumError, OSError):
    """A file could not be read or written."""

    kind = "io"


class CorruptError(CingulumError, ValueError):
    """A file is damaged, or not what it says it is."""

    kind = "corrupt"


class OutOfMemoryError(CingulumError, MemoryError):
    """Memory of the host or of a device does not suffice."""

    kind = "out_of_memory"


class UnavailableError(CingulumError, RuntimeError):
    """A device, library or capability is not there."""

    kind = "unavailable"


class DeviceError(CingulumError, RuntimeError):
    """A device or its driver reported a failure."""

    kind = "device"


class CompilationError(CingulumError, RuntimeError):
    """A kernel does not compile."""

    kind = "compilation"


class CancelledError(CingulumError, InterruptedError):
    """The run was cancelled. Ctrl-C is KeyboardInterrupt."""

    kind = "interrupted"


class TimedOutError(CingulumError, TimeoutError):
    """What was waited for did not come in time."""

    kind = "timed_out"


class FullError(CingulumError, queue.Full):
    """A bounded queue or table has no room."""

    kind = "full"


class ClosedError(CingulumError, BrokenPipeError):
    """The queue or peer has ended; nothing will come any more."""

    kind = "closed"


_CLASSES: dict[str, type[CingulumError]] = {
    cls.kind: cls
    for cls in (
        InvalidArgumentError,
        InvalidStateError,
        NotFoundError,
        AlreadyExistsError,
        FileError,
        CorruptError,
        OutOfMemoryError,
        UnavailableError,
        DeviceError,
        CompilationError,
        CancelledError,
        TimedOutError,
        FullError,
        ClosedError,
    )
}


def make_error(kind: str, message: str, argument: str, file: str, result: Any = None) -> CingulumError:
    """The exception of a failure of the library, its arguments named as in Python."""
    from ._talk import plain_names

    spelled = "io" if kind == "input or output" else kind.replace(" ", "_")
    cls = _CLASSES.get(spelled, CingulumError)
    # A file that is missing where an argument names it is a refused argument to the program, and a missing file here.
    if spelled == "invalid_argument" and "no such file" in message:
        cls = NotFoundError
    return cls(plain_names(message), argument=argument or None, file=file or None, result=result)


def refused(argument: str, message: str) -> InvalidArgumentError:
    """An argument that the package itself refuses."""
    return InvalidArgumentError(f"{argument}: {message}", argument=argument)
