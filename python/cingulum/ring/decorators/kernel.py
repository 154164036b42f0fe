"""Functions as kernels."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

from ..compilation.compiler import CompilationOptions, get_compiler

F = TypeVar("F", bound=Callable[..., Any])


@overload
def kernel(func: F) -> F: ...
@overload
def kernel(
    func: None = None, *, name: str | None = None, device: str = "auto", fastmath: bool = True, cache: bool = True
) -> Callable[[F], F]: ...
def kernel(
    func: F | None = None, *, name: str | None = None, device: str = "auto", fastmath: bool = True, cache: bool = True
) -> F | Callable[[F], F]:
    """A function that is compiled at its first call, where it can be; else it is called as it is.

    Parameters
    ----------
    func : callable
        With and without parentheses.
    name : str, optional
        Of the kernel; the function's unless given.
    device : str
        ``"auto"``, ``"cuda"`` or ``"cpu"``.
    fastmath, cache : bool
        As in `CompilationOptions`.
    """

    def made(target: F) -> F:
        compiled: list[Callable[..., Any]] = []

        @functools.wraps(target)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not compiled:
                compiled.append(_compile_or_keep(target, name, device, fastmath, cache))
            return compiled[0](*args, **kwargs)

        call._kernel_meta = {  # type: ignore[attr-defined]
            "name": name or target.__name__,
            "device": device,
            "fastmath": fastmath,
            "cache": cache,
        }
        return cast(F, call)

    return made if func is None else made(func)


def _compile_or_keep(
    func: Callable[..., Any], name: str | None, device: str, fastmath: bool, cache: bool
) -> Callable[..., Any]:
    compiler = get_compiler()
    on_gpu = device in ("auto", "cuda") and compiler.cuda_available
    if not on_gpu and not (device == "cpu" and compiler.numba_available):
        return func
    options = CompilationOptions(device="cuda" if on_gpu else "cpu", fastmath=fastmath, cache=cache)
    try:
        return compiler.compile(func, name=name, options=options).kernel
    except Exception:
        return func


@overload
def gpu_kernel(func: F) -> F: ...
@overload
def gpu_kernel(
    func: None = None,
    *,
    name: str | None = None,
    signature: str | None = None,
    fastmath: bool = True,
    debug: bool = False,
    cache: bool = True,
) -> Callable[[F], F]: ...
def gpu_kernel(
    func: F | None = None,
    *,
    name: str | None = None,
    signature: str | None = None,
    fastmath: bool = True,
    debug: bool = False,
    cache: bool = True,
) -> F | Callable[[F], F]:
    """A function that Numba compiles for CUDA at once; RuntimeError where it cannot."""

    def made(target: F) -> F:
        compiler = get_compiler()
        if not compiler.numba_available:
            raise RuntimeError("gpu_kernel needs Numba, which is not installed")
        if not compiler.cuda_available:
            raise RuntimeError("gpu_kernel needs a GPU of CUDA, and Numba sees none")
        options = CompilationOptions(device="cuda", fastmath=fastmath, debug=debug, cache=cache)
        return cast(F, compiler.compile(target, signature=signature, name=name, options=options).kernel)

    return made if func is None else made(func)


def cuda_source(source: str) -> Callable[[F], F]:
    """Keeps the text of a kernel in CUDA C++ with a function, as ``__cuda_source__``."""

    def made(target: F) -> F:
        target.__cuda_source__ = source  # type: ignore[attr-defined]
        return target

    return made


class KernelRegistry:
    """Kernels by name, one registry for the process."""

    _only: KernelRegistry | None = None
    _making = threading.Lock()
    _kernels: dict[str, Callable[..., Any]]

    def __new__(cls) -> KernelRegistry:
        with cls._making:
            if cls._only is None:
                made = super().__new__(cls)
                made._kernels = {}
                cls._only = made
            return cls._only

    def register(self, name: str, kernel: Callable[..., Any], *, overwrite: bool = False) -> None:
        """Keeps a kernel; ValueError where the name is taken, unless `overwrite`."""
        if name in self._kernels and not overwrite:
            raise ValueError(f"name: a kernel '{name}' is registered already")
        self._kernels[name] = kernel

    def get(self, name: str) -> Callable[..., Any] | None:
        """A kernel, or None."""
        return self._kernels.get(name)

    def list(self) -> list[str]:
        """All names."""
        return [*self._kernels]

    def clear(self) -> None:
        """Forgets all kernels."""
        self._kernels.clear()

    def __repr__(self) -> str:
        return f"<KernelRegistry: {len(self._kernels)} kernels>"


def get_kernel_registry() -> KernelRegistry:
    """The registry of this process."""
    return KernelRegistry()
