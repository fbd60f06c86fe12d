"""``python -m tests.module_db [NAME...]``: how many inputs of each class pass, and why others fail."""

from __future__ import annotations

import argparse
import random
import warnings

from .coverage import RECORD, classes, is_there, outcomes, record


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.module_db", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="classes, all without")
    parser.add_argument("-v", "--verbose", action="store_true", help="every failure, not the first three of a class")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of torch's generator")
    parser.add_argument("--record", action="store_true", help=f"write these counts to docs/{RECORD.name}")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, whole = {}, [0, 0, 0]
    for info in classes(chosen.names):
        done = list(outcomes(info, chosen.seed))
        failed = [(case, found) for case, found in done if found]
        passed = len(done) - len(failed)
        counts[info.name] = {"passed": passed, "total": len(done)}
        whole = [whole[0] + (not failed), whole[1] + passed, whole[2] + len(done)]
        if failed or chosen.names:
            print(
                f"{info.name}: {passed} of {len(done)}" + ("" if is_there(info) else ", gradwire lacks it"), flush=True
            )
        for case, found in (failed if chosen.verbose else failed[:3]) if is_there(info) else ():
            print(f"  {case.label}: " + "; ".join(found if chosen.verbose else found[:3]))
    print(f"{whole[0]} of {len(counts)} classes pass, {whole[1]} of {whole[2]} inputs (seed {chosen.seed})")
    if chosen.record:
        record(counts)


main()
