"""Op records as people write them in JSON, and their translation to the compact form of a :class:`.frames.Record`.

A record is in *natural form* if it is an object (``{"op": "pow", "self": "x", "exponent": 2, "as": "y"}``), names its
results (``["pow", ["x", 2], "y"]``) or mentions a tensor by name. In it, strings are tensors and numbers are numbers.
In a record in compact form an int where a tensor may stand is a reference. Other numbers may be written literally in
both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from . import dtypes
from . import ops as _ops  # noqa: F401  (fills the table)
from .dtypes import DType
from .errors import ArgumentTypeError, ArgumentValueError, GradwireError, MalformedFrame, ShapeError, UnknownOp
from .frames import MAX_NAME_CHARS, MAX_NESTING, Payload
from .promotion import ScalarKind, fits
from .records import PAYLOAD, SPECIAL, mentioned, take_attribute, too_large, wrong_type
from .suggestions import did_you_mean
from .table import TABLE, Kind, Op, Param

OP: Final = "op"
AS: Final = "as"
KINDS: Final = frozenset(kind.value for kind in ScalarKind)
RESERVED: Final = frozenset((*KINDS, PAYLOAD, *SPECIAL))
"""Strings that are no names of tensors."""
MAX_DIGITS: Final = 20

_FIRST_OF_NUMBERS: Final = frozenset("-0123456789NI")
_MISSING: Final[Any] = object()
_TAKEN: Final[Any] = object()
"""In a list of numbers or payloads: the next entry of the frame's own table."""
_LISTS: Final = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
_NUMBERS: Final = (Kind.SCALAR, Kind.POSITION)


@dataclass(frozen=True)
class Defaults:
    """What a session takes where a record in natural form leaves something out.

    Attributes:
        dtype: of literal data with a fraction or an exponent.
        device: of new tensors.
    """

    dtype: str = "float32"
    device: str = "cpu"


def is_number_text(text: str) -> bool:
    """Whether a string is a number that JSON cannot represent: NaN, an infinity, or an integer in decimal digits."""
    if text[:1] not in _FIRST_OF_NUMBERS:
        return False
    return text in SPECIAL or (len(text) <= MAX_DIGITS and text.removeprefix("-").isdecimal() and text.isascii())


def is_name(value: Any) -> bool:
    """Whether a value may be the name of a tensor."""
    return (
        type(value) is str and 0 < len(value) <= MAX_NAME_CHARS and value not in RESERVED and not is_number_text(value)
    )


