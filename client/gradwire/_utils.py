"""``torch._utils``: the functions that pickles name, which make tensors of what pickles keep of them."""

from __future__ import annotations

from typing import Any

from ._core.pickles import by_value as _by_value
from ._core.surface.creation import empty as _empty
from ._core.surface.generator import Generator as _Generator
from .nn import Parameter as _Parameter

__all__: list[str] = []


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    return _by_value.rebuilt(storage, storage_offset, size, stride, False, storage.dtype)


def _rebuild_tensor_v2(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any,
    metadata: Any = None,
) -> Any:  # fmt: skip
    return _by_value.rebuilt(storage, storage_offset, size, stride, requires_grad, storage.dtype)


def _rebuild_tensor_v3(
    storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any, dtype: Any,
    metadata: Any = None,
) -> Any:  # fmt: skip
    return _by_value.rebuilt(storage, storage_offset, size, stride, requires_grad, dtype)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Any:
    made = _empty(0, dtype=dtype, device="meta").new_empty_strided(size, stride)
    return made.requires_grad_() if requires_grad else made


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    return _Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    return _by_value.with_state(_Parameter(data, requires_grad), state)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    return _by_value.rebuilt_as(new_type, func(*args), state)


def _rebuild_generator(device: str, seed: int, state: Any) -> Any:
    return _Generator(device).manual_seed(seed).set_state(state)
