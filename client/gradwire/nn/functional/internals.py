"""Functions of ``torch.nn.functional`` that are not public in PyTorch and that libraries import all the same."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradwire_protocol.dtypes import bool_

from ..._core.dispatch.dispatch import call
from ..._core.tensor.tensor import Tensor
from ...overrides import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from .. import _reduction as _Reduction
from ..modules.utils import _list_with_default, _pair, _single, _triple

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES", "_Reduction", "_canonical_mask",
    "_get_softmax_dim", "_in_projection", "_in_projection_packed", "_list_with_default", "_none_or_dtype", "_pair",
    "_single", "_triple", "_verify_batch_size", "_verify_spatial_size", "assert_int_or_pair", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
]  # fmt: skip

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _verify_batch_size(size: Any) -> None:
    """Batch statistics need more than one value per channel.

    Raises:
        ValueError: for a shape with one.
    """
    if math.prod((size[0], *size[2:])) == 1:
        raise ValueError(f"training needs more than one value per channel, an input of {list(size)} has one")


def _verify_spatial_size(size: Any) -> None:
    """Statistics of an instance need more than one element.

    Raises:
        ValueError: for a shape with one.
    """
    if math.prod(size[2:]) == 1:
        raise ValueError(f"training needs more than one element per channel, an input of {list(size)} has one")


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(f"{name} without dim= takes a dimension by itself: say which", stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def _none_or_dtype(input: Tensor | None) -> Any:
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Tensor | None:
    """A mask as numbers that are added to scores."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype is not bool_:
        raise AssertionError(f"{mask_name} is bool or floating point, not {mask.dtype!r}")
    found: Tensor = call("masked_fill", call("zeros_like", mask, dtype=target_type), mask, -math.inf)
    return found


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Queries, keys and values, projected by three weights that are stacked."""
    weights = call("chunk", w, 3, 0)
    biases = [None] * 3 if b is None else call("chunk", b, 3, 0)
    return [call("linear", x, weight, bias) for x, weight, bias in zip((q, k, v), weights, biases, strict=True)]


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Tensor | None = None,
    b_k: Tensor | None = None, b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Queries, keys and values, each projected by its weight."""
    return call("linear", q, w_q, b_q), call("linear", k, w_k, b_k), call("linear", v, w_v, b_v)


def assert_int_or_pair(arg: list[int], arg_name: str, message: str) -> None:
    """One int, or two.

    Raises:
        AssertionError: for something else.
    """
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))
