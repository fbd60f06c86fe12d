"""Bodies of REST requests and responses that are not frames. They are the OpenAPI document's schemas, too."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gradwire_protocol.frames import MAX_ID

from .durable.spec import Durability

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Bound = Annotated[int, Field(ge=1, le=MAX_ID)]


class Body(BaseModel):
    """A request's body: what is not declared is refused, and nothing is converted from another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


Device = Annotated[str | None, Field(pattern=r"^(cpu|cuda(:\d{1,3})?)$")]
Seconds = Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)]


class SessionLimits(Body):
    """Limits of one session. They can only be lower than the server's."""

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
    """What a new session shall be like."""

    device: Device = Field(default=None, description="Where its tensors live unless an op says otherwise.")
    default_dtype: Literal["float16", "bfloat16", "float32", "float64"] = Field(
        default="float32", description="The dtype that Python floats become."
    )
    limits: SessionLimits | None = None
    ttl_s: Seconds = Field(default=None, description="Seconds of disuse after which it expires.")
    durability: Durability | None = Field(
        default=None,
        description="What it survives: nothing, the death of the server (applied), or the loss of power (durable). By "
        "default what the server promises; without a data directory that can only be none.",
    )
    seed: int | None = Field(default=None, ge=0, lt=2**63, description="Where its random numbers start.")


class SessionView(BaseModel):
    """A session."""

    id: str
    device: str
    default_dtype: str
    ttl_s: float
    durability: Durability = Field(description="What it survives.")
    state: Literal["running", "dormant", "damaged"] = Field(
        description="A dormant session is on disk only, and is brought back by its next use. Of a damaged one not even "
        "that can be read how it was asked for: it can be deleted, or its files be restored."
    )
    created_at: str
    expires_at: str = Field(description="When it expires if nobody uses it from now on.")
    streams: int = Field(description="Open streams.")
    limits: dict[str, int]


class SessionDetail(SessionView):
    """A session, with what it holds."""

    contents: dict[str, Any] = Field(
        description="Counts and sizes: tensors, memory, graph nodes, frames, ops; in plans, how many frames ran "
        "as plans and why others did not. While a long op runs, busy is true, "
        "and what the graph keeps for backward is as it was age_s seconds ago."
    )


class SessionList(BaseModel):
    """The sessions of a key."""

    sessions: list[SessionView]


class MemoryView(BaseModel):
    """What a session's tensors occupy, in bytes."""

    live_bytes: int = Field(description="Held by tensors and by the graph, each piece of memory once.")
    saved_bytes: int = Field(description="Those of them that the graph keeps for backward.")
    pooled_bytes: int = Field(description="Held in reserve by the session's pools of GPU memory; 0 on the CPU.")
    peak_bytes: int = Field(description="The most that was live at once, since the session began or it was reset.")
    limit_bytes: int = Field(description="The session's limit for what is live.")
    busy: bool = Field(default=False, description="A long op runs: saved_bytes and pooled_bytes are of earlier.")
    age_s: float = Field(default=0.0, description="How many seconds earlier.")


class CancelledView(BaseModel):
    """Frames that were asked to stop."""

    frames: int = Field(description="How many of them waited or ran.")


class ClientView(BaseModel):
    """A client of a session."""

    client: int = Field(description="Its number, for the frames' ``client``.")
    expected: int = Field(description="The number (``seq``) of its next frame.")
    first_id: int = Field(description="The first of the ids that its results can have.")


class TensorRow(BaseModel):
    """A live tensor, without its values."""

    model_config = ConfigDict(extra="allow")

    id: int
    shape: list[int]
    dtype: str
    device: str
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None
    name: str | None


class TensorList(BaseModel):
    """A page of a session's tensors, by rising id."""

    tensors: list[TensorRow]
    next: int | None = Field(description="Pass as ``after`` to get the next page; null on the last one.")


class TensorStored(BaseModel):
    """A tensor that was written."""

    id: int
    dtype: str
    shape: list[int]
    created: bool = Field(description="Whether the id was new; otherwise the tensor's values were replaced.")


class ValueView(BaseModel):
    """A tensor's values as nested lists; see ``Payload`` for the form of special numbers."""

    dtype: str
    shape: list[int]
    values: Any


class TensorView(ValueView):
    """A tensor with its values."""

    id: int


class BackwardRequest(Body):
    """Arguments of ``torch.autograd.backward``; tensors by id."""

    tensors: list[Id] = Field(min_length=1, max_length=10_000)
    gradients: list[Id | None] | None = Field(
        default=None, description="Initial gradients; null for a tensor of one element."
    )
    inputs: list[Id] | None = Field(
        default=None, min_length=1, description="Leaves to accumulate into; all by default."
    )
    retain_graph: bool | None = Field(default=None, description="By default the value of ``create_graph``.")
    create_graph: bool = False
    grads_of: list[Id] = Field(
        default=[], max_length=10_000, description="Tensors whose ``grad`` shall be in the response."
    )


class BackwardReply(BaseModel):
    """The gradients asked for, in order; null where there is none."""

    grads: list[ValueView | None]


