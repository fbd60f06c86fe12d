"""The same memory read as another dtype."""

from __future__ import annotations

from ..dtypes import DType
from ..errors import ShapeError
from ..meta import Inference, Meta
from ..table import Tensor, op


@op(exposed=(), view=True)
def view_dtype(self: Tensor, dtype: DType) -> Inference:
    """The memory of ``self`` read as another dtype, without history: ``x.view(int32)`` in PyTorch.

    Between dtypes of different widths the last dimension shrinks or grows. It must be contiguous then, and where it
    shrinks, its extent and the other strides must be divisible by the ratio of the widths.
    """
    old, new = self.dtype.itemsize, dtype.itemsize
    shape, stride = self.shape, self.stride
    if old != new:
        if not shape:
            raise ShapeError(f"view: a 0-dim {self.dtype.name} tensor cannot be viewed as {dtype.name} of another size")
        if stride[-1] != 1:
            raise ShapeError(f"view: {self!r} must have a last stride of 1 to be {dtype.name}, not {stride[-1]}")
        if old > new:
            ratio = old // new
            shape, stride = (*shape[:-1], shape[-1] * ratio), (*(s * ratio for s in stride[:-1]), 1)
        else:
            ratio = new // old
            if shape[-1] % ratio or any(s % ratio for s in stride[:-1]):
                raise ShapeError(
                    f"view: {ratio} neighbours make one {dtype.name}, which does not divide {self!r} "
                    f"with strides {list(stride)}"
                )
            shape, stride = (*shape[:-1], shape[-1] // ratio), (*(s // ratio for s in stride[:-1]), 1)
    return Inference((Meta(shape, stride, dtype, self.device),), None, (0,))
