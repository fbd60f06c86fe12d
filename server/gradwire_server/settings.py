"""Every setting of the server: one field here, one environment variable ``GRADWIRE_<NAME>``, one line of help."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PositiveFloat, PositiveInt, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from gradwire_engine.memory import Limits

PREFIX: Final = "GRADWIRE_"
HASHED: Final = "sha256:"

KB: Final = 1 << 10
MB: Final = 1 << 20
GB: Final = 1 << 30


def variable(name: str) -> str:
    """The environment variable of a setting: ``max_tensors`` is set by ``GRADWIRE_MAX_TENSORS``."""
    return PREFIX + name.upper()


def hash_key(key: str) -> str:
    """The stored form of an API key. Keys are long and random, so one fast hash is enough."""
    return key if key.startswith(HASHED) else HASHED + hashlib.sha256(key.encode()).hexdigest()


class Settings(BaseSettings):
    """Read from ``GRADWIRE_*`` environment variables, or given by keyword.

    Raises:
        pydantic.ValidationError: naming each setting with a value that cannot be used.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    api_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Keys that open the server, separated by commas or as a JSON list. "
        "A key may be given as sha256:<hex> of itself. Only hashes are kept.",
    )
    default_device: str = Field(default="cpu", description="Device of sessions that do not ask for one.")

    max_body_bytes: PositiveInt = Field(default=GB, description="Largest body of an HTTP request.")
    max_json_bytes: PositiveInt = Field(default=16 * MB, description="Largest JSON body of an HTTP request.")
    max_message_bytes: PositiveInt = Field(
        default=32 * MB, description="Largest message on a stream; larger payloads travel in chunks."
    )
    max_tensor_bytes: PositiveInt = Field(default=4 * GB, description="Largest single tensor.")
    max_session_bytes: PositiveInt = Field(default=8 * GB, description="All memory of one session's tensors.")
    max_tensors: PositiveInt = Field(default=1_000_000, description="Live tensors of one session.")
    max_graph_nodes: PositiveInt = Field(default=2_000_000, description="Nodes of one session's autograd graph.")
    max_ops_per_frame: PositiveInt = Field(default=200_000, description="Op records in one frame.")
    max_read_bytes: PositiveInt = Field(default=4 * GB, description="Values in one reply together.")
    max_sessions: PositiveInt = Field(default=64, description="Sessions at a time, of all keys together.")
    max_streams: PositiveInt = Field(default=64, description="Open streams of one session.")
    max_pending_frames: PositiveInt = Field(
        default=256,
        description="Frames of one session that wait to run; over HTTP, further ones are turned away.",
    )
    max_stream_backlog_bytes: PositiveInt = Field(
        default=64 * MB,
        description="Bytes that one stream may hold in memory, as frames that wait to run and replies that wait to "
        "be read; beyond it, the server stops reading from the stream.",
    )
    max_graph_export: PositiveInt = Field(
        default=100_000, description="Nodes of a graph that is asked for as JSON or DOT."
    )

    session_ttl_s: PositiveFloat = Field(
        default=3600.0,
        description="Seconds after which a session expires that nobody uses and no stream is connected to.",
    )
    max_session_ttl_s: PositiveFloat = Field(
        default=7 * 86400.0, description="Longest such time that a session may ask for."
    )

    drain_grace_s: float = Field(
        default=0.0,
        ge=0,
        description="Seconds for which a stopping server still answers /readyz with 503, at least.",
    )
    drain_timeout_s: PositiveFloat = Field(
        default=30.0, description="Seconds after which a stopping server gives up on frames that still run."
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is logged."
    )
    log_format: Literal["console", "json"] = Field(default="console", description="Form of the log on stderr.")

    @field_validator("api_keys", mode="before")
    @classmethod
    def _keep_hashes_only(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
        return tuple(hash_key(key.strip()) for key in value if key.strip())

    def engine_limits(self, lower: dict[str, int] | None = None) -> Limits:
        """The engine's limits, as set here, with some of them replaced."""
        limits = {f.name: getattr(self, f.name) for f in fields(Limits) if f.name in type(self).model_fields}
        return Limits(**(limits | (lower or {})))
