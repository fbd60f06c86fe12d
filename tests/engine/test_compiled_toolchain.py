"""Preparing compiled kernels harms nobody: neither machines without Numba nor shared ones."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.kernels.cpu import toolchain

ROOT = Path(__file__).parents[2]

NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="there is no Numba for this platform")


@pytest.fixture
def fresh(monkeypatch: Any) -> toolchain._Toolchain:
    """A process that has not asked for kernels yet."""
    state = toolchain._Toolchain()
    monkeypatch.setattr(toolchain, "_shared", state)
    return state


def test_the_engine_is_imported_without_numba() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import sys; from gradwire_engine import ops, session; print('numba' in sys.modules)"],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'engine'}{os.pathsep}{ROOT / 'protocol'}"},
        capture_output=True, text=True, check=True, timeout=400,
    )  # fmt: skip
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize("missing", ["_digest", "_compile_elsewhere", "load", "_check_executable"])
def test_whatever_fails_leaves_sessions_on_numpy_and_one_line_in_the_log(
    fresh: toolchain._Toolchain, missing: str, monkeypatch: Any, caplog: Any, tmp_path: Path
) -> None:
    def fails(*_: Any) -> Any:
        raise ImportError("No module named 'numba'")

    monkeypatch.setattr(toolchain, "_digest", lambda: "these-kernels")
    monkeypatch.setattr(toolchain, "_compile_elsewhere", lambda folder: None)
    monkeypatch.setattr(toolchain, missing, fails)
    with caplog.at_level(logging.WARNING):
        toolchain.configure("auto", tmp_path)
        assert not toolchain.wait(60)
    assert toolchain.describe()["state"] == "failed"
    assert "numba" in toolchain.describe()["reason"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert not toolchain.wanted()


def test_sessions_take_kernels_by_the_setting(fresh: toolchain._Toolchain, monkeypatch: Any) -> None:
    loaded = threading.Event()
    monkeypatch.setattr(toolchain, "_check_executable", lambda: loaded.wait(60) and None)
    monkeypatch.setattr(toolchain, "_cache_folder", lambda base: Path())
    monkeypatch.setattr(toolchain, "modules", list)
    toolchain.configure("off")
    assert not toolchain.wanted()
    assert fresh.state == "idle"
    toolchain.configure("auto")
    assert not toolchain.wanted()
    assert fresh.state == "preparing"
    loaded.set()
    toolchain.configure("wait")
    assert toolchain.wanted()
    toolchain.configure("auto")
    assert toolchain.wanted()
    toolchain.configure("off")
    assert not toolchain.wanted()
    assert toolchain.ready()


@NUMBA
def test_a_cache_that_others_may_write_to_is_not_used(tmp_path: Path, caplog: Any) -> None:
    shared = tmp_path / "kernels"
    shared.mkdir()
    shared.chmod(0o777)
    with caplog.at_level(logging.WARNING):
        folder = toolchain._cache_folder(tmp_path)
    assert tmp_path not in folder.parents
    assert folder.stat().st_mode & 0o077 == 0
    assert "others may write" in caplog.text
    shared.chmod(0o700)
    assert toolchain._cache_folder(tmp_path).parent == shared


@NUMBA
def test_a_cache_that_cannot_be_made_is_a_temporary_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    folder = toolchain._cache_folder(tmp_path / "file")
    assert folder.is_dir()
    assert tmp_path not in folder.parents


def test_what_other_versions_have_left_is_removed_but_for_the_newest(tmp_path: Path) -> None:
    for i in range(8):
        (tmp_path / f"version-{i}").mkdir()
        os.utime(tmp_path / f"version-{i}", (i, i))
    folder = tmp_path / "version-0"
    kept = toolchain._place(folder, toolchain.modules()[0])
    for path in (kept, folder / "softmax-before-it-changed"):
        path.mkdir()
    toolchain._forget_old(folder)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"version-{i}" for i in (0, 4, 5, 6, 7)]
    assert list(folder.iterdir()) == [kept]


@NUMBA
def test_another_installation_and_a_newer_source_have_a_cache_of_their_own(monkeypatch: Any, tmp_path: Path) -> None:
    """As Numba has it: a cache that seemed complete would be compiled again by each process that loads it."""
    name = toolchain.modules()[0]
    here = toolchain._digest()
    copied = tmp_path / "cpu"
    shutil.copytree(toolchain._HERE, copied)
    monkeypatch.setattr(toolchain, "_HERE", copied)
    assert toolchain._digest() != here
    before = toolchain._place(tmp_path, name)
    assert toolchain._place(tmp_path, name) == before
    os.utime(copied / "kernels" / f"{name}.py", (1, 1))
    assert toolchain._place(tmp_path, name) != before


@pytest.mark.parametrize("dies", [False, True], ids=["both live", "one dies"])
def test_two_that_fill_a_cache_share_the_modules(dies: bool, monkeypatch: Any, tmp_path: Path) -> None:
    """Each is compiled once and at the same time as the other; what one leaves undone, the other does."""
    folder = tmp_path / "kernels" / "these"
    folder.mkdir(parents=True)
    both, made, failed = threading.Barrier(2, timeout=240), [], []

    def compile_(folder: Path, name: str) -> None:
        first = name not in made
        made.append(name)
        if first:
            both.wait()
            if dies and name == "convolution":
                raise MemoryError
        (folder / name).mkdir()

    def fill() -> None:
        try:
            toolchain._fill(folder, 0)
        except MemoryError as error:
            failed.append(error)

    monkeypatch.setattr(toolchain, "modules", lambda: ["convolution", "softmax"])
    monkeypatch.setattr(toolchain, "_place", lambda folder, name: folder / name)
    monkeypatch.setattr(toolchain, "_import", compile_)
    workers = [threading.Thread(target=fill) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(failed) == dies
    assert sorted(made) == ["convolution"] * (1 + dies) + ["softmax"]
    assert toolchain._complete(folder)


@NUMBA
@pytest.mark.timeout(900)  # where nothing is in the cache, it waits for all kernels
def test_an_engine_that_was_not_told_to_runs_numpy_alone() -> None:
    assert toolchain.wait(), toolchain.describe()
    values = np.linspace(-3, 3, 4096, dtype="f").reshape(64, 64)
    found = []
    for compiled in (False, True, False):
        e = Engine()
        e.compiled = compiled
        found.append(e.to_numpy(e.call("gelu", e.from_numpy(values))).tobytes())
    assert found[0] == found[2] != found[1]


@NUMBA
def test_a_complete_cache_that_may_only_be_read_is_copied(monkeypatch: Any, tmp_path: Path) -> None:
    """As in an image with a read-only file system."""
    monkeypatch.setattr(toolchain, "modules", lambda: ["softmax"])
    filled = toolchain._place(toolchain._cache_folder(tmp_path), "softmax")
    filled.mkdir()
    (filled / toolchain._STAMP).touch()
    (filled / "code").write_bytes(b"machine code")

    change = os.utime

    def refuses(path: Any, *args: Any, **named: Any) -> None:
        if tmp_path in Path(path).parents:
            raise PermissionError("read-only file system")
        change(path, *args, **named)

    monkeypatch.setattr(os, "utime", refuses)
    folder = toolchain._cache_folder(tmp_path)
    assert tmp_path not in folder.parents
    assert toolchain._complete(folder)
    assert (toolchain._place(folder, "softmax") / "code").read_bytes() == b"machine code"
    (tmp_path / "kernels").chmod(0o777)
    assert not toolchain._complete(toolchain._cache_folder(tmp_path))
