"""The commands, from their options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import typer

from gradwire.cli.main import app as client
from gradwire_server.cli import parser


def _default(each: Any) -> str:
    """What a parameter is where it is not given: of the environment, or its default."""
    if each.required:
        return "required"
    found = [f"`{each.envvar}`"] if each.envvar else []
    if each.default not in (None, "", False, (), []) and not callable(each.default):
        found.append(f"`{each.default}`")
    return ", else ".join(found)


def _command(name: str, command: Any, depth: int) -> Iterator[str]:
    yield f"\n{'#' * depth} {name}\n"
    yield " ".join((command.help or "").split("\f")[0].split()) + "\n"
    rows = []
    for each in command.params:
        if getattr(each, "hidden", False):
            continue
        option = each.param_type_name == "option"
        names = (*each.opts, *each.secondary_opts) if option else (each.name.upper(),)
        shown = ", ".join(f"`{text}`" for text in names)
        about = " ".join((getattr(each, "help", None) or "").split()).replace("|", "\\|")
        rows.append(f"| {shown} | {_default(each)} | {about} |")
    if rows:
        yield "\n".join(["| option or argument | default | meaning |", "|---|---|---|", *rows]) + "\n"
    for inner, sub in getattr(command, "commands", {}).items():
        if not sub.hidden:
            yield from _command(f"{name} {inner}", sub, min(depth + 1, 4))


def page() -> str:
    """Both commands with all that they can do."""
    lines = [
        "# Commands\n",
        "`gradwire` is the client's command, `gradwire-server` the server's (extra `server`). `--help` behind each "
        "command shows the same in a terminal.",
    ]
    lines += _command("gradwire", typer.main.get_command(client), 2)
    server = parser()
    server.formatter_class = partial(argparse.HelpFormatter, width=100)
    lines.append(
        f"\n## gradwire-server\n\n```text\n{server.format_help()}```\n\n[Settings](settings.md) lists the variables."
    )
    return "\n".join(lines) + "\n"
