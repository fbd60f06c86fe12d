"""One program with PyTorch, with gradwire and on gradwire's device, and whether all say the same."""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .entries import Entry
from .environment import HOME, PYTHON, ROOT, Way, variables

PATIENCE_S: Final = 900.0
_ABSENT: Final = re.compile(r"\b(torch(?:\.\w+)+|Tensor\.\w+|functorch[\w.]*) does not exist in gradwire")
_CAUSED: Final = "\nThe above exception was the direct cause of the following exception:"
_RAISED: Final = re.compile(
    r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Unsupported|Absent\w*|Warning)\b.*", re.MULTILINE
)


@dataclass(frozen=True)
class Run:
    """What a run of a program came to: its results, or why it has none."""

    results: Any
    failure: str
    seconds: float
    output: str


@dataclass(frozen=True)
class Trial:
    """The runs of an entry's program.

    Attributes:
        runs: by the way; those after a failure with PyTorch are left out.
        lacks: for each of the other ways, what is missing or differs; empty if the results are those of PyTorch.
    """

    entry: Entry
    runs: Mapping[Way, Run]
    lacks: Mapping[Way, str]


def run(entry: Entry, way: Way) -> Run:
    """Run the program."""
    with_gradwire = ("-m", "gradwire", "run") if way is Way.GRADWIRE else ()
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [str(PYTHON), *with_gradwire, str(entry.program)],
            env=variables(way),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            cwd=HOME,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Run(None, f"no end within {PATIENCE_S:.0f} s", PATIENCE_S, "")
    seconds = time.monotonic() - begin
    output = done.stdout + done.stderr
    if done.returncode:
        return Run(None, reason(done.stderr) or f"exit code {done.returncode}", seconds, output)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return Run(None, "it printed no results", seconds, output)
    return Run(json.loads(lines[-1]), "", seconds, output)


def attempt(entry: Entry, ways: Sequence[Way] = (Way.GRADWIRE, Way.DEVICE)) -> Trial:
    """Run an entry's program with PyTorch and in other ways, and compare."""
    theirs = run(entry, Way.TORCH)
    if theirs.failure:
        return Trial(entry, {Way.TORCH: theirs}, dict.fromkeys(ways, f"fails with PyTorch: {theirs.failure}"))
    runs = {way: run(entry, way) for way in ways}
    lacks = {
        way: ours.failure or difference(ours.results, theirs.results, entry.tolerance) for way, ours in runs.items()
    }
    return Trial(entry, {Way.TORCH: theirs, **runs}, lacks)


def reason(errors: str) -> str:
    """Why a program ended: the first name that gradwire does not have, or else the exception that caused the last."""
    root, caused, _ = errors.partition(_CAUSED)
    raised = [found.group(0) for found in _RAISED.finditer(root if caused else errors)]
    if not raised:
        return ""
    absent = _ABSENT.search("\n".join(raised))
    told = absent.group(1) if absent else raised[-1]
    told = told.replace(str(ROOT), ".").replace(str(Path.home()), "~")
    return told if len(told) <= 200 else told[:197] + "..."


def difference(ours: Any, theirs: Any, tolerance: float, at: str = "") -> str:
    """The first place where results differ, in words; empty if there is none."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if ours.keys() != theirs.keys():
            return f"{at or 'results'}: {sorted(ours)} and with PyTorch {sorted(theirs)}"
        parts = [(f"{at}.{key}" if at else key, ours[key], theirs[key]) for key in theirs]
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            return f"{at}: {len(ours)} values and with PyTorch {len(theirs)}"
        parts = [(f"{at}[{k}]", one, other) for k, (one, other) in enumerate(zip(ours, theirs))]
    else:
        return "" if _same(ours, theirs, tolerance) else f"{at}: {_short(ours)} and with PyTorch {_short(theirs)}"
    return next((found for where, a, b in parts if (found := difference(a, b, tolerance, where))), "")


def _same(ours: Any, theirs: Any, tolerance: float) -> bool:
    if isinstance(theirs, float) and isinstance(ours, float):
        if not math.isfinite(theirs):
            return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
        return abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))
    return type(ours) is type(theirs) and ours == theirs


def _short(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= 60 else told[:57] + "..."