class NaturalRecords:
    """Translates the records of one frame, in order.

    Args:
        external: how many ids the frame's table has.
        aliases: names that the frame gives to ids of that table, with their positions.

    Attributes:
        slots: the named results of this frame.
        named: the names of tensors of the session.
        loose: results of natural records without a name.
        numbers, payloads: the entries of the frame's tables.
        changed: whether a record was not in compact form, or had a literal number or payload.
    """

    def __init__(self, external: int, aliases: dict[str, int], defaults: Defaults) -> None:
        self._external = external
        self._aliases = aliases
        self._defaults = defaults
        self._made = 0
        self.slots: dict[str, int] = {}
        self.named: dict[str, int] = {}
        self.loose: list[int] = []
        self.numbers: list[Any] = []
        self.payloads: list[Any] = []
        self.changed = False

    def record(self, index: int, given: Any) -> Any:
        """The compact form of the next record.

        Raises:
            GradwireError: what is wrong, with ``op`` and ``index``.
        """
        try:
            return self._record(given)
        except GradwireError as error:
            name = given.get(OP) if type(given) is dict else given[0] if type(given) is list and given else None
            place = {"op": name if type(name) is str else "", "index": index}
            raise type(error)(f"record {index}: {error.message}", **(error.details | place)) from None
        except RecursionError:
            raise MalformedFrame(f"record {index}: the arguments are nested too deeply", index=index) from None

    def reference(self, name: str) -> int:
        """The reference to an earlier result of this frame or a tensor of the session.

        Raises:
            MalformedFrame: for a string that cannot be a name.
        """
        if not is_name(name):
            raise MalformedFrame(f"{name!r:.80} is not the name of a tensor")
        slot = self.slots.get(name)
        if slot is not None:
            return slot
        alias = self._aliases.get(name)
        if alias is not None:
            return -1 - alias
        return -1 - self._external - self.named.setdefault(name, len(self.named))

    def _record(self, given: Any) -> Any:
        if type(given) is dict:
            return self._object(given)
        if type(given) is not list:
            raise MalformedFrame(f"{given!r:.80} is neither an object nor a list")
        if len(given) not in (2, 3) or type(given[0]) is not str or type(given[1]) is not list:
            if any(type(each) is dict for each in given):
                raise MalformedFrame('a record is [op, arguments] or [op, arguments, results]; named arguments need '
                                     '{"op": ..., "argument": ...}')  # fmt: skip
            self._made += 1
            return given  # the engine tells what is wrong
        name, args, last = given[0], given[1], given[2] if len(given) > 2 else None
        names = last if type(last) in (str, list) else None
        op = TABLE.get(name)
        if names is None and not (op is not None and _mentions_names(op, args)):
            return self._compact(op, name, args, last)
        op = _op(name)
        if len(args) > len(op.params):
            raise ArgumentTypeError(f"{op.signature} got {len(args)} arguments; it takes {len(op.params)}")
        values = [*args, *[_MISSING] * (len(op.params) - len(args))]
        return self._natural(op, values, names)

    def _object(self, given: dict[str, Any]) -> Any:
        name = given.get(OP)
        if type(name) is not str:
            raise MalformedFrame(f'an object needs "{OP}": the name of an op; it has {", ".join(given) or "nothing"}')
        op = _op(name)
        for key in given:
            if key not in op.positions and key not in (OP, AS):
                hint = did_you_mean(key, (*op.positions, AS))
                raise ArgumentTypeError(f"{op.name} has no argument {key!r:.80}{hint} ({op.signature})")
        return self._natural(op, [given.get(param.name, _MISSING) for param in op.params], given.get(AS))

    # Compact records, in which numbers may be literal

    def _compact(self, op: Op | None, name: str, args: list[Any], count: Any) -> Any:
        if op is None:
            numbers, payloads = mentioned(name, args)
            self.numbers += [_TAKEN] * numbers
            self.payloads += [_TAKEN] * payloads
            found = args
        else:
            found, places, given = args, _places(op), len(args)
            for i in places.numbers:
                arg = args[i] if i < given else None
                if arg is None or (type(arg) is int and i in places.operands):
                    continue
                if type(arg) is str and not is_number_text(arg):
                    self.numbers.append(_TAKEN)
                elif _is_literal_number(arg):
                    found = [*found]
                    found[i] = self._number(op, op.params[i], arg)
            for i in places.payloads:
                if i < given and (args[i] is not None or not op.params[i].optional):
                    found = [*found]
                    found[i] = self._payload(args[i])
        results = op.results if op is not None and op.results is not None else count if type(count) is int else 1
        self._made += max(results, 0)
        return [name, found] if count is None else [name, found, count]

    # Natural records

    def _natural(self, op: Op, values: list[Any], names: Any) -> Any:
        self.changed = True
        self._fill_in(op, values)
        last = max((i for i, value in enumerate(values) if value is not _MISSING), default=-1)
        encode = self._argument
        args = [
            self._default(param) if value is _MISSING else encode(op, param, value)
            for param, value in zip(op.params[: last + 1], values, strict=False)
        ]
        places = _places(op)
        if places.operands and not any(type(args[i]) is int for i in places.tensors if i < len(args)):
            numbers = [op.params[i].name for i in places.operands if type(values[i]) is int]
            if numbers:
                raise ArgumentTypeError(
                    f"{op.name} has no tensor here: {' and '.join(numbers)} are numbers, because this record refers to "
                    f'tensors by name; name the result of an earlier record with "{AS}" and use that name'
                )
        results = self._results(op, names)
        return [op.name, args] if op.results is not None else [op.name, args, results]

    def _fill_in(self, op: Op, values: list[Any]) -> None:
        """Fill in what follows from other arguments, or from the session.

        Raises:
            ArgumentTypeError: naming a missing argument.
        """
        for i, param in enumerate(op.params):
            if param.kind is Kind.PAYLOAD and values[i] is not _MISSING and _is_literal_payload(values[i]):
                self._describe_data(op, values, i)
        for i, param in enumerate(op.params):
            if values[i] is not _MISSING:
                continue
            if param.name == "device" and param.default == "cpu" != self._defaults.device:
                values[i] = self._defaults.device
            elif param.required:
                first = next((v for p, v in zip(op.params, values, strict=True) if p.kind is Kind.TENSORS), _MISSING)
                if param.kind is not Kind.OPTIONAL_TENSORS or first is _MISSING:
                    raise ArgumentTypeError(f"{op.signature} is missing the argument {param.name!r}")
                values[i] = [None] * (len(first) if type(first) is list else 1)

    def _describe_data(self, op: Op, values: list[Any], at: int) -> None:
        """Infer the dtype and size of literal data where they are left out."""
        dtype, size = op.positions.get("dtype"), op.positions.get("size")
        if dtype is None or size is None:
            return
        if values[dtype] is _MISSING:
            values[dtype] = _dtype_of(values[at], self._defaults.dtype)
        if values[size] is _MISSING:
            known = dtypes.BY_NAME.get(values[dtype]) if type(values[dtype]) is str else None
            values[size] = _size_of(values[at], known is not None and known.is_complex)

    def _default(self, param: Param) -> Any:
        """The compact form of a default that precedes a given argument."""
        default = param.default
        if default is not None and param.kind in (Kind.OPERAND, *_NUMBERS):
            kind = ScalarKind.of(default)
            assert kind is not None
            self.numbers.append([default.real, default.imag] if kind is ScalarKind.COMPLEX else default)
            return kind.value
        return _spelled_out(default)

    def _argument(self, op: Op, param: Param, value: Any) -> Any:
        kind = param.kind
        if value is None:
            if param.optional:
                return None
            raise wrong_type(op, param, value)
        if kind is Kind.TENSOR:
            return self._tensor(op, param, value)
        if kind is Kind.OPERAND:
            return self.reference(value) if is_name(value) else self._number(op, param, value)
        if kind in _LISTS:
            whole = value if type(value) is list else [value]
            holes = kind is Kind.OPTIONAL_TENSORS
            return [None if each is None and holes else self._tensor(op, param, each) for each in whole]
        if kind in _NUMBERS:
            return self._number(op, param, value)
        if kind is Kind.PAYLOAD:
            return self._payload(value)
        return _attribute(op, param, value)

    def _tensor(self, op: Op, param: Param, value: Any) -> int:
        if is_name(value):
            return self.reference(value)
        if type(value) is int:
            raise ArgumentTypeError(
                f"{op.name}: {param.name!r} is a tensor, which this record must refer to by name, not by number; name "
                f'the result of an earlier record with "{AS}" and use that name'
            )
        raise wrong_type(op, param, value)

    def _number(self, op: Op, param: Param, value: Any) -> str:
        """The kind of a number; the number itself goes to the table."""
        if type(value) is str:
            if value in KINDS:
                self.numbers.append(_TAKEN)
                return value
            value = _parsed(value)
        self.changed = True
        if type(value) is list:
            pair = [_parsed(part) if type(part) is str else part for part in value]
            if len(pair) != 2 or any(type(part) not in (int, float) for part in pair):
                raise wrong_type(op, param, value)
            kind, value = ScalarKind.COMPLEX, pair
        else:
            found = ScalarKind.of(value) if type(value) in (bool, int, float) else None
            if found is None:
                raise wrong_type(op, param, value)
            if type(value) is int and not fits(value):
                raise too_large(op, param)
            kind = found
        if param.kind is Kind.POSITION and kind is not ScalarKind.INT:
            raise wrong_type(op, param, value)
        self.numbers.append(value)
        return kind.value

    def _payload(self, value: Any) -> Any:
        if not _is_literal_payload(value):
            self.payloads.append(_TAKEN)
            return value
        self.changed = True
        if type(value) is dict:
            try:
                self.payloads.append(msgspec.convert(value, Payload))
            except msgspec.ValidationError as error:
                raise MalformedFrame(f"invalid payload: {error}") from None
        else:
            self.payloads.append(Payload(values=value))
        return PAYLOAD

    def _results(self, op: Op, names: Any) -> int:
        """Number and name the results."""
        given = [] if names is None else names if type(names) is list else [names]
        results = op.results
        if results is None:
            if not given:
                raise ArgumentTypeError(f'{op.name} has any number of results; list their names: "{AS}": ["a", ...]')
            results = len(given)
        elif given and not results:
            raise MalformedFrame(f"{op.name} has no result to name {given[0]!r:.80}")
        elif given and len(given) != results:
            raise MalformedFrame(
                f"{op.name}: the number of results is {results}, of names {len(given)}; null stands for no name"
            )
        for i in range(results):
            name = given[i] if given else None
            slot = self._made + i
            if name is None:
                self.loose.append(slot)
                continue
            check_new_name(name)
            if name in self.slots:
                raise MalformedFrame(f"the frame names two results {name!r:.80}; a name in a frame has one meaning")
            self.slots[name] = slot
        self._made += results
        return results


