"""Images in another size or order, and tables, mapped: samples join the batch where there is one."""

from __future__ import annotations

from typing import Any

from ..functional import F
from ..tensor import Tensor
from .level import Level, rule, sample_by_sample


@rule("interpolate", "interpolate_backward", "channel_shuffle")
def in_batch(x: Level, tensor: Tensor, *options: Any) -> Any:
    samples, batch, *rest = x.inside(tensor).shape
    found = x.call(F.reshape(x.inside(tensor), (samples * batch, *rest)), *options)
    return F.reshape(found, (samples, batch, *found.shape[1:]))


@rule("pixel_shuffle", "pixel_unshuffle")
def in_front(x: Level, tensor: Tensor, factor: int) -> Any:
    return x.call(x.inside(tensor), factor)


@rule("grid_sampler", "grid_gather")
def points(x: Level, tensor: Tensor, grid: Tensor, *options: Any) -> Any:
    inner, points = x.front(tensor), x.front(grid)
    samples, batch, *rest = inner.shape
    found = x.call(
        F.reshape(inner, (samples * batch, *rest)), F.reshape(points, (samples * batch, *points.shape[2:])), *options
    )
    return F.reshape(found, (samples, batch, *found.shape[1:]))


@rule("embedding_renorm_")
def embedding_renorm_(x: Level, *values: Any) -> Any:
    return sample_by_sample(x, list(values))
