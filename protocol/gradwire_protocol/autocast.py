"""What autocast casts the operands of an op to, by kind of device, as PyTorch's notes on mixed precision list it."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Precision(Enum):
    """What operands are cast to."""

    GIVEN = "what they are"
    LOWER = "the lower precision that is chosen"
    FLOAT32 = "float32"
    WIDEST = "the widest of their dtypes"
    FIRST = "the dtype of the first, if it is a lower precision"
    REFUSED = "none: the op is refused"


class Autocast(NamedTuple):
    """By kind of device."""

    cuda: Precision = Precision.GIVEN
    cpu: Precision = Precision.GIVEN


AS_GIVEN: Final = Autocast()
LOWER: Final = Autocast(Precision.LOWER, Precision.LOWER)
FLOAT32: Final = Autocast(Precision.FLOAT32, Precision.FLOAT32)
GPU_LOWER: Final = Autocast(Precision.LOWER)
GPU_FLOAT32: Final = Autocast(Precision.FLOAT32)
GPU_WIDEST: Final = Autocast(Precision.WIDEST)
GPU_REFUSED: Final = Autocast(Precision.REFUSED, Precision.FLOAT32)
NORMALIZING: Final = Autocast(Precision.FLOAT32, Precision.FIRST)
GPU_WIDEST_CPU_LOWER: Final = Autocast(Precision.WIDEST, Precision.LOWER)
GPU_WIDEST_CPU_FLOAT32: Final = Autocast(Precision.WIDEST, Precision.FLOAT32)
CPU_FLOAT32: Final = Autocast(cpu=Precision.FLOAT32)
CPU_WIDEST: Final = Autocast(cpu=Precision.WIDEST)
