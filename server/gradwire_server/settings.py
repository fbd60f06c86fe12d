"""Every setting of the server: one field here, one environment variable ``GRADWIRE_<NAME>``, one line of help."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import fields
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, FilePath, PositiveFloat, PositiveInt, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from gradwire_engine.compiled.toolchain import Mode
from gradwire_engine.memory import Limits
from gradwire_engine.plans import MODES
from gradwire_protocol.awake import SPIN_S
from gradwire_protocol.bounds import MAX_DECODED_BYTES

from .durable.spec import Durability, JournalPolicy
from .secret_files import SecretFiles

PREFIX: Final = "GRADWIRE_"
HASHED: Final = "sha256:"

LARGEST: Final = (1 << 53) - 1
LONGEST_S: Final = 1_000_000_000.0

KB: Final = 1 << 10
MB: Final = 1 << 20
GB: Final = 1 << 30


def variable(name: str) -> str:
    """The environment variable of a setting: ``max_tensors`` is set by ``GRADWIRE_MAX_TENSORS``."""
    return PREFIX + name.upper()


def digest_of(secret: str) -> str:
    """SHA-256 of a key or ticket, in hexadecimal. They are long and random, so one fast hash is enough."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def hash_key(key: str) -> str:
    """An API key of a setting in its stored form, in which it may be given as well."""
    return key if key.startswith(HASHED) else HASHED + digest_of(key)