class GradRequest(Body):
    """Arguments of ``torch.autograd.grad``; tensors by id."""

    outputs: list[Id] = Field(min_length=1, max_length=10_000)
    inputs: list[Id] = Field(min_length=1, max_length=10_000)
    grad_outputs: list[Id | None] | None = None
    retain_graph: bool | None = Field(default=None, description="By default the value of ``create_graph``.")
    create_graph: bool = False
    allow_unused: bool = False
    keep: bool = Field(default=False, description="Leave the gradients in the session; implied by ``create_graph``.")


class GradReply(BaseModel):
    """Gradients in the order of the inputs; null for an unused one. ``ids`` is null unless they were kept."""

    gradients: list[ValueView | None]
    ids: list[int] | None


class GraphView(BaseModel):
    """The live autograd graph."""

    model_config = ConfigDict(extra="allow")

    nodes: list[dict[str, Any]] = Field(
        description="Each with its id, name, shapes and dtypes of its results, saved_bytes (kept for backward), freed "
        "(by an earlier backward, or to be computed again), position (of the record that made it) and ids of the "
        "tensors it made."
    )
    edges: list[dict[str, Any]] = Field(description="From a node, to the node that its gradient flows to, at slot.")
    saved_bytes: int = Field(description="What the nodes keep for backward together, each piece of memory once.")


Scopes = Annotated[list[Literal["read", "session", "admin"]], Field(min_length=1, max_length=3)]
Quota = Annotated[int, Field(ge=0, le=MAX_ID)]


class KeyQuotas(Body):
    """Limits of one key instead of the server's settings of these names; 0 for no limit."""

    max_ops_per_second: Quota | None = None
    max_bytes_per_second: Quota | None = None
    max_requests_per_second: Quota | None = None
    max_key_sessions: Quota | None = None
    max_key_bytes: Quota | None = None


class KeyRequest(Body):
    """What a new key shall be like."""

    name: str = Field(min_length=1, max_length=100, description="For people, to know it again.")
    scopes: Scopes = Field(default=["session"], description="What it covers; ``session`` covers ``read``, too.")
    tenant: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_.-]{1,64}$",
        description="Owner of the sessions it opens, such as that of a key which it replaces; a new one by default.",
    )
    expires_in_s: float | None = Field(
        default=None, gt=0, le=1e9, allow_inf_nan=False, description="Seconds after which it opens nothing any more."
    )
    quotas: KeyQuotas | None = None


class KeyView(BaseModel):
    """A key, without its text."""

    id: str
    name: str
    tenant: str
    scopes: list[str]
    quotas: dict[str, int]
    kept: str = Field(description="``file``; ``memory``, until the server stops; ``setting``, by who starts it.")
    state: str = Field(description="``active``, ``expired`` or ``revoked``.")
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None = Field(description="To about a minute.")


class KeyMade(KeyView):
    """A key that was made."""

    key: str = Field(description="Its text, which is shown this once.")


class KeyList(BaseModel):
    """All keys of the server."""

    keys: list[KeyView]


class TicketRequest(Body):
    """Which session a ticket is for."""

    session: str = Field(min_length=1, max_length=100, description="Id of a session of this key.")


class TicketView(BaseModel):
    """A ticket."""

    ticket: str = Field(description="For the stream's URL: ``?ticket=...``. It is used up by being shown.")
    session: str
    expires_at: str


class ParamView(BaseModel):
    """A parameter of an op."""

    name: str
    type: str
    kind: str = Field(description="How it travels in a record.")
    required: bool
    default: Any = None
    differentiable: bool


class OpView(BaseModel):
    """A row of the op table."""

    name: str
    family: str
    signature: str
    doc: str
    params: list[ParamView]
    results: int | None = Field(description="Null where it depends on the arguments.")
    differentiable: bool
    grad_fn: str | None
    in_place: bool
    base: str | None = Field(description="The op that an in-place form belongs to.")
    random: bool
    dynamic: bool = Field(description="The result's shape depends on data.")
    control: bool = Field(description="It acts on the session rather than computing a value.")


class OpList(BaseModel):
    """The op table."""

    protocol: int
    ops: list[OpView]


class VersionView(BaseModel):
    """What this server is."""

    name: str
    version: str
    protocol: int
    capabilities: list[str]
    devices: list[str]


class DeviceView(BaseModel):
    """A device that tensors can live on."""

    name: str = Field(description="What requests call it: cpu, cuda:0, ...")
    model: str = Field(description="What its maker calls it.")
    total_bytes: int = Field(description="All of its memory; 0 where the system does not tell.")
    free_bytes: int = Field(description="Memory that nobody uses at the moment.")
    capability: list[int] | None = Field(description="Of a GPU: its compute capability, major and minor.")
    multiprocessors: int = Field(description="Of a GPU its multiprocessors, of the CPU its cores.")


class DeviceList(BaseModel):
    """The devices of the server, the CPU first."""

    devices: list[DeviceView]


class Health(BaseModel):
    """Whether the server lives."""

    status: str
