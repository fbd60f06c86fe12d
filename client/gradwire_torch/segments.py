"""Reductions of the segments of a dimension."""

from __future__ import annotations

from typing import Any, Final

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes, gradients_by

_HOW: Final = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0), "max": ("amax", float("-inf")),
               "min": ("amin", float("inf"))}  # fmt: skip
"""Reductions as gradwire calls them, with what an empty segment gives."""


def _reduced(data: Any, reduce: str, lengths: Any, axis: int, initial: Any) -> Any:
    """Reduce along ``axis``, where the lengths of segments are the last dimension of ``lengths``."""
    how, neutral = _HOW[reduce]
    count = lengths.shape[-1]
    ends = lengths.cumsum(-1)
    places = gw.arange(data.shape[axis], dtype=ends.dtype, device=data.device).expand(
        (*ends.shape[:-1], data.shape[axis])
    )
    segments = gw.searchsorted(ends, places.contiguous(), right=True)
    rest = (1,) * (data.ndim - axis - 1)
    segments = segments.reshape((*segments.shape, *rest)).expand(tuple(data.shape))
    shape = list(data.shape)
    shape[axis] = count + 1  # the last one takes what is in no segment
    start = data.new_full(shape, neutral if initial is None else initial)
    found = start.scatter_reduce(axis, segments, data, how).narrow(axis, 0, count)
    if reduce != "mean":
        return found
    sizes = lengths.reshape((*lengths.shape, *rest))
    divided = found / sizes.clamp(min=1).to(data.dtype)
    return divided if initial is not None else divided.masked_fill(sizes == 0, float("nan"))


def _lengths(lengths: Any, offsets: Any) -> Any:
    return offsets.diff(dim=-1) if lengths is None else lengths


@computes("segment_reduce")
def segment_reduce(
    data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
    unsafe: bool = False, initial: Any = None,
) -> Any:  # fmt: skip
    """By the lengths of segments or by where they begin.

    Raises:
        ValueError: at the next read, for lengths that are not those of the dimension.
    """
    if not unsafe and lengths is not None:
        whole = (lengths >= 0).all(-1) & (lengths.sum(-1) == data.shape[axis])
        call("check_all", whole, f"segment_reduce: the lengths do not add up to the dimension's {data.shape[axis]}")
    return _reduced(data, reduce, _lengths(lengths, offsets), axis, initial).contiguous()


@computes("_segment_reduce_backward")
def segment_reduce_backward(
    grad: Any, output: Any, data: Any, reduce: str, *, lengths: Any = None, offsets: Any = None, axis: int = 0,
    initial: Any = None,
) -> Any:  # fmt: skip
    sizes = _lengths(lengths, offsets)
    return gradients_by(lambda x: _reduced(x, reduce, sizes, axis, initial), [data], [0], grad)[0]
