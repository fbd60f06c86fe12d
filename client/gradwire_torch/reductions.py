"""Scans, checks, and elementwise operations that have no function of their name."""

from __future__ import annotations

from typing import Any

import torch

from gradwire._core.dispatch.dispatch import call

from .dispatch import computes, kernel
from .memory import ours


@computes("_logcumsumexp")
def logcumsumexp(self: Any, dim: int) -> Any:
    return call("logcumsumexp", self, dim)


@computes("mode")
def mode(self: Any, dim: int = -1, keepdim: bool = False) -> Any:
    return tuple(call("mode", self, dim, keepdim))


def _extreme(name: str, op: str) -> None:
    @kernel(f"{name}.default")
    def scan(self: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int) -> None:
        found, places = call(op, ours(self), dim)
        ours(values).copy_(found)
        ours(indices).copy_(places)


_extreme("_cummax_helper", "cummax")
_extreme("_cummin_helper", "cummin")


@kernel("_assert_async.default", "_assert_async.msg")
def assert_async(self: torch.Tensor, assert_msg: str = "an assertion failed") -> None:
    """Told at a later read, without a round trip."""
    call("check_all", ours(self).bool(), assert_msg)


@kernel("record_stream.default")
def record_stream(self: torch.Tensor, s: Any) -> None:
    """What is recorded is computed in order."""


@computes("_aminmax")
def aminmax(self: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return tuple(call("aminmax", self, dim, keepdim))


@computes("__lshift__")
def left_shift(self: Any, other: Any) -> Any:
    return call("bitwise_left_shift", self, other)


@computes("__rshift__")
def right_shift(self: Any, other: Any) -> Any:
    return call("bitwise_right_shift", self, other)


@kernel("conj_physical_")
def conj_physical_(self: torch.Tensor) -> torch.Tensor:
    """In place."""
    ours(self).conj_physical_()
    return self
