"""``gradwire run``: Python, started anew on a program, with gradwire in torch's place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

STARTUP: Final = Path(__file__).parent / "startup"
USAGE: Final = """\
Usage: gradwire run [OPTIONS] program.py [ARGUMENTS]...
       gradwire run [OPTIONS] -m package.module [ARGUMENTS]...
       gradwire run [OPTIONS] -c code [ARGUMENTS]...

Run a Python program that says `import torch` with gradwire in torch's place.

Options:
  --url URL       The server; GRADWIRE_URL otherwise, or a server of its own on this machine.
  --api-key KEY   The API key; GRADWIRE_API_KEY otherwise.
  --device NAME   Where new tensors live unless the program says so: cpu (the default), cuda, cuda:1.
  --stats         Tell at the end what was sent, how often the program waited, and how long it took.
  --help          Show this text.
"""
_VALUES: Final = {"--url": "GRADWIRE_URL", "--api-key": "GRADWIRE_API_KEY", "--device": "GRADWIRE_RUN_DEVICE"}


class WrongUsage(Exception):
    """The command line makes no sense; the text says why."""


def parse(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """What Python is to be started on, and the variables that go along.

    Options come before the program; everything after it is the program's.

    Raises:
        WrongUsage: when there is no program, or an option is unknown or lacks its value.
    """
    rest = list(arguments)
    chosen: dict[str, str] = {}
    while rest and rest[0].startswith("--") and rest[0] != "--":
        option, given, value = rest.pop(0).partition("=")
        if option == "--stats" and not given:
            chosen["GRADWIRE_RUN_STATS"] = str(os.getpid())  # starting anew keeps the number
        elif option in _VALUES:
            if not given:
                if not rest:
                    raise WrongUsage(f"{option} needs a value")
                value = rest.pop(0)
            chosen[_VALUES[option]] = value
        else:
            raise WrongUsage(f"there is no option {option}")
    if rest and rest[0] == "--":
        del rest[0]
    if not rest or (rest[0] in ("-m", "-c") and len(rest) < 2):
        raise WrongUsage("which program?")
    if rest[0].startswith("-") and rest[0][:2] not in ("-m", "-c") and rest[0] != "-":
        raise WrongUsage(f"there is no option {rest[0]}")
    return rest, chosen


def interpreter_options() -> list[str]:
    """The options this interpreter was given itself, as in ``python -W error -m gradwire run ...``."""
    given = sys.orig_argv[1:]
    return given[: given.index("-m")] if "-m" in given and given[given.index("-m") + 1 :][:1] == ["gradwire"] else []


def run(arguments: Sequence[str]) -> int:
    """Become the program. Returns an exit code where that is impossible, or the command line is wrong.

    Raises:
        SystemExit: on systems where a process cannot become another, with the program's exit code.
    """
    if arguments and arguments[0] == "--help":
        print(USAGE, end="")
        return 0
    try:
        program, chosen = parse(arguments)
    except WrongUsage as error:
        print(f"{USAGE}\ngradwire run: {error}", file=sys.stderr)
        return 2
    if (sys.flags.ignore_environment or sys.flags.no_site) and interpreter_options():
        print("gradwire run: with -E, -I or -S Python would not load the hook that serves torch", file=sys.stderr)
        return 2
    environment = {**os.environ, **chosen}
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(STARTUP), before] if before else [str(STARTUP)])
    command = [sys.executable, *interpreter_options(), *program]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(sys.executable, command, environment)
    return subprocess.call(command, env=environment)
