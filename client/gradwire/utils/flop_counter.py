"""``torch.utils.flop_counter``: refused where it is called. The profiler's ``with_flops`` does not count either."""

from .._core.surface.stand_ins import fill

__all__: list[str] = []
fill(__name__, ("FlopCounterMode", "register_flop_formula"), "operations are not counted")
