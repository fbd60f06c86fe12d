"""Rearranging tensors: broadcast, split, copied, seen through strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from gradwire_protocol.out import Out
from gradwire_protocol.shapes import broadcast, canonical_dim
from gradwire_protocol.table import TABLE

from ..context.late_signatures import called_as, show_as
from ..context.layouts import asked_order, memory_format
from ..context.size import Size
from ..dispatch.dispatch import call, run
from ..dispatch.out_argument import resize_, resize_as_
from ..graph.recorded_call import entry_of
from ..session.current_session import get_default_dtype
from ..surface.creation import empty, finish, full
from ..surface.methods import FUNCTIONS, attach, offer
from ..surface.op_help import signature_of
from ..tensor.tensor import Tensor
from .joining import tensors_of

_function: Callable[..., Any]
_plain: Callable[..., Any]


def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension; a view where that is possible."""
    return call("reshape", input, (-1,))


_FLATTEN = entry_of(TABLE["flatten"])


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions ``start_dim`` to ``end_dim`` merged into one: a view where strides allow it, else a copy; the tensor
    itself where they are one dimension."""
    count = input.ndim if isinstance(input, Tensor) else 0
    if start_dim == end_dim or start_dim == end_dim + count:
        if count and -count <= end_dim < count and -count <= start_dim < count:
            return input
    return run(_FLATTEN, [input, start_dim, end_dim])


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over the dimensions that broadcasting added or stretched, so that the result has the given size."""
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    # A sum to no dimensions is a sum, also of one number: integers become int64.
    return input if wanted and wanted == tuple(input.shape) else call("sum_to_size", input, wanted)


attach("sum_to_size", sum_to_size)


def positive(input: Tensor) -> Tensor:
    """The tensor itself, which is to be of numbers."""
    if input.dtype is dtypes.bool_:
        raise DTypeError("positive is not defined for bool tensors")
    return input


def fliplr(input: Tensor) -> Tensor:
    """The second dimension in reverse."""
    if input.ndim < 2:
        raise ShapeError(f"fliplr needs at least two dimensions, got {input.ndim}")
    return call("flip", input, (1,))


def flipud(input: Tensor) -> Tensor:
    """The first dimension in reverse."""
    if input.ndim < 1:
        raise ShapeError("flipud needs at least one dimension, got 0")
    return call("flip", input, (0,))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return call("diag", ravel(input), offset)


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The n-th differences of neighbours along a dimension, with values put before or behind it first.

    Raises:
        ShapeError: for a 0-dim tensor.
        ArgumentError: for a negative ``n``.
    """
    if input.ndim == 0:
        raise ShapeError("diff needs a tensor of at least one dimension")
    if n < 0:
        raise ArgumentError(f"diff: the order is 0 or more, not {n}")
    parts = [part for part in (prepend, input, append) if part is not None]
    if len(parts) > 1 and n > 0:
        input = call("cat", parts, dim)
    if n == 0:
        zero = call("zeros_like", input)
        return call("logical_or" if input.dtype is dtypes.bool_ else "add", input, zero)
    for _ in range(min(n, input.shape[dim])):
        extent = input.shape[dim]
        later = call("slice", input, dim, 1, None, 1)
        earlier = call("slice", input, dim, 0, max(extent - 1, 0), 1)
        input = call("ne" if input.dtype is dtypes.bool_ else "sub", later, earlier)
    return input


def repeat_interleave(
    input: Tensor, repeats: Tensor | int | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element repeated, so many times each or as often as a tensor says.

    Raises:
        ArgumentError: for repeats of another number than there are elements along the dimension.
    """
    if repeats is None:
        return call("repeated_positions", input)
    if not isinstance(repeats, Tensor):
        return call("repeat_interleave", input, repeats, dim)
    if dim is None:
        input, dim = ravel(input), 0
    counts = repeats
    if counts.numel() == 1 and input.shape[dim] != 1:
        counts = call("expand", call("reshape", counts, (1,)), (input.shape[dim],))
    if counts.ndim == 1 and counts.numel() != input.shape[dim]:
        raise ArgumentError(
            f"repeat_interleave: {counts.numel()} repeats for an extent of {input.shape[dim]} along dimension {dim}"
        )
    return call("index_select", input, dim, call("repeated_positions", counts))


