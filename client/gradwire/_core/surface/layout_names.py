"""Names for tensors that are sparse, nested, quantized or in oneDNN's layout, as strided tensors answer them: a strided
tensor is dense, and what is for another layout is refused at the call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, DeviceError, ShapeError, Unsupported

from ..dispatch.dispatch import call
from ..tensor.tensor import Tensor
from .conversions import to
from .methods import attach, offer


def refusing(shown: str, why: str) -> Callable[..., NoReturn]:
    """A function of PyTorch's that gradwire lacks, and that tells so when it is called.

    Args:
        shown: the full name in PyTorch.
        why: the reason.
    """

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported(f"{shown} is not supported by gradwire: {why}")

    refused.__name__ = refused.__qualname__ = shown.rpartition(".")[2]
    refused.__doc__ = f"Not supported: {why}."
    return refused


def need_sparse(name: str) -> NoReturn:
    """Refuse a strided tensor where PyTorch expects a sparse one.

    Raises:
        ArgumentError: always.
    """
    raise ArgumentError(f"{name} is for sparse tensors, this one is strided: there are no sparse tensors")


def to_dense(self: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """Itself, or in another dtype: every tensor is dense."""
    return to(self, dtype)


def dense_dim(self: Tensor) -> int:
    """The number of dimensions, which are all dense."""
    return self.ndim


def sparse_dim(self: Tensor) -> int:
    """0: no dimension is sparse."""
    return 0


def dequantize(input: Tensor) -> Tensor:
    """In float32: no tensor is quantized."""
    return to(input, dtypes.float32)


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Deprecated: the same elements, in their order, in another shape.

    Raises:
        ShapeError: for another number of elements.
    """
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    size = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    count = 1
    for extent in size:
        count *= extent
    if count != self.numel():
        raise ShapeError(f"resize: {self._form!r} has {self.numel()} elements, {list(size)} has {count}")
    return call("view", call("contiguous", self), size)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Deprecated: :meth:`resize` to the shape of another tensor."""
    return resize(self, *tensor.shape)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a module's tensor becomes when a state dict is loaded: itself with the values of ``other``, or ``other``."""
    if assign:
        return other.detach()
    return self.copy_(other).detach()


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, both strided here."""
    return call("mm", input, mat2)


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, both strided here."""
    return call("mm", input, mat2)


def is_distributed(input: Tensor) -> bool:
    """False: a tensor is in one session."""
    return False


def _volatile(self: Tensor) -> bool:
    """False: PyTorch has no such tensors any more."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
    return False


def _nonzero(self: Tensor) -> bool:
    """The value of a tensor of one element as a bool."""
    return bool(self)


_STRIDED: Final = (
    "coalesce", "is_coalesced", "values", "indices", "crow_indices", "col_indices", "ccol_indices", "row_indices",
    "smm", "sspaddmm",
)  # fmt: skip
_OTHERS: Final = {
    "there are no sparse tensors": (
        "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "sparse_mask",
        "sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_", "_nnz", "_indices", "_values", "_coalesced_",
    ),
    "there are no nested tensors": ("to_padded_tensor",),
    "tensors do not have oneDNN's layout": ("to_mkldnn",),
    "there are no quantized dtypes": (
        "int_repr", "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points",
        "q_per_channel_axis", "qscheme",
    ),
}  # fmt: skip
_REMOVED: Final = {
    "eig": "torch.linalg.eig", "lstsq": "torch.linalg.lstsq", "solve": "torch.linalg.solve",
    "symeig": "torch.linalg.eigh", "reinforce": "torch.distributions",
}  # fmt: skip
_FUNCTIONS: Final = {
    "there are no sparse tensors": (
        "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
        "sparse_compressed_tensor", "hspmm", "hsmm", "resize_as_sparse_",
    ),
    "there are no quantized dtypes": (
        "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "int_repr", "q_scale",
        "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis",
        "fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine",
    ),
}  # fmt: skip


def _strided(name: str) -> Callable[..., NoReturn]:
    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        need_sparse(name)

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = "Refused: it is for sparse tensors."
    return refused


def _removed(name: str, instead: str) -> Callable[..., NoReturn]:
    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError(f"{name} was removed from PyTorch: use {instead}")

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = f"Removed from PyTorch: use {instead}."
    return refused


def _elsewhere(kind: str) -> Callable[..., NoReturn]:
    def refused(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise DeviceError(f"{kind}(): the server has no such device, its devices are CPUs and CUDA devices")

    refused.__name__ = refused.__qualname__ = kind
    refused.__doc__ = "Refused: devices are CPUs and CUDA devices."
    return refused


def _divided(self: Tensor, other: Tensor | complex) -> Any:
    """Python 2's name of ``/``."""
    return self / other


def _divided_in_place(self: Tensor, other: Tensor | complex) -> Any:
    """Python 2's name of ``/=``."""
    return self.__itruediv__(other)


for _method in (to_dense, dense_dim, sparse_dim, resize, resize_as, module_load):
    attach(_method.__name__, _method)
for _function in (dequantize, is_distributed):
    offer(_function)
for _product in (spmm, dsmm):
    offer(_product, method=False)
attach("volatile", property(_volatile))
attach("__nonzero__", _nonzero)
attach("__div__", _divided)
attach("__idiv__", _divided_in_place)
for _name in _STRIDED:
    attach(_name, _strided(_name))
for _name in ("smm", "sspaddmm", "saddmm"):
    offer(_strided(_name), method=False)
for _why, _names in _OTHERS.items():
    for _name in _names:
        attach(_name, refusing(f"torch.Tensor.{_name}", _why))
for _name, _instead in _REMOVED.items():
    attach(_name, _removed(_name, _instead))
    if _name != "reinforce":
        offer(_removed(_name, _instead), method=False)
for _kind in ("ipu", "xpu", "mtia"):
    attach(_kind, _elsewhere(_kind))
for _why, _names in _FUNCTIONS.items():
    for _name in _names:
        offer(refusing(f"torch.{_name}", _why), method=False)
