"""Tensors cut into views."""

from __future__ import annotations

from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError
from gradwire_protocol.shapes import canonical_dim

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def _cuts(name: str, either: Any, indices: Any, sections: int | None) -> Any:
    """The one that is given."""
    given = [v for v in (either, indices, sections) if v is not None]
    if len(given) != 1:
        raise ArgumentTypeError(f"{name} takes either indices or a number of sections, got {len(given)} of them")
    return given[0]


def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: int | None = None
) -> tuple[Any, ...]:
    """Views along a dimension: so many of nearly equal extent, or cut before the given positions.

    Raises:
        ArgumentError: for a tensor without dimensions, and positions that are no integers in a row.
    """
    indices_or_sections = _cuts("tensor_split", indices_or_sections, indices, sections)
    if not input.ndim:
        raise ArgumentError("tensor_split needs a tensor of at least 1 dimension, got one without")
    extent = input.shape[canonical_dim(dim, input.ndim)]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dtype is not dtypes.int64 or indices_or_sections.ndim > 1:
            raise ArgumentError(
                f"tensor_split: positions are an int64 number or a row of them, not {indices_or_sections._meta!r}"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ArgumentError(f"a tensor is split into at least one part, not {count}")
        small, larger = divmod(extent, count)
        cuts = [i * small + min(i, larger) for i in range(1, count)]
    else:
        cuts = list(indices_or_sections)
    bounds = zip([0, *cuts], [*cuts, extent], strict=True)
    return tuple(call("slice", input, dim, start, max(stop, start) if stop >= 0 else stop, 1) for start, stop in bounds)


def _split_along(name: str, dim: int) -> None:
    def function(
        input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: int | None = None
    ) -> tuple[Any, ...]:
        indices_or_sections = _cuts(name, indices_or_sections, indices, sections)
        along = 0 if name == "hsplit" and input.ndim == 1 else dim
        if input.ndim <= along:
            raise ArgumentError(f"{name} needs a tensor of at least {dim + 1} dimensions, got {input.ndim}")
        if indices_or_sections == 0 and isinstance(indices_or_sections, int):
            raise ArgumentError(f"{name} cuts into at least one part, not 0")
        if isinstance(indices_or_sections, int) and input.shape[along] % indices_or_sections:
            raise ArgumentError(f"{name}: an extent of {input.shape[along]} does not divide by {indices_or_sections}")
        return tensor_split(input, indices_or_sections, along)

    function.__name__, function.__doc__ = name, f"Views along dimension {dim}: so many of equal extent, or cut there."
    offer(function)


for _name, _dim in (("vsplit", 0), ("hsplit", 1), ("dsplit", 2)):
    _split_along(_name, _dim)


for _function in (tensor_split,):
    offer(_function)
