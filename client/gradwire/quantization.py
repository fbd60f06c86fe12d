"""``torch.quantization``: the older path of :mod:`torch.ao.quantization`."""

from .ao import quantization as _quantization

globals().update({name: value for name, value in vars(_quantization).items() if not name.startswith("_")})
__all__ = list(_quantization.__all__)
