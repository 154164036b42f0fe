"""Compiled kernels in a folder, the least recently used thrown away first."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


@dataclasses.dataclass
class CacheEntry:
    """What is known of a kept kernel."""

    kernel_name: str
    source_hash: str
    signature: str | None
    ptx_path: Path | None = None
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    created_timestamp: float = 0.0
    last_accessed: float = 0.0
    hit_count: int = 0


def _replace(path: Path, data: bytes) -> None:
    """Writes a file that is there as a whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class KernelCache:
    """Kernels by name and hash of their source.

    Parameters
    ----------
    cache_dir : path, optional
        The folder; ``pydotcompute_cache`` in the folder for temporary files unless given.
    max_entries, max_size_mb : int
        More than this is thrown away.
    """

    def __init__(self, cache_dir: str | Path | None = None, max_entries: int = 128, max_size_mb: int = 256) -> None:
        self._folder = Path(cache_dir) if cache_dir is not None else Path(tempfile.gettempdir()) / "pydotcompute_cache"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._max_entries = max_entries
        self._max_bytes = max_size_mb << 20
        self._lock = threading.Lock()
        self._entries = self._read_index()

    @property
    def _index(self) -> Path:
        return self._folder / "index.json"

    def _read_index(self) -> dict[str, CacheEntry]:
        try:
            kept = json.loads(self._index.read_text(encoding="utf-8"))
            return {
                key: CacheEntry(**{**entry, "ptx_path": Path(entry["ptx_path"]) if entry["ptx_path"] else None})
                for key, entry in kept.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def _write_index(self) -> None:
        kept = {}
        for key, entry in self._entries.items():
            kept[key] = {**dataclasses.asdict(entry), "ptx_path": str(entry.ptx_path) if entry.ptx_path else None}
        _replace(self._index, json.dumps(kept).encode("utf-8"))

    @staticmethod
    def _key(kernel_name: str, source_hash: str) -> str:
        return f"{kernel_name}_{source_hash}"

    def _bytes(self) -> int:
        return sum(
            entry.ptx_path.stat().st_size
            for entry in self._entries.values()
            if entry.ptx_path is not None and entry.ptx_path.exists()
        )

    def store(
        self,
        kernel_name: str,
        source_hash: str,
        ptx: bytes | str,
        *,
        signature: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> bool:
        """Keeps a kernel; whether it could be."""
        data = ptx.encode("utf-8") if isinstance(ptx, str) else ptx
        key = self._key(kernel_name, source_hash)
        with self._lock:
            while self._entries and key not in self._entries and (
                len(self._entries) >= self._max_entries or self._bytes() >= self._max_bytes
            ):
                oldest = min(self._entries, key=lambda one: self._entries[one].last_accessed)
                self._drop(oldest)
            path = self._folder / f"{key}.ptx"
            now = time.time()
            try:
                _replace(path, data)
                self._entries[key] = CacheEntry(kernel_name, source_hash, signature, path, metadata or {}, now, now)
                self._write_index()
            except OSError:
                self._entries.pop(key, None)
                return False
            return True

    def load(self, kernel_name: str, source_hash: str) -> bytes | None:
        """A kernel, or None."""
        key = self._key(kernel_name, source_hash)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            try:
                data = entry.ptx_path.read_bytes() if entry.ptx_path is not None else None
            except OSError:
                data = None
            if data is None:
                self._drop(key)
                return None
            entry.last_accessed = time.time()
            entry.hit_count += 1
            return data

    def _drop(self, key: str) -> bool:
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        if entry.ptx_path is not None:
            entry.ptx_path.unlink(missing_ok=True)
        self._write_index()
        return True

    def contains(self, kernel_name: str, source_hash: str) -> bool:
        """Whether a kernel is kept."""
        return self._key(kernel_name, source_hash) in self._entries

    def remove(self, kernel_name: str, source_hash: str) -> bool:
        """Throws a kernel away; whether it was there."""
        with self._lock:
            return self._drop(self._key(kernel_name, source_hash))

    def clear(self) -> int:
        """Throws all away, and says how many they were."""
        with self._lock:
            keys = list(self._entries)
            for key in keys:
                self._drop(key)
            return len(keys)

    def get_stats(self) -> dict[str, Any]:
        """Counts: entries, max_entries, total_size_bytes, max_size_bytes, total_hits, cache_dir."""
        with self._lock:
            return {
                "entries": len(self._entries),
                "max_entries": self._max_entries,
                "total_size_bytes": self._bytes(),
                "max_size_bytes": self._max_bytes,
                "total_hits": sum(entry.hit_count for entry in self._entries.values()),
                "cache_dir": str(self._folder),
            }

    def __repr__(self) -> str:
        return f"<KernelCache: {len(self._entries)} of {self._max_entries} kernels>"


_only: KernelCache | None = None


def get_kernel_cache() -> KernelCache:
    """The cache of this process."""
    global _only
    if _only is None:
        _only = KernelCache()
    return _only


def warmup_kernels(kernels: list[Callable[..., Any]]) -> None:
    """Compiles kernels; those that do not compile are left out."""
    from .compiler import compile_kernel

    for kernel in kernels:
        try:
            compile_kernel(kernel)
        except Exception:
            continue
