"""``torch._dynamo.eval_frame``: the class of compiled modules, and what can be compiled."""

from __future__ import annotations

from typing import Any

from .._core.compiling.module import CompiledModule as OptimizedModule
from ..compiler import disable

__all__ = ["OptimizedModule", "disable", "innermost_fn", "is_dynamo_supported", "is_inductor_supported"]


def innermost_fn(fn: Any, unaltered_fn_attr: str = "_torchdynamo_orig_callable") -> Any:
    """What is inside of functions that name in an attribute what they are of."""
    found = fn
    while hasattr(found, unaltered_fn_attr):
        found = getattr(found, unaltered_fn_attr)
    return found


def is_dynamo_supported() -> bool:
    """Whether ``torch.compile`` works: everywhere."""
    return True


def is_inductor_supported() -> bool:
    """Whether PyTorch's code generator works: no, there is none."""
    return False
