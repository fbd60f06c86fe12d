"""Bodies of REST requests and responses other than frames, and their OpenAPI schemas."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from gradwire_protocol.frames import ID_BITS, MAX_ID, MAX_NAME_CHARS
from gradwire_protocol.ops.collectives import GROUP_LENGTH, MAX_WORLD_SIZE
from gradwire_protocol.suggestions import did_you_mean

from ..settings.session_spec import Durability

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Bound = Annotated[int, Field(ge=1, le=MAX_ID)]


class Body(BaseModel):
    """A request's body. Unknown members are refused, and values are not converted from other types."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _suggest(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Add to the error of an unknown field the one that was meant."""
        try:
            return validate(given)
        except ValidationError as error:
            found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")  # the likely cause first
            if found[0]["type"] != "extra_forbidden":
                raise
            lines = [cls._explained(each) for each in found]
            raise ValidationError.from_exception_data(error.title, lines) from None

    @classmethod
    def _explained(cls, line: ErrorDetails) -> InitErrorDetails:
        text, loc = line["msg"], line["loc"]
        if line["type"] == "extra_forbidden" and len(loc) == 1:
            text = f"unknown field {loc[0]!r:.80} of {cls.__name__}{did_you_mean(str(loc[0]), cls.model_fields)}"
        kind = PydanticCustomError(line["type"], "{text}", {"text": text})
        return InitErrorDetails(type=kind, loc=loc, input=line["input"])


Device = Annotated[str | None, Field(pattern=r"^(cpu|cuda(:\d{1,3})?)$")]
Seconds = Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)]


class SessionLimits(Body):
    """Limits of one session, at most those of the server."""

    max_tensor_bytes: Bound | None = None
    max_session_bytes: Bound | None = None
    max_tensors: Bound | None = None
    max_graph_nodes: Bound | None = None
    max_ops_per_frame: Bound | None = None
    max_read_bytes: Bound | None = None
    max_decoded_bytes: Bound | None = None
    max_op_work: Bound | None = None
    max_frame_seconds: Bound | None = None


class SessionRequest(Body):
    """The parameters of a new session."""

    device: Device = Field(default=None, description="Default device of its tensors.")
    default_dtype: Literal["float16", "bfloat16", "float32", "float64"] = Field(
        default="float32", description="Default floating-point dtype."
    )
    limits: SessionLimits | None = None
    name: str = Field(default="", max_length=100, description="What people call it, in listings and in the console.")
    ttl_s: Seconds = Field(default=None, description="Idle seconds after which it expires.")
    durability: Durability | None = Field(
        default=None,
        description="none, applied (survives a crash of the server) or durable (survives a power failure). Default: "
        "the server's. A server without a data directory supports only none.",
    )
    seed: int | None = Field(default=None, ge=0, lt=2**63, description="Seed of its random number generator.")
    gpu: Annotated[str, Field(min_length=1, max_length=64)] | bool | None = Field(
        default=None, description="In a fleet: a GPU of this model, or true for any."
    )
    gpus: float | None = Field(
        default=None, ge=0, le=64, allow_inf_nan=False, description="In a fleet: GPUs; a fraction shares one."
    )
    cpus: float | None = Field(default=None, ge=0, le=4096, allow_inf_nan=False, description="In a fleet: CPUs.")
    memory: Annotated[str, Field(min_length=1, max_length=32)] | Annotated[int, Field(ge=0, le=MAX_ID)] | None = Field(
        default=None, description="In a fleet: memory of its machine, in bytes or as 40GB."
    )
    resources: dict[Annotated[str, Field(max_length=64)], Annotated[float, Field(ge=0, le=1e9)]] | None = Field(
        default=None, max_length=16, description="In a fleet: custom resources of Ray."
    )
    labels: dict[Annotated[str, Field(max_length=128)], Annotated[str, Field(max_length=128)]] | None = Field(
        default=None, max_length=16, description="In a fleet: labels that its node must have."
    )

    def placement(self) -> dict[str, Any]:
        """What it asks of its machine."""
        return self.model_dump(include=set(PLACEMENT), exclude_none=True)


PLACEMENT: Final = ("gpu", "gpus", "cpus", "memory", "resources", "labels")


