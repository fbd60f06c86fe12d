"""``torch.finfo`` and ``torch.iinfo``: what the numbers of a dtype can be."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import ArgumentTypeError

from ..context.numpy_dtypes import NUMPY_DTYPES
from ..session.current_session import get_default_dtype


class finfo:
    """Limits of a floating point dtype, of the parts for a complex one; without one, of the default dtype.

    Attributes:
        bits: of one number.
        eps: the distance from 1 to the next number.
        max, min: the largest and the smallest number.
        tiny, smallest_normal: the smallest positive number of full precision.
        resolution: ten to the power of minus the decimal digits that are certain.

    Raises:
        ArgumentTypeError: for integers and bools.
    """

    bits: int
    dtype: str
    resolution: float
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float

    def __init__(self, dtype: DType | None = None) -> None:
        dtype = get_default_dtype() if dtype is None else OF_PYTHON_TYPES.get(dtype, dtype)  # type: ignore
        if not isinstance(dtype, DType) or dtype.category < dtypes.FLOATING:
            raise ArgumentTypeError(f"finfo is of floating point dtypes, not of {dtype!r:.40}: see iinfo")
        real = dtype.to_real()
        found: Any = ml_dtypes.finfo(NUMPY_DTYPES[real])  # type: ignore[no-untyped-call]
        self.dtype = real.name
        self.bits = 8 * real.itemsize
        self.eps, self.max, self.min = float(found.eps), float(found.max), float(found.min)
        self.tiny = self.smallest_normal = float(found.smallest_normal)
        self.resolution = 10.0 ** -math.floor(-math.log10(self.eps))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype: ``bits``, ``max``, ``min``.

    Raises:
        ArgumentTypeError: for any other dtype.
    """

    bits: int
    dtype: str
    max: int
    min: int

    def __init__(self, dtype: DType) -> None:
        if not isinstance(dtype, DType) or dtype.category != dtypes.INTEGRAL:
            raise ArgumentTypeError(f"iinfo is of integer dtypes, not of {dtype!r:.40}: see finfo")
        found = np.iinfo(NUMPY_DTYPES[dtype])
        self.dtype = dtype.name
        self.bits, self.max, self.min = found.bits, int(found.max), int(found.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
