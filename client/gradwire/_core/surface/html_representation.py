"""A tensor as a notebook shows it: its facts, its values, and a summary that the server computes.

One round trip brings the elements that are shown, the counts and moments of the finite elements, a histogram, and a
small image of a matrix. Of a large tensor a regular sample is summarised, so that neither work nor memory grow with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np

from gradwire_protocol.dtypes import INTEGRAL, float64, int64
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.quantities import counted, spell_bytes, spell_number

from ..context import html
from ..context.call_sites import count_notebook_as_inside, running_ipython, spell_line, user_line
from ..context.modes import no_grad
from ..dispatch.dispatch import call
from ..dispatch.overrides import within, without_classes
from ..graph.forward_levels import OPEN
from ..graph.vmap_levels import OutsideMaps
from ..tensor import pictures, printing
from ..tensor.tensor import Tensor
from .representation import FORMS, elements, node_label, read_and_name, written

SAMPLE: Final = 1 << 20
"""Elements that a summary looks at, at most."""
MOST_SHOWN: Final = 10_000
"""Elements whose values are shown, at most, whatever the print options say."""
LEAST_DRAWN: Final = 10
"""A histogram or an image of fewer elements says less than they do."""
_HTML, _TEXT = "text/html", "text/plain"


def bundle(tensor: Tensor, include: Collection[str] | None = None, exclude: Collection[str] | None = None) -> Any:
    """A tensor's representations by MIME type: HTML and text, or those of them that are asked for.

    Empty where the caller should ask for ``repr()``: in a terminal, and where the tensor cannot be read, whose error
    ``repr()`` raises.

    Raises:
        GradwireError: one of an earlier operation that this read has met.
    """
    wanted = [kind for kind in (_HTML, _TEXT) if (not include or kind in include) and kind not in (exclude or ())]
    if _HTML not in wanted or not _shows_html():
        return {}
    count_notebook_as_inside()
    line = spell_line(user_line())
    try:
        shown = _shown(tensor)
    except GradwireError as error:
        try:
            text = repr(tensor)
        except GradwireError as again:
            if str(again) == str(error):
                return {}
            raise error from None
        if error.details.get("line") == line:  # of the summary itself, which may exceed a limit
            return {_TEXT: text}
        raise
    return {kind: shown[kind] for kind in wanted if kind in shown}


def _shows_html() -> bool:
    """Whether IPython, where it runs, shows HTML: it asks for it in a terminal as well."""
    running = running_ipython()
    return running is None or _HTML in running.display_formatter.active_types


def _shown(tensor: Tensor) -> dict[str, str]:
    form = FORMS.get(type(tensor).__repr__)
    if form is None:
        return {}
    if tensor._levels or OPEN:
        text = repr(tensor)
        return {_HTML: html.card(_title(tensor), _facts(tensor), html.preformatted(text)), _TEXT: text}
    described = tensor._known_meta()
    options = _options(described.shape)
    summary = _summarised(tensor, options)
    if options is None:
        text = f"tensor(..., size={tuple(described.shape)}, dtype=torch.{described.dtype.name})"
    else:
        text = written(tensor, summary.values, options)
    pieces = []
    if options is not None and summary.values is not None and described.numel:
        body = printing.format_tensor(
            summary.values, shape=described.shape, dtype=described.dtype.name, prefix="", options=options,
            default_dtype=described.dtype.name, default_complex=described.dtype.name,
        )  # fmt: skip
        pieces.append(html.preformatted(body.removesuffix(")")))
    pieces += summary.pictures()
    about = [html.row(*pieces)] if pieces else []
    words = summary.words()
    if words:
        about.append(f'<div class="gradwire-words">{" · ".join(words)}</div>')
    return {_HTML: html.card(_title(tensor), _facts(tensor), *about), _TEXT: form(text)}


def _title(tensor: Tensor) -> str:
    return type(tensor).__name__


def _facts(tensor: Tensor) -> list[str]:
    described = tensor._form
    facts = [
        html.code(f"[{', '.join(map(str, described.shape))}]") if described.known else "shape depends on data",
        html.text(described.dtype.name), html.text(described.device),
    ]  # fmt: skip
    if described.known:
        facts.append(html.text(spell_bytes(described.nbytes)))
    label = node_label(tensor)
    if label is not None:
        facts.append(f"grad_fn {html.code(label)}")
    elif tensor.requires_grad:
        facts.append("requires grad")
    if tensor._levels:
        facts.append(f"mapped by {counted(len(tensor._levels), 'vmap')}")
    return facts


def _options(shape: tuple[int, ...]) -> printing.PrintOptions | None:
    """The print options in force, with fewer elements shown where they are too many; ``None`` where a shape of many
    dimensions shows too many in any case."""
    options = printing.current_options()
    for edge in (options.edgeitems, 3, 1):
        found = replace(options, edgeitems=min(edge, options.edgeitems))
        if edge != options.edgeitems:
            found.threshold = min(options.threshold, 1000)
        index = printing.summary_index(shape, found)
        if prod(shape if index is None else map(len, index)) <= MOST_SHOWN:
            return found
    return None


@contextmanager
def _as_they_are() -> Iterator[None]:
    """Ops are recorded without history, and left to no class or mode of the program's."""
    with no_grad(), without_classes(), within(()), OutsideMaps():
        yield


