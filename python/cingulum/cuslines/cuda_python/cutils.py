"""Types and sizes by which cuslines is known."""

from enum import IntEnum

import numpy as np

REAL_SIZE = 4
REAL_DTYPE = np.float32
REAL3_DTYPE = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32)])
BLOCK_Y = 2


class ModelType(IntEnum):
    """Models by number."""

    OPDT = 0
    CSA = 1
    PROB = 2
    PTT = 3


def div_up(a: int, b: int) -> int:
    """a / b, rounded up."""
    return (a + b - 1) // b
