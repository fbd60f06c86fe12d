"""Runs the claims of this folder one after another, and prints their measurements."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import time
import traceback
from pathlib import Path

from . import Figures, progress

SECONDS = 600.0


def names() -> list[str]:
    """The claims, by module."""
    return sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if not m.name.startswith("_"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="claim", help=f"all by default: {', '.join(names())}")
    parser.add_argument("--seconds", type=float, help="most seconds for each claim, instead of its own")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.names) - set(names()))
    if unknown:
        parser.error(f"there is no claim {', '.join(unknown)}; there are {', '.join(names())}")
    # Kernels that come in when they are ready would give the runs that are compared other bits.
    os.environ.setdefault("GRADWIRE_COMPILED_KERNELS", "off")
    failed = []
    rows: list[tuple[str, str, float]] = []
    for name in chosen.names or names():
        module = importlib.import_module(f".{name}", __package__)
        print(f"{name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        began = time.monotonic()
        figures: Figures
        try:
            figures = module.run(chosen.seconds or getattr(module, "SECONDS", SECONDS))
            figures = {"holds": "yes", **figures}
        except Exception as error:
            traceback.print_exc()
            failed.append(name)
            figures = {"holds": "NO", "because": f"{type(error).__name__}: {error}"}
        progress("")
        figures["seconds"] = round(time.monotonic() - began, 1)
        for what, value in figures.items():
            print(f"  {what:<40} {value:,}" if isinstance(value, int | float) else f"  {what:<40} {value}", flush=True)
        rows.append((name, "no" if name in failed else "yes", figures["seconds"]))
    print(f"\n{'claim':<12} {'holds':<6} {'seconds':>8}")
    for row in rows:
        print("{:<12} {:<6} {:>8,.1f}".format(*row))
    print(f"{'together':<12} {'no' if failed else 'yes':<6} {sum(row[2] for row in rows):>8,.1f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
