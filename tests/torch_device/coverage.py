"""Counts of samples that pass on the device, by entry, kind and dtype."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, Final

import torch
from torch.testing._internal.common_methods_invocations import op_db

from ..op_db.coverage import samples_of
from ..op_db.entries import LEFT_OUT, WRONG_IN_TORCH, label
from .trial import DeviceTrial, settle

DTYPES: Final = ("float32", "float64", "bfloat16", "complex64")
KINDS: Final = ("forward", "gradient", "in place", "out")
FORMS: Final = 4
"""So many samples of an entry and dtype are tried in place and with ``out``."""
WITHOUT: Final = frozenset(
    name for name in LEFT_OUT if name.startswith(("sparse.", "to_sparse", "jiterator", "chalf", "torch._scaled_mm"))
)
"""Entries of the database for layouts and dtypes that gradwire lacks, or for CUDA's source."""


@cache
def entries() -> dict[str, Any]:
    """The entries that count, by label."""
    return {label(entry): entry for entry in op_db if entry.name not in WITHOUT}


def chosen(names: list[str]) -> dict[str, Any]:
    """Entries of these names; a name may end in ``*``. All for none."""
    if not names:
        return entries()
    return {
        key: entry
        for key, entry in entries().items()
        if any(n in (key, entry.name) or (n.endswith("*") and key.startswith(n[:-1])) for n in names)
    }


@dataclass
class Count:
    """What came of some samples."""

    passed: int = 0
    differs: int = 0
    raises: int = 0
    here: int = 0
    """Of those that passed: how many had an operation computed on this machine."""
    reasons: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.passed + self.differs + self.raises


@dataclass
class Coverage:
    """What came of an entry: counts by kind and dtype, and the operations that were computed here."""

    counts: dict[str, dict[str, Count]] = field(default_factory=dict)
    here: set[str] = field(default_factory=set)

    def count(self, kind: str, dtype: str) -> Count:
        return self.counts.setdefault(kind, {}).setdefault(dtype, Count())

    def all(self) -> Iterator[tuple[str, str, Count]]:
        for kind, by in self.counts.items():
            for dtype, count in by.items():
                yield kind, dtype, count


def measure(entry: Any, dtypes: Iterable[str] = DTYPES, most: int | None = None, forms: int = FORMS) -> Coverage:
    """Run the samples of an entry on the CPU and on the device, ``most`` of each dtype."""
    found = Coverage()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dtypes:
            dtype = getattr(torch, name)
            if dtype in entry.supported_dtypes("cpu"):
                _measure(found, entry, dtype, name, most, forms)
    return found


def _measure(found: Coverage, entry: Any, dtype: torch.dtype, name: str, most: int | None, forms: int) -> None:
    differentiable = (
        entry.supports_autograd
        and not {entry.name, f"{entry.name} {name}"} & WRONG_IN_TORCH.keys()
        and (dtype.is_floating_point or dtype.is_complex)
        and dtype in entry.supported_backward_dtypes("cpu")
    )
    for i, sample in enumerate(islice(samples_of(entry, dtype, differentiable, False), most)):
        trial = DeviceTrial(entry, sample)
        if not trial.expected():
            continue
        where = f"{name} sample {i} {sample.summary()!s:.300}"

        def attempt(kind: str, function: Callable[[], Any], trial: Any = trial, where: str = where) -> bool:
            return _attempt(found, kind, name, trial, function, where)

        passed = attempt("forward", trial.forward)
        if passed and differentiable and not trial.drawn and not trial.tied():
            attempt("gradient", trial.gradient)
        if i < forms and entry.inplace_variant is not None and not sample.broadcasts_input:
            attempt("in place", trial.in_place)
        if i < forms and entry.supports_out and "out" not in sample.kwargs:
            attempt("out", lambda trial=trial: trial.out(False))
            attempt("out", lambda trial=trial: trial.out(True))


def _attempt(
    found: Coverage, kind: str, dtype: str, trial: DeviceTrial, function: Callable[[], Any], where: str
) -> bool:
    trial.here = set()
    try:
        taken = function()
    except Exception as error:
        count = found.count(kind, dtype)
        if isinstance(error, AssertionError):
            count.differs += 1
        else:
            count.raises += 1
        text = " ".join(str(error).split())
        count.reasons.append(f"{kind} of {where}: {type(error).__name__}: {text:.400}")
        found.here |= trial.here
        settle()
        return False
    if taken is False:
        return False
    count = found.count(kind, dtype)
    count.passed += 1
    if trial.here:
        count.here += 1
        found.here |= trial.here
    return True
