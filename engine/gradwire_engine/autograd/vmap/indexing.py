"""Indexing of mapped tensors: the number of the sample becomes one more index where indices differ between samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.shapes import broadcast, canonical_dim

from ..functional import F
from ..tensor import Tensor
from .level import VmapLevel, composed, rule, sample_by_sample
from .views import shifted

Indices = Sequence[Tensor | None]
_MASKS = (dtypes.bool_, dtypes.uint8)


class _Plan:
    """How an index of samples is an index of all of them.

    Attributes:
        indices: for the tensor with the samples in front.
        shape: what the indices broadcast to in one sample.
        start: how many dimensions of a sample precede the indexed ones, where those lie side by side.
        first: whether a sample's result begins with the indices' dimensions because they do not.
        differs: whether the indices differ between samples.
    """

    __slots__ = ("differs", "first", "indices", "shape", "start")

    def __init__(self, x: VmapLevel, indices: Indices) -> None:
        given = _positions(x, indices)
        at = [i for i, index in enumerate(given) if index is not None]
        tensors = [index for index in given if index is not None]
        self.shape = broadcast(*[t.shape for t in tensors])
        self.first = at != list(range(at[0], at[-1] + 1))
        self.start = 0 if self.first else at[0]
        self.differs = any(x.has(t) for t in tensors)
        rank = len(self.shape)
        if not self.differs:
            self.indices: list[Any] = [None, *given]
            return
        samples = x.engine.call("arange", x.size, device=tensors[0].device)
        laid = [None if t is None else x.aligned(t, rank) for t in given]
        self.indices = [F.reshape(samples, (x.size, *(1,) * rank)), *laid]

    def as_samples(self, found: Tensor) -> Tensor:
        """What the index of all gives, in the order of a sample's result."""
        here, there = self._moves()
        return F.movedim(found, here, there) if here else found

    def as_indexed(self, values: Tensor) -> Tensor:
        """The inverse of :meth:`as_samples`."""
        here, there = self._moves()
        return F.movedim(values, there, here) if here else values

    def _moves(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rank = len(self.shape)
        if not self.differs:
            return ((rank,), (0,)) if self.first and rank else ((), ())
        if self.start == 0 or rank == 0:
            return (), ()
        return tuple(range(1, rank + 1)), tuple(range(self.start + 1, self.start + rank + 1))

    def result_shape(self, size: Sequence[int]) -> tuple[int, ...]:
        """The shape of a sample's result, for a sample of this size."""
        used = [i - 1 for i, index in enumerate(self.indices) if i and index is not None]
        left = [n for i, n in enumerate(size) if i not in used]
        return (*left[: self.start], *self.shape, *left[self.start :])


def _positions(x: VmapLevel, indices: Indices) -> list[Tensor | None]:
    """Indices with masks as the positions of what is true."""
    given: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype not in _MASKS:
            given.append(index)
        elif x.has(index):
            raise ArgumentError(
                "index: a mask that differs between samples selects different numbers of elements, but samples "
                "inside vmap must have one shape; use where()"
            )
        else:
            given.extend(F.unbind(F.nonzero(index), 1))
    return given


@rule("index")
def index(x: VmapLevel, tensor: Tensor, indices: Indices) -> Tensor:
    if all(i is None for i in indices):
        return F.clone(x.inside(tensor))
    plan = _Plan(x, indices)
    return plan.as_samples(x.call(x.front(tensor), plan.indices))


@rule("index_put")
def index_put(x: VmapLevel, tensor: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    plan = _Plan(x, indices)
    full = x.front(F.expand(values, plan.result_shape(tensor.shape)))
    return x.call(x.front(tensor), plan.indices, plan.as_indexed(full), accumulate)


@rule("index_backward")
def index_backward(x: VmapLevel, gradient: Tensor, size: Sequence[int], indices: Indices) -> Tensor:
    plan = _Plan(x, indices)
    full = x.front(F.expand(gradient, plan.result_shape(size)))
    return x.call(plan.as_indexed(full), (x.size, *size), plan.indices)


def _along(dim: int, ndim: int, index: Tensor) -> list[Tensor | None]:
    """The list of indices that selects by ``index`` along one dimension."""
    chosen = index if index.ndim else F.unsqueeze(index, 0)
    return [*[None] * canonical_dim(dim, ndim), chosen]


@rule("index_select")
def index_select(x: VmapLevel, tensor: Tensor, dim: int, index: Tensor) -> Tensor:
    if tensor.ndim == 0:
        return x.front(F.reshape(F.index_select(F.unsqueeze(tensor, 0), 0, index), x.inferred.outs[0].shape))
    if not x.has(index):
        return x.call(x.inside(tensor), shifted(dim, tensor.ndim), index)
    return F.index(tensor, _along(dim, tensor.ndim, index))


@rule("index_select_backward")
def index_select_backward(x: VmapLevel, gradient: Tensor, size: Sequence[int], dim: int, index: Tensor) -> Tensor:
    if not size:
        return F.sum(gradient)
    if not x.has(index):
        return x.call(x.inside(gradient), (x.size, *size), shifted(dim, len(size)), index)
    return F.index_backward(gradient, tuple(size), _along(dim, len(size), index))


@rule("index_add")
def index_add(x: VmapLevel, tensor: Tensor, dim: int, index: Tensor, source: Tensor, alpha: int) -> Tensor:
    if tensor.ndim == 0:
        return x.front(F.squeeze(F.index_add(F.unsqueeze(tensor, 0), 0, index, _flat(source), alpha), 0))
    if not x.has(index):
        return x.call(x.front(tensor), shifted(dim, tensor.ndim), index, x.front(source), alpha)
    added = F.to(source * alpha, dtype=tensor.dtype)
    return F.index_put(tensor, _along(dim, tensor.ndim, index), added, True)


@rule("index_copy")
def index_copy(x: VmapLevel, tensor: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if tensor.ndim == 0:
        return x.front(F.squeeze(F.index_copy(F.unsqueeze(tensor, 0), 0, index, _flat(source)), 0))
    if not x.has(index):
        return x.call(x.front(tensor), shifted(dim, tensor.ndim), index, x.front(source))
    return F.index_put(tensor, _along(dim, tensor.ndim, index), source, False)


@rule("index_fill")
def index_fill(x: VmapLevel, tensor: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if not x.has(index) and not x.has(value) and tensor.ndim:
        return x.call(x.inside(tensor), shifted(dim, tensor.ndim), index, value)
    if not isinstance(value, Tensor):
        value = x.engine.call("full", (), value, dtype=tensor.dtype, device=tensor.device)
    whole = tensor if tensor.ndim else F.unsqueeze(tensor, 0)
    at = canonical_dim(dim, whole.ndim)
    # A place that is named twice is filled once, also for the gradient of the value.
    chosen = x.engine.call("zeros", (whole.shape[at],), dtype=dtypes.bool_, device=tensor.device)
    true = x.engine.call("ones", (), dtype=dtypes.bool_, device=tensor.device)
    mask = F.reshape(F.index_put(chosen, [_flat(index)], true, False), (-1, *(1,) * (whole.ndim - at - 1)))
    filled = F.where(mask, F.to(value, dtype=tensor.dtype), whole)
    return x.front(filled if tensor.ndim else F.squeeze(filled, 0))


def _flat(tensor: Tensor) -> Tensor:
    return F.reshape(tensor, (tensor.numel,))


@composed("take")
def take(tensor: Tensor, index: Tensor) -> Tensor:
    return F.index(_flat(tensor), [index])


@composed("take_backward")
def take_backward(gradient: Tensor, size: Sequence[int], index: Tensor) -> Tensor:
    count = 1
    for n in size:
        count *= n
    return F.reshape(F.index_backward(gradient, (count,), [index]), tuple(size))


@composed("put")
def put(tensor: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    written = F.index_put(_flat(tensor), [_flat(index)], _flat(source), accumulate)
    return F.reshape(written, tensor.shape)


@rule("masked_select")
def masked_select(x: VmapLevel, tensor: Tensor, mask: Tensor) -> Tensor:
    if x.has(mask):
        raise ArgumentError(
            "masked_select: a mask that differs between samples selects different numbers of elements, but "
            "samples inside vmap must have one shape; use where()"
        )
    shape = broadcast(tensor.shape, mask.shape)
    return F.index(_flat(F.expand(tensor, shape)), [_flat(F.expand(mask, shape))])


@rule("embedding")
def embedding(x: VmapLevel, weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    if not x.has(weight) and not scale_grad_by_freq:
        return x.call(weight, x.inside(indices), padding_idx, scale_grad_by_freq)
    if padding_idx >= 0 or scale_grad_by_freq:
        return sample_by_sample(x, [weight, indices, padding_idx, scale_grad_by_freq])
    return F.index(weight, [indices])


@rule("embedding_backward")
def embedding_backward(
    x: VmapLevel, gradient: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if scale_grad_by_freq:
        return sample_by_sample(x, [gradient, indices, num_weights, padding_idx, scale_grad_by_freq])
    if padding_idx >= 0:
        gradient = gradient * F.unsqueeze(F.ne(indices, padding_idx), -1)
    return F.index_backward(gradient, (num_weights, gradient.shape[-1]), [indices])
