"""``gradwire.compile``: calls that were recorded once, sent again without running the Python body."""

from .function import Compiled, compile
from .repeating import each, repeat

__all__ = ["Compiled", "compile", "each", "repeat"]
