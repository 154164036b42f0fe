"""cingulum.ring has every module, name, argument and default of PyDotCompute 0.2.0.

pydotcompute_0_2_0.json lists them: by module its ``__all__``, its enumerations with their values, its classes with the
arguments of their constructors, methods and properties, and its functions. Names that begin with an underscore are left
out.
"""

import enum
import importlib
import inspect
import json
import pathlib

import pytest

TABLE = json.loads((pathlib.Path(__file__).parent / "pydotcompute_0_2_0.json").read_text(encoding="utf-8"))
NAMES = [(module, name) for module, entry in TABLE.items() for name in entry["names"]]


def module_of(relative):
    return importlib.import_module("cingulum.ring" + (f".{relative}" if relative else ""))


def arguments_of(function):
    """The arguments as the table writes them."""
    texts = []
    starred = False
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        if name in ("self", "cls") or (name.startswith("_") and name != "_initial_size_mb"):
            continue
        text = name
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, starred = f"*{name}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{name}"
        elif parameter.kind is parameter.KEYWORD_ONLY and not starred:
            texts.append("*")
            starred = True
        default = parameter.default
        if default is not parameter.empty:
            made = "factory" in repr(default).lower()
            shown = default.__name__ if isinstance(default, type) else repr(default)
            text += "=" + ("<made>" if made else str(default) if isinstance(default, enum.Enum) else shown)
        texts.append(text)
    return ", ".join(texts)


def described(function):
    return ("async " if inspect.iscoroutinefunction(function) else "") + f"({arguments_of(function)})"


@pytest.mark.parametrize("relative", TABLE)
def test_every_module_offers_its_names(relative):
    offered = module_of(relative)
    assert set(TABLE[relative]["all"]) <= set(getattr(offered, "__all__", TABLE[relative]["all"]))
    for name in TABLE[relative]["all"]:
        assert hasattr(offered, name)


@pytest.mark.parametrize(("relative", "name"), NAMES)
def test_every_name_takes_what_it_takes_there(relative, name):
    known = TABLE[relative]["names"][name]
    ours = getattr(module_of(relative), name)
    if isinstance(known, str):
        assert described(ours) == known
        return
    if "members" in known:
        values = {member.name: member.value for member in ours}
        assert known["members"].items() <= values.items()
        return
    assert set(known["bases"]) <= {base.__name__ for base in ours.__mro__}
    if known["init"] is not None:
        assert arguments_of(ours.__init__) == known["init"]
    for method, form in known["methods"].items():
        found = inspect.getattr_static(ours, method)
        if form == "property":
            assert isinstance(found, property), method
        else:
            function = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
            assert described(function) == form, method
    if "fields" in known:
        import dataclasses

        assert [field.name for field in dataclasses.fields(ours) if not field.name.startswith("_")] == known["fields"]
        assert ours.__dataclass_params__.frozen == known["frozen"]
