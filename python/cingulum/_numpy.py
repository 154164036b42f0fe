"""numpy under its usual names, imported with the first attribute that is asked of it.

For the modules that a run from file to file passes through: it needs no arrays, and numpy would be half of what the package
holds. Annotations are evaluated by nobody but who asks for them, who gets numpy's own types.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["np", "npt"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:

    class _Later:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(importlib.import_module(self._name), attribute)
            setattr(self, attribute, value)  # found without this function from now on
            return value

    np = _Later("numpy")
    npt = _Later("numpy.typing")
