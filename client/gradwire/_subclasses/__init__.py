"""``torch._subclasses``: PyTorch's tensors without values, for ``isinstance``. Here the meta device has those."""

from . import fake_tensor, functional_tensor
from .fake_tensor import UnsupportedFakeTensorException

__all__ = ["UnsupportedFakeTensorException"]

for _module in (fake_tensor, functional_tensor):
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
    __all__ += _module.__all__
