"""Getting the compiled kernels ready, without anybody waiting who does not want to.

Compiling them takes minutes, and loading all that was compiled takes seconds. So a child process of low priority fills
a cache on disk while NumPy does the work, and a kernel is loaded from it when it is first called (:mod:`.later`).
Nothing that goes wrong here reaches a session: without Numba, or with a kernel that does not compile, sessions stay on
NumPy, and the log has one line of it.

The cache holds machine code, which loading it runs: a folder that others may write to is not used.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import importlib
import json
import logging
import mmap
import os
import pkgutil
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

Mode = Literal["auto", "off", "wait"]
"""Whether sessions take compiled kernels: once they are loaded, never, or from the beginning, waiting for them."""

State = Literal["idle", "preparing", "ready", "failed"]

COMPILING_S: Final = 900.0
"""After this long a child that compiles is given up."""

LOADING_S: Final = 3.0
"""How long somebody waits at most who waits for kernels that need not be compiled."""

FOOTPRINT_BYTES: Final = 256 << 20
"""Memory of a process that Numba and the loaded kernels take at most."""

FOLDERS_KEPT: Final = 4
"""Caches of other versions or processors, beside the one in use."""

SAID_CHARACTERS: Final = 1000
"""Of what a child that failed said: the end of it is in the log."""

_STAMP: Final = "complete"
_APART: Final = ("__init__.py", "later.py", "object_code.py", "toolchain.py", "threads.py")
"""Sources here that no machine code is made of."""

_HERE: Final = Path(__file__).resolve().parent

log = logging.getLogger("gradwire.compiled")


class _Toolchain:
    """What this process knows of its kernels."""

    def __init__(self) -> None:
        self.mode: Mode = "off"
        self.cache: Path | None = None
        self.state: State = "idle"
        self.loading = False
        self.reason = ""
        self.seconds = 0.0
        self.lock = threading.Lock()
        self.over = threading.Event()


_shared = _Toolchain()


def configure(mode: Mode, cache_dir: Path | str | None = None) -> None:
    """Say when sessions of this process take compiled kernels, and where the cache is; then get ready for it."""
    _shared.mode = mode
    _shared.cache = Path(cache_dir) if cache_dir else None
    if mode != "off":
        request()


def wanted() -> bool:
    """Whether a session shall run compiled kernels from its next frame on."""
    if _shared.mode == "wait":
        return wait()
    return _shared.mode != "off" and _shared.state == "ready"


def ready() -> bool:
    """Whether the kernels are loaded. Once they are, they stay."""
    return _shared.state == "ready"


def request() -> None:
    """Begin to get ready in the background, unless that has begun."""
    with _shared.lock:
        if _shared.state != "idle":
            return
        _shared.state = "preparing"
    threading.Thread(target=_prepare, name="compiled-toolchain", daemon=True).start()


def wait(timeout_s: float | None = None) -> bool:
    """Get ready and wait until that is over, or for so long; whether the kernels are loaded."""
    if _shared.state != "ready":
        request()
        _shared.over.wait(timeout_s)
    return ready()


def loading() -> bool:
    """Whether kernels that the cache has are about to be there."""
    return _shared.loading


def await_loading() -> None:
    """Wait while that is so."""
    if _shared.loading:
        _shared.over.wait(LOADING_S)


def describe() -> dict[str, Any]:
    """``mode``, ``state``, why it failed, and how long it took."""
    return {
        "mode": _shared.mode, "state": _shared.state, "reason": _shared.reason, "seconds": round(_shared.seconds, 3)
    }  # fmt: skip


def _prepare() -> None:
    began = time.monotonic()
    _shared.loading = True
    try:
        _check_executable()
        folder = _cache_folder(_shared.cache)
        if not _complete(folder):
            _shared.loading = False
            log.info("compiling kernels for this processor at low priority, into %s; NumPy computes until then", folder)
            _compile_elsewhere(folder)
        load(folder)
        log.info("compiled kernels are ready after %.1f s", time.monotonic() - began)
    except Exception as error:  # whatever it is, sessions go on with NumPy
        _shared.reason = f"{type(error).__name__}: {error}"[-SAID_CHARACTERS:]
        log.warning("compiled kernels cannot be used, sessions stay on NumPy: %s", _shared.reason)
        _shared.state = "failed"
    else:
        _shared.state = "ready"
    finally:
        _shared.seconds = time.monotonic() - began
        _shared.loading = False
        _shared.over.set()


def _check_executable() -> None:
    """LLVM would end the process where memory may not be made executable.

    Raises:
        OSError: when that is so.
    """
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
        pass


# The cache


def _digest() -> str:
    """What a cache belongs to: versions, the processor, this installation, and the sources that all kernels share.

    Numba keeps machine code by the path of its source, so another installation finds none of it.
    """
    import llvmlite
    import llvmlite.binding
    import numba

    features = llvmlite.binding.get_host_cpu_features().flatten()
    processor = llvmlite.binding.get_host_cpu_name()
    facts = [numba.__version__, llvmlite.__version__, platform.python_version(), processor, features, str(_HERE)]
    found = hashlib.sha256("\n".join(facts).encode())
    for path in sorted(_HERE.glob("*.py")):
        if path.name not in _APART:
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:20]


def _place(folder: Path, module: str) -> Path:
    """Where the kernels of a module are kept: by its source, since installed files may all have the same time, and by
    its time, since Numba compiles again what has another."""
    source = _HERE / "kernels" / f"{module}.py"
    found = hashlib.sha256(source.read_bytes() + str(source.stat().st_mtime_ns).encode())
    return folder / f"{module}-{found.hexdigest()[:20]}"


def _complete(folder: Path) -> bool:
    """Whether nothing is left to compile."""
    return all((_place(folder, name) / _STAMP).exists() for name in modules())


def _default_base() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradwire"


def _cache_folder(base: Path | None) -> Path:
    """The folder for these kernels on this machine, made if need be."""
    name = _digest()
    try:
        folder = (base or _default_base()) / "kernels" / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _ours(folder.parent) and _ours(folder):
            os.utime(folder)
            return folder
        if not (_trusted(folder.parent) and _trusted(folder)):
            log.warning("others may write to %s, so kernels are not kept there", folder.parent)
    except (OSError, RuntimeError) as error:  # it cannot be made, or there is no home
        log.info("no cache of compiled kernels in %s: %s", base or "the home directory", error)
    made = Path(tempfile.mkdtemp(prefix="gradwire-kernels-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    filled = (base or Path()) / "kernels" / name
    if base is not None and filled.is_dir() and _trusted(filled.parent) and _trusted(filled) and _complete(filled):
        # One that may only be read, as in an image. Numba takes nothing from a folder that it cannot write to.
        shutil.copytree(filled, made, dirs_exist_ok=True)
    return made


def _ours(folder: Path) -> bool:
    """Whether this process can put files there, and nobody else."""
    return _trusted(folder) and os.access(folder, os.W_OK)


def _trusted(folder: Path) -> bool:
    """Whether nobody else can put files there."""
    status = folder.stat()
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def _forget_old(folder: Path) -> None:
    """Remove caches of other versions but for the newest few, and what modules were compiled to before they changed."""
    others = sorted((p for p in folder.parent.iterdir() if p.is_dir() and p != folder), key=lambda p: p.stat().st_mtime)
    kept = {_place(folder, name) for name in modules()}
    stale = [p for p in folder.iterdir() if p.is_dir() and p not in kept]
    for path in [*others[: max(len(others) - FOLDERS_KEPT, 0)], *stale]:
        shutil.rmtree(path, ignore_errors=True)


def inspect_cache(base: Path | str | None = None) -> dict[str, bool]:
    """What a cache is to the next start, without making or changing anything: ``kept``, whether kernels are or could be
    kept there, and ``complete``, whether those of this version and processor are there.

    It loads LLVM, so a process that has not done so lets :func:`main` tell it (``--inspect``).

    Args:
        base: where caches are, as in :func:`configure`.

    Raises:
        ImportError: without Numba.
        OSError, RuntimeError: when the folder cannot be looked at, or there is no home.
    """
    folder = (Path(base) if base else _default_base()) / "kernels" / _digest()
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if there in (folder, folder.parent):
        kept = all(_ours(each) for each in (folder.parent, there))
    else:  # what is made will be this user's alone
        kept = os.access(there, os.W_OK | os.X_OK)
    return {"kept": kept, "complete": folder.is_dir() and _trusted(folder) and _complete(folder)}


# Compiling and loading


def _compile_elsewhere(folder: Path) -> None:
    """Let a child process fill the cache.

    Raises:
        RuntimeError: with the end of what it said.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    command = [sys.executable, "-m", __name__, str(folder), str(os.getpid())]
    child = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    atexit.register(child.kill)
    try:
        _, said = child.communicate(timeout=COMPILING_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise RuntimeError(f"compiling took more than {COMPILING_S:g} s") from None
    finally:
        atexit.unregister(child.kill)
    if child.returncode:
        raise RuntimeError(
            f"compiling them failed: {said.strip()[-SAID_CHARACTERS:] or f'exit code {child.returncode}'}"
        )


def modules() -> list[str]:
    """The modules with kernels."""
    from . import kernels

    return [found.name for found in pkgutil.iter_modules(kernels.__path__)]


def load(folder: Path) -> list[ModuleType]:
    """Import all kernels in this process. Machine code that the cache has is loaded when it is first called."""
    from ... import ops  # noqa: F401  (the kernels they stand beside)

    complete = _complete(folder)
    return [_import(folder, name, complete) for name in modules()]


def _import(folder: Path, module: str, complete: bool = False) -> ModuleType:
    import numba

    from .later import take_later

    place = _place(folder, module)
    # Read when a function is compiled.
    setattr(numba.config, "CACHE_DIR", str(place))  # noqa: B010  (a module that fills itself)
    take_later(place if complete else None)
    try:
        return importlib.import_module(f"{__package__}.kernels.{module}")
    finally:
        take_later(None)


def _fill(folder: Path, parent: int) -> None:
    """Compile what the cache lacks, each module by one process, and only as long as the one that asked is there."""
    from ... import ops  # noqa: F401

    for waits in (False, True):  # what nobody is at comes first, then what another process may have left undone
        for name in modules():
            if parent and os.getppid() != parent:
                return
            _fill_module(folder, name, waits)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _forget_old(folder)


def _fill_module(folder: Path, name: str, waits: bool) -> None:
    """Compile a module that the cache lacks; unless it ``waits``, it leaves those to others that they are at."""
    complete = _place(folder, name) / _STAMP
    if complete.exists():
        return
    with (folder / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not complete.exists():
            from . import object_code

            # What another process began is compiled again: Numba does not give the object code of what it has loaded.
            shutil.rmtree(complete.parent, ignore_errors=True)
            with object_code.noting() as compiled:
                _import(folder, name)
            object_code.keep(complete.parent, compiled)
            complete.touch()


def warm(base: Path | str | None = None) -> Path:
    """Compile what the cache lacks, now and with two processes. Returns the folder of the cache.

    Args:
        base: where caches are, as in :func:`configure`.

    Raises:
        OSError: when no cache can be kept there: what is compiled would be lost.
    """
    place = Path(base) if base else _default_base()
    folder = _cache_folder(place)
    if place not in folder.parents:
        raise OSError(f"no cache can be kept in {place}: it must be a folder that only this user may write to")
    _fill_now(folder)
    return folder


def _fill_now(folder: Path) -> None:
    if not _complete(folder):
        # Somebody waits for this one, so two processes share the work. What the other leaves undone is done here.
        command = [sys.executable, "-m", f"{__package__}.toolchain", str(folder), str(os.getpid())]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL):
            _fill(folder, 0)


def main() -> int:
    """Fill the cache: of the folder in ``argv`` for the process there, else the one that ``GRADWIRE_CACHE_DIR`` has.
    With ``--inspect``, print as JSON what that one is like instead."""
    began = time.monotonic()
    if sys.argv[1:] == ["--inspect"]:
        print(json.dumps(inspect_cache(os.environ.get("GRADWIRE_CACHE_DIR"))))
        return 0
    if len(sys.argv) > 1:
        os.nice(19)
        _fill(Path(sys.argv[1]), int(sys.argv[2]))
        return 0
    base = os.environ.get("GRADWIRE_CACHE_DIR")
    folder = _cache_folder(Path(base) if base else None)
    _fill_now(folder)
    print(f"compiled kernels are in {folder}, after {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
