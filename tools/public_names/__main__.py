"""``python -m tools.public_names``: print the names that gradwire lacks; ``--record`` reads PyTorch's names anew."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .gradwire_names import lacking
from .page import RECORD
from .reasons import WHOLE, reason_of


def main(
    record: Annotated[bool, typer.Option(help="read the names of the installed torch and write the record")] = False,
    unexplained: Annotated[bool, typer.Option(help="print only names without a reason")] = False,
) -> None:
    if record:
        import torch

        from .torch_names import names_of_torch

        names = names_of_torch(WHOLE)
        text = json.dumps({"torch": torch.__version__.partition("+")[0], "names": names}, indent=1, sort_keys=True)
        RECORD.write_text(f"{_compact(text)}\n", encoding="utf-8")
    for name in lacking(json.loads(RECORD.read_text(encoding="utf-8"))["names"]):
        reason = reason_of(name)
        if not (unexplained and reason):
            print(f"{name:<60} {reason or 'NO REASON'}")


def _compact(text: str) -> str:
    """JSON with each list of keywords on one line."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if inside:
            lines[-1] += line.strip() + (" " if line.endswith(",") else "")
        else:
            lines.append(line)
        inside = line.endswith("[") or (inside and not line.strip().startswith("]"))
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    typer.run(main)
