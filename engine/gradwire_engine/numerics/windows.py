"""Windows that slide over the last dimensions of an array: what convolution and pooling have in common."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import product
from math import prod

from ..runtime.arrays import Array, Namespace

Ints = tuple[int, ...]
Where = tuple[slice, ...]


class Windows:
    """The windows over an input of ``extents``, ``outputs`` of them along each dimension.

    A window's elements are its *taps*. ``padding`` elements precede the input; what windows reach beyond its end
    is padding too.
    """

    __slots__ = ("dilation", "extents", "inside", "kernel", "outputs", "padded", "padding", "stride")

    def __init__(self, extents: Ints, outputs: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
        self.extents = extents
        self.outputs = outputs
        self.kernel = kernel
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        reach = ((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(outputs, stride, dilation, kernel, strict=True))
        self.padded: Ints = tuple(max(r, n + p) for r, n, p in zip(reach, extents, padding, strict=True))
        self.inside: Where = tuple(slice(p, p + n) for n, p in zip(extents, padding, strict=True))

    @property
    def pointwise(self) -> bool:
        """Whether every window is one element and there is one for every element."""
        alone = prod(self.kernel) == prod(self.stride) == 1 and not any(self.padding)
        return alone and self.extents == self.outputs

    @property
    def disjoint(self) -> bool:
        """Whether no two windows share an element."""
        return all(d == 1 and s >= k for s, k, d in zip(self.stride, self.kernel, self.dilation, strict=True))

    @property
    def complete(self) -> bool:
        """Whether disjoint windows cover the padded input."""
        return self.disjoint and all(
            s == k and n * k == p
            for s, k, n, p in zip(self.stride, self.kernel, self.outputs, self.padded, strict=True)
        )

    def pad(self, xp: Namespace, x: Array, fill: float = 0) -> Array:
        """The input with ``fill`` around it; itself where it needs none."""
        if self.padded == self.extents:
            return x
        shape = (*x.shape[: -len(self.extents)], *self.padded)
        result = xp.zeros(shape, x.dtype) if fill == 0 else xp.full(shape, fill, x.dtype)
        result[(..., *self.inside)] = x
        return result

    def along(self, axis: int) -> Iterator[slice]:
        """The taps along one dimension: each as the elements of a padded input that it meets in all windows."""
        d, s, n = self.dilation[axis], self.stride[axis], self.outputs[axis]
        for t in range(self.kernel[axis]):
            yield slice(t * d, t * d + (n - 1) * s + 1, s)

    def taps(self) -> Iterator[tuple[Ints, Where]]:
        """All taps: position in the window, and the elements of a padded input that it meets in all windows."""
        met = [tuple(self.along(axis)) for axis in range(len(self.kernel))]
        for tap in product(*map(range, self.kernel)):
            yield tap, tuple(met[axis][t] for axis, t in enumerate(tap))

    def rows(self, first: int, last: int) -> Windows:
        """The windows of some outputs along the first dimension, over the input from ``first * stride`` on."""
        part = copy(self)
        part.outputs = (last - first, *self.outputs[1:])
        return part

    def mirrored(self) -> Windows | None:
        """For stride 1: the windows whose convolution with the flipped kernel is the gradient for the input."""
        padding = tuple(d * (k - 1) - p for d, k, p in zip(self.dilation, self.kernel, self.padding, strict=True))
        if prod(self.stride) != 1 or min(padding) < 0:
            return None
        return Windows(self.outputs, self.extents, self.kernel, self.stride, padding, self.dilation)
