"""Reads files of ``torch.save`` without executing their pickles.

A pickle is a program for a stack machine. ``machine.py`` is such a machine that can only build plain values;
``allowed.py`` lists the names that a file may mention, with their meaning here; ``files.py`` reads the two formats of
PyTorch's files; ``arrival.py`` uploads the tensors.
"""

from .arrival import Where, arrive
from .files import read

__all__ = ["Where", "arrive", "read"]