def check_new_name(name: Any) -> None:
    """Check the name of a result.

    Raises:
        MalformedFrame: for one that it may not have.
    """
    if type(name) is not str:
        raise MalformedFrame(f"the name of a result is text, not {name!r:.80}")
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise MalformedFrame(f"the name of a result must have 1 to {MAX_NAME_CHARS} characters, not {len(name)}")
    if not is_name(name):
        raise MalformedFrame(f"{name!r} cannot be the name of a result, because it stands for a number or a payload")


def filled(entries: list[Any], given: Iterator[Any], what: str) -> list[Any]:
    """A table of a frame: literal entries, and those that its own table has for the others.

    Raises:
        MalformedFrame: when the frame's table is too short.
    """
    found = []
    for entry in entries:
        if entry is _TAKEN:
            entry = next(given, _MISSING)
            if entry is _MISSING:
                raise MalformedFrame(f"a record refers to a {what} that is missing in the frame")
        found.append(entry)
    return found


def _op(name: str) -> Op:
    op = TABLE.get(name)
    if op is None or op.internal:
        public = [each.name for each in TABLE.values() if not each.internal]
        raise UnknownOp(f"unknown op {name!r:.80}{did_you_mean(name, public)}", op=name[:MAX_NAME_CHARS])
    return op


