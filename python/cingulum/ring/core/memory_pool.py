"""CuPy's pools of memory; without CuPy they are empty."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

from .._cupy import find_cupy

_MB = 1 << 20


@dataclasses.dataclass
class PoolStatistics:
    """How full a pool is."""

    used_bytes: int
    total_bytes: int
    n_free_blocks: int

    @property
    def free_bytes(self) -> int:
        """Held and not used."""
        return self.total_bytes - self.used_bytes

    @property
    def utilization(self) -> float:
        """The share that is used; 0 where the pool is empty."""
        return self.used_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def used_mb(self) -> float:
        """In units of 2^20 bytes."""
        return self.used_bytes / _MB

    @property
    def total_mb(self) -> float:
        """In units of 2^20 bytes."""
        return self.total_bytes / _MB


class MemoryPool:
    """The pools of CuPy, one object for the process.

    Parameters
    ----------
    initial_size_mb : int
        Taken and left alone: a pool grows when it is used.
    max_size_mb : int or None
        As for `set_limit`.
    """

    _only: MemoryPool | None = None
    _making = threading.Lock()

    def __new__(cls, initial_size_mb: int = 0, max_size_mb: int | None = None) -> MemoryPool:
        with cls._making:
            if cls._only is None:
                made = super().__new__(cls)
                made._enabled = False
                made._pools = None
                cls._only = made
            return cls._only

    _enabled: bool
    _pools: tuple[Any, Any] | None

    def __init__(self, initial_size_mb: int = 0, max_size_mb: int | None = None) -> None:
        if max_size_mb is not None:
            self.set_limit(max_size_mb)

    def _pair(self) -> tuple[Any, Any] | None:
        """The pools of the device and of the host."""
        if self._pools is None:
            cupy, _ = find_cupy()
            if cupy is not None:
                self._pools = (cupy.cuda.MemoryPool(), cupy.cuda.PinnedMemoryPool())
        return self._pools

    def enable(self) -> None:
        """CuPy takes its memory from here."""
        pools = self._pair()
        if pools is not None:
            cupy, _ = find_cupy()
            cupy.cuda.set_allocator(pools[0].malloc)
            cupy.cuda.set_pinned_memory_allocator(pools[1].malloc)
        self._enabled = True

    def disable(self) -> None:
        """CuPy takes its memory from the driver."""
        cupy, _ = find_cupy()
        if cupy is not None:
            cupy.cuda.set_allocator(None)
            cupy.cuda.set_pinned_memory_allocator(None)
        self._enabled = False

    @property
    def enabled(self) -> bool:
        """Whether `enable` was called last."""
        return self._enabled

    def get_stats(self) -> PoolStatistics:
        """The pool of the device."""
        pools = self._pair()
        if pools is None:
            return PoolStatistics(0, 0, 0)
        return PoolStatistics(pools[0].used_bytes(), pools[0].total_bytes(), pools[0].n_free_blocks())

    def get_pinned_stats(self) -> PoolStatistics:
        """The pool of the host. CuPy counts its free blocks and not its bytes."""
        pools = self._pair()
        return PoolStatistics(0, 0, 0 if pools is None else pools[1].n_free_blocks())

    def free_all_blocks(self) -> None:
        """Gives back what is not used."""
        for pool in self._pair() or ():
            pool.free_all_blocks()

    def free_all_free(self) -> None:
        """Gives back what is not used."""
        self.free_all_blocks()

    def set_limit(self, size_mb: int | None) -> None:
        """At most so much; None: all memory of the device."""
        pools = self._pair()
        if pools is not None:
            pools[0].set_limit(size=0 if size_mb is None else size_mb * _MB)

    def __repr__(self) -> str:
        stats = self.get_stats()
        return f"<MemoryPool: {stats.used_mb:.1f} of {stats.total_mb:.1f} MiB used>"


def get_memory_pool() -> MemoryPool:
    """The pools of this process."""
    return MemoryPool()


def configure_memory_pool(
    _initial_size_mb: int = 0, max_size_mb: int | None = None, enable: bool = True
) -> MemoryPool:
    """Limits the pool and has CuPy use it, or not."""
    pool = MemoryPool()
    pool.set_limit(max_size_mb)
    if enable:
        pool.enable()
    else:
        pool.disable()
    return pool
