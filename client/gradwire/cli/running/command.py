"""``gradwire run``: restarts Python on a program, with gradwire in place of torch."""

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

Run a Python program that imports torch, with gradwire in place of torch.

Options:
  --url URL       URL of the server. Default: GRADWIRE_URL, else an embedded server.
  --api-key KEY   An API key of the server. Default: GRADWIRE_API_KEY.
  --device NAME   Default device of new tensors: cpu (default), cuda, cuda:1.
  --stats         At exit, print the ops and bytes sent, the round trips and the run time.
  --help          Show this message and exit.
"""
_VALUES: Final = {"--url": "GRADWIRE_URL", "--api-key": "GRADWIRE_API_KEY", "--device": "GRADWIRE_RUN_DEVICE"}


class WrongUsage(Exception):
    """An invalid command line; the message says why."""


def parse(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Python's arguments, and the environment variables to set.

    Options precede the program; everything after it belongs to the program.

    Raises:
        WrongUsage: when the program is missing, or an option is unknown or lacks its value.
    """
    rest = list(arguments)
    chosen: dict[str, str] = {}
    while rest and rest[0].startswith("--") and rest[0] != "--":
        option, given, value = rest.pop(0).partition("=")
        if option == "--stats" and not given:
            chosen["GRADWIRE_RUN_STATS"] = str(os.getpid())  # the restart keeps the process id
        elif option in _VALUES:
            if not given:
                if not rest:
                    raise WrongUsage(f"option {option} requires a value")
                value = rest.pop(0)
            chosen[_VALUES[option]] = value
        else:
            raise WrongUsage(f"unknown option {option}")
    if rest and rest[0] == "--":
        del rest[0]
    if not rest or (rest[0] in ("-m", "-c") and len(rest) < 2):
        raise WrongUsage("missing program; give a file, -m MODULE or -c CODE")
    if rest[0].startswith("-") and rest[0][:2] not in ("-m", "-c") and rest[0] != "-":
        raise WrongUsage(f"unknown option {rest[0]}")
    return rest, chosen


def interpreter_options() -> list[str]:
    """This interpreter's own options, as in ``python -W error -m gradwire run ...``."""
    given = sys.orig_argv[1:]
    return given[: given.index("-m")] if "-m" in given and given[given.index("-m") + 1 :][:1] == ["gradwire"] else []


def run(arguments: Sequence[str]) -> int:
    """Replace this process by the program. Returns an exit code only for an invalid command line, or on systems without
    ``exec``."""
    if arguments and arguments[0] == "--help":
        print(USAGE, end="")
        return 0
    try:
        program, chosen = parse(arguments)
    except WrongUsage as error:
        print(f"{USAGE}\ngradwire run: {error}", file=sys.stderr)
        return 2
    if (sys.flags.ignore_environment or sys.flags.no_site) and interpreter_options():
        print("gradwire run: -E, -I and -S prevent the import hook for torch; remove them", file=sys.stderr)
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
