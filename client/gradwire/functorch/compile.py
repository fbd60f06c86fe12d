"""``functorch.compile``: names that are refused where they are called."""

from .._core.surface.stand_ins import stand_ins as _stand_ins

globals().update(
    _stand_ins(
        "functorch.compile", "aot_function aot_module compiled_function compiled_module default_partition "
        "make_boxed_func memory_efficient_fusion min_cut_rematerialization_partition nop ts_compile",
        "torch.compile replays what a function records",
    )
)  # fmt: skip
