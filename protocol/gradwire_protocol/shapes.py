"""Shape arithmetic in pure Python: broadcasting, dimensions, strides of results, views, windows."""

from __future__ import annotations

from collections.abc import Sequence

from .dtypes import DType
from .errors import ArgumentError, DeviceError, IndexOutOfRange, ShapeError
from .meta import UNKNOWN, Inference, Meta, Shape, contiguous_stride, meta, new
from .promotion import Promote, ScalarKind, promote

MAX_DIMS = 64


def broadcast(*shapes: Shape) -> Shape:
    """The common shape, by the rules that NumPy and PyTorch share.

    Raises:
        ShapeError: naming the shapes and the first mismatching dimension.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    ndim = max(len(shape) for shape in shapes)
    result = [1] * ndim
    for shape in shapes:
        for i in range(1, len(shape) + 1):
            extent, so_far = shape[-i], result[-i]
            if extent == so_far or extent == 1:
                continue
            if so_far == 1 or so_far == UNKNOWN:
                result[-i] = extent
            elif extent != UNKNOWN:
                listed = " and ".join(str(list(s)) for s in shapes)
                sizes = f"dimension {ndim - i} has sizes {so_far} and {extent}"
                raise ShapeError(f"shapes {listed} do not broadcast: {sizes}")
    return tuple(result)


def canonical_dim(dim: int, ndim: int) -> int:
    """A dimension as a non-negative index. A 0-dim tensor accepts 0 and -1, as in PyTorch.

    Raises:
        IndexOutOfRange: naming the dimension and the range.
    """
    span = max(ndim, 1)
    if not -span <= dim < span:
        raise IndexOutOfRange(f"dimension {dim} is out of range; it must be from {-span} to {span - 1}")
    return dim + span if dim < 0 else dim


def canonical_dims(dims: Sequence[int] | int | None, ndim: int) -> tuple[int, ...]:
    """Distinct dimensions as non-negative indices; ``None`` and an empty sequence mean all."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = (dims,)
    if not dims:
        return tuple(range(ndim))
    result = tuple(canonical_dim(d, ndim) for d in dims)
    if len(set(result)) != len(result):
        raise ArgumentError(f"dimensions {list(dims)} contain a duplicate")
    return result


def reduced_shape(shape: Shape, dims: Sequence[int], keepdim: bool) -> Shape:
    """The shape after a reduction over canonical dimensions, which are removed or kept with extent 1."""
    gone = set(dims)
    if keepdim:
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


def check_size(size: Sequence[int]) -> Shape:
    """Check a shape from the user.

    Raises:
        ShapeError: for a negative extent or too many dimensions.
    """
    for extent in size:
        if extent < 0:
            raise ShapeError(f"size {list(size)} must not be negative, but contains {extent}")
    if len(size) > MAX_DIMS:
        raise ShapeError(f"a tensor has at most {MAX_DIMS} dimensions, not {len(size)}")
    return tuple(size)


def elementwise_stride(shape: Shape, operands: Sequence[Meta], numbers: bool = False) -> Shape | None:
    """The strides of an elementwise result, which keep the operands' order of dimensions, as in PyTorch.

    ``None`` means row-major. The order is that of PyTorch's TensorIterator: an insertion sort by the first operand
    whose strides distinguish two dimensions. If all operands have the result's shape, and no ``numbers`` are among
    them, strides of extents of 1 are copied, or are those of channels-last image batches.
    """
    if all(op.contiguous and (op.shape == shape or op.numel == 1) for op in operands):
        return None
    if UNKNOWN in shape:
        return None
    full = [op for op in operands if op.shape == shape]
    if len(full) == len(operands) and not numbers:
        first = full[0].stride
        if len(shape) == 4 and all(_has_channels_last(shape, op.stride) for op in full):
            return (shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1])
        if all(op.stride == first for op in full) and is_dense(shape, first):
            return first
    ndim = len(shape)
    rows = [_broadcast_stride(op, shape) for op in operands]
    order = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        moving = i
        for other in range(i - 1, -1, -1):
            verdict = _compare(order[other], order[moving], rows, shape)
            if verdict > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif verdict < 0:
                break
    stride = [0] * ndim
    step = 1
    for dim in order:
        stride[dim] = step
        step *= max(shape[dim], 1)
    result = tuple(stride)
    return None if result == contiguous_stride(shape) else result


def _has_channels_last(shape: Shape, stride: Shape) -> bool:
    expected = 1
    for dim in (1, 3, 2, 0):
        if shape[dim] != 1:
            if stride[dim] != expected:
                return False
            expected *= shape[dim]
    return True


