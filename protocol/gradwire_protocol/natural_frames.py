"""Messages as JSON, decoded strictly, and the translation of frames in natural form to compact ones.

A frame in natural form has op records as people write them (:mod:`.natural_records`), names in place of references and
ids, and its ops at the top level if it likes. A frame in compact form passes unchanged. Behind this module, all frames
are compact.

Unlike MessagePack, which clients of other versions send, JSON is written by people: an unknown field is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from .errors import GradwireError, LimitExceeded, MalformedFrame
from .frames import MAX_ENTRIES, Frame, Id, Message, Payload, Structure, Text, Whole
from .natural_records import Defaults as Defaults
from .natural_records import NaturalRecords, check_new_name, filled, is_name
from .suggestions import did_you_mean, explained, unknown_field

T = TypeVar("T")

_List = msgspec.Meta(max_length=MAX_ENTRIES)
_References = Annotated[list[Whole | Text], _List]
_Records = Annotated[list[Any], _List]
_Keeps = Annotated[dict[Text, Whole | Text | None], _List]
_OF_STRUCTURE: Final[dict[str, Any]] = {
    "ops": _Records, "reads": _References, "drops": _References, "heard": bool, "keeps": _Keeps,
}  # fmt: skip
_OF_FRAME: Final[dict[str, Any]] = {
    "structure": msgspec.Raw, "external": list[Id] | dict[Text, Id], "releases": Annotated[list[Id | Text], _List],
    "stacked": _References, "payloads": Annotated[list[Any], _List],
}  # fmt: skip
"""The types of fields that have further forms in JSON."""

RECORDS_BETWEEN_PAUSES: Final = 50

_MISSING: Final[Any] = msgspec.UNSET


def _strict(of: type, types: dict[str, Any], more: Iterable[str] = (), tag: str | None = None) -> Any:
    """A struct with the fields of another that refuses others."""
    fields: list[tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(of):
        if field.name == "buffers":
            continue
        default = _MISSING if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT else (
            field.default if field.default is not msgspec.NODEFAULT else msgspec.field(
                default_factory=field.default_factory))  # fmt: skip
        kind = types.get(field.name, field.type)
        fields.append((field.name, kind | msgspec.UnsetType if default is _MISSING else kind, default))
    fields += [(name, _OF_STRUCTURE[name] | msgspec.UnsetType, _MISSING) for name in more]
    return msgspec.defstruct(
        of.__name__, fields, forbid_unknown_fields=True, tag=tag, tag_field=None if tag is None else "type"
    )


_StrictFrame: Final = _strict(Frame, _OF_FRAME, _OF_STRUCTURE, tag="frame")
_StrictStructure: Final = _strict(Structure, _OF_STRUCTURE)
_StrictPayload: Final = _strict(Payload, {})


class _Kind(msgspec.Struct):
    type: str = "frame"


_kind: Final = msgspec.json.Decoder(_Kind)
_frame: Final = msgspec.json.Decoder(_StrictFrame)
_structure: Final = msgspec.json.Decoder(_StrictStructure)
_message: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(Message)
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MESSAGES: Final[dict[str, type]] = {each.__struct_config__.tag: each for each in Message.__args__}


class JsonFrame(NamedTuple):
    """A frame from JSON in compact form.

    Attributes:
        read_names: the names by which it reads tensors, in order; empty for those it reads by number.
    """

    frame: Frame
    read_names: list[str]


class RefusedFrame(Exception):
    """A frame that is well formed, but whose records cannot be translated. ``seq`` is its number."""

    def __init__(self, seq: int, error: GradwireError) -> None:
        super().__init__(str(error))
        self.seq = seq
        self.error = error


def decode_message(
    text: str | bytes, defaults: Defaults = Defaults(), pause: Callable[[], None] | None = None
) -> JsonFrame | Message:
    """Decode a message of a stream. The size of the text was checked. ``pause`` as in :func:`decode_frame`.

    Raises:
        MalformedFrame: when it is not a message.
        RefusedFrame: when it is a frame with an invalid record or name.
    """
    kind = _decoded(_kind, text, "a message", ()).type
    if kind == "frame":
        return decode_frame(text, defaults, pause)
    declared = _MESSAGES.get(kind)
    if declared is None:
        raise MalformedFrame(f"unknown message type {kind!r:.80}{did_you_mean(kind, _MESSAGES)}")
    message: Message = _decoded(_message, text, f"a {kind}", ())
    known = [field.encode_name for field in msgspec.structs.fields(declared) if field.name != "buffers"]
    for name in _fields.decode(text):
        if name not in known and name != "type":
            raise unknown_field(name, f"a {kind}", known)
    return message


def decode_frame(
    text: str | bytes, defaults: Defaults = Defaults(), pause: Callable[[], None] | None = None
) -> JsonFrame:
    """Decode a frame. The size of the text was checked.

    Args:
        pause: called after each few records, about every half millisecond.

    Raises:
        MalformedFrame: when it is not a frame.
        RefusedFrame: when a record or a name is invalid.
    """
    given = _decoded(_frame, text, "a frame", (*_StrictFrame.__struct_fields__, "type"))
    raw = bytes(given.structure)
    listed = [name for name in _OF_STRUCTURE if getattr(given, name) is not _MISSING]
    if raw and raw != b"null":
        if listed:
            raise MalformedFrame(f"a frame has {listed[0]!r} either at the top level or in its structure, not both")
        structure = _decoded(_structure, raw, "a structure", _StrictStructure.__struct_fields__)
        if structure.ops is _MISSING:
            raise MalformedFrame("the structure has no 'ops'")
    else:
        structure = _StrictStructure(
            **{name: getattr(given, name) for name in listed if name != "ops"},
            ops=given.ops if given.ops is not _MISSING or not listed else [],
        )  # fmt: skip
    try:
        return _translated(given, structure, raw, bool(listed), defaults, pause)
    except GradwireError as error:
        raise RefusedFrame(given.seq, error) from None


def _decoded(decoder: msgspec.json.Decoder[T], text: str | bytes, what: str, fields: Iterable[str]) -> T:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise explained(error, what, fields) or MalformedFrame(f"the JSON text is not {what}: {error}") from None


def _translated(
    given: Any, structure: Any, raw: bytes, at_top: bool, defaults: Defaults, pause: Callable[[], None] | None
) -> JsonFrame:
    fields = {name: getattr(given, name) for name in _StrictFrame.__struct_fields__ if name not in _OF_STRUCTURE}
    external, aliases = given.external, {}
    if type(external) is dict:
        for i, name in enumerate(external):
            check_new_name(name)
            aliases[name] = i
        external = list(external.values())
    fields["external"] = external
    fields["payloads"] = [_payload(each) for each in given.payloads]
    named = [*structure.reads, *structure.drops, *given.releases, *given.stacked, *structure.keeps.values()]
    by_name = bool(aliases) or any(type(each) is str for each in named)
    if structure.ops is _MISSING:
        if by_name:
            raise MalformedFrame("a frame without ops cannot use names")
        fields["structure"] = msgspec.Raw(raw)
        return JsonFrame(Frame(**fields), [])
    records = NaturalRecords(len(external), aliases, defaults)
    ops = []
    for index, record in enumerate(structure.ops):
        ops.append(records.record(index, record))
        if pause is not None and not index % RECORDS_BETWEEN_PAUSES:
            pause()
    if not (at_top or by_name or records.changed):
        fields["structure"] = msgspec.Raw(raw)
        return JsonFrame(Frame(**fields), [])
    if given.hash:
        raise MalformedFrame("hash is of a structure in compact form; leave it out of a frame in natural form")
    reads = [_reference(records, each) for each in structure.reads]
    stacked = [_reference(records, each) for each in given.stacked]
    dropped, gone = _drops(records, structure.drops)
    keeps = {name: ref if ref is None else _reference(records, ref) for name, ref in structure.keeps.items()}
    keeps |= {name: slot for name, slot in records.slots.items() if name not in gone}
    fields["releases"] = _releases(records, given.releases, given.external, keeps)
    fields["named"] = [*given.named, *records.named]
    if given.named:
        raise MalformedFrame("a frame in natural form mentions names where it uses them; leave out 'named'")
    loose = [slot for slot in records.loose if slot not in given.stacked]
    translated = Structure(ops, reads, sorted({*dropped, *loose}), bool(structure.heard), keeps)
    try:
        fields["structure"] = msgspec.Raw(msgspec.json.encode(translated))
    except (OverflowError, RecursionError) as error:
        raise MalformedFrame(f"a record in compact form is invalid: {error}") from None
    fields["scalars"] = _scalars(records.numbers, given.scalars, given.repeat)
    fields["payloads"] = filled(records.payloads, iter(fields["payloads"]), "payload")
    fields["stacked"] = stacked
    return JsonFrame(Frame(**fields), [each if type(each) is str else "" for each in structure.reads])


def _payload(given: Any) -> Payload:
    try:
        return msgspec.convert(msgspec.structs.asdict(msgspec.convert(given, _StrictPayload)), Payload)
    except msgspec.ValidationError as error:
        fields = _StrictPayload.__struct_fields__
        raise explained(error, "a payload", fields) or MalformedFrame(f"invalid payload: {error}") from None


def _reference(records: NaturalRecords, given: int | str) -> int:
    return records.reference(given) if isinstance(given, str) else given


def _drops(records: NaturalRecords, drops: list[int | str]) -> tuple[list[int], set[str]]:
    """The dropped results, and the names of those that have one."""
    slots: list[int] = []
    names: set[str] = set()
    for each in drops:
        if isinstance(each, str):
            if each not in records.slots:
                hint = did_you_mean(each, records.slots) or "; 'releases' is for tensors of the session"
                raise MalformedFrame(f"drops: no result of this frame is named {each!r:.80}{hint}")
            names.add(each)
            slots.append(records.slots[each])
        else:
            slots.append(each)
            names.update(name for name, slot in records.slots.items() if slot == each)
    return slots, names


def _releases(
    records: NaturalRecords, given: list[int | str], external: Any, keeps: dict[str, int | None]
) -> list[int]:
    """The released ids. Released names are added to ``keeps``."""
    ids: list[int] = []
    for each in given:
        if not isinstance(each, str):
            ids.append(each)
        elif type(external) is dict and each in external:
            ids.append(external[each])
        elif each in records.slots:
            raise MalformedFrame(f"releases: {each!r:.80} is a result of this frame; list it in 'drops'")
        elif not is_name(each):
            raise MalformedFrame(f"releases: {each!r:.80} is not the name of a tensor")
        else:
            keeps[each] = None
    return ids


def _scalars(numbers: list[Any], given: list[Any], repeat: int) -> list[Any]:
    """The table of numbers of all iterations: literal ones are the same in each."""
    times, table = max(repeat, 1), iter(given)
    if times * len(numbers) > MAX_ENTRIES:
        raise LimitExceeded(
            f"{times:,} iterations with {len(numbers):,} numbers each exceed {MAX_ENTRIES:,} entries of scalars",
            field="scalars", limit=MAX_ENTRIES, value=times * len(numbers),
        )  # fmt: skip
    found: list[Any] = []
    for _ in range(times if numbers else 0):
        found += filled(numbers, table, "number")
    left = sum(1 for _ in table)
    if left:
        raise MalformedFrame(f"scalars has {len(given):,} entries, but the records use {len(given) - left:,}")
    return found
