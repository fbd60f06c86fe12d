"""The environment under ``build/libraries``: the libraries, gradwire from this tree, and PyTorch in a folder beside.

The libraries require PyTorch, so pip installs it. It is then moved out of the environment: under ``gradwire run``
nothing of it can be imported, found or linked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from enum import Enum
from pathlib import Path
from typing import Final

from .entries import packages

ROOT: Final = Path(__file__).parents[2]
HOME: Final = ROOT / "build" / "libraries"
ORACLE: Final = HOME / "oracle"
"""The folder that holds PyTorch alone; first on the path where it is to be used."""
PYTHON: Final = HOME / "environment" / "bin" / "python"
CONSTRAINTS: Final = Path(__file__).parent / "constraints.txt"
INSTALL_S: Final = 3600.0
_PYTORCH: Final = ("torch", "torchgen", "functorch")


class Way(Enum):
    """How a program runs: with PyTorch, with gradwire in its place, or with PyTorch on gradwire's device."""

    TORCH = "torch"
    GRADWIRE = "gradwire"
    DEVICE = "device"


class NotInstalled(Exception):
    """The environment could not be created; the end of pip's output."""


def prepare() -> None:
    """Install what is missing or pinned otherwise.

    Raises:
        NotInstalled: if pip fails.
    """
    wanted = "\n".join([*packages(), CONSTRAINTS.read_text(encoding="utf-8"), _found_by()])
    stamp = HOME / "stamp"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    HOME.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(ORACLE, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    begin = time.monotonic()
    print(f"installing {len(packages())} packages under {HOME.relative_to(ROOT)}", file=sys.stderr, flush=True)
    venv.create(PYTHON.parents[1], clear=True, with_pip=True)
    _pip("install", "-q", *packages(), "torch", "-e", f"{ROOT}[server]", "-c", str(CONSTRAINTS))
    _move_pytorch()
    stamp.write_text(wanted, encoding="utf-8")
    size = sum(path.stat().st_size for path in HOME.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"installed: {size / 1e9:.1f} GB, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def _found_by() -> str:
    """By what PyTorch finds the device: its entry points, which are written at the installation."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return json.dumps(told["project"]["entry-points"])


def _pip(*arguments: str) -> None:
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL, cwd=HOME, check=False
    )
    if done.returncode:
        raise NotInstalled(done.stderr[-2000:])


def _move_pytorch() -> None:
    ORACLE.mkdir()
    (packages_at,) = (PYTHON.parents[1] / "lib").glob("python*/site-packages")
    for found in [*(packages_at / name for name in _PYTORCH), *packages_at.glob("torch-*.dist-info")]:
        if found.exists():
            found.rename(ORACLE / found.name)
    shutil.copy(Path(__file__).parent / "beside_oracle.py", ORACLE / "sitecustomize.py")


def variables(way: Way) -> dict[str, str]:
    """The environment variables of a program."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GRADWIRE_", "PYTHON"))}
    fixed = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "disabled"}
    quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_TELEMETRY": "1", "MPLBACKEND": "Agg"}
    own = {
        Way.TORCH: {"PYTHONPATH": str(ORACLE), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "DEVICE": "cpu"},
        Way.GRADWIRE: {"DEVICE": "cpu"},
        Way.DEVICE: {"PYTHONPATH": str(ORACLE), "DEVICE": "gradwire", "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
    }
    return {**kept, **fixed, **offline, **quiet, **own[way]}


def versions() -> dict[str, str]:
    """The installed version of each package, and of PyTorch."""
    code = (
        "import json, sys; from importlib.metadata import version; sys.path.append(sys.argv[1]); "
        "print(json.dumps({name: version(name) for name in sys.argv[2:]}))"
    )
    done = subprocess.run(
        [str(PYTHON), "-c", code, str(ORACLE), *packages(), "torch"],
        env=variables(Way.GRADWIRE),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return {name: version.split("+")[0] for name, version in found.items()}