class SessionView(BaseModel):
    """A session."""

    id: str
    name: str = Field(default="", description="What its program calls it.")
    device: str
    default_dtype: str
    ttl_s: float
    durability: Durability = Field(description="What its acknowledged frames survive.")
    state: Literal["running", "dormant", "damaged"] = Field(
        description="A dormant session is on disk only; its next use loads it. The description of a damaged session on "
        "disk is unreadable; delete the session or restore its files."
    )
    past_of: str | None = Field(default=None, description="The session whose past it shows.")
    activity: Literal["idle", "computing", "compiling", "waking"] = Field(
        description="What its clients wait for: its frames are computed, a GPU kernel is compiled meanwhile, or the "
        "session is being loaded from its snapshot and journal."
    )
    created_at: str
    expires_at: str = Field(description="When it expires if it stays idle.")
    streams: int = Field(description="Open streams.")
    limits: dict[str, int]


class SessionDetail(SessionView):
    """A session and its contents."""

    contents: dict[str, Any] | None = Field(
        default=None,
        description="Counts and sizes: tensors (with ids), names, memory, graph nodes, frames, ops. plans has the "
        "number of frames that ran by a plan and why others did not. kernels tells whether the session uses compiled "
        "CPU kernels, and whether these are ready. While a long op runs, busy is true, and the memory saved for "
        "backward is age_s seconds old.",
    )


class SessionList(BaseModel):
    """The sessions of a tenant."""

    sessions: list[SessionView]


class MemoryView(BaseModel):
    """The memory of a session in bytes."""

    live_bytes: int = Field(description="Memory of tensors and of the graph; shared memory counts once.")
    saved_bytes: int = Field(description="The part of it that the graph saves for backward.")
    pooled_bytes: int = Field(description="Unused memory in the session's GPU memory pools; 0 on the CPU.")
    peak_bytes: int = Field(description="Maximum of live_bytes since the session's start or the last reset.")
    limit_bytes: int = Field(description="The session's limit for live_bytes.")
    busy: bool = Field(default=False, description="A long op runs; saved_bytes and pooled_bytes are older values.")
    age_s: float = Field(default=0.0, description="Age of these values in seconds.")


class CancelledView(BaseModel):
    """Cancelled frames."""

    frames: int = Field(description="Number of queued or running frames that were cancelled.")


class ClientView(BaseModel):
    """A client of a session."""

    client: int = Field(ge=0, le=MAX_ID >> ID_BITS, description="The client's number, for ``client`` in frames.")
    expected: int = Field(description="The number (``seq``) of its next frame.")
    first_id: int = Field(description="The first id of the client's range of ids.")


class TensorFacts(BaseModel):
    """A live tensor, without its values."""

    model_config = ConfigDict(extra="allow")

    shape: list[int]
    dtype: str
    device: str
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None


class TensorRow(TensorFacts):
    """A live tensor with an id, without its values."""

    id: int
    name: str | None


class NamedRow(TensorFacts):
    """A live tensor with a name, without its values."""

    name: str


class NameList(BaseModel):
    """A page of a session's named tensors, in the order of their names."""

    names: list[NamedRow]
    next: str | None = Field(description="The value of ``after`` for the next page; null on the last page.")


class TensorList(BaseModel):
    """A page of a session's tensors, by ascending id."""

    tensors: list[TensorRow]
    next: int | None = Field(description="The value of ``after`` for the next page; null on the last page.")


class TensorStored(BaseModel):
    """A written tensor."""

    id: int
    dtype: str
    shape: list[int]
    created: bool = Field(description="Whether the tensor is new; otherwise its values were replaced.")


class NamedStored(BaseModel):
    """A written tensor."""

    name: str
    dtype: str
    shape: list[int]
    created: bool = Field(description="Whether the tensor is new; otherwise its values were replaced.")


class ValueView(BaseModel):
    """A tensor's values as nested lists; ``Payload`` describes special numbers."""

    dtype: str
    shape: list[int]
    values: Any


class TensorView(ValueView):
    """A tensor with its values."""

    id: int


class NamedView(ValueView):
    """A named tensor with its values."""

    name: str


class BackwardRequest(Body):
    """Arguments of ``torch.autograd.backward``; tensors by id."""

    tensors: list[Id] = Field(min_length=1, max_length=10_000)
    gradients: list[Id | None] | None = Field(
        default=None, description="Initial gradients; null for a tensor with one element."
    )
    inputs: list[Id] | None = Field(default=None, min_length=1, description="Leaves to accumulate into. Default: all.")
    retain_graph: bool | None = Field(default=None, description="Default: the value of ``create_graph``.")
    create_graph: bool = False
    grads_of: list[Id] = Field(
        default=[], max_length=10_000, description="Tensors whose ``grad`` the response returns."
    )


