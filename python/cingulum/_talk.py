"""What a run says while it works: log lines, progress, and how arguments are spelled in both."""

from __future__ import annotations

import functools
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

logger = logging.getLogger("cingulum")

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}


class ProgressEvent(NamedTuple):
    """How far one task of a run is; what the callable of ``progress=`` is given.

    Attributes
    ----------
    label : str
        The task: ``"tracking"``.
    done, total : int
        Units that are done, and all of them; a total of 0 is not known.
    unit : str
        ``"seeds"``, ``"voxels"``.
    seconds : float
        Since the task began.
    note : str
        Further counters.
    state : str
        ``"begin"``, ``"step"``, ``"finish"`` (complete) or ``"end"`` (over, complete or not).
    """

    label: str
    done: int
    total: int
    unit: str
    seconds: float
    note: str
    state: str


Progress = Callable[[ProgressEvent], object]


def log(level: str, text: str) -> None:
    """A line of the library's log."""
    logger.log(_LEVELS[level], "%s", plain_names(text))


def wants_debug() -> bool:
    return logger.isEnabledFor(logging.DEBUG)


@functools.cache
def _option_names() -> frozenset[str]:
    from ._options import tables

    return frozenset(
        argument["name"] for table in tables().values() for argument in table["arguments"] if not argument["positional"]
    )


_OPTION = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")


def plain_names(text: str) -> str:
    """The text with options spelled as keywords: ``max_angle`` for ``--max-angle``."""

    def spell(match: re.Match[str]) -> str:
        name = match.group(1)
        return name.replace("-", "_") if name in _option_names() else match.group(0)

    return _OPTION.sub(spell, text)


class _Bars:
    """Bars of tqdm, one for each task that runs."""

    def __init__(self, make: Callable[..., Any]):
        self._make = make
        self._bars: dict[str, Any] = {}

    def __call__(self, event: ProgressEvent) -> None:
        if event.state == "begin":
            self._bars[event.label] = self._make(
                total=event.total or None, desc=event.label, unit=f" {event.unit}", leave=False
            )
            return
        bar = self._bars.get(event.label)
        if bar is None:
            return
        if event.state == "end":
            self._bars.pop(event.label).close()
            return
        bar.n = event.done
        if event.note:
            bar.set_postfix_str(event.note, refresh=False)
        bar.refresh()


def settle_progress(progress: Progress | bool | None) -> Progress | None:
    """What ``progress=`` means: a callable, True (tqdm), False (nothing), None (tqdm on a terminal, if it is there)."""
    if progress is False:
        return None
    if callable(progress):
        return progress
    if progress is None and not sys.stderr.isatty():
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress is None:
            return None
        raise
    return _Bars(tqdm)
