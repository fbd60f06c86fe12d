"""API keys: make, list, revoke. For keys with the scope ``admin``."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path

from ..access import Key
from ..http.openapi import PROBLEMS
from ..models import KeyList, KeyMade, KeyRequest, KeyView
from ..state import TheServer
from ..timestamps import timestamp

router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=PROBLEMS)

KeyId = Annotated[str, Path(description="Id of a key", examples=["k_5f0a1b2c3d4e"])]


@router.post("", status_code=201, response_model=KeyMade)
async def create(server: TheServer, body: KeyRequest) -> dict[str, Any]:
    """Make a key. Its text is in this response and nowhere else: what is kept is a hash.

    Without a data directory the key lasts until the server stops; ``kept`` says so.
    """
    quotas = {} if body.quotas is None else body.quotas.model_dump(exclude_none=True)
    expires = None if body.expires_in_s is None else time.time() + body.expires_in_s
    key, text = server.access.keys.make(body.name, body.scopes, body.tenant, expires, quotas)
    server.access.audit.note("key_created", about=key.id)
    return view(key) | {"key": text}


@router.get("", response_model=KeyList)
async def list_(server: TheServer) -> dict[str, Any]:
    """All keys, oldest first, without their texts. Those that have ended are listed too."""
    return {"keys": [view(key) for key in server.access.keys.all()]}


@router.get("/{key_id}", response_model=KeyView)
async def get(server: TheServer, key_id: KeyId) -> dict[str, Any]:
    """A key, without its text."""
    return view(server.access.keys.get(key_id))


@router.delete("/{key_id}", status_code=204)
async def revoke(server: TheServer, key_id: KeyId) -> None:
    """Revoke a key: it opens nothing from now on, and its streams end with 4401. Sessions stay with their tenant."""
    key = server.access.keys.revoke(key_id)
    server.access.audit.note("key_revoked", about=key.id)
    server.access.end_streams()


def view(key: Key) -> dict[str, Any]:
    """What may be shown of a key."""
    times = {"created_at": key.created or None, "expires_at": key.expires, "revoked_at": key.revoked,
             "last_used_at": key.last_used}  # fmt: skip
    return {
        "id": key.id, "name": key.name, "tenant": key.tenant, "scopes": key.scopes, "quotas": key.quotas,
        "kept": key.kept, "state": key.end() or "active",
    } | {name: None if at is None else timestamp(at) for name, at in times.items()}  # fmt: skip
