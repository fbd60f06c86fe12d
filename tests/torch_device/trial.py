"""One sample of the op database on the CPU and on the device."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, Final

import torch

import gradwire
from gradwire_torch import register
from gradwire_torch.host import ComputedHere

from ..op_db.bridge import Bridge
from ..op_db.entries import PHASED, TIED
from ..op_db.trial import Differs, Trial, tensors_in

register()
DEVICE: Final = "gradwire"


class DeviceBridge(Bridge):
    """Carries a sample to the device; where it names the CPU, the device is meant."""

    def __init__(self, home: bool = False) -> None:
        super().__init__(torch)
        self.home = home

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
            return torch.device(DEVICE)
        return super().__call__(value)

    def made(self, given: torch.Tensor) -> torch.Tensor:
        made = super().made(given)
        return made if self.home and made.dtype is torch.int64 else made.to(DEVICE)


AT_HOME: Final = frozenset({"tensor_split"})
"""Entries whose tensors of integers are on the CPU, wherever the others are."""


class DeviceTrial(Trial):
    """A sample on the device. ``here`` collects the operations that this machine computed."""

    def __init__(self, entry: Any, sample: Any) -> None:
        self.here: set[str] = set()
        super().__init__(entry, sample, torch, entry.op)

    def carrier(self) -> Bridge:
        return DeviceBridge(self.entry.name in AT_HOME)

    def source(self, results: list[Any]) -> Any:
        return (self.theirs if results[-1].device.type == "cpu" else self.ours)(self.sample.input)

    def read(self, tensors: list[Any]) -> list[torch.Tensor]:
        return [t.detach().cpu().resolve_conj().resolve_neg() for t in tensors]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Note what is computed here meanwhile."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", ComputedHere)
            yield
        self.here |= {str(w.message).partition(" ")[0] for w in told}

    def forward(self) -> None:
        with self.watched():
            super().forward()

    def gradient(self) -> None:
        with self.watched():
            super().gradient()

    def in_place(self) -> bool:
        """The method that writes to its input. Whether the CPU takes the sample."""
        method, s = self.entry.inplace_variant, self.sample
        found = []
        for carrier in (Bridge(torch), self.carrier()):
            args, kwargs = carrier(tuple(s.args)), carrier(dict(s.kwargs))
            written = carrier(s.input.detach()).clone()
            version = written._version
            try:
                with self.watched():
                    result = method(written, *args, **kwargs)
            except Exception:
                if not found:
                    return False
                raise
            if result is not written:
                raise Differs("in place: the result is not the tensor that was written")
            found.append((written, written._version - version))
        (theirs, raised), (ours, own) = found
        if raised != own:
            raise Differs(f"in place: the version is raised by {own} instead of {raised}")
        if not self.drawn:
            self.compare_described([ours], [theirs])
            self.compare_values([ours], [theirs], 1.0)
        return True

    def out(self, empty: bool) -> bool:
        """The form that writes to ``out``, which has the shape of the result or is empty. Whether the CPU takes it."""
        wanted = [w for w in tensors_in(self.wanted, torch.Tensor) if isinstance(w, torch.Tensor)]
        found = []
        for carrier in (Bridge(torch), self.carrier()):
            place = "cpu" if type(carrier) is Bridge else DEVICE
            outs = [torch.empty(0 if empty else w.shape, dtype=w.dtype, device=place) for w in wanted]
            try:
                with self.watched(), torch.no_grad():
                    self.call_into(carrier, outs[0] if isinstance(self.wanted, torch.Tensor) else tuple(outs))
            except Exception:
                if not found:
                    return False
                raise
            found.append(outs)
        if not self.drawn:
            self.compare_described(found[1], found[0])
            theirs, ours = (self.unique(outs) for outs in found)
            self.compare_values(ours, theirs, 1.0)
        return True

    def unique(self, outs: list[Any]) -> list[Any]:
        """What does not depend on which of several equal results an operation chooses."""
        if self.entry.name in PHASED:
            return tensors_in(self.process(outs[0] if len(outs) == 1 else tuple(outs), torch), torch.Tensor)
        return self.pointed_at(outs) if self.entry.name in TIED and not self.sample.kwargs.get("stable") else outs

    def call_into(self, carrier: Bridge, out: Any) -> None:
        s = self.sample
        self.entry.op(carrier(s.input), *carrier(tuple(s.args)), **carrier(dict(s.kwargs)), out=out)


def settle() -> None:
    """Let a failed sample's error not be the next one's."""
    with contextlib.suppress(Exception):
        gradwire.current_session().synchronize()
