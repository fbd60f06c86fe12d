"""``torch.utils.data._utils.collate``: batches out of entries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...._core.surface.creation import tensor
from ...._core.tensor.tensor import Tensor
from ..collate import Collate, collate, collate_tensor_fn, default_collate, default_collate_fn_map, default_convert

__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn", "collate_numpy_scalar_fn",
    "collate_str_fn", "collate_tensor_fn", "default_collate", "default_collate_err_msg_format",
    "default_collate_fn_map", "default_convert", "np_str_obj_array_pattern",
]  # fmt: skip

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "a batch is made of tensors, arrays, numbers, dicts and lists, not of {}: pass a collate_fn"
)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Tensor:
    """Arrays, stacked."""
    return collate(batch)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Tensor:
    """Numbers of NumPy, as a tensor."""
    return tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Tensor:
    """Numbers, as a tensor of float64."""
    return tensor(np.asarray(batch, np.float64))


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Tensor:
    """Integers, as a tensor."""
    return tensor(np.asarray(batch, np.bool_ if isinstance(batch[0], bool) else np.int64))


def collate_str_fn(batch: Any, *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Any:
    """Texts, as they are."""
    return batch
