"""``torch._dynamo.utils``: what libraries ask about PyTorch's compiler."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from ..compiler import is_compiling
from .eval_frame import is_dynamo_supported

__all__ = ["counters", "is_compile_supported", "is_compiling"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""Counts of what the compiler did: none, as it does nothing."""


def is_compile_supported(device_type: Any) -> bool:
    """Whether ``torch.compile`` works for tensors of a device: on every device of a server."""
    return is_dynamo_supported()
