"""Whether this installation has the server."""

from __future__ import annotations

from importlib.util import find_spec

import typer


def need_server() -> None:
    """End the command with 1 where the server's packages are missing, and say what to install."""
    if find_spec("gradwire_server") is None or find_spec("fastapi") is None:
        typer.echo("the server is not installed: pip install 'gradwire[server]'", err=True)
        raise typer.Exit(1)
