"""``out=``: results written into tensors that the caller brings, and ``resize_``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

from gradwire_protocol.dtypes import DType, uint8
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, DeviceError, DTypeError, GraphError
from gradwire_protocol.meta import contiguous_stride, meta
from gradwire_protocol.out import Out
from gradwire_protocol.overlap import Overlap, Region, find_overlap
from gradwire_protocol.promotion import can_cast
from gradwire_protocol.shapes import channels_last_order, is_dense
from gradwire_protocol.table import TABLE

from ..context.late_signatures import show_as, with_out
from ..context.layouts import asked_order, memory_format, preserve_format, suggested_order
from ..context.modes import is_grad_enabled, no_grad
from ..graph.inplace import check_expanded
from ..tensor.memory import begins_its_memory, span, whole
from ..tensor.tensor import Tensor
from .dispatch import call


def stated(name: str) -> Out:
    """What the table says about ``out=`` of a function; one of ``linalg`` is an op of both names."""
    op = TABLE.get(name.replace(".", "_"))
    return Out.PLAIN if op is None else op.out


def into(name: str, how: Out, result: Any, out: Any, given: Iterable[Any] = ()) -> Any:
    """Write a result into ``out``, which takes its shape, and return ``out``.

    Of another shape, it takes the order of the result, from its first element on in its own memory where there is room.

    Several results go into a sequence of as many tensors.

    Args:
        how: what the function that is called ``name`` declares about it.
        given: what the result was made of.

    Raises:
        ArgumentTypeError: when ``out`` is no tensor, or not as many of them as there are results.
        GraphError: when a gradient would have to flow through the write.
        DTypeError: when the result cannot be cast to the dtype of ``out``.
        DeviceError: when ``out`` is on another device.
        ArgumentError: when ``out`` shares memory with an operand of a function that reads elsewhere than it writes.
    """
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentTypeError(f"{name}: out must be {len(result)} tensors, as many as there are results")
        given, each = list(given), name
        if f"{name}_dim" in TABLE:
            each, how = f"{name}_dim", stated(f"{name}_dim")
        written = [into(each, how, r, o, given) for r, o in zip(result, out)]
        made: Any = type(result)
        if not hasattr(made, "_fields"):
            return made(written)
        return (made._of_out() if hasattr(made, "_of_out") else made)(*written)
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{name}: out must be a tensor, not {type(out).__name__}")
    if is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise GraphError(f"{name}: out= does not record history; call it under no_grad(), or assign the result")
    if not _holds(how, out.dtype, result.dtype) and not (
        name == "abs" and out.is_complex() and any(t.dtype is out.dtype for t in tensors_among(given))
    ):
        kind = ArgumentTypeError if Out.JOINS in how else DTypeError
        raise kind(f"{name}: a {result.dtype.name} result cannot be written into out of {out.dtype.name}")
    if result._form.device != out._form.device:
        raise DeviceError(f"{name}: the result is on {result.device}, out on {out.device}")
    _check_apart(name, how, out, tuple(result.shape), given)
    if Out.COUNTED in how and out.numel() == result.numel():
        result = result.reshape(out.shape)
    elif tuple(out.shape) != tuple(result.shape):
        if out.numel() and Out.SILENT not in how:
            warnings.warn(
                f"{name}: out of shape {list(out.shape)} takes the shape {list(result.shape)} of the result; "
                "bring an empty tensor to say that this is meant",
                stacklevel=3,
            )
        if Out.APART in how:
            check_expanded(out, name)
        resize_(out, tuple(result.shape))
        described = result._known_meta()
        if (
            Out.ROW_MAJOR not in how
            and described.stride != contiguous_stride(described.shape)
            and is_dense(described.shape, described.stride)
            and out._id >= 0
        ):
            out.data = call("as_strided", out.detach(), described.shape, described.stride)
    with no_grad():
        out.copy_(result)
    return out


def _holds(how: Out, held: DType, dtype: DType) -> bool:
    """Whether a function writes results of a dtype into an ``out`` of another."""
    if held is dtype or Out.ANY in how:
        return True
    if Out.TRUTHS in how:
        return held is uint8
    return Out.EXACT not in how and can_cast(dtype, held)


def tensors_among(given: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors of arguments, those in sequences included."""
    for value in given:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_among(value)


def _check_apart(name: str, how: Out, out: Tensor, shape: tuple[int, ...], given: Iterable[Any]) -> None:
    """Check that ``out`` shares no memory with an operand in a way that PyTorch refuses.

    What it does not look at is computed: here the result is complete before it is written.

    Raises:
        ArgumentError: when it does.
    """
    if Out.OVERLAPPING in how:
        return
    form = TABLE.get(f"{name}_")
    if form is not None and form.base is None:
        form = None
    if form is None and not how & (Out.APART | Out.WHOLE):
        return
    for at, value in enumerate(given):
        if form is not None and (at >= len(form.params) or form.params[at].name in form.copied):
            continue
        apart = Out.APART in how or (form is not None and form.apart and at > 0)
        for operand in tensors_among((value,)):
            found = overlap(out, shape if Out.APART in how else None, operand)
            if found is Overlap.PARTIAL or (apart and found is Overlap.FULL):
                raise ArgumentError(
                    f"{name}: out and an operand have {found.value}: write into another tensor, or clone the operand"
                )


