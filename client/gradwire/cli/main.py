"""The ``gradwire`` command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from .._core.context.version import __version__
from .asking import DEFAULT_URL, ApiKey, Json, Url, request, with_rest
from .conformance.command import conformance
from .doctor.command import doctor
from .fleet import app as fleet
from .history import SessionId, bisect, replay
from .installed import need_server
from .keys import app as keys
from .printing import print_json, print_table
from .running.command import run as run_program
from .session_files import export_session, import_session
from .top.command import top

app = typer.Typer(help="Compute with tensors and gradients on a server.", no_args_is_help=True)
sessions = typer.Typer(help="List, inspect, delete, export, import, search and replay sessions.", no_args_is_help=True)
app.add_typer(sessions, name="sessions")
app.add_typer(keys, name="keys")
app.add_typer(fleet, name="fleet")
app.command()(conformance)
app.command()(doctor)
app.command()(top)
sessions.command("bisect")(bisect)
sessions.command("replay")(replay)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gradwire {__version__}")
        raise typer.Exit


@app.callback()
def command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compute with tensors and gradients on a server."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def serve(context: typer.Context) -> None:
    """Run a server. Same as gradwire-server; --help lists its options."""
    need_server()
    command = [sys.executable, "-m", "gradwire_server", *context.args]
    if os.name == "posix":
        os.execv(sys.executable, command)
    raise typer.Exit(subprocess.call(command))


@app.command(
    context_settings={
        "allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": [],
        "allow_interspersed_args": False,
    },
)  # fmt: skip
def run(context: typer.Context) -> None:
    """Run a PyTorch program unchanged with gradwire. gradwire run --help lists its options."""
    raise typer.Exit(run_program(context.args))


@app.command()
def version() -> None:
    """Print the version of this client."""
    typer.echo(__version__)


@app.command()
def ops(
    url: Url = DEFAULT_URL,
    api_key: ApiKey = "",
    search: Annotated[str, typer.Argument(help="List only ops whose name contains this text.")] = "",
    json: Json = False,
) -> None:
    """List the ops of a server."""
    rows = [row for row in request(url, api_key, "GET", "/v1/ops")["ops"] if search in row["name"]]
    if json:
        print_json({"ops": rows})
        return
    print_table(("op", "description"), [(row["signature"], str(row["doc"]).split("\n")[0]) for row in rows])


@sessions.command("ls")
def list_sessions(url: Url = DEFAULT_URL, api_key: ApiKey = "", json: Json = False) -> None:
    """List the sessions of the API key's tenant."""
    found = request(url, api_key, "GET", "/v1/sessions")
    if json:
        print_json(found)
        return
    rows = found["sessions"]
    named = ("name",) if any(row.get("name") for row in rows) else ()
    fields = ("id", *named, "state", "durability", "device", "created_at", "expires_at")
    heads = [name.removesuffix("_at") for name in fields]
    print_table(heads, [[_cell(name, row.get(name)) for name in fields] for row in rows], whole=("id",))


def _cell(name: str, value: object) -> str:
    text = "" if value is None else str(value)
    return text[:19].replace("T", " ") if name.endswith("_at") else text  # seconds are precise enough


@sessions.command("show")
def show_session(session: SessionId, url: Url = DEFAULT_URL, api_key: ApiKey = "") -> None:
    """Show the state of a session as JSON."""
    print_json(request(url, api_key, "GET", f"/v1/sessions/{session}"))


@sessions.command("kill")
def kill_session(session: SessionId, url: Url = DEFAULT_URL, api_key: ApiKey = "") -> None:
    """Delete a session and its tensors."""
    request(url, api_key, "DELETE", f"/v1/sessions/{session}")


@sessions.command("export")
def export(
    session: SessionId,
    file: Annotated[Path, typer.Argument(help="File to write, for example model.safetensors.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    journal: Annotated[
        bool, typer.Option("--journal", help="Export its journal, for gradwire sessions replay.")
    ] = False,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = "",
) -> None:
    """Export the tensors of a session and their names to a safetensors file, or its journal to a file to replay."""
    if file.exists() and not force:
        raise typer.BadParameter(f"{file} exists; use --force to overwrite it")
    what = "history/recording" if journal else "export"
    size = with_rest(url, api_key, lambda rest: export_session(rest, session, file, what))
    typer.echo(f"{session}: {size:,} bytes in {file}")


@sessions.command("import")
def import_(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file written by export.")],
    device: Annotated[str | None, typer.Option(help="Device of its tensors, for example cuda:0.")] = None,
    ttl: Annotated[float | None, typer.Option(min=0, help="Idle seconds after which it expires.")] = None,
    durability: Annotated[str | None, typer.Option(help="none, applied or durable.")] = None,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = "",
) -> None:
    """Create a session from an exported file and print its id."""
    given = {"device": device, "ttl_s": ttl, "durability": durability}
    options = {name: value for name, value in given.items() if value is not None}
    typer.echo(with_rest(url, api_key, lambda rest: import_session(rest, file, options))["id"])


def main() -> None:
    """The entry point of the ``gradwire`` command."""
    app()
