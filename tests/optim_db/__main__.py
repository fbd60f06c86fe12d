"""``python -m tests.optim_db [NAME...] [--record]``: how many configurations of each optimizer agree with torch."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .runs import INFOS, cases, run

RECORD = Path(__file__).parents[2] / "docs" / "optim_coverage.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.optim_db", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="optimizers, by default all")
    parser.add_argument("--record", action="store_true", help=f"write the counts to docs/{RECORD.name}")
    options = parser.parse_args()
    counts = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in options.names or INFOS:
        passed = total = 0
        for case in cases(name):
            total += 1
            try:
                wrong = run(case)
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            passed += wrong is None
            if wrong is not None:
                print(f"  {case}: {wrong}")
        counts[name] = {"passed": passed, "total": total}
        print(f"{name}: {passed} of {total}")
    if options.record:
        RECORD.write_text(json.dumps(dict(sorted(counts.items())), indent=2) + "\n")


if __name__ == "__main__":
    main()
