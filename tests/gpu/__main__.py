"""``python3 -m tests.gpu``: checks the engine on a GPU, from the compiler to the training step, and times it.

It compiles every CUDA source, then compares hot ops with PyTorch on the same device, graphs with their single
launches, plans with the tape bit by bit, NCCL with the way through host memory, and every op with samples on CuPy with
NumPy. ``--bench`` also times the engine against PyTorch and writes ``benchmarks/results/gpu.md``; ``--only bench`` does
only that.

It needs no network. It needs a GPU, Python with NumPy, ml_dtypes, msgspec, PyTorch (samples are torch tensors) and
CuPy, and the sources on the path; plans also need pytest and the client's packages, and models the server's. The last
line is ``N passed, N failed``. Exit status: 1 if something failed, 3 if something is missing and nothing was checked.

Most of the time goes to compiling kernels, which uses one core, so the checks are divided among ``--jobs`` processes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO

    from tests.gpu.parity import Checks

NOTHING_CHECKED = 3
NEEDED = ("numpy", "ml_dtypes", "msgspec", "torch", "gradwire_protocol", "gradwire_engine")
PARTS = ("sources", "torch", "graphs", "nccl", "plans", "served", "ops", "bench")
WHOLE = tuple(part for part in PARTS if part not in ("ops", "bench"))
"""What one process runs as a whole."""
MOST_JOBS = 12
DTYPES = ("float32", "bfloat16", "complex64", "int64", "bool")


def missing(device: str) -> str | None:
    """What keeps the checks from running, in words."""
    wanted = NEEDED if device == "cpu" else (*NEEDED, "cupy")
    absent = [name for name in wanted if find_spec(name) is None]
    if absent:
        return f"this Python ({sys.executable}) lacks {', '.join(absent)}"
    if device == "cpu":
        return None
    from gradwire_engine.runtime.backends import available_devices

    found = available_devices()
    return None if device in found else f"there is no {device} here: CuPy is installed, and sees {', '.join(found)}"


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.gpu", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("-k", metavar="TEXT", default="", help="only ops whose name contains this")
    parser.add_argument("--device", default="cuda:0", help="the device to check; cpu checks this program itself")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="separated by commas, or all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PARTS, help="one part of the checks")
    parser.add_argument("--bench", action="store_true", help="time the engine against PyTorch, too")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that the benchmarks run")
    parser.add_argument("--share", default="1/1", metavar="K/N", help="the K-th of N shares of the ops")
    parser.add_argument("--jobs", type=int, help="processes that share the checks (default: by the cores)")
    parser.add_argument("--limit", type=float, default=3000, help="seconds after which what still runs is ended")
    options = parser.parse_args()
    reason = missing(options.device)
    if reason is not None:
        print(f"nothing was checked: {reason}")
        return NOTHING_CHECKED
    chosen = bool(options.only or options.k) or options.share != "1/1"
    jobs = options.jobs or (1 if chosen else max(1, min(MOST_JOBS, (os.cpu_count() or 1) - 2)))
    if jobs > 1:
        passed, failed = _divided(options, jobs)
    else:
        passed, failed = _checked(options)
    if options.bench or options.only == "bench":
        failed += _bench(options.device, options.quick)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _checked(options: argparse.Namespace) -> tuple[int, int]:
    """Run the checks in this process. Returns how many passed and failed."""
    from tests.gpu.parity import Checks
    from tests.samples import ALL

    dtypes = ALL if options.dtypes == "all" else tuple(options.dtypes.split(","))
    checks = Checks(options.device, dtypes, options.seed)
    alone = ["ops"] if options.k or options.share != "1/1" else [p for p in PARTS if p != "bench"]
    for part in [options.only] if options.only else alone:
        if part == "ops":
            at, _, of = options.share.partition("/")
            checks.run(options.k, (int(at) - 1, int(of)))
        elif part != "bench":
            _part(part, checks, options.device)
    return checks.passed, checks.failed


def _divided(options: argparse.Namespace, jobs: int) -> tuple[int, int]:
    """Run the checks in so many processes at a time, and show what each printed when it is done."""
    same = ["--device", options.device, "--seed", str(options.seed), "--dtypes", options.dtypes]
    shares = max(1, 2 * jobs - len(WHOLE))
    waiting = [["--only", part] for part in WHOLE]
    waiting += [["--only", "ops", "--share", f"{k}/{shares}"] for k in range(1, shares + 1)]
    running: list[tuple[list[str], subprocess.Popen[bytes], IO[bytes], float]] = []
    passed = failed = 0
    until = time.monotonic() + options.limit
    while waiting or running:
        while waiting and len(running) < jobs:
            arguments, output = waiting.pop(0), tempfile.TemporaryFile()  # noqa: SIM115 (closed where it is read)
            command = [sys.executable, "-m", "tests.gpu", "--jobs", "1", *same, *arguments]
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            running.append((arguments, process, output, time.perf_counter()))
        time.sleep(0.1)
        for each in list(running):
            arguments, process, output, began = each
            if process.poll() is None and time.monotonic() < until:
                continue
            process.kill()
            running.remove(each)
            with output:
                output.seek(0)
                text = output.read().decode(errors="replace").rstrip()
            counts = re.search(r"(\d+) passed, (\d+) failed$", text)
            print(f"{' '.join(arguments)} ({time.perf_counter() - began:.0f} s):\n{text}", flush=True)
            if counts is None:
                print(f"FAILED {' '.join(arguments)}: ended with {process.wait()} before its end", flush=True)
            passed += int(counts[1]) if counts else 0
            failed += int(counts[2]) if counts else 1
    return passed, failed


def _part(part: str, checks: Checks, device: str) -> None:
    """Run the checks of one part that are no samples of ops."""
    from tests.gpu import against_torch, connected, graphs, plans, served, sources

    if part in ("graphs", "nccl") and device == "cpu":
        print(f"{part}: not checked, this needs a GPU")
        return
    absent = {"plans": plans.missing, "served": served.missing, "nccl": connected.missing}.get(part, str)()
    if absent:
        print(f"{part}: not checked, this Python lacks {absent}")
        return
    before = checks.passed, checks.failed
    parts = {
        "sources": sources, "torch": against_torch, "graphs": graphs, "nccl": connected, "plans": plans,
        "served": served,
    }  # fmt: skip
    for label, check in parts[part].checks(device):
        checks.check(label, check)
    print(f"{part}: {checks.passed - before[0]} passed, {checks.failed - before[1]} failed", flush=True)


def _bench(device: str, quick: bool) -> int:
    """Time everything and write the page. Returns how many groups of rows could not be timed."""
    from tests.gpu import bench

    text, broken = bench.run(device, quick)
    if device != "cpu" and not quick:
        bench.RESULTS.write_text(text, encoding="utf-8")
        print(f"written: {bench.RESULTS}")
    else:
        print(text)
    return broken


if __name__ == "__main__":
    sys.exit(main())
