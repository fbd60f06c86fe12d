"""Tensors of a program's own classes: their ops are left to ``__torch_function__``, which keeps the class by default.

What is looked at is each op of the table: a function that is several ops here is left to the class op by op. While
there is no tensor of such a class, and no mode, no op looks for one.
"""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from ..context.late_signatures import called_as
from ..dispatch.class_conversion import as_class, as_subclass, converted
from ..dispatch.dispatch import call
from ..dispatch.overrides import refuses_overrides, within, without_classes
from ..tensor.tensor import Moved as MOVED
from ..tensor.tensor import Tensor
from .creation import legacy_tensor
from .methods import attach


@classmethod  # type: ignore[misc]
def _torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run a function and give its results this class. A subclass that defines its own decides what is run."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with without_classes():
        made = func(*args, **(kwargs or {}))
    return converted(made, cls, args)


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
    """The memory of a tensor as one of a subclass, without its history."""
    if not issubclass(cls, Tensor):
        raise ArgumentTypeError(f"a tensor can become one of a subclass of Tensor, not of {cls!r:.60}")
    with without_classes(), within(()):
        made = as_class(call("detach", data), cls)
    return made.requires_grad_() if require_grad else made


attach("__torch_function__", _torch_function)
MOVED.__torch_function__ = classmethod(refuses_overrides)  # type: ignore[method-assign, assignment]
attach("as_subclass", as_subclass)
attach("_make_subclass", staticmethod(_make_subclass))


def _new_form(cls: type[Tensor], *args: Any, device: Any = None) -> Tensor:
    raise NotImplementedError


@called_as(_new_form)
def _new_tensor(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    """``Tensor(...)``: see :func:`.creation.legacy_tensor`."""
    made = legacy_tensor(cls, *args, **kwargs)
    return made if cls is Tensor else as_class(made, cls)


_new_tensor.__name__ = "__new__"
Tensor.__new__ = _new_tensor  # type: ignore[method-assign, assignment]
