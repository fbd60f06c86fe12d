"""Random numbers: normal ones of any mean."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.shapes import broadcast

from ..creation import place
from ..dispatch import call
from ..generator import takes_generator
from ..methods import offer
from ..sessions import current_session
from ..tensor import Tensor


def normal(mean: Any, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Normal random numbers: of tensors of means and deviations, or of a size."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        like = mean if isinstance(mean, Tensor) else std
        other = std if like is mean else mean
        shape = broadcast(tuple(like.shape), tuple(other.shape)) if isinstance(other, Tensor) else tuple(like.shape)
        return call("randn", shape, dtype=like.dtype, device=like._meta.device) * std + mean
    if size is None:
        raise ArgumentTypeError("normal of numbers needs a size")
    dtype = options.get("dtype") or current_session().default_dtype
    return call("randn", tuple(size), dtype=dtype, device=place(options.get("device"))) * std + mean


offer(takes_generator(normal), method=False)
