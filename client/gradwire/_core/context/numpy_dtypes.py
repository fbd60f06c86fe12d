"""The dtypes of tensors as NumPy's, and back."""

from __future__ import annotations

from typing import Final

import ml_dtypes
import numpy as np

from gradwire_protocol import dtypes

NUMPY_DTYPES: Final = {d: np.dtype(ml_dtypes.bfloat16 if d is dtypes.bfloat16 else d.name) for d in dtypes.ALL}
DTYPES: Final = {native: dtype for dtype, native in NUMPY_DTYPES.items()}
