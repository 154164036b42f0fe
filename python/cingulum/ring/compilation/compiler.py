"""Python functions as kernels, compiled by Numba where it is there."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from ..exceptions import KernelCompilationError


@dataclasses.dataclass
class CompilationOptions:
    """How a kernel is compiled."""

    device: str = "cuda"
    fastmath: bool = True
    debug: bool = False
    lineinfo: bool = False
    opt_level: int = 3
    cache: bool = True


@dataclasses.dataclass
class CompiledKernel:
    """A kernel, and how it was made."""

    kernel: Callable[..., Any]
    name: str
    source_hash: str
    signature: str | None
    options: CompilationOptions
    compile_time_ms: float = 0.0
    ptx: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)


def _source_of(func: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(func)
    except (OSError, TypeError):
        return getattr(func, "__qualname__", repr(func))


class KernelCompiler:
    """Compiles functions; equal source and options give the same kernel.

    Parameters
    ----------
    options : CompilationOptions, optional
        Unless a call gives others.
    """

    def __init__(self, options: CompilationOptions | None = None) -> None:
        self._options = options or CompilationOptions()
        self._kept: dict[str, CompiledKernel] = {}
        self._lock = threading.Lock()

    @property
    def cuda_available(self) -> bool:
        """Whether Numba sees a GPU of CUDA."""
        if not self.numba_available:
            return False
        try:
            return bool(importlib.import_module("numba.cuda").is_available())
        except Exception:
            return False

    @property
    def numba_available(self) -> bool:
        """Whether Numba can be imported."""
        return importlib.util.find_spec("numba") is not None

    def compile(
        self,
        func: Callable[..., Any],
        *,
        signature: str | None = None,
        name: str | None = None,
        options: CompilationOptions | None = None,
    ) -> CompiledKernel:
        """The function as a kernel; KernelCompilationError where it is none. Without Numba it is the function itself."""
        chosen = options or self._options
        key_text = f"{_source_of(func)}|{signature}|{dataclasses.astuple(chosen)}"
        key = hashlib.sha256(key_text.encode("utf-8")).hexdigest()[:16]
        with self._lock:
            if chosen.cache and key in self._kept:
                return self._kept[key]
        begin = time.perf_counter()
        named = name if name is not None else str(getattr(func, "__name__", "kernel"))
        try:
            made = self._compile(func, signature, chosen)
        except Exception as error:
            raise KernelCompilationError(named, error) from error
        done = CompiledKernel(made, named, key, signature, chosen, (time.perf_counter() - begin) * 1e3)
        if chosen.cache:
            with self._lock:
                return self._kept.setdefault(key, done)
        return done

    def _compile(
        self, func: Callable[..., Any], signature: str | None, options: CompilationOptions
    ) -> Callable[..., Any]:
        if options.device == "cuda" and self.cuda_available:
            cuda: Any = importlib.import_module("numba.cuda")
            settings: dict[str, Any] = {"fastmath": options.fastmath, "debug": options.debug}
            settings |= {"lineinfo": options.lineinfo, "opt": options.opt_level > 0}
            return cuda.jit(signature, **settings)(func) if signature else cuda.jit(**settings)(func)  # type: ignore[no-any-return]
        if self.numba_available and options.device != "cuda":
            numba: Any = importlib.import_module("numba")
            settings = {"fastmath": options.fastmath}
            return numba.njit(signature, **settings)(func) if signature else numba.njit(**settings)(func)  # type: ignore[no-any-return]
        return func

    def get_cached_kernel(self, source_hash: str) -> CompiledKernel | None:
        """A kernel that was compiled before, or None."""
        return self._kept.get(source_hash)

    def clear_cache(self) -> int:
        """Forgets all kernels, and says how many they were."""
        with self._lock:
            count = len(self._kept)
            self._kept.clear()
            return count

    def get_cache_stats(self) -> dict[str, int]:
        """Counts: cached_kernels."""
        return {"cached_kernels": len(self._kept)}

    def __repr__(self) -> str:
        return f"<KernelCompiler: {len(self._kept)} kernels kept>"


_only: KernelCompiler | None = None


def get_compiler() -> KernelCompiler:
    """The compiler of this process."""
    global _only
    if _only is None:
        _only = KernelCompiler()
    return _only


def compile_kernel(func: Callable[..., Any], *, signature: str | None = None, **options: Any) -> CompiledKernel:
    """Compiles by the compiler of this process; options as in `CompilationOptions`."""
    chosen = CompilationOptions(**options) if options else None
    return get_compiler().compile(func, signature=signature, options=chosen)