@dataclass
class Summary:
    """What is known of a tensor's values.

    Attributes:
        values: those that are shown.
        step: every so many elements, along the dimensions, were looked at.
        total: how many elements were looked at.
        moments: the counts and moments of :data:`MOMENTS`, by name.
        counts: the histogram of the finite ones.
        exact: the least and the greatest, as integers.
        picture: the matrix made small.
    """

    values: np.ndarray[Any, Any] | None
    kind: str
    shape: tuple[int, ...]
    step: int = 1
    total: int = 0
    moments: dict[str, float] | None = None
    counts: list[int] | None = None
    exact: tuple[int, int] | None = None
    picture: np.ndarray[Any, Any] | None = None

    def pictures(self) -> list[str]:
        """The histogram and the image, as HTML."""
        found: list[str] = []
        if self.moments is None or not self.moments["finite"]:
            return found
        low, high = self.moments["min"], self.moments["max"]
        if self.picture is not None:
            found.append(pictures.image(self.picture, self.shape))
        if self.counts is not None and low < high:
            found.append(pictures.histogram(self.counts, low, high))
        return found

    def words(self) -> list[str]:
        """Counts and moments, as HTML."""
        found = self.moments
        if found is None:
            return []
        words = []
        finite, total = int(found["finite"]), self.total
        if self.kind == "bool":
            true = total - int(found["zeros"])
            words.append(f"{html.text(counted(true, 'element is', 'elements are'))} True ({100 * true / total:.3g} %)")
        elif finite:
            low, high = self.exact or (found["min"], found["max"])
            numbers = {"min": low, "max": high, "mean": found["mean"]}
            if finite > 1:
                numbers["std"] = found["std"]
            of = "|x| " if self.kind.startswith("complex") else ""
            words += [
                f"{html.faint(of + name)} {html.text(n if type(n) is int else spell_number(n))}"
                for name, n in numbers.items()
            ]
            if found["zeros"]:
                words.append(f"{html.faint('zeros')} {int(found['zeros']):,}")
        for name, shown in (("nan", "NaN"), ("infinite", "infinite")):
            if found[name]:
                words.append(html.alarm(f"{int(found[name]):,} {shown}"))
        if self.step > 1:
            words.append(html.faint(f"of a sample of {total:,} elements"))
        return words


MOMENTS: Final = ("finite", "nan", "infinite", "zeros", "min", "max", "mean", "std")


