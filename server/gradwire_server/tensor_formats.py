"""The forms in which a tensor travels over REST: JSON, raw bytes with a header, and safetensors.

The safetensors format is a length, a JSON header and the data. It is read and written here, since the library's
NumPy interface has no bfloat16 and copies the data; the tests hold this against the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gradwire_engine.json_values import infer_shape
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

JSON: Final = "application/json"
RAW: Final = "application/octet-stream"
SAFETENSORS: Final = "application/safetensors"
FORMATS: Final = (JSON, RAW, SAFETENSORS)

DTYPE_HEADER: Final = "Gradwire-Dtype"
SHAPE_HEADER: Final = "Gradwire-Shape"
ENTRY: Final = "tensor"
"""The name of the one tensor in a safetensors body that the server writes; of those it reads, any will do."""

MAX_DIMS: Final = 64
MAX_HEADER_BYTES: Final = 1 << 20
"""Of a safetensors file with one tensor, and what its values may take."""
_BY_TAG: Final = {dtype.safetensors: dtype for dtype in dtypes.ALL if dtype.safetensors is not None}


class TensorBody(msgspec.Struct, forbid_unknown_fields=True):
    """A tensor as JSON.

    Attributes:
        values: nested lists; NaN and infinities as strings, complex numbers as ``[re, im]``, integers beyond
            2**53 as strings.
        dtype: by PyTorch's name; by default bool, int64 or the session's default, as the values are.
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
    """A tensor from a request's body: its form, and its data as a frame carries it."""

    dtype: DType
    shape: tuple[int, ...]
    payload: Payload
    buffers: list[memoryview]

    @property
    def human(self) -> bool:
        """Whether the data are nested lists."""
        return self.payload.values is not None


def _kind(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def is_nested(media_type: str) -> bool:
    """Whether a body of this type is nested lists, which take long to parse."""
    return _kind(media_type) in (JSON, "")


def incoming(media_type: str, headers: Mapping[str, str], body: memoryview, default_dtype: str, most: int) -> Incoming:
    """Read a body, whose JSON may take ``most`` bytes in memory.

    Raises:
        UnsupportedMediaType: for another form than those three.
        LimitExceeded: for JSON that would take more.
        InvalidRequest, MalformedFrame, ArgumentValueError: for a body or headers that do not fit.
    """
    kind = _kind(media_type)
    if kind in (JSON, ""):
        return _from_json(bytes(body), default_dtype, most)
    if kind == RAW:
        return _from_raw(headers, body)
    if kind == SAFETENSORS:
        return _from_safetensors(body, min(most, MAX_HEADER_BYTES))
    raise UnsupportedMediaType(
        f"{kind!r:.80} is no form of a tensor: use one of {', '.join(FORMATS)}", accepted=FORMATS
    )


def _from_json(body: bytes, default_dtype: str, most: int) -> Incoming:
    bounds.check_json(body, most)
    try:
        parsed = msgspec.json.decode(body, type=TensorBody)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is not a tensor as JSON: {error}") from None
    values = parsed.values
    dtype = dtype_named(parsed.dtype) if parsed.dtype is not None else _guess(values, default_dtype)
    shape = infer_shape(values, dtype.is_complex and _is_pairs(values))
    if len(shape) > MAX_DIMS:
        raise InvalidRequest(f"the values have {len(shape)} dimensions, {MAX_DIMS} are possible")
    return Incoming(dtype, shape, Payload(values=values), [])


def _is_pairs(values: Any) -> bool:
    """Whether the innermost lists are ``[re, im]`` rather than rows of real numbers: they come in twos."""
    while isinstance(values, list) and values and isinstance(values[0], list):
        values = values[0]
    return isinstance(values, list) and len(values) == 2


def _guess(values: Any, default_dtype: str) -> DType:
    """The dtype of values that come without one, as PyTorch would choose it."""
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
            f"raw bytes need the headers {DTYPE_HEADER} (such as float32) and {SHAPE_HEADER} (such as 2,3)"
        )
    dtype = dtype_named(headers[DTYPE_HEADER].strip())
    return Incoming(dtype, parse_shape(headers[SHAPE_HEADER]), Payload(buffer=0), [body])


