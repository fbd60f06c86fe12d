"""The forms of PyTorch's views whose results are copies, and whose cuts are not checked for overlap (``unsafe_``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..dispatch import call
from ..layouts import check_order, contiguous_format
from ..methods import FUNCTIONS, offer
from ..tensor import Tensor

VIEWS = (
    "alias", "diagonal", "expand", "narrow", "permute", "select", "slice", "split", "squeeze", "t",
    "transpose", "unbind", "unfold", "unsqueeze", "view", "view_as_real", "view_as_complex",
)  # fmt: skip


@offer
def clone(input: Tensor, *, memory_format: Any = None) -> Any:
    """A copy that gradients flow through: in row-major order for ``contiguous_format``, else as the tensor lies."""
    check_order(memory_format, input.ndim)
    if memory_format is contiguous_format and not input.is_contiguous():
        return call("contiguous", input)
    return call("clone", input)


def copying(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    """``name_copy``: a function that returns copies of what ``view`` returns."""

    def function(*args: Any, **kwargs: Any) -> Any:
        shown = view(*args, **kwargs)
        if isinstance(shown, tuple):
            return tuple(call("clone", part) for part in shown)
        return call("clone", shown).contiguous()

    function.__name__, function.__doc__ = f"{name}_copy", f"What :func:`{name}` shows, in new memory."
    return function


def _view_of(name: str) -> Callable[..., Any]:
    found: Any = FUNCTIONS.get(name) or getattr(Tensor, name, None)
    if found is None:
        return lambda *args, **kwargs: call(name, *args, **kwargs)
    return found  # type: ignore[no-any-return]


for _name in VIEWS:
    offer(copying(_name, _view_of(_name)), method=_name == "narrow")


def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Views of the given extents along a dimension."""
    return call("split", input, tuple(split_sizes), dim)


def split_with_sizes_copy(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Copies of the given extents along a dimension."""
    return tuple(call("clone", part).contiguous() for part in split_with_sizes(input, split_sizes, dim))


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """:func:`chunk` without autograd's knowledge that the parts share memory: they may be changed in place."""
    if chunks < 1:
        raise ArgumentError(f"unsafe_chunk: there are at least 1 chunks, not {chunks}")
    extent = input.shape[dim]
    if extent == 0:
        return call("unsafe_split", input, (0,) * chunks, dim)
    return call("unsafe_split", input, -(-extent // chunks), dim)


def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """:func:`split` without autograd's knowledge that the parts share memory: they may be changed in place."""
    return call("unsafe_split", input, split_size, dim)


def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """:func:`unsafe_split` into parts of the given extents."""
    return call("unsafe_split", input, tuple(split_sizes), dim)


offer(split_with_sizes)
for _function in (unsafe_chunk, unsafe_split, unsafe_split_with_sizes):
    offer(_function)
offer(split_with_sizes_copy, method=False)
