"""Checks of messages and configurations."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..exceptions import InvalidConfigurationError, TypeValidationError, ValidationError

F = TypeVar("F", bound=Callable[..., Any])

_STRATEGIES = ("block", "reject", "drop_oldest")
_LARGEST_QUEUE = 1_000_000


def validate_message(cls: type) -> type:
    """The class, where it is a dataclass; TypeValidationError where it is none. Warns of one without `serialize`."""
    if not dataclasses.is_dataclass(cls):
        raise TypeValidationError(type, cls if isinstance(cls, type) else type(cls), "a message must be a dataclass")
    if not hasattr(cls, "serialize"):
        warnings.warn(f"{cls.__name__} has no serialize(): it cannot leave this process", UserWarning, stacklevel=2)
    return cls


def _is_of(value: Any, expected: Any) -> bool:
    """Whether a value is what a type hint says, as far as that can be seen."""
    if expected is Any or isinstance(expected, str):
        return True
    origin = typing.get_origin(expected)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(value, one) for one in typing.get_args(expected))
    if origin is not None:
        return isinstance(value, origin)
    if expected is None:
        return value is None
    return isinstance(value, expected) if isinstance(expected, type) else True


def validate_config(config_cls: type) -> Callable[[F], F]:
    """Checks arguments of a function against the type hints of a class whose fields have their names."""

    def made(target: F) -> F:
        signature = inspect.signature(target)

        @functools.wraps(target)
        def call(*args: Any, **kwargs: Any) -> Any:
            hints = typing.get_type_hints(config_cls)
            for name, value in signature.bind_partial(*args, **kwargs).arguments.items():
                if name in hints and not _is_of(value, hints[name]):
                    expected = hints[name]
                    raise TypeValidationError(expected if isinstance(expected, type) else object, type(value), name)
            return target(*args, **kwargs)

        return cast(F, call)

    return made


def validate_queue_size(size: int, name: str = "queue_size") -> int:
    """1 to 1 000 000."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise InvalidConfigurationError(name, size, "is not a whole number")
    if not 1 <= size <= _LARGEST_QUEUE:
        raise InvalidConfigurationError(name, size, f"is not between 1 and {_LARGEST_QUEUE}")
    return size


def _dimensions(size: Any, name: str) -> tuple[int, ...]:
    sizes = (size,) if isinstance(size, int) else size
    if not isinstance(sizes, tuple) or not 1 <= len(sizes) <= 3:
        raise InvalidConfigurationError(name, size, "is neither a number nor a tuple of one to three")
    for one in sizes:
        if isinstance(one, bool) or not isinstance(one, int) or one < 1:
            raise InvalidConfigurationError(name, size, "has a part that is less than 1 or no whole number")
    return sizes


def validate_grid_size(size: int | tuple[int, ...], name: str = "grid_size") -> tuple[int, ...]:
    """One to three numbers, at least 1."""
    return _dimensions(size, name)


def validate_block_size(
    size: int | tuple[int, ...], name: str = "block_size", max_threads: int = 1024
) -> tuple[int, ...]:
    """One to three numbers, at least 1, whose product is at most `max_threads`."""
    sizes = _dimensions(size, name)
    if math.prod(sizes) > max_threads:
        raise InvalidConfigurationError(name, size, f"is more than {max_threads} threads")
    return sizes


def validate_priority(priority: int) -> int:
    """0 to 255."""
    if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= 255:
        raise InvalidConfigurationError("priority", priority, "is not a whole number between 0 and 255")
    return priority


def validate_backpressure_strategy(strategy: str) -> str:
    """``"block"``, ``"reject"`` or ``"drop_oldest"``."""
    if strategy not in _STRATEGIES:
        raise InvalidConfigurationError("backpressure_strategy", strategy, f"is none of {', '.join(_STRATEGIES)}")
    return strategy


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "queue_size": validate_queue_size,
    "input_queue_size": lambda value: validate_queue_size(value, "input_queue_size"),
    "output_queue_size": lambda value: validate_queue_size(value, "output_queue_size"),
    "grid_size": validate_grid_size,
    "block_size": validate_block_size,
    "priority": validate_priority,
    "backpressure": validate_backpressure_strategy,
    "backpressure_strategy": validate_backpressure_strategy,
}


class RuntimeValidator:
    """Checks while a program runs.

    Parameters
    ----------
    strict : bool
        False: what is wrong is kept as a warning instead of raised.
    """

    def __init__(self, strict: bool = True) -> None:
        self._strict = strict
        self._warnings: list[str] = []

    @property
    def strict(self) -> bool:
        """Whether what is wrong is raised."""
        return self._strict

    @property
    def warnings(self) -> list[str]:
        """What was wrong so far."""
        return list(self._warnings)

    def _note(self, error: ValidationError) -> None:
        if self._strict:
            raise error
        self._warnings.append(str(error))

    def validate_message_type(self, cls: type) -> bool:
        """Whether a class can be a message."""
        try:
            validate_message(cls)
        except ValidationError as error:
            self._note(error)
            return False
        return True

    def validate_kernel_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """The values that pass, by the names that were given."""
        passed = {}
        for name, value in config.items():
            try:
                passed[name] = _CHECKS[name](value) if name in _CHECKS else value
            except ValidationError as error:
                self._note(error)
        return passed

    def clear_warnings(self) -> None:
        """Forgets what was wrong."""
        self._warnings.clear()

    def __repr__(self) -> str:
        return f"<RuntimeValidator: {'strict' if self._strict else 'lenient'}, {len(self._warnings)} warnings>"


def get_validator(strict: bool = True) -> RuntimeValidator:
    """A validator."""
    return RuntimeValidator(strict)
