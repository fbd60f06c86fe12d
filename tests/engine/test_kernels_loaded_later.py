"""A kernel is loaded when it is first called, for the dtype it is called with, whatever happened to the cache since."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gradwire_engine.autograd import registry
from gradwire_engine.autograd.registry import ROWS, row
from gradwire_engine.kernels.cpu import toolchain

pytestmark = pytest.mark.skipif(find_spec("numba") is None, reason="there is no Numba for this platform")

ROOT = Path(__file__).parents[2]

PROGRAM = """
import gc, json, logging, pathlib, shutil, sys
import numpy as np
import gradwire_engine.ops
from gradwire_engine.autograd.registry import row
from gradwire_engine.kernels.cpu import later, threads, toolchain

said = []
class Said(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger("gradwire.compiled").addHandler(Said())

folder = toolchain._cache_folder(None)
if sys.argv[1] != "kept":
    copy = pathlib.Path(sys.argv[2])
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    folder = copy
toolchain.load(folder)
if sys.argv[1] == "removed":
    shutil.rmtree(folder)
elif sys.argv[1] == "damaged":
    for path in [*folder.rglob("*.nbc"), *folder.rglob("objects/*")]:
        path.write_bytes(path.read_bytes()[:100])
elif sys.argv[1] == "without objects":
    for path in folder.rglob("objects/*"):
        path.unlink()

def held():
    kernels = [each for each in gc.get_objects() if type(each) is later.LoadedLater]
    return sorted(f"{k.py_func.__name__} {d}" for k in kernels for d in k._found if d is not None)

before = held()
x = np.linspace(-2, 2, 1 << 20, dtype=np.float32)
threads.use_threads(2)
found = row("silu").compiled(np, x)
threads.use_threads(1)
again = row("silu").compiled(np, x)
line = np.linspace(-2, 2, 4096, dtype=np.float32)
print(json.dumps({
    "before": before, "after": held(), "same": bool((found == again).all()),
    "right": bool(np.allclose(found, x / (1 + np.exp(-x)), rtol=1e-5, atol=1e-6)), "said": said,
    "cut": bool((row("relu").compiled(np, line) == np.maximum(line, 0)).all()),
    "alone": "scipy.linalg" not in sys.modules,  # Numba imports it before it loads a kernel in its own way
}))
"""


def outcome(cache: str, folder: Path) -> dict[str, Any]:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, cache, str(folder)],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'engine'}{os.pathsep}{ROOT / 'protocol'}"},
        capture_output=True, text=True, check=True, timeout=400,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module", autouse=True)
def complete() -> None:
    assert toolchain.wait(), toolchain.describe()["reason"]


@pytest.mark.parametrize("cache", ["kept", "without objects", "removed", "damaged"])
def test_machine_code_comes_at_the_first_call(cache: str, tmp_path: Path) -> None:
    found = outcome(cache, tmp_path / "cache")
    assert found["before"] == []
    assert found["after"] == ["silu_each float32", "silu_each_by_threads float32"]  # itself, and by threads
    assert found["right"]
    assert found["same"]
    assert found["cut"]
    assert found["alone"] == (cache == "kept")
    assert bool(found["said"]) == (cache == "damaged"), found["said"]


TRIED = """
import json, msgspec, pathlib, sys
import gradwire_engine.ops
from gradwire_engine.kernels.cpu import object_code, toolchain

code = next(toolchain._cache_folder(None).glob("softmax-*/objects/*")).read_bytes()
found = msgspec.msgpack.decode(code, type=object_code.Code)
place = pathlib.Path(sys.argv[1])
place.mkdir()
object_code.keep(place, [object_code.Compiled("right", lambda: found)])
right = object_code.kept(place)
(place / "objects").rename(place / "others")
object_code.keep(place, [object_code.Compiled("wrong", lambda: msgspec.structs.replace(found, entry="nowhere"))])
print(json.dumps({"right": right is not None, "wrong": object_code.kept(place) is not None,
                  "left": sorted(path.name for path in place.iterdir())}))
"""


def test_object_code_is_kept_only_if_llvm_can_place_it(tmp_path: Path) -> None:
    """LLVM ends a process that asks for a function that is not there: here a child that tries it."""
    said = subprocess.run(
        [sys.executable, "-c", TRIED, str(tmp_path / "module")],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'engine'}{os.pathsep}{ROOT / 'protocol'}"},
        capture_output=True, text=True, check=True, timeout=400,
    )  # fmt: skip
    assert json.loads(said.stdout.splitlines()[-1]) == {"right": True, "wrong": False, "left": ["others"]}


def test_every_compiled_module_has_its_object_code() -> None:
    folder = toolchain._cache_folder(None)
    assert [name for name in toolchain.modules() if not (toolchain._place(folder, name) / "objects").is_dir()] == []


def test_a_form_that_is_first_mentioned_while_kernels_are_registered_has_them(monkeypatch: Any) -> None:
    """A thread registers the kernels of new processes while sessions mention ops."""
    monkeypatch.setattr(registry, "ROWS", dict(ROWS))
    registry.ROWS.pop("silu_", None)
    began, goes_on = threading.Event(), threading.Event()
    with_forms = registry._with_forms

    def slowly(names: Any) -> Any:
        found = with_forms(names)
        began.set()
        goes_on.wait(20)
        return found

    monkeypatch.setattr(registry, "_with_forms", slowly)
    before = registry.row("silu").compiled

    def kernel(*_: Any) -> Any:
        return NotImplemented

    registering = threading.Thread(target=lambda: registry.compiled("silu")(kernel))
    registering.start()
    assert began.wait(20)
    found: list[Any] = []
    mentioning = threading.Thread(target=lambda: found.append(registry.row("silu_")))
    mentioning.start()
    mentioning.join(0.3)
    goes_on.set()
    registering.join(20)
    mentioning.join(20)
    try:
        assert found[0].compiled is registry.row("silu").compiled is kernel
    finally:
        row("silu").compiled = before
