"""Every op under vmap against a loop: values, dtypes, shapes, gradients, in-place forms.

The loop is the oracle; other tests compare the op with PyTorch. The samples of one stack are permutations of an
operand of ``tests/samples``, so that conditions on its values still hold.
"""

from __future__ import annotations

import os
import random
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.autograd.vmap import Batched
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.table import TABLE, Kind
from tests.engine.test_parity import Ours
from tests.samples import REGISTERED, Sample, Samples, load

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
SIZE = 3
TENSORS = (Kind.TENSOR, Kind.TENSORS, Kind.OPTIONAL_TENSORS, Kind.OPERAND)
DTYPES = ("float64", "int64", "complex128", "float32")


def cases() -> Iterator[Any]:
    for name, declared in load().items():
        if TABLE[name].control or TABLE[name].random:
            continue
        if not any(p.kind in TENSORS for p in TABLE[name].params):
            continue
        for i, samples in enumerate(declared):
            kept = [d for d in DTYPES[:3] if d in samples.dtypes] or [d for d in DTYPES if d in samples.dtypes]
            for dtype in kept:
                yield pytest.param(samples, dtype, id=f"{name}-{dtype}-{i}")


class Stack:
    """The operands of a sample in three versions, some of them mapped over."""

    def __init__(self, engine: Engine, sample: Sample, chosen: tuple[int, ...], name: str) -> None:
        self.name = name
        self.engine = engine
        self.count = 0
        self.chosen = chosen
        self.leaves: list[Tensor] = []
        self.mapped = [self._place(a, None) for a in sample.args], {k: self._named(v) for k, v in sample.kwargs.items()}
        self._sample = sample

    def _named(self, value: Any) -> Any:
        return self._place(value, None)

    def _place(self, value: Any, i: int | None) -> Any:
        """An argument for the mapped call, or for sample ``i`` of the loop."""
        if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
            return [self._place(v, i) for v in value]
        if not isinstance(value, torch.Tensor):
            return Ours(self.engine, Sample(value)).args[0] if isinstance(value, torch.dtype) else value
        at, self.count = self.count, self.count + 1
        versions = [self._version(value, n) for n in range(SIZE)]
        if at not in self.chosen:
            stacked = versions[0]
        else:
            stacked = np.stack(versions)
        if i is None:
            leaf = self.engine.from_numpy(stacked, requires_grad=value.requires_grad)
            self.leaves.append(leaf)
            return self.engine.call("batch", leaf, 0, 1) if at in self.chosen else leaf
        leaf = self.leaves[at]
        return self.engine.call("select", leaf, 0, i) if at in self.chosen else leaf

    def _version(self, value: torch.Tensor, n: int) -> np.ndarray[Any, Any]:
        array = value.detach().numpy()
        if self.name in ("searchsorted", "bucketize"):  # what is searched stays in order
            return array + array.dtype.type(n)
        if array.dtype == np.int32 and ("lu_" in self.name or "ldl_" in self.name):
            return array  # pivots stay those of a factorization
        if self.name.startswith("linalg_cholesky"):  # and what is positive definite stays so
            return array * array.dtype.type(n + 1)
        return np.roll(array.reshape(-1), n).reshape(array.shape) if array.size else array

    def of(self, i: int) -> tuple[list[Any], dict[str, Any]]:
        self.count = 0
        sample = self._sample
        return [self._place(a, i) for a in sample.args], {k: self._place(v, i) for k, v in sample.kwargs.items()}


