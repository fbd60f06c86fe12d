"""Encoding of bound arguments as an op record, and decoding of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import dtypes
from .dtypes import DType
from .errors import ArgumentTypeError, ArgumentValueError, GradwireError, MalformedFrame, NumberTooLarge
from .promotion import ScalarKind, fits
from .table import TABLE, Kind, Op, Param, attribute_matches

PAYLOAD = "payload"
SPECIAL = ("NaN", "Infinity", "-Infinity")
"""Numbers that JSON spells as text."""
# Module globals, because an Enum attribute lookup costs more than the comparison.
_TENSOR, _TENSORS, _OPTIONAL_TENSORS = Kind.TENSOR, Kind.TENSORS, Kind.OPTIONAL_TENSORS
_OPERAND, _SCALAR, _POSITION, _ATTRIBUTE = Kind.OPERAND, Kind.SCALAR, Kind.POSITION, Kind.ATTRIBUTE
_PAYLOAD, _KINDS = Kind.PAYLOAD, frozenset(kind.value for kind in ScalarKind)


def encode_args(
    op: Op,
    values: list[Any],
    is_tensor: Callable[[Any], bool],
    ref: Callable[[Any], int],
    scalars: list[Any],
    payloads: list[Any],
) -> list[Any]:
    """The arguments of a record. Appends numbers and payloads to their tables.

    ``ref`` converts a tensor to a reference; ``is_tensor`` recognises one.

    Raises:
        ArgumentTypeError: for a value whose type the parameter does not accept.
    """
    args: list[Any] = []
    last, numbers = 0, len(scalars)
    for param, value in zip(op.params, values, strict=True):
        kind = param.kind
        if value is None and param.optional:
            args.append(None)
        elif kind is _TENSOR or kind is _OPERAND:
            if is_tensor(value):
                args.append(ref(value))
            elif kind is _OPERAND:
                args.append(_scalar(op, param, value, scalars))
            else:
                raise wrong_type(op, param, value)
        elif kind is _ATTRIBUTE:
            args.append(_attribute(op, param, value))
        elif kind is _SCALAR or kind is _POSITION:
            args.append(_scalar(op, param, value, scalars))
        elif kind is _TENSORS:
            args.append([ref(v) if is_tensor(v) else _refuse(op, param, v) for v in value])
        elif kind is _OPTIONAL_TENSORS:
            args.append([None if v is None else ref(v) if is_tensor(v) else _refuse(op, param, v) for v in value])
        else:
            payloads.append(value)
            args.append(PAYLOAD)
        if param.required or value is not param.default:
            last, numbers = len(args), len(scalars)
    # Omitted defaults have no entry in the table of scalars either.
    del args[last:], scalars[numbers:]
    return args


def _scalar(op: Op, param: Param, value: Any, scalars: list[Any]) -> str:
    kind = ScalarKind.of(value)
    if kind is None or (param.kind is _POSITION and kind is not ScalarKind.INT):
        raise wrong_type(op, param, value)
    scalars.append([value.real, value.imag] if kind is ScalarKind.COMPLEX else value)
    return kind.value


def _attribute(op: Op, param: Param, value: Any) -> Any:
    if not attribute_matches(value, param.check):
        raise wrong_type(op, param, value)
    return value.name if type(value) is DType else value


def _refuse(op: Op, param: Param, value: Any) -> int:
    raise wrong_type(op, param, value)


def wrong_type(op: Op, param: Param, value: Any) -> GradwireError:
    """The error for a value that a parameter does not accept."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        if param.kind is _POSITION or int in param.check:
            return ArgumentValueError(f"{op.name}: argument {param.describe()!r} exceeds 64 bits")
        if float in param.check:
            return too_large(op, param)
    return ArgumentTypeError(
        f"{op.name}: argument {param.describe()!r} cannot be {_shown(value)} of type {type(value).__name__}"
    )


def too_large(op: Op, param: Param) -> NumberTooLarge:
    """The error for a number that does not fit into 64 bits."""
    return NumberTooLarge(f"{op.name}: argument {param.describe()!r} exceeds 64 bits")


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # Python does not format integers of several thousand digits
        return "an integer of many digits"


