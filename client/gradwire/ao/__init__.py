"""``torch.ao``: quantization, which gradwire lacks; models that mark where it would happen run in floating point."""

from . import nn, quantization

__all__ = ["nn", "quantization"]
