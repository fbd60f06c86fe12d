"""In-place changes of operands or results between forward and backward, for the samples of torch's op database.

gradwire refuses the backward where torch does; elsewhere the gradients are those of the forward's values. The tables
list the ops for which the two libraries save different tensors.
"""

from __future__ import annotations

import functools
import warnings
from itertools import islice
from typing import Any, Final

import pytest
import torch
from tests.op_db.bridge import Bridge
from tests.op_db.entries import all_entries
from tests.op_db.trial import Lacking, operator_of, tensors_in
from tests.side_by_side import close, settle

import gradwire

pytestmark = pytest.mark.usefixtures("session")

SAMPLES: Final = 2
MOST_CHANGED: Final = 4

KEEPS_MORE: Final = {
    ("operand 0",): (
        "einsum linalg.cond linalg.eigvals linalg.eigvalsh linalg.svdvals nanquantile "
        "nn.functional.tanhshrink norm/nuc quantile special.ndtr"
    ),
    ("operand 0", "operand 1"): ("kron nn.functional.kl_div nn.functional.scaled_dot_product_attention"),
    ("operand 0", "operand 1", "operand 2"): ("nn.functional.linear_cross_entropy/chunked"),
    ("operand 1",): ("nn.functional.embedding_bag take_along_dim"),
    ("operand 3",): ("nn.functional.instance_norm"),
}
"""What torch composes of several ops keeps what those made, in memory that no program reaches. Here one op computes the
gradient from its operands, so a change of these is refused."""

KEEPS_LESS: Final = {
    ("operand 0",): (
        "cholesky_solve combinations cummax cummin fft.fft fft.ifft fft.ihfft fft.ihfft2 fft.ihfftn fft.rfft "
        "fft.rfft2 fft.rfftn gather masked_select nn.functional.adaptive_avg_pool1d "
        "nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d "
        "nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d "
        "nn.functional.adaptive_max_pool3d nn.functional.avg_pool1d nn.functional.avg_pool2d "
        "nn.functional.avg_pool3d nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d "
        "nn.functional.interpolate/area nn.functional.nll_loss nn.functional.pad/reflect "
        "nn.functional.pad/replicate nn.functional.pad/replicate_negative nn.functional.rrelu stft take "
        "take_along_dim triangular_solve"
    ),
    ("operand 0", "operand 1"): ("complex dist nn.functional.ctc_loss"),
    ("operand 1", "operand 2"): ("nn.functional.batch_norm nn.functional.batch_norm/without_cudnn"),
    ("operand 1", "operand 2", "result 1", "result 2"): ("native_layer_norm"),
    ("operand 2",): ("index_add index_copy nn.functional.layer_norm put"),
    ("operand 3", "result 1", "result 2"): ("native_batch_norm"),
    ("result 0",): (
        "linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.svdvals ormqr prod special.log_ndtr"
    ),
    ("result 1", "result 2"): ("native_group_norm"),
}
"""What torch keeps only for its shape, or beside what would be enough. Here the gradient is right after that."""


def listed(table: dict[tuple[str, ...], str], label: str) -> set[str]:
    return {each for kept, names in table.items() if label in names.split() for each in kept}


def _all(value: Any, bridge: Bridge) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [bridge(value)]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in _all(v, bridge)] if isinstance(value, (list, tuple)) else []


class Attempt:
    """One sample under one library, with one tensor changed between forward and backward."""

    def __init__(self, lib: Any, function: Any, sample: Any, changed: tuple[str, int] | None) -> None:
        self.lib = lib
        bridge = Bridge(lib)
        self.operands = _all((sample.input, sample.args, sample.kwargs), bridge)
        arguments, options = (bridge(sample.input), *bridge(tuple(sample.args))), bridge(dict(sample.kwargs))
        lib.manual_seed(0)
        returned = tensors_in(function(*arguments, **options), lib.Tensor)
        self.results = [t for t in returned if not any(t is operand for operand in self.operands)]
        self.outcome = self._differentiated(changed)

    def _differentiated(self, changed: tuple[str, int] | None) -> Any:
        """The gradients, ``"refused"``, or ``None`` where there is nothing to be seen."""
        reached = [t for t in self.results if t.requires_grad]
        wanted = [t for t in self.operands if t.requires_grad]
        if not reached or not wanted:
            return None
        try:
            if changed is not None:
                kind, at = changed
                self._change((self.operands if kind == "operand" else self.results)[at])
                if self.lib is gradwire:
                    settle()
        except Exception:
            return None  # an expanded result, say: whether a tensor may be written to is another claim
        try:
            found = self.lib.autograd.grad(reached, wanted, [self.lib.ones_like(t) for t in reached], allow_unused=True)
            return [None if g is None else g.tolist() for g in found]
        except RuntimeError as error:
            if any(said in str(error) for said in ("in place", "inplace", "in-place")):
                return "refused"
            raise

    def _change(self, tensor: Any) -> None:
        with self.lib.no_grad():
            if tensor.dtype is self.lib.bool:
                tensor.logical_not_()
            elif tensor.is_floating_point() or tensor.is_complex():
                tensor.add_(0.125)
            else:
                tensor.zero_()


def differences(label: str) -> tuple[set[str], set[str], list[str]]:
    """The tensors that gradwire alone keeps, those that torch alone keeps, and gradients that changed."""
    entry = all_entries()[label]
    dtype = torch.float64 if torch.float64 in entry.dtypes else torch.float32
    function = operator_of(entry, gradwire)
    more: set[str] = set()
    less: set[str] = set()
    wrong: list[str] = []
    for sample in islice(entry.sample_inputs("cpu", dtype, requires_grad=True), SAMPLES):
        try:
            expected = Attempt(torch, entry.op, sample, None)
            plain, again = (Attempt(gradwire, function, sample, None) for _ in range(2))
        except Exception:
            continue  # whether the op takes the sample is what tests.op_db is about
        if expected.outcome is None:
            continue
        for kind, count in (("operand", len(expected.operands)), ("result", len(expected.results))):
            for at in range(min(count, MOST_CHANGED)):
                theirs = Attempt(torch, entry.op, sample, (kind, at)).outcome
                ours = Attempt(gradwire, function, sample, (kind, at)).outcome
                if theirs is None or ours is None:
                    continue
                if ours == "refused":
                    more.update([f"{kind} {at}"] if theirs != "refused" else [])
                    continue
                less.update([f"{kind} {at}"] if theirs == "refused" else [])
                if close(plain.outcome, again.outcome) and not close(plain.outcome, ours):
                    wrong.append(f"{label}, {kind} {at} of {sample.input!r:.60}")
    return more, less, wrong


@functools.cache
def labels() -> list[str]:
    found = []
    for label, entry in all_entries().items():
        if entry.supports_autograd:
            try:
                operator_of(entry, gradwire)
            except Lacking:
                continue
            found.append(label)
    return found


@pytest.mark.parametrize("part", range(8))
def test_backward_refuses_changed_tensors_as_pytorch_does(part: int) -> None:
    problems = []
    for label in labels()[part::8]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            more, less, wrong = differences(label)
        problems += wrong
        for name, table, found in (("KEEPS_MORE", KEEPS_MORE, more), ("KEEPS_LESS", KEEPS_LESS, less)):
            if found != listed(table, label):
                problems.append(f"{name}: {label}: {sorted(found)}, listed {sorted(listed(table, label))}")
    assert not problems, "\n".join(problems)