def decode_args(
    op: Op, args: list[Any], resolve: Callable[[int], Any], scalars: Iterator[Any], payloads: Iterator[Any]
) -> list[Any]:
    """The inverse of :func:`encode_args`, for untrusted input.

    ``resolve`` converts a reference to a tensor and raises if it does not exist.

    Raises:
        ArgumentTypeError: for too many, missing or malformed arguments.
        MalformedFrame: if the frame's tables lack a number or payload.
    """
    params = op.params
    if len(args) > len(params):
        raise ArgumentTypeError(f"{op.signature} got {len(args)} arguments; it takes {len(params)}")
    given = len(args)
    if op.required <= given <= op.leading_tensors:
        for arg in args:
            if type(arg) is not int:
                break
        else:  # most often
            return [*map(resolve, args), *op.defaults[given:]]
    values: list[Any] = []
    for param, arg in zip(params, args, strict=False):
        kind = param.kind
        if arg is None and param.optional:
            values.append(None)
        elif kind is _TENSOR or kind is _OPERAND:
            if type(arg) is int:
                values.append(resolve(arg))
            elif kind is _OPERAND:
                values.append(_take_scalar(op, param, arg, scalars))
            else:
                raise wrong_type(op, param, arg)
        elif kind is _ATTRIBUTE:
            values.append(take_attribute(op, param, arg))
        elif kind is _SCALAR or kind is _POSITION:
            values.append(_take_scalar(op, param, arg, scalars))
        elif kind is _TENSORS or kind is _OPTIONAL_TENSORS:
            values.append(_take_tensors(op, param, arg, resolve))
        else:
            values.append(_next(payloads, op, "payload"))
    if given < op.required:
        missing = next(param for param in params[given:] if param.required)
        raise ArgumentTypeError(f"{op.signature} is missing the argument {missing.name!r}")
    if given < len(params):
        values.extend(op.defaults[given:])
    return values


def with_references(op: Op, args: list[Any], moved: Callable[[int], int]) -> list[Any]:
    """The arguments of a record with each reference replaced by another."""
    found: list[Any] = []
    for param, arg in zip(op.params, args, strict=False):
        kind = param.kind
        if (kind is _TENSOR or kind is _OPERAND) and type(arg) is int:
            found.append(moved(arg))
        elif (kind is _TENSORS or kind is _OPTIONAL_TENSORS) and arg is not None:
            found.append([None if ref is None else moved(ref) for ref in arg])
        else:
            found.append(arg)
    return found


def mentioned(name: Any, args: Any) -> tuple[int, int]:
    """How many entries of the frame's tables of numbers and payloads a record uses, whether or not it can run.

    For an unknown op or malformed arguments this is a guess from the spelling.
    """
    op = TABLE.get(name) if type(name) is str else None
    if type(args) is not list:
        return 0, 0
    if op is None:
        return sum(type(arg) is str and arg in _KINDS for arg in args), args.count(PAYLOAD)
    numbers = payloads = 0
    for param, arg in zip(op.params, args, strict=False):
        kind = param.kind
        if kind is _SCALAR or kind is _POSITION or kind is _OPERAND:
            numbers += type(arg) is str
        elif kind is _PAYLOAD:
            payloads += arg is not None or not param.optional
    return numbers, payloads


def _next(table: Iterator[Any], op: Op, what: str) -> Any:
    for entry in table:
        return entry
    raise MalformedFrame(f"{op.name} refers to a {what} that is missing in the frame")


_ACCEPTS: dict[str, tuple[type, ...]] = {"bool": (bool,), "int": (int,), "float": (float, int)}


def _take_scalar(op: Op, param: Param, arg: Any, scalars: Iterator[Any]) -> Any:
    if type(arg) is not str or (param.kind is _POSITION and arg != "int"):
        raise wrong_type(op, param, arg)
    value = _next(scalars, op, "number")
    if arg == "complex":
        if type(value) is list and len(value) == 2 and all(type(v) in (int, float) for v in value):
            return complex(value[0], value[1])
    elif arg in _ACCEPTS:
        if type(value) is str and arg != "bool":
            value = _spelled(value, arg)
        if type(value) is int and not fits(value):
            raise too_large(op, param)
        if type(value) in _ACCEPTS[arg]:
            return float(value) if arg == "float" else value
    raise MalformedFrame(f"{op.name}: {value!r:.80} in the table of scalars must be {arg!r:.20}, as declared")


def _spelled(value: str, kind: str) -> Any:
    """Parse a number that JSON cannot represent: NaN, infinities, integers beyond 2**53."""
    try:
        return int(value) if kind == "int" else float(value)
    except ValueError:
        return value


def take_attribute(op: Op, param: Param, arg: Any) -> Any:
    """The value of an attribute as it travels.

    Raises:
        ArgumentTypeError: when the parameter does not accept it.
    """
    if type(arg) is list:
        arg = _tupled(arg)
    elif type(arg) is str and arg in SPECIAL and float in param.check and str not in param.check:
        return float(arg)
    elif type(arg) is str and DType in param.check and arg in dtypes.BY_NAME:
        return dtypes.BY_NAME[arg]
    if not attribute_matches(arg, param.check):
        raise wrong_type(op, param, arg)
    # Derivatives and composite ops would treat a bool as a logical value.
    return float(arg) if type(arg) is bool and bool not in param.check else arg


def _tupled(arg: list[Any]) -> tuple[Any, ...]:
    return tuple(_tupled(item) if type(item) is list else item for item in arg)


def _take_tensors(op: Op, param: Param, arg: Any, resolve: Callable[[int], Any]) -> list[Any]:
    if type(arg) is not list:
        raise wrong_type(op, param, arg)
    holes = param.kind is _OPTIONAL_TENSORS
    for ref in arg:
        if type(ref) is not int and not (holes and ref is None):
            raise wrong_type(op, param, ref)
    return [None if ref is None else resolve(ref) for ref in arg]
