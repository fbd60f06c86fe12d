"""What runs on a GPU only: fused kernels, matrix products on tensor cores, graphs. Loaded when a GPU is first used."""

from __future__ import annotations

from functools import cache

from gradwire_protocol.table import TABLE

from .registry import KERNELS, Fused


@cache
def load() -> dict[str, Fused]:
    """The ops that have a kernel of their own on a GPU, in-place forms included."""
    from .. import ops  # noqa: F401  (fills the registry, which some kernels ask)
    from ..registry import row
    from . import attention, convolution, dropout, losses, optimizer, pointwise, products, rows  # noqa: F401  (each registers its own)

    found = dict(KERNELS)
    for op in TABLE.values():
        if op.base is not None and op.base.name in KERNELS and not row(op.name).writes:
            found[op.name] = KERNELS[op.base.name]
    return found
