"""``gradwire keys``: manage the API keys of a running server. Needs a key with the scope ``admin``.

``gradwire-server keys`` does the same in a data directory, without a key and without a running server.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from .asking import DEFAULT_URL, AdminKey, Json, Url, request
from .printing import print_json, print_table

Limit = Annotated[int | None, typer.Option(min=0, help="Overrides the server's setting; 0 for no limit.")]

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}

app = typer.Typer(help="Create, list and revoke API keys of a server.", no_args_is_help=True)


def duration(text: str) -> float:
    """The seconds of a duration such as ``90s``, ``12h`` or ``30d``."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 1e9:
        raise typer.BadParameter(f"invalid duration {text!r}: use a number with s, m, h or d, for example 30d")
    return seconds


@app.command("create")
def create(
    name: Annotated[str, typer.Option(help="A label for this key.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="read, session or admin; repeatable. Default: session.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Owner of its sessions. Default: a new tenant.")] = None,
    expires: Annotated[str | None, typer.Option(help="Expiry, for example 30d. Default: never.")] = None,
    max_ops_per_second: Limit = None,
    max_bytes_per_second: Limit = None,
    max_requests_per_second: Limit = None,
    max_key_sessions: Limit = None,
    max_key_bytes: Limit = None,
    max_key_gpus: Limit = None,
    max_key_cpus: Limit = None,
    max_key_memory: Limit = None,
    url: Url = DEFAULT_URL,
    api_key: AdminKey = "",
    json: Json = False,
) -> None:
    """Create a key and print it. The server cannot show it again."""
    quotas = {
        "max_ops_per_second": max_ops_per_second, "max_bytes_per_second": max_bytes_per_second,
        "max_requests_per_second": max_requests_per_second, "max_key_sessions": max_key_sessions,
        "max_key_bytes": max_key_bytes, "max_key_gpus": max_key_gpus,
        "max_key_cpus": max_key_cpus, "max_key_memory": max_key_memory,
    }  # fmt: skip
    fields = {
        "name": name, "scopes": scope or ["session"], "tenant": tenant,
        "expires_in_s": None if expires is None else duration(expires),
        "quotas": {setting: value for setting, value in quotas.items() if value is not None} or None,
    }  # fmt: skip
    body = {field: value for field, value in fields.items() if value is not None}
    made = request(url, api_key, "POST", "/v1/keys", body)
    if json:
        print_json(made)
        return
    until = ", valid until the server stops" if made["kept"] == "memory" else ""
    typer.echo(f"{made['id']}, tenant {made['tenant']}{until}. The key is shown only once:", err=True)
    typer.echo(made["key"])


@app.command("list")
def list_(url: Url = DEFAULT_URL, api_key: AdminKey = "", json: Json = False) -> None:
    """List all keys of the server, without the secrets."""
    found = request(url, api_key, "GET", "/v1/keys")
    if json:
        print_json(found)
        return
    columns = ("id", "name", "state", "scopes", "tenant", "expires_at", "last_used_at", "kept", "quotas")
    rows = [[_cell(name, row[name]) for name in columns] for row in found["keys"]]
    # What no key has needs no column.
    used = [at for at, name in enumerate(columns) if name == "id" or any(row[at] for row in rows)]
    heads = [columns[at].removesuffix("_at").replace("_", " ") for at in used]
    print_table(heads, [[row[at] for at in used] for row in rows], whole=("id",))


def _cell(name: str, value: Any) -> str:
    if not value:
        return ""
    if name.endswith("_at"):  # seconds are precise enough
        return str(value)[:19].replace("T", " ")
    if isinstance(value, dict):
        return ", ".join(f"{setting}={limit}" for setting, limit in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


@app.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(help="Id of the key, as shown by list.")],
    url: Url = DEFAULT_URL,
    api_key: AdminKey = "",
) -> None:
    """Revoke a key permanently and close its open streams."""
    request(url, api_key, "DELETE", f"/v1/keys/{key}")
