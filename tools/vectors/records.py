"""Calls with their arguments by name, and the records that they become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gradwire.cli.conformance.vectors import Vector
from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import Kind, Op, Param, lookup

from . import callbacks  # noqa: F401  (registers acts)
from .acts import ACTS
from .frame_maker import FrameMaker, Ref
from .table import all_ops, spelled, unspelled

EXTRA: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("external", "a tensor of an earlier frame", "add", {"self": Ref(-1), "other": Ref(-2)}),
    ("scalar-int", "an int as number", "add", {"self": Ref(0), "other": 3}),
    ("scalar-float", "a float as number", "add", {"self": Ref(0), "other": 3.5}),
    ("scalar-bool", "a bool as number", "add", {"self": Ref(0), "other": True}),
    ("scalar-complex", "a complex number", "add", {"self": Ref(0), "other": 1 - 2j}),
    ("scalar-nan", "NaN", "add", {"self": Ref(0), "other": float("nan")}),
    ("scalar-infinite", "minus infinity", "add", {"self": Ref(0), "other": float("-inf")}),
    ("scalar-large", "an int beyond 2**53", "add", {"self": Ref(0), "other": 2**62 + 1}),
    ("default-number", "a trailing default, given: neither in the record nor among the scalars", "add",
     {"self": Ref(0), "other": Ref(1), "alpha": 1}),
    ("number-after-number", "two numbers, in order of mention", "add", {"self": Ref(0), "other": 2.0, "alpha": 3}),
    ("inner-default", "a default before an argument that is given", "sum", {"self": Ref(0), "keepdim": True}),
    ("dtype", "a dtype by its name", "zeros", {"size": (2,), "dtype": dtypes.float64}),
    ("position", "a position is data", "select", {"self": Ref(0), "dim": 0, "index": -1}),
    ("no-tensors", "an empty list of tensors", "zero_grad", {"params": []}),
    ("holes", "nulls in a list of tensors", "backward", {"tensors": [Ref(0), Ref(-3)], "gradients": [None, Ref(4)]}),
)  # fmt: skip

REFUSED: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("number-for-tensor", "a number where only a tensor goes", "exp", {"self": 2.0}),
    ("text-for-tensor", "a text where a tensor goes", "exp", {"self": "x"}),
    ("null-for-tensor", "null where a tensor must be", "exp", {"self": None}),
    ("text-for-number", "a text where a number goes", "add", {"self": Ref(0), "other": "2"}),
    ("float-for-position", "a float as position", "select", {"self": Ref(0), "dim": 0, "index": 1.0}),
    ("bool-for-int", "a bool as dimension", "cumsum", {"self": Ref(0), "dim": True}),
    ("text-for-bool", "a text as bool", "sum", {"self": Ref(0), "keepdim": "yes"}),
    ("number-in-list", "a number in a list of tensors", "cat", {"tensors": [Ref(0), 1.0]}),
    ("int-too-large", "an attribute beyond 64 bits", "cumsum", {"self": Ref(0), "dim": 2**63}),
    ("dtype-unknown", "a number as dtype", "zeros", {"size": (2,), "dtype": 3}),
    ("missing", "a required argument is missing", "add", {"self": Ref(0)}),
    ("unexpected", "an argument that the op does not have", "exp", {"self": Ref(0), "base": 2.0}),
)  # fmt: skip


def vectors(stored: list[Vector]) -> Iterator[Vector]:
    """The group: one call of each op that a client may record, and those above. What is stored is encoded again."""
    known = {vector["id"]: vector for vector in stored}
    for op in all_ops():
        if op.internal or op.name == "upload":
            continue
        label = f"records/{op.name}"
        if label in known:
            yield _vector(label, op.signature, op, arguments(known[label]))
            continue
        given = _acted(op)
        given = _sampled(op) if given is None else given
        if given is not None:
            yield _vector(label, op.signature, op, given)
    for name, text, op_name, given in EXTRA:
        yield _vector(f"records/kinds/{name}", f"{op_name}: {text}", lookup(op_name), given)
    data = {"data": {"values": [1.0, 2.0]}, "dtype": dtypes.float32, "size": (2,)}
    yield _vector("records/kinds/payload", "upload: the data is a payload of the frame", lookup("upload"), data)
    for name, text, op_name, given in REFUSED:
        op = lookup(op_name)
        try:
            encoded(op, given)
        except GradwireError as error:
            yield {
                "id": f"records/refused/{name}", "text": f"{op_name}: {text}", "op": op_name,
                "arguments": _tagged(op, given), "error": error.code,
            }  # fmt: skip


def _acted(op: Op) -> dict[str, Any] | None:
    """The arguments of an op's call in the frames made for it: the call with the most."""
    found: list[dict[str, Any]] = []
    for act in ACTS:
        if act.op == op.name:
            maker = FrameMaker()
            act.make(maker)
            found += [given for name, given in maker.calls if name == op.name]
    return max(found, key=len, default=None)


