"""``python -m tests.torch_device``: how many samples of the op database pass on the device, by entry."""

from __future__ import annotations

from typing import Annotated

import torch
import typer

from .coverage import DTYPES, Coverage, chosen, measure
from .record import MOST, measure_all


def show(name: str, found: Coverage, verbose: int) -> None:
    """A line of the table, and the first reasons."""
    counts = [count for _, _, count in found.all()]
    passed, total = sum(c.passed for c in counts), sum(c.total for c in counts)
    differs, raises, here = (sum(getattr(c, what) for c in counts) for what in ("differs", "raises", "here"))
    named = " ".join(sorted(found.here))
    print(
        f"{name:<45} {passed:>5}/{total:<5} differs {differs:<4} raises {raises:<4} here {here:<4} {named}", flush=True
    )
    for reason in [r for c in counts for r in c.reasons[:verbose]]:
        print(f"    {reason}", flush=True)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="entries, as linalg.qr or fft.*; all for none")] = None,
    verbose: Annotated[int, typer.Option("-v", help="so many reasons of each kind and dtype")] = 1,
    dtypes: Annotated[str, typer.Option(help="dtypes, separated by commas")] = ",".join(DTYPES),
    most: Annotated[int, typer.Option(help="samples of an entry and dtype at most; 0 for all")] = 0,
    seed: Annotated[int, typer.Option(help="seed of the samples")] = 0,
    record: Annotated[bool, typer.Option(help="write the record; entries not named stay as they are in it")] = False,
    workers: Annotated[int, typer.Option(help="processes that measure for the record")] = 2,
) -> None:
    if record:
        measure_all(names or [], seed, workers, most or MOST)
        return
    passed = total = 0
    for name, entry in chosen(names or []).items():
        torch.manual_seed(seed)
        found = measure(entry, dtypes.split(","), most or None)
        show(name, found, verbose)
        for kind, _, count in found.all():
            if kind in ("forward", "gradient"):
                passed, total = passed + count.passed, total + count.total
    print(f"{passed}/{total} samples pass, forward and gradient")


typer.run(main)
