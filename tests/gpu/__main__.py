"""``python3 -m tests.gpu``: checks the engine on a GPU, from the compiler to the training step, and times it.

It compiles every CUDA source, then compares hot ops with PyTorch on the same device, graphs with their single
launches, plans with the tape bit by bit, and every op with samples on CuPy with NumPy. ``--bench`` also times the
engine against PyTorch and writes ``benchmarks/results/gpu.md``; ``--only bench`` does only that.

It needs no server and no network; only plans need pytest and the client. It needs Python with NumPy, ml_dtypes,
PyTorch (samples are torch tensors) and CuPy, a GPU, and the sources on the path. The last line is ``N passed, N
failed``. Exit status: 1 if something failed, 3 if something is missing and nothing could be checked.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.gpu.parity import Checks

NOTHING_CHECKED = 3
NEEDED = ("numpy", "ml_dtypes", "torch", "gradwire_protocol", "gradwire_engine")
PARTS = ("sources", "torch", "graphs", "plans", "ops", "bench")
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
    options = parser.parse_args()
    reason = missing(options.device)
    if reason is not None:
        print(f"nothing was checked: {reason}")
        return NOTHING_CHECKED
    from tests.gpu.parity import Checks
    from tests.samples import ALL

    dtypes = ALL if options.dtypes == "all" else tuple(options.dtypes.split(","))
    checks = Checks(options.device, dtypes, options.seed)
    parts = [options.only] if options.only else ["ops"] if options.k else [p for p in PARTS if p != "bench"]
    parts += ["bench"] if options.bench and "bench" not in parts else []
    for part in parts:
        if part == "ops":
            checks.run(options.k)
        elif part == "bench":
            _bench(options.device, options.quick)
        else:
            _part(part, checks, options.device)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


def _part(part: str, checks: Checks, device: str) -> None:
    """Run the checks of one part that are no samples of ops."""
    from tests.gpu import against_torch, graphs, plans, sources

    if part == "graphs" and device == "cpu":
        print("graphs: not checked, they need a GPU")
        return
    if part == "plans" and plans.missing():
        print(f"plans: not checked, this Python lacks {plans.missing()}")
        return
    before = checks.passed, checks.failed
    found = {
        "sources": lambda: sources.checks(device), "torch": lambda: against_torch.checks(device),
        "graphs": lambda: graphs.checks(device), "plans": lambda: plans.checks(device),
    }[part]()  # fmt: skip
    for label, check in found:
        checks.check(label, check)
    print(f"{part}: {checks.passed - before[0]} passed, {checks.failed - before[1]} failed", flush=True)


def _bench(device: str, quick: bool) -> None:
    from tests.gpu import bench

    text = bench.run(device, quick)
    if device != "cpu" and not quick:
        bench.RESULTS.write_text(text, encoding="utf-8")
        print(f"written: {bench.RESULTS}")
    else:
        print(text)


if __name__ == "__main__":
    sys.exit(main())
