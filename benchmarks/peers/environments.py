"""The peers, and an environment for each under ``build/peers``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "peers"
INSTALL_S: Final = 600.0
FAILED: Final = re.compile(r"ERROR\b|[\w.]*(Error|Exception)\b")
"""How a line begins that says what failed."""


@dataclass(frozen=True)
class Peer:
    """Another remote tensor library.

    Attributes:
        script: the module of this package that runs the step.
        requirements: the packages of its environment; empty for the project's own, which has torch.
        absent: why it is not tried, if so.
    """

    name: str
    script: str = ""
    requirements: tuple[str, ...] = ()
    absent: str = ""


PEERS: Final = (
    Peer("torch.distributed.rpc", "torch_rpc.py"),
    Peer("TensorFlow remote eager", "tensorflow_eager.py", ("tensorflow-cpu==2.21.0",)),
    Peer("tinygrad remote", "tinygrad_remote.py", ("tinygrad==0.11.0", "numpy", "ziglang==0.13.0")),
    Peer("Monarch", "monarch_mesh.py", ("torchmonarch==0.7.0", "torch==2.13.0")),
    Peer("Burn Remote", absent="it is a Rust crate, and has to be built with cargo from crates.io: no package for pip"),
)


class NotInstalled(Exception):
    """A peer's environment could not be created; the reason in one line."""


def python_of(peer: Peer) -> str:
    """The peer's interpreter, installed if necessary.

    Raises:
        NotInstalled: with the first line of the error.
    """
    if peer.absent:
        raise NotInstalled(peer.absent)
    if not peer.requirements:
        return sys.executable
    home = FOLDER / peer.script.removesuffix(".py")
    python = home / "bin" / "python"
    stamp = home / "requirements"
    wanted = "\n".join(peer.requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    venv.create(home, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", *peer.requirements]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            stdin=subprocess.DEVNULL,
            cwd=FOLDER,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"pip did not finish within {INSTALL_S:.0f} s") from None
    if done.returncode:
        raise NotInstalled(first_line(done.stderr))
    stamp.write_text(wanted)
    return str(python)


def first_line(errors: str) -> str:
    """The first line of a program's output that reports a failure, without this machine's paths."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    telling = [line for line in lines if FAILED.match(line)]
    found = (telling or lines or ["it said nothing"])[0]
    return found.replace(str(ROOT), ".").replace(os.path.expanduser("~"), "~")
