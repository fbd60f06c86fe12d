"""The texts that parameters of type ``str`` accept. The rules of the ops check them and say so in their errors."""

from __future__ import annotations

from typing import Final

from .ops import bags, batching, choosing, collectives, distances, fourier, indexing, losses, padding, resampling
from .table import Op, Param

_MODES_OF_SIZES: Final = tuple(dict.fromkeys(mode for modes in resampling.SIZED_MODES.values() for mode in modes))

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "UPLO": ("L", "U"),
    "adjust": ("original", "match_rms_adamw"),
    "approximate": ("none", "tanh"),
    "cdist.compute_mode": distances.MODES,
    "driver": ("gels", "gelsy", "gelsd", "gelss"),
    "embedding_bag.mode": bags.BAG_MODES,
    "grid_gather.mode": resampling.GRID_MODES,
    "grid_sampler.mode": resampling.GRID_MODES,
    "grid_spread.mode": resampling.GRID_MODES,
    "interpolate.mode": _MODES_OF_SIZES,
    "interpolate_backward.mode": _MODES_OF_SIZES,
    "interpolation": choosing.INTERPOLATIONS,
    "kl_div.reduction": (*losses.REDUCTIONS, "batchmean"),
    "linalg_qr.mode": ("reduced", "complete", "r"),
    "pad.mode": padding.MODES,
    "pad_backward.mode": padding.MODES[1:],
    "reduce_op": collectives.REDUCTIONS,
    "padding": ("valid", "same"),
    "padding_mode": resampling.PADDING_MODES,
    "padding_side": ("left", "right"),
    "precision": ("highest", "high", "medium"),
    "randomness": batching.RANDOMNESS,
    "reduce": indexing.REDUCTIONS,
    "reduction": losses.REDUCTIONS,
    "rounding_mode": ("trunc", "floor"),
    "scale": tuple(fourier.SCALES),
}
"""By parameter, or by op and parameter where ops differ."""

FREE: Final = frozenset({"device", "dtype", "equation", "group", "message", "name"})
"""Parameters that accept any text, a name or a device."""


def choices(op: Op, param: Param) -> tuple[str, ...] | None:
    """The texts that a parameter accepts; ``None`` for any."""
    return CHOICES.get(f"{op.name}.{param.name}", CHOICES.get(param.name))
