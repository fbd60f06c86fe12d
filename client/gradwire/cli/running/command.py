"""``gradwire run``: restarts Python on a program, with gradwire in place of torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

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
  --nproc N       Start N ranks that train together, as torchrun does: each finds RANK, LOCAL_RANK, WORLD_SIZE,
                  MASTER_ADDR and MASTER_PORT in its environment. The first that fails ends the others.
  --max-restarts N  Start all ranks again, up to N times, when one fails. Default: 0.
  --nnodes N, --node-rank N, --master-addr HOST, --master-port N, --run-id ID
                  Ranks on N machines, of which this is one: the same command on each, with its own --node-rank. They
                  meet on the server, so --url is needed; address, port or id name the job.
  --help          Show this message and exit.
"""
_RANKS: Final = {
    "--nproc": "nproc", "--nproc-per-node": "nproc", "--nnodes": "nnodes", "--node-rank": "node_rank",
    "--master-addr": "address", "--master-port": "port", "--run-id": "run_id", "--rdzv-id": "run_id",
    "--max-restarts": "max_restarts",
}  # fmt: skip
"""Options for several ranks, and the fields of a :class:`Job`; torchrun's spellings with underscores are accepted."""
_VALUES: Final = {"--url": "GRADWIRE_URL", "--api-key": "GRADWIRE_API_KEY", "--device": "GRADWIRE_RUN_DEVICE"}


@dataclass
class Wanted:
    """What the command line asks for.

    Attributes:
        program: Python's arguments.
        variables: environment variables to set.
        ranks: fields of a :class:`Job`; empty for one process.
    """

    program: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, Any] = field(default_factory=dict)


class WrongUsage(Exception):
    """An invalid command line; the message says why."""


def parse(arguments: Sequence[str]) -> Wanted:
    """What a command line asks for. Options precede the program; everything after it belongs to the program.

    Raises:
        WrongUsage: when the program is missing, or an option is unknown or lacks its value.
    """
    rest = list(arguments)
    wanted = Wanted()
    while rest and rest[0].startswith("--") and rest[0] != "--":
        option, given, value = rest.pop(0).partition("=")
        spelled = option.replace("_", "-")
        if option == "--stats" and not given:
            wanted.variables["GRADWIRE_RUN_STATS"] = str(os.getpid())  # the restart keeps the process id
        elif option in _VALUES or spelled in _RANKS:
            if not given:
                if not rest:
                    raise WrongUsage(f"option {option} requires a value")
                value = rest.pop(0)
            if option in _VALUES:
                wanted.variables[_VALUES[option]] = value
            else:
                name = _RANKS[spelled]
                wanted.ranks[name] = value if name in ("address", "run_id") else _count(option, value)
        else:
            raise WrongUsage(f"unknown option {option}")
    if rest and rest[0] == "--":
        del rest[0]
    if not rest or (rest[0] in ("-m", "-c") and len(rest) < 2):
        raise WrongUsage("missing program; give a file, -m MODULE or -c CODE")
    if rest[0].startswith("-") and rest[0][:2] not in ("-m", "-c") and rest[0] != "-":
        raise WrongUsage(f"unknown option {rest[0]}")
    wanted.program = rest
    if wanted.ranks:
        _check_ranks(wanted)
    return wanted


def _count(option: str, value: str) -> int:
    if not value.isdigit():
        raise WrongUsage(f"option {option} requires a number, not {value!r:.40}")
    return int(value)


def _check_ranks(wanted: Wanted) -> None:
    ranks = wanted.ranks
    nnodes = ranks.get("nnodes", 1)
    if not ranks.setdefault("nproc", 1) or not nnodes:
        raise WrongUsage("--nproc and --nnodes are at least 1")
    if ranks.get("node_rank", 0) >= nnodes:
        raise WrongUsage(f"--node-rank is below --nnodes {nnodes}, not {ranks['node_rank']}")
    if nnodes > 1:
        if not (wanted.variables.get("GRADWIRE_URL") or os.environ.get("GRADWIRE_URL")):
            raise WrongUsage("ranks on several machines meet on a server: --url or GRADWIRE_URL is needed")
        if "node_rank" not in ranks:
            raise WrongUsage("--nnodes needs --node-rank, from 0")
        if not ranks.get("run_id") and not (ranks.get("address") and ranks.get("port")):
            raise WrongUsage("--nnodes needs --run-id, or --master-addr and --master-port, the same on all machines")
    if wanted.program[0] == "-":
        raise WrongUsage("several ranks cannot read the program from one standard input")


def interpreter_options() -> list[str]:
    """This interpreter's own options, as in ``python -W error -m gradwire run ...``."""
    given = sys.orig_argv[1:]
    return given[: given.index("-m")] if "-m" in given and given[given.index("-m") + 1 :][:1] == ["gradwire"] else []


def run(arguments: Sequence[str]) -> int:
    """Replace this process by the program, or start its ranks. Returns an exit code only with several ranks, for an
    invalid command line, or on systems without ``exec``."""
    if arguments and arguments[0] == "--help":
        print(USAGE, end="")
        return 0
    try:
        wanted = parse(arguments)
    except WrongUsage as error:
        print(f"{USAGE}\ngradwire run: {error}", file=sys.stderr)
        return 2
    if (sys.flags.ignore_environment or sys.flags.no_site) and interpreter_options():
        print("gradwire run: -E, -I and -S prevent the import hook for torch; remove them", file=sys.stderr)
        return 2
    environment = {**os.environ, **wanted.variables}
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(STARTUP), before] if before else [str(STARTUP)])
    command = [sys.executable, *interpreter_options(), *wanted.program]
    sys.stdout.flush()
    sys.stderr.flush()
    if wanted.ranks:
        from .launching import Job, launch

        if "GRADWIRE_RUN_STATS" in environment:
            environment["GRADWIRE_RUN_STATS"] = f"ranks of {os.getpid()}"
        return launch(Job(**wanted.ranks), command, environment)
    if os.name == "posix":
        os.execve(sys.executable, command, environment)
    return subprocess.call(command, env=environment)
