"""``python3 -m tests.gpu``: the engine on CuPy against the engine on NumPy, for every op that has samples.

Needs no pytest, no server, no client and no network: a Python with NumPy, ml_dtypes, PyTorch (its tensors are the
samples' form) and CuPy, a GPU, and the sources on the path. The last line is ``N passed, N failed``. Exits 1 when
something failed, 3 when something is missing and nothing could be checked.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

NOTHING_CHECKED = 3
NEEDED = ("numpy", "ml_dtypes", "torch", "gradwire_protocol", "gradwire_engine")
DTYPES = ("float32", "bfloat16", "complex64", "int64", "bool")


def missing(device: str) -> str | None:
    """What keeps the checks from running, in words."""
    wanted = NEEDED if device == "cpu" else (*NEEDED, "cupy")
    absent = [name for name in wanted if find_spec(name) is None]
    if absent:
        return f"this Python ({sys.executable}) lacks {', '.join(absent)}"
    if device == "cpu":
        return None
    from gradwire_engine.backends import available_devices

    found = available_devices()
    return None if device in found else f"there is no {device} here: CuPy is installed, and sees {', '.join(found)}"


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.gpu", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("-k", metavar="TEXT", default="", help="only ops whose name contains this")
    parser.add_argument("--device", default="cuda:0", help="the device to check; cpu checks this program itself")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="separated by commas, or all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reason = missing(options.device)
    if reason is not None:
        print(f"nothing was checked: {reason}")
        return NOTHING_CHECKED
    from tests.gpu.parity import Checks
    from tests.samples import ALL

    dtypes = ALL if options.dtypes == "all" else tuple(options.dtypes.split(","))
    checks = Checks(options.device, dtypes, options.seed)
    checks.run(options.k)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