def listed(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def tensor_count(sample: Sample) -> int:
    count = 0
    for value in (*sample.args, *sample.kwargs.values()):
        items = value if isinstance(value, (list, tuple)) else [value]
        count += sum(isinstance(v, torch.Tensor) for v in items)
    return count


@pytest.mark.parametrize(("samples", "dtype"), list(cases()))
def test_a_mapped_op_is_a_loop(samples: Samples, dtype: str) -> None:
    seed = zlib.crc32(f"{samples.op}{dtype}{SEED}".encode())
    torch.manual_seed(seed)
    ran = False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in samples.draw(dtype, seed):
            if sample.expects_error:
                continue
            count = tensor_count(sample)
            chosen = {tuple(range(count)), *((i,) for i in range(min(count, 6)))} if count else set()
            if samples.op == "scaled_dot_product_attention" and (
                sample.kwargs.get("dropout_p") or len(sample.args) > 4
            ):
                continue  # random numbers
            for some in sorted(chosen):
                try:
                    ran |= compare(Engine(), samples.op, sample, some)
                    if f"{samples.op}_" in TABLE and 0 in some:
                        compare_in_place(Engine(), f"{samples.op}_", sample, some)
                except Exception as error:
                    raise AssertionError(
                        f"{samples.op}{sample!r} with operands {some} mapped\n{type(error).__name__}: {error}\n"
                        f"(GRADWIRE_TEST_SEED={SEED})"
                    ) from error
    if not ran:
        pytest.skip("no sample of this dtype")


def compare(engine: Engine, name: str, sample: Sample, some: tuple[int, ...]) -> bool:
    stack = Stack(engine, sample, some, name)
    try:
        rows = [listed(engine.call(name, *args, **kwargs)) for args, kwargs in map(stack.of, range(SIZE))]
    except GradwireError:
        return False  # the values of one sample do not suit the op
    if _refused(name, stack) or len({tuple(r.shape for r in row) for row in rows}) > 1:
        with pytest.raises(RuntimeError):
            engine.call(name, *stack.mapped[0], **stack.mapped[1])
        return True
    found = [
        engine.call("unbatch", r, 1, 0, SIZE) for r in listed(engine.call(name, *stack.mapped[0], **stack.mapped[1]))
    ]
    wanted = [engine.call("stack", list(column), 0) for column in zip(*rows, strict=True)]
    assert len(found) == len(wanted)
    exact = all(t.dtype.name in ("float64", "complex128") for t in stack.leaves)
    for mine, theirs in zip(found, wanted, strict=True):
        same(engine, "value", mine, theirs, exact)
    paired = [(f, w) for f, w in zip(found, wanted, strict=True) if w.requires_grad]
    assert [f.requires_grad for f in found] == [w.requires_grad for w in wanted]
    if paired:
        compare_gradients(engine, stack, paired, exact)
    return True


def _refused(name: str, stack: Stack) -> bool:
    """Whether the op may not be mapped here: its result's shape depends on what differs, or it would write that into
    what does not."""
    args, kwargs = stack.mapped
    if TABLE[name].mutates is not None:
        return not mapped(args[0])
    if name.startswith("index") and any(isinstance(a, list) for a in args):
        masks = [i for a in args if isinstance(a, list) for i in a if i is not None]
        return any(mapped(m) and m.dtype.name in ("bool", "uint8") for m in masks)
    if name == "masked_select":
        return mapped(args[1])
    if name == "one_hot":
        return (args[1] if len(args) > 1 else kwargs.get("num_classes", -1)) < 0
    if name in ("batch_norm", "instance_norm"):
        named = dict(zip((p.name for p in TABLE[name].params), args, strict=False)) | kwargs
        trains = named.get("training", named.get("use_input_stats", name == "instance_norm"))
        running = named.get("running_mean"), named.get("running_var")
        return bool(trains) and mapped(named["self"]) and any(r is not None and not mapped(r) for r in running)
    return TABLE[name].dynamic


def mapped(value: Any) -> bool:
    return type(value) is Batched


def compare_gradients(engine: Engine, stack: Stack, paired: list[tuple[Tensor, Tensor]], exact: bool) -> None:
    seeds = [engine.from_numpy(weights(f)) for f, _ in paired]
    leaves = [t for t in stack.leaves if t.requires_grad]
    # A write to samples one by one is in the history of the mapped write, too.
    options = {"allow_unused": True, "materialize_grads": True, "retain_graph": True}
    try:
        wanted = engine.call("grad", [w for _, w in paired], leaves, seeds, **options)
    except GradwireError:
        return  # an op without a derivative
    found = engine.call("grad", [f for f, _ in paired], leaves, seeds, **options)
    for mine, theirs in zip(found, wanted, strict=True):
        same(engine, "gradient", mine, theirs, exact)


def weights(tensor: Tensor) -> np.ndarray[Any, Any]:
    array = tensor.array
    drawn = np.random.default_rng(SEED).standard_normal(array.shape)
    return drawn.astype(array.dtype)


def compare_in_place(engine: Engine, name: str, sample: Sample, some: tuple[int, ...]) -> None:
    plain = Sample(*[_detached(a) for a in sample.args], **{k: _detached(v) for k, v in sample.kwargs.items()})
    stack = Stack(engine, plain, some, name)
    if not isinstance(plain.args[0], torch.Tensor) or _refused(name.rstrip("_"), stack):
        return
    target = stack.leaves[0]
    before = engine.call("clone", target)
    try:
        for args, kwargs in map(stack.of, range(SIZE)):
            engine.call(name, *args, **kwargs)
    except GradwireError:
        return
    wanted = engine.call("clone", target)
    engine.call("copy_", target, before)
    engine.call(name, *stack.mapped[0], **stack.mapped[1])
    same(engine, "value written", target, wanted, False)


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)):
        return type(value)(_detached(v) for v in value)
    return value


def same(engine: Engine, what: str, mine: Tensor, theirs: Tensor, exact: bool) -> None:
    assert mine.dtype is theirs.dtype, f"{what}: dtype {mine.dtype} instead of {theirs.dtype}"
    assert mine.shape == theirs.shape, f"{what}: shape {mine.shape} instead of {theirs.shape}"
    tolerance = 1e-9 if exact and theirs.dtype.itemsize >= 8 else 1e-4
    np.testing.assert_allclose(
        engine.to_numpy(mine), engine.to_numpy(theirs), rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=what
    )


def test_every_family_has_samples() -> None:
    assert len(REGISTERED) > 300
