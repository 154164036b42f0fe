"""Other packages' names for Cingulum's modules, for scripts that cannot be edited.

``cingulum.compat.install("cuslines")`` makes ``import cuslines`` give `cingulum.cuslines`, module by module, and
``install("pydotcompute")`` gives `cingulum.ring`; ``python -m cingulum.compat cuslines SCRIPT ...`` runs a script so.
"""

from __future__ import annotations

import importlib
import pkgutil
import runpy
import sys

from ._errors import InvalidStateError, refused

__all__ = ["install"]

_LENT = {"cuslines": "cingulum.cuslines", "pydotcompute": "cingulum.ring"}


def install(name: str) -> None:
    """Lends another package's name to the module of Cingulum that stands in for it.

    Parameters
    ----------
    name : str
        ``"cuslines"`` or ``"pydotcompute"``.

    Notes
    -----
    Refused where the package itself was imported before. A class is one object under both names.
    """
    if name not in _LENT:
        raise refused("name", f"{name!r}: accepted is {', '.join(_LENT)}")
    ours = importlib.import_module(_LENT[name])
    if sys.modules.get(name, ours) is not ours:
        raise InvalidStateError(f"{name} was imported before; install its stand-in first")
    sys.modules[name] = ours
    for module in pkgutil.walk_packages(ours.__path__, f"{_LENT[name]}."):
        lent = name + module.name.removeprefix(_LENT[name])
        sys.modules[lent] = importlib.import_module(module.name)


def main() -> None:
    """``python -m cingulum.compat NAME SCRIPT ...``"""
    if len(sys.argv) < 3:
        sys.exit("usage: python -m cingulum.compat cuslines|pydotcompute SCRIPT ...")
    name, script = sys.argv[1:3]
    install(name)
    if name == "pydotcompute":
        # Its import does this, too, where uvloop is there.
        from .ring.ring_kernels import install_uvloop

        install_uvloop()
    sys.argv = sys.argv[2:]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
