"""Management of API keys. Requires the scope ``admin``."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path

from ..auth import Key
from ..http.models import KeyList, KeyMade, KeyRequest, KeyView
from ..http.openapi import PROBLEMS
from ..http.state import TheServer
from ..settings.timestamps import timestamp

router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=PROBLEMS)

KeyId = Annotated[str, Path(description="Id of a key", examples=["k_5f0a1b2c3d4e"])]


@router.post("", operation_id="createKey", summary="Create a key", status_code=201, response_model=KeyMade)
async def create(server: TheServer, body: KeyRequest) -> dict[str, Any]:
    """Create a key. Only this response contains the secret; the server keeps a hash.

    Without a data directory, the key is valid until the server stops (``kept`` is ``memory``).
    """
    quotas = {} if body.quotas is None else body.quotas.model_dump(exclude_none=True)
    expires = None if body.expires_in_s is None else time.time() + body.expires_in_s
    key, text = server.access.keys.make(body.name, body.scopes, body.tenant, expires, quotas)
    server.access.audit.note("key_created", about=key.id)
    return view(key) | {"key": text}


@router.get("", operation_id="listKeys", summary="List keys", response_model=KeyList)
async def list_(server: TheServer) -> dict[str, Any]:
    """List all keys without their secrets, oldest first, including revoked and expired keys."""
    return {"keys": [view(key) for key in server.access.keys.all()]}


@router.get("/{key_id}", operation_id="getKey", summary="Get a key", response_model=KeyView)
async def get(server: TheServer, key_id: KeyId) -> dict[str, Any]:
    """Get a key without its secret."""
    return view(server.access.keys.get(key_id))


@router.delete("/{key_id}", operation_id="revokeKey", summary="Revoke a key", status_code=204)
async def revoke(server: TheServer, key_id: KeyId) -> None:
    """Revoke a key and close its streams with 4401. The tenant keeps its sessions."""
    key = server.access.keys.revoke(key_id)
    server.access.audit.note("key_revoked", about=key.id)
    server.access.end_streams()


def view(key: Key) -> dict[str, Any]:
    """The public data of a key."""
    times = {"created_at": key.created or None, "expires_at": key.expires, "revoked_at": key.revoked,
             "last_used_at": key.last_used}  # fmt: skip
    return {
        "id": key.id, "name": key.name, "tenant": key.tenant, "scopes": key.scopes, "quotas": key.quotas,
        "kept": key.kept, "state": key.end() or "active",
    } | {name: None if at is None else timestamp(at) for name, at in times.items()}  # fmt: skip
