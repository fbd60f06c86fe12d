"""How tensors look: the text PyTorch would print, from the few elements that text depends on.

A tensor lives on a server, so its text is made in two steps. `summary_index` says, from the shape alone,
which elements will be visible; `format_tensor` turns those elements into text. A large tensor thus costs
the transfer of its corners, not of itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

SummaryIndex: TypeAlias = tuple[tuple[int, ...], ...]
"""For each dimension, the positions that are printed, in ascending order."""

SummaryFetcher: TypeAlias = Callable[[SummaryIndex | None], Array]
"""Brings the elements at an index, as an array with one axis per dimension; ``None`` asks for all of them."""


@dataclass
class PrintOptions:
    """How numbers are written and how much of a tensor is shown.

    Attributes:
        precision: digits after the point.
        threshold: tensors with more elements than this are shown by their edges only.
        edgeitems: how many items a shortened dimension shows at each end.
        linewidth: the columns a line may fill.
        sci_mode: force scientific notation on or off; ``None`` decides from the values.
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: Final[dict[str, PrintOptions]] = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_current: Final = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed.

    Args:
        precision: digits after the point.
        threshold: tensors with more elements than this are summarised.
        edgeitems: how many items a summary shows at each end of a dimension.
        linewidth: the columns a line may fill.
        profile: ``"default"``, ``"short"`` or ``"full"``, applied before the other arguments.
        sci_mode: force scientific notation on or off; ``None`` goes back to deciding from the values.
    """
    # As in PyTorch, an unknown profile changes nothing, and a call that leaves sci_mode out resets it.
    base = _PROFILES.get(profile, _current) if profile is not None else _current
    _assign(
        PrintOptions(
            precision=base.precision if precision is None else precision,
            threshold=base.threshold if threshold is None else threshold,
            edgeitems=base.edgeitems if edgeitems is None else edgeitems,
            linewidth=base.linewidth if linewidth is None else linewidth,
            sci_mode=sci_mode,
        )
    )


def get_printoptions() -> dict[str, Any]:
    """The options in force, as a dictionary that `set_printoptions` takes back as keywords."""
    return asdict(_current)


def current_options() -> PrintOptions:
    """The options in force, as a copy."""
    return replace(_current)


@contextmanager
def printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> Iterator[None]:
    """Change how tensors are printed inside a ``with`` block. Takes what `set_printoptions` takes."""
    before = replace(_current)
    set_printoptions(precision, threshold, edgeitems, linewidth, profile, sci_mode)
    try:
        yield
    finally:
        _assign(before)


def _assign(options: PrintOptions) -> None:
    for field in fields(PrintOptions):
        setattr(_current, field.name, getattr(options, field.name))


def summary_index(shape: Sequence[int], options: PrintOptions | None = None) -> SummaryIndex | None:
    """The elements that the text of a tensor of this shape depends on.

    Args:
        shape: the tensor's shape.
        options: how it will be printed; the options in force if left out.

    Returns:
        ``None`` if every element is printed, else the printed positions of each dimension: all of a short
        one, ``edgeitems`` from both ends of a long one. The elements wanted are those at their outer
        product, so ``array[numpy.ix_(*index)]`` is what `format_tensor` needs.
    """
    options = options or _current
    if math.prod(shape) <= options.threshold:
        return None
    edge = options.edgeitems
    index = tuple(
        (*range(edge), *range(size - edge, size)) if size > 2 * edge else tuple(range(size)) for size in shape
    )
    return index if _counts(index) != tuple(shape) else None


def format_parameter(tensor_text: str) -> str:
    """The text of a parameter, given the text of it as a tensor."""
    return f"Parameter containing:\n{tensor_text}"


def format_tensor(
    values: Array | SummaryFetcher | None,
    *,
    shape: Sequence[int],
    dtype: str,
    device: str = "cpu",
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    prefix: str = "tensor(",
    default_dtype: str = "float32",
    default_complex: str = "complex64",
    extra: Sequence[str] = (),
    options: PrintOptions | None = None,
) -> str:
    """The text PyTorch prints for a tensor, e.g. ``tensor([1., 2.], grad_fn=<MulBackward0>)``.

    Args:
        values: the whole tensor, or only its elements at `summary_index`, or a function that brings those.
            The function is called once with that index, and not at all if the text shows no element.
            ``None`` for a tensor on the meta device, which has none.
        shape: the shape of the whole tensor.
        dtype: its PyTorch name, e.g. ``"bfloat16"``. It decides how the elements are written.
        device: the device, with its number where it has one; it is shown unless it is ``"cpu"``.
        requires_grad: whether the tensor asks for a gradient; shown unless ``grad_fn_name`` says so already.
        grad_fn_name: the name of the node that made the tensor; ``None`` for a leaf.
        prefix: what the text begins with. Further lines are indented by its length.
        default_dtype: the floating point type that goes without saying.
        default_complex: the complex type that goes without saying.
        extra: further ``name=value`` entries for the end.
        options: how to print; the options in force if left out.

    Raises:
        ValueError: if the elements have neither the tensor's shape nor its summary's.
    """
    options = options or _current
    shape = tuple(shape)
    empty = 0 in shape
    if values is None:
        body = "..."
    else:
        body = "[]" if empty else _body(values, shape, dtype, len(prefix), options)

    entries = []
    if device != "cpu":
        entries.append(f"device='{device}'")
    # "[]" tells the size only of a vector, and with no edge items the text cannot be trusted to tell it.
    if values is None or (len(shape) != 1 if empty else options.edgeitems == 0):
        entries.append(f"size={shape}")
    # With no element to look at, the literal alone would give the default dtype and nothing else.
    implied = (default_dtype,) if empty or values is None else (default_dtype, default_complex, "int64", "bool")
    if dtype not in implied:
        entries.append(f"dtype=torch.{dtype}")
    if grad_fn_name is not None:
        entries.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        entries.append("requires_grad=True")
    return _with_entries(prefix + body, [*entries, *extra], len(prefix), options.linewidth)


def _with_entries(text: str, entries: Sequence[str], indent: int, linewidth: int) -> str:
    """Append each entry to the last line where it fits, else on a line of its own, and close the bracket."""
    # PyTorch reserves two columns after the values, and none on the lines that only hold entries.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for entry in entries:
        if column + len(", ") + len(entry) <= linewidth:
            text += ", " + entry
            column += len(", ") + len(entry)
        else:
            text += ",\n" + " " * indent + entry
            column = indent + len(entry)
    return text + ")"


def _body(
    values: Array | SummaryFetcher, shape: tuple[int, ...], dtype: str, indent: int, options: PrintOptions
) -> str:
    index = summary_index(shape, options)
    shown = _counts(index) if index is not None else shape
    if 0 in shown:
        return "[...]"
    array = values if isinstance(values, np.ndarray) else np.asarray(values(index))
    if index is not None and array.shape == shape:
        array = array[np.ix_(*index)]
    if array.shape != shown:
        raise ValueError(f"a tensor of shape {shape} prints elements of shape {shown}, got {array.shape}")

    texts, width = _texts(array, dtype, options)
    if not shape:
        return texts[0]
    gaps = [count // 2 if count < size else None for count, size in zip(shown, shape)]
    grid = np.array(texts, dtype=np.object_).reshape(shown)
    return _bracketed(grid, gaps, indent, width, options.linewidth)


def _counts(index: SummaryIndex) -> tuple[int, ...]:
    return tuple(len(positions) for positions in index)


def _bracketed(
    grid: npt.NDArray[np.object_], gaps: Sequence[int | None], indent: int, width: int, linewidth: int
) -> str:
    """Lay element texts out in nested brackets.

    Args:
        grid: the texts, in the shape they are shown in.
        gaps: for each axis, the position before which items were left out, if any were.
        indent: the column of the opening bracket.
        width: the columns an element is counted as.
        linewidth: the columns a line may fill.
    """
    gap = gaps[0]
    if grid.ndim > 1:
        items = [_bracketed(part, gaps[1:], indent + 1, width, linewidth) for part in grid]
        if gap is not None:
            items.insert(gap, "...")
        lines = items
    else:
        items = grid.tolist()
        if gap is not None:
            items.insert(gap, " ...")
        per_line = max(1, math.floor((linewidth - indent) / (width + len(", "))))
        lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
    # Parts of more than one axis stand apart by blank lines, one more for every axis.
    separator = "," + "\n" * max(1, grid.ndim - 1) + " " * (indent + 1)
    return "[" + separator.join(lines) + "]"


def _texts(array: Array, dtype: str, options: PrintOptions) -> tuple[list[str], int]:
    """Every element's text in row-major order, and the width that line wrapping counts an element as."""
    if dtype.startswith("complex"):
        reals, real_width = _real_texts(array.real, options)
        imags, imag_width = _real_texts(array.imag, options)
        pairs = zip(reals, (imag.lstrip() for imag in imags))
        texts = [f"{real}{imag}j" if imag.startswith("-") else f"{real}+{imag}j" for real, imag in pairs]
        # The j is not counted. PyTorch's lines of complex numbers are longer than linewidth for it.
        return texts, real_width + imag_width + 1
    if "float" in dtype:
        return _real_texts(array, options)
    texts = [str(value) for value in array.ravel().tolist()]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _real_texts(array: Array, options: PrintOptions) -> tuple[list[str], int]:
    # Every floating point type fits float64 exactly, so one notation serves all of them.
    with np.errstate(invalid="ignore"):  # converting a signalling NaN
        values = array.astype(np.float64).ravel()
    # Zeros and non-finite values have no say in notation and width, though they may be wider ("-0.", "-inf").
    typical = np.isfinite(values) & (values != 0)
    write = _notation(values[typical], options)
    texts = [write(value) for value in values.tolist()]
    width = max((len(text) for text, counts in zip(texts, typical) if counts), default=1)
    return [text.rjust(width) for text in texts], width


def _notation(values: npt.NDArray[np.float64], options: PrintOptions) -> Callable[[float], str]:
    """How to write the numbers of a tensor with these finite, nonzero values."""
    if values.size == 0:
        return _whole
    magnitudes = np.abs(values)
    low, high = float(magnitudes.min()), float(magnitudes.max())
    scientific = options.sci_mode
    if scientific is None:
        scientific = high / low > 1000 or high > 1e8 or low < 1e-4
    if scientific:
        return f"{{:.{options.precision}e}}".format
    if bool((values == np.ceil(values)).all()):
        return _whole
    return f"{{:.{options.precision}f}}".format


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else str(value)
