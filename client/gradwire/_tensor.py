"""``torch._tensor``: the class of tensors, and how tensors of a program's own classes are made again from files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core.tensor.tensor import Tensor
from ._utils import _set_obj_state

__all__ = ["Tensor"]


def _convert(ret: Any, cls: type) -> Any:
    """A result, with its tensors in class ``cls``."""
    if cls is Tensor:
        return ret
    if isinstance(ret, Tensor) and not isinstance(ret, cls):
        return ret.as_subclass(cls)
    return type(ret)(_convert(item, cls) for item in ret) if isinstance(ret, (tuple, list)) else ret


def _rebuild_from_type(func: Callable[..., Any], type: type, args: Any, dict: dict[str, Any]) -> Any:
    """A tensor of a class that a file names, with its attributes."""
    if type is Tensor:
        return func(*args)
    made = func(*args).as_subclass(type)
    made.__dict__ = dict
    return made


def _rebuild_from_type_v2(func: Callable[..., Any], new_type: type, args: Any, state: Any) -> Any:
    """A tensor of a class that a file names, with its state, through the class's ``__setstate__`` if it has one."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    own = getattr(type(made), "__setstate__", None)
    if own is not None and own is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)
