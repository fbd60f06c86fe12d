"""Messages with one wrong field, for every field of the schema, and records with nonsensical arguments, for the tests
and for ``python -m tests.soak frames``.

The fields come from the schema, so new ones are covered automatically.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import inspect

import gradwire_protocol.ops  # noqa: F401  (fills the table)
from gradwire_protocol.dtypes import DType
from gradwire_protocol.frames import Message, Structure
from gradwire_protocol.table import TABLE, Kind, Op, Param

Path = tuple[str | int, ...]
Fields = dict[str, Any]

PLAIN: Final[dict[str, Fields]] = {
    "frame": {
        "seq": 1, "structure": {
            "ops": [["upload", ["payload", "float32", [2]]], ["add", [0, "float"]], ["sum", [1]]],
            "reads": [2], "drops": [0], "heard": True,
        },
        "external": [], "scalars": [0.5], "payloads": [{"values": [1.0, 2.0]}], "releases": [],
    },
    "chunk": {"transfer": 1, "offset": 0, "total": 8, "buffers": []},
    "hello": {"version": 1, "agent": "hostile"},
}  # fmt: skip
"""What is sent when nothing is wrong with it; of other messages, their required fields."""


def _plain(kind: Any) -> Any:
    """A value of a field that must be there."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: _plain(field.type) for field in kind.fields if field.required}
    for described, value in (
        (inspect.IntType, 1),
        (inspect.StrType, "x"),
        (inspect.ListType, []),
        (inspect.DictType, {}),
    ):
        if isinstance(kind, described):
            return value
    return None


def plain(message: Any) -> Fields:
    """A message of this type, as data."""
    described = inspect.type_info(message)
    assert isinstance(described, inspect.StructType)
    fields = PLAIN.get(str(described.tag)) or _plain(described)
    return {"type": described.tag, **json.loads(json.dumps(fields))}


def paths(message: Any) -> Iterator[Path]:
    """The way to every field of a message, inside its parts, too."""
    described = inspect.type_info(message)
    assert isinstance(described, inspect.StructType)
    for field in described.fields:
        yield from _inside((field.encode_name,), field.type)


def _inside(path: Path, kind: Any) -> Iterator[Path]:
    yield path
    if isinstance(kind, inspect.Metadata):
        if (kind.extra or {}).get("of") is Structure:
            for field in inspect.type_info(Structure).fields:  # type: ignore[attr-defined]
                yield from _inside((*path, field.encode_name), field.type)
        return
    for part in getattr(kind, "types", (kind,)):
        if isinstance(part, inspect.ListType) and isinstance(part.item_type, inspect.StructType):
            for field in part.item_type.fields:
                yield from _inside((*path, 0, field.encode_name), field.type)
        elif isinstance(part, inspect.StructType):
            for field in part.fields:
                yield from _inside((*path, field.encode_name), field.type)


def with_field(fields: Fields, path: Path, value: Any) -> Fields:
    """The message with this value in the place of a field."""
    at: Any = fields
    for here, following in itertools.pairwise(path):
        if isinstance(at, list):
            if not at:
                at.append({})
            at = at[0]
        else:
            at = at.setdefault(here, [] if following == 0 else {})
            if at is None:
                return fields
    if isinstance(at, dict):
        at[str(path[-1])] = value
    return fields


def deep(levels: int, opening: Any = list) -> Any:
    """Lists or maps inside one another."""
    found: Any = []
    for _ in range(levels):
        found = [found] if opening is list else {"a": found}
    return found


