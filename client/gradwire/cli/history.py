"""``gradwire sessions bisect`` and ``replay``: what a session's journal tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from .asking import DEFAULT_URL, ApiKey, Json, Url, with_rest
from .installed import need_server
from .printing import plain, print_json

REPLAY_PATIENCE_S: Final = 600.0
"""How long a server may take to replay a journal."""

SessionId = Annotated[str, typer.Argument(help="Id of the session, as shown by ls.")]


def bisect(
    session: SessionId,
    nan: Annotated[bool, typer.Option("--nan", help="Look for NaN (the default).")] = False,
    inf: Annotated[bool, typer.Option("--inf", help="Look for infinities; with --nan for either.")] = False,
    name: Annotated[str, typer.Option(help="Look only at the tensor that has this name after each frame.")] = "",
    json: Json = False,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = "",
) -> None:
    """Find the frame, the op and the source line that made the first NaN or infinity of a session with a journal."""
    value = "nonfinite" if nan and inf else "inf" if inf else "nan"
    path = f"/v1/sessions/{session}/history/search?value={value}&name={quote(name, safe='')}"
    found = with_rest(url, api_key, lambda rest: rest.get(path, REPLAY_PATIENCE_S))["found"]
    if json:
        print_json(found)
    elif found is None:
        typer.echo(f"none of what the journal keeps made {_WORDS[value]}")
    else:
        typer.echo(plain(_told(found, value)))


_WORDS: Final = {"nan": "a NaN", "inf": "an infinity", "nonfinite": "a NaN or an infinity"}


def _told(found: dict[str, Any], value: str) -> str:
    what = f"the derivative of {found['node']}" if found["node"] else found["op"]
    made = f"tensor {found['name']} has" if found["name"] else f"{what} made"
    line = f"  {found['line']}" if found["line"] else "  (its source line is unknown)"
    return (
        f"frame {found['frame']} (frame {found['seq']} of client {found['client']}): {made} {_WORDS[value]} in a "
        f"tensor of shape {found['shape']}\n{line}"
    )


def replay(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A file written by export --journal.")],
    json: Json = False,
) -> None:
    """Run an exported journal again on this machine and version, and compare bit for bit. Needs no server."""
    need_server()
    command = [sys.executable, "-m", "gradwire_server", "replay", str(file), *(["--json"] if json else [])]
    raise typer.Exit(subprocess.call(command))
