"""The names of cuslines, tracked by Cingulum.

``from cingulum.cuslines import ...`` in the place of ``from cuslines import ...``; each module of cuslines is a module
here. Importing them opens no device. The result does not depend on `chunk_size` or on the number and kind of devices,
and is the same for equal `rng_seed`.
"""

from __future__ import annotations

from typing import Any

from .generic_tracker import BootDirectionGetter, GenericTracker, ProbDirectionGetter, PttDirectionGetter

Tracker = GenericTracker

__all__ = ["BACKEND", "BootDirectionGetter", "ProbDirectionGetter", "PttDirectionGetter", "Tracker"]


def __getattr__(name: str) -> Any:
    # Asked for, and not before: it opens devices.
    if name == "BACKEND":
        from .._verbs import devices

        found = next((device.backend for device in devices() if device.available), "cpu")
        return None if found == "cpu" else found
    raise AttributeError(f"module 'cingulum.cuslines' has no attribute '{name}'")