def _summarised(tensor: Tensor, options: printing.PrintOptions | None) -> Summary:
    """Read what is shown of a tensor, and its summary, in one round trip."""
    described = tensor._form
    kind, shape = described.dtype.name, tuple(described.shape)
    index = None if options is None else printing.summary_index(shape, options)
    if tensor.is_meta or described.numel < 2:
        return Summary(elements(tensor, index)[0], kind, shape)
    with _as_they_are():
        sample, step = _sample(tensor)
        total = prod(sample.shape)
        numbers = _real(sample)
        vector, counts = _moments(numbers)
        parts = [vector, counts]
        # A dtype for storage is converted, and has none of the other ops.
        integers = described.dtype.category == INTEGRAL and not described.dtype.for_storage
        if integers:
            parts += [call("amin", sample), call("amax", sample)]
        drawn = total >= LEAST_DRAWN
        if drawn and len(shape) == 2 and min(shape) > 1:
            parts.append(_shrunk(numbers, vector))
        read: list[Any] = [None, *read_and_name(tensor, parts)] if options is None else elements(tensor, index, *parts)
    values, moments, found, *rest = read
    summary = Summary(values, kind, shape, step, total)
    summary.moments = dict(zip(MOMENTS, moments.tolist()))
    if drawn and kind != "bool":
        summary.counts = found.tolist()[: pictures.BARS]
    if integers:
        summary.exact = int(rest[0]), int(rest[1])
    if len(rest) > 2 * integers:
        summary.picture = rest[-1]
    return summary


def _sample(tensor: Tensor) -> tuple[Any, int]:
    """A view of elements at equal distances, few enough to be looked at; and how many each of them stands for."""
    found: Any = call("detach", tensor)
    step = 1
    while prod(found.shape) > SAMPLE:
        longest = max(range(len(found.shape)), key=lambda dim: found.shape[dim])
        found = call("slice", found, longest, None, None, 2)
        step *= 2
    return found, step


def _real(sample: Any) -> Any:
    """The elements as 64-bit floats: the magnitudes of complex ones."""
    if sample.dtype.is_complex:
        sample = call("abs", sample)
    return call("to", sample, dtype=float64)


def _moments(x: Any) -> tuple[Any, Any]:
    """The values of :data:`MOMENTS`, and the histogram from the least finite element to the greatest."""
    finite = call("isfinite", x)
    nan = call("isnan", x)
    count = call("sum", finite)
    low = call("amin", call("where", finite, x, float("inf")))
    high = call("amax", call("where", finite, x, float("-inf")))
    mean = call("div", call("sum", call("where", finite, x, 0.0)), count)
    apart = call("where", finite, call("sub", x, mean), 0.0)
    squares = call("sum", call("mul", apart, apart))
    std = call("sqrt", call("div", squares, call("sub", count, 1)))
    nans = call("sum", nan)
    infinite = call("sub", call("sum", call("logical_not", finite)), nans)
    zeros = call("sum", call("eq", x, 0))
    numbers = [call("to", each, dtype=float64) for each in (count, nans, infinite, zeros, low, high, mean, std)]
    # Halved, since the difference of two large numbers may be infinite.
    base = call("div", low, 2)
    part = call("div", call("sub", call("div", x, 2), base), call("sub", call("div", high, 2), base))
    place = call("clamp", call("mul", part, pictures.BARS), 0, pictures.BARS - 1)
    usable = call("logical_and", finite, call("isfinite", place))
    bars = call("to", call("where", usable, place, float(pictures.BARS)), dtype=int64)
    counts = call("bincount", call("reshape", bars, (-1,)), None, pictures.BARS + 1)
    return call("stack", numbers), counts


def _shrunk(matrix: Any, moments: Any) -> Any:
    """A matrix of as many pixels as an image has, each the mean of the elements that it stands for, or NaN where one of
    them is. Infinite ones count as the least and the greatest of the others."""
    low, high = (call("select", moments, 0, MOMENTS.index(name)) for name in ("min", "max"))
    matrix = call("clamp", matrix, low, high)
    size = min(matrix.shape[0], pictures.ROWS), min(matrix.shape[1], pictures.COLUMNS)
    if size == tuple(matrix.shape):
        return matrix
    # Means are differences of running sums, where a NaN would spread to all that follow.
    nan = call("isnan", matrix)
    means, nans = _means(call("where", nan, 0.0, matrix), size), _means(call("to", nan, dtype=float64), size)
    return call("where", call("gt", nans, 0), float("nan"), means)


def _means(matrix: Any, size: tuple[int, int]) -> Any:
    full = call("unsqueeze", call("unsqueeze", matrix, 0), 0)
    return call("reshape", call("adaptive_avg_pool2d", full, size), size)
