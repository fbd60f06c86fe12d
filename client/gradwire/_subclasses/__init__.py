"""``torch._subclasses``: PyTorch's tensors without values, for ``isinstance``. Here the meta device has those."""

from .fake_tensor import FakeTensor, FakeTensorMode, UnsupportedFakeTensorException
from .functional_tensor import FunctionalTensor

__all__ = ["FakeTensor", "FakeTensorMode", "FunctionalTensor", "UnsupportedFakeTensorException"]
