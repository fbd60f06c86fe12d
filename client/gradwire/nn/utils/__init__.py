"""``torch.nn.utils``: gradient clipping, parameters as one vector, packed sequences, parametrizations."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from . import rnn
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .vector import parameters_to_vector, vector_to_parameters

if TYPE_CHECKING:
    from . import fusion as fusion
    from . import memory_format as memory_format
    from . import parametrizations, parametrize, prune, stateless
    from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
    from .memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
    from .skipping import skip_init
    from .spectral_normalization import remove_spectral_norm, spectral_norm
    from .weight_normalization import remove_weight_norm, weight_norm

# Imported when they are asked for: few programs need them.
_LATER = {
    **dict.fromkeys(("weight_norm", "remove_weight_norm"), "weight_normalization"),
    **dict.fromkeys(("spectral_norm", "remove_spectral_norm"), "spectral_normalization"),
    **dict.fromkeys(
        ("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"), "fusion"
    ),
    **dict.fromkeys(("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"), "memory_format"),
    "skip_init": "skipping",
    **{name: name for name in ("fusion", "memory_format", "parametrizations", "parametrize", "prune", "stateless")},
}
_MODULES = ("fusion", "memory_format", "parametrizations", "parametrize", "prune", "stateless")


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _LATER:
        from ..._core.surface.unsupported import absent

        raise absent(sys.modules[__name__], name)
    module = import_module(f"{__name__}.{_LATER[name]}")
    found = module if name in _MODULES else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector",
    "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init",
    "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip
