"""What is known of a tensor without its values, and what a rule says of an operation's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from .dtypes import DType

Shape = tuple[int, ...]

UNKNOWN: Final = -1
"""The extent of a dimension that depends on data not yet looked at (``nonzero``, a boolean mask)."""


class Meta:
    """Shape, strides (in elements), dtype and device of a tensor.

    Metas are interned by :func:`meta`: an identity comparison is enough to find a memoised rule. Identity
    is never needed for correctness, since the table is emptied when it grows too large.
    """

    __slots__ = ("contiguous", "device", "dtype", "known", "nbytes", "numel", "shape", "stride")

    def __init__(self, shape: Shape, stride: Shape, dtype: DType, device: str) -> None:
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.device = device
        self.known = UNKNOWN not in shape
        self.numel = prod(shape) if self.known else UNKNOWN
        self.nbytes = self.numel * dtype.itemsize
        self.contiguous = not self.known or is_contiguous(shape, stride)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}" + ("" if self.device == "cpu" else f"@{self.device}")

    def same_as(self, other: Meta) -> bool:
        return (
            self.shape == other.shape and self.stride == other.stride
            and self.dtype is other.dtype and self.device == other.device
        )  # fmt: skip


def contiguous_stride(shape: Sequence[int]) -> Shape:
    """Row-major strides in elements. Like PyTorch, an extent of 0 counts as 1."""
    stride = [1] * len(shape)
    step = 1
    for i in range(len(shape) - 1, -1, -1):
        stride[i] = step
        step *= max(shape[i], 1)
    return tuple(stride)


def is_contiguous(shape: Shape, stride: Shape) -> bool:
    """Whether elements follow each other in row-major order; the strides of extents 1 do not matter, and where there is
    no element none does."""
    if 0 in shape:
        return True
    expected = 1
    for extent, step in zip(reversed(shape), reversed(stride), strict=True):
        if extent != 1:
            if step != expected:
                return False
            expected *= extent
    return True


_INTERNED: dict[tuple[Shape, Shape | None, DType, str], Meta] = {}
_INTERN_LIMIT: Final = 65_536


def meta(shape: Shape, dtype: DType, device: str = "cpu", stride: Shape | None = None) -> Meta:
    """The interned meta of this description; row-major unless strides are given."""
    key = (shape, stride, dtype, device)
    found = _INTERNED.get(key)
    if found is None:
        if stride is None:
            found = Meta(shape, contiguous_stride(shape), dtype, device)
        elif stride == contiguous_stride(shape):
            found = meta(shape, dtype, device)
        else:
            found = Meta(shape, stride, dtype, device)
        if len(_INTERNED) >= _INTERN_LIMIT:
            _INTERNED.clear()
        _INTERNED[key] = found
    return found


class Inference:
    """What a rule says: the results' metas, and what the engine needs to make them.

    Attributes:
        outs: one meta per result.
        compute: the dtype that tensor operands are cast to before the kernel sees them; ``None`` leaves
            them as they are.
        offset: for a view of the first tensor operand, the distance in elements of each result's first
            element from the operand's; ``None`` when the results are new memory.
        grad_fn: overrides the op's node name where an overload has its own (``SumBackward1``).
        scratch: bytes that the kernel needs beside its results, where they can be many.
        check: looks at the numbers of a call, which the rule itself sees the kinds of: called with all arguments of
            each call, it raises what is wrong with one (:meth:`checking`).
        missing: why there is no derivative, and by which operands (none: by all); see :meth:`without_derivative`.
    """

    __slots__ = ("check", "compute", "grad_fn", "missing", "offsets", "outs", "scratch")

    def __init__(
        self,
        outs: tuple[Meta, ...],
        compute: DType | None = None,
        offsets: tuple[int, ...] | None = None,
        grad_fn: str | None = None,
        scratch: int = 0,
        check: Callable[..., None] | None = None,
        missing: tuple[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.outs = outs
        self.compute = compute
        self.offsets = offsets
        self.grad_fn = grad_fn
        self.scratch = scratch
        self.check = check
        self.missing = missing

    @property
    def is_view(self) -> bool:
        return self.offsets is not None

    def named(self, grad_fn: str) -> Inference:
        return Inference(self.outs, self.compute, self.offsets, grad_fn, self.scratch, self.check, self.missing)

    def checking(self, check: Callable[..., None]) -> Inference:
        """The same, for calls whose numbers are to be looked at."""
        return Inference(self.outs, self.compute, self.offsets, self.grad_fn, self.scratch, check, self.missing)

    def without_derivative(self, why: str, *operands: str) -> Inference:
        """The same, for a call that backward cannot go through to these operands (none: to any), although its result
        requires grad."""
        return Inference(self.outs, self.compute, self.offsets, self.grad_fn, self.scratch, self.check, (why, operands))


def new(
    shape: Sequence[int],
    dtype: DType,
    device: str,
    *,
    compute: DType | None = None,
    stride: Shape | None = None,
    grad_fn: str | None = None,
) -> Inference:
    """One result in new memory."""
    return Inference((meta(tuple(shape), dtype, device, stride),), compute, None, grad_fn)


def several(*parts: Inference) -> Inference:
    """Several results of one operation: all new, or all views. None at all counts as no views."""
    if not parts:
        return Inference((), None, ())
    outs = tuple(out for part in parts for out in part.outs)
    compute = parts[0].compute
    if parts[0].offsets is not None:
        return Inference(outs, compute, tuple(o for part in parts for o in (part.offsets or ())))
    return Inference(outs, compute)


def nothing() -> Inference:
    """An operation without results."""
    return Inference(())


def view(self: Meta, shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> Inference:
    """One result that shares the operand's memory, ``offset`` elements further on."""
    out = meta(tuple(shape), self.dtype, self.device, tuple(stride))
    if out.stride != tuple(stride):  # numel 0 or 1: keep the strides that were asked for
        out = Meta(tuple(shape), tuple(stride), self.dtype, self.device)
    return Inference((out,), None, (offset,))
