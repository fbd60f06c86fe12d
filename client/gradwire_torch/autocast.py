"""Autocast of the device: operands are cast as the op table says for gradwire's own autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from gradwire_protocol.autocast import Precision
from gradwire_protocol.table import TABLE

from . import devices
from .device_type import NAME

_KEY: Final = "AutocastPrivateUse1"
_ACTS: Final = set(Precision) - {Precision.GIVEN, Precision.REFUSED}
_without: Final = torch._C._ExcludeDispatchKeyGuard
_KEYS: Final = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)  # type: ignore[attr-defined]


def install() -> list[Any]:
    """Register what autocast does with PyTorch's operations; the libraries that hold it."""
    aten = torch.library.Library("aten", "IMPL")
    for name in TABLE:
        packet = getattr(torch.ops.aten, name, None)
        if packet is None or not _ACTS.intersection(TABLE[name].autocast):
            continue
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if not op._schema.is_mutable and not op.is_view:
                full = name if overload == "default" else f"{name}.{overload}"
                aten.impl(full, _casting(op, name), _KEY)
    return [aten]


def _casting(op: Any, name: str) -> Callable[..., Any]:
    policy = TABLE[name].autocast

    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = _dtype(policy.cuda if devices.names()[0] != "cpu" else policy.cpu, [*args, *kwargs.values()])
        with _without(_KEYS):
            if wanted is None:
                return op(*args, **kwargs)
            return op(*[_cast(a, wanted) for a in args], **{k: _cast(v, wanted) for k, v in kwargs.items()})

    return call


def _dtype(precision: Precision, values: list[Any]) -> torch.dtype | None:
    if precision is Precision.LOWER:
        return torch.get_autocast_dtype(NAME)
    if precision is Precision.FLOAT32:
        return torch.float32
    dtypes = [one.dtype for one in _tensors(values) if one.dtype.is_floating_point]
    if precision is Precision.WIDEST and dtypes:
        found = dtypes[0]
        for dtype in dtypes[1:]:
            found = torch.promote_types(found, dtype)
        return found
    if precision is Precision.FIRST and dtypes and dtypes[0] in (torch.float16, torch.bfloat16):
        return dtypes[0]
    return None


def _tensors(values: list[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(one for one in value if isinstance(one, torch.Tensor))
    return found


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        here = value.device.type == NAME and value.dtype.is_floating_point and value.dtype != torch.float64
        return value.to(dtype) if here and value.dtype is not dtype else value
    if isinstance(value, (list, tuple)):
        return [_cast(one, dtype) for one in value]
    return value