def _broadcast_stride(op: Meta, shape: Shape) -> tuple[int, ...]:
    lead = len(shape) - len(op.shape)
    scale = op.dtype.itemsize
    return (0,) * lead + tuple(
        0 if n == 1 and shape[lead + i] != 1 else s * scale
        for i, (n, s) in enumerate(zip(op.shape, op.stride, strict=True))
    )


def _compare(a: int, b: int, rows: Sequence[Sequence[int]], shape: Shape) -> int:
    for row in rows:
        sa, sb = row[a], row[b]
        if sa == 0 or sb == 0:
            continue
        if sa != sb:
            return -1 if sa < sb else 1
        if shape[a] > shape[b]:
            return 1
    return 0


def is_dense(shape: Shape, stride: Shape) -> bool:
    """Whether the elements fill a contiguous block of memory without gaps or overlap, in any order."""
    expected = 1
    for step, extent in sorted((s, n) for n, s in zip(shape, stride, strict=True) if n > 1):
        if step != expected:
            return False
        expected *= extent
    return True


def preserved_stride(op: Meta) -> Shape | None:
    """Strides for a copy of ``op``, or a tensor like it (``torch.preserve_format``): its own where it is dense, also
    those that belong to extents of one."""
    if not op.known:
        return None
    return op.stride if is_dense(op.shape, op.stride) else elementwise_stride(op.shape, [op])


def copied_stride(op: Meta, row_major: bool, channels_last: bool) -> Shape | None:
    """Strides for a copy of ``op``, or a tensor like it, in a memory order that may be asked for; else its own."""
    if channels_last:
        return channels_last_order(op.shape)
    return None if row_major else preserved_stride(op)


def channels_last_order(shape: Shape) -> Shape:
    """Strides of images (4 dimensions) or volumes (5) whose channels are adjacent in memory.

    Raises:
        ArgumentError: for another number of dimensions.
    """
    ndim = len(shape)
    if ndim not in (4, 5):
        raise ArgumentError(f"channels last is an order of 4 or 5 dimensions, not of {ndim}")
    stride = [0] * ndim
    step = 1
    for dim in (1, *range(ndim - 1, 1, -1), 0):
        stride[dim] = step
        step *= shape[dim]
    return tuple(stride)


def dense_stride_like(op: Meta) -> Shape | None:
    """Strides for what is computed in the memory order of ``op``: row-major where it is contiguous, whatever the
    strides that belong to extents of one."""
    return None if op.contiguous else preserved_stride(op)


def common_device(*operands: Meta | ScalarKind | None) -> str:
    """The common device of all operands; a 0-dim CPU tensor may be combined with any device.

    Raises:
        DeviceError: naming the devices.
    """
    device, fixed = "cpu", False
    for op in operands:
        if not isinstance(op, Meta):
            continue
        if op.device != device:
            if device == "cpu" and not fixed:
                device = op.device
            elif op.device != "cpu" or op.shape:
                raise DeviceError(f"operands are on different devices, {device} and {op.device}")
        fixed = fixed or bool(op.shape)
    return device


def elementwise(
    *operands: Meta | ScalarKind,
    promotion: Promote = Promote.DEFAULT,
    dtype: DType | None = None,
    grad_fn: str | None = None,
    wrapped: bool = True,
) -> Inference:
    """The rule of elementwise ops: broadcast shapes, promote dtypes, keep the memory order.

    ``dtype`` overrides the result's dtype, not that of the computation. Numbers are ``wrapped`` if PyTorch converts
    them to 0-dim tensors instead of passing them as attributes.
    """
    tensors = [op for op in operands if type(op) is Meta]
    first = tensors[0]
    if len(tensors) == 1:
        shape, device = first.shape, first.device
    else:
        shape = broadcast(*[op.shape for op in tensors])
        device = common_device(*tensors)
    compute, result = promote(
        promotion, [op if isinstance(op, ScalarKind) else (op.dtype, len(op.shape)) for op in operands]
    )
    return new(
        shape,
        dtype or result,
        device,
        compute=compute,
        stride=elementwise_stride(
            shape, [_cast(op, compute) for op in tensors], wrapped and len(tensors) < len(operands)
        ),
        grad_fn=grad_fn,
    )


def _cast(op: Meta, dtype: DType) -> Meta:
    """The operand that PyTorch computes with: a cast makes a dense copy, whose memory order matters."""
    if op.dtype is dtype or op.contiguous or not op.known:
        return op
    return meta(op.shape, dtype, op.device, dense_stride_like(op))


