"""Errors of the ring kernels. What a constructor is given can be read from the error under the same name."""

from __future__ import annotations

from typing import Any

from .._errors import CingulumError


class PyDotComputeError(CingulumError):
    """The root of these errors; also a `CingulumError`."""

    def __init__(self, message: str = "", *, given: tuple[Any, ...] | None = None) -> None:
        super().__init__(message)
        self._given = (message,) if given is None else given

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), self._given)


class KernelError(PyDotComputeError):
    """An actor is not there, not in the right state, or has failed."""

    kind = "invalid_state"


class KernelNotFoundError(KernelError):
    """There is no actor of this name."""

    kind = "not_found"

    def __init__(self, kernel_id: str, available: list[str] | None = None) -> None:
        names = f"; there are {', '.join(available)}" if available else ""
        super().__init__(f"no actor is called '{kernel_id}'{names}", given=(kernel_id, available))
        self.kernel_id = kernel_id
        self.available = available or []


class KernelStateError(KernelError):
    """The operation is not allowed in the state of the actor."""

    def __init__(self, kernel_id: str, current_state: str, operation: str) -> None:
        super().__init__(
            f"actor '{kernel_id}': {operation} is not allowed in state {current_state}",
            given=(kernel_id, current_state, operation),
        )
        self.kernel_id = kernel_id
        self.current_state = current_state
        self.operation = operation


class KernelAlreadyExistsError(KernelError):
    """An actor of this name is there."""

    kind = "already_exists"

    def __init__(self, kernel_id: str) -> None:
        super().__init__(f"an actor is called '{kernel_id}' already", given=(kernel_id,))
        self.kernel_id = kernel_id


class KernelFailedError(KernelError):
    """The body of the actor raised; `cause` is what it raised."""

    kind = "closed"

    def __init__(self, kernel_id: str, cause: BaseException) -> None:
        super().__init__(f"actor '{kernel_id}' has failed: {type(cause).__name__}: {cause}", given=(kernel_id, cause))
        self.kernel_id = kernel_id
        self.cause = cause
        self.__cause__ = cause


class MessageError(PyDotComputeError):
    """A message cannot become bytes, or bytes no message."""

    kind = "invalid_argument"


class MessageSerializationError(MessageError):
    """A message holds what has no form in bytes."""

    def __init__(self, message_type: type, cause: Exception) -> None:
        super().__init__(f"writing a {message_type.__name__} as bytes: {cause}", given=(message_type, cause))
        self.message_type = message_type
        self.cause = cause


class MessageDeserializationError(MessageError):
    """The bytes are not those of a message."""

    kind = "corrupt"

    def __init__(self, message_type: type, cause: Exception) -> None:
        super().__init__(f"reading a {message_type.__name__} from bytes: {cause}", given=(message_type, cause))
        self.message_type = message_type
        self.cause = cause


class QueueError(PyDotComputeError):
    """A queue is full, or nothing came."""

    kind = "full"


class QueueFullError(QueueError):
    """There is no room, or there was none in time."""

    def __init__(self, kernel_id: str, queue_size: int) -> None:
        super().__init__(f"the queue of '{kernel_id}' is full ({queue_size} messages)", given=(kernel_id, queue_size))
        self.kernel_id = kernel_id
        self.queue_size = queue_size


class QueueTimeoutError(QueueError):
    """What was waited for did not come in time."""

    kind = "timed_out"

    def __init__(self, kernel_id: str, timeout: float, operation: str) -> None:
        super().__init__(
            f"the queue of '{kernel_id}': {operation} took more than {timeout} s", given=(kernel_id, timeout, operation)
        )
        self.kernel_id = kernel_id
        self.timeout = timeout
        self.operation = operation


class QueueClosedError(QueueError):
    """The queue was closed: nothing will come any more."""

    kind = "closed"

    def __init__(self, kernel_id: str) -> None:
        super().__init__(f"the queue of '{kernel_id}' was closed", given=(kernel_id,))
        self.kernel_id = kernel_id


class BufferError(PyDotComputeError):  # noqa: A001 the name is the other package's
    """A buffer cannot do this."""

    kind = "invalid_state"


class BufferNotAllocatedError(BufferError):
    """The buffer has no memory yet."""

    def __init__(self) -> None:
        super().__init__("the buffer has no memory yet: call allocate() first", given=())


class BufferSyncError(BufferError):
    """Host and device could not be made equal."""

    kind = "device"

    def __init__(self, direction: str, cause: Exception) -> None:
        super().__init__(f"copying a buffer, {direction}: {cause}", given=(direction, cause))
        self.direction = direction
        self.cause = cause


class BackendError(PyDotComputeError):
    """A backend is not there, or has failed."""

    kind = "device"


class BackendNotAvailableError(BackendError):
    """The backend is not there."""

    kind = "unavailable"

    def __init__(self, backend_name: str, reason: str) -> None:
        super().__init__(f"{backend_name} is not available: {reason}", given=(backend_name, reason))
        self.backend_name = backend_name
        self.reason = reason


class CUDAError(BackendError):
    """CUDA is not there, or has failed."""


class MetalError(BackendError):
    """Metal is not there, or has failed."""


class MSLCompilationError(MetalError):
    """A shader does not compile."""

    kind = "compilation"

    def __init__(self, shader_name: str, error_message: str) -> None:
        super().__init__(f"shader '{shader_name}': {error_message}", given=(shader_name, error_message))
        self.shader_name = shader_name
        self.error_message = error_message


class CompilationError(PyDotComputeError):
    """A kernel does not compile."""

    kind = "compilation"


class KernelCompilationError(CompilationError):
    """This kernel does not compile."""

    def __init__(self, kernel_name: str, cause: Exception) -> None:
        super().__init__(f"compiling '{kernel_name}': {cause}", given=(kernel_name, cause))
        self.kernel_name = kernel_name
        self.cause = cause


class ValidationError(PyDotComputeError):
    """A value was refused."""

    kind = "invalid_argument"


class InvalidConfigurationError(ValidationError):
    """A value of a configuration is outside of what is accepted."""

    def __init__(self, parameter: str, value: object, reason: str) -> None:
        super().__init__(f"{parameter}: {value!r} {reason}", given=(parameter, value, reason))
        self.parameter = parameter
        self.value = value
        self.reason = reason


class TypeValidationError(ValidationError):
    """A value is of another type than the one that is needed."""

    def __init__(self, expected: type, actual: type, context: str) -> None:
        super().__init__(
            f"{context}: {actual.__name__} where {expected.__name__} is needed", given=(expected, actual, context)
        )
        self.expected = expected
        self.actual = actual
        self.context = context