class BackwardReply(BaseModel):
    """The requested gradients in order; null for a missing gradient."""

    grads: list[ValueView | None]


class GradRequest(Body):
    """Arguments of ``torch.autograd.grad``; tensors by id."""

    outputs: list[Id] = Field(min_length=1, max_length=10_000)
    inputs: list[Id] = Field(min_length=1, max_length=10_000)
    grad_outputs: list[Id | None] | None = None
    retain_graph: bool | None = Field(default=None, description="Default: the value of ``create_graph``.")
    create_graph: bool = False
    allow_unused: bool = False
    keep: bool = Field(default=False, description="Keep the gradients in the session; implied by ``create_graph``.")


class GradReply(BaseModel):
    """Gradients in the order of the inputs; null for an unused input. ``ids`` is null unless they were kept."""

    gradients: list[ValueView | None]
    ids: list[int] | None


class GraphNode(BaseModel):
    """A node of the autograd graph."""

    id: int
    name: str
    shapes: list[list[int]] = Field(description="Shapes of its results.")
    dtypes: list[str] = Field(description="Dtypes of its results.")
    saved_bytes: int = Field(description="Memory that it saves for backward; shared memory counts for each node.")
    freed: bool = Field(description="By an earlier backward, or to be recomputed.")
    custom: bool = Field(description="Its derivative is a program's own.")
    position: int = Field(description="Number of the record that created it.")
    tensors: list[int] = Field(description="Ids of its results, or of the leaf itself.")


class GraphEdge(BaseModel):
    """An edge from a node to the node that gets its gradient."""

    from_: int = Field(alias="from", description="Id of the node.")
    to: int = Field(description="Id of the node that gets the gradient.")
    slot: int = Field(description="The output of that node.")


class GraphRoot(BaseModel):
    """A tensor and the node that it is a result of."""

    tensor: int
    node: int


class GraphView(BaseModel):
    """The live autograd graph."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    roots: list[GraphRoot] = Field(description="The tensors that the walk began at.")
    saved_bytes: int = Field(description="Memory that all nodes save for backward; shared memory counts once.")


Scopes = Annotated[list[Literal["read", "session", "admin"]], Field(min_length=1, max_length=3)]
Quota = Annotated[int, Field(ge=0, le=MAX_ID)]


class KeyQuotas(Body):
    """Limits of one key, which override the server's settings of these names; 0 for no limit."""

    max_ops_per_second: Quota | None = None
    max_bytes_per_second: Quota | None = None
    max_requests_per_second: Quota | None = None
    max_key_sessions: Quota | None = None
    max_key_bytes: Quota | None = None
    max_key_gpus: Quota | None = None
    max_key_cpus: Quota | None = None
    max_key_memory: Quota | None = None


class KeyRequest(Body):
    """The parameters of a new key."""

    name: str = Field(min_length=1, max_length=100, description="A label for this key.")
    scopes: Scopes = Field(default=["session"], description="Scopes of the key; ``session`` includes ``read``.")
    tenant: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_.-]{1,64}$",
        description="Owner of its sessions. Default: a new tenant. Use an existing tenant to replace a key.",
    )
    expires_in_s: float | None = Field(
        default=None, gt=0, le=1e9, allow_inf_nan=False, description="Seconds until the key expires. Default: never."
    )
    quotas: KeyQuotas | None = None


class KeyView(BaseModel):
    """A key, without the secret."""

    id: str
    name: str
    tenant: str
    scopes: list[str]
    quotas: dict[str, int]
    kept: str = Field(description="Storage: ``file``, ``memory`` (until the server stops) or ``setting``.")
    state: str = Field(description="``active``, ``expired`` or ``revoked``.")
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None = Field(description="Precise to about a minute.")


class KeyMade(KeyView):
    """A created key."""

    key: str = Field(description="The secret. The server cannot show it again.")


class KeyList(BaseModel):
    """All keys of the server."""

    keys: list[KeyView]


class TicketRequest(Body):
    """The parameters of a new ticket."""

    session: str = Field(min_length=1, max_length=100, description="Id of a session of this key.")