def _listed(value: Any) -> list[str]:
    """What a setting that is a list was given as: a JSON list, or text with commas."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
        except ValueError:
            raise ValueError("it begins with [ and is no JSON list") from None
    if not all(isinstance(each, str) for each in value):
        raise ValueError("it must be a list of texts")
    return [each.strip() for each in value if each.strip()]


class Settings(BaseSettings):
    """Read from ``GRADWIRE_*`` environment variables, or given by keyword.

    Raises:
        pydantic.ValidationError: naming each setting with a value that cannot be used.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", allow_inf_nan=False
    )

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    api_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Keys that open the server, separated by commas or as a JSON list. "
        "A key may be given as sha256:<hex> of itself. Only hashes are kept. "
        "GRADWIRE_API_KEYS_FILE names a file that holds them instead, with a key a line.",
    )
    admin_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Keys that may also manage keys and read /metrics, in the same form. "
        "GRADWIRE_ADMIN_KEYS_FILE names a file that holds them instead.",
    )
    default_device: str = Field(default="cpu", description="Device of sessions that do not ask for one.")

    data_dir: Path | None = Field(
        default=None, description="Directory for what survives a restart: sessions, keys, the audit log."
    )
    durability: Durability | None = Field(
        default=None,
        description="What sessions survive that do not ask for anything: none, the death of the server (applied), or "
        "the loss of power (durable). By default applied where there is a data directory, else none.",
    )
    journal_bytes: PositiveInt = Field(
        default=64 * MB,
        description="Length at which a session's journal is replaced by a snapshot; the size of its last snapshot "
        "where that is more.",
    )
    max_data_bytes: int = Field(
        default=64 * GB,
        ge=0,
        description="Disk space of all sessions together, beyond which new sessions and uploads are refused; 0 for no "
        "limit.",
    )

    compute_threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Threads that the CPU's numeric libraries take for one session; sessions that compute at once "
        "share them. 0 takes OPENBLAS_NUM_THREADS or OMP_NUM_THREADS, else as many as there are processors.",
    )
    spin_s: float = Field(
        default=SPIN_S,
        ge=0,
        le=1,
        description="Seconds in which a server that has answered looks for the session's next frame without falling "
        "asleep, if frames usually come that soon and nobody else wants the processor; 0 where its time is paid for. "
        "The client's own GRADWIRE_SPIN_S is the same while it waits for an answer.",
    )
    compiled_kernels: Mode = Field(
        default="auto",
        description="When the CPU's compiled kernels are used beside NumPy: once they are ready (auto), never (off), "
        "or from each session's first frame, which waits for them (wait).",
    )
    cache_dir: Path | None = Field(
        default=None,
        description="Directory that keeps compiled kernels from one start to the next; by default gradwire in the "
        "user's cache folder. It holds machine code: a directory that others may write to is not used.",
    )

    max_body_bytes: PositiveInt = Field(default=GB, description="Largest body of an HTTP request.")
    max_json_bytes: PositiveInt = Field(default=16 * MB, description="Largest JSON body of an HTTP request.")
    max_connections: PositiveInt = Field(
        default=1024, description="Connections at a time, streams among them; further ones get 503 and are closed."
    )
    head_patience_s: PositiveFloat = Field(
        default=20.0, description="Seconds in which the line and the headers of a request must arrive."
    )
    min_body_rate: int = Field(
        default=1024,
        ge=0,
        description="Bytes in a second, on average, that a request's body must arrive with after head_patience_s; 0 "
        "for any.",
    )
    max_message_bytes: PositiveInt = Field(
        default=32 * MB, description="Largest message on a stream; larger payloads travel in chunks."
    )
    max_decoded_bytes: PositiveInt = Field(
        default=MAX_DECODED_BYTES,
        description="Memory that the values of one message or JSON body may take once they are decoded, beside its raw "
        "buffers; also of one reply as JSON.",
    )
    max_tensor_bytes: PositiveInt = Field(default=4 * GB, description="Largest single tensor.")
    max_session_bytes: PositiveInt = Field(default=8 * GB, description="All memory of one session's tensors.")
    max_tensors: PositiveInt = Field(default=1_000_000, description="Live tensors of one session.")
    max_graph_nodes: PositiveInt = Field(default=2_000_000, description="Nodes of one session's autograd graph.")
    max_ops_per_frame: PositiveInt = Field(default=200_000, description="Op records in one frame.")
    max_read_bytes: PositiveInt = Field(default=4 * GB, description="Values in one reply together.")
    max_op_work: int = Field(
        default=20_000_000_000_000,
        ge=0,
        description="Steps of work (about a multiply-add each) that one op may take, by an estimate from the shapes of "
        "its operands; 0 for no limit.",
    )
    cancel_patience_s: float = Field(
        default=3.0,
        gt=0,
        description="Seconds that a cancelled frame, or a deleted session, has to stop by itself; then the worker "
        "process that runs it is replaced, if that loses no other session.",
    )
    max_frame_seconds: int = Field(
        default=600, ge=0, description="Seconds after which the ops left of a frame are not run; 0 for no limit."
    )
    plans: Literal["on", "off", "shadow"] = Field(
        default="on",
        description="Whether frames that repeat run as plans, captured once and replayed. For tests, shadow runs each "
        "frame both ways and compares the sessions bit for bit.",
    )
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
    max_key_backlog_bytes: PositiveInt = Field(
        default=256 * MB,
        description="Bytes that all streams of one key may hold in memory, likewise, and as messages that are not "
        "whole yet, together with the bodies of its requests and responses; beyond it, the server reads from one "
        "stream at a time, and what is small from the others, and answers requests that are not small with 429.",
    )
    max_graph_export: PositiveInt = Field(
        default=100_000, description="Nodes of a graph that is asked for as JSON or DOT."
    )

    max_ops_per_second: int = Field(
        default=0,
        ge=0,
        description="Op records that one key may have run in a second, on average; 0 for no limit. Streams are "
        "slowed down, requests are turned away.",
    )
    max_bytes_per_second: int = Field(
        default=0, ge=0, description="Bytes that one key may send and be sent in a second, likewise."
    )
    max_requests_per_second: int = Field(
        default=0, ge=0, description="Requests and new streams of one key in a second; 0 for no limit."
    )
    max_key_sessions: int = Field(
        default=0, ge=0, description="Sessions at a time of one key; 0 for no limit beside max_sessions."
    )
    max_key_bytes: int = Field(
        default=0,
        ge=0,
        description="Memory that the sessions of one key may be allowed together, as the sum of their limits; 0 for "
        "no limit beside max_session_bytes.",
    )
    max_key_failures: PositiveInt = Field(
        default=100, description="Wrong API keys that one address may try in a minute; then it is turned away."
    )

    session_ttl_s: PositiveFloat = Field(
        default=3600.0,
        description="Seconds after which a session expires that nobody uses and no stream is connected to.",
    )
    max_session_ttl_s: PositiveFloat = Field(
        default=7 * 86400.0, description="Longest such time that a session may ask for."
    )

    session_host: Literal["inline", "process"] = Field(
        default="inline",
        description="Where sessions run: in the server's own process, or in worker processes, which can fail and be "
        "replaced without it.",
    )
    worker_per: Literal["key", "session"] = Field(
        default="key", description="What has a worker process of its own: the sessions of a key together, or each."
    )
    max_worker_bytes: int = Field(
        default=0,
        ge=0,
        description="Memory that a worker may take beyond what it needs to start, not counting that of GPUs; 0 for "
        "no limit.",
    )
    worker_patience_s: PositiveFloat = Field(
        default=30.0, description="Seconds without a sign of life after which a worker is replaced."
    )
    park_after_s: float = Field(
        default=900.0,
        ge=0,
        description="Seconds after which a session with a folder that nobody uses and no stream is connected to is "
        "put away on disk until its next use; 0 for never.",
    )

    drain_grace_s: float = Field(
        default=0.0,
        ge=0,
        description="Seconds for which a stopping server still answers /readyz with 503, at least.",
    )
    drain_timeout_s: PositiveFloat = Field(
        default=30.0, description="Seconds after which a stopping server gives up on frames that still run."
    )

    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins of web pages that may use this server from a browser, such as https://app.example.com, "
        "separated by commas or as a JSON list.",
    )
    ticket_ttl_s: PositiveFloat = Field(
        default=30.0, le=600, description="Seconds for which a ticket for a stream can be used."
    )
    tls_cert: FilePath | None = Field(
        default=None, description="File with the server's certificate and its chain (PEM); serves https."
    )
    tls_key: FilePath | None = Field(default=None, description="File with the certificate's private key (PEM).")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, "
        "separated by commas or as a JSON list.",
    )
    root_path: str = Field(default="", description="Path under which a proxy shows this server, such as /gradwire.")
    audit_log: Path | None = Field(
        default=None,
        description="File of the audit log; by default audit.log in the data directory, else the log on stderr.",
    )
    max_audit_bytes: PositiveInt = Field(
        default=64 * MB, description="Size at which the audit log is begun anew; eight older ones are kept."
    )

    trace_endpoint: str = Field(
        default="",
        description="Where OpenTelemetry traces go by OTLP over HTTP, as in http://collector:4318/v1/traces; empty "
        "traces nothing. Needs the extra gradwire[otel].",
    )
    trace_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of the traces that are kept, of those that begin here; a client's own traces are kept as "
        "it decided.",
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is logged."
    )
    log_format: Literal["console", "json"] = Field(default="console", description="Form of the log on stderr.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keywords, then variables, then the files that variables name."""
        return init_settings, env_settings, SecretFiles(settings_cls)

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: Any) -> Any:
        # Clients are told limits as integers of 64 bits, and times are added to dates.
        most = {int: LARGEST, float: LONGEST_S}.get(type(value))
        if most is not None and value > most:
            raise ValueError(f"it must be at most {most:,}")
        return value

    @field_validator("api_keys", "admin_keys", mode="before")
    @classmethod
    def _keep_hashes_only(cls, value: Any) -> Any:
        return tuple(hash_key(key) for key in _listed(value))

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _origins(cls, value: Any) -> Any:
        found = tuple(origin.lower() for origin in _listed(value))
        for origin in found:
            parts = urlsplit(origin)
            if (
                parts.scheme not in ("http", "https")
                or not parts.netloc
                or f"{parts.scheme}://{parts.netloc}" != origin
            ):
                raise ValueError(f"{origin!r} is no origin: one is a scheme and a host, as in https://app.example.com")
        return found

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _networks(cls, value: Any) -> Any:
        try:
            return tuple(str(ip_network(each, strict=False)) for each in _listed(value))
        except ValueError as error:
            raise ValueError(f"{error}: it must be addresses or networks, as in 10.0.0.0/8") from None

    @field_validator("root_path")
    @classmethod
    def _plain_path(cls, value: str) -> str:
        path = value.rstrip("/")
        if path and not re.fullmatch(r"(/(?!\.+(/|$))[A-Za-z0-9._~-]+)+", path):
            raise ValueError(f"{value!r} is no path of plain segments, as in /gradwire")
        return path

    @field_validator("trace_endpoint")
    @classmethod
    def _url(cls, value: str) -> str:
        if value and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc):
            raise ValueError("it must be a URL, as in http://collector:4318/v1/traces")
        return value

    @model_validator(mode="after")
    def _somewhere_to_keep(self) -> Settings:
        if self.durability not in (None, "none") and self.data_dir is None:
            raise ValueError(f"GRADWIRE_DURABILITY={self.durability} needs GRADWIRE_DATA_DIR")
        return self

    @model_validator(mode="after")
    def _both_or_neither(self) -> Settings:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("GRADWIRE_TLS_CERT and GRADWIRE_TLS_KEY belong together: one of them is not set")
        return self

    def promised_durability(self) -> Durability:
        """The durability of sessions that do not ask for any."""
        if self.durability is not None:
            return self.durability
        return "none" if self.data_dir is None else "applied"

    def journal_policy(self) -> JournalPolicy:
        """How much disk the sessions may take."""
        return JournalPolicy(self.journal_bytes, self.max_data_bytes)

    def engine_limits(self, lower: dict[str, int] | None = None) -> Limits:
        """The engine's limits, as set here, with some of them replaced."""
        limits = {f.name: getattr(self, f.name) for f in fields(Limits) if f.name in type(self).model_fields}
        limits["plans"] = MODES[self.plans]
        return Limits(**(limits | (lower or {})))
