"""The server's settings: each is a field here, an environment variable ``GRADWIRE_<NAME>`` and a line of help."""

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

from gradwire_engine.kernels.cpu.toolchain import Mode
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.awake import SPIN_S
from gradwire_protocol.bounds import MAX_DECODED_BYTES

from .secret_files import SecretFiles
from .session_spec import Durability, JournalPolicy

PREFIX: Final = "GRADWIRE_"
HASHED: Final = "sha256:"

LARGEST: Final = (1 << 53) - 1
LONGEST_S: Final = 1_000_000_000.0

MB: Final = 1 << 20
GB: Final = 1 << 30


def variable(name: str) -> str:
    """The environment variable of a setting: ``GRADWIRE_MAX_TENSORS`` sets ``max_tensors``."""
    return PREFIX + name.upper()


def digest_of(secret: str) -> str:
    """SHA-256 of a key or ticket, in hexadecimal. A fast hash is enough because they are long and random."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def hash_key(key: str) -> str:
    """The stored form of an API key. A setting may hold a key in this form, too."""
    return key if key.startswith(HASHED) else HASHED + digest_of(key)


def _listed(value: Any) -> list[str]:
    """The items of a list setting, given as a JSON list or separated by commas."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
        except ValueError:
            raise ValueError("begins with [ but is not a JSON list") from None
    if not all(isinstance(each, str) for each in value):
        raise ValueError("must be a list of strings")
    return [each.strip() for each in value if each.strip()]


