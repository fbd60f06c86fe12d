"""Registers the device, its module and its operations with PyTorch."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from . import accelerator, autocast, creation, device_module, differentiation, storages, views  # noqa: F401
from .dispatch import KERNELS, run

_KEY: Final = "PrivateUse1"
_libraries: Final[list[Any]] = []
"""What is registered stays as long as these do."""


def install() -> None:
    """Register everything, once."""
    _setup_privateuseone_for_python_backend("gradwire", backend_module=device_module)
    storages.install()
    accelerator.install()
    anything = torch.library.Library("_", "IMPL")
    anything.fallback(run, _KEY)
    aten = torch.library.Library("aten", "IMPL")
    _libraries.extend([anything, aten, *autocast.install()])
    for name in _own_ops():
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        aten.impl(name, partial(run, op), _KEY)


def _own_ops() -> list[str]:
    """The operations that PyTorch would compose of others' ``out=`` forms, and those with a kernel here."""
    own = []
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        name = full.removeprefix("aten::")
        structured = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeExplicitAutogradNonFunctional")
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeExplicitAutograd")
        mentioned = name in KERNELS or name.partition(".")[0] in KERNELS
        if structured or (composite and mentioned and not name.endswith("out")):
            own.append(name)
    return own
