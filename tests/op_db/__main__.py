"""``python -m tests.op_db``: how many samples of the op database pass, by entry."""

from __future__ import annotations

import sys
from typing import Annotated

import torch
import typer

import gradwire

from .coverage import measure
from .entries import chosen
from .record import measure_all, write_record


def main(
    names: Annotated[list[str] | None, typer.Argument(help="entries, as linalg.qr or fft.*; all for none")] = None,
    verbose: Annotated[bool, typer.Option("-v", help="print every failure")] = False,
    dtypes: Annotated[str, typer.Option(help="dtypes, separated by commas; all for none")] = "",
    reference: Annotated[bool, typer.Option(help="run reference inputs, too")] = False,
    oracle: Annotated[bool, typer.Option(help="run torch against itself")] = False,
    seed: Annotated[int, typer.Option(help="seed of the samples")] = 0,
    record: Annotated[
        bool, typer.Option(help="measure, two at a time and with reference inputs, and write the record")
    ] = False,
) -> None:
    if record:
        write_record(measure_all(names or [], seed))
        return
    torch.manual_seed(seed)
    passed = total = 0
    library = torch if oracle else gradwire
    for name, entry in chosen(names or []).items():
        found = measure(entry, library, dtypes.split(",") if dtypes else None, reference=reference)
        if found.lacking:
            print(f"{name:<50} NO    {found.lacking}")
            continue
        own, of = found.total()
        passed, total = passed + own, total + of
        parts = [
            f"{kind} " + " ".join(f"{d}:{c.passed}/{c.total}" for d, c in by.items() if verbose or c.passed < c.total)
            for kind, by in found.counts.items()
            if verbose or any(c.passed < c.total for c in by.values())
        ]
        print(f"{name:<50} {own}/{of} {'; '.join(parts)}", flush=True)
        failures = [f for by in found.counts.values() for c in by.values() for f in c.failures]
        for failure in failures if verbose else failures[:3]:
            print(f"    {failure}", flush=True)
    print(f"{passed}/{total} samples pass")
    sys.exit(passed < total)


typer.run(main)
