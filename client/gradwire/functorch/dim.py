"""``functorch.dim``: dimensions that are values, which gradwire has not. Names are refused where they are called."""

from .._core.surface.stand_ins import stand_ins as _stand_ins

globals().update(
    _stand_ins(
        "functorch.dim", "Dim DimList Tensor cat dimlists dims expand stack unsqueeze use_c",
        "vmap maps a function over a dimension",
    )
)  # fmt: skip
