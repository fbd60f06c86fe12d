"""``torch.functional``: functions of the main namespace, under the module that PyTorch defines them in."""

from __future__ import annotations

from typing import Any

import gradwire as _gw

_NAMES = (
    "align_tensors", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "lu", "meshgrid", "norm", "split", "stft", "tensordot",
    "unique", "unique_consecutive", "unravel_index",
)  # fmt: skip
__all__ = [name for name in _NAMES if hasattr(_gw, name)]
globals().update({name: getattr(_gw, name) for name in __all__})
_PRIVATE = {"_meshgrid": "meshgrid", "_unique2": "unique", "_unique_impl": "unique"}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_gw, _PRIVATE.get(name, name))
