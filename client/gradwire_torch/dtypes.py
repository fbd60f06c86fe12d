"""The dtypes of PyTorch as gradwire's, and back."""

from __future__ import annotations

from typing import Final

import torch

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

THEIRS: Final[dict[DType, torch.dtype]] = {dtype: getattr(torch, dtype.name) for dtype in dtypes.ALL}
OURS: Final[dict[torch.dtype, DType]] = {theirs: dtype for dtype, theirs in THEIRS.items()}
