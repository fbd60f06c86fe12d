"""Pooling undone, and pooling over windows at random places."""

from __future__ import annotations

from math import prod

from ..autocast import CPU_FLOAT32
from ..costs import SORTING
from ..dtypes import BOOLEAN, int64
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, new, several
from ..shapes import channels_last_stride, common_device
from ..table import Tensor, gradients, op


def _need_planes(name: str, self: Meta, count: int) -> None:
    if self.ndim not in (count + 1, count + 2):
        raise ShapeError(
            f"{name}: the input must have {count + 1} dimensions, or {count + 2} with a batch; its shape is "
            f"{list(self.shape)}"
        )
    if 0 in self.shape[1:]:
        raise ShapeError(f"{name}: only the first dimension of an input may be empty; its shape is {list(self.shape)}")


@op(grad_fn="MaxUnpool2DBackward0", differentiable=("self",), exposed=(), linear=True, autocast=CPU_FLOAT32)
@gradients("reshape(gather(reshape(grad)))", saves="indices")
def max_unpool(self: Tensor, indices: Tensor, output_size: tuple[int, ...]) -> Inference:
    """Lay maxima back where a maximum pool found them, with zeros elsewhere: ``(N, C, ...)`` or ``(C, ...)`` with its
    two or three spatial dimensions extended to ``output_size``.

    ``indices`` are int64 places in the flattened spatial dimensions, as pools return them; one outside raises
    RuntimeError when the result is read.
    """
    count = len(output_size)
    if count not in (2, 3):
        raise ShapeError(f"max_unpool extends 2 or 3 spatial dimensions, output_size is {list(output_size)}")
    if indices.dtype is not int64:
        raise DTypeError(f"max_unpool: indices are int64, not {indices.dtype.name}")
    if indices.shape != self.shape:
        raise ShapeError(f"max_unpool: an input of shape {list(self.shape)} has indices of {list(indices.shape)}")
    _need_planes("max_unpool", self, count)
    if min(output_size) <= 0:
        raise ArgumentError(f"max_unpool: output_size must be positive, got {list(output_size)}")
    if self.dtype.category == BOOLEAN or self.dtype.is_complex:
        raise Unsupported(f"max_unpool is not defined on {self.dtype.name}")
    shape = (*self.shape[:-count], *output_size)
    stride = channels_last_stride(self, shape) if count == 2 else None
    device = common_device(self, indices)
    return new(shape, self.dtype, device, stride=stride, grad_fn=f"MaxUnpool{count}DBackward0")


def _need_samples(name: str, self: Meta, samples: Meta, count: int) -> None:
    wanted = (self.shape[0] if self.ndim == count + 2 else 1, self.shape[-count - 1], count)
    if samples.ndim != 3 or any(n < m for n, m in zip(samples.shape[:2], wanted[:2], strict=True)) or (
        samples.shape[2] != count
    ):  # fmt: skip
        raise ShapeError(
            f"{name}: for an input of shape {list(self.shape)} the samples have shape {list(wanted)}, not "
            f"{list(samples.shape)}"
        )
    if samples.dtype is not self.dtype:
        raise DTypeError(f"{name}: the samples are {samples.dtype.name}, the input is {self.dtype.name}")


@op(
    results=2, grad_fn="FractionalMaxPool2DBackward0", differentiable=("self",), underived=("samples",), exposed=(),
    cost=SORTING, autocast=CPU_FLOAT32,
)  # fmt: skip
@gradients("reshape(scatter_add(c, reshape(grad)))", saves="result1")
def fractional_max_pool(
    self: Tensor, samples: Tensor, kernel_size: tuple[int, ...], output_size: tuple[int, ...]
) -> Inference:
    """Maxima of windows whose places are drawn (Graham, 2014), and the index of each in its flattened plane.

    ``(N, C, ...)`` or ``(C, ...)`` with two or three spatial dimensions, which become ``output_size``. ``samples`` are
    numbers from 0 to 1, ``(N, C, 2 or 3)``, one for each dimension of each plane (of images the last dimension comes
    first): they shift steps whose lengths differ by at most one element.
    """
    name, count = "fractional_max_pool", len(output_size)
    if count not in (2, 3) or len(kernel_size) != count:
        raise ArgumentError(f"{name}: kernel_size {list(kernel_size)} and output_size {list(output_size)} do not match")
    _need_planes(name, self, count)
    if not self.dtype.is_floating_point:
        raise Unsupported(f"{name} is not defined on {self.dtype.name}")
    if min(kernel_size) <= 0 or min(output_size) < 0:
        raise ArgumentError(
            f"{name}: kernel_size {list(kernel_size)} must be positive, output_size {list(output_size)} not negative"
        )
    _need_samples(name, self, samples, count)
    for n, k, m in zip(self.shape[-count:], kernel_size, output_size, strict=True):
        if m + k - 1 > n:
            raise ShapeError(f"{name}: {m} windows of {k} elements do not fit into an extent of {n}")
    shape = (*self.shape[:-count], *output_size)
    values = new(shape, self.dtype, self.device, compute=self.dtype)
    found = several(values, new(shape, int64, self.device)).named(f"FractionalMaxPool{count}DBackward0")
    found.scratch = 6 * 8 * max(prod(shape), 0)
    return found
