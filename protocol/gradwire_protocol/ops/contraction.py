"""Sums of products over named dimensions: einsum, tensordot, and the primitive both are made of.

A contraction gives every dimension of its operands a label, a number here. A label that the output lacks is summed
over. An extent of 1 broadcasts against another operand's extent under the same label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from ..autocast import GPU_WIDEST_CPU_LOWER, LOWER
from ..costs import Cost
from ..dtypes import INTEGRAL, DType, int64
from ..errors import ArgumentError, ShapeError
from ..meta import UNKNOWN, Inference, Meta, Shape, contiguous_stride, meta, new
from ..promotion import result_type
from ..shapes import canonical_dim, common_device, elementwise_stride
from ..table import Out, Tensor, gradients, op
from .matrix import fits, need_numbers, need_same_dtype

Labels = tuple[int, ...]

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS: Final = -1

MOST_COMPARED: Final = 16
"""So many operands are compared in pairs to find the cheapest product."""


def parse(equation: str, ndims: Sequence[int]) -> tuple[tuple[Labels, ...], Labels]:
    """The labels of the operands and of the output that an equation like ``"bij,bjk->bik"`` stands for.

    The dimensions of an ellipsis are aligned on the right and labelled from 52 up. Without ``->`` the output has the
    ellipsis first, and then every letter that occurs once, in alphabetical order, capitals first.

    Raises:
        ArgumentError: naming the place in the equation that makes no sense.
    """
    left, arrow, right = equation.partition("->")
    if not ndims:
        raise ArgumentError(f"einsum {equation!r} has no operands")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ArgumentError(f"einsum {equation!r} describes {len(terms)} operands, {len(ndims)} were given")
    spelled = [_spell(term, equation) for term in terms]
    widest = 0
    for i, (term, ndim) in enumerate(zip(spelled, ndims, strict=True)):
        hidden = ndim - len(term) + (1 if _ELLIPSIS in term else 0)
        if hidden < 0 or (hidden and _ELLIPSIS not in term):
            raise ArgumentError(
                f"einsum {equation!r} gives operand {i} {len(term)} subscripts, it has {ndim} dimensions"
            )
        widest = max(widest, hidden if _ELLIPSIS in term else 0)
    labels = tuple(_expand(term, ndim - len(term) + 1, widest) for term, ndim in zip(spelled, ndims, strict=True))
    used = [label for operand in labels for label in operand]
    if not arrow:
        once = sorted(label for label in set(used) if label < len(_LETTERS) and used.count(label) == 1)
        return labels, (*range(len(_LETTERS), len(_LETTERS) + widest), *once)
    output = _expand(_spell(right, equation), widest, widest)
    for label in output:
        if output.count(label) > 1:
            raise ArgumentError(f"einsum {equation!r} names {_LETTERS[label]!r} more than once in the output")
        if label not in used:
            raise ArgumentError(f"einsum {equation!r} has {_LETTERS[label]!r} in the output but in no operand")
    return labels, output


def _spell(term: str, equation: str) -> Labels:
    found: list[int] = []
    i = 0
    while i < len(term):
        if term.startswith("...", i) and _ELLIPSIS not in found:
            found.append(_ELLIPSIS)
            i += 3
            continue
        if term[i] != " ":
            if term[i] not in _LETTERS:
                raise ArgumentError(
                    f"einsum {equation!r}: {term[i]!r} in {term.strip()!r} is neither a letter nor part of one '...'"
                )
            found.append(_LETTERS.index(term[i]))
        i += 1
    return tuple(found)


def _expand(term: Labels, hidden: int, widest: int) -> Labels:
    first = len(_LETTERS) + widest - hidden
    dims = range(first, first + hidden)
    return tuple(label for item in term for label in (dims if item == _ELLIPSIS else (item,)))


def label_sizes(labels: Sequence[Labels], shapes: Sequence[Shape]) -> dict[int, int]:
    """The extent of every label.

    Raises:
        ShapeError: when one label stands for two extents, neither of them 1.
    """
    sizes: dict[int, int] = {}
    for i, (operand, shape) in enumerate(zip(labels, shapes, strict=True)):
        if len(operand) != len(shape):
            raise ArgumentError(f"operand {i} has {len(shape)} dimensions and {len(operand)} labels")
        within: dict[int, int] = {}
        for label, extent in zip(operand, shape, strict=True):
            if not fits(within.setdefault(label, extent), extent):
                raise ShapeError(
                    f"operand {i} of shape {list(shape)} repeats a subscript for extents {within[label]} and {extent}"
                )
        for label, extent in within.items():
            known = sizes.get(label, 1)
            if known in (1, UNKNOWN):
                sizes[label] = extent if extent != 1 or known == 1 else known
            elif extent != 1 and not fits(extent, known):
                name = repr(_LETTERS[label]) if label < len(_LETTERS) else "an ellipsis dimension"
                raise ShapeError(
                    f"operand {i} of shape {list(shape)} has extent {extent} for {name}, an earlier one has {known}"
                )
    return sizes


def effective(operand: Labels, shape: Shape, sizes: dict[int, int]) -> Labels:
    """The distinct labels that an operand really varies along: broadcast dimensions do not count."""
    kept = [label for label, n in zip(operand, shape, strict=True) if n != 1 or sizes[label] == 1]
    return tuple(dict.fromkeys(kept))


class Step:
    """One pairwise step of a contraction: which two operands, and the labels of their product."""

    __slots__ = ("batch", "left", "pair", "right", "size", "summed")

    def __init__(
        self, pair: tuple[int, int], a: Labels, b: Labels, uses: Mapping[int, int], sizes: dict[int, int]
    ) -> None:
        keep = {label for label in (*a, *b) if uses[label] > (label in a) + (label in b)}
        self.pair = pair
        self.batch = tuple(label for label in a if label in b and label in keep)
        self.summed = tuple(label for label in a if label in b and label not in keep)
        self.left = tuple(label for label in a if label not in b and label in keep)
        self.right = tuple(label for label in b if label not in a and label in keep)
        self.size = 1
        for label in self.result:
            self.size *= sizes[label]

    @property
    def result(self) -> Labels:
        return (*self.batch, *self.left, *self.right)


def plan(operands: Sequence[Labels], output: Labels, sizes: dict[int, int]) -> list[Step]:
    """The order in which to multiply several operands: always the pair with the smallest product next.

    The product of a step takes the place of its first operand; the second is removed. Of very many operands only the
    first ones are looked at, since looking takes time with the cube of their number.
    """
    rest = list(operands)
    # How many operands have a label; the output counts as one more.
    uses = Counter(label for labels in (*rest, output) for label in dict.fromkeys(labels))
    steps: list[Step] = []
    while len(rest) > 1:
        best: Step | None = None
        seen = min(len(rest), MOST_COMPARED)
        for i in range(seen):
            for j in range(i + 1, seen):
                step = Step((i, j), rest[i], rest[j], uses, sizes)
                if best is None or step.size < best.size:
                    best = step
        assert best is not None
        steps.append(best)
        i, j = best.pair
        uses.subtract(rest[i])
        uses.subtract(rest[j])
        uses.update(best.result)
        rest[i] = best.result
        del rest[j]
    return steps


def _contracted(name: str, operands: Sequence[Meta], labels: Sequence[Labels], output: Labels) -> Inference:
    sizes = label_sizes(labels, [o.shape for o in operands])
    missing = [label for label in output if label not in sizes]
    if missing:
        raise ArgumentError(f"{name}: output label {missing[0]} does not occur in any operand")
    varying = [effective(ls, o.shape, sizes) for ls, o in zip(labels, operands, strict=True)]
    shape = tuple(sizes[label] for label in output)
    device = common_device(*operands)
    if len(operands) == 1:
        return _rearranged(operands[0], labels[0], output, shape)
    steps = plan(varying, output, sizes)
    summing = any(step.summed for step in steps)
    dtype = _dtype(name, operands, summing)
    if dtype.category <= INTEGRAL and not summing and _sums_alone(varying, output):
        dtype = int64
    stride = _pair_stride(operands, labels, steps[0], output, sizes) if len(operands) == 2 else None
    widest = max((step.size for step in steps[:-1]), default=0) * dtype.itemsize
    node = "MulBackward0" if all(label in output for ls in varying for label in ls) else "ViewBackward0"
    inferred = new(shape, dtype, device, compute=dtype, stride=stride, grad_fn=node)
    inferred.scratch = 2 * widest if widest > 0 else 0
    return inferred


def _sums_alone(varying: Sequence[Labels], output: Labels) -> bool:
    """Whether some operand has a label that neither another operand nor the output has."""
    uses = Counter(label for labels in (*varying, output) for label in labels)
    return any(uses[label] == 1 for labels in varying for label in labels)


def _dtype(name: str, operands: Sequence[Meta], summing: bool) -> DType:
    if summing:
        dtype = need_same_dtype(name, *operands)
        need_numbers(name, dtype)
        return dtype
    return result_type([(o.dtype, o.ndim) for o in operands])


def _rearranged(self: Meta, labels: Labels, output: Labels, shape: Shape) -> Inference:
    """One operand: dimensions reordered, diagonals taken, the rest summed."""
    if all(label in output for label in labels):
        stride = None
        if len(set(labels)) == len(labels) == len(output):
            moved = tuple(self.stride[labels.index(label)] for label in output)
            stride = elementwise_stride(shape, [meta(shape, self.dtype, self.device, moved)])
        return new(shape, self.dtype, self.device, stride=stride, grad_fn="PermuteBackward0")
    dtype = int64 if self.dtype.category <= INTEGRAL else self.dtype
    return new(shape, dtype, self.device, compute=dtype, grad_fn="SumBackward1")


def _pair_stride(
    operands: Sequence[Meta], labels: Sequence[Labels], step: Step, output: Labels, sizes: dict[int, int]
) -> Shape | None:
    """PyTorch shows a batched product, or an elementwise one, under the permutation that the output asks for."""
    if UNKNOWN in sizes.values() or len(set(output)) != len(output):
        return None
    shape = tuple(sizes[label] for label in output)
    if not step.summed:
        aligned = []
        for meta_, own in zip(operands, labels, strict=True):
            summed_first = any(label not in output and n != 1 for label, n in zip(own, meta_.shape, strict=True))
            if summed_first or len(set(own)) != len(own):
                return None
            at = {label: i for i, label in enumerate(own)}
            laid = tuple(meta_.shape[at[label]] if label in at else 1 for label in output)
            steps = tuple(meta_.stride[at[label]] if label in at else 1 for label in output)
            aligned.append(meta(laid, meta_.dtype, meta_.device, steps))
        return elementwise_stride(shape, aligned)

    def in_output_order(group: Labels) -> list[int]:
        return [label for label in output if label in group and sizes[label] != 1]

    ones = [label for label in output if sizes[label] == 1]
    left, right = in_output_order(step.left), in_output_order(step.right)
    if left and right and output.index(right[-1]) < output.index(left[0]):
        left, right = right, left
    order = in_output_order(step.batch) + left + right + ones
    strides = dict(zip(order, contiguous_stride([sizes[label] for label in order]), strict=True))
    result = tuple(strides[label] for label in output)
    return None if result == contiguous_stride(shape) else result


def _cost(operands: Sequence[Meta], labels: Sequence[Labels], output: Labels) -> int:
    sizes = label_sizes(labels, [o.shape for o in operands])
    varying = [effective(own, o.shape, sizes) for own, o in zip(labels, operands, strict=True)]
    if len(operands) < 2:
        return 0
    return sum(step.size * prod(sizes[label] for label in step.summed) for step in plan(varying, output, sizes))


@op(
    grad_fn="ViewBackward0", exposed=("function",), multilinear=True,
    cost=Cost(lambda c: _cost(c.operands, *parse(c.equation, [o.ndim for o in c.operands])), product=True),
    autocast=LOWER,
)  # fmt: skip
@gradients("expand(reshape(contract(grad, conj(*operands))))")
def einsum(equation: str, operands: list[Tensor]) -> Inference:
    """Sums of products in Einstein's notation: ``einsum("bij,bjk->bik", [x, y])``.

    Each operand's dimensions are named by letters, ``...`` stands for any number of leading ones, and a letter that
    the output (after ``->``) lacks is summed over. A letter repeated within one operand takes its diagonal. Without
    ``->`` the output holds the letters that occur once, in alphabetical order. Extents of 1 broadcast. Where
    something is summed between operands, all must have one dtype; otherwise dtypes promote. An equation that does not
    fit the operands raises RuntimeError.
    """
    labels, output = parse(equation, [o.ndim for o in operands])
    return _contracted("einsum", operands, labels, output)


@op(
    grad_fn="ViewBackward0", internal=True, multilinear=True,
    cost=Cost(lambda c: _cost(c.operands, c.labels, c.output), product=True),
)  # fmt: skip
@gradients("expand(reshape(contract(grad, *operands)))")
def contract(operands: list[Tensor], labels: tuple[tuple[int, ...], ...], output: tuple[int, ...]) -> Inference:
    """:func:`einsum` with numbers for letters: one tuple of labels per operand, and the output's.

    With a single operand the output may repeat a label, which puts values on a diagonal and zeros elsewhere.
    """
    if len(labels) != len(operands) or not operands:
        raise ArgumentError(f"contract got {len(operands)} operands and {len(labels)} tuples of labels")
    if len(operands) > 1 and len(set(output)) != len(output):
        raise ArgumentError("contract: the output repeats a label")
    return _contracted("contract", operands, labels, output)


@op(
    grad_fn="ViewBackward0", exposed=("function",), multilinear=True,
    cost=Cost(lambda c: _cost([c.self, c.other], *tensordot_labels(c.self, c.other, c.dims)), product=True),
    out=Out.EXACT, autocast=GPU_WIDEST_CPU_LOWER,
)  # fmt: skip
@gradients(self="expand(reshape(contract(grad, conj(other))))", other="expand(reshape(contract(grad, conj(self))))")
def tensordot(self: Tensor, other: Tensor, dims: int | tuple[tuple[int, ...], ...] = 2) -> Inference:
    """Sum products over pairs of dimensions: ``dims`` is how many of the last of ``self`` and first of ``other``, or
    a pair of equally long lists of dimensions. The result has the remaining ones, those of ``self`` first.
    """
    labels, output = tensordot_labels(self, other, dims)
    need_numbers("tensordot", need_same_dtype("tensordot", self, other))
    sizes = label_sizes(labels, [self.shape, other.shape])
    shape = tuple(sizes[label] for label in output)
    return new(shape, self.dtype, common_device(self, other), compute=self.dtype, grad_fn="ViewBackward0")


def tensordot_labels(
    self: Meta, other: Meta, dims: int | tuple[tuple[int, ...], ...]
) -> tuple[tuple[Labels, Labels], Labels]:
    """The contraction that ``dims`` describes.

    Raises:
        ArgumentError, ShapeError, IndexOutOfRange: when it does not fit the operands.
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(self.ndim, other.ndim):
            raise ArgumentError(
                f"tensordot cannot contract {dims} dimensions of shapes {list(self.shape)} and {list(other.shape)}"
            )
        dims = (tuple(range(self.ndim - dims, self.ndim)), tuple(range(dims)))
    if len(dims) != 2 or len(dims[0]) != len(dims[1]):
        raise ArgumentError(f"tensordot takes two equally long lists of dimensions, got {[list(d) for d in dims]}")
    ours = [canonical_dim(d, self.ndim) for d in dims[0]]
    theirs = [canonical_dim(d, other.ndim) for d in dims[1]]
    if len(set(ours)) != len(ours) or len(set(theirs)) != len(theirs):
        raise ArgumentError(f"tensordot: dims {[list(d) for d in dims]} contain a duplicate")
    for i, j in zip(ours, theirs, strict=True):
        if self.shape[i] != 1 and other.shape[j] != 1 and not fits(self.shape[i], other.shape[j]):
            raise ShapeError(
                f"tensordot: dimension {i} of {list(self.shape)} and dimension {j} of {list(other.shape)} differ, "
                f"{self.shape[i]} and {other.shape[j]}"
            )
    left = tuple(range(self.ndim))
    right = [self.ndim + j for j in range(other.ndim)]
    for i, j in zip(ours, theirs, strict=True):
        right[j] = i
    output = (*(i for i in left if i not in ours), *(label for label in right if label >= self.ndim))
    return (left, tuple(right)), output
