"""Random numbers that follow parameters: normal ones of any mean, gamma and Dirichlet variates."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any, Final

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ..context.argument_types import Device
from ..context.layouts import check_layout, layout
from ..dispatch.dispatch import call
from ..dispatch.out_argument import accepts_out
from ..surface.creation import finish, place
from ..surface.generator import takes_generator
from ..surface.methods import attach, offer
from ..tensor.tensor import Tensor


def normal(
    mean: float | Tensor = 0.0, std: float | Tensor = 1.0, size: Sequence[int] | None = None, *,
    dtype: DType | None = None, device: Device = None, requires_grad: bool = False, layout: layout | None = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal random numbers: of tensors of means and deviations, or of numbers and a size.

    The gradients of tensors are zero: to learn them, compute ``mean + std * randn(...)``.
    """
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise ArgumentTypeError("normal of numbers needs a size")
        check_layout("normal", layout)
        return finish(call("normal", mean, std, tuple(size), dtype, place(device)), requires_grad)
    if isinstance(mean, Tensor) and isinstance(std, Tensor) and std.dtype is not mean.dtype:
        std = std.to(mean.dtype)
    return call("normal", mean, std)


def _standard_gamma(self: Tensor) -> Tensor:
    """Gamma variates of rate 1 for a tensor of concentrations; gradients follow the quantiles."""
    return call("standard_gamma", self)


def _sample_dirichlet(self: Tensor) -> Tensor:
    """Dirichlet variates for concentrations along the last dimension, with gradients."""
    return call("sample_dirichlet", self)


for _function in (normal, _standard_gamma, _sample_dirichlet):
    offer(takes_generator(accepts_out(_function)), method=False)


_INT64: Final = 1 << 63
EXACT: Final = {"float16": 1 << 11, "bfloat16": 1 << 8, "float32": 1 << 24, "float64": 1 << 53}
"""How far from 0 each float dtype holds every integer."""


def _bound(value: Any) -> int:
    """A bound of :func:`random_` as an int.

    Raises:
        ArgumentTypeError: for anything but an int or a 0-dim integer tensor.
        ArgumentValueError: for one that 64 bits do not hold.
    """
    if isinstance(value, bool):
        raise ArgumentTypeError(f"random_: a bound is an int, not {value}")
    try:
        found = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"random_: a bound is an int, not {value!r:.60}") from None
    if not -_INT64 <= found < _INT64:
        raise ArgumentValueError(f"random_: {found} is outside of -2**63 to 2**63 - 1")
    return found


@takes_generator
def random_(self: Tensor, *bounds: Any, **named: Any) -> Tensor:
    """Fill with integers: ``random_(to)`` with those from 0 up to but without ``to``, ``random_(from, to)`` from
    ``from`` on.

    Without ``to``, or where it is None after ``from``, they go up to the largest integer that the dtype holds exactly.
    """
    names = ("from", "to") if len(bounds) != 1 or "to" in named else ("to",)
    given = dict(zip(names, bounds, strict=False)) | named
    if len(bounds) > len(names) or len(given) < len(bounds) + len(named) or given.keys() - {"from", "to"}:
        raise ArgumentTypeError(f"random_ takes (), (to) or (from, to), not {len(bounds)} values and {sorted(named)}")
    if not given:
        return call("random_", self)
    if "to" not in given or (given["to"] is None and "from" not in given):
        raise ArgumentTypeError(f"random_ takes (), (to) or (from, to), not {given}")
    low, high = _bound(given.get("from", 0)), given["to"]
    if high is not None:
        high = _bound(high)
    exact = EXACT.get(self.dtype.name)
    if exact is not None:
        for name, bound in (("from", low),) if high is None else (("from", low), ("to - 1", high - 1)):
            if not -exact <= bound <= exact:
                warnings.warn(
                    f"random_: {name} is {bound}, {self.dtype.name} holds all integers from {-exact} to {exact} only",
                    UserWarning,
                    stacklevel=3,
                )
    return call("random_", self, low, high)


attach("random_", random_)
