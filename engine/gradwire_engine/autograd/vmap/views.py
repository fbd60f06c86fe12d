"""Views and rearrangements of mapped tensors: dimensions count from the second, sizes begin with the samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ShapeError
from gradwire_protocol.shapes import canonical_dim

from ..functional import F
from ..tensor import Tensor
from .batched import physical
from .level import VmapLevel, rule


def shifted(dim: Any, ndim: int) -> Any:
    """A dimension, or several, of a sample of ``ndim`` dimensions as dimensions of all samples."""
    if isinstance(dim, int):
        return canonical_dim(dim, ndim) + 1
    return tuple(canonical_dim(d, ndim) + 1 for d in dim)


@rule("view", "reshape")
def reshape(x: VmapLevel, tensor: Tensor, size: tuple[int, ...]) -> Tensor:
    wanted = (x.size, *x.inferred.outs[0].shape)
    if x.entry.op.name == "view":
        try:
            return F.view(x.inside(tensor), wanted)
        except ShapeError:  # the samples lie in memory in another order than one alone would
            pass
    return F.reshape(x.inside(tensor), wanted)


@rule("flatten", "unflatten", "t", "positive")
def by_shape(x: VmapLevel, tensor: Tensor, *options: Any) -> Tensor:
    inner = x.inside(tensor)
    if x.entry.op.name == "t" and tensor.ndim == 2:
        return F.transpose(inner, 1, 2)
    return F.reshape(F.alias(inner), (x.size, *x.inferred.outs[0].shape))


@rule("transpose", "movedim", "diagonal", "rot90")
def two_dims(x: VmapLevel, tensor: Tensor, *options: Any) -> Tensor:
    name, inner = x.entry.op.name, x.inside(tensor)
    if tensor.ndim == 0:
        return F.alias(inner)
    if name == "diagonal":
        offset, first, second = options
        return x.call(inner, offset, shifted(first, tensor.ndim), shifted(second, tensor.ndim))
    if name == "rot90":
        return x.call(inner, options[0], shifted(options[1], tensor.ndim))
    return x.call(inner, shifted(options[0], tensor.ndim), shifted(options[1], tensor.ndim))


@rule("permute")
def permute(x: VmapLevel, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    return x.call(x.inside(tensor), (0, *shifted(dims, tensor.ndim)))


@rule("squeeze")
def squeeze(x: VmapLevel, tensor: Tensor, dim: Any) -> Tensor:
    inner = x.inside(tensor)
    if tensor.ndim == 0:
        return F.alias(inner)
    if dim is None:
        dim = tuple(i for i, n in enumerate(tensor.shape) if n == 1)
    dims = shifted((dim,) if isinstance(dim, int) else dim, tensor.ndim)
    return x.call(inner, dims) if dims else F.alias(inner)


@rule("unsqueeze")
def unsqueeze(x: VmapLevel, tensor: Tensor, dim: int) -> Tensor:
    return x.call(x.inside(tensor), shifted(dim, tensor.ndim + 1))


@rule("expand", "broadcast_to")
def expand(x: VmapLevel, tensor: Tensor, size: Sequence[int]) -> Tensor:
    return F.expand(x.aligned(tensor, len(size)), (x.size, *x.inferred.outs[0].shape))


@rule("repeat", "tile")
def repeat(x: VmapLevel, tensor: Tensor, times: Sequence[int]) -> Tensor:
    ones = (1,) * (tensor.ndim - len(times))
    return F.repeat(x.aligned(tensor, len(times)), (1, *ones, *times))


@rule("select", "slice", "narrow", "unfold", "select_scatter", "slice_scatter")
def along_one(x: VmapLevel, tensor: Tensor, *options: Any) -> Tensor:
    dim_at = x.entry.op.positions["dimension" if x.entry.op.name == "unfold" else "dim"] - 1
    given = [x.front(v) for v in options]
    if tensor.ndim == 0:  # unfold takes a sample without dimensions as one of a single element
        return x.call(F.unsqueeze(x.front(tensor), 1), *given[:dim_at], 1, *given[dim_at + 1 :])
    given[dim_at] = shifted(given[dim_at], tensor.ndim)
    return x.call(x.front(tensor), *given)


@rule("diagonal_scatter")
def diagonal_scatter(x: VmapLevel, tensor: Tensor, source: Tensor, offset: int, first: int, second: int) -> Tensor:
    dims = shifted((first, second), tensor.ndim)
    return x.call(x.front(tensor), x.front(source), offset, *dims)


@rule("split", "chunk", "unbind", "unsafe_split")
def parts(x: VmapLevel, tensor: Tensor, *options: Any) -> tuple[Tensor, ...]:
    *rest, dim = options
    return x.call(x.inside(tensor), *rest, shifted(dim, tensor.ndim))


@rule("flip")
def flip(x: VmapLevel, tensor: Tensor, dims: Sequence[int]) -> Tensor:
    inner = x.inside(tensor)
    return x.call(inner, shifted(dims, tensor.ndim)) if tensor.ndim and dims else F.clone(inner)


@rule("roll")
def roll(x: VmapLevel, tensor: Tensor, shifts: Any, dims: Any) -> Tensor:
    inner = x.inside(tensor)
    if dims is None or dims == ():
        return x.call(F.reshape(inner, (x.size, tensor.numel)), shifts, 1)
    return x.call(inner, shifts, shifted(dims, tensor.ndim)) if tensor.ndim else F.clone(inner)


@rule("diag")
def diag(x: VmapLevel, tensor: Tensor, offset: int) -> Tensor:
    inner = x.inside(tensor)
    if tensor.ndim == 1:
        return F.diag_embed(inner, offset, 1, 2)
    return F.clone(F.diagonal(inner, offset, 1, 2))


@rule("diag_embed")
def diag_embed(x: VmapLevel, tensor: Tensor, offset: int, first: int, second: int) -> Tensor:
    return x.call(x.inside(tensor), offset, *shifted((first, second), tensor.ndim + 1))


@rule("sum_to_size")
def sum_to_size(x: VmapLevel, tensor: Tensor, size: Sequence[int]) -> Tensor:
    return x.call(x.inside(tensor), (x.size, *(1,) * (tensor.ndim - len(size)), *size))


@rule("as_strided")
def as_strided(
    x: VmapLevel, tensor: Tensor, size: Sequence[int], stride: Sequence[int], offset: int, absolute: bool
) -> Tensor:
    # Places count elements of a sample's memory, so each sample must lie in memory as its meta says. An absolute offset
    # is that of the first sample.
    inner = x.inside(tensor)
    if absolute:
        offset -= physical(tensor).offset
    if tensor.meta.contiguous:
        laid, step = F.contiguous(inner), tensor.numel
    else:
        spans = [(n - 1) * s for n, s in zip(tensor.shape, tensor.meta.stride, strict=True)]
        step = 1 + sum(spans) if tensor.numel else 0
        order = (step, *tensor.meta.stride)
        laid = F.restride(inner, order, 0, (x.size * step,), (1,), 0)
    return x.call(laid, (x.size, *size), (step, *stride), offset, False)


# Joining


@rule("cat", "stack")
def join(x: VmapLevel, tensors: Sequence[Tensor], dim: int) -> Tensor:
    if x.entry.op.name == "stack":
        return x.call([x.front(t) for t in tensors], shifted(dim, tensors[0].ndim + 1))
    rank = max(t.ndim for t in tensors)
    if all(t.shape == (0,) for t in tensors):
        dim = 0  # among empty vectors any other stands for it
    kept = [t for t in tensors if t.ndim == rank]  # an empty one-dimensional tensor is passed over, as always
    return x.call([x.front(t) for t in kept], shifted(dim, rank))


@rule("repeat_interleave")
def repeat_interleave(x: VmapLevel, tensor: Tensor, repeats: int, dim: int | None) -> Tensor:
    if dim is None or tensor.ndim == 0:
        return x.call(F.reshape(x.inside(tensor), (x.size, tensor.numel)), repeats, 1)
    return x.call(x.inside(tensor), repeats, shifted(dim, tensor.ndim))


# Back from views


@rule("select_backward", "slice_backward")
def place_back(x: VmapLevel, gradient: Tensor, size: Sequence[int], dim: int, *where: int | None) -> Tensor:
    return x.call(x.inside(gradient), (x.size, *size), shifted(dim, len(size)), *where)


@rule("diagonal_backward")
def diagonal_backward(
    x: VmapLevel, gradient: Tensor, size: Sequence[int], offset: int, first: int, second: int
) -> Tensor:
    return x.call(x.inside(gradient), (x.size, *size), offset, *shifted((first, second), len(size)))


@rule("unfold_backward")
def unfold_backward(x: VmapLevel, gradient: Tensor, shape: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    if not shape:
        return F.reshape(x.inside(gradient), (x.size,))
    return x.call(x.inside(gradient), (x.size, *shape), shifted(dim, len(shape)), size, step)


@rule("spread")
def spread(x: VmapLevel, tensor: Tensor, size: Sequence[int], dim: Any, keepdim: bool) -> Tensor:
    inner = x.inside(tensor)
    if not size:
        return F.alias(inner)
    gone = tuple(range(1, len(size) + 1)) if dim is None or dim == () else shifted(dim, len(size))
    return x.call(inner, (x.size, *size), gone, keepdim)
