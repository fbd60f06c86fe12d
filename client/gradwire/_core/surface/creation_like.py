"""Tensors made like another: with its shape, and its dtype, device and order of dimensions unless told otherwise."""

from __future__ import annotations

from typing import Any, Final

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError

from ..context.late_signatures import called_as, takes_options
from ..context.layouts import asked_order, layout, memory_format
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..dispatch.overrides import left_to_others
from ..tensor.tensor import Tensor
from .creation import factory_options, finish, place
from .generator import takes_generator


def _like(
    name: str, self: Tensor, options: dict[str, Any], *more: Any, memory_format: memory_format | None = None
) -> Any:
    if not isinstance(self, Tensor):
        named = options if memory_format is None else options | {"memory_format": memory_format}
        made = left_to_others(_FUNCTIONS[name], (self, *more), named)
        if made is not NotImplemented:
            return made
    order = asked_order(memory_format, self.ndim, bool(self._levels)) if memory_format is not None else {}
    dtype, device, requires = factory_options(name, options)
    where = None if device is None else place(device)
    if where is not None and self.is_meta and where != "meta":
        self = _stand_in(self, where)
    return finish(call(name, self, *more, dtype=dtype, device=where, **order), requires)


def _stand_in(tensor: Tensor, where: str) -> Tensor:
    """Memory laid out like a meta tensor, on a device that has memory."""
    order = [dim for _, dim in sorted((-stride, dim) for dim, stride in enumerate(tensor.stride()))]
    made = call("empty", tuple(tensor.shape[dim] for dim in order), dtype=tensor.dtype, device=where)
    stand_in: Tensor = call("permute", made, tuple(order.index(dim) for dim, _ in enumerate(order)))
    return stand_in


@takes_options
def zeros_like(input: Tensor, *, memory_format: memory_format | None = None, **options: Any) -> Tensor:
    """Zeros with the shape, dtype and device of another tensor."""
    return _like("zeros_like", input, options, memory_format=memory_format)


@takes_options
def ones_like(input: Tensor, *, memory_format: memory_format | None = None, **options: Any) -> Tensor:
    """Ones with the shape, dtype and device of another tensor."""
    return _like("ones_like", input, options, memory_format=memory_format)


@takes_options
def empty_like(input: Tensor, *, memory_format: memory_format | None = None, **options: Any) -> Tensor:
    """Uninitialised, with the shape, dtype and device of another tensor."""
    return _like("empty_like", input, options, memory_format=memory_format)


@takes_generator
@takes_options
def rand_like(input: Tensor, *, memory_format: memory_format | None = None, **options: Any) -> Tensor:
    """Uniform random numbers with the shape, dtype and device of another tensor."""
    return _like("rand_like", input, options, memory_format=memory_format)


@takes_generator
@takes_options
def randn_like(input: Tensor, *, memory_format: memory_format | None = None, **options: Any) -> Tensor:
    """Standard normal random numbers with the shape, dtype and device of another tensor."""
    return _like("randn_like", input, options, memory_format=memory_format)


@takes_options
def full_like(
    input: Tensor, fill_value: complex | Tensor, *, memory_format: memory_format | None = None, **options: Any
) -> Tensor:
    """One value everywhere, with the shape, dtype and device of another tensor."""
    return _like("full_like", input, options, fill_value, memory_format=memory_format)


def _randint_like_form(
    input: Tensor, low: int, high: int | None = None, *, dtype: DType | None = None, layout: layout | None = None,
    device: Device | str | int | None = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:  # fmt: skip
    raise NotImplementedError


@takes_generator
@called_as(_randint_like_form)
def randint_like(input: Tensor, *bounds: int, memory_format: memory_format | None = None, **options: Any) -> Tensor:
    """Random integers from [low, high), with the shape of another tensor."""
    low = options.pop("low", 0)
    values = [*bounds, *([options.pop("high")] if "high" in options else [])]
    if len(values) == 1:
        values.insert(0, low)
    if len(values) != 2:
        raise ArgumentTypeError(f"randint_like takes high, or low and high, not {len(values)} bounds")
    return _like("randint_like", input, options, *values, memory_format=memory_format)


_FUNCTIONS: Final = {
    function.__name__: function
    for function in (zeros_like, ones_like, empty_like, rand_like, randn_like, full_like, randint_like)
}
"""By name: what a class that is no tensor is asked for."""