def overlap(out: Tensor, shape: tuple[int, ...] | None, operand: Tensor) -> Overlap:
    """What ``out``, if need be in another shape, has in common with ``operand``.

    Only views of one memory without gaps are looked at, and only for two of those the server is asked where they begin.
    """
    mine, theirs = out._known_meta(), operand._known_meta()
    if shape is not None and mine.shape != shape:
        mine = meta(shape, mine.dtype, mine.device)
    if out is operand:
        return Overlap.FULL if mine is theirs else Overlap.PARTIAL
    if out._versions is None or out._versions is not operand._versions:
        return Overlap.NONE
    if not is_dense(mine.shape, mine.stride) or not is_dense(theirs.shape, theirs.stride):
        return Overlap.UNCHECKED
    first, second = out.storage_offset(), operand.storage_offset()
    return find_overlap(Region.of(mine, first), Region.of(theirs, second))


Function = TypeVar("Function", bound=Callable[..., Any])


def accepts_out(function: Function, name: str = "", how: Out = Out.PLAIN) -> Function:
    """Let a function that makes new tensors take ``out=``; errors call it by ``name``, else by its own. ``how`` adds to
    what an op of this name declares."""
    known = name or function.__name__
    how |= stated(known)

    @wraps(function)
    def taking(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if kwargs else None
        if out is None:
            return function(*args, **kwargs)
        computed_in(known, how, out, kwargs)
        return into(known, how, function(*args, **kwargs), out, (*args, *kwargs.values()))

    show_as(taking, lambda: with_out(inspect.signature(function)))
    return taking  # type: ignore[return-value]


def computed_in(name: str, how: Out, out: Any, kwargs: dict[str, Any]) -> None:
    """Let functions that compute in the dtype of ``out`` do so.

    Raises:
        DTypeError: when another dtype is asked for.
    """
    if not how & (Out.COMPUTED | Out.MADE) or not isinstance(out, Tensor):
        return
    dtype = kwargs.get("dtype")
    if dtype is not None and dtype is not out.dtype:
        raise DTypeError(f"{name}: dtype={dtype.name} contradicts out of {out.dtype.name}")
    kwargs["dtype"] = out.dtype
    if Out.MADE in how:
        kwargs.setdefault("device", out.device)


def resize_(
    self: Tensor,
    *sizes: int | Sequence[int],
    size: Sequence[int] | None = None,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Give the tensor another shape in place; elements are kept in the order of memory, new ones are uninitialised.

    Raises:
        GraphError: for a tensor that requires grad.
        ArgumentError: for a memory format that is for another number of dimensions, or that keeps one.
    """
    if self.requires_grad:
        raise GraphError("resize_: a tensor that requires grad cannot be resized; resize its detach()")
    if size is not None:
        if sizes:
            raise ArgumentTypeError("resize_ got its size twice")
        sizes = (size,)
    new: tuple[Any, ...] = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if any(type(n) is not int for n in new):
        raise ArgumentTypeError(f"resize_: a size is a sequence of ints, got {list(new)!r:.80}")
    if any(n < 0 for n in new):
        raise ArgumentError(f"resize_: no extent can be negative, got {list(new)!r:.80}")
    if memory_format is preserve_format:
        raise ArgumentError("resize_: preserve_format keeps an order, and the shape changes")
    if memory_format is not None or new != tuple(self.shape):
        asked = {} if memory_format is None else asked_order(memory_format, len(new), bool(self._levels))
        last = "channels_last" in asked  # memory has rows of channels, which the tensor shows as dimension 1
        held = (new[0], *new[2:], new[1]) if last else new
        described = meta(held, self.dtype, self._form.device)
        if self._id < 0:
            self._form = meta(new, self.dtype, "meta", channels_last_order(new)) if last else described
        else:
            memory = self.data
            made = Tensor._make(self._session, self._tell("resized", held, results=1), described)
            begin = 0 if begins_its_memory(memory) else self.storage_offset()
            origin = whole(memory)
            if begin * self.itemsize + described.nbytes <= span(origin) * origin.itemsize:
                made._shows_part_of(memory)
                made._offset = begin
            self.data = call("permute", made, (0, len(new) - 1, *range(1, len(new) - 1))) if last else made
            self._bump("resize_")
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """:func:`resize_` to the shape of another tensor, and for ``preserve_format`` to the order that it suggests."""
    if memory_format is preserve_format:
        memory_format = suggested_order(the_template._known_meta())
    return resize_(self, tuple(the_template.shape), memory_format=memory_format)
