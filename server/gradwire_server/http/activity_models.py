"""The document of ``GET /v1/activity``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from ..settings.session_spec import Durability
from .models import Body, DeviceView


class ActivityMemory(BaseModel):
    """The last known memory of a session in bytes."""

    live_bytes: int
    saved_bytes: int = Field(description="The part of it that the graph saves for backward.")
    pooled_bytes: int = Field(description="Unused memory in the GPU memory pools of its process; 0 on the CPU.")
    peak_bytes: int
    limit_bytes: int


class ActivityError(BaseModel):
    """The last error of a session's frames."""

    at: str
    code: str
    op: str
    detail: str | None = Field(default=None, description="Missing for other tenants' sessions.")


class ActivityRow(BaseModel):
    """What a session does. Counts are those since this server loaded it first."""

    id: str
    name: str = Field(description="What its program calls it; empty for other tenants' sessions.")
    tenant: str
    device: str
    durability: Durability
    state: Literal["busy", "idle", "dormant", "damaged"] = Field(
        description="busy: frames are queued or running, or ran in the last second."
    )
    created_at: str
    age_s: float
    idle_s: float = Field(description="Seconds since the last use.")
    expires_in_s: float
    streams: int = Field(description="Open streams.")
    pending_frames: int = Field(description="Queued and running frames.")
    memory: ActivityMemory | None = Field(description="null if the session is dormant or was busy since its start.")
    frames_per_second: float = Field(description="Average over the last 5 seconds.")
    ops_per_second: float
    busy: float = Field(description="Part of the last 5 seconds in which its frames ran, 0 to 1.")
    frames: int
    ops: int
    planned_frames: int = Field(description="Frames that ran by a plan.")
    errors: int = Field(description="Frames with errors.")
    last_error: ActivityError | None


class ActivityCaller(BaseModel):
    """Who asked."""

    key: str
    name: str
    tenant: str
    scopes: list[str]
    all: bool = Field(description="Whether the document covers all tenants.")


class ActivityTotals(BaseModel):
    """Sums over the sessions of the document."""

    sessions: int
    loaded: int
    busy: int
    streams: int
    frames_per_second: float
    ops_per_second: float
    live_bytes: int
    saved_bytes: int
    pooled_bytes: int
    errors: int


class ActivityQueue(BaseModel):
    """The queue for computing."""

    slots: int | None = Field(description="How many sessions compute at a time; null with worker processes.")
    computing: int
    waiting: int | None = Field(description="Sessions that wait for a slot.")
    pending_frames: int = Field(description="Queued and running frames of the document's sessions.")


class ActivityWorker(BaseModel):
    """A worker process."""

    id: str
    state: str = Field(description="starting, spare, idle or busy.")
    sessions: int
    calls: int = Field(description="Unanswered calls.")


class ActivityQuota(BaseModel):
    """Use and limit of one quota of one key. Use is that of the tenant."""

    key: str
    name: str
    tenant: str
    quota: str = Field(description="The name of the setting that limits it.")
    used: float = Field(description="Rates: of the last second.")
    limit: int


class ActivityFrame(BaseModel):
    """An answered frame."""

    at: str
    seq: int
    ops: int
    what: str = Field(description="Its first ops by name.")
    took_s: float = Field(description="Seconds in the engine.")
    waited_s: float = Field(description="Seconds in the queue.")
    planned: bool
    error: str = Field(description="The code of its first error, or empty.")


class ActivityLine(BaseModel):
    """A line of the server's log about a session."""

    at: str
    level: str
    event: str
    facts: dict[str, Any]


class ActivityDetail(BaseModel):
    """More about one session, the latest first."""

    id: str
    frames: list[ActivityFrame]
    log: list[ActivityLine]


class ActivityView(BaseModel):
    """What the server does."""

    at: str
    version: str
    uptime_s: float
    session_host: str
    draining: bool
    caller: ActivityCaller
    totals: ActivityTotals
    queue: ActivityQueue
    devices: list[DeviceView]
    workers: list[ActivityWorker]
    quotas: list[ActivityQuota]
    sessions: list[ActivityRow]
    detail: ActivityDetail | None = None


class ProfileRequest(Body):
    """What to record."""

    seconds: float = Field(default=5.0, ge=0.1, le=60.0, allow_inf_nan=False, description="How long to record.")


class ProfileBranch(BaseModel):
    """Time of a session's frames by kind of frame, op, and node of backward."""

    name: str
    ns: int = Field(description="Nanoseconds in the engine, those of the branches below included.")
    count: int
    below: list[ProfileBranch] = Field(description="Its parts, the longest first.")


class ProfileView(BaseModel):
    """A profile of a session."""

    seconds: float
    flame: ProfileBranch
