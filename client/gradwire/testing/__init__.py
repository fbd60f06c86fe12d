"""``torch.testing``: comparison of tensors in a program's own tests, and random test tensors."""

from .comparison import assert_allclose, assert_close
from .making import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