for _function in (flatten, positive, ravel, fliplr, flipud, diagflat, repeat_interleave):
    offer(_function)
offer(diff, out=Out.EXACT | Out.WHOLE)


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: one tensor per axis, expanded to the shape of the grid.

    Raises:
        ArgumentError: for an ``indexing`` other than "ij" and "xy", no tensors, and ones that are not alike.
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"indexing is 'ij' or 'xy', not {indexing!r}")
    axes = tensors_of(tensors)
    if not axes:
        raise ArgumentError("meshgrid takes at least one tensor")
    for axis in axes:
        if axis.ndim > 1:
            raise ArgumentError(f"meshgrid takes vectors, one of the tensors has shape {list(axis.shape)}")
        if axis.dtype is not axes[0].dtype or axis.device != axes[0].device:
            raise ArgumentError(
                f"meshgrid takes tensors of one dtype on one device, not {axes[0].dtype!r} on {axes[0].device} and "
                f"{axis.dtype!r} on {axis.device}"
            )
    swapped = indexing == "xy" and len(axes) > 1
    if swapped:
        axes[0], axes[1] = axes[1], axes[0]
    shape = tuple(x.numel() for x in axes)
    grids = []
    for i, axis in enumerate(axes):
        line = call("view", axis, tuple(-1 if k == i else 1 for k in range(len(axes))))
        grids.append(call("expand", line, shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Expanded to their common shape, without copying."""
    given = tensors_of(tensors)
    shape = broadcast(*[tuple(x.shape) for x in given])
    return tuple(x if tuple(x.shape) == tuple(shape) else call("expand", x, shape) for x in given)


def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape that tensors of these shapes broadcast to."""
    return Size(broadcast(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))


for _plain in (meshgrid, broadcast_tensors, broadcast_shapes):
    offer(_plain, method=False)


def _cuts(name: str, either: Any, indices: Any, sections: int | None) -> Any:
    """The one that is given."""
    given = [v for v in (either, indices, sections) if v is not None]
    if len(given) != 1:
        raise ArgumentTypeError(f"{name} takes either indices or a number of sections, got {len(given)} of them")
    return given[0]


def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | Tensor | None = None,
    dim: int = 0,
    *,
    indices: Sequence[int] | Tensor | None = None,
    sections: int | None = None,
    tensor_indices_or_sections: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Views along a dimension: so many of nearly equal extent, or cut before the given positions.

    Raises:
        ArgumentError: for a tensor without dimensions, and positions that are no integers in a row.
    """
    if tensor_indices_or_sections is not None:
        indices = _cuts("tensor_split", tensor_indices_or_sections, indices, None)
    indices_or_sections = _cuts("tensor_split", indices_or_sections, indices, sections)
    if not input.ndim:
        raise ArgumentError("tensor_split needs a tensor of at least 1 dimension, got one without")
    extent = input.shape[canonical_dim(dim, input.ndim)]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dtype is not dtypes.int64 or indices_or_sections.ndim > 1:
            raise ArgumentError(
                f"tensor_split: positions are an int64 number or a row of them, not {indices_or_sections._form!r}"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ArgumentError(f"a tensor is split into at least one part, not {count}")
        small, larger = divmod(extent, count)
        cuts = [i * small + min(i, larger) for i in range(1, count)]
    else:
        cuts = list(indices_or_sections)  # type: ignore[arg-type]  # no tensor any more
    bounds = zip([0, *cuts], [*cuts, extent], strict=True)
    return tuple(call("slice", input, dim, start, max(stop, start) if stop >= 0 else stop, 1) for start, stop in bounds)


def _split_along(name: str, dim: int) -> None:
    def function(
        input: Tensor,
        indices_or_sections: int | Sequence[int] | Tensor | None = None,
        *,
        indices: Sequence[int] | Tensor | None = None,
        sections: int | None = None,
    ) -> tuple[Tensor, ...]:
        indices_or_sections = _cuts(name, indices_or_sections, indices, sections)
        along = 0 if name == "hsplit" and input.ndim == 1 else dim
        if input.ndim <= along:
            raise ArgumentError(f"{name} needs a tensor of at least {dim + 1} dimensions, got {input.ndim}")
        if indices_or_sections == 0 and isinstance(indices_or_sections, int):
            raise ArgumentError(f"{name} cuts into at least one part, not 0")
        if isinstance(indices_or_sections, int) and input.shape[along] % indices_or_sections:
            raise ArgumentError(f"{name}: an extent of {input.shape[along]} does not divide by {indices_or_sections}")
        return tensor_split(input, indices_or_sections, along)

    function.__name__, function.__doc__ = name, f"Views along dimension {dim}: so many of equal extent, or cut there."
    offer(function)


for _name, _dim in (("vsplit", 0), ("hsplit", 1), ("dsplit", 2)):
    _split_along(_name, _dim)


for _function in (tensor_split,):
    offer(_function)


COPIED: Final = {
    Out.ANY: ("split",),
    Out.EXACT: (
        "alias", "diagonal", "expand", "permute", "select", "slice", "squeeze", "t", "transpose", "unbind", "unfold",
        "unsqueeze", "view_as_real", "view_as_complex",
    ),
    Out.EXACT | Out.SILENT: ("narrow",),
}  # fmt: skip
"""The views that there are copying functions of, by how those treat ``out=``."""


@offer
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy that gradients flow through: in the memory order that is named, else as the tensor lies."""
    if memory_format is None:
        return call("clone", input)
    return call("clone", input, **asked_order(memory_format, input.ndim, bool(input._levels)))


def copying(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    """``name_copy``: a function that returns copies of what ``view`` returns."""

    def function(*args: Any, **kwargs: Any) -> Any:
        shown = view(*args, **kwargs)
        if isinstance(shown, tuple):
            return tuple(call("clone", part) for part in shown)
        return call("clone", shown, row_major=True)

    function.__name__, function.__doc__ = f"{name}_copy", f"What :func:`{name}` shows, in new memory."
    show_as(function, lambda: signature_of(TABLE[name]) if name in TABLE and view is not _shown else signature(view))
    return function


def _view_of(name: str) -> Callable[..., Any]:
    found: Any = FUNCTIONS.get(name) or getattr(Tensor, name, None)
    if found is None:
        return lambda *args, **kwargs: call(name, *args, **kwargs)
    return found


for _how, _views in COPIED.items():
    for _name in _views:
        offer(copying(_name, _view_of(_name)), method=_name == "narrow", out=_how)


def _shown_form(input: Tensor, *size: int | Sequence[int], dtype: dtypes.DType | None = None) -> Tensor:
    raise NotImplementedError


@called_as(_shown_form)
def _shown(input: Tensor, *given: Any, **named: Any) -> Tensor:
    """A view, or a copy where strides allow none: it is copied anyway."""
    if isinstance(given[0] if given else named.get("size"), dtypes.DType) or "dtype" in named:
        return _view_of("view")(input, *given, **named)
    return call("reshape", input, *given, *named.values())


offer(copying("view", _shown), method=False, out=Out.EXACT)


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the given extents along a dimension."""
    return call("split", input, tuple(split_sizes), dim)


def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of the given extents along a dimension."""
    return tuple(call("clone", part, row_major=True) for part in split_with_sizes(input, split_sizes, dim))


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """:func:`chunk` without autograd's knowledge that the parts share memory: they may be changed in place."""
    if chunks < 1:
        raise ArgumentError(f"unsafe_chunk: there are at least 1 chunks, not {chunks}")
    extent = input.shape[dim]
    if extent == 0:
        return _unsafe_parts(input, (0,) * chunks, dim)
    return _unsafe_parts(input, -(-extent // chunks), dim)


def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """:func:`split` without autograd's knowledge that the parts share memory: they may be changed in place."""
    return _unsafe_parts(input, split_size, dim)


def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """:func:`unsafe_split` into parts of the given extents."""
    return _unsafe_parts(input, tuple(split_sizes), dim)


def _unsafe_parts(input: Tensor, sizes: int | tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = call("unsafe_split", input, sizes, dim)
    for part in parts:
        part._shows_part_of(input)
    return parts


offer(split_with_sizes)
for _function in (unsafe_chunk, unsafe_split, unsafe_split_with_sizes):
    offer(_function)
offer(split_with_sizes_copy, method=False, out=Out.EXACT)


_as_strided = FUNCTIONS["as_strided"]
_as_strided_scatter = FUNCTIONS["as_strided_scatter"]


@offer
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of the tensor's memory with any size and strides, both in elements.

    ``storage_offset`` counts from the beginning of the memory, not of the tensor, which is the default.

    Raises:
        ArgumentError: for a negative offset.
        ShapeError: for a geometry that is none, or that reaches beyond the memory.
    """
    begin = 0 if storage_offset is None else storage_offset
    return _as_strided(input, size, stride, begin, absolute=storage_offset is not None)


offer(copying("as_strided", as_strided), method=False, out=Out.EXACT)


@offer
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of the tensor with ``src`` written into the part that :func:`as_strided` shows. One round trip where an
    offset is given.

    Raises:
        ShapeError: for a geometry that is none, or that reaches beyond the tensor.
    """
    begin = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return _as_strided_scatter(input, src, size, stride, begin)


def empty_strided(size: Sequence[int], stride: Sequence[int], *, requires_grad: bool = False, **options: Any) -> Tensor:
    """Uninitialised, of a size, with the given strides (in elements).

    Raises:
        ArgumentError: when there are not as many strides as extents.
    """
    if len(size) != len(stride):
        raise ArgumentError(f"empty_strided: {len(size)} extents do not go with {len(stride)} strides")
    held = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    shown = call("as_strided", empty(held, **options), tuple(size), tuple(stride), 0)
    return finish(shown.detach(), requires_grad)


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """Uninitialised, dense, with the dimensions in memory in the order ``physical_layout``, the outermost first.

    Raises:
        ArgumentError: when the layout is no permutation of the dimensions.
    """
    order = tuple(physical_layout)
    if sorted(order) != list(range(len(size))):
        raise ArgumentError(f"empty_permuted: {list(order)} is no permutation of the {len(size)} dimensions")
    stride, step = [0] * len(order), 1
    for dim in reversed(order):
        stride[dim], step = step, step * max(size[dim], 1)
    return empty_strided(tuple(size), tuple(stride), **options)


def new_empty_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], **options: Any) -> Tensor:
    """:func:`empty_strided`, of the dtype and on the device of a tensor unless others are given."""
    options.setdefault("dtype", self.dtype)
    options.setdefault("device", self.device)
    return empty_strided(size, stride, **options)


def scalar_tensor(s: complex, **options: Any) -> Tensor:
    """A 0-dim tensor of a number, of the default float dtype unless another is given."""
    if options.get("dtype") is None:
        options["dtype"] = get_default_dtype()
    return full((), s, **options)


attach("resize_", resize_)
attach("resize_as_", resize_as_)
attach("new_empty_strided", new_empty_strided)
for _plain in (empty_strided, empty_permuted, scalar_tensor, resize_as_):
    offer(_plain, method=False)