class _Places(NamedTuple):
    """The positions of an op's parameters by what they take."""

    tensors: tuple[int, ...]
    lists: tuple[int, ...]
    operands: tuple[int, ...]
    numbers: tuple[int, ...]
    payloads: tuple[int, ...]


@cache
def _places(op: Op) -> _Places:
    def at(*kinds: Kind) -> tuple[int, ...]:
        return tuple(i for i, param in enumerate(op.params) if param.kind in kinds)

    return _Places(
        at(Kind.TENSOR, Kind.OPERAND), at(*_LISTS), at(Kind.OPERAND), at(*_NUMBERS, Kind.OPERAND), at(Kind.PAYLOAD)
    )


def _mentions_names(op: Op, args: list[Any]) -> bool:
    places, given = _places(op), len(args)
    for i in places.tensors:
        if i < given and type(args[i]) is str and is_name(args[i]):
            return True
    for i in places.lists:
        arg = args[i] if i < given else None
        if type(arg) is str and is_name(arg):
            return True
        if type(arg) is list and str in set(map(type, arg)) and any(map(is_name, arg)):
            return True
    return False


def _parsed(text: str) -> Any:
    """The number that a string is; any other string as it is."""
    if not is_number_text(text):
        return text
    return float(text) if text in SPECIAL else int(text)


def _is_literal_number(value: Any) -> bool:
    if type(value) is list:
        return len(value) == 2 and not any(type(part) is list for part in value) and all(map(_is_literal_number, value))
    return type(value) in (bool, int, float) or (type(value) is str and is_number_text(value))


def _attribute(op: Op, param: Param, value: Any) -> Any:
    """An attribute, checked. Of numbers as strings, integers become numbers."""
    takes_text = str in param.check
    if type(value) is str and not takes_text and is_number_text(value) and value not in SPECIAL:
        value = int(value)
    take_attribute(op, param, value)
    return value


def _spelled_out(default: Any) -> Any:
    """A default of the table as JSON."""
    if type(default) is DType:
        return default.name
    if type(default) is tuple:
        return [_spelled_out(each) for each in default]
    if type(default) is float and default - default != 0:
        return "NaN" if default != default else "Infinity" if default > 0 else "-Infinity"
    return default


# Literal data


def _is_literal_payload(value: Any) -> bool:
    return value is not None and not (type(value) is str and not is_number_text(value))


def _size_of(values: Any, is_complex: bool) -> list[int]:
    size: list[int] = []
    while type(values) is list:
        if len(size) > MAX_NESTING:
            raise ShapeError(f"the data has more than {MAX_NESTING} levels of lists")
        size.append(len(values))
        if not values:
            return size
        values = values[0]
    # Of complex data, the innermost lists may be pairs, or numbers without an imaginary part.
    return size[:-1] if is_complex and size and size[-1] == 2 else size


def _dtype_of(values: Any, real: str) -> str:
    """The dtype of nested lists of numbers: ``bool``, ``int64`` or, of any other mixture, ``real``."""
    if type(values) is dict:
        raise ArgumentTypeError("the dtype and size of a payload that is an object must be given")
    if type(values) is not list:
        values = [values]
    kinds: set[type] = set()
    texts: list[str] = []
    level, depth = [values], 0
    while level:
        if depth > MAX_NESTING:
            raise ShapeError(f"the data has more than {MAX_NESTING} levels of lists")
        deeper: list[Any] = []
        for each in level:
            found = set(map(type, each))
            if list in found:
                deeper += [entry for entry in each if type(entry) is list]
                found.discard(list)
            if str in found:
                texts += [entry for entry in each if type(entry) is str]
            kinds |= found
        level, depth = deeper, depth + 1
    if not kinds:
        return real
    if not kinds <= {bool, int, float, str} or not all(map(is_number_text, texts)):
        odd = next((t for t in texts if not is_number_text(t)), None) if texts else None
        raise ArgumentValueError(f"data must be numbers in nested lists, not {odd or min(k.__name__ for k in kinds)!r}")
    if kinds == {bool}:
        return "bool"
    whole = float not in kinds and not any(text in SPECIAL for text in texts)
    return "int64" if whole and bool not in kinds else real
