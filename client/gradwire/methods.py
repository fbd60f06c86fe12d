"""What makes the op table callable: functions and ``Tensor`` methods, generated; and the overloads written by hand.

An op of the table is offered as it is declared. By hand are only those names under which PyTorch has several
meanings (``max``), or arguments that are sugar for another op.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import FunctionType
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from gradwire_protocol.table import TABLE, Op

from .creation import empty as make_empty
from .creation import full, place, tensor
from .creation import ones as make_ones
from .creation import zeros as make_zeros
from .dispatch import call, entry_of, run
from .duals import OPEN
from .forms import Short, key_of, known
from .generator import drawing_from
from .layouts import check_order
from .mapping import with_samples_of
from .modes import MODES
from .outputs import computed_in, into
from .places import PLACES
from .short_way import LONG, one
from .spellings import by_numpy_names, has_older_method, respelled
from .tensor import LATER, Tensor
from .to_arguments import to_arguments

SINGLES_KEPT: Final = 4096
"""Metas of tensors that a function of one tensor remembers."""


def _placed(op: Op) -> bool:
    """Whether an op makes a tensor that the default device decides about."""
    return any(p.name == "device" and p.default == "cpu" for p in op.params)


def function_of(op: Op, method: bool = False) -> Callable[..., Any]:
    """A Python function for an op of the table. ``input`` is accepted for ``self``, as PyTorch's functions name it.

    Args:
        method: take the forms of a call that PyTorch takes of its methods only, too.
    """
    entry = entry_of(op)
    bind = op.bind_written
    singles: dict[Any, Any] = {}

    def single(x: Tensor) -> Short | None:
        """What is known of a call with this tensor alone, from now on at once; ``None`` where that does not do."""
        short = known(key_of(entry, bind((x,), {}))) if len(op.params) >= 1 >= op.required else None
        if short is None or not short.single or _placed(op):
            return None
        if len(singles) >= SINGLES_KEPT:
            singles.clear()
        singles[x._meta] = short
        return short

    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            if len(args) == 1 and isinstance(args[0], Tensor):
                x = args[0]
                session, key = x._session, MODES.key
                if session.lock.ready == key and not OPEN:
                    short = singles.get(x._meta) or single(x)
                    if short is not None and (made := one(short, session, x, key)) is not LONG:
                        return made
        else:
            if "input" in kwargs and op.params and op.params[0].name == "self":
                kwargs["self"] = kwargs.pop("input")
            out = kwargs.pop("out", None)
            if out is not None:
                computed_in(op.name, out, kwargs)
                return into(op.name, function(*args, **kwargs), out, (*args, *kwargs.values()))
            if op.random and kwargs.get("generator", ...) is not ...:
                generator = kwargs.pop("generator")
                with nullcontext() if generator is None else drawing_from(generator):
                    return function(*args, **kwargs)
            if kwargs.get("device") is not None:
                kwargs["device"] = place(kwargs["device"])
        if PLACES.current is not None and "device" not in kwargs and _placed(op):
            kwargs["device"] = place(None)
        try:
            return run(entry, bind(args, kwargs))
        except (ArgumentTypeError, ArgumentError):
            made = LATER["left_to_others"](function, args, kwargs)
            if made is not NotImplemented:
                return made
            again = respelled(op, args, kwargs, method)
            if again is None:
                raise
        return run(entry, bind(*again))

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.rule.__doc__
    return function


FUNCTIONS: dict[str, Callable[..., Any]] = {}
GENERATED: dict[str, Callable[..., Any]] = {}
"""The functions and methods of ops as the table has them, by the names of the ops."""


PLAIN_IN_PLACE = {
    "abs", "acos", "acosh", "addmv", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin",
    "asinh", "atan", "atanh", "ceil", "celu", "clamp", "clamp_max", "clamp_min", "clip", "conj_physical", "cos",
    "cosh", "deg2rad", "detach", "erf", "erfc", "exp", "exp2", "expm1", "fix", "floor", "frac", "gcd", "i0",
    "index_put", "lcm", "ldexp", "log", "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "negative",
    "rad2deg", "reciprocal", "relu", "round", "rsqrt", "selu", "sigmoid", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "threshold", "trunc", "xlogy",
}  # fmt: skip
"""Ops whose in-place forms PyTorch offers as functions, too."""


def _install() -> None:
    for op in TABLE.values():
        if "function" in op.exposed or "method" in op.exposed:
            made = GENERATED[op.name] = function_of(op)
            if "function" in op.exposed or (op.base is not None and op.base.name in PLAIN_IN_PLACE):
                FUNCTIONS[op.name] = made
            if "method" in op.exposed and op.name not in vars(Tensor):
                setattr(Tensor, op.name, function_of(op, method=True) if has_older_method(op) else made)


_install()


# Overloads


def attach(name: str, value: Any) -> None:
    """Give every tensor a method or a property."""
    setattr(Tensor, name, value)


def offer(function: Callable[..., Any], method: bool = True) -> Callable[..., Any]:
    """Offer a hand-written function under its name, as a rule also as a method."""
    if "dim" in function.__code__.co_varnames[: function.__code__.co_argcount]:
        function = by_numpy_names(function)
    FUNCTIONS[function.__name__] = function
    if method:
        setattr(Tensor, function.__name__, function)
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
    def function(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
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
    RETURN_TYPES[name] = made
    return made


for _name, _other in (("max", "maximum"), ("min", "minimum")):
    offer(_extreme(_name, (_other, named_result(_name, "values", "indices"))))


def _named(name: str, table_name: str, *fields: str) -> None:
    """Let an op with several results return them under PyTorch's names."""
    if table_name not in TABLE:
        return
    plain, result = function_of(TABLE[table_name]), named_result(name, *fields)

    def function(*args: Any, **kwargs: Any) -> Any:
        return result(*plain(*args, **kwargs))

    function.__name__, function.__doc__ = name, plain.__doc__
    offer(function)


