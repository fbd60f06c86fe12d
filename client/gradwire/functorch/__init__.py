"""``functorch``: the older package of function transforms, which programs import beside ``torch``."""

from __future__ import annotations

from .._core.surface.stand_ins import stand_ins as _stand_ins
from ..func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from ..func.stateless import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad", "grad_and_value",
    "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip

__version__ = "2.13.0"
globals().update(
    _stand_ins("functorch", "functionalize make_fx", "transforms record what they compute; torch.compile replays it")
)
