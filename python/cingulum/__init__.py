"""Brain-fibre imaging on any GPU, and on none.

Importing this opens no device, starts no thread and changes no signal handler; the library is loaded with the first
name that needs it.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._errors import (
    AlreadyExistsError,
    CancelledError,
    CingulumError,
    ClosedError,
    CompilationError,
    CorruptError,
    DeviceError,
    FileError,
    FullError,
    InvalidArgumentError,
    InvalidStateError,
    NotFoundError,
    OutOfMemoryError,
    TimedOutError,
    UnavailableError,
)

__version__ = "0.1.0"

# Where each of the other names is.
_PLACES = {
    "track": "_track",
    "track_batches": "_track",
    "Tracker": "_track",
    "Tractogram": "_tractogram",
    "fit": "_fit",
    "Fit": "_fit",
    "DTI": "_fit",
    "OPDT": "_fit",
    "CSA": "_fit",
    "CSD": "_fit",
    "Buffer": "_buffer",
    "Kernel": "_buffer",
    "kernel": "_buffer",
    "devices": "_verbs",
    "Device": "_verbs",
    "sphere": "_verbs",
    "merge": "_verbs",
    "phantom": "_verbs",
    "score": "_verbs",
    "report": "_verbs",
    "compare": "_verbs",
    "convert": "_verbs",
    "info": "_verbs",
    "verify": "_verbs",
    "ProgressEvent": "_talk",
}
_MODULES = frozenset({"compat", "cuslines", "dipy", "oct", "ring", "zarr"})

__all__ = [
    "AlreadyExistsError",
    "CancelledError",
    "CingulumError",
    "ClosedError",
    "CompilationError",
    "CorruptError",
    "DeviceError",
    "FileError",
    "FullError",
    "InvalidArgumentError",
    "InvalidStateError",
    "NotFoundError",
    "OutOfMemoryError",
    "TimedOutError",
    "UnavailableError",
    "__version__",
    *_PLACES,
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        value = getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'cingulum' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
