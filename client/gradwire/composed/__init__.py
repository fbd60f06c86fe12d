"""Functions that PyTorch has and the op table needs not: each is a few ops of the table, by subject."""

from . import arranging

__all__ = ["arranging"]
