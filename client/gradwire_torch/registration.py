"""Registers the device and its operations with PyTorch. What computes them is imported at the first operation.

A program that only imports PyTorch pays for the registration alone, and connects to no server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container
from functools import partial, wraps
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from . import accelerator, generators, parameters
from .device_type import NAME
from .found import FOUND

_KEY: Final = "PrivateUse1"
_AUTOCAST_KEY: Final = "AutocastPrivateUse1"
_SUBJECTS: Final = (
    "activations", "attention", "convolution", "creation", "foreach", "fourier", "indexing", "linear_algebra",
    "losses", "normalization", "optimizers", "pooling", "quantization", "random_numbers", "ranges", "recurrent",
    "reductions", "resampling", "segments", "views",
)  # fmt: skip
"""Modules that register operations as they are imported."""
_OF_DEVICES: Final = "device_mismatch"
"""The code of gradwire's errors about devices."""
_SERVERS_NAME: Final = re.compile(r"\bcuda:(\d+)")
_libraries: Final[list[Any]] = []
"""What is registered stays as long as these do."""
_find: Callable[[Any], Callable[..., Any]] | None = None
_seed: int | None = None
"""What the device's random numbers start with when it is used."""


def install() -> None:
    """Register everything, once."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=_LateModule(f"{__package__}.device_module"))
    accelerator.install()
    generators.install()
    parameters.install()
    torch.set_default_dtype = _set_default_dtype
    anything = torch.library.Library("_", "IMPL")
    anything.fallback(run, _KEY)
    anything.fallback(torch.library.fallthrough_kernel, _AUTOCAST_KEY)
    for kind in ("Sparse", "SparseCsr", "Quantized"):
        anything.fallback(partial(_refuse, kind), f"{kind}{_KEY}")
    aten = torch.library.Library("aten", "IMPL")
    for name in _composed_of_out_forms():
        _register(aten, name)
    _libraries.extend([anything, aten])
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_refuse_all)


def _refuse_all() -> None:
    """In a process forked from one that uses the device, nothing is computed on it."""
    global _find
    if _find is not None:
        from . import processes

        FOUND.clear()
        _find = processes.refuse


def forked() -> bool:
    """Whether this process was forked from one that uses the device."""
    return _find is not None and _find.__name__ == "refuse"


def run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute an operation on tensors of the device."""
    try:
        return (FOUND.get(id(op)) or (_find or _load())(op))(*args, **kwargs)
    except RuntimeError as refused:
        name_devices(refused)
        raise


def name_devices(refused: RuntimeError) -> None:
    """Let an error about devices name them as PyTorch does."""
    if getattr(refused, "code", None) == _OF_DEVICES:
        refused.args = _SERVERS_NAME.sub(rf"{NAME}:\1", str(refused)), *refused.args[1:]


def _refuse(kind: str, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Another layout than that of tensors of the device."""
    raise NotImplementedError(f"{op}: tensors of gradwire are not {kind.removesuffix('Csr').lower()}")


_plain_set_default_dtype: Final[Any] = torch.set_default_dtype


@wraps(_plain_set_default_dtype)
def _set_default_dtype(d: torch.dtype) -> None:
    """PyTorch's default dtype is gradwire's too: it is what integers become."""
    _plain_set_default_dtype(d)
    if _find is not None:
        _follow_default_dtype()


def _follow_default_dtype() -> None:
    import gradwire as gw

    from .dtypes import OURS

    gw.set_default_dtype(OURS[torch.get_default_dtype()])


def _load() -> Callable[[Any], Callable[..., Any]]:
    """Import what computes, and register what it has beside PyTorch's compositions."""
    global _find
    if _find is None:
        from . import autocast, call_sites, dispatch, engine, processes, storages, taped

        for subject in _SUBJECTS:
            import_module(f".{subject}", __package__)
        storages.install()
        engine.install()
        call_sites.install()
        processes.install()
        aten = torch.library.Library("aten", "IMPL")
        for name in _with_kernels(dispatch.KERNELS.keys() | dispatch.COMPUTED.keys()):
            _register(aten, name)
        taped.install(aten)
        _libraries.extend([aten, *autocast.install()])
        _find = dispatch.found_for
        _follow_default_dtype()
        if _seed is not None:
            import_module(f"{__package__}.device_module").manual_seed(_seed)
    return _find


def _register(library: Any, name: str) -> None:
    library.impl(name, partial(run, _op(name)), _KEY)


def _op(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _names() -> list[str]:
    every = torch._C._dispatch_get_all_op_names()
    return [full.removeprefix("aten::") for full in every if full.startswith("aten::")]


def _has(name: str, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key))


def _composed_of_out_forms() -> list[str]:
    """The operations that PyTorch computes by the ``out=`` forms of the device, where it has none of its own; but for
    those that only change shape and strides, or copy a view, which are PyTorch's."""
    names = [name for name in _names() if _has(name, "CompositeExplicitAutogradNonFunctional")]
    return [name for name in names if torch.Tag.inplace_view not in _op(name).tags and not _copies_a_view(name)]


def _copies_a_view(name: str) -> bool:
    base = name.partition(".")[0]
    return base == "copy" or (base.endswith("_copy") and torch.Tag.view_copy in _op(name).tags)


def _with_kernels(kernels: Container[str]) -> list[str]:
    """The operations that PyTorch composes of others for any device, and that have a kernel here."""
    return [
        name
        for name in _names()
        if (name in kernels or name.partition(".")[0] in kernels)
        and _has(name, "CompositeExplicitAutograd")
        and not _has(name, "CompositeExplicitAutogradNonFunctional")
        and not name.endswith("out")
    ]


class _LateModule(ModuleType):
    """``torch.gradwire``, which is imported when one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)

    def _is_in_bad_fork(self) -> bool:
        return forked()

    def manual_seed_all(self, seed: int) -> None:
        """PyTorch calls it whenever a program seeds it. A device that nobody uses yet is not connected for that."""
        global _seed
        if _find is None:
            _seed = seed
        else:
            import_module(self.__name__).manual_seed(seed)


__all__ = ["install", "name_devices", "run"]
