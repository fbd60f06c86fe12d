"""The functions that pickles name, which make tensors of what pickles keep of them: those of ``torch._utils``."""

from __future__ import annotations

from typing import Any

from ..modules.parameter import Parameter, alias_as
from ..surface.creation import empty
from ..surface.generator import Generator


def _rebuilt(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, dtype: Any) -> Any:
    """A tensor that shows a part of a storage."""
    made: Any = empty(0, dtype=dtype, device=storage.device)
    made.set_(storage.untyped(), offset, tuple(size), tuple(stride))
    return made.requires_grad_() if requires_grad else made


def _rebuilt_as(kind: Any, made: Any, state: Any) -> Any:
    """A tensor as one of another class, with attributes."""
    if type(made) is not kind:
        requires = made.requires_grad
        made = alias_as(kind, made)
        if requires:
            made.requires_grad_()
    return _with_state(made, state)


def _with_state(made: Any, state: Any) -> Any:
    """A tensor with the attributes that the program gave it."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for part in (attributes, slots):
        for name, value in (part or {}).items():
            setattr(made, name, value)
    return made


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    return _rebuilt(storage, storage_offset, size, stride, False, storage.dtype)


def _rebuild_tensor_v2(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any,
    metadata: Any = None,
) -> Any:  # fmt: skip
    return _rebuilt(storage, storage_offset, size, stride, requires_grad, storage.dtype)


def _rebuild_tensor_v3(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any, dtype: Any,
    metadata: Any = None,
) -> Any:  # fmt: skip
    return _rebuilt(storage, storage_offset, size, stride, requires_grad, dtype)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    made = empty(0, dtype=dtype, device="meta").new_empty_strided(size, stride)
    return made.requires_grad_() if requires_grad else made


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    return _with_state(Parameter(data, requires_grad), state)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    return _rebuilt_as(new_type, func(*args), state)


def _rebuild_generator(device: str, seed: int, state: Any) -> Any:
    return Generator(device).manual_seed(seed).set_state(state)
