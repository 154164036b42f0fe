"""Keywords of Python as the arguments of requests and verbs: one table, that of the program, serves both."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._errors import refused
from ._numpy import np

# Options that have no meaning in a function: their subjects are arguments or results here.
_OF_THE_TERMINAL = {"help", "json", "quiet", "verbose", "progress"}


@functools.cache
def tables() -> dict[str, dict[str, Any]]:
    """The verbs with the tables of their options."""
    return json.loads(_native.verbs_json())  # type: ignore[no-any-return]


def keyword(name: str) -> str:
    """The option ``max-angle`` as a keyword; those that are words of Python get an underscore behind."""
    spelled = name.replace("-", "_")
    return spelled + "_" if spelled in {"from"} else spelled


def options_of(verb: str) -> dict[str, dict[str, Any]]:
    """The options of a verb that are keywords, by keyword."""
    return {
        keyword(argument["name"]): argument
        for argument in tables()[verb]["arguments"]
        if argument["name"] not in _OF_THE_TERMINAL
    }


def default_of(argument: Mapping[str, Any]) -> Any:
    """The default of an option as a value of Python."""
    text = argument["default"]
    kind = argument["type"]
    if kind == "flag":
        return False
    if text == "":
        return None
    if kind in {"integer", "key"}:
        return int(text)
    if kind in {"real", "angle"}:
        return float(text)
    if kind == "length":
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, any other value as it is. numpy is asked only about what is none of Python's:
    where it is not imported yet, a run from file to file goes without."""
    if isinstance(value, (str, os.PathLike, bool, int, float, tuple, list)):
        return value
    for numpys, pythons in ((np.bool_, bool), (np.integer, int), (np.floating, float)):
        if isinstance(value, numpys):
            return pythons(value)
    return value


def _text(name: str, kind: str, given: Any) -> str:
    value = _plain(given)
    if isinstance(value, bool):
        raise refused(name, f"{given} is neither a number nor a text")
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(os.fspath(value))
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if kind in {"integer", "key", "bytes"}:
            if float(value) != int(value):
                raise refused(name, f"{given} is not a whole number")
            return str(int(value))
        return repr(float(value))
    if isinstance(value, (tuple, list)) or isinstance(value, np.ndarray):
        separator = "x" if name == "seed_grid" else ","
        return separator.join(_text(name, "text", part) for part in value)
    raise refused(name, f"a {type(value).__name__} is not accepted")


def _several(argument: Mapping[str, Any], value: Any) -> Iterable[Any]:
    """The values of an option that may be given several times. A tuple of numbers is one: a sphere."""
    if isinstance(value, (str, os.PathLike)):
        return [value]
    if isinstance(value, (list, tuple)) and not all(isinstance(_plain(part), (int, float)) for part in value):
        return value
    return [value]


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> TypeError:
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return TypeError(f"{function}() has no argument '{name}'{hint}")


Given = tuple[str, list[str], bool]
"""An argument as the library takes it: its name, its values as texts, and whether it is a flag."""


def given_of(verb: str, values: Mapping[str, Any], function: str | None = None) -> list[Given]:
    """Keywords as arguments of a request or a verb. None is not given, and neither is a flag that is False."""
    options = options_of(verb)
    given: list[Given] = []
    for name, value in values.items():
        if name not in options:
            raise unknown_keyword(function or verb, name, options)
        if value is None:
            continue
        argument = options[name]
        if argument["type"] == "flag":
            if not isinstance(_plain(value), bool):
                raise refused(name, f"{value!r} is neither True nor False")
            if value:
                given.append((argument["name"], [], True))
            continue
        parts = _several(argument, value) if argument["repeatable"] else [value]
        texts = [_text(name, argument["type"], part) for part in parts]
        if texts:
            given.append((argument["name"], texts, False))
    return given


def _annotation(argument: Mapping[str, Any]) -> str:
    kind = argument["type"]
    if kind == "flag":
        return "bool"
    if kind == "choice":
        return "{" + ", ".join(f"'{choice}'" for choice in argument["choices"]) + "}"
    names = {
        "integer": "int",
        "key": "int",
        "real": "float",
        "angle": "float, degrees",
        "length": "float or str",
        "bytes": "int or str",
        "file_in": "path",
        "file_out": "path",
        "device_list": "str",
        "text": "str",
    }
    return ("sequence of " if argument["repeatable"] else "") + names[kind]


def parameters_text(verb: str, leave_out: Iterable[str] = ()) -> str:
    """The options of a verb as numpydoc writes parameters."""
    from ._talk import plain_names

    lines: list[str] = []
    for name, argument in options_of(verb).items():
        if name in set(leave_out):
            continue
        default = default_of(argument)
        shown = "optional" if default is None and not argument["required"] else f"default {default!r}"
        if argument["required"]:
            shown = ""
        unit = f" ({argument['unit']})" if argument["unit"] else ""
        lines.append(f"{name} : {_annotation(argument)}{', ' + shown if shown else ''}")
        help_text = plain_names(argument["help"])
        note = f"; by default {argument['default_note']}" if argument["default_note"] else ""
        lines.append(f"    {help_text[:1].upper()}{help_text[1:]}{unit}{note}.")
    return "\n".join(lines)


def signature_of(verb: str, first: Iterable[inspect.Parameter] = (), leave_out: Iterable[str] = ()) -> inspect.Signature:
    """The signature of a function that stands for a verb: positional arguments, then every option as a keyword."""
    leading = list(first)
    names = {parameter.name for parameter in leading} | set(leave_out)
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default_of(argument))
        for name, argument in options_of(verb).items()
        if name not in names
    ]
    return inspect.Signature([*leading, *keywords])
