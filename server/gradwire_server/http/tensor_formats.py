"""The formats of a tensor over REST: JSON, raw bytes with headers, and safetensors.

A safetensors file is a length, a JSON header and the data. This module reads and writes it without the library, whose
NumPy interface lacks bfloat16 and copies the data. The tests compare it with the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gradwire_engine.session.json_values import infer_shape
from gradwire_protocol import bounds, dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import (
    ArgumentValueError,
    InvalidRequest,
    LimitExceeded,
    MalformedFrame,
    NotAcceptable,
    Unsupported,
    UnsupportedMediaType,
)
from gradwire_protocol.frames import Payload
from gradwire_protocol.suggestions import explained

JSON: Final = "application/json"
RAW: Final = "application/octet-stream"
SAFETENSORS: Final = "application/safetensors"
TAR: Final = "application/x-tar"
FORMATS: Final = (JSON, RAW, SAFETENSORS)

DTYPE_HEADER: Final = "Gradwire-Dtype"
SHAPE_HEADER: Final = "Gradwire-Shape"
ENTRY: Final = "tensor"
"""The tensor's name in a safetensors body that the server writes. It accepts any name when reading."""

MAX_DIMS: Final = 64
MAX_HEADER_BYTES: Final = 1 << 20
"""The limit for the header of a safetensors file with one tensor, encoded and decoded."""
_BY_TAG: Final = {dtype.safetensors: dtype for dtype in dtypes.ALL if dtype.safetensors is not None}


class TensorBody(msgspec.Struct, forbid_unknown_fields=True):
    """A tensor as JSON.

    Attributes:
        values: nested lists; NaN and infinities as strings, complex numbers as ``[re, im]``, integers beyond
            2**53 as strings.
        dtype: PyTorch's name. Default: bool, int64 or the session's default dtype, depending on the values.
    """

    values: Any
    dtype: str | None = None


