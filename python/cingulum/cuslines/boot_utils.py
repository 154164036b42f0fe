"""Matrices of the bootstrap: refused by name."""

from __future__ import annotations

from typing import Any

from .._errors import UnavailableError

__all__ = ["prepare_csa", "prepare_opdt"]


def _refuse(name: str) -> UnavailableError:
    return UnavailableError(
        f"{name}: Cingulum never forms these matrices; BootDirectionGetter.from_dipy_{name.removeprefix('prepare_')} takes the same "
        "arguments"
    )


def prepare_opdt(gtab: Any, sphere: Any, sh_order_max: int = 6, full_basis: bool = False, sh_lambda: float = 0.006, min_signal: float = 1) -> Any:
    """Refused: `BootDirectionGetter.from_dipy_opdt` takes the same arguments."""
    raise _refuse("prepare_opdt")


def prepare_csa(gtab: Any, sphere: Any, sh_order_max: int = 6, full_basis: bool = False, sh_lambda: float = 0.006, min_signal: float = 1) -> Any:
    """Refused: `BootDirectionGetter.from_dipy_csa` takes the same arguments."""
    raise _refuse("prepare_csa")
