"""``torch.ao.nn``: quantized modules, which gradwire lacks."""

from . import quantized

__all__ = ["quantized"]
