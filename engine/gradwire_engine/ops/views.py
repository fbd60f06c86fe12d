"""Derivatives of views, and kernels of those that may have to copy."""

from __future__ import annotations

from itertools import accumulate

from ..autograd.functional import F
from ..autograd.registry import derivative, joint_derivative, kernel, passes_on
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, Namespace

# Reshaping: views need no kernel, a copy is made where strides allow no view


@kernel("reshape", "flatten", "unflatten", half=True)
def reshape(xp: Namespace, x: Array, *shape: int | tuple[int, ...]) -> Array:
    return x.copy()  # in row-major order; the pipeline gives it the announced shape


for _name in ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"):
    derivative(_name, self=lambda s, g: F.reshape(g, s.meta("self").shape))


derivative("transpose", self=lambda s, g: F.transpose(g, s.dim0, s.dim1) if g.ndim else g)
derivative("t", self=lambda s, g: F.t(g))


def _put_back(g: Tensor, order: tuple[int, ...]) -> Tensor:
    back = [0] * len(order)
    for to, source in enumerate(order):
        back[source % len(order)] = to
    return F.permute(g, tuple(back))


derivative("permute", self=lambda s, g: _put_back(g, s.dims))
derivative("movedim", self=lambda s, g: F.movedim(g, s.destination, s.source))


# Repetition

for _name in ("expand", "broadcast_to"):
    derivative(_name, self=lambda s, g: F.sum_to_size(g, s.meta("self").shape))


@kernel("repeat", "tile", half=True)
def repeat(xp: Namespace, x: Array, repeats: tuple[int, ...]) -> Array:
    if 0 in repeats:  # the library would repeat the dimensions one by one, before one of them empties it all
        lead = (1,) * (len(repeats) - x.ndim)
        counts = (1,) * (x.ndim - len(repeats)) + repeats
        return xp.empty([n * count for n, count in zip(lead + x.shape, counts, strict=True)], x.dtype)
    return xp.tile(x, repeats)


def _repeat_gradient(g: Tensor, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    lead = g.ndim - len(shape)
    repeats = (1,) * (g.ndim - len(repeats)) + repeats
    extents = (1,) * lead + shape
    pairs = tuple(n for pair in zip(repeats, extents, strict=True) for n in pair)
    dims = tuple(2 * i for i, r in enumerate(repeats) if r != 1)
    summed = F.sum(F.reshape(g, pairs), dims) if dims else g
    return F.reshape(summed, shape)


derivative("repeat", self=lambda s, g: _repeat_gradient(g, s.meta("self").shape, s.repeats))
derivative("tile", self=lambda s, g: _repeat_gradient(g, s.meta("self").shape, s.dims))


# Parts

derivative("select", self=lambda s, g: F.select_backward(g, s.meta("self").shape, s.dim, s.index))
derivative("slice", self=lambda s, g: F.slice_backward(g, s.meta("self").shape, s.dim, s.start, s.end, s.step))
passes_on("select", "index")
passes_on("slice", "start", "end")


def _narrow_gradient(s: Saved, g: Tensor) -> Tensor:
    shape = s.meta("self").shape
    start = s.start + shape[s.dim] if s.start < 0 else s.start
    return F.slice_backward(g, shape, s.dim, start, start + s.length, 1)


derivative("narrow", self=_narrow_gradient)
derivative("diagonal", self=lambda s, g: F.diagonal_backward(g, s.meta("self").shape, s.offset, s.dim1, s.dim2))
derivative("unfold", self=lambda s, g: F.unfold_backward(g, s.meta("self").shape, s.dimension, s.size, s.step))
derivative("alias", self=lambda s, g: g)


def _overlapping(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a geometry may show one place several times; a cautious guess, as PyTorch makes it."""
    reach = 0
    for step, extent in sorted((s, n) for n, s in zip(shape, stride, strict=True) if n != 1):
        if step <= reach:
            return True
        reach += step * (extent - 1)
    return False


def _strided_gradient(s: Saved, g: Tensor) -> Tensor:
    source = s.meta("self")
    average = "to" if _overlapping(source.shape, source.stride) else None
    return F.restride(g, s.stride, s.storage_offset, source.shape, source.stride, 0, average)


derivative("as_strided", self=_strided_gradient)


# Several parts


def _zeros_for_missing(s: Saved, grads: tuple[Tensor | None, ...]) -> list[Tensor]:
    present = next(g for g in grads if g is not None)
    call = present.engine.call
    return [g if g is not None else call("zeros", out.shape, out.dtype, out.device) for g, out in zip(grads, s.outs)]


def _only(grads: tuple[Tensor | None, ...]) -> int | None:
    """The place of the one gradient there is, when all other parts went unused."""
    present = [i for i, g in enumerate(grads) if g is not None]
    return present[0] if len(present) == 1 else None


for _name in ("split", "chunk", "unsafe_split"):

    @joint_derivative(_name, undefined=True)
    def _(s: Saved, *grads: Tensor | None) -> Tensor:
        only = _only(grads)
        if only is None:
            return F.cat(_zeros_for_missing(s, grads), s.dim)
        ends = list(accumulate(out.shape[s.dim] for out in s.outs[: only + 1]))
        start = ends[-2] if only else 0
        return F.slice_backward(grads[only], s.meta("self").shape, s.dim, start, ends[-1], 1)


@joint_derivative("unbind", undefined=True)
def _(s: Saved, *grads: Tensor | None) -> Tensor:
    only = _only(grads)
    if only is None:
        return F.stack(_zeros_for_missing(s, grads), s.dim)
    return F.select_backward(grads[only], s.meta("self").shape, s.dim, only)
