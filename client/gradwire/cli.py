"""The ``gradwire`` command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.table import Column, Table

from gradwire_protocol.errors import GradwireError

from .key_commands import app as keys
from .rest import Rest
from .running.command import run as run_program
from .session_files import export_session, import_session
from .version import __version__

app = typer.Typer(help="Tensors and gradients on a server.", no_args_is_help=True, add_completion=False)
sessions = typer.Typer(help="Look at the sessions of a server.", no_args_is_help=True)
app.add_typer(sessions, name="sessions")
app.add_typer(keys, name="keys")

T = TypeVar("T")

Url = Annotated[str, typer.Option(envvar="GRADWIRE_URL", help="The server.")]
Key = Annotated[str, typer.Option(envvar="GRADWIRE_API_KEY", help="The API key.")]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def serve(context: typer.Context) -> None:
    """Run a server: the same as gradwire-server, which lists its options with --help."""
    if find_spec("gradwire_server") is None or find_spec("fastapi") is None:
        typer.echo("the server is not installed: pip install 'gradwire[server]'", err=True)
        raise typer.Exit(1)
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
    """Run a Python program that says `import torch` on a server: gradwire run --help."""
    raise typer.Exit(run_program(context.args))


@app.command()
def version() -> None:
    """Print the version of this client."""
    typer.echo(__version__)


@app.command()
def ops(
    url: Url = "http://127.0.0.1:8000",
    api_key: Key = "",
    search: Annotated[str, typer.Argument(help="Part of a name.")] = "",
) -> None:
    """List the operations of a server."""
    rows = [row for row in _get(url, api_key, "/v1/ops")["ops"] if search in row["name"]]
    _print(["op", "what it does"], [[row["signature"], str(row["doc"]).split("\n")[0]] for row in rows])


@sessions.command("ls")
def list_sessions(url: Url = "http://127.0.0.1:8000", api_key: Key = "") -> None:
    """List the sessions of this key's tenant."""
    rows = _get(url, api_key, "/v1/sessions")["sessions"]
    fields = ["id", "state", "durability", "device", "created_at", "expires_at"]
    _print(fields, [[str(row.get(f, "")) for f in fields] for row in rows])


@sessions.command("show")
def show_session(session: str, url: Url = "http://127.0.0.1:8000", api_key: Key = "") -> None:
    """Show what a session holds."""
    Console().print_json(data=_get(url, api_key, f"/v1/sessions/{session}"))


@sessions.command("kill")
def kill_session(session: str, url: Url = "http://127.0.0.1:8000", api_key: Key = "") -> None:
    """Delete a session and everything in it."""
    rest = Rest(url, api_key or None)
    try:
        rest.delete(f"/v1/sessions/{session}")
    except GradwireError as error:
        _fail(error)
    finally:
        rest.close()


@sessions.command("export")
def export(
    session: str,
    file: Annotated[Path, typer.Argument(help="Where to write it, such as model.safetensors.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    url: Url = "http://127.0.0.1:8000",
    api_key: Key = "",
) -> None:
    """Write the tensors and names of a session to a safetensors file."""
    if file.exists() and not force:
        raise typer.BadParameter(f"{file} exists: --force replaces it")
    size = _with_rest(url, api_key, lambda rest: export_session(rest, session, file))
    typer.echo(f"{session}: {size:,} bytes in {file}")


@sessions.command("import")
def import_(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What export wrote.")],
    device: Annotated[str | None, typer.Option(help="Where its tensors shall live.")] = None,
    ttl: Annotated[float | None, typer.Option(min=0, help="Seconds of disuse after which it expires.")] = None,
    durability: Annotated[str | None, typer.Option(help="none, applied or durable.")] = None,
    url: Url = "http://127.0.0.1:8000",
    api_key: Key = "",
) -> None:
    """Start a session with what a file holds, and print its id."""
    wanted = {"device": device, "ttl_s": ttl, "durability": durability}
    asked = {name: value for name, value in wanted.items() if value is not None}
    typer.echo(_with_rest(url, api_key, lambda rest: import_session(rest, file, asked))["id"])


def _with_rest(url: str, api_key: str, use: Callable[[Rest], T]) -> T:
    rest = Rest(url, api_key or None)
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
    rest = Rest(url, api_key or None)
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
    """Entry point of the ``gradwire`` command."""
    app()