def hostile_values(many: int) -> dict[str, Callable[[], Any]]:
    """What a field may be given; ``many`` entries where it is many."""
    plain_values: dict[str, Any] = {
        "null": None, "true": True, "-1": -1, "0": 0, "2**31": 1 << 31, "2**53": 1 << 53, "2**62": 1 << 62,
        "2**63": 1 << 63, "2**64 - 1": (1 << 64) - 1, "2**70": 1 << 70, "-2**63": -(1 << 63), "0.5": 0.5, "-0.0": -0.0,
        "1e308": 1e308, "nan": float("nan"), "infinity": float("inf"), "text": "x", "NaN": "NaN", "empty text": "",
        "bytes": b"\xff\x00", "list": [], "map": {}, "complex": [1.0, 2.0],
        "complex nan": [float("nan"), float("inf")], "list of null": [None], "list of lists": [[[]]],
        "list of maps": [{}], "map of maps": {"a": {"b": {}}}, "negative list": [-1, -(1 << 63)],
        "huge list": [1 << 62, (1 << 64) - 1], "floats": [0.5, float("nan")], "texts": ["a", ""],
        "records": [["sum", [0]]], "half a record": [["sum"]], "no record": [[]], "record of maps": [[{}, {}]],
        "record of null": [[None, None, None]], "many results": [["split", [0, 1], 1 << 40]],
        "extension": msgspec.msgpack.Ext(7, b"abc"), "extensions": [msgspec.msgpack.Ext(-1, b"abcd")],
    }  # fmt: skip
    made: dict[str, Callable[[], Any]] = {name: (lambda value=value: value) for name, value in plain_values.items()}
    made |= {
        "deep list": lambda: deep(60), "deeper list": lambda: deep(700), "deep map": lambda: deep(60, dict),
        "many numbers": lambda: [0] * many, "many ids": lambda: list(range(300, 300 + many)),
        "many floats": lambda: [0.5] * many, "many lists": lambda: [[]] * many, "many maps": lambda: [{}] * many,
        "many nulls": lambda: [None] * many, "a long text": lambda: "x" * many, "long bytes": lambda: b"x" * many,
        "many texts": lambda: [""] * many, "many lists of lists": lambda: [[[[]]] * 100] * (many // 100),
        "many records": lambda: [["ones", [[0]]]] * (many // 4),
        "a large map": lambda: {str(n): n for n in range(many // 4)},
        "a record of many lists": lambda: [["ones", [[]] * many]], "many values": lambda: [{"values": [[]] * many}],
        "a record of a long text": lambda: [["ones", ["x" * many]]], "a long name": lambda: [["x" * many, []]],
    }  # fmt: skip
    return made


def attacks(many: int) -> Iterator[tuple[str, Path, str, Callable[[], Fields]]]:
    """Every field of every message with every hostile value: names of the message, field and value, and the message."""
    for message in Message.__args__:
        tag = str(inspect.type_info(message).tag)  # type: ignore[attr-defined]
        for path in paths(message):
            for name, value in hostile_values(many).items():
                yield tag, path, name, lambda m=message, p=path, v=value: with_field(plain(m), p, v())


def as_msgpack(fields: Fields) -> bytes | None:
    """The message as it travels in MessagePack; ``None`` for what has no form in it."""
    fields = dict(fields)
    try:
        header = msgspec.msgpack.encode(fields)
    except (OverflowError, RecursionError):
        return None
    sizes = fields.get("buffers")
    gap = bytes(-(4 + len(header)) % 64 + 8) if fields.get("type") == "chunk" and sizes == [8] else b""
    return len(header).to_bytes(4, "little") + header + gap


def as_json(fields: Fields) -> str | None:
    """The message as JSON, and where JSON has no form for something, as what people write instead."""
    try:
        return json.dumps(fields, default=lambda value: value.decode("latin1") if isinstance(value, bytes) else "?")
    except RecursionError:
        return None


# Records

OPERANDS: Final = [
    ["ones", [[2, 3]]], ["full", [[2, 3], "float"]], ["arange", [6]], ["ones", [[3, 3], "float64"]], ["zeros", [[]]],
    ["ones", [[0, 3]]], ["ones", [[2, 3], "bool"]], ["ones", [[4], "complex64"]], ["ones", [[1, 2, 4, 4], "float16"]],
    ["ones", [[2, 2, 3, 3]]], ["arange", [3, None, 1, "int32"]], ["randn", [[3, 3], "float64"]],
    ["ones", [[3], "uint8"]], ["full", [[3], "float"]],
]  # fmt: skip
"""Made at the head of a frame, by records whose numbers are :data:`OPERAND_NUMBERS`."""
OPERAND_NUMBERS: Final = [2.5, "NaN"]

NUMBERS: Final[dict[str, list[Any]]] = {
    "int": [-1, 0, 1, 3, 300, 1 << 31, (1 << 53) - 1, (1 << 62), -(1 << 63), "9223372036854775808", str(1 << 80)],
    "float": [-1.5, 0.0, 0.5, 1e308, -1e308, 5e-324, "NaN", "Infinity", "-Infinity"],
    "bool": [True, False],
    "complex": [[0.5, -1.0], [0.0, 1e308], [-1, 0]],
}
ATTRIBUTES: Final[dict[Any, list[Any]]] = {
    int: [-(1 << 63), -(1 << 40), -7, -2, -1, 0, 1, 2, 3, 7, 1 << 20, 1 << 31, 1 << 40, (1 << 62), (1 << 63) - 1],
    float: [-1.0, 0.0, 0.5, 1.0, 2.5, 1e308, -1e308, 1e-320, -1, 0, 3],
    bool: [True, False],
    str: [
        "cpu",
        "mean",
        "sum",
        "none",
        "ij,jk->ik",
        "ij",
        "tanh",
        "reflect",
        "floor",
        "amax",
        "",
        "x" * 300,
        "cuda:99",
    ],
}


class Draw:
    """Arguments of the right kinds for an op, with numbers that are in nobody's interest."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        self.scalars: list[Any] = []

    def number(self, kinds: tuple[str, ...] = ("int", "float", "bool", "complex")) -> str:
        kind = self.random.choice(kinds)
        self.scalars.append(self.random.choice(NUMBERS[kind]))
        return kind

    def tensor(self) -> int:
        return self.random.randrange(len(OPERANDS))

    def argument(self, param: Param) -> Any:
        pick = self.random
        if param.optional and pick.random() < 0.3:
            return None
        match param.kind:
            case Kind.TENSOR:
                return self.tensor()
            case Kind.OPERAND:
                return self.tensor() if pick.random() < 0.5 else self.number()
            case Kind.TENSORS:
                return [self.tensor() for _ in range(pick.randrange(4))]
            case Kind.OPTIONAL_TENSORS:
                return [self.tensor() if pick.random() < 0.7 else None for _ in range(pick.randrange(4))]
            case Kind.SCALAR:
                return self.number()
            case Kind.POSITION:
                return self.number(("int",))
            case Kind.PAYLOAD:
                return "payload"
        return self.attribute(pick.choice(param.check))

    def attribute(self, member: Any) -> Any:
        pick = self.random
        if get_origin(member) is tuple:
            inner = get_args(member)[0]
            return [self.attribute(inner) for _ in range(pick.choice((0, 1, 2, 2, 3, 4, 9, 70)))]
        if member is DType:
            return pick.choice(["float32", "float64", "int64", "int8", "bool", "complex64", "bfloat16", "float16"])
        found: Any = pick.choice(ATTRIBUTES.get(member, [None]))
        return found


def hostile_record(op: Op, draw: Draw) -> list[Any]:
    """A record of an op, whose numbers are appended to those of ``draw``."""
    required = sum(param.required for param in op.params)
    count = draw.random.randint(required, len(op.params))
    args = [draw.argument(param) for param in op.params[:count]]
    return [op.name, args] if op.results is not None else [op.name, args, draw.random.randrange(1, 4)]


NAMES: Final = sorted(name for name, op in TABLE.items() if not op.internal)


def hostile_ops(rng: random.Random, names: list[str]) -> Fields:
    """The parts of a frame with a record of each of these ops."""
    draw = Draw(rng)
    draw.scalars += OPERAND_NUMBERS
    records = [*OPERANDS, *(hostile_record(TABLE[name], draw) for name in names)]
    return {"structure": {"ops": records}, "scalars": draw.scalars, "payloads": [{"values": [1, 2]}] * len(names)}
