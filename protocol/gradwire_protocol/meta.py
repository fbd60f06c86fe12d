"""Tensor metadata (shape, strides, dtype, device), and the result of a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from .dtypes import DType

Shape = tuple[int, ...]

UNKNOWN: Final = -1
"""The extent of a dimension that depends on unread data (``nonzero``, a boolean mask)."""


class Meta:
    """Shape, strides (in elements), dtype and device of a tensor.

    :func:`meta` interns metas, so memoised rules are found by identity. Correctness must not depend on identity,
    because the table is cleared when it grows too large.
    """

    __slots__ = ("contiguous", "device", "dtype", "known", "nbytes", "numel", "shape", "stride")

    def __init__(self, shape: Shape, stride: Shape, dtype: DType, device: str) -> None:
        self.shape: Shape = shape
        self.stride: Shape = stride
        self.dtype: DType = dtype
        self.device: str = device
        self.known: bool = UNKNOWN not in shape
        self.numel: int = prod(shape) if self.known else UNKNOWN
        self.nbytes: int = self.numel * dtype.itemsize
        self.contiguous: bool = not self.known or is_contiguous(shape, stride)

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
    """Row-major strides in elements. An extent of 0 counts as 1, as in PyTorch."""
    stride = [1] * len(shape)
    step = 1
    for i in range(len(shape) - 1, -1, -1):
        stride[i] = step
        step *= max(shape[i], 1)
    return tuple(stride)


def is_contiguous(shape: Shape, stride: Shape) -> bool:
    """Whether elements are adjacent in row-major order. Strides of extents 1 are ignored; an empty tensor is
    contiguous."""
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
    """The interned meta; row-major unless strides are given."""
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
    """The result of a rule: the results' metas, and what the engine needs to compute them.

    Attributes:
        outs: one meta per result.
        compute: the dtype that tensor operands are cast to before the kernel; ``None`` for no cast.
        offsets: for views of the first tensor operand, the distance in elements of each result's first element from
            the operand's; ``None`` if the results are new memory.
        grad_fn: overrides the op's node name for an overload (``SumBackward1``).
        scratch: bytes of temporary memory that the kernel needs, if they can be many.
        check: raises an error for invalid numbers of a call, of which the rule sees only the kinds. It gets all
            arguments of each call (:meth:`checking`).
        missing: why there is no derivative, and with respect to which operands (none: all); see
            :meth:`without_derivative`.
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
        self.outs: tuple[Meta, ...] = outs
        self.compute: DType | None = compute
        self.offsets: tuple[int, ...] | None = offsets
        self.grad_fn: str | None = grad_fn
        self.scratch: int = scratch
        self.check: Callable[..., None] | None = check
        self.missing: tuple[str, tuple[str, ...]] | None = missing

    @property
    def is_view(self) -> bool:
        return self.offsets is not None

    def named(self, grad_fn: str) -> Inference:
        return Inference(self.outs, self.compute, self.offsets, grad_fn, self.scratch, self.check, self.missing)

    def checking(self, check: Callable[..., None]) -> Inference:
        """A copy that checks the numbers of each call."""
        return Inference(self.outs, self.compute, self.offsets, self.grad_fn, self.scratch, check, self.missing)

    def without_derivative(self, why: str, *operands: str) -> Inference:
        """A copy for a call that backward cannot pass to these operands (none: to any), although its result requires
        grad."""
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
    """Several results of one op: all new, or all views. Zero results count as views."""
    if not parts:
        return Inference((), None, ())
    outs = tuple(out for part in parts for out in part.outs)
    compute = parts[0].compute
    if parts[0].offsets is not None:
        return Inference(outs, compute, tuple(o for part in parts for o in (part.offsets or ())))
    return Inference(outs, compute)


def nothing() -> Inference:
    """An op without results."""
    return Inference(())


def view(self: Meta, shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> Inference:
    """One result that is a view of the operand's memory, ``offset`` elements after its start."""
    out = meta(tuple(shape), self.dtype, self.device, tuple(stride))
    if out.stride != tuple(stride):  # numel 0 or 1: keep the requested strides
        out = Meta(tuple(shape), tuple(stride), self.dtype, self.device)
    return Inference((out,), None, (offset,))
