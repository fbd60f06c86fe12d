"""Functions that PyTorch has and the op table needs not: each is a few ops of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError
from gradwire_protocol.shapes import broadcast

from ..creation import place, tensor
from ..dispatch import call
from ..methods import offer
from ..sessions import current_session
from ..size import Size
from ..tensor import Tensor


def _tensors(given: Sequence[Any]) -> list[Tensor]:
    return list(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else list(given)


def _at_least(x: Tensor, ndim: int) -> Tensor:
    """With enough dimensions, added where NumPy adds them."""
    if x.ndim == 0:
        x = call("reshape", x, (1,))
    if ndim >= 2 and x.ndim == 1:
        x = call("unsqueeze", x, 0)
    if ndim == 3 and x.ndim == 2:
        x = call("unsqueeze", x, 2)
    return x


def _atleast(name: str, ndim: int) -> None:
    def function(*tensors: Any) -> Any:
        found = [_at_least(x, ndim) for x in _tensors(tensors)]
        return found[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else tuple(found)

    function.__name__, function.__doc__ = name, f"Viewed with at least {ndim} dimensions."
    offer(function, method=False)


for _ndim in (1, 2, 3):
    _atleast(f"atleast_{_ndim}d", _ndim)


def hstack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the second dimension, along the first for 1-D tensors."""
    parts = [_at_least(x, 1) for x in tensors]
    return call("cat", parts, 0 if parts and parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the first dimension; 1-D tensors count as rows."""
    return call("cat", [_at_least(x, 2) for x in tensors], 0)


def dstack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the third dimension."""
    return call("cat", [_at_least(x, 3) for x in tensors], 2)


def column_stack(tensors: Sequence[Tensor]) -> Any:
    """Joined along the second dimension; tensors of fewer than two dimensions count as columns."""
    columns = [call("reshape", x, (x.numel(), 1)) if x.ndim < 2 else x for x in tensors]
    return call("cat", columns, 1)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Coordinates of a grid: one tensor per axis, expanded to the shape of the grid.

    Raises:
        ArgumentError: for an ``indexing`` other than "ij" and "xy".
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"indexing is 'ij' or 'xy', not {indexing!r}")
    axes = _tensors(tensors)
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


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Expanded to their common shape, without copying."""
    given = _tensors(tensors)
    shape = broadcast(*[tuple(x.shape) for x in given])
    return tuple(call("expand", x, shape) for x in given)


def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape that tensors of these shapes broadcast to."""
    return Size(broadcast(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Views along a dimension: so many of nearly equal extent, or cut before the given positions."""
    extent = input.shape[dim]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1:
            raise ArgumentError(f"a tensor is split into at least one part, not {count}")
        small, larger = divmod(extent, count)
        cuts = [i * small + min(i, larger) for i in range(1, count)]
    else:
        cuts = list(indices_or_sections)
    bounds = zip([0, *cuts], [*cuts, extent], strict=True)
    return tuple(call("slice", input, dim, start, max(stop, start) if stop >= 0 else stop, 1) for start, stop in bounds)


def _split_along(name: str, dim: int) -> None:
    def function(input: Tensor, indices_or_sections: Any) -> tuple[Any, ...]:
        along = 0 if name == "hsplit" and input.ndim == 1 else dim
        if input.ndim <= along:
            raise ArgumentError(f"{name} needs a tensor of at least {dim + 1} dimensions, got {input.ndim}")
        if isinstance(indices_or_sections, int) and input.shape[along] % indices_or_sections:
            raise ArgumentError(f"{name}: an extent of {input.shape[along]} does not divide by {indices_or_sections}")
        return tensor_split(input, indices_or_sections, along)

    function.__name__, function.__doc__ = name, f"Views along dimension {dim}: so many of equal extent, or cut there."
    offer(function)


for _name, _dim in (("vsplit", 0), ("hsplit", 1), ("dsplit", 2)):
    _split_along(_name, _dim)


def ravel(input: Tensor) -> Any:
    """All elements in one dimension; a view where that is possible."""
    return call("reshape", input, (-1,))


def fliplr(input: Tensor) -> Any:
    """The second dimension in reverse."""
    return call("flip", input, (1,))


def flipud(input: Tensor) -> Any:
    """The first dimension in reverse."""
    return call("flip", input, (0,))


def diagflat(input: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements on a diagonal."""
    return call("diag", ravel(input), offset)


def diff(input: Tensor, n: int = 1, dim: int = -1) -> Any:
    """The n-th differences of neighbours along a dimension."""
    for _ in range(n):
        extent = input.shape[dim]
        later = call("slice", input, dim, 1, None, 1)
        earlier = call("slice", input, dim, 0, extent - 1, 1)
        input = call("ne" if input.dtype is dtypes.bool_ else "sub", later, earlier)
    return input


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Each element repeated, so many times each or as often as a tensor says."""
    if repeats is None:
        return call("repeated_positions", input)
    if not isinstance(repeats, Tensor):
        return call("repeat_interleave", input, repeats, dim)
    if dim is None:
        input, dim = ravel(input), 0
    if repeats.numel() == 1 and input.shape[dim] != 1:
        repeats = call("expand", call("reshape", repeats, (1,)), (input.shape[dim],))
    return call("index_select", input, dim, call("repeated_positions", repeats))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order; with their places and counts on request."""
    found = call("unique", input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return found if return_inverse or return_counts else found[0]


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without repetitions of the one before; with their places and counts on request."""
    found = call("unique_consecutive", input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return found if return_inverse or return_counts else found[0]


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Any:
    """A copy in which ``input[..., index[i], ...]`` is ``src[i]``, or a number; added or multiplied with ``reduce``."""
    source = value if src is None else src
    if reduce is None:
        return call("scatter", input, dim, index, source)
    if reduce not in ("add", "multiply"):
        raise ArgumentError(f"reduce is 'add' or 'multiply', not {reduce!r}")
    if not isinstance(source, Tensor):
        source = call("full_like", index, source, dtype=input.dtype)
    return call("scatter_reduce", input, dim, index, source, "sum" if reduce == "add" else "prod", include_self=True)


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The vector norm of all elements or along dimensions; ``"fro"`` is the norm of order 2."""
    if p == "nuc":
        raise NotImplementedError("norm(p='nuc') is not supported by gradwire")
    return call("norm", input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)


def float_power(input: Any, exponent: Any) -> Any:
    """Powers in float64 (complex128 for complex operands)."""
    operands = [input, exponent]
    wide = dtypes.float64
    for operand in operands:
        if (isinstance(operand, Tensor) and operand.is_complex()) or isinstance(operand, complex):
            wide = dtypes.complex128
    base, power = [x.to(wide) if isinstance(x, Tensor) else x for x in operands]
    return call("pow", base, power)


def normal(mean: Any, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Normal random numbers: of tensors of means and deviations, or of a size."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        like = mean if isinstance(mean, Tensor) else std
        other = std if like is mean else mean
        shape = broadcast(tuple(like.shape), tuple(other.shape)) if isinstance(other, Tensor) else tuple(like.shape)
        return call("randn", shape, dtype=like.dtype, device=like._meta.device) * std + mean
    if size is None:
        raise ArgumentTypeError("normal of numbers needs a size")
    dtype = options.get("dtype") or current_session().default_dtype
    return call("randn", tuple(size), dtype=dtype, device=place(options.get("device"))) * std + mean


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Which elements occur among the others."""
    pool = test_elements if isinstance(test_elements, Tensor) else tensor(test_elements)
    asked = elements if isinstance(elements, Tensor) else tensor(elements)
    found = call("any", call("eq", call("unsqueeze", asked, -1), ravel(pool)), -1)
    return call("logical_not", found) if invert else found


def dist(input: Tensor, other: Tensor, p: float = 2) -> Any:
    """The norm of the difference."""
    return call("norm", call("sub", input, other), p)


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero. One round trip."""
    return bool(input)


def get_rng_state() -> Any:
    """The state of the session's random numbers, as a uint8 tensor."""
    return call("get_rng_state")


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state that :func:`get_rng_state` gave."""
    call("set_rng_state", new_state)


for _function in (
    ravel, fliplr, flipud, diagflat, diff, repeat_interleave, unique, unique_consecutive, scatter, norm, float_power,
    tensor_split, isin, dist, is_nonzero,
):  # fmt: skip
    offer(_function)
for _plain in (
    hstack, vstack, dstack, column_stack, meshgrid, broadcast_tensors, broadcast_shapes, normal, get_rng_state,
    set_rng_state,
):  # fmt: skip
    offer(_plain, method=False)
