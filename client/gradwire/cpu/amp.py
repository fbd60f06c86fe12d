"""``torch.cpu.amp``: the older names of :mod:`gradwire.amp`, which mean the CPU without saying so."""

from __future__ import annotations

import warnings

from gradwire_protocol.dtypes import DType, bfloat16

from .. import amp

__all__ = ["GradScaler", "autocast"]


def _deprecated(name: str) -> None:
    warnings.warn(f"cpu.amp.{name} is an old name: use amp.{name}('cpu', ...)", FutureWarning, stacklevel=3)


class autocast(amp.autocast):
    """``gradwire.amp.autocast("cpu", ...)``."""

    def __init__(self, enabled: bool = True, dtype: DType = bfloat16, cache_enabled: bool = True) -> None:
        _deprecated("autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """``gradwire.amp.GradScaler("cpu", ...)``."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        _deprecated("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
