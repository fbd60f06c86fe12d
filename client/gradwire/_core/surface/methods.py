"""What makes the op table callable: functions and ``Tensor`` methods, generated; and the overloads written by hand.

An op of the table is offered as it is declared. By hand are only those names under which PyTorch has several
meanings (``max``), or arguments that are sugar for another op.
"""

from __future__ import annotations

import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from types import FunctionType
from typing import Any, Final, TypeVar

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from gradwire_protocol.meta import Meta
from gradwire_protocol.out import Out
from gradwire_protocol.table import TABLE, Op

from ..context.default_device import PLACES
from ..context.late_signatures import Annotation, called_as, show_as
from ..context.modes import MODES
from ..dispatch.dispatch import call, run
from ..dispatch.fast_path import NOT_APPLICABLE
from ..dispatch.out_argument import accepts_out, computed_in, into
from ..dispatch.overrides import PUBLIC, TRACERS, left_to_others, register_maker
from ..dispatch.signatures import Signature
from ..graph.forward_levels import OPEN
from ..graph.recorded_call import entry_of
from ..tensor.tensor import Tensor
from .argument_aliases import by_numpy_names, has_older_method, respelled
from .creation import place
from .generator import drawing_from
from .op_help import doc_of, signature_of


def recorded_again(several: Mapping[tuple[Meta, ...], Signature], args: tuple[Any, ...]) -> Any:
    """What a call with two or three tensors alone makes, by the fast path."""
    if not 1 < len(args) < 4:
        return NOT_APPLICABLE
    for x in args:
        if not isinstance(x, Tensor):
            return NOT_APPLICABLE
    session, key = args[0]._session, MODES.key
    signature = several.get(tuple([x._form for x in args]))
    if signature is None or session.lock.ready != key or OPEN:
        return NOT_APPLICABLE
    return signature.record(signature, session, key, *args)


def function_of(op: Op, method: bool = False) -> Callable[..., Any]:
    """A Python function for an op of the table. ``input`` is accepted for ``self``, as PyTorch's functions name it.

    Args:
        method: take the forms of a call that PyTorch takes of its methods only, too.
    """
    entry = entry_of(op)
    bind = op.bind_written
    singles, several = entry.singles, entry.several

    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            if len(args) == 1 and isinstance(args[0], Tensor):
                x = args[0]
                session, key = x._session, MODES.key
                if session.lock.ready == key and not OPEN:
                    signature = singles.get(x._form)
                    if signature is not None:
                        made = signature.record(signature, session, key, x)
                        if made is not NOT_APPLICABLE:
                            return made
            elif several and (made := recorded_again(several, args)) is not NOT_APPLICABLE:
                return made
        for recorded in TRACERS:
            if (made := recorded(function, args, kwargs)) is not NotImplemented:
                return made
        if kwargs:
            if "input" in kwargs and op.params and op.params[0].name == "self":
                kwargs["self"] = kwargs.pop("input")
            out = kwargs.pop("out", None)
            if out is not None:
                computed_in(op.name, op.out, out, kwargs)
                return into(op.name, op.out, function(*args, **kwargs), out, (*args, *kwargs.values()))
            if op.random and kwargs.get("generator", ...) is not ...:
                generator = kwargs.pop("generator")
                with nullcontext() if generator is None else drawing_from(generator):
                    return function(*args, **kwargs)
            if kwargs.get("device") is not None:
                kwargs["device"] = place(kwargs["device"])
        if entry.placed and "device" not in kwargs and PLACES.current is not None:
            kwargs["device"] = place(None)
        try:
            return run(entry, bind(args, kwargs))
        except (ArgumentTypeError, ArgumentError):
            made = left_to_others(function, args, kwargs)
            if made is not NotImplemented:
                return made
            again = respelled(op, args, kwargs, method)
            if again is None:
                raise
        return run(entry, bind(*again))

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = doc_of(op)
    show_as(function, lambda: signature_of(op))
    return function