class Settings(BaseSettings):
    """Settings from keyword arguments, else from ``GRADWIRE_*`` environment variables.

    Raises:
        pydantic.ValidationError: names each invalid setting.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", allow_inf_nan=False
    )

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 for any free port.")
    api_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="API keys with the scope session, separated by commas or as a JSON list. "
        "A key can be given as its hash, sha256:<hex>; the server keeps only hashes. "
        "GRADWIRE_API_KEYS_FILE names a file with one key per line instead.",
    )
    admin_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="API keys with the scope admin, which can also manage keys and read /metrics. Same form as "
        "GRADWIRE_API_KEYS. GRADWIRE_ADMIN_KEYS_FILE names a file instead.",
    )
    default_device: str = Field(default="cpu", description="Default device of sessions.")

    data_dir: Path | None = Field(
        default=None, description="Directory for data that survives a restart: sessions, keys, the audit log."
    )
    durability: Durability | None = Field(
        default=None,
        description="Default durability of sessions: none, applied (survives a crash of the server) or durable "
        "(survives a power failure). If unset: applied with a data directory, durable with shared storage, else none.",
    )
    store: str = Field(
        default="",
        description="Shared storage of sessions, so that another server can go on with them: a directory that all "
        "servers mount, or s3://bucket/prefix, with the endpoint and the credentials in AWS_* variables. Sessions do "
        "not use the data directory then. Needs the extra gradwire[cluster] for s3.",
    )
    lease_s: float = Field(
        default=6.0,
        ge=1,
        le=600,
        description="Seconds for which a server that does not reach the shared storage still owns its sessions. Other "
        "servers wait a little longer before they take the sessions of a server over that does not answer.",
    )
    journal_bytes: PositiveInt = Field(
        default=64 * MB,
        description="Length of a session's journal at which a snapshot replaces it. A larger last snapshot raises the "
        "threshold to its own size.",
    )
    max_data_bytes: int = Field(
        default=64 * GB,
        ge=0,
        description="Disk space of all sessions together, of all servers on a shared storage; above it new sessions "
        "and uploads are refused. 0 for no limit.",
    )

    compute_threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="CPU threads of the numeric libraries. Sessions that compute at the same time share them. 0 takes "
        "OPENBLAS_NUM_THREADS or OMP_NUM_THREADS, else the number of processors.",
    )
    spin_s: float = Field(
        default=SPIN_S,
        ge=0,
        le=1,
        description="Seconds for which the server polls for a session's next frame after a reply instead of sleeping. "
        "It polls only when frames usually arrive within this time and no other thread needs the processor. 0 turns "
        "polling off, for example where CPU time is billed. A client reads the same variable for its wait for a reply.",
    )
    compiled_kernels: Mode = Field(
        default="auto",
        description="Use of compiled CPU kernels beside NumPy: as soon as they are compiled (auto), never (off), or "
        "from the first frame of each session, which waits for them (wait).",
    )
    cache_dir: Path | None = Field(
        default=None,
        description="Directory that keeps compiled kernels between starts. Default: gradwire in the user's cache "
        "folder. It holds machine code, so the server ignores a directory that other users can write to.",
    )

    max_body_bytes: PositiveInt = Field(default=GB, description="Largest body of an HTTP request.")
    max_json_bytes: PositiveInt = Field(default=16 * MB, description="Largest JSON body of an HTTP request.")
    max_connections: PositiveInt = Field(
        default=1024,
        description="Open connections, streams included; the server answers further ones with 503 and closes them.",
    )
    head_patience_s: PositiveFloat = Field(
        default=20.0, description="Timeout in seconds for the request line and the headers of a request."
    )
    min_body_rate: int = Field(
        default=1024,
        ge=0,
        description="Minimum average rate of a request body in bytes per second, checked after head_patience_s; 0 for "
        "no minimum.",
    )
    max_message_bytes: PositiveInt = Field(
        default=32 * MB, description="Largest message on a stream; clients split larger payloads into chunks."
    )
    max_decoded_bytes: PositiveInt = Field(
        default=MAX_DECODED_BYTES,
        description="Memory of the decoded values of one message or JSON body, raw buffers excluded. Also the limit of "
        "one reply as JSON.",
    )
    max_tensor_bytes: PositiveInt = Field(default=4 * GB, description="Largest single tensor.")
    max_session_bytes: PositiveInt = Field(default=8 * GB, description="Memory of all tensors of one session.")
    max_tensors: PositiveInt = Field(default=1_000_000, description="Live tensors of one session.")
    max_graph_nodes: PositiveInt = Field(default=2_000_000, description="Nodes of one session's autograd graph.")
    max_ops_per_frame: PositiveInt = Field(default=200_000, description="Op records in one frame.")
    max_read_bytes: PositiveInt = Field(default=4 * GB, description="Total size of the values in one reply.")
    max_op_work: int = Field(
        default=20_000_000_000_000,
        ge=0,
        description="Work of one op, in units of about one multiply-add, estimated from the shapes of its operands; 0 "
        "for no limit.",
    )
    cancel_patience_s: float = Field(
        default=3.0,
        gt=0,
        description="Seconds for a cancelled frame or a deleted session to stop. Then the server replaces its worker "
        "process, unless that would lose another session.",
    )
    max_frame_seconds: int = Field(
        default=600,
        ge=0,
        description="Run time of a frame in seconds, after which its remaining ops fail; 0 for no limit.",
    )
    nccl: bool = Field(
        default=True,
        description="Whether ranks without journals exchange tensors on GPUs by NCCL; otherwise through host memory. A "
        "server can only use it if all servers of the ranks do.",
    )
    plans: Literal["on", "off"] = Field(
        default="on", description="Whether repeated frames run as plans, captured once and replayed."
    )
    max_sessions: PositiveInt = Field(default=64, description="Sessions of all keys together.")
    max_streams: PositiveInt = Field(default=64, description="Open streams of one session.")
    max_pending_frames: PositiveInt = Field(
        default=256, description="Queued frames of one session; further frames over HTTP get 429."
    )
    max_stream_backlog_bytes: PositiveInt = Field(
        default=64 * MB,
        description="Memory of one stream's queued frames and unread replies; above it the server stops reading from "
        "the stream.",
    )
    max_key_backlog_bytes: PositiveInt = Field(
        default=256 * MB,
        description="Memory of one key's queued frames, unread replies, incomplete messages, and bodies of requests "
        "and responses. Above it the server reads large messages from one stream of the key at a time and answers "
        "large requests with 429.",
    )
    max_graph_export: PositiveInt = Field(default=100_000, description="Nodes of a graph exported as JSON or DOT.")

    max_ops_per_second: int = Field(
        default=0,
        ge=0,
        description="Average op records per second of one key; 0 for no limit. The server delays streams above it and "
        "answers requests above it with 429.",
    )
    max_bytes_per_second: int = Field(
        default=0,
        ge=0,
        description="Average bytes per second of one key, sent and received; 0 for no limit. Enforced like "
        "max_ops_per_second.",
    )
    max_requests_per_second: int = Field(
        default=0, ge=0, description="Requests and new streams per second of one key; 0 for no limit."
    )
    max_key_sessions: int = Field(
        default=0, ge=0, description="Sessions of one key; 0 for no limit beside max_sessions."
    )
    max_key_bytes: int = Field(
        default=0,
        ge=0,
        description="Sum of the memory limits of one key's sessions; 0 for no limit beside max_session_bytes.",
    )
    max_key_gpus: int = Field(
        default=0,
        ge=0,
        description="Sum of the GPUs that one key's sessions in a fleet ask for; 0 for no limit. Sessions that share a "
        "worker count each.",
    )
    max_key_cpus: int = Field(
        default=0,
        ge=0,
        description="Sum of the CPUs that one key's sessions in a fleet ask for, or take by default; 0 for no limit.",
    )
    max_key_memory: int = Field(
        default=0,
        ge=0,
        description="Sum of the machines' memory in bytes that one key's sessions in a fleet ask for, or take by "
        "default; 0 for no limit. max_key_bytes bounds what their tensors take.",
    )
    max_key_failures: PositiveInt = Field(
        default=100, description="Wrong API keys per minute from one address; above it the server answers 429."
    )

    session_ttl_s: PositiveFloat = Field(
        default=3600.0,
        description="Idle seconds after which a session expires. A connected stream keeps its session alive.",
    )
    max_session_ttl_s: PositiveFloat = Field(
        default=7 * 86400.0, description="Longest idle time that a session may request."
    )

    session_host: Literal["inline", "process", "ray"] = Field(
        default="inline",
        description="Where sessions run: in the server's process (inline), in worker processes, which can crash and "
        "be replaced separately (process), or on the machines of a Ray cluster, to which this server is a gateway "
        "(ray).",
    )
    worker_per: Literal["key", "session"] = Field(
        default="key", description="Whether the sessions of a key share a worker process or each session has its own."
    )
    max_worker_bytes: int = Field(
        default=0,
        ge=0,
        description="Memory of a worker process beyond what it needs at start, GPU memory excluded; 0 for no limit.",
    )
    worker_patience_s: PositiveFloat = Field(
        default=30.0, description="Seconds without a heartbeat after which the server replaces a worker process."
    )
    park_after_s: float = Field(
        default=900.0,
        ge=0,
        description="Idle seconds after which a session with a journal is unloaded to disk until its next use; 0 for "
        "never. A connected stream keeps its session loaded.",
    )

    placement_timeout_s: PositiveFloat = Field(
        default=25.0,
        description="Seconds for which a new session of a fleet waits for a node with room; then it is refused.",
    )
    warm_workers: int = Field(
        default=1,
        ge=0,
        description="Workers of a fleet that wait without a session, so that the next one starts at once.",
    )
    sessions_per_worker: PositiveInt = Field(
        default=8, description="Sessions of one worker of a fleet (GRADWIRE_WORKER_PER=session: always 1)."
    )
    worker_idle_s: PositiveFloat = Field(
        default=300.0, description="Seconds after which a worker of a fleet without sessions ends."
    )
    worker_cpus: float = Field(
        default=1.0, ge=0, description="CPUs of a worker of a fleet, for sessions that ask for none."
    )
    worker_gpus: float = Field(
        default=1.0, ge=0, description="GPUs of a worker of a fleet, for sessions on a GPU that do not say how many."
    )
    worker_memory: int = Field(
        default=0, ge=0, description="Memory of a worker of a fleet in bytes, for sessions that ask for none; 0: any."
    )
    autoscaling: bool = Field(
        default=False,
        description="Whether the Ray cluster adds nodes on demand. Then a session that no present node can hold waits "
        "for one, up to the placement timeout.",
    )
    direct: bool = Field(
        default=True,
        description="Whether a gateway sends clients to the worker that has their session; else it relays them. A "
        "client reads the same variable.",
    )

    shared_keys: bool = Field(
        default=False,
        description="Whether the data directory of all gateways of a fleet is one shared folder. Only then do gateways "
        "create keys over HTTP, since the others would not know them.",
    )

    drain_grace_s: float = Field(
        default=0.0, ge=0, description="Minimum seconds for which a stopping server answers /readyz with 503."
    )
    drain_timeout_s: PositiveFloat = Field(
        default=30.0, description="Seconds for which a stopping server waits for running frames."
    )

    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="CORS: origins of web pages that may call this server, for example https://app.example.com, "
        "separated by commas or as a JSON list.",
    )
    ticket_ttl_s: PositiveFloat = Field(default=30.0, le=600, description="Seconds for which a stream ticket is valid.")
    tls_cert: FilePath | None = Field(
        default=None, description="PEM file with the TLS certificate and its chain; the server then speaks https."
    )
    tls_key: FilePath | None = Field(default=None, description="PEM file with the certificate's private key.")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto the server trusts, "
        "separated by commas or as a JSON list.",
    )
    root_path: str = Field(
        default="", description="Path prefix under which a proxy publishes this server, for example /gradwire."
    )
    audit_log: Path | None = Field(
        default=None,
        description="File of the audit log. Default: audit.log in the data directory, else the log on stderr.",
    )
    max_audit_bytes: PositiveInt = Field(
        default=64 * MB, description="Size at which the audit log is rotated; the server keeps eight older files."
    )

    trace_endpoint: str = Field(
        default="",
        description="OTLP/HTTP endpoint for OpenTelemetry traces, for example http://collector:4318/v1/traces; empty "
        "turns tracing off. Needs the extra gradwire[otel].",
    )
    trace_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Sampling ratio of traces that begin at the server. For a client's trace, the client's decision "
        "counts.",
    )

    console: bool = Field(
        default=True, description="Serve the console, a web page that shows what runs, under `/console`."
    )
    console_sign_in_s: float = Field(
        default=12 * 3600.0, ge=1, description="Seconds after which a sign-in to the console ends."
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Minimum log level.")
    log_format: Literal["console", "json"] = Field(default="console", description="Format of the log on stderr.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Precedence: keyword arguments, variables, files that variables name."""
        return init_settings, env_settings, SecretFiles(settings_cls)

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: Any) -> Any:
        # Replies carry limits as 64-bit integers, and times are added to dates.
        most = {int: LARGEST, float: LONGEST_S}.get(type(value))
        if most is not None and value > most:
            raise ValueError(f"must be at most {most:,}")
        return value

    @field_validator("api_keys", "admin_keys", mode="before")
    @classmethod
    def _keep_hashes_only(cls, value: Any) -> Any:
        return tuple(hash_key(key) for key in _listed(value))

    @field_validator("direct", mode="before")
    @classmethod
    def _as_clients_read_it(cls, value: Any) -> Any:
        return True if value == "plain" else value

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
                raise ValueError(f"{origin!r} must be a scheme and a host, for example https://app.example.com")
        return found

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _networks(cls, value: Any) -> Any:
        try:
            return tuple(str(ip_network(each, strict=False)) for each in _listed(value))
        except ValueError as error:
            raise ValueError(f"{error}; must be addresses or networks, for example 10.0.0.0/8") from None

    @field_validator("root_path")
    @classmethod
    def _plain_path(cls, value: str) -> str:
        path = value.rstrip("/")
        if path and not re.fullmatch(r"(/(?!\.+(/|$))[A-Za-z0-9._~-]+)+", path):
            raise ValueError(f"{value!r} must be a path of plain segments, for example /gradwire")
        return path

    @field_validator("trace_endpoint")
    @classmethod
    def _url(cls, value: str) -> str:
        if value and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc):
            raise ValueError("must be a URL, for example http://collector:4318/v1/traces")
        return value

    @model_validator(mode="after")
    def _somewhere_to_keep(self) -> Settings:
        if self.durability not in (None, "none") and self.session_host == "ray" and not self.store:
            raise ValueError(f"GRADWIRE_DURABILITY={self.durability} requires GRADWIRE_STORE in a fleet")
        if self.durability not in (None, "none") and self.data_dir is None and not self.store:
            raise ValueError(f"GRADWIRE_DURABILITY={self.durability} requires GRADWIRE_DATA_DIR or GRADWIRE_STORE")
        return self

    @model_validator(mode="after")
    def _owned_by_the_server(self) -> Settings:
        # The lease is that of the server's process, which checks it after each commit.
        if self.store and self.session_host == "process":
            raise ValueError("GRADWIRE_STORE requires GRADWIRE_SESSION_HOST=inline")
        return self

    @field_validator("store")
    @classmethod
    def _known_storage(cls, value: str) -> str:
        if "://" in value and (urlsplit(value).scheme != "s3" or not urlsplit(value).netloc):
            raise ValueError(f"{value!r} must be a directory or s3://bucket/prefix")
        return value

    @model_validator(mode="after")
    def _both_or_neither(self) -> Settings:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("set both GRADWIRE_TLS_CERT and GRADWIRE_TLS_KEY, or neither")
        return self

    def promised_durability(self) -> Durability:
        """The durability of sessions that request none."""
        if self.durability is not None:
            return self.durability
        if self.store:
            return "durable"
        return "none" if self.data_dir is None else "applied"

    def journal_policy(self) -> JournalPolicy:
        """How much disk space sessions may use."""
        return JournalPolicy(self.journal_bytes, self.max_data_bytes)

    def engine_limits(self, lower: dict[str, int] | None = None) -> Limits:
        """The engine's limits; ``lower`` replaces some of them."""
        limits = {f.name: getattr(self, f.name) for f in fields(Limits) if f.name in type(self).model_fields}
        limits["plans"] = int(self.plans == "on")
        return Limits(**(limits | (lower or {})))
