"""``gradwire fleet``: the state of a fleet, and draining its machines. Needs a key with the scope ``admin``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from gradwire_protocol.errors import GradwireError

from .._core.wire.rest import RestClient

Url = Annotated[str, typer.Option(envvar="GRADWIRE_URL", help="URL of a gateway of the fleet.")]
ApiKey = Annotated[str, typer.Option(envvar="GRADWIRE_API_KEY", help="An API key with the scope admin.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Node = Annotated[str, typer.Argument(help="Id of the node, the beginning of it, or its address, as shown by status.")]

SHOWN_ID = 12
DRAIN_PATIENCE_S = 600.0

app = typer.Typer(help="Show a fleet, and drain its nodes.", no_args_is_help=True)


@app.command("status")
def status(url: Url = "http://127.0.0.1:8000", api_key: ApiKey = "", json: Json = False) -> None:
    """Show nodes, workers, gateways, and the numbers of sessions."""
    found = _request(url, api_key, "GET", "/v1/fleet")
    console = Console()
    if json:
        console.print_json(data=found)
        return
    waiting = f", {found['queue']} waiting" if found["queue"] else ""
    console.print(
        f"gradwire {found['version']}: {found['sessions']} sessions ({found['dormant']} dormant{waiting}), "
        f"{len(found['workers'])} workers on {len(found['nodes'])} nodes, {len(found['gateways'])} gateways"
    )
    nodes = _table("node", "address", "state", "CPUs", "GPUs", "memory", "workers", "sessions")
    for row in found["nodes"]:
        gpus = f"{row['gpus_taken']:g} of {row['gpus']:g} {row['gpu']}".strip() if row["gpus"] else ""
        nodes.add_row(
            row["id"][:SHOWN_ID], row["address"], row["state"], f"{row['cpus']:g}", gpus,
            f"{row['memory'] / 1e9:.0f} GB", str(row["workers"]), str(row["sessions"]),
        )  # fmt: skip
    console.print(nodes)
    workers = _table("worker", "node", "state", "tenant", "resources", "sessions", "version")
    for row in found["workers"]:
        taken = ", ".join(f"{name} {amount:g}" for name, amount in row["resources"].items())
        workers.add_row(
            row["id"][:SHOWN_ID], row["node"][:SHOWN_ID], row["state"], row["tenant"], taken, str(row["sessions"]),
            row["version"],
        )  # fmt: skip
    console.print(workers)


@app.command("drain")
def drain(
    node: Node,
    undo: Annotated[bool, typer.Option("--undo", help="Use a drained node again.")] = False,
    url: Url = "http://127.0.0.1:8000",
    api_key: ApiKey = "",
    json: Json = False,
) -> None:
    """Move the sessions of a node to other nodes. Programs go on; the node gets no more workers."""
    found = _request(url, api_key, "DELETE" if undo else "POST", f"/v1/fleet/nodes/{node}/drain")
    if json:
        Console().print_json(data=found or {"node": node})
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


def _table(*columns: str) -> Table:
    return Table(*(Column(name, no_wrap=name in ("node", "worker"), overflow="fold") for name in columns))


def _request(url: str, api_key: str, method: str, path: str) -> Any:
    rest = RestClient(url, api_key or None, timeout=DRAIN_PATIENCE_S)
    try:
        if method == "POST":
            return rest.post(path, None)
        return rest.get(path) if method == "GET" else rest.delete(path)
    except GradwireError as error:
        typer.echo(f"{error.code}: {error.message}", err=True)
        raise typer.Exit(1) from None
    finally:
        rest.close()
