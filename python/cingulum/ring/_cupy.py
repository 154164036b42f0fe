"""CuPy, where it is there and sees a GPU. Nothing is asked before something needs a GPU."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any


@functools.cache
def find_cupy() -> tuple[Any, str]:
    """The module, or None with the reason."""
    if importlib.util.find_spec("cupy") is None:
        return None, "CuPy is not installed"
    try:
        cupy = importlib.import_module("cupy")
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return None, "CUDA sees no device"
    except Exception as error:
        return None, str(error)
    return cupy, ""