def _from_safetensors(body: memoryview, most: int) -> Incoming:
    size = int.from_bytes(body[:8], "little")
    if len(body) < 8 or size > len(body) - 8:
        raise MalformedFrame(f"the body of {len(body)} bytes is not a safetensors file: its header is cut off")
    if size > MAX_HEADER_BYTES:
        raise LimitExceeded(
            f"the header of the safetensors file has {size:,} bytes, {MAX_HEADER_BYTES:,} are allowed",
            limit=MAX_HEADER_BYTES, value=size,
        )  # fmt: skip
    head = bytes(body[8 : 8 + size])
    bounds.check_json(head, most)
    try:
        header = _header_decoder.decode(head)
        entries = [msgspec.convert(v, _Entry) for name, v in header.items() if name != "__metadata__"]
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedFrame(f"the header of the safetensors file cannot be read: {error}") from None
    if len(entries) != 1:
        raise InvalidRequest(f"the safetensors file must hold one tensor, it holds {len(entries)}")
    entry, data = entries[0], body[8 + size :]
    dtype = _BY_TAG.get(entry.dtype)
    if dtype is None:
        raise Unsupported(f"there is no dtype for the safetensors type {entry.dtype!r:.40}")
    if entry.data_offsets != (0, len(data)):
        raise MalformedFrame(f"the tensor is said to be at {entry.data_offsets} of {len(data)} bytes of data")
    return Incoming(dtype, entry.shape, Payload(buffer=0), [data])


def dtype_named(name: str) -> DType:
    """The dtype of this name, with or without ``torch.`` before it.

    Raises:
        ArgumentValueError: naming those that exist.
    """
    found = dtypes.BY_NAME.get(name.removeprefix("torch."))
    if found is None:
        raise ArgumentValueError(f"there is no dtype {name!r:.40}; there are {', '.join(dtypes.BY_NAME)}")
    return found


def parse_shape(text: str) -> tuple[int, ...]:
    """``"2,3"`` or ``"[2, 3]"`` as a shape; empty for a tensor of no dimensions.

    Raises:
        InvalidRequest: for anything else.
    """
    parts = [part.strip() for part in text.strip().strip("[]()").split(",") if part.strip()]
    if len(parts) > MAX_DIMS or not all(part.isascii() and part.isdigit() and len(part) < 17 for part in parts):
        raise InvalidRequest(f"{text!r:.80} is not a shape: use extents separated by commas")
    return tuple(int(part) for part in parts)


def shape_text(shape: Iterable[int]) -> str:
    """The inverse of :func:`parse_shape`."""
    return ",".join(str(n) for n in shape)


def safetensors_header(dtype: str, shape: list[int], size: int) -> bytes:
    """What comes before the ``size`` bytes of data in a safetensors file of one tensor.

    Raises:
        Unsupported: for a dtype that the format lacks.
    """
    tag = dtype_named(dtype).safetensors
    if tag is None:
        raise Unsupported(f"safetensors has no {dtype}: ask for {RAW}")
    header = msgspec.json.encode({ENTRY: _Entry(tag, tuple(shape), (0, size))})
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def negotiate(accept: str | None, offers: tuple[str, ...]) -> str:
    """The offer that an Accept header prefers; the first of equally good ones.

    Raises:
        NotAcceptable: when it rules all of them out.
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
        raise NotAcceptable(f"none of {', '.join(offers)} is acceptable by {accept!r:.200}", available=offers)
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
    """How precisely a media range names the offer; 0 when it does not."""
    if pattern == offer:
        return 3
    if pattern.endswith("/*") and offer.startswith(pattern[:-1]):
        return 2
    return 1 if pattern == "*/*" else 0
