"""Registers the device, its module and its operations with PyTorch."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, Final

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from . import device_module, taped
from .dispatch import COMPUTED, KERNELS, run

_KEY: Final = "PrivateUse1"
_SUBJECTS: Final = (
    "activations", "convolution", "creation", "fourier", "indexing", "linear_algebra", "losses", "normalization",
    "optimizers", "pooling", "random_numbers", "ranges", "recurrent", "reductions", "resampling", "views",
)  # fmt: skip
"""Modules that register operations as they are imported."""
_libraries: Final[list[Any]] = []
"""What is registered stays as long as these do."""


def install() -> None:
    """Register everything, once."""
    for subject in _SUBJECTS:
        import_module(f".{subject}", __package__)
    _setup_privateuseone_for_python_backend("gradwire", backend_module=device_module)
    anything = torch.library.Library("_", "IMPL")
    anything.fallback(run, _KEY)
    aten = torch.library.Library("aten", "IMPL")
    _libraries.extend([anything, aten])
    for name in _own_ops():
        aten.impl(name, partial(run, _op(name)), _KEY)
    taped.install(aten)


def _op(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _own_ops() -> list[str]:
    """The operations that PyTorch would compose of others' ``out=`` forms, and those with a kernel here."""
    own = []
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        name = full.removeprefix("aten::")
        structured = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeExplicitAutogradNonFunctional")
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeExplicitAutograd")
        if torch.Tag.inplace_view in _op(name).tags and name not in KERNELS:
            continue  # only shape and strides change, and these are PyTorch's
        mentioned = any(n in where for n in (name, name.partition(".")[0]) for where in (KERNELS, COMPUTED))
        if structured or (composite and mentioned and not name.endswith("out")):
            own.append(name)
    return own
