"""CuPy as kernels see it: what it does in a way that no CUDA graph can hold is done in another, with the same results.

CuPy refuses its own matrix products while a stream captures, so they go to cuBLASLt here, always: the bits must not
depend on whether a graph runs. Copies of host arrays, such as tables of weights, are not captured either, because a
graph would read that memory again at each launch. Small ones are therefore kept on the device by their content, and a
kernel is given a copy from there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.graphs import capturing, hold
from .products import products

LARGEST_KEPT: Final = 1 << 20
"""Bytes of a host array that is kept on the device."""

MOST_KEPT: Final = 1 << 24
"""Bytes of all that are kept for one session."""


class _Kept(threading.local):
    """Host arrays on the device, by their content; a thread is a session."""

    def __init__(self) -> None:
        self.arrays: OrderedDict[Any, Array] = OrderedDict()
        self.nbytes = 0


class DeviceNamespace:
    """CuPy's module with some functions of its own."""

    def __init__(self, cupy: Namespace) -> None:
        self.__name__ = getattr(cupy, "__name__", "")
        self._cupy = cupy
        self._kept = _Kept()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cupy, name)
        self.__dict__[name] = found
        return found

    def matmul(self, a: Array, b: Array, out: Any = None) -> Array:
        """``a @ b`` of real numbers by cuBLASLt, of others by CuPy."""
        lies = out is None or out.flags.c_contiguous
        found = products(cast("Namespace", self), a, b, False, out if lies else None)
        if found is NotImplemented:
            return self._cupy.matmul(a, b, out=out)
        if not lies:
            out[...] = found
            return out
        return found

    def dot(self, a: Array, b: Array) -> Array:
        """As ``matmul`` for vectors and matrices."""
        return self.matmul(a, b) if 0 < a.ndim <= 2 and 0 < b.ndim <= 2 else self._cupy.dot(a, b)

    def einsum(self, equation: str, *operands: Array) -> Array:
        """The dot products of rows are sums of products, others are CuPy's."""
        if equation == "ij,ij->i":
            return (operands[0] * operands[1]).sum(axis=1)
        return self._cupy.einsum(equation, *operands)

    def asarray(self, a: Any, dtype: Any = None, **options: Any) -> Array:
        """As CuPy's; what comes from the host is copied from the device if it was there before."""
        if isinstance(a, (list, tuple)) and not any(hasattr(each, "data") for each in a):
            a = np.asarray(a, dtype)
        if not isinstance(a, np.ndarray) or options or a.nbytes > LARGEST_KEPT or not a.size:
            return self._cupy.asarray(a, dtype, **options)
        kept = self._kept
        a = a if dtype is None else a.astype(dtype, copy=False)
        key = (self._device(), a.dtype, a.shape, a.tobytes())
        found = kept.arrays.get(key)
        if found is None:
            found = self._cupy.asarray(a.copy("C"))  # refused during a capture
            kept.arrays[key] = found
            kept.nbytes += a.nbytes
            while kept.nbytes > MOST_KEPT:
                _, gone = kept.arrays.popitem(last=False)
                kept.nbytes -= gone.nbytes
        else:
            kept.arrays.move_to_end(key)
        hold(found)
        return found.copy()

    def _device(self) -> int:
        return int(self._cupy.cuda.Device().id)

    def concatenate(self, arrays: Sequence[Any], axis: int | None = 0) -> Array:
        """As CuPy's, which sends a table of addresses to the device where there are many arrays."""
        if not capturing() or axis is None:
            return self._cupy.concatenate(arrays, axis=axis)
        axis %= arrays[0].ndim
        extents = [a.shape[axis] for a in arrays]
        shape = (*arrays[0].shape[:axis], sum(extents), *arrays[0].shape[axis + 1 :])
        out = self._cupy.empty(shape, np.result_type(*[a.dtype for a in arrays]))
        begin = 0
        for array, extent in zip(arrays, extents, strict=True):
            out[(*[slice(None)] * axis, slice(begin, begin + extent))] = array
            begin += extent
        return out

    def stack(self, arrays: Sequence[Any], axis: int = 0) -> Array:
        """As CuPy's, by :meth:`concatenate`."""
        at = axis % (arrays[0].ndim + 1)
        return self.concatenate([self._cupy.expand_dims(a, at) for a in arrays], axis=at)


_made: dict[int, DeviceNamespace] = {}


def namespace(cupy: Namespace) -> Namespace:
    """The one of this module: what is compiled is kept by it."""
    return cast("Namespace", _made.setdefault(id(cupy), DeviceNamespace(cupy)))
