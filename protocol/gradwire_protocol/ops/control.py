"""Operations on the session rather than on values: the graph, gradients, modes, names, random state."""

from __future__ import annotations

from ..dtypes import DType
from ..errors import ArgumentError, DTypeError, GraphError, ShapeError
from ..meta import Inference, Meta, meta, new, nothing
from ..shapes import check_size, is_dense
from ..table import Scalar, Tensor, op

GRAD_MODE, INFERENCE_MODE, ANOMALY_MODE = 1, 2, 4
"""Bits of :func:`set_mode`. Every frame starts with ``GRAD_MODE`` alone."""


@op(control=True, results=0, exposed=())
def set_mode(flags: int) -> Inference:
    """The modes for the records that follow, until the end of the frame: bit 0 records gradients, bit 1 is
    inference mode, bit 2 looks for NaN in backward. A frame starts with 1."""
    if not 0 <= flags < 8:
        raise ArgumentError(f"mode flags {flags} are outside 0 to 7")
    return nothing()


def check_gradient(tensor: Meta, gradient: Meta | None) -> None:
    """Check an initial gradient against the tensor it belongs to.

    Raises:
        GraphError: when it is missing for a tensor of several elements.
        ShapeError, DTypeError: when it does not fit.
    """
    if gradient is None:
        if tensor.dtype.is_complex:
            raise GraphError(
                f"a gradient can be left out only for a real tensor, this one is {tensor.dtype.name}; pass gradient="
            )
        if tensor.known and tensor.numel != 1:
            raise GraphError(
                f"a gradient can be left out only for a tensor of one element, this one has shape "
                f"{list(tensor.shape)}; pass gradient="
            )
        return
    if gradient.shape != tensor.shape and gradient.known and tensor.known:
        raise ShapeError(f"the gradient has shape {list(gradient.shape)}, its tensor {list(tensor.shape)}")
    if gradient.dtype.is_complex != tensor.dtype.is_complex:
        raise DTypeError(f"the gradient is {gradient.dtype.name}, its tensor {tensor.dtype.name}")


