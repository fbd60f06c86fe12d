"""A kernel's peak memory is what its rule announced, or a small multiple of its operands and results.

Every sample of the op table is enlarged, called and differentiated, and the peak inside each kernel is compared with
the metas that were known before. NumPy reports to tracemalloc; LAPACK's workspaces are invisible.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import Row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.meta import Inference
from gradwire_protocol.table import TABLE
from tests.engine.test_parity import Ours
from tests.samples import Sample, load

ELEMENTS = 50_000
"""Of the largest operand of an enlarged sample: enough to be told from what is small and constant."""

FACTOR = 8
"""Temporary arrays as large as operands or results: what a formula of a few terms takes, in double precision."""

SMALL = 1 << 18
PIECES = 5_000
"""Of the largest operand, for ops that may make a tensor of each of its elements."""
OF_PIECES = ("split", "unbind")
SAMPLES = 3
"""Of each generator, spread over all that it has."""


def enlarged(sample: Sample, elements: int = ELEMENTS) -> Iterator[Sample]:
    """The sample with tensors many times as large, whose extents still fit each other: equal extents stay equal.

    Which of the extents may grow depends on the op, so several ways are offered: all of them, or one.
    """
    tensors = [t for a in (*sample.args, *sample.kwargs.values()) for t in (a if type(a) in (list, tuple) else (a,))]
    tensors = [t for t in tensors if isinstance(t, torch.Tensor)]
    extents = sorted({n for t in tensors for n in t.shape if n > 1}, reverse=True)
    largest = max((t.numel() for t in tensors), default=0)
    if not largest or not extents:
        return
    for growing in ([*extents], *([n] for n in extents[:2])):
        counts = max((sum(n in growing for n in t.shape) for t in tensors), default=0)
        if not counts:
            continue
        times = max(2, round((elements / largest) ** (1 / counts)))
        grown = {n: n * times for n in growing}

        def grow(value: Any, grown: dict[int, int] = grown) -> Any:
            if isinstance(value, torch.Tensor):
                shape = tuple(grown.get(n, n) for n in value.shape)
                made = torch.from_numpy(np.resize(value.detach().to(torch.complex128).numpy(), shape))
                made = made if value.is_complex() else made.real
                return made.to(value.dtype).clone().requires_grad_(value.requires_grad)
            if type(value) in (list, tuple):
                return type(value)(grow(v) for v in value)
            return value

        yield Sample(*[grow(a) for a in sample.args], **{k: grow(v) for k, v in sample.kwargs.items()})


class Watched(Engine):
    """An engine that notes by how much the kernels of ops passed what was known of them.

    Attributes:
        excess: by op, the worst ratio of the peak to what is allowed, and the call.
        seen: how many kernels ran on enough memory to tell.
    """

    takes_short_ways = False

    def __init__(self) -> None:
        super().__init__(Limits(max_tensor_bytes=1 << 24, max_op_work=50_000_000))
        self.excess: dict[str, tuple[float, str]] = {}
        self.seen = 0

    def _compute(self, entry: Row, values: list[Any], tensors: list[Tensor], inferred: Inference) -> Any:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        made = super()._compute(entry, values, tensors, inferred)
        peak = tracemalloc.get_traced_memory()[1] - before
        arrays = made if type(made) is tuple else (made,)
        held = {id(t): t.meta.numel * max(t.dtype.itemsize, 8) for t in tensors}
        known = sum(held.values()) + sum(getattr(a, "size", 0) * 8 for a in arrays if a is not None)
        allowed = FACTOR * known + 2 * inferred.scratch + SMALL + 512 * len(tensors)
        self.seen += peak > SMALL
        ratio = peak / allowed
        if ratio > self.excess.get(entry.op.name, (1.0, ""))[0]:
            what = f"{peak:,} bytes, allowed {allowed:,} with scratch {inferred.scratch:,}: "
            self.excess[entry.op.name] = ratio, what + f"{[t.meta for t in tensors[:6]]} -> {list(inferred.outs[:4])}"
        return made


NAMES = sorted(name for name in load() if TABLE[name].base is None and not TABLE[name].internal)
TESTED = (
    "adaptive_avg_pool2d", "attention", "avg_pool2d", "bilinear", "bincount", "cdist", "conv1d", "conv3d",
    "cosine_similarity", "cross_entropy", "cumprod", "einsum", "embedding", "expand", "fft_c2c", "gather",
    "histogramdd", "im2col", "index", "index_add", "interpolate", "kron", "layer_norm", "logcumsumexp",
    "max_pool2d", "nonzero", "one_hot", "pad", "pdist", "quantile", "repeat", "repeat_interleave", "rnn_layer",
    "scaled_dot_product_attention", "scatter_reduce", "sort", "stack", "unfold", "unique", "var",
)  # fmt: skip
"""Of each kind of kernel one or two; the soak has all."""


def watch(name: str) -> Watched:
    """All that an op runs, forward and backward, on enlarged samples."""
    engine = Watched()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for declared in load()[name]:
            for dtype in ("float32", "complex64", "int64"):
                if dtype not in declared.dtypes:
                    continue
                usual = [sample for sample in declared.draw(dtype, 1) if not sample.expects_error]
                for sample in usual[:: max(1, len(usual) // SAMPLES)]:
                    for large in enlarged(sample, PIECES if name in OF_PIECES else ELEMENTS):
                        try:
                            differentiate(engine, Ours(engine, large), name)
                        except GradwireError:
                            continue  # what was enlarged does not fit together any more
                break
    return engine


def differentiate(engine: Watched, ours: Ours, name: str) -> None:
    results = [r for r in ours.call(name) if r.requires_grad]
    leaves = [leaf for leaf in ours.leaves if leaf.requires_grad]
    if results and leaves:
        given = [engine.call("ones", r.shape, dtype=r.dtype) for r in results]
        engine.call("grad", results, leaves, given, allow_unused=True)


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("name", [name for name in TESTED if name in load()])
def test_kernels_take_what_was_announced(name: str) -> None:
    found = watch(name).excess
    assert not found, "\n".join(f"{op}: {ratio:.1f} times too much: {what}" for op, (ratio, what) in found.items())
