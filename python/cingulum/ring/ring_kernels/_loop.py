"""Event loops: uvloop and eager tasks where they are there. Nothing is changed unless one of these is called."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import platform
import sys

_installed = {"uvloop": False, "eager": False}


def install_uvloop() -> bool:
    """Loops that are made from now on are uvloop's, unless PYDOTCOMPUTE_NO_UVLOOP is set; whether they are."""
    if _installed["uvloop"]:
        return True
    if os.environ.get("PYDOTCOMPUTE_NO_UVLOOP", "").lower() in ("1", "true", "yes") or not is_uvloop_available():
        return False
    asyncio.set_event_loop_policy(importlib.import_module("uvloop").EventLoopPolicy())
    _installed["uvloop"] = True
    return True


def install_eager_task_factory(loop: asyncio.AbstractEventLoop | None = None) -> bool:
    """Tasks of this loop, or of the one that runs, begin at once (from Python 3.12 on); whether they do."""
    factory = getattr(asyncio, "eager_task_factory", None)
    if factory is None:
        return False
    if loop is None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
    loop.set_task_factory(factory)
    _installed["eager"] = True
    return True


def is_uvloop_available() -> bool:
    """Whether uvloop can be imported."""
    return sys.platform != "win32" and importlib.util.find_spec("uvloop") is not None


def is_uvloop_installed() -> bool:
    """Whether `install_uvloop` has done its work."""
    return _installed["uvloop"]


def is_eager_tasks_installed() -> bool:
    """Whether `install_eager_task_factory` has done its work."""
    return _installed["eager"]


def get_loop_info() -> dict[str, str | bool]:
    """What is known of event loops here."""
    try:
        loop_class = type(asyncio.get_running_loop()).__name__
    except RuntimeError:
        loop_class = "none"
    return {
        "loop_class": loop_class,
        "uvloop_available": is_uvloop_available(),
        "uvloop_installed": is_uvloop_installed(),
        "eager_tasks_available": hasattr(asyncio, "eager_task_factory"),
        "eager_tasks_installed": is_eager_tasks_installed(),
        "platform": sys.platform,
        "python_version": platform.python_version(),
    }


def create_optimized_loop() -> asyncio.AbstractEventLoop:
    """A new loop, uvloop's where it is there, with eager tasks where they are."""
    if is_uvloop_available():
        loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
    else:
        loop = asyncio.new_event_loop()
    install_eager_task_factory(loop)
    return loop


def optimize_current_loop() -> dict[str, bool]:
    """Eager tasks for the loop that runs, where they are there."""
    return {"eager_tasks": install_eager_task_factory()}