def like(self: Meta, *, dtype: DType | None = None, grad_fn: str | None = None) -> Inference:
    """A new tensor with the operand's shape and, if that is dense, its memory order."""
    return new(self.shape, dtype or self.dtype, self.device, stride=dense_stride_like(self), grad_fn=grad_fn)


def reduction(
    self: Meta,
    dims: Sequence[int] | int | None,
    keepdim: bool,
    *,
    dtype: DType | None = None,
    compute: DType | None = None,
    grad_fn: str | None = None,
) -> Inference:
    """The rule of reductions over ``dims`` (``None`` or empty: all of them)."""
    gone = canonical_dims(dims, self.ndim)
    shape = reduced_shape(self.shape, gone, keepdim) if self.ndim else ()
    return new(shape, dtype or self.dtype, self.device, compute=compute, grad_fn=grad_fn)


def infer_size(shape: Sequence[int], numel: int) -> Shape:
    """Fill in the one -1 of a target shape.

    Raises:
        ShapeError: if the elements do not fit, or for too many dimensions.
    """
    wanted = tuple(shape)
    if len(wanted) > MAX_DIMS:
        raise ShapeError(f"the shape has {len(wanted)} dimensions; the limit is {MAX_DIMS}")
    if any(n < -1 for n in wanted):
        raise ShapeError(f"shape {list(wanted)} has a negative size other than -1")
    holes = [i for i, n in enumerate(wanted) if n == -1]
    if len(holes) > 1:
        raise ArgumentError(f"shape {list(wanted)} has more than one -1")
    known = 1
    for n in wanted:
        known *= n if n != -1 else 1
    if holes:
        if known == 0 or numel % known:
            raise ShapeError(f"shape {list(wanted)} does not fit {numel} elements")
        i = holes[0]
        return (*wanted[:i], numel // known, *wanted[i + 1 :])
    if known != numel:
        raise ShapeError(f"shape {list(wanted)} has {known} elements, but the tensor has {numel}")
    return wanted


def view_stride(self: Meta, shape: Shape) -> Shape | None:
    """Strides for a view of the same memory with ``shape``, or ``None`` if that needs a copy."""
    if self.numel == 0 or not self.shape:
        return self.stride if self.shape == shape else contiguous_stride(shape)
    stride = [0] * len(shape)
    target = len(shape) - 1
    chunk_stride = self.stride[-1]
    in_chunk = 1
    filled = 1
    for dim in range(self.ndim - 1, -1, -1):
        in_chunk *= self.shape[dim]
        at_edge = dim == 0 or (self.shape[dim - 1] != 1 and self.stride[dim - 1] != in_chunk * chunk_stride)
        if at_edge:
            while target >= 0 and (filled < in_chunk or shape[target] == 1):
                stride[target] = filled * chunk_stride
                filled *= shape[target]
                target -= 1
            if filled != in_chunk:
                return None
            if dim > 0:
                chunk_stride = self.stride[dim - 1]
                in_chunk = filled = 1
    return tuple(stride) if target == -1 else None


def window_extent(
    extent: int, kernel: int, stride: int, padding: int, dilation: int = 1, ceil_mode: bool = False
) -> int:
    """The number of positions of a sliding window along one dimension (convolution, pooling)."""
    room = extent + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    # A window that would start in the padding after the end does not count.
    return count - 1 if (count - 1) * stride >= extent + padding else count


def channels_last_stride(self: Meta, shape: Shape) -> Shape | None:
    """Strides for a result of ``shape`` in the operand's memory format: channels last for an image batch (or, with five
    dimensions, a volume batch) stored that way; otherwise ``None``, row-major."""
    if self.ndim not in (4, 5) or self.ndim != len(shape) or not self.known or not _is_channels_last(self):
        return None
    return channels_last_order(shape)


def rows_channels_last_stride(self: Meta, shape: Shape) -> Shape | None:
    """:func:`channels_last_stride` for ``(N, C, L)``, where PyTorch computes with images of one row."""
    if self.ndim != 3 or len(shape) != 3 or not self.known:
        return None
    (batch, channels, extent), (far, near, step) = self.shape, self.stride
    rows = meta((batch, channels, 1, extent), self.dtype, self.device, (far, near, extent * step, step))
    found = channels_last_stride(rows, (shape[0], shape[1], 1, shape[2]))
    return None if found is None else (found[0], found[1], found[3])


def _is_channels_last(self: Meta) -> bool:
    least = 0
    if self.stride[1] == 0:
        return False
    for dim in (1, *range(self.ndim - 1, 1, -1), 0):
        extent, step = self.shape[dim], self.stride[dim]
        if extent == 0 or step < least or (dim == 0 and least == self.stride[1]):
            return False
        least = step * extent if extent > 1 else step
    return True
