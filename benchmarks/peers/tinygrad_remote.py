"""tinygrad's remote device: ops are lazy, and realised ones go to the server over HTTP in batches."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

from talk import LINKS, Beside, answer, arguments, data

COMPILER = """#!{python}
import os, sys
arguments = []
for given in sys.argv[1:]:
    arguments += ["-target", "x86_64-freestanding-none"] if given.startswith("--target=") else [given]
plain = ["-g0", "-fno-sanitize=all", "-fno-stack-protector"]
os.execv(sys.executable, [sys.executable, "-m", "ziglang", "cc", *arguments, *plain])
"""
"""tinygrad calls clang to compile for the processor. Zig's, which comes as a wheel, is clang with other manners."""


def clang(folder: str) -> str:
    """The compiler to use: clang where it is installed, else a script that calls Zig's."""
    found = shutil.which("clang")
    if found:
        return found
    script = Path(folder) / "cc"
    script.write_text(COMPILER.format(python=sys.executable))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def measure(relay: str) -> None:
    beside = Beside()
    with tempfile.TemporaryDirectory() as folder:
        try:
            port = beside.relay(relay, beside.serve({"REMOTEDEV": "CPU", "CC": clang(folder)}))
            os.environ |= {"REMOTE": "1", "HOST": f"127.0.0.1:{port}"}
            _measure()
        finally:
            beside.end()


def _measure() -> None:
    from importlib.metadata import version

    from tinygrad import Tensor, TinyJit

    x, w = (Tensor(array, requires_grad=True).realize() for array in data())

    def backward() -> Any:
        x.grad = w.grad = None
        h = x
        for _ in range(LINKS):
            h = (h @ w).relu()
        h.mean().backward()
        return x.grad

    whole = TinyJit(lambda: backward().realize())
    forms = {"op by op": lambda: backward().numpy(), "TinyJit": lambda: whole().numpy()}
    for _ in range(3):  # a TinyJit captures its second call
        forms["TinyJit"]()
    answer(f"tinygrad {version('tinygrad')}", forms)


if __name__ == "__main__":
    given = arguments()
    if given.role == "serve":
        from tinygrad.runtime.ops_remote import remote_server

        remote_server(given.port)
    else:
        measure(given.relay)
