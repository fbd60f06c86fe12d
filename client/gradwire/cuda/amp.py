"""``torch.cuda.amp``: the older names of :mod:`gradwire.amp`, which mean the GPU without saying so."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.dtypes import DType, float16

from .. import amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """``gradwire.amp.autocast("cuda", ...)``."""

    def __init__(self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """``gradwire.amp.GradScaler("cuda", ...)``."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: DType | None = None) -> Any:
    """``gradwire.amp.custom_fwd(fwd, device_type="cuda", ...)``."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """``gradwire.amp.custom_bwd(bwd, device_type="cuda")``."""
    return amp.custom_bwd(bwd, device_type="cuda")