for _name in ("sort", "topk", "cummax", "cummin", "mode", "kthvalue"):
    _named(_name, _name, "values", "indices")
_named("aminmax", "aminmax", "min", "max")
_named("frexp", "frexp", "mantissa", "exponent")


def _with_dim(name: str) -> None:
    everything = function_of(TABLE[name])
    along, result = function_of(TABLE[f"{name}_dim"]), named_result(name, "values", "indices")

    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return everything(input) if dim is None else result(*along(input, dim, keepdim))

    function.__name__, function.__doc__ = name, everything.__doc__
    offer(function)


for _name in ("median", "nanmedian"):
    _with_dim(_name)


def _spread(name: str) -> None:
    plain = function_of(TABLE[name])

    def function(input: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
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


@offer
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere. With the condition alone, the indices
    of its true elements, one tensor per dimension."""
    if input is None and other is None:
        return tuple(call("unbind", call("nonzero", condition), 1))
    if isinstance(condition, Tensor) and condition.dtype is dtypes.uint8:
        warnings.warn("where: a uint8 condition is taken as a mask: convert it with bool()", stacklevel=2)
    return call("where", condition, input, other)


setattr(Tensor, "where", lambda self, condition, other: where(condition, self, other))


@offer
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The indices of elements that are not zero: one row each, or one tensor per dimension with ``as_tuple``."""
    found = call("nonzero", input)
    return tuple(call("unbind", found, 1)) if as_tuple else found


@offer
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
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
def einsum(equation: Any, *operands: Any) -> Any:
    """Products of tensors summed over repeated letters: ``einsum("ij,jk->ik", a, b)``; or over repeated numbers from 0
    to 51, ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    if isinstance(equation, Tensor):
        equation, operands = _spelled((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return call("einsum", equation, list(operands))


@offer
def repeat(input: Any, *sizes: Any, repeats: Any = ()) -> Any:
    """The tensor repeated along each dimension."""
    sizes = sizes or tuple(repeats)
    return call("repeat", input, tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)


@offer
def expand_as(input: Any, other: Tensor) -> Any:
    """Expanded to the shape of another tensor, without copying."""
    return call("expand", input, tuple(other.shape))


_viewed = function_of(TABLE["view"])


def view(self: Tensor, *size: Any, **named: Any) -> Any:
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
def view_as(input: Any, other: Tensor) -> Any:
    """Viewed with the shape of another tensor."""
    return call("view", input, tuple(other.shape))


@offer
def reshape_as(input: Any, other: Tensor) -> Any:
    """Reshaped to the shape of another tensor."""
    return call("reshape", input, tuple(other.shape))


@offer
def numel(input: Tensor) -> int:
    """The number of elements."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"numel counts the elements of a tensor, not of {type(input).__name__}")
    return input._known_meta().numel


@offer
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
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


# Conversions


def to(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """In another dtype, on another device, or like another tensor; itself where nothing changes."""
    device, dtype, copy = to_arguments("to()", args, kwargs)
    if "memory_format" in kwargs:
        check_order(kwargs["memory_format"], self.ndim)
    where = None if device is None else place(device)
    if (dtype is None or dtype is self.dtype) and (where is None or where == self._meta.device) and not copy:
        return self
    return call("to", self, dtype, where, bool(copy))


setattr(Tensor, "to", to)

_CASTS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}  # fmt: skip


def _cast(name: str, dtype: DType) -> None:
    def method(self: Tensor, memory_format: Any = None) -> Any:
        return to(self, dtype)

    method.__name__, method.__doc__ = name, f"In dtype {dtype.name}."
    setattr(Tensor, name, method)


for _name, _dtype in _CASTS.items():
    _cast(_name, _dtype)


def _method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def attach(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(Tensor, name, function)
        return function

    return attach


@_method("contiguous")
def _contiguous(self: Tensor, memory_format: Any = None) -> Any:
    """Itself if it lies in row-major order, else a copy that does."""
    check_order(memory_format, self.ndim)
    return self if self.is_contiguous() else call("contiguous", self)


@_method("cpu")
def _cpu(self: Tensor) -> Any:
    """On the server's CPU."""
    return to(self, device="cpu")


@_method("cuda")
def _cuda(self: Tensor, device: Any = None) -> Any:
    """On a GPU of the server."""
    return to(self, device="cuda" if device is None else device)


@_method("type_as")
def _type_as(self: Tensor, other: Tensor) -> Any:
    """In the dtype of another tensor."""
    return to(self, other.dtype)


def _new(name: str, make: Callable[..., Any]) -> None:
    def method(self: Tensor, *size: Any, **options: Any) -> Any:
        options.setdefault("dtype", self.dtype)
        options.setdefault("device", self.device)
        made = make(*size, **options)
        if type(self) is not Tensor:
            made = LATER["like"](made, self)
        return with_samples_of(made, self) if self._levels else made

    method.__name__, method.__doc__ = name, f"Like gradwire.{name[4:]}, with this tensor's dtype and device."
    setattr(Tensor, name, method)


for _name, _maker in (
    ("new_zeros", make_zeros),
    ("new_ones", make_ones),
    ("new_empty", make_empty),
    ("new_full", full),
    ("new_tensor", tensor),
):
    _new(_name, _maker)


@property  # type: ignore[misc]
def _transposed(self: Tensor) -> Any:
    return call("permute", self, tuple(range(self.ndim - 1, -1, -1)))


@property  # type: ignore[misc]
def _matrix_transposed(self: Tensor) -> Any:
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
def conj(input: Tensor) -> Any:
    """The complex conjugates, in memory of their own; a real tensor itself."""
    return call("conj", input) if input.is_complex() else input


@offer
def conj_physical(input: Tensor) -> Any:
    """The complex conjugates, in memory of their own; a real tensor itself."""
    return call("conj_physical", input) if input.is_complex() else input


@offer
def resolve_conj(input: Tensor) -> Any:
    """The tensor itself: conjugates are computed at once, none is left pending."""
    return input


@offer
def resolve_neg(input: Tensor) -> Any:
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
def adjoint(input: Tensor) -> Any:
    """The conjugate transpose of the last two dimensions.

    Raises:
        ShapeError: for fewer than two dimensions.
    """
    return conj(call("transpose", _matrix("adjoint", input), -2, -1))


def real(input: Tensor) -> Any:
    """The real parts, as a view; a real tensor itself."""
    return call("select", call("view_as_real", input), -1, 0) if input.is_complex() else input


def imag(input: Tensor) -> Any:
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
def _adjoint(self: Tensor) -> Any:
    if self.ndim not in (0, 2):
        raise ShapeError(f"H is defined for matrices, not for a tensor of shape {list(self.shape)}: see mH")
    return conj(call("transpose", self, 0, 1) if self.ndim == 2 else self)


setattr(Tensor, "T", _transposed)
setattr(Tensor, "mT", _matrix_transposed)
setattr(Tensor, "H", _adjoint)
setattr(Tensor, "mH", property(lambda self: conj(self.mT)))


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


setattr(Tensor, "real", property(real, _set_real))
setattr(Tensor, "imag", property(imag, _set_imag))
