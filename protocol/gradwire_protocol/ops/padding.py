"""Padding: a border of a constant, of reflections, of repeated edges, or of the other side."""

from __future__ import annotations

from typing import Any

from ..accepts import require
from ..dtypes import COMPLEX, FLOATING, INTEGRAL
from ..errors import ArgumentError, ShapeError, Unsupported
from ..meta import Inference, Meta, Shape, meta, new
from ..shapes import channels_last_stride
from ..table import Float, Tensor, check_range, gradients, op

_NODES = {"reflect": "ReflectionPad", "replicate": "ReplicationPad"}
MODES = ("constant", "reflect", "replicate", "circular")


def amounts(pad: tuple[int, ...], ndim: int) -> tuple[tuple[int, int], ...]:
    """(before, after) for each dimension, from pairs that begin with the last dimension."""
    pairs = tuple(zip(pad[::2], pad[1::2], strict=True))
    return ((0, 0),) * (ndim - len(pairs)) + pairs[::-1]


def _checked(self: Meta, pad: tuple[int, ...]) -> Shape:
    if len(pad) % 2:
        raise ArgumentError(f"pad takes pairs of numbers, got {list(pad)}")
    if len(pad) // 2 > self.ndim:
        raise ArgumentError(f"pad {list(pad)} is for {len(pad) // 2} dimensions, {list(self.shape)} has {self.ndim}")
    shape = tuple(n + before + after for n, (before, after) in zip(self.shape, amounts(pad, self.ndim), strict=True))
    for n, (before, after) in zip(self.shape, amounts(pad, self.ndim), strict=True):
        if n + before + after < 0 or n + min(before, 0) + min(after, 0) < 0:
            raise ShapeError(f"pad {list(pad)} removes more than shape {list(self.shape)} has")
    return shape


def _check_value(self: Any, pad: object, mode: object, value: float) -> None:
    check_range("pad", "value", value, self.dtype)


@op(grad_fn="ConstantPadNdBackward0", exposed=("nn.functional",))
@gradients("pad(grad) if mode == 'constant' else pad_backward(grad)")
def pad(self: Tensor, pad: tuple[int, ...], mode: str = "constant", value: Float | None = None) -> Inference:
    """Surround with a border: ``pad`` holds (before, after) for the last dimension, then for the one before it, ...

    Negative amounts take away. ``mode`` is ``"constant"`` (filled with ``value``, 0 by default), ``"reflect"``
    (mirrored at the edge, which is not repeated), ``"replicate"`` (the edge repeated) or ``"circular"`` (the other
    side). All but the first are for inputs with one or two dimensions in front of the padded ones, of which there
    are up to three.
    """
    shape = _checked(self, pad)
    if mode == "constant":
        made = new(shape, self.dtype, self.device, stride=channels_last_stride(self, shape))
        return made if value is None or self.dtype.category != INTEGRAL else made.checking(_check_value)
    if mode not in MODES:
        raise Unsupported(f"pad has no mode {mode!r}, only {', '.join(map(repr, MODES))}")
    if value is not None:
        raise ArgumentError(f"pad: mode {mode!r} takes no value")
    return _bordered(self, pad, mode)


def _bordered(self: Meta, pad: tuple[int, ...], mode: str) -> Inference:
    """The rule of the modes whose borders are made of the elements themselves."""
    shape, count = _checked(self, pad), len(pad) // 2
    if not 1 <= count <= 3 or self.ndim not in (count + 1, count + 2):
        raise Unsupported(f"pad: mode {mode!r} cannot pad {count} dimensions of shape {list(self.shape)}")
    for i, (before, after) in enumerate(amounts(pad, self.ndim)):
        most = self.shape[i] - 1 if mode == "reflect" else self.shape[i]
        if mode != "replicate" and max(before, after) > max(most, 0):
            raise ShapeError(
                f"pad: mode {mode!r} can take at most {most} elements from dimension {i} of {list(self.shape)}, "
                f"not {max(before, after)}"
            )
    if 0 in self.shape[-count:]:
        raise ShapeError(f"pad: mode {mode!r} has nothing to repeat in shape {list(self.shape)}")
    node = f"{_NODES[mode]}{count}DBackward0" if mode in _NODES else "CopySlices"
    stride = channels_last_stride(self, shape) if mode != "circular" else None
    return new(shape, self.dtype, self.device, stride=stride, grad_fn=node)


@op(grad_fn="PadBackwardBackward0", exposed=())
@gradients(
    "pad.CopySlices(grad0) if mode == 'circular' else pad.ReflectionPad2DBackward0(grad0)"
    " if mode == 'reflect' else pad.ReplicationPad2DBackward0(grad0)"
)
def pad_backward(grad: Tensor, pad: tuple[int, ...], mode: str) -> Inference:
    """Fold a gradient's border onto the elements it was copied from: the transpose of :func:`pad` in a mode other than
    ``"constant"``."""
    if mode not in MODES[1:] or len(pad) % 2 or len(pad) // 2 > grad.ndim:
        raise ArgumentError(f"pad_backward: mode {mode!r} and pad {list(pad)} do not match")
    require("pad_backward", grad.dtype, (FLOATING, COMPLEX))
    shape = tuple(n - before - after for n, (before, after) in zip(grad.shape, amounts(pad, grad.ndim), strict=True))
    if min(shape, default=1) < 0:
        raise ShapeError(f"pad_backward: shape {list(grad.shape)} is not padded by {list(pad)}")
    _bordered(meta(shape, grad.dtype, grad.device), pad, mode)
    return new(shape, grad.dtype, grad.device, compute=grad.dtype)
