"""``torch._tensor_str``: how tensors are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._core.tensor.printing import _current as PRINT_OPTS
from ._core.tensor.printing import format_tensor, get_printoptions, printoptions, set_printoptions
from ._core.tensor.tensor import Tensor

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor."""
    return _str_intern(self, tensor_contents=tensor_contents)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor; with other ``tensor_contents``, if given, between the brackets."""
    if tensor_contents is None:
        return repr(inp)
    return _add_suffixes("tensor(" + tensor_contents, [], len("tensor("), force_newline=False)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements of a tensor as text, with ``indent`` columns before further lines."""
    plain = self.detach()
    dtype = self.dtype.name
    text = format_tensor(
        plain.numpy(), shape=self.shape, dtype=dtype, prefix=" " * indent, default_dtype=dtype, default_complex=dtype
    )
    return text[indent:].removesuffix(")").partition(", size=")[0]


def _add_suffixes(tensor_str: str, suffixes: Sequence[Any], indent: int, force_newline: bool) -> str:
    """Text of a tensor with entries after it, each on the last line where it fits, and the closing bracket."""
    lines = [tensor_str]
    width = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in map(str, suffixes):
        if force_newline or width + len(suffix) + 2 > PRINT_OPTS.linewidth:
            lines.append(",\n" + " " * indent + suffix)
            width, force_newline = indent + len(suffix), False
        else:
            lines.append(", " + suffix)
            width += len(suffix) + 2
    return "".join([*lines, ")"])
