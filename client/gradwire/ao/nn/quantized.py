"""``torch.ao.nn.quantized``: the newer path of :mod:`torch.nn.quantized`."""

from ...nn import quantized as _quantized
from ...nn.quantized import FloatFunctional as FloatFunctional

globals().update({name: value for name, value in vars(_quantized).items() if not name.startswith("_")})
__all__ = list(_quantized.__all__)