class TicketView(BaseModel):
    """A ticket."""

    ticket: str = Field(description="For the stream's URL: ``?ticket=...``. Single-use: any attempt consumes it.")
    session: str
    expires_at: str


class ParamView(BaseModel):
    """A parameter of an op."""

    name: str
    type: str
    kind: str = Field(description="Its encoding in a record.")
    required: bool
    default: Any = None
    differentiable: bool


class DeclaredOp(BaseModel):
    """A row of the op table."""

    name: str
    family: str
    signature: str
    doc: str
    params: list[ParamView]
    schema_: dict[str, Any] = Field(alias="schema", description="JSON schema of its arguments by name.")
    results: int | None = Field(description="Number of results; null if it depends on the arguments.")
    differentiable: bool
    grad_fn: str | None
    in_place: bool
    base: str | None = Field(description="The base op of an in-place form.")
    random: bool
    dynamic: bool = Field(description="The shape of the result depends on data.")
    control: bool = Field(description="The op changes the session instead of computing a value.")


class DeclaredOps(BaseModel):
    """The op table."""

    protocol: int
    ops: list[DeclaredOp]


class VersionView(BaseModel):
    """The server's version and capabilities."""

    name: str
    version: str
    protocol: int
    capabilities: list[str]
    devices: list[str]
    kernels: Literal["idle", "preparing", "ready", "failed"] = Field(
        description="Whether the compiled CPU kernels are there. Preparing them takes minutes on a new machine."
    )


class DeviceView(BaseModel):
    """A device for tensors."""

    name: str = Field(description="Name in requests: cpu, cuda:0, ...")
    model: str = Field(description="Model name.")
    total_bytes: int = Field(description="Total memory; 0 if unknown.")
    free_bytes: int = Field(description="Free memory.")
    capability: list[int] | None = Field(description="Compute capability of a GPU: major and minor.")
    multiprocessors: int = Field(description="Multiprocessors of a GPU, cores of the CPU.")


class DeviceList(BaseModel):
    """The devices of the server, the CPU first."""

    devices: list[DeviceView]


class CallerView(BaseModel):
    """The key that a request came with, without the secret."""

    id: str
    name: str
    scopes: list[str]
    expires_at: str | None


class CudaView(BaseModel):
    """What the server's GPUs need."""

    cupy: str | None = Field(description="Version of CuPy; null where it is not installed.")
    driver: str | None = Field(description="Newest CUDA version that the driver supports; null without a driver.")
    runtime: str | None = Field(description="Version of the CUDA runtime in use.")
    problem: str = Field(description="Why no GPU can be used; empty if they can, or without CuPy.")


class KernelsView(BaseModel):
    """The compiled CPU kernels."""

    mode: str = Field(description="The setting ``compiled_kernels``: ``auto``, ``off`` or ``wait``.")
    state: str | None = Field(
        description="``idle``, ``preparing``, ``ready`` or ``failed``; null where sessions run in other processes."
    )
    reason: str = Field(description="Why they failed, or why the cache cannot be inspected.")
    kept: bool | None = Field(description="Whether the cache keeps kernels between starts; null if unknown.")
    complete: bool | None = Field(description="Whether the cache has all kernels of this version and processor.")


class StorageView(BaseModel):
    """Where the server keeps sessions."""

    kind: str = Field(description="``directory`` or ``shared``.")
    durability: str = Field(description="Durability of sessions that request none.")
    total_bytes: int | None = Field(description="Size of the disk; null for an object store.")
    free_bytes: int | None = Field(description="Free space of the disk; null for an object store.")
    writable: bool | None = Field(description="Whether the server may write there; null for an object store.")


class DiagnosticsView(BaseModel):
    """What a client cannot find out about the server by itself. Holds no paths and nothing of other tenants."""

    key: CallerView
    sessions: int | None = Field(description="Sessions of the key's tenant; null at the gateway of a fleet.")
    limits: dict[str, int] = Field(description="The settings ``max_*`` as they apply to this key; 0 for no limit.")
    session_host: str = Field(description="Where sessions run: ``inline``, ``process`` or ``ray``.")
    libraries: dict[str, str] = Field(description="Versions of Python and the libraries that compute.")
    cuda: CudaView | None = Field(description="Null at the gateway of a fleet, which computes nothing.")
    kernels: KernelsView | None = Field(description="Null at the gateway of a fleet.")
    storage: StorageView | None = Field(description="Null where sessions are kept in memory only.")


