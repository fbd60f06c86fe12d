"""``gradwire-server keys``: keys made, listed and revoked in the data directory, with no key and no server needed.

This is how the first key of a container is made. A server that runs over the same directory sees the change within a
second. Whoever can write there owns the server's keys.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gradwire_protocol.errors import GradwireError

from .access.audit import AuditLog
from .access.keys import ALL_SCOPES, QUOTAS, DamagedKeys, Key, KeyStore
from .settings import variable

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> float:
    """Seconds of a time such as ``90s``, ``12h`` or ``30d``.

    Raises:
        argparse.ArgumentTypeError: for anything else.
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: one is a number with s, m, h or d, as in 30d")
    return seconds


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(prog="gradwire-server keys", description="The keys in a data directory.")
    commands = found.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create", help="make a key and print it, this once")
    create.add_argument("--name", required=True, help="to know it again")
    create.add_argument(
        "--scope", action="append", choices=ALL_SCOPES, help="what it covers; may be repeated (session)"
    )
    create.add_argument("--tenant", help="owner of the sessions it opens, such as that of the key it replaces")
    create.add_argument("--expires", type=duration, metavar="TIME", help="after which it opens nothing, such as 30d")
    for name in QUOTAS:
        create.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=f"instead of {variable(name)}")
    listing = commands.add_parser("list", help="list the keys, without their texts")
    revoke = commands.add_parser("revoke", help="end a key, for good")
    revoke.add_argument("id", help="its id, as the list has it")
    for command in (create, listing, revoke):
        command.add_argument(
            "--data-dir", type=Path, default=os.environ.get("GRADWIRE_DATA_DIR"), help="(GRADWIRE_DATA_DIR)"
        )
        command.add_argument("--json", action="store_true", help="for programs")
    return found


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit status: 0, 1 when it could not be done, 2 for a wrong command line."""
    reader = parser()
    options = reader.parse_args(argv)
    if options.data_dir is None:
        reader.error("which directory? --data-dir or GRADWIRE_DATA_DIR")
    folder = Path(options.data_dir)
    if options.command != "create" and not folder.is_dir():  # a misspelt one would look like one without keys
        print(f"gradwire-server keys: there is no directory {folder}", file=sys.stderr)
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
                print(f"{key.id}, tenant {key.tenant}. Shown this once:", file=sys.stderr)
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
    """Print keys, a line each."""
    for key in keys:
        state = key.end() or "active"
        if as_json:
            print(json.dumps({"id": key.id, "name": key.name, "tenant": key.tenant, "scopes": key.scopes,
                              "state": state, "expires": key.expires, "last_used": key.last_used}))  # fmt: skip
        else:
            print(f"{key.id}  {state:8}  {','.join(key.scopes):20}  {key.tenant:20}  {key.name}")