class _Entry(msgspec.Struct):
    """A tensor in the header of a safetensors file."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


_header_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True)
class Incoming:
    """A tensor from a request's body, with its data in a frame's form."""

    dtype: DType
    shape: tuple[int, ...]
    payload: Payload
    buffers: list[memoryview]

    @property
    def human(self) -> bool:
        """Whether the values are nested lists."""
        return self.payload.values is not None


def _kind(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def is_nested(media_type: str) -> bool:
    """Whether a body of this type has nested lists, which take long to parse."""
    return _kind(media_type) in (JSON, "")


def incoming(media_type: str, headers: Mapping[str, str], body: memoryview, default_dtype: str, most: int) -> Incoming:
    """Parse a body, whose decoded JSON may take ``most`` bytes.

    Raises:
        UnsupportedMediaType: for another media type.
        LimitExceeded: when the decoded JSON would exceed the limit.
        InvalidRequest, MalformedFrame, ArgumentValueError: for an invalid body or header.
    """
    kind = _kind(media_type)
    if kind in (JSON, ""):
        return _from_json(bytes(body), default_dtype, most)
    if kind == RAW:
        return _from_raw(headers, body)
    if kind == SAFETENSORS:
        return _from_safetensors(body, min(most, MAX_HEADER_BYTES))
    raise UnsupportedMediaType(
        f"unsupported media type {kind!r:.80} for a tensor; use one of {', '.join(FORMATS)}", accepted=FORMATS
    )


def _from_json(body: bytes, default_dtype: str, most: int) -> Incoming:
    bounds.check_json(body, most)
    try:
        parsed = msgspec.json.decode(body, type=TensorBody)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        unknown = explained(error, "a tensor", TensorBody.__struct_fields__)
        raise InvalidRequest(unknown.message if unknown else f"the body is not a valid JSON tensor: {error}") from None
    values = parsed.values
    dtype = dtype_named(parsed.dtype) if parsed.dtype is not None else _guess(values, default_dtype)
    shape = infer_shape(values, dtype.is_complex and _is_pairs(values))
    if len(shape) > MAX_DIMS:
        raise InvalidRequest(f"the values have {len(shape)} dimensions; the limit is {MAX_DIMS}")
    return Incoming(dtype, shape, Payload(values=values), [])


def _is_pairs(values: Any) -> bool:
    """Whether the innermost lists have two elements, like ``[re, im]``."""
    while isinstance(values, list) and values and isinstance(values[0], list):
        values = values[0]
    return isinstance(values, list) and len(values) == 2


def _guess(values: Any, default_dtype: str) -> DType:
    """The dtype that PyTorch would choose for values without a dtype."""
    kinds = set()
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(value)
        else:
            kinds.add(type(value))
            if kinds - {bool, int}:
                break
    if not kinds or kinds - {bool, int}:
        return dtypes.BY_NAME[default_dtype]
    return dtypes.bool_ if kinds == {bool} else dtypes.int64


def _from_raw(headers: Mapping[str, str], body: memoryview) -> Incoming:
    if DTYPE_HEADER not in headers or SHAPE_HEADER not in headers:
        raise InvalidRequest(
            f"raw bytes require the headers {DTYPE_HEADER} (for example float32) and {SHAPE_HEADER} (for example 2,3)"
        )
    dtype = dtype_named(headers[DTYPE_HEADER].strip())
    return Incoming(dtype, parse_shape(headers[SHAPE_HEADER]), Payload(buffer=0), [body])


def _from_safetensors(body: memoryview, most: int) -> Incoming:
    size = int.from_bytes(body[:8], "little")
    if len(body) < 8 or size > len(body) - 8:
        raise MalformedFrame(f"the body of {len(body)} bytes is not a safetensors file: its header is truncated")
    if size > MAX_HEADER_BYTES:
        raise LimitExceeded(
            f"the header of the safetensors file has {size:,} bytes; the limit is {MAX_HEADER_BYTES:,}",
            limit=MAX_HEADER_BYTES, value=size,
        )  # fmt: skip
    head = bytes(body[8 : 8 + size])
    bounds.check_json(head, most)
    try:
        header = _header_decoder.decode(head)
        entries = [msgspec.convert(v, _Entry) for name, v in header.items() if name != "__metadata__"]
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedFrame(f"invalid header of the safetensors file: {error}") from None
    if len(entries) != 1:
        raise InvalidRequest(f"the safetensors file must have one tensor, not {len(entries)}")
    entry, data = entries[0], body[8 + size :]
    dtype = _BY_TAG.get(entry.dtype)
    if dtype is None:
        raise Unsupported(f"unsupported safetensors type {entry.dtype!r:.40}")
    if entry.data_offsets != (0, len(data)):
        raise MalformedFrame(f"the tensor's data_offsets are {entry.data_offsets}; they must be (0, {len(data)})")
    return Incoming(dtype, entry.shape, Payload(buffer=0), [data])


def dtype_named(name: str) -> DType:
    """The dtype with this name, with or without the prefix ``torch.``.

    Raises:
        ArgumentValueError: for an unknown name.
    """
    found = dtypes.BY_NAME.get(name.removeprefix("torch."))
    if found is None:
        raise ArgumentValueError(f"unknown dtype {name!r:.40}; use one of {', '.join(dtypes.BY_NAME)}")
    return found


def parse_shape(text: str) -> tuple[int, ...]:
    """Parse a shape such as ``"2,3"`` or ``"[2, 3]"``; the empty text is the shape of a scalar.

    Raises:
        InvalidRequest: for an invalid shape.
    """
    parts = [part.strip() for part in text.strip().strip("[]()").split(",") if part.strip()]
    if len(parts) > MAX_DIMS or not all(part.isascii() and part.isdigit() and len(part) < 17 for part in parts):
        raise InvalidRequest(f"invalid shape {text!r:.80}; use sizes separated by commas, for example 2,3")
    return tuple(int(part) for part in parts)


def shape_text(shape: Iterable[int]) -> str:
    """The inverse of :func:`parse_shape`."""
    return ",".join(str(n) for n in shape)


def safetensors_header(dtype: str, shape: list[int], size: int) -> bytes:
    """The header of a safetensors file with one tensor of ``size`` bytes.

    Raises:
        Unsupported: when the format lacks the dtype.
    """
    tag = dtype_named(dtype).safetensors
    if tag is None:
        raise Unsupported(f"safetensors does not support {dtype}; request {RAW}")
    header = msgspec.json.encode({ENTRY: _Entry(tag, tuple(shape), (0, size))})
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def negotiate(accept: str | None, offers: tuple[str, ...]) -> str:
    """The media type that an Accept header prefers; among equals, the first.

    Raises:
        NotAcceptable: when the header excludes all offers.
    """
    if not accept or not accept.strip():
        return offers[0]
    best, best_quality = "", 0.0
    ranges = [_range(part) for part in accept.split(",")]
    for offer in offers:
        matches = [(precise, q) for pattern, q in ranges if (precise := _precision(pattern, offer))]
        # The most precise range decides: "*/*, text/html;q=0" excludes HTML.
        quality = max(matches)[1] if matches else 0.0
        if quality > best_quality:
            best, best_quality = offer, quality
    if not best:
        raise NotAcceptable(f"Accept {accept!r:.200} matches none of {', '.join(offers)}", available=offers)
    return best


def _range(part: str) -> tuple[str, float]:
    pattern, *params = (piece.strip().lower() for piece in part.split(";"))
    for param in params:
        if param.startswith("q="):
            try:
                return pattern, float(param[2:])
            except ValueError:
                return pattern, 0.0
    return pattern, 1.0


def _precision(pattern: str, offer: str) -> int:
    """How precisely a media range matches the offer; 0 for no match."""
    if pattern == offer:
        return 3
    if pattern.endswith("/*") and offer.startswith(pattern[:-1]):
        return 2
    return 1 if pattern == "*/*" else 0
