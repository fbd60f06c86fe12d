"""Gradient scaling (Micikevicius et al., "Mixed precision training", 2018, section 3.2), with a scale that adapts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType, float32, float64
from gradwire_protocol.meta import meta

from ..autograd.registry import control
from ..autograd.tensor import Storage, Tensor
from ..runtime.arrays import Array, Namespace, native


def _working(xp: Namespace, array: Array, dtype: DType) -> Any:
    return array.astype(native(float32)) if dtype.is_low_precision else array


@control("unscale_gradients", writes="gradients")
def unscale_gradients(engine: Any, params: list[Tensor], scale: Tensor) -> Tensor:
    backend = engine.backends[scale.device]
    with np.errstate(divide="ignore", over="ignore"):
        factor = float(np.float32(1.0 / np.float64(engine.to_numpy(scale).reshape(()))))
    found = backend.xp.zeros((), np.float32)
    seen: set[int] = set()
    for param in params:
        gradient = param.grad
        if gradient is None or id(gradient) in seen:
            continue
        seen.add(id(gradient))
        xp = engine.backends[gradient.device].xp
        values = _working(xp, gradient.array, gradient.dtype)
        bad = ~xp.isfinite(values).all()
        if gradient.device != scale.device:
            bad = backend.from_host(engine.backends[gradient.device].to_host(xp.asarray(bad)))
        found = backend.xp.maximum(found, backend.xp.asarray(bad).astype(np.float32))
        exact = values.dtype.type(factor)
        gradient.array[...] = (values * exact).astype(gradient.array.dtype)
        gradient.storage.version += 1
    found = backend.xp.asarray(found)
    return Tensor(engine, found, meta((), float32, scale.device), Storage(found, engine.account))


@control("update_scale", writes="operands")
def update_scale(
    engine: Any, scale: Tensor, growth_tracker: Tensor, found_infs: list[Tensor], growth_factor: float,
    backoff_factor: float, growth_interval: int,
) -> None:  # fmt: skip
    wide = native(float64 if scale.dtype is float64 else float32)
    if any(bool(found.array.any()) for found in found_infs):
        scale.array[...] = scale.array * wide.type(backoff_factor)
        growth_tracker.array[...] = 0
    else:
        count = int(growth_tracker.array.reshape(())) + 1
        if count == growth_interval:
            grown = scale.array * wide.type(growth_factor)
            if bool(engine.backends[scale.device].xp.isfinite(grown).all()):
                scale.array[...] = grown
            count = 0
        growth_tracker.array[...] = count
    scale.storage.version += 1
    growth_tracker.storage.version += 1
