"""``gradwire-server keys``: create, list and revoke keys in a data directory, without a key or a running server.

This creates the first key of a container. A running server sees changes within a second. Write access to the data
directory means control over the server's keys.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gradwire_protocol.errors import GradwireError

from ..settings.settings import variable
from .audit import AuditLog
from .keys import ALL_SCOPES, QUOTAS, DamagedKeys, Key, KeyStore

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> float:
    """The seconds of a duration such as ``90s``, ``12h`` or ``30d``.

    Raises:
        argparse.ArgumentTypeError: for an invalid duration.
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 1e9:
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}: use a number with s, m, h or d, for example 30d")
    return seconds


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="gradwire-server keys", description="Manage the API keys in a data directory, without a running server."
    )
    commands = result.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create", help="create a key and print it once")
    create.add_argument("--name", required=True, help="a label for this key")
    create.add_argument("--scope", action="append", choices=ALL_SCOPES, help="a scope; repeatable (default: session)")
    create.add_argument("--tenant", help="owner of its sessions (default: a new tenant)")
    create.add_argument("--expires", type=duration, metavar="TIME", help="expiry, for example 30d (default: never)")
    for name in QUOTAS:
        create.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=f"overrides {variable(name)}")
    listing = commands.add_parser("list", help="list the keys, without the secrets")
    revoke = commands.add_parser("revoke", help="revoke a key permanently")
    revoke.add_argument("id", help="id of the key, as shown by list")
    for command in (create, listing, revoke):
        command.add_argument(
            "--data-dir",
            type=Path,
            default=os.environ.get("GRADWIRE_DATA_DIR"),
            help="data directory of the server (default: GRADWIRE_DATA_DIR)",
        )
        command.add_argument("--json", action="store_true", help="print JSON")
    return result


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit status: 0, 1 for a failure, 2 for an invalid command line."""
    reader = parser()
    options = reader.parse_args(argv)
    if options.data_dir is None:
        reader.error("missing data directory; give --data-dir or set GRADWIRE_DATA_DIR")
    folder = Path(options.data_dir)
    if options.command != "create" and not folder.is_dir():  # otherwise a misspelt path would list no keys
        print(f"gradwire-server keys: {folder} is not a directory", file=sys.stderr)
        return 1
    try:
        store = KeyStore(folder / "keys.json")
        if options.command == "list":
            show(store.all(), options.json)
            return 0
        if options.command == "create":
            quotas = {name: value for name in QUOTAS if (value := getattr(options, name)) is not None}
            expires = None if options.expires is None else time.time() + options.expires
            key, text = store.make(options.name, options.scope or ["session"], options.tenant, expires, quotas)
            _note(folder, "key_created", key)
            if options.json:
                print(json.dumps({"id": key.id, "tenant": key.tenant, "scopes": key.scopes, "key": text}))
            else:
                print(f"{key.id}, tenant {key.tenant}. The key is shown only once:", file=sys.stderr)
                print(text)
        else:
            _note(folder, "key_revoked", store.revoke(options.id))
    except (DamagedKeys, GradwireError, OSError) as error:
        print(f"gradwire-server keys: {error}", file=sys.stderr)
        return 1
    return 0


def _note(folder: Path, action: str, key: Key) -> None:
    path = os.environ.get(variable("audit_log"))
    audit = AuditLog(Path(path) if path else folder / "audit.log")
    audit.note(action, about=key.id, tenant=key.tenant)
    audit.close()


def show(keys: list[Key], as_json: bool) -> None:
    """Print the keys: a line of JSON for each, or a line of text, or more where the terminal is too narrow for it."""
    width = shutil.get_terminal_size().columns
    for key in keys:
        state = key.end() or "active"
        if as_json:
            print(json.dumps({"id": key.id, "name": key.name, "tenant": key.tenant, "scopes": key.scopes,
                              "state": state, "expires": key.expires, "last_used": key.last_used}))  # fmt: skip
            continue
        name = "".join(each if each.isprintable() else " " for each in key.name)
        head = f"{key.id}  {state:8}  {','.join(key.scopes):20}"
        line = f"{head}  {key.tenant:20}  {name}"
        if len(line) <= width:
            print(line)
            continue
        print(head.rstrip())
        for text in (key.tenant, name):
            print(textwrap.fill(text, width, initial_indent="    ", subsequent_indent="    "))
