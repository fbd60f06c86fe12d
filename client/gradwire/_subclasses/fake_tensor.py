"""``torch._subclasses.fake_tensor``: tensors without values. Here the meta device has those."""

from __future__ import annotations

from typing import Any

from .._core.surface import stand_ins

__all__: list[str] = []


class UnsupportedFakeTensorException(RuntimeError):
    """Never raised."""


class DynamicOutputShapeException(RuntimeError):
    """Never raised."""


class DataDependentOutputException(RuntimeError):
    """Never raised."""


def is_fake(x: Any) -> bool:
    """Never."""
    return False


def unset_fake_temporarily() -> Any:
    """``with`` without effect: there is no mode to leave."""
    from contextlib import nullcontext

    return nullcontext()


def maybe_get_fake_mode(t: Any) -> None:
    """None: no tensor belongs to such a mode."""
    return


stand_ins.fill(
    __name__, ("FakeTensor", "FakeTensorConverter", "FakeTensorMode"),
    'tensors on torch.device("meta") have shape and dtype without values',
)  # fmt: skip
