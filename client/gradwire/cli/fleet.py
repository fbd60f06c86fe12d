"""``gradwire fleet``: the state of a fleet, and draining its machines. Needs a key with the scope ``admin``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .asking import DEFAULT_URL, AdminKey, Json, request
from .printing import print_json, print_table, print_text

Url = Annotated[str, typer.Option(envvar="GRADWIRE_URL", help="URL of a gateway of the fleet.")]
Node = Annotated[str, typer.Argument(help="Id of the node, the beginning of it, or its address, as shown by status.")]

SHOWN_ID = 12
DRAIN_PATIENCE_S = 600.0

app = typer.Typer(help="Show a fleet, and drain its nodes.", no_args_is_help=True)


@app.command("status")
def status(url: Url = DEFAULT_URL, api_key: AdminKey = "", json: Json = False) -> None:
    """Show nodes, workers, gateways, and the numbers of sessions."""
    found = _request(url, api_key, "GET", "/v1/fleet")
    if json:
        print_json(found)
        return
    waiting = f", {found['queue']} waiting" if found["queue"] else ""
    print_text(
        f"gradwire {found['version']}: {found['sessions']} sessions ({found['dormant']} dormant{waiting}), "
        f"{len(found['workers'])} workers on {len(found['nodes'])} nodes, {len(found['gateways'])} gateways"
    )
    nodes = []
    for row in found["nodes"]:
        gpus = f"{row['gpus_taken']:g} of {row['gpus']:g} {row['gpu']}".strip() if row["gpus"] else ""
        nodes.append((
            row["id"][:SHOWN_ID], row["address"], row["state"], f"{row['cpus']:g}", gpus,
            f"{row['memory'] / 1e9:.0f} GB", row["workers"], row["sessions"],
        ))  # fmt: skip
    typer.echo()
    print_table(("node", "address", "state", "CPUs", "GPUs", "memory", "workers", "sessions"), nodes, whole=("node",))
    workers = []
    for row in found["workers"]:
        taken = ", ".join(f"{name} {amount:g}" for name, amount in row["resources"].items())
        workers.append((
            row["id"][:SHOWN_ID], row["node"][:SHOWN_ID], row["state"], row["tenant"], taken, row["sessions"],
            row["version"],
        ))  # fmt: skip
    columns = ("worker", "node", "state", "tenant", "resources", "sessions", "version")
    typer.echo()
    print_table(columns, workers, whole=("worker", "node"))


@app.command("drain")
def drain(
    node: Node,
    undo: Annotated[bool, typer.Option("--undo", help="Use a drained node again.")] = False,
    url: Url = DEFAULT_URL,
    api_key: AdminKey = "",
    json: Json = False,
) -> None:
    """Move the sessions of a node to other nodes. Programs go on; the node gets no more workers."""
    found = _request(url, api_key, "DELETE" if undo else "POST", f"/v1/fleet/nodes/{node}/drain")
    if json:
        print_json(found or {"node": node})
    elif undo:
        typer.echo(f"{node} is used again")
    else:
        typer.echo(f"{found['node'][:SHOWN_ID]} is drained; {len(found['moved'])} sessions were moved")
    if not undo and found["kept"]:
        typer.echo(
            f"{len(found['kept'])} sessions could not be moved and stay; the directory's log says why: "
            + ", ".join(found["kept"]),
            err=True,
        )
        raise typer.Exit(1)


def _request(url: str, api_key: str, method: str, path: str) -> Any:
    return request(url, api_key, method, path, timeout=DRAIN_PATIENCE_S)
