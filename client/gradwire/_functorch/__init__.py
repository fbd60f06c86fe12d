"""``torch._functorch``: the steps of ``vmap``, which libraries replace for classes of their own."""

from . import vmap

__all__ = ["vmap"]