register_maker(function_of)

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions and methods of ops as the table has them, by the names of the ops."""


def _install() -> None:
    for op in TABLE.values():
        if "function" in op.exposed or "method" in op.exposed:
            made = PUBLIC[op.name] = function_of(op)
            if "function" in op.exposed:
                FUNCTIONS[op.name] = made
            if "method" in op.exposed and op.name not in vars(Tensor):
                setattr(Tensor, op.name, function_of(op, method=True) if has_older_method(op) else made)


_install()


# Overloads


Offered = TypeVar("Offered", bound=FunctionType | Callable[..., Any])


def attach(name: str, value: Any) -> None:
    """Give every tensor a method or a property."""
    setattr(Tensor, name, value)


def offer(function: Offered, method: bool = True, out: Out | None = None) -> Offered:
    """Offer a hand-written function under its name, as a rule also as a method.

    Args:
        out: the function, not the method, takes ``out=``, and treats it so besides what an op of its name declares.
    """
    if "dim" in function.__code__.co_varnames[: function.__code__.co_argcount]:
        function = by_numpy_names(function)
    FUNCTIONS[function.__name__] = function if out is None else accepts_out(function, how=out)
    if method:
        attach(function.__name__, function)
    return function


def name_after(namespace: str, members: Mapping[str, Any]) -> None:
    """Name functions after the namespace that offers them, unless they are found where they were made: pickle looks
    for them by their names."""
    for name, function in members.items():
        if isinstance(function, FunctionType):
            home = sys.modules.get(function.__module__)
            if getattr(home, function.__qualname__, None) is not function:
                function.__module__, function.__qualname__ = namespace, name


def _extreme(name: str, named: Any) -> Callable[..., Any]:
    def function(
        input: Tensor, dim: Tensor | int | None = None, keepdim: bool = False, *, other: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        if isinstance(dim, Tensor) or other is not None:
            return call(named[0], input, dim if other is None else other)
        if dim is None:
            return call(name, input)
        return named[1](*call(f"{name}_dim", input, dim, keepdim))

    function.__name__ = name
    function.__doc__ = (
        f"``{name}(x)`` over all elements; ``{name}(x, dim)`` gives (values, indices) along a dimension; "
        f"``{name}(x, other)`` is elementwise {named[0]}."
    )
    return function


RETURN_TYPES: Final[dict[str, Any]] = {}
"""The classes of results with named parts, by name."""


def named_result(name: str, *fields: str) -> Any:
    """A named tuple type that prints as PyTorch's results of several tensors do."""
    from collections import namedtuple

    made: Any = namedtuple(name, fields)  # type: ignore[misc]

    def show(self: Any) -> str:
        lines = ",\n".join(f"{f}={getattr(self, f)!r}" for f in fields)
        return f"torch.return_types.{name}(\n{lines})"

    setattr(made, "__repr__", show)
    made.__module__ = "torch.return_types"  # what it says of itself when printed
    attributes: dict[str, Any] = {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
    attributes["_of_out"] = cache(lambda: named_result(f"{name}_out", *fields))  # the class of what out= gives
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    RETURN_TYPES[name] = made
    return made


def returning(result: Any) -> Callable[[Offered], Offered]:
    """Have a function show that it returns a named tuple."""

    def show(function: Any) -> Any:
        shown = inspect.signature(function).replace(return_annotation=Annotation(f"return_types.{result.__name__}"))
        function.__signature__ = shown
        return function

    return show


for _name, _other in (("max", "maximum"), ("min", "minimum")):
    offer(_extreme(_name, (_other, named_result(_name, "values", "indices"))), out=Out.PLAIN)


def _named(name: str, table_name: str, *fields: str) -> None:
    """Let an op with several results return them under PyTorch's names."""
    if table_name not in TABLE:
        return
    plain, result = function_of(TABLE[table_name]), named_result(name, *fields)

    def function(*args: Any, **kwargs: Any) -> Any:
        return result(*plain(*args, **kwargs))

    function.__name__, function.__doc__ = name, plain.__doc__
    show_as(function, lambda: inspect.signature(plain).replace(return_annotation=Annotation(f"return_types.{name}")))
    offer(function)


for _name in ("sort", "topk", "cummax", "cummin", "mode", "kthvalue"):
    _named(_name, _name, "values", "indices")
_named("aminmax", "aminmax", "min", "max")
_named("frexp", "frexp", "mantissa", "exponent")


def _with_dim(name: str) -> None:
    everything = function_of(TABLE[name])
    along, result = function_of(TABLE[f"{name}_dim"]), named_result(name, "values", "indices")

    def function(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        return everything(input) if dim is None else result(*along(input, dim, keepdim))

    function.__name__, function.__doc__ = name, everything.__doc__
    offer(function, out=Out.PLAIN)


for _name in ("median", "nanmedian"):
    _with_dim(_name)


def _spread_form(
    input: Tensor, dim: int | Sequence[int] | bool | None = None, unbiased: bool = True, keepdim: bool = False, *,
    correction: float | None = 1, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    raise NotImplementedError


def _spread_and_mean_form(
    input: Tensor, dim: int | Sequence[int] | bool | None = None, unbiased: bool = True, keepdim: bool = False, *,
    correction: float | None = 1, out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    raise NotImplementedError


def _spread(name: str) -> None:
    plain = function_of(TABLE[name])

    @called_as(_spread_form if TABLE[name].results == 1 else _spread_and_mean_form)
    def function(input: Tensor, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
        names = (
            ("unbiased", "keepdim")
            if (args and isinstance(args[0], bool)) or isinstance(dim, bool)
            else ("correction", "keepdim")
        )
        if isinstance(dim, bool):
            args, dim = (dim, *args), None
        kwargs.update(zip(names, args, strict=False))
        if "unbiased" in kwargs:
            kwargs["correction"] = int(kwargs.pop("unbiased"))
        if kwargs.get("correction", 0) is None:
            kwargs["correction"] = 1
        return plain(input, dim, **kwargs)

    function.__name__, function.__doc__ = name, plain.__doc__
    offer(function)


for _name in ("var", "std", "var_mean", "std_mean"):
    _spread(_name)


def where(condition: Any, input: Any = None, other: Any = None) -> Tensor | tuple[Tensor, ...]:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere. With the condition alone, the indices
    of its true elements, one tensor per dimension."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if isinstance(condition, Tensor) and condition.dtype is dtypes.uint8:
        warnings.warn("where: a uint8 condition is taken as a mask: convert it with bool()", stacklevel=2)
    return call("where", condition, input, other)


offer(where, out=Out.PLAIN)


def _where(self: Tensor, condition: Tensor, other: Tensor | complex) -> Tensor:
    """Elements of the tensor where ``condition`` holds, of ``other`` elsewhere."""
    found: Any = where(condition, self, other)
    return found


attach("where", _where)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The indices of elements that are not zero: one row each, or one tensor per dimension with ``as_tuple``, where a
    0-dim tensor counts as one of one element."""
    if not as_tuple:
        return call("nonzero", input)
    lined = call("unsqueeze", input, 0) if isinstance(input, Tensor) and not input.ndim else input
    return tuple(call("unbind", call("nonzero", lined), 1))


offer(nonzero, out=Out.PLAIN)


@offer
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | complex) -> Tensor:
    """A copy with ``value`` where the mask is true."""
    return call("masked_fill", input, mask, value)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _spelled(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """An equation and its operands, from operands each followed by the numbers of its dimensions."""
    if len(given) < 2:
        raise ArgumentValueError("einsum takes an equation and tensors, or tensors each followed by a list of numbers")

    def letters(numbers: Any) -> str:
        if not isinstance(numbers, (list, tuple)):
            raise ArgumentTypeError(f"einsum: each tensor is followed by a list of numbers, not by {numbers!r}")
        for number in numbers:
            if number is not Ellipsis and not 0 <= operator.index(number) < len(_LETTERS):
                raise ArgumentValueError(f"einsum: dimensions are numbered from 0 to {len(_LETTERS) - 1}, not {number}")
        return "".join("..." if n is Ellipsis else _LETTERS[int(n)] for n in numbers)

    terms = ",".join(letters(numbers) for numbers in given[1::2][: len(given) // 2])
    arrow = "->" + letters(given[-1]) if len(given) % 2 else ""
    return terms + arrow, given[: len(given) // 2 * 2 : 2]


@offer
def einsum(equation: str | Tensor, *operands: Any) -> Tensor:
    """Products of tensors summed over repeated letters: ``einsum("ij,jk->ik", a, b)``; or over repeated numbers from 0
    to 51, ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    if isinstance(equation, Tensor):
        equation, operands = _spelled((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return call("einsum", equation, list(operands))


@offer
def repeat(input: Tensor, *sizes: int | Sequence[int], repeats: Sequence[int] = ()) -> Tensor:
    """The tensor repeated along each dimension."""
    sizes = sizes or tuple(repeats)
    return call("repeat", input, tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)


@offer
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of another tensor, without copying."""
    return call("expand", input, tuple(other.shape))


_viewed = function_of(TABLE["view"])


def _view_form(self: Tensor, *size: int | Sequence[int] | DType, dtype: DType | None = None) -> Tensor:
    raise NotImplementedError


@called_as(_view_form)
def view(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """The same elements under another shape, or with a dtype, the same memory read as that dtype."""
    if size and type(size[0]) is type:
        size = (OF_PYTHON_TYPES.get(size[0], size[0]),)
    if size and type(size[0]) is DType:
        return call("view_dtype", self, size[0])
    if "dtype" in named:
        return call("view_dtype", self, named["dtype"])
    return _viewed(self, *size, **named)


attach("view", view)


@offer
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Viewed with the shape of another tensor."""
    return call("view", input, tuple(other.shape))


@offer
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshaped to the shape of another tensor."""
    return call("reshape", input, tuple(other.shape))


@offer
def numel(input: Tensor) -> int:
    """The number of elements."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"numel counts the elements of a tensor, not of {type(input).__name__}")
    return input._known_meta().numel


@offer
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close. One round trip."""
    return bool(call("isclose", input, other, rtol, atol, equal_nan).all().item())


@offer
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal. One round trip, none where shapes differ."""
    for given in (input, other):
        if not isinstance(given, Tensor):
            raise ArgumentTypeError(f"equal compares two tensors, not {type(given).__name__}")
    if tuple(input.shape) != tuple(other.shape):
        return False
    return bool(call("all", call("eq", input, other)).item())


@property  # type: ignore[misc]
def _transposed(self: Tensor) -> Tensor:
    return call("permute", self, tuple(range(self.ndim - 1, -1, -1)))


@property  # type: ignore[misc]
def _matrix_transposed(self: Tensor) -> Tensor:
    if not self.ndim:
        return self
    return call("transpose", _matrix("mT", self), -2, -1)


def _matrix(name: str, self: Tensor) -> Tensor:
    """The tensor itself, a matrix or a batch of them.

    Raises:
        ShapeError: for fewer than two dimensions.
    """
    if self.ndim < 2:
        raise ShapeError(f"{name} takes a matrix or a batch of them, not a tensor of shape {list(self.shape)}")
    return self


@offer
def conj(input: Tensor) -> Tensor:
    """The complex conjugates, in memory of their own; a real tensor itself."""
    return call("conj", input) if input.is_complex() else input


def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugates, in memory of their own; a real tensor itself."""
    return call("conj_physical", input) if input.is_complex() else input


offer(conj_physical, out=Out.PLAIN)


@offer
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed at once, none is left pending."""
    return input


@offer
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negations are computed at once, none is left pending."""
    return input


@offer
def is_conj(input: Tensor) -> bool:
    """False: conjugates are computed at once, none is left pending."""
    return False


@offer
def is_neg(input: Tensor) -> bool:
    """False: negations are computed at once, none is left pending."""
    return False


@offer
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions.

    Raises:
        ShapeError: for fewer than two dimensions.
    """
    return conj(call("transpose", _matrix("adjoint", input), -2, -1))


def real(input: Tensor) -> Tensor:
    """The real parts, as a view; a real tensor itself."""
    return call("select", call("view_as_real", input), -1, 0) if input.is_complex() else input


def imag(input: Tensor) -> Tensor:
    """The imaginary parts of a complex tensor, as a view.

    Raises:
        DTypeError: for a real tensor.
    """
    if not input.is_complex():
        raise DTypeError(f"imag is not defined for {input.dtype.name} tensors, only for complex ones")
    return call("select", call("view_as_real", input), -1, 1)


offer(real, method=False)
offer(imag, method=False)


@property  # type: ignore[misc]
def _adjoint(self: Tensor) -> Tensor:
    if self.ndim not in (0, 2):
        raise ShapeError(f"H is defined for matrices, not for a tensor of shape {list(self.shape)}: see mH")
    return conj(call("transpose", self, 0, 1) if self.ndim == 2 else self)


def _matrix_adjoint(self: Tensor) -> Tensor:
    return conj(self.mT)


attach("T", _transposed)
attach("mT", _matrix_transposed)
attach("H", _adjoint)
attach("mH", property(_matrix_adjoint))


def _set_real(self: Tensor, value: Tensor) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Tensor) -> None:
    imag(self).copy_(value)


attach("real", property(real, _set_real))
attach("imag", property(imag, _set_imag))
