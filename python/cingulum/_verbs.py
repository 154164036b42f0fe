"""The other verbs of the program as functions: files in, the result that ``--json`` prints as a dict out."""

from __future__ import annotations

import inspect
import json
import os
from dataclasses import dataclass, field
from typing import Any

from . import _native
from ._errors import make_error
from ._options import Given, given_of, options_of, parameters_text, signature_of, unknown_keyword
from ._talk import Progress, plain_names, settle_progress


def run_verb(verb: str, given: list[Given], progress: Progress | bool | None = None) -> Any:
    """Runs a verb in this process and gives back what it prints as JSON."""
    told = settle_progress(progress)
    known = {argument["name"] for argument in _arguments(verb)}
    output, failure = _native.run_verb(verb, [*given, ("json", [], True)] if "json" in known else given, told)
    result = _parsed(output)
    if failure is not None:
        kind, message, argument, file = failure
        raise make_error(kind, message, argument, file, result)
    return result


def _arguments(verb: str) -> list[dict[str, Any]]:
    from ._options import tables

    return tables()[verb]["arguments"]  # type: ignore[no-any-return]


def _parsed(output: str) -> Any:
    try:
        return json.loads(output)
    except json.JSONDecodeError:
        return output or None


def _verb_function(verb: str, returns: str) -> Any:
    options = options_of(verb)
    positional = [name for name, argument in options.items() if argument["positional"]]

    # The last takes all that remain.
    several = bool(positional) and options[positional[-1]]["repeatable"]

    def function(*args: Any, progress: Progress | bool | None = None, **given: Any) -> Any:
        if several and len(args) >= len(positional):
            args = (*args[: len(positional) - 1], list(args[len(positional) - 1 :]))
        if len(args) > len(positional):
            raise TypeError(f"{verb}() takes {len(positional)} positional arguments, {len(args)} were given")
        values = dict(zip(positional, args))
        for name, value in given.items():
            if name in values:
                raise TypeError(f"{verb}() got several values for '{name}'")
            if name not in options:
                raise unknown_keyword(verb, name, options)
            values[name] = value
        return run_verb(verb, given_of(verb, values), progress)

    leading = [
        inspect.Parameter(
            name,
            inspect.Parameter.VAR_POSITIONAL if options[name]["repeatable"] else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if options[name]["required"] or options[name]["repeatable"] else None,
        )
        for name in positional
    ]
    signature = signature_of(verb, leading)
    shown = inspect.Parameter("progress", inspect.Parameter.KEYWORD_ONLY, default=None)
    function.__signature__ = signature.replace(parameters=[*signature.parameters.values(), shown])  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = verb
    from ._options import tables

    table = tables()[verb]
    summary = table["summary"]
    function.__doc__ = (
        f"{summary[:1].upper()}{summary[1:]}.\n\n{plain_names(table['description'])}\n\n"
        f"Parameters\n----------\n{parameters_text(verb)}\n"
        f"progress : callable, bool or None\n    As for `track`.\n\nReturns\n-------\n{returns}\n"
    )
    return function


merge = _verb_function("merge", "dict\n    What the sidecar of the merged file says.")
phantom = _verb_function("phantom", "dict\n    What was made, and where.")
score = _verb_function("score", "dict\n    Shares and counts of valid and invalid streamlines, and the bundles by name.")
report = _verb_function("report", "dict\n    The page and what stands in it.")
compare = _verb_function("compare", "dict\n    How two tractograms differ.")
convert = _verb_function("convert", "dict\n    What was written.")
info = _verb_function("info", "dict\n    What is in the files.")
verify = _verb_function("verify", "dict\n    What was verified. Damage raises CorruptError, whose `result` is this dict.")


@dataclass(frozen=True)
class Device:
    """What there is to compute on, or why it is not there.

    Attributes
    ----------
    id : str
        What the argument `device` takes: ``"cpu"``, ``"cuda:0"``; of an absent backend its name.
    backend : str
        ``"cuda"``, ``"webgpu"`` or ``"cpu"``.
    name : str
        What the driver calls it.
    available : bool
        Whether it is there.
    reason : str
        Why not, where it is not.
    details : dict
        Everything else: memory, capabilities, driver, sensors.
    """

    id: str
    backend: str
    name: str
    available: bool = True
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


def devices() -> list[Device]:
    """What there is to compute on, and why the rest is absent.

    Returns
    -------
    list of Device
        Those that are there, best first, then one for each backend that has none, with its reason.
    """
    found = run_verb("devices", [])
    listed = [Device(one["id"], one["backend"], one["name"], details=one) for one in found["devices"]]
    listed += [
        Device(one["name"], one["name"], "", False, plain_names(str(one["absent_because"])), one)
        for one in found["backends"]
        if one["devices"] == 0
    ]
    return listed


def sphere(name: str = "default", *, full: bool = False) -> Any:
    """The directions of a sphere.

    Parameters
    ----------
    name : str
        ``"default"`` (mirror321), ``"small"``, ``"mirror406"``, ``"mirror501"``, ``"repulsion724"``, or a file.
    full : bool
        The whole sphere instead of one half.

    Returns
    -------
    array of shape (n, 3)
        Unit vectors.
    """
    return _native.sphere_vertices(os.fspath(name), full)
