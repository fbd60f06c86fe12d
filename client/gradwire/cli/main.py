"""The ``gradwire`` command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Column, Table

from gradwire_protocol.errors import GradwireError

from .._core.context.version import __version__
from .._core.wire.rest import RestClient
from .conformance.command import conformance
from .fleet import app as fleet
from .keys import app as keys
from .running.command import run as run_program
from .session_files import export_session, import_session

app = typer.Typer(help="Compute with tensors and gradients on a server.", no_args_is_help=True, add_completion=False)
sessions = typer.Typer(help="List, inspect, delete, export, import, search and replay sessions.", no_args_is_help=True)
app.add_typer(sessions, name="sessions")
app.add_typer(keys, name="keys")
app.add_typer(fleet, name="fleet")
app.command()(conformance)

T = TypeVar("T")

REPLAY_PATIENCE_S = 600.0
"""How long a server may take to replay a journal."""

Url = Annotated[str, typer.Option(envvar="GRADWIRE_URL", help="URL of the server.")]
Key = Annotated[str, typer.Option(envvar="GRADWIRE_API_KEY", help="An API key of the server.")]
SessionId = Annotated[str, typer.Argument(help="Id of the session, as shown by ls.")]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def serve(context: typer.Context) -> None:
    """Run a server. Same as gradwire-server; --help lists its options."""
    _need_server()
    command = [sys.executable, "-m", "gradwire_server", *context.args]
    if os.name == "posix":
        os.execv(sys.executable, command)
    raise typer.Exit(subprocess.call(command))


def _need_server() -> None:
    if find_spec("gradwire_server") is None or find_spec("fastapi") is None:
        typer.echo("the server is not installed: pip install 'gradwire[server]'", err=True)
        raise typer.Exit(1)


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
    url: Url = "http://127.0.0.1:8000",
    api_key: Key = "",
    search: Annotated[str, typer.Argument(help="List only ops whose name contains this text.")] = "",
) -> None:
    """List the ops of a server."""
    rows = [row for row in _get(url, api_key, "/v1/ops")["ops"] if search in row["name"]]
    _print(["op", "description"], [[row["signature"], str(row["doc"]).split("\n")[0]] for row in rows])


@sessions.command("ls")
def list_sessions(url: Url = "http://127.0.0.1:8000", api_key: Key = "") -> None:
    """List the sessions of the API key's tenant."""
    rows = _get(url, api_key, "/v1/sessions")["sessions"]
    fields = ["id", "state", "durability", "device", "created_at", "expires_at"]
    _print(fields, [[str(row.get(f, "")) for f in fields] for row in rows])


@sessions.command("show")
def show_session(session: SessionId, url: Url = "http://127.0.0.1:8000", api_key: Key = "") -> None:
    """Show the state of a session as JSON."""
    Console().print_json(data=_get(url, api_key, f"/v1/sessions/{session}"))


@sessions.command("kill")
def kill_session(session: SessionId, url: Url = "http://127.0.0.1:8000", api_key: Key = "") -> None:
    """Delete a session and its tensors."""
    rest = RestClient(url, api_key or None)
    try:
        rest.delete(f"/v1/sessions/{session}")
    except GradwireError as error:
        _fail(error)
    finally:
        rest.close()


@sessions.command("export")
def export(
    session: SessionId,
    file: Annotated[Path, typer.Argument(help="File to write, for example model.safetensors.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    journal: Annotated[
        bool, typer.Option("--journal", help="Export its journal, for gradwire sessions replay.")
    ] = False,
    url: Url = "http://127.0.0.1:8000",
    api_key: Key = "",
) -> None:
    """Export the tensors of a session and their names to a safetensors file, or its journal to a file to replay."""
    if file.exists() and not force:
        raise typer.BadParameter(f"{file} exists; use --force to overwrite it")
    size = _with_rest(
        url, api_key, lambda rest: export_session(rest, session, file, "history/recording" if journal else "export")
    )
    typer.echo(f"{session}: {size:,} bytes in {file}")


@sessions.command("import")
def import_(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file written by export.")],
    device: Annotated[str | None, typer.Option(help="Device of its tensors, for example cuda:0.")] = None,
    ttl: Annotated[float | None, typer.Option(min=0, help="Idle seconds after which it expires.")] = None,
    durability: Annotated[str | None, typer.Option(help="none, applied or durable.")] = None,
    url: Url = "http://127.0.0.1:8000",
    api_key: Key = "",
) -> None:
    """Create a session from an exported file and print its id."""
    given = {"device": device, "ttl_s": ttl, "durability": durability}
    options = {name: value for name, value in given.items() if value is not None}
    typer.echo(_with_rest(url, api_key, lambda rest: import_session(rest, file, options))["id"])


@sessions.command("bisect")
def bisect(
    session: SessionId,
    nan: Annotated[bool, typer.Option("--nan", help="Look for NaN (the default).")] = False,
    inf: Annotated[bool, typer.Option("--inf", help="Look for infinities; with --nan for either.")] = False,
    name: Annotated[str, typer.Option(help="Look only at the tensor that has this name after each frame.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    url: Url = "http://127.0.0.1:8000",
    api_key: Key = "",
) -> None:
    """Find the frame, the op and the source line that made the first NaN or infinity of a session with a journal."""
    value = "nonfinite" if nan and inf else "inf" if inf else "nan"
    path = f"/v1/sessions/{session}/history/search?value={value}&name={quote(name, safe='')}"
    found = _with_rest(url, api_key, lambda rest: rest.get(path, REPLAY_PATIENCE_S))["found"]
    if as_json:
        Console().print_json(data=found)
    elif found is None:
        typer.echo(f"none of what the journal keeps made {_WORDS[value]}")
    else:
        typer.echo(_told(found, value))


_WORDS = {"nan": "a NaN", "inf": "an infinity", "nonfinite": "a NaN or an infinity"}


def _told(found: dict[str, Any], value: str) -> str:
    what = f"the derivative of {found['node']}" if found["node"] else found["op"]
    made = f"tensor {found['name']} has" if found["name"] else f"{what} made"
    line = f"  {found['line']}" if found["line"] else "  (its source line is unknown)"
    return (
        f"frame {found['frame']} (frame {found['seq']} of client {found['client']}): {made} {_WORDS[value]} in a "
        f"tensor of shape {found['shape']}\n{line}"
    )


@sessions.command("replay")
def replay(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file written by export --journal.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run an exported journal again on this machine and version, and compare bit for bit. Needs no server."""
    _need_server()
    command = [sys.executable, "-m", "gradwire_server", "replay", str(file), *(["--json"] if as_json else [])]
    raise typer.Exit(subprocess.call(command))


def _with_rest(url: str, api_key: str, use: Callable[[RestClient], T]) -> T:
    rest = RestClient(url, api_key or None)
    try:
        return use(rest)
    except GradwireError as error:
        _fail(error)
    except OSError as error:
        typer.echo(f"{error.filename or 'the file'}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None
    finally:
        rest.close()


def _get(url: str, api_key: str, path: str) -> Any:
    rest = RestClient(url, api_key or None)
    try:
        return rest.get(path)
    except GradwireError as error:
        _fail(error)
    finally:
        rest.close()


def _fail(error: GradwireError) -> NoReturn:
    typer.echo(f"{error.code}: {error.message}", err=True)
    raise typer.Exit(1)


def _print(columns: list[str], rows: list[list[str]]) -> None:
    table = Table(*(Column(name, no_wrap=name == "id", overflow="fold") for name in columns))
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    """The entry point of the ``gradwire`` command."""
    app()
