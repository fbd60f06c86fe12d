"""``torch.testing``: comparing tensors in a program's own tests, and making some."""

from .comparison import assert_close
from .making import make_tensor

__all__ = ["assert_close", "make_tensor"]
