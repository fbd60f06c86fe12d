"""``torch.nn.quantized``: the older path of :mod:`torch.ao.nn.quantized`."""

from ..ao.nn import quantized as _quantized
from ..ao.nn.quantized import FloatFunctional as FloatFunctional

globals().update({name: value for name, value in vars(_quantized).items() if not name.startswith("_")})
__all__ = list(_quantized.__all__)