class Health(BaseModel):
    """The state of the server."""

    status: str


# Groups


class GroupRequest(Body):
    """The parameters of a group that a session joins as one of its ranks."""

    group: str = Field(min_length=1, max_length=GROUP_LENGTH, description="Name of the group, the same for all ranks.")
    rank: int = Field(ge=0, lt=MAX_WORLD_SIZE, description="Which rank the session is.")
    world_size: int = Field(ge=1, le=MAX_WORLD_SIZE, description="How many ranks the group has.")
    timeout_s: float = Field(
        default=300.0, gt=0, le=86_400, allow_inf_nan=False,
        description="How long this request waits for the other ranks, and later each collective.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _rank_exists(self) -> Self:
        if self.rank >= self.world_size:
            raise ValueError(f"rank {self.rank} is not among the {self.world_size} ranks of the group")
        return self


class GroupMember(BaseModel):
    """A rank of a group."""

    rank: int
    session: str
    worker: str = Field(description="Host name and process that run the session.")


class GroupView(BaseModel):
    """A group that was opened."""

    group: str
    rank: int
    world_size: int
    timeout_s: float
    members: list[GroupMember]


class GroupCounts(BaseModel):
    """What a session has done in an open group."""

    group: str
    rank: int
    world_size: int
    completed: int = Field(description="Collectives that are complete.")
    bytes_sent: int = Field(description="Bytes of tensors that were sent to other ranks.")
    bytes_received: int
    wire_bytes_sent: int = Field(description="As bytes_sent, with headers and what was sent again.")
    waited_s: float = Field(description="Time spent waiting for other ranks.")
    connected: int = Field(description="Open connections.")
    reconnects: int = Field(description="Connections that came again.")
    failed: str = Field(description="Why the group has ended; empty while it works.")
    nccl: bool = Field(description="Whether the ranks' GPUs are connected by NCCL, since the first collective of them.")


class GroupList(BaseModel):
    """The groups that a session has open."""

    groups: list[GroupCounts]


CheckpointName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS, pattern=r"^[^/\x00-\x1f]+$")]
Frame = Annotated[int, Field(ge=0, le=MAX_ID)]


class CheckpointRequest(Body):
    """A checkpoint to keep."""

    name: CheckpointName = Field(description="Its name; a checkpoint that had the name is forgotten.")


class CheckpointView(BaseModel):
    """A checkpoint."""

    name: str
    frame: int = Field(description="How many frames the session had applied.")
    bytes: int = Field(description="What its file takes on disk.")
    created: float = Field(description="Unix time.")


class RewindRequest(Body):
    """Where to rewind a session to."""

    checkpoint: CheckpointName = Field(description="Name of a checkpoint.")
    frame: Frame | None = Field(
        default=None, description="The checkpoint's frame, to refuse one that has taken the name since. Default: any."
    )


class RewoundView(CheckpointView):
    """The checkpoint to which a session was rewound."""

    rewound_at: int = Field(description="The frame that the rewind counts as.")


class HistoryView(BaseModel):
    """What is kept of a session's past."""

    frame: int = Field(description="How many frames the session has applied.")
    oldest: int = Field(description="The oldest frame that can be seen.")
    checkpoints: list[CheckpointView] = Field(description="Oldest first.")


class ForkRequest(Body):
    """The begin of a fork."""

    frame: Frame | None = Field(default=None, description="After how many frames it begins. Default: now.")
    ttl_s: Seconds = Field(default=None, description="Idle seconds after which it expires. Default: the session's.")


class PastRequest(Body):
    """Which state of a session to look at."""

    frame: Frame = Field(description="After how many frames.")


class FoundView(BaseModel):
    """Where a value was found first."""

    frame: int = Field(description="Frame of the session.")
    client: int
    seq: int = Field(description="Number of the frame among its client's.")
    op: str = Field(description="The op that made it; backward for a derivative's.")
    index: int = Field(description="The record in the frame; -1 if it is in an earlier one.")
    line: str = Field(description="file:line of the program, if it is known.")
    node: str = Field(description="The node of the graph whose derivative made it.")
    shape: list[int]
    name: str


class SearchView(BaseModel):
    """The result of a search."""

    found: FoundView | None