def _sampled(op: Op) -> dict[str, Any] | None:
    """The arguments of a sample, with its tensors numbered in order of mention."""
    from .sampled_calls import calls, converted, tensors_of  # which imports torch

    call = next((call for call in calls(op, 4096) if not call.fails), None)
    if call is None:
        return None
    places: dict[int, Ref] = {}
    for value in call.given.values():
        for tensor in tensors_of(value):
            places.setdefault(id(tensor), Ref(len(places)))
    return {name: converted(value, lambda t: places[id(t)]) for name, value in call.given.items()}


def arguments(vector: Vector) -> dict[str, Any]:
    """The arguments of a vector as a Python client has them."""
    params = {param.name: param for param in lookup(vector["op"]).params}
    return {name: _untagged(params.get(name), tagged) for name, tagged in vector["arguments"].items()}


def _untagged(param: Param | None, tagged: Any) -> Any:
    if tagged is None:
        return None
    ((kind, value),) = tagged.items()
    if kind == "tensor":
        return Ref(value)
    if kind == "tensors":
        return [_untagged(param, each) for each in value]
    if kind == "complex":
        return complex(*map(unspelled, value))
    if kind in ("int", "float"):
        number = unspelled(value, int if kind == "int" else float)
        return float(number) if kind == "float" else number
    if kind == "value" and isinstance(value, str) and param is not None and DType in param.check:
        return dtypes.BY_NAME.get(value, value)
    return _tupled(value) if kind == "value" else value


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


def encoded(op: Op, given: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The arguments of a record, the numbers and the payloads. What equals a default counts as one.

    Raises:
        ArgumentTypeError, ArgumentValueError: for arguments that the op does not take.
    """
    scalars: list[Any] = []
    payloads: list[Any] = []
    values = [
        param.default if type(value) is type(param.default) and value == param.default else value
        for param, value in zip(op.params, op.bind([], given), strict=True)
    ]
    args = encode_args(op, values, lambda v: isinstance(v, Ref), int, scalars, payloads)
    return args, scalars, payloads


def _vector(label: str, text: str, op: Op, given: dict[str, Any]) -> Vector:
    args, scalars, payloads = encoded(op, given)
    return {
        "id": label, "text": text, "op": op.name, "arguments": _tagged(op, given), "record": [op.name, plain(args)],
        "scalars": [spelled(value) if not isinstance(value, list) else [*map(spelled, value)] for value in scalars],
        "payloads": payloads,
    }  # fmt: skip


def _tagged(op: Op, given: dict[str, Any]) -> dict[str, Any]:
    params = {param.name: param for param in op.params}
    return {name: _tag(params.get(name), value) for name, value in given.items()}


def _tag(param: Param | None, value: Any) -> Any:
    """An argument with its kind, since a JSON number does not tell an int from a float."""
    if isinstance(value, Ref):
        return {"tensor": int(value)}
    if isinstance(value, list) and param is not None and param.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS):
        return {"tensors": [_tag(param, each) if each is not None else None for each in value]}
    if param is not None and param.kind is Kind.PAYLOAD:
        return {"payload": value}
    kind = ScalarKind.of(value)
    if kind is None or (param is not None and param.kind is Kind.ATTRIBUTE and kind is not ScalarKind.COMPLEX):
        return {"value": plain(value)} if not _large(value) else {"int": str(value)}
    return {kind.value: spelled(value)}


def _large(value: Any) -> bool:
    return type(value) is int and abs(value) >= 2**53


def plain(value: Any) -> Any:
    """A value as it stands in a record."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Ref):
        return int(value)
    return value.name if isinstance(value, DType) else value
