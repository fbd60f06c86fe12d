# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

import numpy
from builtins import bool as _bool, float as _float, int as _int, type as _type
from collections.abc import Callable, Iterator, Sequence
from gradwire._core.backward.backward import Tensors
from gradwire._core.context.layouts import layout as _layout, memory_format
from gradwire._core.context.size import device
from gradwire._core.surface.generator import Generator
from gradwire._core.surface.interchange import DLDeviceType
from gradwire._core.surface.storages import UntypedStorage
from gradwire._core.surface.typed_storages import TypedStorage
from gradwire._core.tensor.tensor import Tensor
from gradwire.return_types import aminmax as _aminmax, cummax as _cummax, cummin as _cummin, frexp as _frexp, geqrf as _geqrf, histogram as _histogram, kthvalue as _kthvalue, max as _max, median as _median, min as _min, mode as _mode, nanmedian as _nanmedian, qr as _qr, slogdet as _slogdet, sort as _sort, svd as _svd, topk as _topk, triangular_solve as _triangular_solve
from gradwire_protocol.dtypes import DType
from typing import Any, Literal, NoReturn, Self, overload

class Attached:
    @property
    def H(self) -> Tensor: ...
    @property
    def T(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Tensor | complex) -> Tensor: ...
    def __and__(self, other: Tensor | complex) -> Tensor: ...
    __array_priority__: _int
    def __array_wrap__(self, array: numpy.ndarray[Any, Any], context: Any = None, return_scalar: _bool = False) -> Tensor:
        """A result that NumPy computed of tensors, as a tensor."""
    def __contains__(self, value: Any) -> _bool: ...
    def __copy__(self) -> Any:
        """What ``copy.copy`` makes of a tensor: another leaf of its class with the same memory."""
    def __deepcopy__(self, memo: dict[_int, Any]) -> Any: ...
    def __delitem__(self, key: Any) -> None:
        """Refuse ``del x[...]``: a tensor's shape is fixed."""
    def __dir__(self) -> list[str]:
        """The public attributes of a tensor that gradwire has. Of at most 750, Python suggests one for a typo."""
    def __div__(self, other: Tensor | complex) -> Any:
        """Python 2's name of ``/``."""
    def __dlpack__(self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: _bool | None = None) -> Any:
        """The values as a DLPack capsule, of a copy in the host's memory. One round trip."""
    def __dlpack_device__(self) -> tuple[DLDeviceType, _int]:
        """The host: that is where the exported copy is."""
    def __eq__(self, other: Tensor | complex) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: Tensor | complex) -> Tensor: ...
    def __ge__(self, other: Tensor | complex) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor:
        """The elements that ``key`` names: a view for ints, slices, None and Ellipsis, a copy for tensors and masks."""
    def __gt__(self, other: Tensor | complex) -> Tensor: ...
    def __iadd__(self, other: Tensor | complex) -> Tensor: ...
    def __iand__(self, other: Tensor | complex) -> Tensor: ...
    def __idiv__(self, other: Tensor | complex) -> Any:
        """Python 2's name of ``/=``."""
    def __ifloordiv__(self, other: Tensor | complex) -> Tensor: ...
    def __ilshift__(self, other: Tensor | complex) -> Tensor: ...
    def __imod__(self, other: Tensor | complex) -> Tensor: ...
    def __imul__(self, other: Tensor | complex) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Tensor | complex) -> Tensor: ...
    def __ipow__(self, other: Tensor | complex) -> Tensor: ...
    def __irshift__(self, other: Tensor | complex) -> Tensor: ...
    def __isub__(self, other: Tensor | complex) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, other: Tensor | complex) -> Tensor: ...
    def __ixor__(self, other: Tensor | complex) -> Tensor: ...
    def __le__(self, other: Tensor | complex) -> Tensor: ...
    def __lshift__(self, other: Tensor | complex) -> Tensor: ...
    def __lt__(self, other: Tensor | complex) -> Tensor: ...
    def __matmul__(self, other: Tensor | complex) -> Tensor: ...
    def __mod__(self, other: Tensor | complex) -> Tensor: ...
    def __mul__(self, other: Tensor | complex) -> Tensor: ...
    def __ne__(self, other: Tensor | complex) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __new__(cls, *args: Any, device: device | str | _int | None = None) -> Self:
        """``Tensor(...)``: see :func:`.creation.legacy_tensor`."""
    def __nonzero__(self) -> _bool:
        """The value of a tensor of one element as a bool."""
    def __or__(self, other: Tensor | complex) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Tensor | complex) -> Tensor: ...
    def __radd__(self, other: Tensor | complex) -> Tensor: ...
    def __rand__(self, other: Tensor | complex) -> Tensor: ...
    def __rdiv__(self, other: Tensor | complex) -> Tensor: ...
    def __reduce_ex__(self, protocol: Any) -> Any: ...
    def __repr__(self) -> str:
        """``repr(tensor)``. It costs a round trip, for the elements that are shown."""
    def __reversed__(self) -> Tensor: ...
    def __rfloordiv__(self, other: Tensor | complex) -> Tensor: ...
    def __rlshift__(self, other: Tensor | complex) -> Tensor: ...
    def __rmatmul__(self, other: Tensor | complex) -> Tensor: ...
    def __rmod__(self, other: Tensor | complex) -> Tensor: ...
    def __rmul__(self, other: Tensor | complex) -> Tensor: ...
    def __ror__(self, other: Tensor | complex) -> Tensor: ...
    def __rpow__(self, other: Tensor | complex) -> Tensor: ...
    def __rrshift__(self, other: Tensor | complex) -> Tensor: ...
    def __rshift__(self, other: Tensor | complex) -> Tensor: ...
    def __rsub__(self, other: Tensor | complex) -> Tensor: ...
    def __rtruediv__(self, other: Tensor | complex) -> Tensor: ...
    def __rxor__(self, other: Tensor | complex) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None:
        """Write into the elements that ``key`` names."""
    def __sub__(self, other: Tensor | complex) -> Tensor: ...
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = ..., kwargs: Any = None) -> Any:
        """Run a function and give its results this class. A subclass that defines its own decides what is run."""
    def __truediv__(self, other: Tensor | complex) -> Tensor: ...
    def __xor__(self, other: Tensor | complex) -> Tensor: ...
    def _coalesced_(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    @property
    def _grad(self) -> Tensor | None: ...
    @_grad.setter
    def _grad(self, value: Tensor | None) -> None: ...
    @_grad.deleter
    def _grad(self) -> None: ...
    def _indices(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    @staticmethod
    def _make_subclass(cls: _type[Tensor], data: Tensor, require_grad: _bool = False) -> Any:
        """The memory of a tensor as one of a subclass, without its history."""
    def _nnz(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def _repr_html_(self) -> str | None:
        """What a notebook shows. It costs a round trip; ``None`` where the summary cannot be computed."""
    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows, as HTML and as text. Both come from one round trip."""
    def _typed_storage(self) -> TypedStorage:
        """Its memory as numbers of its dtype."""
    def _values(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """The absolute value; of a complex number its magnitude, which is real. Not defined on bools."""
    def abs_(self) -> Tensor:
        """In-place form of :func:`abs`: writes the result into ``self``."""
    def absolute(self, *, out: Tensor | None = None) -> Tensor:
        """The absolute value; of a complex number its magnitude, which is real. Not defined on bools."""
    def absolute_(self) -> Tensor:
        """In-place form of :func:`abs`: writes the result into ``self``."""
    def acos(self, *, out: Tensor | None = None) -> Tensor:
        """The angle whose cosine is ``self``: NaN outside -1 to 1; integers become floats."""
    def acos_(self) -> Tensor:
        """In-place form of :func:`acos`: writes the result into ``self``."""
    def acosh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic cosine: NaN below 1; integers become floats."""
    def acosh_(self) -> Tensor:
        """In-place form of :func:`acosh`: writes the result into ``self``."""
    def add(self, other: Tensor | complex, *, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``self + alpha * other``, with broadcasting and promotion. On bools it is a logical or."""
    def add_(self, other: Tensor | complex, *, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`add`: writes the result into ``self``."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``beta * self + alpha * (batch1 @ batch2).sum(0)``: the products of a batch are summed into one matrix."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`addbmm`: writes the result into ``self``."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: complex = 1, out: Tensor | None = None) -> Tensor:
        """``self + value * tensor1 / tensor2``, with broadcasting and promotion; not for a quotient of integers."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: complex = 1) -> Tensor:
        """In-place form of :func:`addcdiv`: writes the result into ``self``."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: complex = 1, out: Tensor | None = None) -> Tensor:
        """``self + value * tensor1 * tensor2``, with broadcasting and promotion. Not defined on bools alone."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: complex = 1) -> Tensor:
        """In-place form of :func:`addcmul`: writes the result into ``self``."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``beta * self + alpha * (mat1 @ mat2)`` for matrices; ``self`` is expanded to the product's shape."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`addmm`: writes the result into ``self``."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: complex = 1, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``beta * self + alpha * (mat @ vec)`` for a matrix and a vector."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`addmv`: writes the result into ``self``."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: complex = 1, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``beta * self + alpha * outer(vec1, vec2)``. Promotes dtypes; on bools it is ``self or (vec1 and vec2)``."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`addr`: writes the result into ``self``."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose of the last two dimensions."""
    def all(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Whether all elements differ from zero; bool (uint8 for uint8). True where there is none."""
    def allclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether all elements are close. One round trip."""
    def amax(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Largest elements over one or several dimensions; gradients are shared equally among equals."""
    def amin(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Smallest elements over one or several dimensions; gradients are shared equally among equals."""
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False, out: Sequence[Tensor] | None = None) -> _aminmax:
        """(smallest, largest) of all elements or along one dimension."""
    def angle(self, *, out: Tensor | None = None) -> Tensor:
        """The argument of complex numbers, from -pi to pi; of real numbers 0, or pi if negative."""
    def any(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Whether some element differs from zero; bool (uint8 for uint8). False where there is none."""
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element by what a function of the program makes of it. One round trip; nothing is recorded."""
    def arccos(self, *, out: Tensor | None = None) -> Tensor:
        """The angle whose cosine is ``self``: NaN outside -1 to 1; integers become floats."""
    def arccos_(self) -> Tensor:
        """In-place form of :func:`acos`: writes the result into ``self``."""
    def arccosh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic cosine: NaN below 1; integers become floats."""
    def arccosh_(self) -> Tensor:
        """In-place form of :func:`acosh`: writes the result into ``self``."""
    def arcsin(self, *, out: Tensor | None = None) -> Tensor:
        """The angle whose sine is ``self``: NaN outside -1 to 1; integers become floats."""
    def arcsin_(self) -> Tensor:
        """In-place form of :func:`asin`: writes the result into ``self``."""
    def arcsinh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic sine; integers become floats."""
    def arcsinh_(self) -> Tensor:
        """In-place form of :func:`asinh`: writes the result into ``self``."""
    def arctan(self, *, out: Tensor | None = None) -> Tensor:
        """The angle whose tangent is ``self``; integers become floats."""
    def arctan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The angle of the point with abscissa ``other`` and ordinate ``self``, from -pi to pi."""
    def arctan2_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`atan2`: writes the result into ``self``."""
    def arctan_(self) -> Tensor:
        """In-place form of :func:`atan`: writes the result into ``self``."""
    def arctanh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic tangent: NaN outside -1 to 1; integers become floats."""
    def arctanh_(self) -> Tensor:
        """In-place form of :func:`atanh`: writes the result into ``self``."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Index of the first largest element: of the flattened tensor, or along ``dim``. NaN counts as largest."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Index of the first smallest element: of the flattened tensor, or along ``dim``. NaN counts as smallest."""
    def argsort(self, dim: _int = -1, descending: _bool = False, *, stable: _bool = False, out: Tensor | None = None) -> Tensor:
        """The indices that :func:`sort` gives."""
    def argwhere(self, *, out: Tensor | None = None) -> Tensor:
        """Same as :func:`nonzero`."""
    def as_strided(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """A view of the tensor's memory with any size and strides, both in elements."""
    def as_strided_(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """Lay another shape and strides over the tensor's memory: see :func:`as_strided`."""
    def as_strided_scatter(self, src: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """A copy of the tensor with ``src`` written into the part that :func:`as_strided` shows. One round trip where an
    offset is given."""
    def as_subclass(self, cls: _type[Tensor]) -> Tensor:
        """The same tensor as one of a subclass of Tensor. Gradients flow through it."""
    def asin(self, *, out: Tensor | None = None) -> Tensor:
        """The angle whose sine is ``self``: NaN outside -1 to 1; integers become floats."""
    def asin_(self) -> Tensor:
        """In-place form of :func:`asin`: writes the result into ``self``."""
    def asinh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic sine; integers become floats."""
    def asinh_(self) -> Tensor:
        """In-place form of :func:`asinh`: writes the result into ``self``."""
    def atan(self, *, out: Tensor | None = None) -> Tensor:
        """The angle whose tangent is ``self``; integers become floats."""
    def atan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The angle of the point with abscissa ``other`` and ordinate ``self``, from -pi to pi."""
    def atan2_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`atan2`: writes the result into ``self``."""
    def atan_(self) -> Tensor:
        """In-place form of :func:`atan`: writes the result into ``self``."""
    def atanh(self, *, out: Tensor | None = None) -> Tensor:
        """Inverse hyperbolic tangent: NaN outside -1 to 1; integers become floats."""
    def atanh_(self) -> Tensor:
        """In-place form of :func:`atanh`: writes the result into ``self``."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Tensors | None = None) -> None:
        """Accumulate gradients into the leaves (or ``inputs``) that this tensor depends on. Does not wait."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``beta * self + alpha * (batch1 @ batch2)``, matrix by matrix of a batch."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`baddbmm`: writes the result into ``self``."""
    def bernoulli(self, p: _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """1 with the probability that ``self`` holds, else 0; with ``p`` only the shape and dtype of ``self`` count."""
    def bernoulli_(self, p: Tensor | _float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill with 1 with probability ``p`` (a number, or a tensor that broadcasts), else 0."""
    def bfloat16(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype bfloat16."""
    def bincount(self, weights: Tensor | None = None, minlength: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """How often each of 0, 1, 2, ... occurs in a vector of integers, or the sum of the weights where it does."""
    def bitwise_and(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """The bits set in both; on bools the logical and."""
    def bitwise_and_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`bitwise_and`: writes the result into ``self``."""
    def bitwise_left_shift(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Bits moved up by ``other``; 0 if that is negative or beyond the width."""
    def bitwise_left_shift_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`bitwise_left_shift`: writes the result into ``self``."""
    def bitwise_not(self, *, out: Tensor | None = None) -> Tensor:
        """Every bit inverted; on bools the logical not."""
    def bitwise_not_(self) -> Tensor:
        """In-place form of :func:`bitwise_not`: writes the result into ``self``."""
    def bitwise_or(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """The bits set in either; on bools the logical or."""
    def bitwise_or_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`bitwise_or`: writes the result into ``self``."""
    def bitwise_right_shift(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Bits moved down by ``other``, keeping the sign; all of them if that is negative or beyond the width."""
    def bitwise_right_shift_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`bitwise_right_shift`: writes the result into ``self``."""
    def bitwise_xor(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """The bits set in one of the two; on bools the logical xor."""
    def bitwise_xor_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`bitwise_xor`: writes the result into ``self``."""
    def bmm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The products of two batches of matrices, one by one: ``(b, n, k)`` times ``(b, k, m)`` is ``(b, n, m)``."""
    def bool(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype bool."""
    @overload
    def broadcast_to(self, size: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
        """Same as :meth:`expand`, as a function."""
    @overload
    def broadcast_to(self, *size: _int, out: Tensor | None = None) -> Tensor: ...
    def bucketize(self, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor:
        """The number of the interval between sorted ``boundaries`` that each value falls into. A boundary belongs to the
    interval below it, with ``right`` to the one above."""
    def byte(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype uint8."""
    def cauchy_(self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers of the Cauchy distribution."""
    def ccol_indices(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def cdouble(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype complex128."""
    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """Round up; integers stay as they are. The gradient is zero."""
    def ceil_(self) -> Tensor:
        """In-place form of :func:`ceil`: writes the result into ``self``."""
    def cfloat(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype complex64."""
    def char(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype int8."""
    def cholesky(self, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """The Cholesky factor of Hermitian, positive definite matrices; see :func:`gradwire.linalg.cholesky`."""
    def cholesky_inverse(self, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """The inverse of A, where ``self`` is A's Cholesky factor."""
    def cholesky_solve(self, input2: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """The solution ``X`` of ``A @ X = self``, where ``input2`` is A's Cholesky factor. Batches broadcast."""
    def chunk(self, chunks: _int, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
        """Views of at most ``chunks`` consecutive parts along a dimension, of equal size except the last."""
    def clamp(self, min: Tensor | complex | None = None, max: Tensor | complex | None = None, *, out: Tensor | None = None) -> Tensor:
        """Cut the values to the range from ``min`` to ``max``; either may be left out, not both."""
    def clamp_(self, min: Tensor | complex | None = None, max: Tensor | complex | None = None) -> Tensor:
        """In-place form of :func:`clamp`: writes the result into ``self``."""
    def clamp_max(self, max: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Lower values above ``max`` to it."""
    def clamp_max_(self, max: Tensor | complex) -> Tensor:
        """In-place form of :func:`clamp_max`: writes the result into ``self``."""
    def clamp_min(self, min: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Raise values below ``min`` to it."""
    def clamp_min_(self, min: Tensor | complex) -> Tensor:
        """In-place form of :func:`clamp_min`: writes the result into ``self``."""
    def clip(self, min: Tensor | complex | None = None, max: Tensor | complex | None = None, *, out: Tensor | None = None) -> Tensor:
        """Cut the values to the range from ``min`` to ``max``; either may be left out, not both."""
    def clip_(self, min: Tensor | complex | None = None, max: Tensor | complex | None = None) -> Tensor:
        """In-place form of :func:`clamp`: writes the result into ``self``."""
    def clone(self, *, memory_format: memory_format | None = None) -> Tensor:
        """A copy that gradients flow through: in the memory order that is named, else as the tensor lies."""
    def coalesce(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def col_indices(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def combinations(self, r: _int = 2, with_replacement: _bool = False) -> Tensor:
        """The combinations of ``r`` elements of a vector, a row each, in lexicographic order of their places."""
    def conj(self) -> Tensor:
        """The complex conjugates, in memory of their own; a real tensor itself."""
    def conj_physical(self) -> Tensor:
        """The complex conjugates, in memory of their own; a real tensor itself."""
    def conj_physical_(self) -> Tensor:
        """In-place form of :func:`conj_physical`: writes the result into ``self``."""
    def const_data_ptr(self) -> _int:
        """The address of its first element: equal for tensors that begin at the same place in memory. 0 for a tensor
    without elements or on the meta device. No round trip, unless it is a view of a part (:func:`storage_offset`)."""
    def contiguous(self, memory_format: memory_format | None = None) -> Tensor:
        """Itself if it lies in row-major order, or the one that is named, else a copy that does."""
    def copy_(self, src: Tensor, non_blocking: _bool = False) -> Tensor:
        """Write the values of ``src`` into ``self``: it broadcasts, and is cast to the dtype and device of ``self``."""
    def copysign(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """The magnitude of ``self`` with the sign of ``other``, a negative zero's too. Integers become floats."""
    def copysign_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`copysign`: writes the result into ``self``."""
    def corrcoef(self) -> Tensor:
        """The correlation coefficients of variables (rows) over observations (columns)."""
    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """Cosine of an angle in radians; integers become floats."""
    def cos_(self) -> Tensor:
        """In-place form of :func:`cos`: writes the result into ``self``."""
    def cosh(self, *, out: Tensor | None = None) -> Tensor:
        """Hyperbolic cosine; integers become floats."""
    def cosh_(self) -> Tensor:
        """In-place form of :func:`cosh`: writes the result into ``self``."""
    def count_nonzero(self, dim: Sequence[_int] | _int | None = None, *, out: Tensor | None = None) -> Tensor:
        """How many elements differ from zero (NaN does), in all or over ``dim``; int64."""
    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariances of variables (rows) over observations (columns)."""
    def cpu(self, memory_format: memory_format | None = None) -> Tensor:
        """On the server's CPU."""
    def cross(self, other: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
        """The cross product of 3-vectors along ``dim`` (by default the first dimension of extent 3), with broadcasting."""
    def crow_indices(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def cuda(self, device: device | str | _int | None = None, non_blocking: _bool = False, memory_format: memory_format | None = None) -> Tensor:
        """On a GPU of the server."""
    def cummax(self, dim: _int, *, out: Sequence[Tensor] | None = None) -> _cummax:
        """(running maxima along ``dim``, the index of the latest element that equals each)."""
    def cummin(self, dim: _int, *, out: Sequence[Tensor] | None = None) -> _cummin:
        """(running minima along ``dim``, the index of the latest element that equals each)."""
    def cumprod(self, dim: _int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Running products along ``dim``. Bools and integers are multiplied in int64; ``dtype`` converts first."""
    def cumprod_(self, dim: _int, *, dtype: DType | None = None) -> Tensor:
        """In-place form of :func:`cumprod`: writes the result into ``self``."""
    def cumsum(self, dim: _int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Running sums along ``dim``. Bools and integers are summed in int64; ``dtype`` converts first."""
    def cumsum_(self, dim: _int, *, dtype: DType | None = None) -> Tensor:
        """In-place form of :func:`cumsum`: writes the result into ``self``."""
    def data_ptr(self) -> _int:
        """The address of its first element: equal for tensors that begin at the same place in memory. 0 for a tensor
    without elements or on the meta device. No round trip, unless it is a view of a part (:func:`storage_offset`)."""
    def deg2rad(self, *, out: Tensor | None = None) -> Tensor:
        """Degrees to radians; integers become floats."""
    def deg2rad_(self) -> Tensor:
        """In-place form of :func:`deg2rad`: writes the result into ``self``."""
    def dense_dim(self) -> _int:
        """The number of dimensions, which are all dense."""
    def dequantize(self) -> Tensor:
        """In float32: no tensor is quantized."""
    def det(self, *, out: Tensor | None = None) -> Tensor:
        """The determinant of each square matrix. Float and complex dtypes of 32 bits and more."""
    def detach(self, *, out: Tensor | None = None) -> Tensor:
        """A view without history: no gradient flows through it. It shares memory and version with ``self``."""
    def diag(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """The diagonal of a matrix, copied, or the matrix that has a vector on its diagonal."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *, out: Tensor | None = None) -> Tensor:
        """Matrices that have the last dimension on their diagonal and zeros elsewhere, in dimensions ``dim1, dim2``."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """A matrix with all elements on a diagonal."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
        """A view of the elements whose indices along ``dim1`` and ``dim2`` differ by ``offset``, as a last dimension."""
    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
        """A copy with ``src`` in the place of ``self.diagonal(offset, dim1, dim2)``."""
    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The n-th differences of neighbours along a dimension, with values put before or behind it first."""
    def digamma(self, *, out: Tensor | None = None) -> Tensor:
        """The derivative of :func:`lgamma`: infinite at 0, NaN at negative integers; integers become floats."""
    def digamma_(self) -> Tensor:
        """In-place form of :func:`digamma`: writes the result into ``self``."""
    def dim_order(self, *, ambiguity_check: _bool | Sequence[memory_format] = False) -> tuple[_int, ...]:
        """The dimensions from the one with the largest stride to the one with the smallest; 0 strides and extents of one
    element stay where they are."""
    def dist(self, other: Tensor, p: _float = 2) -> Tensor:
        """The norm of the difference."""
    def div(self, other: Tensor | complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """Divide elementwise."""
    def div_(self, other: Tensor | complex, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of :func:`div`: writes the result into ``self``."""
    def divide(self, other: Tensor | complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """Divide elementwise."""
    def divide_(self, other: Tensor | complex, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of :func:`div`: writes the result into ``self``."""
    def dot(self, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The sum of products of two vectors of equal length, as a 0-dim tensor. Nothing is conjugated."""
    def double(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype float64."""
    def dsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None) -> tuple[Tensor, ...]:
        """Views along dimension 2: so many of equal extent, or cut there."""
    def eig(self, **kwargs: Any) -> NoReturn:
        """Removed from PyTorch: use torch.linalg.eig."""
    def einsum(self, *operands: Any) -> Tensor:
        """Products of tensors summed over repeated letters: ``einsum("ij,jk->ik", a, b)``; or over repeated numbers from 0
    to 51, ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    def eq(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Whether two elements are equal, after promotion. NaN equals nothing."""
    def eq_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`eq`: writes the result into ``self``."""
    def equal(self, other: Tensor) -> _bool:
        """Whether shapes and all elements are equal. One round trip, none where shapes differ."""
    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """The error function of real numbers; integers become floats."""
    def erf_(self) -> Tensor:
        """In-place form of :func:`erf`: writes the result into ``self``."""
    def erfc(self, *, out: Tensor | None = None) -> Tensor:
        """``1 - erf(self)``, exact far out; integers become floats."""
    def erfc_(self) -> Tensor:
        """In-place form of :func:`erfc`: writes the result into ``self``."""
    def erfinv(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse of :func:`erf`: infinite at -1 and 1, NaN outside; integers become floats."""
    def erfinv_(self) -> Tensor:
        """In-place form of :func:`erfinv`: writes the result into ``self``."""
    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """e to the power of ``self``; integers become floats."""
    def exp2(self, *, out: Tensor | None = None) -> Tensor:
        """2 to the power of ``self``; integers become floats."""
    def exp2_(self) -> Tensor:
        """In-place form of :func:`exp2`: writes the result into ``self``."""
    def exp_(self) -> Tensor:
        """In-place form of :func:`exp`: writes the result into ``self``."""
    @overload
    def expand(self, size: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
        """A view that repeats dimensions of extent 1 to the given size, without memory; -1 keeps an extent."""
    @overload
    def expand(self, *size: _int, out: Tensor | None = None) -> Tensor: ...
    def expand_as(self, other: Tensor) -> Tensor:
        """Expanded to the shape of another tensor, without copying."""
    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """``exp(self) - 1``, exact near 0; integers become floats."""
    def expm1_(self) -> Tensor:
        """In-place form of :func:`expm1`: writes the result into ``self``."""
    def exponential_(self, lambd: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers of the exponential distribution with rate ``lambd``."""
    def fill_(self, value: Tensor | complex) -> Tensor:
        """Write one value, a number or a 0-dim tensor, into every element."""
    def fill_diagonal_(self, fill_value: complex, wrap: _bool = False) -> Tensor:
        """Write one value onto the main diagonal; with ``wrap`` of a tall matrix, again below each square."""
    def fix(self, *, out: Tensor | None = None) -> Tensor:
        """Round towards zero; integers stay as they are. The gradient is zero."""
    def fix_(self) -> Tensor:
        """In-place form of :func:`trunc`: writes the result into ``self``."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Dimensions ``start_dim`` to ``end_dim`` merged into one: a view where strides allow it, else a copy; the tensor
    itself where they are one dimension."""
    @overload
    def flip(self, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
        """A copy with the order along the given dimensions reversed."""
    @overload
    def flip(self, *dims: _int, out: Tensor | None = None) -> Tensor: ...
    def fliplr(self) -> Tensor:
        """The second dimension in reverse."""
    def flipud(self) -> Tensor:
        """The first dimension in reverse."""
    def float(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype float32."""
    def float_power(self, exponent: Tensor | complex) -> Tensor:
        """Powers in float64 (complex128 for complex operands)."""
    def float_power_(self, exponent: Tensor | complex) -> Tensor:
        """:func:`float_power` in place, of a tensor that is of its dtype already."""
    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """Round down; integers stay as they are. The gradient is zero."""
    def floor_(self) -> Tensor:
        """In-place form of :func:`floor`: writes the result into ``self``."""
    def floor_divide(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """The quotient rounded down, as ``//`` in Python. It keeps integers; dividing one by zero is an error."""
    def floor_divide_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`floor_divide`: writes the result into ``self``."""
    def fmax(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of two elements; a NaN loses against a number. ``self`` gets the gradient of a tie."""
    def fmin(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of two elements; a NaN loses against a number. ``self`` gets the gradient of a tie."""
    def fmod(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """What is left of a division truncated towards zero: it has the sign of the dividend."""
    def fmod_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`fmod`: writes the result into ``self``."""
    def frac(self, *, out: Tensor | None = None) -> Tensor:
        """What :func:`trunc` drops: ``self - trunc(self)``. Floating point only."""
    def frac_(self) -> Tensor:
        """In-place form of :func:`frac`: writes the result into ``self``."""
    def frexp(self, *, out: Sequence[Tensor] | None = None) -> _frexp:
        """(mantissa, int32 exponent), where ``self`` is ``mantissa * 2 ** exponent`` and the mantissa's size is from 0.5 to
    1, or 0. Floating point only."""
    def gather(self, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """For each element of ``index`` the element of ``self`` that it names along ``dim``, at the same place in the
    other dimensions. Indices start at 0; negative ones raise."""
    def gcd(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The greatest common divisor, not negative; ``gcd(0, 0)`` is 0. Integers only."""
    def gcd_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`gcd`: writes the result into ``self``."""
    def ge(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self >= other``, after promotion. Complex numbers have no order."""
    def ge_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`ge`: writes the result into ``self``."""
    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the number of trials up to the first success, each succeeding with probability ``p``: 1, 2, ..."""
    def geqrf(self, *, out: Sequence[Tensor] | None = None) -> _geqrf:
        """(a, tau): the QR factorization as LAPACK packs it, for :func:`orgqr` and :func:`ormqr`."""
    def ger(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """All products of an element of one vector with one of the other, as a matrix. Promotes dtypes."""
    def get_device(self) -> _int:
        """The index of its CUDA device, -1 elsewhere."""
    @property
    def grad(self) -> Tensor | None: ...
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @grad.deleter
    def grad(self) -> None: ...
    def greater(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self > other``, after promotion. Complex numbers have no order."""
    def greater_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`gt`: writes the result into ``self``."""
    def greater_equal(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self >= other``, after promotion. Complex numbers have no order."""
    def greater_equal_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`ge`: writes the result into ``self``."""
    def gt(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self > other``, after promotion. Complex numbers have no order."""
    def gt_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`gt`: writes the result into ``self``."""
    def half(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype float16."""
    def hardshrink(self, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
        """0 from ``-lambd`` to ``lambd``, elsewhere ``self``."""
    def hash_tensor(self, dim: Sequence[_int] | _int | None = None, *, keepdim: _bool = False, mode: _int = 0, out: Tensor | None = None) -> Tensor:
        """Exclusive or, over all elements or over ``dim``, of the bits of each as a float64 or int64, as a uint64."""
    def heaviside(self, values: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The unit step: 0 below 0, 1 above, and ``values`` at 0. Both are of one dtype, which is not complex."""
    def heaviside_(self, values: Tensor) -> Tensor:
        """In-place form of :func:`heaviside`: writes the result into ``self``."""
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: Tensor | None = None) -> Tensor:
        """How many elements fall into each of ``bins`` intervals of equal width from ``min`` to ``max``, in the dtype of
    the tensor. If both are 0 (or equal), they are the extremes of the elements. What is outside does not count."""
    def histogram(self, bins: Tensor | _int, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> _histogram:
        """(hist, bin_edges): how many elements, or how much ``weight``, falls into each interval."""
    def hsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None) -> tuple[Tensor, ...]:
        """Views along dimension 1: so many of equal extent, or cut there."""
    def hypot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``sqrt(self**2 + other**2)`` without overflow on the way. Floating point only."""
    def hypot_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`hypot`: writes the result into ``self``."""
    def i0(self, *, out: Tensor | None = None) -> Tensor:
        """The modified Bessel function of the first kind, of order 0; integers become floats."""
    def i0_(self) -> Tensor:
        """In-place form of :func:`i0`: writes the result into ``self``."""
    def igamma(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The lower incomplete gamma function of order ``self`` at ``other``, over the gamma function: from 0 to 1."""
    def igamma_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`igamma`: writes the result into ``self``."""
    def igammac(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``1 - igamma(self, other)``, exact where it is small. Floating point only."""
    def igammac_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`igammac`: writes the result into ``self``."""
    @property
    def imag(self) -> Tensor: ...
    @imag.setter
    def imag(self, value: Tensor) -> None: ...
    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """A copy with the slices of ``alpha * source`` added at the indices along ``dim``; repeated ones add up."""
    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`index_add`: writes the result into ``self``."""
    def index_copy(self, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy with the slices of ``source`` written at the indices along ``dim``."""
    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """In-place form of :func:`index_copy`: writes the result into ``self``."""
    def index_fill(self, dim: _int, index: Tensor, value: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """A copy with the slices at the indices along ``dim`` filled with one number or a 0-dim tensor."""
    def index_fill_(self, dim: _int, index: Tensor, value: Tensor | complex) -> Tensor:
        """In-place form of :func:`index_fill`: writes the result into ``self``."""
    def index_put(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """A copy with ``values``, broadcast, written to (or, with ``accumulate``, added at) the elements that
    :func:`index` would read. Where an element is named twice, one of its values stays, or all are added."""
    def index_put_(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
        """In-place form of :func:`index_put`: writes the result into ``self``."""
    def index_reduce(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """A copy in which slice ``i`` of ``source`` is combined with slice ``index[i]`` along a dimension."""
    def index_reduce_(self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """In-place form of :func:`index_reduce`."""
    def index_select(self, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The slices of ``self`` that a vector of indices names along ``dim``. Negative indices raise."""
    def indices(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def inner(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Contract the last dimensions of both operands. With a 0-dim operand it is an ordinary, promoting product."""
    def int(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype int32."""
    def int_repr(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no quantized dtypes."""
    def inverse(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse of each square matrix."""
    def ipu(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: devices are CPUs and CUDA devices."""
    def is_coalesced(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def is_conj(self) -> _bool:
        """False: conjugates are computed at once, none is left pending."""
    @property
    def is_cpu(self) -> _bool: ...
    def is_distributed(self) -> _bool:
        """False: a tensor is in one session."""
    @property
    def is_ipu(self) -> _bool: ...
    @property
    def is_maia(self) -> _bool: ...
    @property
    def is_meta(self) -> _bool: ...
    @property
    def is_mkldnn(self) -> _bool: ...
    @property
    def is_mps(self) -> _bool: ...
    @property
    def is_mtia(self) -> _bool: ...
    def is_neg(self) -> _bool:
        """False: negations are computed at once, none is left pending."""
    @property
    def is_nested(self) -> _bool: ...
    def is_nonzero(self) -> _bool:
        """Whether the one element is not zero. One round trip."""
    def is_pinned(self, device: device | str | _int | None = None) -> _bool:
        """False: the memory is the server's."""
    @property
    def is_quantized(self) -> _bool: ...
    def is_same_size(self, other: Tensor) -> _bool:
        """Whether both have the same shape."""
    def is_set_to(self, tensor: Tensor) -> _bool:
        """Whether both show the same part of the same memory with the same strides."""
    def is_shared(self) -> _bool:
        """True: every client of its session can reach it."""
    def is_signed(self) -> _bool:
        """Whether the dtype has negative numbers."""
    @property
    def is_sparse_csr(self) -> _bool: ...
    @property
    def is_vulkan(self) -> _bool: ...
    @property
    def is_xla(self) -> _bool: ...
    @property
    def is_xpu(self) -> _bool: ...
    def isclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether ``|input - other| <= atol + rtol * |other|``, element by element."""
    def isfinite(self, *, out: Tensor | None = None) -> Tensor:
        """Whether an element is neither NaN nor infinite."""
    def isin(self, test_elements: Tensor | _float, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
        """Which elements occur among the others."""
    def isinf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether an element is infinite; of a complex number, whether either part is."""
    def isnan(self, *, out: Tensor | None = None) -> Tensor:
        """Whether an element is NaN; of a complex number, whether either part is."""
    def isneginf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether an element is negative infinity. Not defined on complex numbers."""
    def isposinf(self, *, out: Tensor | None = None) -> Tensor:
        """Whether an element is positive infinity. Not defined on complex numbers."""
    def isreal(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the imaginary part is 0, which it is for every real number."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
        """The signals whose :func:`stft` is nearest to ``input``, of shape (frequency, frame) or with a batch before."""
    def kron(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The Kronecker product: every element of ``self`` times all of ``other``, block by block. Promotes dtypes."""
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _kthvalue:
        """(the ``k``-th smallest elements along ``dim``, counted from 1, their indices). NaN counts as largest."""
    @property
    def layout(self) -> _layout: ...
    def lcm(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The least common multiple, not negative; 0 where either is 0. Integers only."""
    def lcm_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`lcm`: writes the result into ``self``."""
    def ldexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``self * 2 ** other``; integers become floats."""
    def ldexp_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`ldexp`: writes the result into ``self``."""
    def le(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self <= other``, after promotion. Complex numbers have no order."""
    def le_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`le`: writes the result into ``self``."""
    def lerp(self, end: Tensor, weight: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self + weight * (end - self)``. The dtypes do not promote: they must be the same."""
    def lerp_(self, end: Tensor, weight: Tensor | complex) -> Tensor:
        """In-place form of :func:`lerp`: writes the result into ``self``."""
    def less(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self < other``, after promotion. Complex numbers have no order."""
    def less_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`lt`: writes the result into ``self``."""
    def less_equal(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self <= other``, after promotion. Complex numbers have no order."""
    def less_equal_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`le`: writes the result into ``self``."""
    def lgamma(self, *, out: Tensor | None = None) -> Tensor:
        """The natural logarithm of the gamma function's absolute value; integers become floats."""
    def lgamma_(self) -> Tensor:
        """In-place form of :func:`lgamma`: writes the result into ``self``."""
    def log(self, *, out: Tensor | None = None) -> Tensor:
        """The natural logarithm: -inf at 0, NaN below; integers become floats."""
    def log10(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 10; integers become floats."""
    def log10_(self) -> Tensor:
        """In-place form of :func:`log10`: writes the result into ``self``."""
    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """``log(1 + self)``, exact near 0; integers become floats."""
    def log1p_(self) -> Tensor:
        """In-place form of :func:`log1p`: writes the result into ``self``."""
    def log2(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 2; integers become floats."""
    def log2_(self) -> Tensor:
        """In-place form of :func:`log2`: writes the result into ``self``."""
    def log_(self) -> Tensor:
        """In-place form of :func:`log`: writes the result into ``self``."""
    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers whose logarithms are normal with this mean and standard deviation."""
    def log_softmax(self, dim: _int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
        """Logarithm of :func:`softmax`, computed without its rounding."""
    def logaddexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``log(exp(self) + exp(other))`` without overflow on the way. Floating point and complex only."""
    def logaddexp2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``log2(2**self + 2**other)`` without overflow on the way. Floating point only."""
    def logcumsumexp(self, dim: _int, *, out: Tensor | None = None) -> Tensor:
        """Logarithm of the running sums of exponentials along ``dim``, without overflow."""
    def logdet(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of each determinant; NaN where a real one is negative."""
    def logical_and(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether both elements are nonzero."""
    def logical_and_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`logical_and`: writes the result into ``self``."""
    def logical_not(self, *, out: Tensor | None = None) -> Tensor:
        """Whether an element is zero."""
    def logical_not_(self) -> Tensor:
        """In-place form of :func:`logical_not`: writes the result into ``self``."""
    def logical_or(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether at least one element is nonzero."""
    def logical_or_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`logical_or`: writes the result into ``self``."""
    def logical_xor(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Whether exactly one element is nonzero."""
    def logical_xor_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`logical_xor`: writes the result into ``self``."""
    def logit(self, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
        """``log(x / (1 - x))``; with ``eps``, x is first cut to the range from ``eps`` to ``1 - eps``."""
    def logit_(self, eps: _float | None = None) -> Tensor:
        """In-place form of :func:`logit`: writes the result into ``self``."""
    def logsumexp(self, dim: Sequence[_int] | _int | None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """Logarithm of the sum of exponentials over ``dim``, without overflow. Integers become the default float."""
    def long(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype int64."""
    def lstsq(self, **kwargs: Any) -> NoReturn:
        """Removed from PyTorch: use torch.linalg.lstsq."""
    def lt(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self < other``, after promotion. Complex numbers have no order."""
    def lt_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`lt`: writes the result into ``self``."""
    @overload
    def lu(self, pivot: _bool = True, get_infos: Literal[False] = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(LU, pivots), with ``get_infos`` (LU, pivots, infos); see :func:`gradwire.linalg.lu_factor`."""
    @overload
    def lu(self, pivot: _bool = True, *, get_infos: Literal[True], out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The solution of ``A @ X == b`` from A's packed LU factorization."""
    @property
    def mH(self) -> Tensor: ...
    @property
    def mT(self) -> Tensor: ...
    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """:meth:`map_` with a function of three elements."""
    def map_(self, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element by what a function makes of it and the other tensor's, which broadcasts. Like
    :meth:`apply_`."""
    def masked_fill(self, mask: Tensor, value: Tensor | complex) -> Tensor:
        """A copy with ``value`` where the mask is true."""
    def masked_fill_(self, mask: Tensor, value: Tensor | complex) -> Tensor:
        """In-place form of :func:`masked_fill`: writes the result into ``self``."""
    def masked_scatter(self, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy with the places where the mask is true filled from ``source``, one element after the other."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """In-place form of :func:`masked_scatter`: writes the result into ``self``."""
    def masked_select(self, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The elements where the mask is true, as a vector; tensor and mask broadcast."""
    def matmul(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The matrix product, for vectors, matrices and batches of matrices."""
    def matrix_exp(self, *, out: Tensor | None = None) -> Tensor:
        """The exponential ``I + A + A @ A / 2 + ...`` of each square matrix. Halves are computed in float32."""
    def matrix_power(self, n: _int, *, out: Tensor | None = None) -> Tensor:
        """``input`` multiplied by itself ``n`` times; for negative ``n``, its inverse."""
    @overload
    def max(self) -> Tensor:
        """``max(x)`` over all elements; ``max(x, dim)`` gives (values, indices) along a dimension; ``max(x, other)`` is elementwise maximum."""
    @overload
    def max(self, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _max: ...
    @overload
    def max(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def max_dim(self, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(largest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
    def maximum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of two elements, NaN if either is. The gradient of a tie is split in halves."""
    def mean(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Arithmetic mean over ``dim``. Needs floating point or complex values, or a ``dtype`` that is; NaN if empty."""
    @overload
    def median(self) -> Tensor:
        """The lower of the middle elements; NaN if there is one or the tensor is empty. Equals share the gradient."""
    @overload
    def median(self, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _median: ...
    def median_dim(self, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(lower medians along ``dim``, their indices). The gradient goes to the element of the index."""
    @overload
    def min(self) -> Tensor:
        """``min(x)`` over all elements; ``min(x, dim)`` gives (values, indices) along a dimension; ``min(x, other)`` is elementwise minimum."""
    @overload
    def min(self, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _min: ...
    @overload
    def min(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def min_dim(self, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(smallest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
    def minimum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of two elements, NaN if either is. The gradient of a tie is split in halves."""
    def mm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The product of two matrices, without broadcasting."""
    def mode(self, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _mode:
        """(most frequent values along ``dim``, the index of each one's last occurrence); the smallest of equally
    frequent ones."""
    def module_load(self, other: Tensor, assign: _bool = False) -> Tensor:
        """What a module's tensor becomes when a state dict is loaded: itself with the values of ``other``, or ``other``."""
    def moveaxis(self, source: Sequence[_int] | _int, destination: Sequence[_int] | _int, *, out: Tensor | None = None) -> Tensor:
        """A view with the dimensions ``source`` moved to the places ``destination``, the others kept in order."""
    def movedim(self, source: Sequence[_int] | _int, destination: Sequence[_int] | _int, *, out: Tensor | None = None) -> Tensor:
        """A view with the dimensions ``source`` moved to the places ``destination``, the others kept in order."""
    def msort(self, *, out: Tensor | None = None) -> Tensor:
        """The values in order along the first dimension."""
    def mtia(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: devices are CPUs and CUDA devices."""
    def mul(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Multiply elementwise, with broadcasting and promotion. On bools it is a logical and."""
    def mul_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`mul`: writes the result into ``self``."""
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """Draw ``num_samples`` indices along the last dimension, as likely as the weights in ``self`` say."""
    def multiply(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Multiply elementwise, with broadcasting and promotion. On bools it is a logical and."""
    def multiply_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`mul`: writes the result into ``self``."""
    def mv(self, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: _int, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension ``p``, for elements above ``(p - 1) / 2``."""
    def mvlgamma_(self, p: _int) -> Tensor:
        """In-place form of :func:`mvlgamma`: writes the result into ``self``."""
    @property
    def name(self) -> None: ...
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None = None) -> Tensor:
        """Replace NaN by ``nan`` (0) and infinities by ``posinf`` and ``neginf`` (the dtype's extremes)."""
    def nan_to_num_(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """In-place form of :func:`nan_to_num`: writes the result into ``self``."""
    def nanmean(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Mean of the elements that are not NaN; NaN where there is none."""
    @overload
    def nanmedian(self) -> Tensor:
        """The median of the elements that are not NaN. Equals share the gradient."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _nanmedian: ...
    def nanmedian_dim(self, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(medians along ``dim`` of what is not NaN, their indices)."""
    def nanquantile(self, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
        """Like :func:`quantile`, leaving NaN out."""
    def nansum(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Like :func:`sum`, with NaN counted as zero. Not defined for complex numbers."""
    def narrow(self, dim: _int, start: Tensor | _int, length: _int) -> Tensor:
        """A view of ``length`` indices from ``start``, a number or a 0-dim integer tensor, along a dimension."""
    def narrow_copy(self, dim: _int, start: _int, length: _int, *, out: Tensor | None = None) -> Tensor:
        """What :func:`narrow` shows, in new memory."""
    def ndimension(self) -> _int:
        """The number of dimensions."""
    def ne(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Whether two elements differ, after promotion. NaN differs from everything."""
    def ne_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`ne`: writes the result into ``self``."""
    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """``-self``. Not defined on bools; unsigned integers wrap around."""
    def neg_(self) -> Tensor:
        """In-place form of :func:`neg`: writes the result into ``self``."""
    def negative(self, *, out: Tensor | None = None) -> Tensor:
        """``-self``. Not defined on bools; unsigned integers wrap around."""
    def negative_(self) -> Tensor:
        """In-place form of :func:`neg`: writes the result into ``self``."""
    def new(self, *args: Any, size: Any = None, data: Any = None, other: Tensor | None = None, storage: Any = None, device: device | str | _int | None = None) -> Tensor:
        """Uninitialised of a size, or of data, in the tensor's dtype and on its device. PyTorch's old form of
    :meth:`new_empty` and :meth:`new_tensor`."""
    @overload
    def new_empty(self, size: Sequence[_int], *, memory_format: memory_format | None = None, dtype: DType | None = None, layout: _layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
        """Like gradwire.empty, with this tensor's dtype and device."""
    @overload
    def new_empty(self, *size: _int, memory_format: memory_format | None = None, dtype: DType | None = None, layout: _layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor: ...
    def new_empty_strided(self, size: Sequence[_int], stride: Sequence[_int], **options: Any) -> Tensor:
        """:func:`empty_strided`, of the dtype and on the device of a tensor unless others are given."""
    def new_full(self, size: _int | Sequence[_int], fill_value: complex | Tensor, *, dtype: DType | None = None, layout: _layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
        """Like gradwire.full, with this tensor's dtype and device."""
    @overload
    def new_ones(self, size: Sequence[_int], *, dtype: DType | None = None, layout: _layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
        """Like gradwire.ones, with this tensor's dtype and device."""
    @overload
    def new_ones(self, *size: _int, dtype: DType | None = None, layout: _layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor: ...
    def new_tensor(self, data: Any, *, dtype: DType | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
        """Like gradwire.tensor, with this tensor's dtype and device."""
    @overload
    def new_zeros(self, size: Sequence[_int], *, dtype: DType | None = None, layout: _layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
        """Like gradwire.zeros, with this tensor's dtype and device."""
    @overload
    def new_zeros(self, *size: _int, dtype: DType | None = None, layout: _layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor: ...
    def nextafter(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The next floating point number after ``self`` in the direction of ``other``. Floating point only."""
    def nextafter_(self, other: Tensor) -> Tensor:
        """In-place form of :func:`nextafter`: writes the result into ``self``."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor:
        """The indices of elements that are not zero: one row each, or one tensor per dimension with ``as_tuple``, where a
    0-dim tensor counts as one of one element."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def nonzero_static(self, *, size: _int, fill_value: _int = -1, out: Tensor | None = None) -> Tensor:
        """The indices of the first ``size`` elements that are not zero, a row each; rows beyond hold ``fill_value``.
    Unlike that of :func:`nonzero`, the result's shape does not depend on data."""
    def norm(self, p: _float | str = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: DType | None = None) -> Tensor:
        """The vector norm of all elements or along dimensions; ``"fro"`` is the norm of order 2."""
    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with normal numbers of this mean and standard deviation."""
    def not_equal(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """Whether two elements differ, after promotion. NaN differs from everything."""
    def not_equal_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`ne`: writes the result into ``self``."""
    def orgqr(self, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The first columns of a product of elementary reflectors; see :func:`gradwire.linalg.householder_product`."""
    def ormqr(self, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """``Q @ input3`` (``input3 @ Q`` without ``left``) for the square Q that reflectors ``input`` and ``input2`` pack;
    with ``transpose``, Q's adjoint in its place."""
    def outer(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """All products of an element of one vector with one of the other, as a matrix. Promotes dtypes."""
    @overload
    def permute(self, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
        """A view with its dimensions in the given order."""
    @overload
    def permute(self, *dims: _int, out: Tensor | None = None) -> Tensor: ...
    def pin_memory(self, device: device | str | _int | None = None) -> Tensor:
        """The tensor itself: its memory is the server's, which pins what it copies."""
    def pinverse(self, rcond: _float = 1e-15, *, out: Tensor | None = None) -> Tensor:
        """The pseudo-inverse; singular values up to ``rcond`` times the largest count as 0."""
    def polygamma(self, n: _int, *, out: Tensor | None = None) -> Tensor:
        """The ``n``-th derivative of :func:`digamma`, for ``n >= 0``; integers become floats."""
    def polygamma_(self, n: _int) -> Tensor:
        """In-place form of :func:`polygamma`: writes the result into ``self``."""
    def positive(self) -> Tensor:
        """The tensor itself, which is to be of numbers."""
    def pow(self, exponent: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self`` to the power of ``exponent``; one of them may be a number."""
    def pow_(self, exponent: Tensor | complex) -> Tensor:
        """In-place form of :func:`pow`: writes the result into ``self``."""
    def prelu(self, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
        """``self`` where positive, else ``weight * self``."""
    def prod(self, dim: _int | None = None, keepdim: _bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Product of all elements, or along one dimension. Bools and integers are multiplied in int64."""
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False, *, out: Tensor | None = None) -> Tensor:
        """A copy with ``source`` written to (or added at) the places that ``index`` names in the flattened tensor."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """In-place form of :func:`put`: writes the result into ``self``."""
    def q_per_channel_axis(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no quantized dtypes."""
    def q_per_channel_scales(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no quantized dtypes."""
    def q_per_channel_zero_points(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no quantized dtypes."""
    def q_scale(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no quantized dtypes."""
    def q_zero_point(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no quantized dtypes."""
    def qr(self, some: _bool = True, *, out: Sequence[Tensor] | None = None) -> _qr:
        """(Q, R); see :func:`gradwire.linalg.qr`. Without ``some``, Q is square."""
    def qscheme(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no quantized dtypes."""
    def quantile(self, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
        """Quantiles of all elements or along ``dim``, for one ``q`` in [0, 1] or a vector of them, which then comes as
    the first dimension of the result. NaN makes its quantile NaN."""
    def rad2deg(self, *, out: Tensor | None = None) -> Tensor:
        """Radians to degrees; integers become floats."""
    def rad2deg_(self) -> Tensor:
        """In-place form of :func:`rad2deg`: writes the result into ``self``."""
    def random_(self, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
        """Fill with integers: ``random_(to)`` with those from 0 up to but without ``to``, ``random_(from, to)`` from
    ``from`` on."""
    def ravel(self) -> Tensor:
        """All elements in one dimension; a view where that is possible."""
    @property
    def real(self) -> Tensor: ...
    @real.setter
    def real(self, value: Tensor) -> None: ...
    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """``1 / self``; integers become floats."""
    def reciprocal_(self) -> Tensor:
        """In-place form of :func:`reciprocal`: writes the result into ``self``."""
    def record_stream(self, s: object) -> None:
        """Nothing: the server orders its own work."""
    def reinforce(self, **kwargs: Any) -> NoReturn:
        """Removed from PyTorch: use torch.distributions."""
    def relu(self, *, out: Tensor | None = None) -> Tensor:
        """``max(self, 0)``; NaN stays. The gradient at 0 is 0."""
    def relu_(self) -> Tensor:
        """In-place form of :func:`relu`: writes the result into ``self``."""
    def remainder(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """What is left by :func:`floor_divide`, as ``%`` in Python: it has the sign of the divisor."""
    def remainder_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`remainder`: writes the result into ``self``."""
    def renorm(self, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
        """Slices along ``dim`` whose norm of order ``p`` is above ``maxnorm``, scaled down to that norm; others as they
    are. ``p`` is positive, ``maxnorm`` not negative."""
    def renorm_(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """In-place form of :func:`renorm`: writes the result into ``self``."""
    @overload
    def repeat(self, sizes: Sequence[_int], *, repeats: Sequence[_int] = ...) -> Tensor:
        """The tensor repeated along each dimension."""
    @overload
    def repeat(self, *sizes: _int, repeats: Sequence[_int] = ...) -> Tensor: ...
    def repeat_interleave(self, repeats: Tensor | _int | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
        """Each element repeated, so many times each or as often as a tensor says."""
    @overload
    def reshape(self, shape: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
        """The elements in another shape, one extent of which may be -1. A view where strides allow it, else a copy."""
    @overload
    def reshape(self, *shape: _int, out: Tensor | None = None) -> Tensor: ...
    def reshape_as(self, other: Tensor) -> Tensor:
        """Reshaped to the shape of another tensor."""
    def resize(self, *sizes: Any) -> Tensor:
        """Deprecated: the same elements, in their order, in another shape."""
    @overload
    def resize_(self, sizes: Sequence[_int], *, size: Sequence[_int] | None = None, memory_format: memory_format | None = None) -> Tensor:
        """Give the tensor another shape in place; elements are kept in the order of memory, new ones are uninitialised."""
    @overload
    def resize_(self, *sizes: _int, size: Sequence[_int] | None = None, memory_format: memory_format | None = None) -> Tensor: ...
    def resize_as(self, tensor: Tensor) -> Tensor:
        """Deprecated: :meth:`resize` to the shape of another tensor."""
    def resize_as_(self, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
        """:func:`resize_` to the shape of another tensor, and for ``preserve_format`` to the order that it suggests."""
    def resize_as_sparse_(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def resolve_conj(self) -> Tensor:
        """The tensor itself: conjugates are computed at once, none is left pending."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself: negations are computed at once, none is left pending."""
    def roll(self, shifts: Sequence[_int] | _int, dims: Sequence[_int] | _int | None = None, *, out: Tensor | None = None) -> Tensor:
        """A copy with elements moved along dimensions, those that fall off coming in again at the other end."""
    def rot90(self, k: _int = 1, dims: Sequence[_int] = ..., *, out: Tensor | None = None) -> Tensor:
        """A copy rotated ``k`` times by 90 degrees in the plane of two dimensions, from the first towards the second."""
    def round(self, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
        """Round to ``decimals`` places, halves to the even neighbour. The gradient is zero."""
    def round_(self, *, decimals: _int = 0) -> Tensor:
        """In-place form of :func:`round`: writes the result into ``self``."""
    def row_indices(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """``1 / sqrt(self)``; integers become floats."""
    def rsqrt_(self) -> Tensor:
        """In-place form of :func:`rsqrt`: writes the result into ``self``."""
    def rsub(self, other: Tensor | complex, alpha: complex = 1, *, out: Tensor | None = None) -> Tensor:
        """``other - alpha * self``: subtraction with its operands exchanged. Not defined on bools."""
    def scatter(self, dim: _int, index: Tensor, src: Tensor | complex | None = None, *, value: Tensor | complex | None = None, reduce: str | None = None) -> Tensor:
        """A copy in which ``input[..., index[i], ...]`` is ``src[i]``, or a number; added or multiplied with ``reduce``."""
    def scatter_(self, dim: _int, index: Tensor, src: Tensor | complex | None = None, *, value: Tensor | complex | None = None, reduce: str | None = None) -> Tensor:
        """In-place form of :func:`scatter`."""
    def scatter_add(self, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy with the elements of ``src`` added at the places along ``dim`` that ``index`` names."""
    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """In-place form of :func:`scatter_add`: writes the result into ``self``."""
    def scatter_reduce(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
        """A copy in which the elements of ``src`` that ``index`` sends to one place are combined there."""
    def scatter_reduce_(self, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """In-place form of :func:`scatter_reduce`: writes the result into ``self``."""
    def searchsorted(self, input: Tensor | complex, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor:
        """Where each value would have to be inserted to keep the last dimension of ``sorted_sequence`` in order."""
    def select(self, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
        """A view of one index along a dimension, which disappears."""
    def select_scatter(self, src: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
        """A copy with ``src`` in the place of ``self.select(dim, index)``."""
    def set_(self, source: Any = None, storage_offset: _int = 0, size: Sequence[_int] | None = None, stride: Sequence[_int] | None = None) -> Tensor:
        """Let the tensor show other memory: that of a tensor, as it shows it; or a storage, of its dtype, from an offset
    on; or, without a source, none."""
    def sgn(self, *, out: Tensor | None = None) -> Tensor:
        """The sign; of a complex number the number of magnitude 1 in its direction, 0 for 0."""
    def sgn_(self) -> Tensor:
        """In-place form of :func:`sgn`: writes the result into ``self``."""
    def share_memory_(self) -> Tensor:
        """The tensor itself: what shares its session shares it already."""
    def short(self, memory_format: memory_format | None = None) -> Tensor:
        """In dtype int16."""
    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """``1 / (1 + exp(-self))``; integers become floats."""
    def sigmoid_(self) -> Tensor:
        """In-place form of :func:`sigmoid`: writes the result into ``self``."""
    def sign(self, *, out: Tensor | None = None) -> Tensor:
        """-1, 0 or 1; NaN stays. For complex numbers see :func:`sgn`."""
    def sign_(self) -> Tensor:
        """In-place form of :func:`sign`: writes the result into ``self``."""
    def signbit(self, *, out: Tensor | None = None) -> Tensor:
        """Whether the sign is negative, which that of ``-0.0`` is. Not defined on complex numbers."""
    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """Sine of an angle in radians; integers become floats."""
    def sin_(self) -> Tensor:
        """In-place form of :func:`sin`: writes the result into ``self``."""
    def sinc(self, *, out: Tensor | None = None) -> Tensor:
        """``sin(pi * x) / (pi * x)``, 1 at 0; integers become floats."""
    def sinc_(self) -> Tensor:
        """In-place form of :func:`sinc`: writes the result into ``self``."""
    def sinh(self, *, out: Tensor | None = None) -> Tensor:
        """Hyperbolic sine; integers become floats."""
    def sinh_(self) -> Tensor:
        """In-place form of :func:`sinh`: writes the result into ``self``."""
    def slice_scatter(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
        """A copy with ``src`` in the place of the slice from ``start`` to ``end`` along ``dim``."""
    def slogdet(self, *, out: Sequence[Tensor] | None = None) -> _slogdet:
        """(sign, logabsdet) of each determinant; of a complex matrix, the sign is a phase."""
    def smm(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def softmax(self, dim: _int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
        """Exponentials along ``dim``, divided by their sum. NaN where all are -inf. ``dtype`` converts first."""
    def solve(self, **kwargs: Any) -> NoReturn:
        """Removed from PyTorch: use torch.linalg.solve."""
    def sort(self, dim: _int = -1, descending: _bool = False, *, stable: _bool | None = None, out: Sequence[Tensor] | None = None) -> _sort:
        """(the values in order along ``dim``, the indices they came from)."""
    def sparse_dim(self) -> _int:
        """0: no dimension is sparse."""
    def sparse_mask(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def sparse_resize_(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def sparse_resize_and_clear_(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def split(self, split_size_or_sections: Sequence[_int] | _int, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
        """Views of consecutive parts along a dimension: of one size (the last may be smaller), or of given sizes."""
    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of the given extents along a dimension."""
    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """The square root: NaN below 0, an infinite gradient at 0; integers become floats."""
    def sqrt_(self) -> Tensor:
        """In-place form of :func:`sqrt`: writes the result into ``self``."""
    def square(self, *, out: Tensor | None = None) -> Tensor:
        """``self * self``; bools become int64."""
    def square_(self) -> Tensor:
        """In-place form of :func:`square`: writes the result into ``self``."""
    def squeeze(self, dim: Sequence[_int] | _int | None = None, *, out: Tensor | None = None) -> Tensor:
        """A view without its dimensions of extent 1: all of them, or those among ``dim``."""
    def squeeze_(self, dim: _int | Sequence[_int] | None = None) -> Tensor:
        """Drop dimensions of extent 1 from the tensor itself."""
    def sspaddmm(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def std(self, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Tensor | None = None) -> Tensor:
        """Standard deviation over ``dim``, the square root of :func:`var`."""
    def std_mean(self, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(standard deviation, mean) over ``dim``; see :func:`std`."""
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
        """The Fourier transforms of frames of a signal (time,) or of several (batch, time): (batch, frequency, frame)."""
    def storage(self) -> TypedStorage:
        """Its memory as numbers of its dtype."""
    def storage_offset(self) -> _int:
        """How many elements before its first one its memory begins. One round trip, once, for a view of a part."""
    def storage_type(self) -> Any:
        """The class of its storage: ``torch.FloatStorage``."""
    def sub(self, other: Tensor | complex, *, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``self - alpha * other``, with broadcasting and promotion. Not defined on bools."""
    def sub_(self, other: Tensor | complex, *, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`sub`: writes the result into ``self``."""
    def subtract(self, other: Tensor | complex, *, alpha: complex = 1, out: Tensor | None = None) -> Tensor:
        """``self - alpha * other``, with broadcasting and promotion. Not defined on bools."""
    def subtract_(self, other: Tensor | complex, *, alpha: complex = 1) -> Tensor:
        """In-place form of :func:`sub`: writes the result into ``self``."""
    def sum(self, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Sum over ``dim`` (an int, several, or all). Bools and integers are summed in int64; ``dtype`` converts first."""
    def sum_to_size(self, *size: Any) -> Tensor:
        """The sum over the dimensions that broadcasting added or stretched, so that the result has the given size."""
    def svd(self, some: _bool = True, compute_uv: _bool = True, *, out: Sequence[Tensor] | None = None) -> _svd:
        """(U, S, V) with ``input == U @ diag(S) @ V.mH``; see :func:`gradwire.linalg.svd`. Without ``some``, U and V are
    square, without ``compute_uv`` they are zeros of that shape."""
    def swapaxes(self, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
        """A view with two dimensions exchanged."""
    def swapaxes_(self, axis0: _int, axis1: _int) -> Tensor:
        """NumPy's name of :func:`transpose_`."""
    def swapdims(self, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
        """A view with two dimensions exchanged."""
    def swapdims_(self, dim0: _int, dim1: _int) -> Tensor:
        """Swap two dimensions of the tensor itself."""
    def symeig(self, **kwargs: Any) -> NoReturn:
        """Removed from PyTorch: use torch.linalg.eigh."""
    def t(self, *, out: Tensor | None = None) -> Tensor:
        """The transposed view of a matrix; a tensor of fewer dimensions as it is."""
    def t_(self) -> Tensor:
        """Transpose the matrix itself."""
    def take(self, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The elements that ``index`` names in the flattened tensor, in the shape of ``index``. Negative indices count
    from the end."""
    def take_along_dim(self, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
        """Like :func:`gather`, with ``self`` and ``indices`` broadcast in the other dimensions; flat without ``dim``."""
    def tan(self, *, out: Tensor | None = None) -> Tensor:
        """Tangent of an angle in radians; integers become floats."""
    def tan_(self) -> Tensor:
        """In-place form of :func:`tan`: writes the result into ``self``."""
    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """Hyperbolic tangent; integers become floats."""
    def tanh_(self) -> Tensor:
        """In-place form of :func:`tanh`: writes the result into ``self``."""
    def tensor_split(self, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, dim: _int = 0, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None, tensor_indices_or_sections: Tensor | None = None) -> tuple[Tensor, ...]:
        """Views along a dimension: so many of nearly equal extent, or cut before the given positions."""
    @overload
    def tile(self, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
        """Like :meth:`repeat`, for the last ``len(dims)`` dimensions if there are more."""
    @overload
    def tile(self, *dims: _int, out: Tensor | None = None) -> Tensor: ...
    @overload
    def to(self, dtype: DType, non_blocking: _bool = False, copy: _bool = False, *, memory_format: memory_format | None = None) -> Tensor:
        """In another dtype, on another device, or like another tensor; itself where nothing changes."""
    @overload
    def to(self, device: device | str | _int | None = None, dtype: DType | None = None, non_blocking: _bool = False, copy: _bool = False, *, memory_format: memory_format | None = None) -> Tensor: ...
    @overload
    def to(self, other: Tensor, non_blocking: _bool = False, copy: _bool = False, *, memory_format: memory_format | None = None) -> Tensor: ...
    def to_dense(self, dtype: DType | None = None, *, masked_grad: _bool | None = None) -> Tensor:
        """Itself, or in another dtype: every tensor is dense."""
    def to_mkldnn(self, **kwargs: Any) -> NoReturn:
        """Not supported: tensors do not have oneDNN's layout."""
    def to_padded_tensor(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no nested tensors."""
    def to_sparse(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def to_sparse_bsc(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def to_sparse_bsr(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def to_sparse_coo(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def to_sparse_csc(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def to_sparse_csr(self, **kwargs: Any) -> NoReturn:
        """Not supported: there are no sparse tensors."""
    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Sequence[Tensor] | None = None) -> _topk:
        """(the ``k`` largest, or smallest, elements along ``dim``, their indices), always in order, NaN as largest."""
    def trace(self, *, out: Tensor | None = None) -> Tensor:
        """The sum of a matrix's diagonal. Integers sum to int64."""
    def transpose(self, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
        """A view with two dimensions exchanged."""
    def transpose_(self, dim0: _int, dim1: _int) -> Tensor:
        """Swap two dimensions of the tensor itself."""
    def triangular_solve(self, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Sequence[Tensor] | None = None) -> _triangular_solve:
        """(solution, copy of A) of ``A @ X == b`` for triangular A, of ``A.mT @ X == b`` with ``transpose``."""
    def tril(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """The lower triangles of matrices, up to the given diagonal; zeros elsewhere."""
    def tril_(self, diagonal: _int = 0) -> Tensor:
        """In-place form of :func:`tril`: writes the result into ``self``."""
    def triu(self, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
        """The upper triangles of matrices, from the given diagonal on; zeros elsewhere."""
    def triu_(self, diagonal: _int = 0) -> Tensor:
        """In-place form of :func:`triu`: writes the result into ``self``."""
    def true_divide(self, other: Tensor | complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """Divide elementwise."""
    def true_divide_(self, other: Tensor | complex, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of :func:`div`: writes the result into ``self``."""
    def trunc(self, *, out: Tensor | None = None) -> Tensor:
        """Round towards zero; integers stay as they are. The gradient is zero."""
    def trunc_(self) -> Tensor:
        """In-place form of :func:`trunc`: writes the result into ``self``."""
    @overload
    def type(self, dtype: None = None, non_blocking: _bool = False) -> str:
        """In another dtype; without one, the name of PyTorch's tensor type."""
    @overload
    def type(self, dtype: DType | str | _type[Any], non_blocking: _bool = False) -> Tensor: ...
    def type_as(self, other: Tensor) -> Tensor:
        """In the dtype of another tensor."""
    def unbind(self, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
        """Views of every index along a dimension, which disappears."""
    def unflatten(self, dim: _int, sizes: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
        """One dimension split into several of the given extents, one of which may be -1."""
    def unfold(self, dimension: _int, size: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
        """A view of all windows of ``size`` elements along a dimension, ``step`` apart, as a last dimension."""
    def uniform_(self, low: _float = 0.0, high: _float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill with numbers uniform in [low, high)."""
    @overload
    def unique(self, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """The distinct elements in ascending order; with their places and counts on request."""
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: Literal[False] = False, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(self, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique(self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor | tuple[Tensor, ...]: ...
    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """The elements without repetitions of the one before; with their places and counts on request."""
    @overload
    def unique_consecutive(self, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(self, *, return_inverse: Literal[False] = False, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(self, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor | tuple[Tensor, ...]: ...
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """:func:`chunk` without autograd's knowledge that the parts share memory: they may be changed in place."""
    def unsafe_split(self, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """:func:`split` without autograd's knowledge that the parts share memory: they may be changed in place."""
    def unsafe_split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """:func:`unsafe_split` into parts of the given extents."""
    def unsqueeze(self, dim: _int, *, out: Tensor | None = None) -> Tensor:
        """A view with a dimension of extent 1 inserted at ``dim``."""
    def unsqueeze_(self, dim: _int) -> Tensor:
        """Insert a dimension of extent 1 into the tensor itself."""
    def untyped_storage(self) -> UntypedStorage:
        """Its memory as bytes."""
    def values(self, **kwargs: Any) -> NoReturn:
        """Refused: it is for sparse tensors."""
    def var(self, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Tensor | None = None) -> Tensor:
        """Variance over ``dim``: squared distances from the mean, divided by (their number - ``correction``)."""
    def var_mean(self, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """(variance, mean) over ``dim``; see :func:`var`."""
    def vdot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The dot product of two vectors with ``self`` conjugated."""
    @overload
    def view(self, dtype: DType) -> Tensor:
        """The same elements under another shape, or with a dtype, the same memory read as that dtype."""
    @overload
    def view(self, size: Sequence[_int]) -> Tensor: ...
    @overload
    def view(self, *size: _int) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor:
        """Viewed with the shape of another tensor."""
    @property
    def volatile(self) -> _bool: ...
    def vsplit(self, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None) -> tuple[Tensor, ...]:
        """Views along dimension 0: so many of equal extent, or cut there."""
    def where(self, condition: Tensor, other: Tensor | complex) -> Tensor:
        """Elements of the tensor where ``condition`` holds, of ``other`` elsewhere."""
    def xlogy(self, other: Tensor | complex, *, out: Tensor | None = None) -> Tensor:
        """``self * log(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
    def xlogy_(self, other: Tensor | complex) -> Tensor:
        """In-place form of :func:`xlogy`: writes the result into ``self``."""
    def xpu(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: devices are CPUs and CUDA devices."""
    def zero_(self) -> Tensor:
        """Write 0 into every element."""