@op(control=True, results=0, exposed=())
def backward(
    tensors: list[Tensor],
    gradients: list[Tensor | None],
    inputs: list[Tensor] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> Inference:
    """Accumulate gradients of ``tensors`` into the ``grad`` of the leaves they depend on (or of ``inputs`` only).

    ``gradients`` holds one initial gradient per tensor, null for a tensor of one element. The graph is freed unless
    ``retain_graph``, which is by default what ``create_graph`` is.
    """
    if len(gradients) != len(tensors):
        raise ArgumentError(f"got {len(tensors)} tensors, but {len(gradients)} gradients")
    for tensor, gradient in zip(tensors, gradients, strict=True):
        check_gradient(tensor, gradient)
    return nothing()


@op(control=True, results=None, exposed=())
def grad(
    outputs: list[Tensor],
    inputs: list[Tensor],
    grad_outputs: list[Tensor | None],
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
    materialize_grads: bool = False,
) -> Inference:
    """The gradients of ``outputs`` with respect to ``inputs``, one result per input, leaving every ``grad`` as it
    is, laid out as :func:`grad_of` says. A result for an unused input is undefined (null when read) unless
    ``materialize_grads``."""
    if len(grad_outputs) != len(outputs):
        raise ArgumentError(f"got {len(outputs)} outputs, but {len(grad_outputs)} gradients")
    for tensor, gradient in zip(outputs, grad_outputs, strict=True):
        check_gradient(tensor, gradient)
    return Inference(tuple(gradient_meta(i) for i in inputs))


def gradient_meta(tensor: Meta, dtype: DType | None = None) -> Meta:
    """What the gradient for a tensor looks like: its strides where they leave no gaps, else row-major order."""
    dtype = dtype or tensor.dtype
    if not tensor.known or not is_dense(tensor.shape, tensor.stride):
        return meta(tensor.shape, dtype, tensor.device)
    return meta(tensor.shape, dtype, tensor.device, tensor.stride)


@op(control=True, after_backward=True, exposed=())
def grad_of(self: Tensor, dtype: DType | None = None) -> Inference:
    """The tensor that ``self.grad`` is, of the given dtype where that is not the tensor's own; undefined where there
    is none. It has the strides of ``self`` where these leave no gaps, else it is in row-major order."""
    return Inference((gradient_meta(self, dtype),))


@op(control=True, results=0, exposed=())
def set_grad(self: Tensor, grad: Tensor | None = None) -> Inference:
    """Make ``grad`` the gradient of ``self``, or remove it. Its dtype is the one set by :func:`set_grad_dtype`."""
    if grad is not None:
        check_assigned_grad(self, grad, None)
    return nothing()


@op(control=True, results=0, exposed=())
def set_grad_dtype(self: Tensor, dtype: DType | None = None) -> Inference:
    """The dtype that gradients of a leaf are cast to; null lets them keep their own. By default the leaf's dtype."""
    return nothing()


def check_assigned_grad(self: Meta, grad: Meta, dtype: DType | None) -> None:
    """Check a tensor that is assigned to ``.grad``: same shape and device, and the dtype if one is given."""
    if grad.shape != self.shape:
        raise ShapeError(f"the assigned grad has shape {list(grad.shape)}, the tensor {list(self.shape)}")
    if dtype is not None and grad.dtype is not dtype:
        raise DTypeError(f"the assigned grad is {grad.dtype.name}, gradients of the tensor are {dtype.name}")
    if grad.device != self.device:
        raise ArgumentError(f"the assigned grad is on {grad.device}, the tensor on {self.device}")


@op(control=True, results=0, exposed=())
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Inference:
    """Start or stop recording gradients for a leaf. Only floating point and complex tensors can."""
    check_can_require_grad(self, requires_grad)
    return nothing()


def check_can_require_grad(self: Meta, requires_grad: bool = True) -> None:
    """Check that the dtype can carry a gradient.

    Raises:
        DTypeError: for integers and bools.
    """
    if requires_grad and not (self.dtype.is_floating_point or self.dtype.is_complex):
        raise DTypeError(
            f"a tensor of dtype {self.dtype.name} cannot require a gradient, only floating point and complex ones"
        )


@op(control=True, results=0, exposed=())
def retain_grad(self: Tensor) -> Inference:
    """Keep the gradient of a tensor that is not a leaf, too."""
    return nothing()


@op(control=True, results=0, exposed=())
def detach_(self: Tensor) -> Inference:
    """Cut the tensor from its history, in place. Not possible for a view."""
    return nothing()


@op(control=True, exposed=())
def data_of(self: Tensor) -> Inference:
    """The same memory without history, under a version of its own: writes to it go unnoticed by backward."""
    return new(self.shape, self.dtype, self.device, stride=self.stride)


@op(control=True, results=0, exposed=())
def set_data(self: Tensor, data: Tensor) -> Inference:
    """Let ``self`` show the memory of ``data`` from now on, keeping its own history and gradient."""
    return nothing()


@op(control=True, exposed=())
def resized(self: Tensor, size: tuple[int, ...]) -> Inference:
    """The memory of ``self`` from its first element on, in row-major order of another size and without history.

    Where that reaches beyond the end of the memory, new memory that begins with the same elements.
    """
    return new(check_size(size), self.dtype, self.device)


@op(control=True, results=0, exposed=())
def manual_seed(seed: Scalar) -> Inference:
    """Restart the session's random numbers at this seed (an integer)."""
    return nothing()


@op(control=True, exposed=())
def get_rng_state() -> Inference:
    """The state of the session's random numbers, as a uint8 tensor."""
    from ..dtypes import uint8

    return new((16,), uint8, "cpu")


@op(control=True, results=0, exposed=())
def set_rng_state(state: Tensor) -> Inference:
    """Restore a state that :func:`get_rng_state` gave."""
    return nothing()


@op(control=True, results=0, exposed=())
def set_default_dtype(dtype: str) -> Inference:
    """The dtype that Python floats and ``int / int`` take in this session."""
    return nothing()


@op(control=True, results=0, exposed=())
def set_float32_matmul_precision(precision: str) -> Inference:
    """How coarse products of float32 matrices may be on a GPU of this session: ``highest`` (as it starts) computes in
    float32, ``high`` and ``medium`` may round the operands to TF32, which has 10 bits behind the point.
    """
    return nothing()


@op(control=True, results=0, exposed=())
def set_name(self: Tensor, name: str) -> Inference:
    """Give the tensor a name that any client of the session can look up. A name held before moves here."""
    return nothing()


@op(control=True, exposed=(), dynamic=True)
def by_name(name: str) -> Inference:
    """The tensor of this name. Its shape and dtype are those it has."""
    from ..dtypes import float32

    return new((-1,), float32, "cpu")


@op(control=True, exposed=(), dynamic=True)
def grad_fn_of(self: Tensor) -> Inference:
    """The name of the node that made the tensor, as a uint8 tensor of its letters; without elements for a leaf."""
    from ..dtypes import uint8

    return new((-1,), uint8, "cpu")


@op(control=True, exposed=())
def shape_of(self: Tensor) -> Inference:
    """The shape, as an int64 tensor: how a client learns an extent that depended on data."""
    from ..dtypes import int64

    return new((self.ndim,), int64, "cpu")


@op(control=True, exposed=())
def offset_of(self: Tensor) -> Inference:
    """How many elements before the first one the memory begins, as a 0-dim int64 tensor."""
    from ..dtypes import int64

    return new((), int64, "cpu")
