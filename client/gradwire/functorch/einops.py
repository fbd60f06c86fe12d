"""``functorch.einops``: dimensions that are split, joined and reordered by a pattern of names."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.errors import ArgumentValueError

from .._core.tensor.tensor import Tensor

__all__ = ["rearrange"]


def _groups(side: str, pattern: str) -> list[list[str]]:
    """The dimensions of one side, each as the names that it is made of.

    Raises:
        ArgumentValueError: for brackets that do not match, and names that are none.
    """
    found: list[list[str]] = []
    inside: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(" and inside is None:
            inside = []
        elif word == ")" and inside is not None:
            found.append(inside)
            inside = None
        elif word in "()" or not (word.isidentifier() or word in ("...", "1")):
            raise ArgumentValueError(f"rearrange: {word!r} is not understood in the pattern {pattern!r}")
        elif inside is None:
            found.append([] if word == "1" else [word])
        else:
            inside += [] if word == "1" else [word]
    if inside is not None:
        raise ArgumentValueError(f"rearrange: a bracket is not closed in the pattern {pattern!r}")
    return found


def _names(groups: list[list[str]], pattern: str) -> list[str]:
    names = [name for group in groups for name in group]
    if len(set(names)) < len(names):
        raise ArgumentValueError(f"rearrange: a name comes twice on one side of the pattern {pattern!r}")
    return names


def _spread(groups: list[list[str]], count: int) -> list[list[str]]:
    """The groups with names of their own for the dimensions that an ellipsis stands for."""
    hidden = [f"...{i}" for i in range(count)]
    found: list[list[str]] = []
    for group in groups:
        if group == ["..."]:
            found += [[name] for name in hidden]
        else:
            found.append([part for name in group for part in (hidden if name == "..." else [name])])
    return found


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Split, join and reorder dimensions: ``rearrange(x, "b (h d) -> b h d", h=8)``.

    Args:
        tensor: one, or a list or tuple of tensors that are stacked first.
        axes_lengths: the extents of names that share a dimension; one of each such group may be left out.

    Raises:
        ArgumentValueError: for a pattern that does not fit, or has other names on its two sides.
    """
    if isinstance(tensor, (list, tuple)):
        from .. import stack

        tensor = stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow or "->" in right:
        raise ArgumentValueError(f"rearrange: the pattern {pattern!r} has not one arrow, ->")
    before, after = _groups(left, pattern), _groups(right, pattern)
    if set(_names(before, pattern)) != set(_names(after, pattern)):
        raise ArgumentValueError(f"rearrange: the names on both sides of the pattern {pattern!r} differ")
    unknown = sorted(set(axes_lengths) - set(_names(before, pattern)))
    if unknown:
        raise ArgumentValueError(f"rearrange: the pattern {pattern!r} does not have the names {unknown}")
    has_ellipsis = any("..." in group for group in before)
    hidden = tensor.ndim - len(before) + 1 if has_ellipsis else 0
    before, after = _spread(before, max(hidden, 0)), _spread(after, max(hidden, 0))
    if len(before) != tensor.ndim:
        raise ArgumentValueError(
            f"rearrange: the pattern {pattern!r} is for {len(before)} dimensions, the tensor has {tensor.ndim}"
        )
    extents: dict[str, int] = dict(axes_lengths)
    for group, extent in zip(before, tensor.shape, strict=True):
        open_names = [name for name in group if name not in extents]
        known = math.prod(extents[name] for name in group if name in extents)
        if len(open_names) > 1:
            raise ArgumentValueError(f"rearrange: the extents of {open_names} are not known, all but one are needed")
        if open_names and known and extent % known == 0:
            extents[open_names[0]] = extent // known
        elif open_names or known != extent:
            raise ArgumentValueError(f"rearrange: {group} does not divide a dimension of {extent}")
    names = [name for group in before for name in group]
    apart = tensor.reshape([extents[name] for name in names])
    ordered = apart.permute([names.index(name) for group in after for name in group])
    found: Tensor = ordered.reshape([math.prod(extents[name] for name in group) for group in after])
    return found
