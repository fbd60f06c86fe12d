"""Files that ``torch.save`` wrote, read without running anything that is in them.

A pickle is a program for a stack machine. ``machine.py`` is such a machine that can make plain values and nothing
else; ``allowed.py`` is the list of the names that a file may mention, each with what it stands for here; ``files.py``
knows the two forms of PyTorch's files; ``arrival.py`` sends the tensors to the server.
"""

from .arrival import Where, arrive
from .files import read

__all__ = ["Where", "arrive", "read"]
