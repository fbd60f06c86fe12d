"""The dtypes, under PyTorch's names, ordered for type promotion."""

from __future__ import annotations

from typing import Final

from .errors import DTypeError


class DType:
    """A dtype. Each is a singleton, so ``is`` compares them.

    Attributes:
        name: PyTorch's name without its prefix, e.g. ``"float32"``.
        category: 0 for bool, 1 for integers, 2 for floating point, 3 for complex.
        carries_gradient: whether its tensors can require grad: floating point and complex ones.
        itemsize: bytes per element.
        safetensors: its tag in a safetensors header, or ``None`` if the format has none.
        for_storage: whether it is for storage: the few ops that take it are those of :mod:`.storage_dtypes`.
    """

    __slots__ = ("carries_gradient", "category", "for_storage", "index", "itemsize", "name", "safetensors")

    def __init__(
        self, index: int, name: str, category: int, itemsize: int, safetensors: str | None, for_storage: bool = False
    ) -> None:
        self.index: int = index
        self.name: str = name
        self.category: int = category
        self.carries_gradient: bool = category >= FLOATING
        self.itemsize: int = itemsize
        self.safetensors: str | None = safetensors
        self.for_storage: bool = for_storage

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        return not self.name.startswith(("bool", "uint", "quint", "float8_e8m0"))

    @property
    def is_low_precision(self) -> bool:
        """Whether arithmetic on it accumulates in float32."""
        return self.itemsize <= 2 and self.category == FLOATING

    def to_real(self) -> DType:
        return _TO_REAL.get(self, self)

    def to_complex(self) -> DType:
        """The complex dtype of this precision.

        Raises:
            DTypeError: for a dtype for storage, which has none.
        """
        if self.for_storage:
            raise DTypeError(f"there is no complex dtype of the precision of {self.name}: convert it first")
        return _TO_COMPLEX.get(self, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self


BOOLEAN: Final = 0
INTEGRAL: Final = 1
FLOATING: Final = 2
COMPLEX: Final = 3

bool_ = DType(0, "bool", BOOLEAN, 1, "BOOL")
uint8 = DType(1, "uint8", INTEGRAL, 1, "U8")
int8 = DType(2, "int8", INTEGRAL, 1, "I8")
int16 = DType(3, "int16", INTEGRAL, 2, "I16")
int32 = DType(4, "int32", INTEGRAL, 4, "I32")
int64 = DType(5, "int64", INTEGRAL, 8, "I64")
float16 = DType(6, "float16", FLOATING, 2, "F16")
bfloat16 = DType(7, "bfloat16", FLOATING, 2, "BF16")
float32 = DType(8, "float32", FLOATING, 4, "F32")
float64 = DType(9, "float64", FLOATING, 8, "F64")
complex64 = DType(10, "complex64", COMPLEX, 8, "C64")
complex128 = DType(11, "complex128", COMPLEX, 16, None)

uint16 = DType(12, "uint16", INTEGRAL, 2, "U16", for_storage=True)
uint32 = DType(13, "uint32", INTEGRAL, 4, "U32", for_storage=True)
uint64 = DType(14, "uint64", INTEGRAL, 8, "U64", for_storage=True)
float8_e4m3fn = DType(15, "float8_e4m3fn", FLOATING, 1, "F8_E4M3", for_storage=True)
float8_e5m2 = DType(16, "float8_e5m2", FLOATING, 1, "F8_E5M2", for_storage=True)

COMPUTED: Final[tuple[DType, ...]] = (
    bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
"""The dtypes that are computed with."""

STORED: Final[tuple[DType, ...]] = (uint16, uint32, uint64, float8_e4m3fn, float8_e5m2)
"""The dtypes for storage."""

ALL: Final[tuple[DType, ...]] = (*COMPUTED, *STORED)
BY_NAME: Final[dict[str, DType]] = {dtype.name: dtype for dtype in ALL}

NAMED: Final[dict[str, DType]] = {
    name: DType(-1, name, category, itemsize, None, for_storage=True)
    for category, itemsize, names in (
        (FLOATING, 1, ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2")),
        (COMPLEX, 4, ("complex32",)),
        (INTEGRAL, 1, ("qint8", "quint8", "quint4x2", "quint2x4", "bits8", "bits1x8", "bits2x4", "bits4x2")),
        (INTEGRAL, 1, tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8))),
        (INTEGRAL, 2, ("bits16",)),
        (INTEGRAL, 4, ("qint32",)),
    )
    for name in names
}
"""Dtypes of PyTorch that no tensor has here. Programs compare dtypes with them (``x.dtype is torch.float8_e5m2fnuz``),
which is always False; an op that is to make a tensor of one is refused."""

OF_PYTHON_TYPES: Final = {bool: bool_, int: int64, float: float64, complex: complex128}
"""The dtypes of Python types that are passed as a dtype."""

_TO_REAL: dict[DType, DType] = {complex64: float32, complex128: float64}
_TO_COMPLEX: dict[DType, DType] = {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}
