"""Every op against PyTorch: values, dtypes, shapes, strides, graph, gradients, second gradients, in-place forms.

One test per op and dtype runs all samples of ``tests/samples`` with new random values. ``GRADWIRE_TEST_SEED`` repeats
a run; a failure names the seed.
"""

from __future__ import annotations

import os
import random
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import gradwire_engine.ops  # noqa: F401  (fills the table and the registry)
from gradwire_engine.autograd.describing import described
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Storage, Tensor
from gradwire_engine.runtime.backends import Backends
from gradwire_protocol import dtypes
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.meta import meta
from gradwire_protocol.table import TABLE, Op
from tests.samples import Sample, Samples, load
from tests.strict_backend import StrictBackend

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
ENGINES: dict[str, Callable[[], Engine]] = {
    "numpy": Engine,
    "strict": lambda: Engine(backends=Backends(cpu=StrictBackend())),
}
STRICT_DTYPES = ("bool", "int64", "float32", "complex64")  # one of each kind: the library, not the numbers, is tested

TOLERANCES = {
    "float16": (2e-3, 2e-3), "bfloat16": (2e-2, 2e-2), "float32": (2e-5, 1e-5), "float64": (1e-9, 1e-9),
    "complex64": (2e-5, 1e-5), "complex128": (1e-9, 1e-9),
}  # fmt: skip
EXACT = (0.0, 0.0)
HALF_COLUMNS = (2e-2, 6e-2)
"""Of columns added up in half precision, in an order that depends on PyTorch's processor."""


def cases() -> Iterator[Any]:
    for name, declared in load().items():
        for i, samples in enumerate(declared):
            for dtype in samples.dtypes:
                for kind in ENGINES:
                    if kind == "numpy" or dtype in STRICT_DTYPES:
                        label = f"{name}-{dtype}-{kind}" + (f"-{i}" if i else "")
                        yield pytest.param(samples, dtype, kind, id=label)


@pytest.mark.parametrize(("samples", "dtype", "kind"), list(cases()))
def test_op_agrees_with_pytorch(samples: Samples, dtype: str, kind: str) -> None:
    seed = zlib.crc32(f"{samples.op}{dtype}{SEED}".encode())
    torch.manual_seed(seed)
    engine = ENGINES[kind]()
    ran = False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in samples.draw(dtype, seed):
            try:
                ran |= Trial(engine, samples, sample, dtype).run()
            except Exception as error:
                if isinstance(error, pytest.fail.Exception):
                    raise
                raise AssertionError(
                    f"{samples.op}{sample!r}\n{type(error).__name__}: {error}\n(GRADWIRE_TEST_SEED={SEED})"
                ) from error
    if not ran:
        pytest.skip("PyTorch does not implement this dtype here")


class Trial:
    """One sample, run by the engine and by the oracle."""

    def __init__(self, engine: Engine, samples: Samples, sample: Sample, dtype: str) -> None:
        self.engine = engine
        self.samples = samples
        self.sample = sample
        self.op: Op = TABLE[samples.op]
        self.strict = isinstance(engine.backends["cpu"], StrictBackend)
        usual = TOLERANCES.get(dtype, EXACT)
        columns = samples.op.startswith("conv_transpose")
        # On some processors PyTorch rounds each column to bfloat16: the values are compared with those of float32.
        self.widened = columns and dtype == "bfloat16"
        if columns and dtype == "float16":
            usual = HALF_COLUMNS
        self.tol = wider(usual, samples.tol or EXACT)
        self.grad_tol = wider(self.tol, samples.grad_tol or EXACT)
        self.seconds = samples.gradgrad and dtype in ("float64", "complex128")

    def run(self) -> bool:
        """Whether there was anything to compare."""
        if self.samples.ref is None:
            self.check_without_oracle()
            return True
        theirs = Oracle(self.samples.ref, self.sample)
        try:
            expected = theirs.call()
        except Exception as error:
            return self.check_error(error, self.samples.op)
        if any(e.dtype is torch.complex32 for e in expected):
            return False  # a dtype that exists in PyTorch alone
        assert not self.sample.expects_error, "the sample was declared to fail, but PyTorch accepts it"
        ours = Ours(self.engine, self.sample)
        got = ours.call(self.samples.op)
        if self.widened:
            with torch.no_grad():
                values = convert((self.sample.args, self.sample.kwargs), lambda x: x.float(), lambda kind: kind)
                for wanted in expected:
                    wanted.data.copy_(self.samples.ref(*values[0], **values[1]))
        self.compare_results(ours, got, theirs, expected)
        if self.samples.grad and self.sample.gradients and any(e.requires_grad for e in expected):
            self.compare_gradients(ours, got, theirs, expected)
        if not isinstance(self.samples.grad, bool) or self.samples.grad:
            self.compare_in_place(expected)
        return True

    # Results

    def compare_results(self, ours: Ours, got: list[Tensor], theirs: Oracle, expected: list[torch.Tensor]) -> None:
        assert len(got) == len(expected), f"{len(got)} results instead of {len(expected)}"
        for i, (mine, wanted) in enumerate(zip(got, expected, strict=True)):
            which = f"result {i}: " if len(got) > 1 else ""
            check_announced(mine)
            assert str(wanted.dtype) == repr(mine.dtype), f"{which}dtype {mine.dtype} instead of {wanted.dtype}"
            assert mine.shape == tuple(wanted.shape), f"{which}shape {mine.shape} instead of {tuple(wanted.shape)}"
            if self.samples.strides and self.sample.strides:
                check_strides(which, mine, wanted)
            close(which + "value", self.to_torch(mine), wanted, self.tol)
            assert mine.requires_grad == wanted.requires_grad, f"{which}requires_grad is {mine.requires_grad}"
            if wanted.requires_grad and self.samples.grad_fn:
                given = mine.grad_fn.name if mine.grad_fn is not None else None
                assert given == node_name(wanted), (
                    f"{which}grad_fn {given} instead of {node_name(wanted)} (samples of an op that torch lacks: "
                    "grad_fn=False)"
                )
            if any(mine.storage.array is t.storage.array for t in ours.leaves):
                assert shares(wanted, theirs.leaves), f"{which}memory is shared with an operand"
            else:
                mine_array = plain(mine)
                for leaf in ours.leaves:
                    assert not np.shares_memory(mine_array, plain(leaf)), f"{which}memory is an operand's"

    def check_without_oracle(self) -> None:
        def once() -> tuple[Ours, list[Tensor]]:
            self.engine.generator.manual_seed(SEED)
            ours = Ours(self.engine, self.sample)
            return ours, ours.call(self.samples.op)

        if self.sample.expects_error:
            if self.strict:
                return
            with pytest.raises((RuntimeError, ValueError, IndexError, TypeError, NotImplementedError)):
                once()
            return
        ours, got = once()
        results = [self.to_torch(t) for t in got]
        for mine, again in zip(results, once()[1], strict=True):
            assert torch.equal(torch.nan_to_num(mine), torch.nan_to_num(self.to_torch(again))), "it is not repeatable"
        for tensor in got:
            check_announced(tensor)
        if self.samples.check is not None:
            given = [a.detach() if isinstance(a, torch.Tensor) else a for a in self.sample.args]
            self.samples.check(results, *given, **self.sample.kwargs)

    def check_error(self, error: Exception, name: str) -> bool:
        """The oracle raised: the same class must be raised here, unless PyTorch merely lacks an implementation."""
        if is_gap(error) and not self.sample.expects_error:
            return False
        if self.strict:
            return False  # a GPU is not waited for to find a wrong value
        if isinstance(error, TypeError) and not self.sample.expects_error:
            raise AssertionError(f"the oracle does not take this sample: {error}")
        wanted = builtin_class(error)
        try:
            Ours(self.engine, self.sample).call(name)
        except Exception as raised:
            assert isinstance(raised, wanted), (
                f"raised {type(raised).__mro__[1].__name__} ({raised}) instead of {wanted.__name__} ({error})"
            )
            assert type(raised).__module__.startswith("gradwire"), f"raised a bare {raised!r}"
            return True
        raise AssertionError(f"accepted, but PyTorch raises {wanted.__name__}: {error}")

    # Gradients

    def compare_gradients(self, ours: Ours, got: list[Tensor], theirs: Oracle, expected: list[torch.Tensor]) -> None:
        names = self.samples.grad
        wanted_leaves = [
            (mine, leaf, label)
            for mine, leaf, label in zip(ours.leaves, theirs.leaves, ours.labels(self.op), strict=True)
            if leaf.requires_grad and (names is True or (isinstance(names, tuple) and label in names))
        ]
        if not wanted_leaves:
            return
        outs = [i for i, e in enumerate(expected) if e.requires_grad]
        seeds = [random_like(expected[i]).requires_grad_(self.seconds) for i in outs]
        our_seeds = [ours.tensor(s) for s in seeds]
        their_grads = torch.autograd.grad(
            [expected[i] for i in outs], [leaf for _, leaf, _ in wanted_leaves], seeds,
            create_graph=self.seconds, allow_unused=True,
        )  # fmt: skip
        our_grads = self.engine.call(
            "grad", [got[i] for i in outs], [mine for mine, _, _ in wanted_leaves], our_seeds,
            create_graph=self.seconds, allow_unused=True,
        )  # fmt: skip
        for (mine, _, label), our, their in zip(wanted_leaves, our_grads, their_grads, strict=True):
            self.compare_gradient(f"gradient of {label}", mine, our, their)
        if self.seconds:
            self.compare_seconds(wanted_leaves, our_grads, their_grads, our_seeds, seeds)

    def compare_gradient(self, what: str, operand: Tensor, our: Any, their: torch.Tensor | None) -> None:
        if their is None:
            if our is not None:
                assert not np.any(plain(our)), f"{what} is not zero, though PyTorch gives none"
            return
        assert our is not None, f"{what} is missing"
        assert our.dtype is operand.dtype, f"{what} has dtype {our.dtype}, the operand {operand.dtype}"
        assert our.shape == operand.shape, f"{what} has shape {our.shape}, the operand {operand.shape}"
        close(what, self.to_torch(our), their, self.grad_tol, slack=4)

    def compare_seconds(
        self, leaves: list[Any], our_grads: Any, their_grads: Any, our_seeds: list[Tensor], seeds: list[torch.Tensor]
    ) -> None:
        pairs = [
            (our, their)
            for our, their in zip(our_grads, their_grads, strict=True)
            if their is not None and their.requires_grad
        ]
        if not pairs:
            return
        for our, _ in pairs:
            assert our.requires_grad, "a gradient made with create_graph does not require grad"
        weights = [random_like(their) for _, their in pairs]
        inputs = [leaf for _, leaf, _ in leaves] + seeds
        their_second = torch.autograd.grad([t for _, t in pairs], inputs, weights, allow_unused=True)
        our_second = self.engine.call(
            "grad", [o for o, _ in pairs], [mine for mine, _, _ in leaves] + our_seeds,
            [to_ours(self.engine, w) for w in weights], allow_unused=True,
        )  # fmt: skip
        labels = [f"second gradient of {label}" for _, _, label in leaves] + ["second gradient of the seed"] * len(
            seeds
        )
        for label, our, their, like in zip(labels, our_second, their_second, inputs, strict=True):
            zeros = torch.zeros_like(like)
            mine = zeros if our is None else self.to_torch(our)
            close(label, mine, zeros if their is None else their, self.grad_tol, slack=16)

    # In place

    def compare_in_place(self, expected: list[torch.Tensor]) -> None:
        form = TABLE.get(self.samples.op + "_")
        first = self.sample.args[0] if self.sample.args else None
        if form is None or form.base is not self.op or not isinstance(first, torch.Tensor) or self.samples.ref is None:
            return
        theirs = Oracle(self.in_place_oracle(), self.sample, clone_first=True)
        ours = Ours(self.engine, self.sample, clone_first=True)
        try:
            wanted = theirs.call()[0]
        except Exception as error:
            if is_gap(error):
                return
            if isinstance(error, TypeError):
                raise AssertionError(f"the oracle in place does not take this sample: {error}") from error
            if not self.strict:
                with pytest.raises(builtin_class(error)):
                    ours.call(form.name)
            return
        target = ours.leaves[0]
        version = target.storage.version
        for got in ours.call(form.name):
            assert got is target, "an in-place op returned another tensor"
        assert target.storage.version == version + 1, "the version did not rise by one"
        assert repr(target.dtype) == str(wanted.dtype), f"in place: dtype {target.dtype}"
        close("value in place", self.to_torch(target), wanted, self.tol)
        if target.dtype.category < dtypes.FLOATING:
            return  # PyTorch lets a bool that a comparison was written into require grad
        assert target.requires_grad == wanted.requires_grad, f"in place: requires_grad is {target.requires_grad}"
        if not wanted.requires_grad or not self.samples.grad or not self.sample.gradients:
            return
        if self.samples.grad_fn:
            assert target.grad_fn is not None
            name = node_name(wanted)
            assert target.grad_fn.name == name, f"in place: grad_fn {target.grad_fn.name} instead of {name}"
        leaves = [(m, t) for m, t in zip(ours.origins, theirs.origins, strict=True) if t.requires_grad]
        seed = random_like(wanted)
        try:
            their_grads = torch.autograd.grad(wanted, [t for _, t in leaves], seed, allow_unused=True)
        except RuntimeError as error:
            # x.mul_(x): PyTorch overwrote what it had saved, here it was copied first.
            assert "modified by an inplace operation" in str(error) or is_gap(error), error
            return
        our_grads = self.engine.call(
            "grad", [target], [m for m, _ in leaves], [to_ours(self.engine, seed)], allow_unused=True
        )
        for (mine, _), our, their in zip(leaves, our_grads, their_grads, strict=True):
            self.compare_gradient("gradient in place", mine, our, their)

    def in_place_oracle(self) -> Callable[..., Any]:
        if self.samples.inplace_ref is not None:
            return self.samples.inplace_ref
        name = self.samples.op + "_"
        for place in (torch.Tensor, torch, torch.nn.functional):
            if hasattr(place, name):
                return getattr(place, name)
        ref = self.samples.ref
        assert ref is not None
        return lambda *args, **kwargs: ref(*args, inplace=True, **kwargs)

    def to_torch(self, tensor: Tensor) -> torch.Tensor:
        return from_numpy(plain(tensor))


class Oracle:
    """The sample as PyTorch takes it: leaves of its own."""

    def __init__(self, function: Callable[..., Any], sample: Sample, clone_first: bool = False) -> None:
        self.function = function
        self.leaves: list[torch.Tensor] = []
        self.origins: list[torch.Tensor] = []
        self.sample = sample
        self.made: dict[int, torch.Tensor] = {}
        self.first = sample.args[0] if clone_first else None

    def tensor(self, given: torch.Tensor) -> torch.Tensor:
        found = self.made.get(id(given))
        if found is None:
            origin = duplicate(given).requires_grad_(given.requires_grad)
            found = origin.clone() if given is self.first else origin
            self.made[id(given)] = found
            self.leaves.append(found)
            self.origins.append(origin)
        return found

    def call(self) -> list[torch.Tensor]:
        args = [convert(a, self.tensor, lambda d: d) for a in self.sample.args]
        kwargs = {k: convert(v, self.tensor, lambda d: d) for k, v in self.sample.kwargs.items()}
        return listed(self.function(*args, **kwargs))


class Ours:
    """The sample as the engine takes it."""

    def __init__(self, engine: Engine, sample: Sample, clone_first: bool = False) -> None:
        self.engine = engine
        self.sample = sample
        self.leaves: list[Tensor] = []
        self.origins: list[Tensor] = []
        self.made: dict[int, Tensor] = {}
        self.first = sample.args[0] if clone_first else None
        self.args = [convert(a, self.tensor, to_dtype) for a in sample.args]
        self.kwargs = {k: convert(v, self.tensor, to_dtype) for k, v in sample.kwargs.items()}

    def tensor(self, given: torch.Tensor) -> Tensor:
        found = self.made.get(id(given))
        if found is None:
            origin = to_ours(self.engine, given)
            found = self.engine.call("clone", origin) if given is self.first else origin
            self.made[id(given)] = found
            self.leaves.append(found)
            self.origins.append(origin)
        return found

    def call(self, name: str) -> list[Tensor]:
        return listed(self.engine.call(name, *self.args, **self.kwargs))

    def labels(self, op: Op) -> list[str]:
        """The parameter that each leaf was given for."""
        bound = dict(zip([p.name for p in op.params], op.bind(self.args, dict(self.kwargs)), strict=True))
        names = {}
        for parameter, value in bound.items():
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(tensor, Tensor):
                    names.setdefault(id(tensor), parameter)
        return [names.get(id(leaf), "?") for leaf in self.leaves]


def convert(value: Any, tensor: Callable[[torch.Tensor], Any], dtype: Callable[[torch.dtype], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype):
        return dtype(value)
    if isinstance(value, list):
        return [convert(v, tensor, dtype) for v in value]
    if isinstance(value, tuple):
        return tuple(convert(v, tensor, dtype) for v in value)
    return value


def duplicate(given: torch.Tensor) -> torch.Tensor:
    """A tensor with memory of its own and the same strides, even where they overlap."""
    made = torch.empty(0, dtype=given.dtype)
    storage = given.detach().untyped_storage().clone()
    return made.set_(storage, given.storage_offset(), given.shape, given.stride())


def to_dtype(dtype: torch.dtype) -> dtypes.DType:
    return dtypes.BY_NAME[str(dtype).removeprefix("torch.")]


def to_ours(engine: Engine, given: torch.Tensor) -> Tensor:
    """A leaf of the engine with the values and the strides of a torch tensor."""
    values = to_numpy(given.detach())
    backend = engine.backends["cpu"]
    dtype = to_dtype(given.dtype)
    stride, shape = given.stride(), tuple(given.shape)
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if given.numel() else 0
    memory = backend.empty_bytes(extent * dtype.itemsize)
    array = backend.view(memory, shape, stride, 0, dtype)
    array[...] = backend.from_host(values)
    tensor = Tensor(engine, array, meta(shape, dtype, "cpu", stride), Storage(memory, engine.account))
    tensor.requires_grad_flag = given.requires_grad
    return tensor


def to_numpy(tensor: torch.Tensor) -> Any:
    native = getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch."), None)
    if native is not None:
        bits = torch.int16 if tensor.dtype.itemsize == 2 else torch.int8
        return tensor.contiguous().view(bits).numpy().view(native)
    return tensor.resolve_conj().numpy()


def from_numpy(array: Any) -> torch.Tensor:
    if hasattr(ml_dtypes, array.dtype.name):
        bits = np.array(array, order="C").view(np.int16 if array.itemsize == 2 else np.int8)
        return torch.from_numpy(bits).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(np.array(array))


def plain(tensor: Tensor) -> Any:
    return tensor.engine.to_numpy(tensor)


def listed(result: Any) -> list[Any]:
    if result is None:
        return []
    return list(result) if isinstance(result, (tuple, list)) else [result]


def random_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.randn(tensor.shape, dtype=torch.complex128 if tensor.is_complex() else torch.float64).to(tensor.dtype)


GAPS = ("not implemented for", "does not support automatic differentiation for outputs with complex dtype")


def is_gap(error: Exception) -> bool:
    """Whether PyTorch merely lacks an implementation."""
    return isinstance(error, NotImplementedError) or any(gap in str(error) for gap in GAPS)


def builtin_class(error: Exception) -> type[BaseException]:
    return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


def node_name(tensor: torch.Tensor) -> str | None:
    return None if tensor.grad_fn is None else tensor.grad_fn.name().removeprefix("torch::autograd::")


def shares(result: torch.Tensor, operands: list[torch.Tensor]) -> bool:
    memory = result.untyped_storage().data_ptr()
    return any(operand.untyped_storage().data_ptr() == memory for operand in operands)


def check_announced(tensor: Tensor) -> None:
    """What the rule said of a result against what the kernel made."""
    array, announced = plain(tensor), tensor.meta
    assert array.shape == announced.shape, f"announced shape {announced.shape}, made {array.shape}"
    assert array.dtype.name == announced.dtype.name, f"announced {announced.dtype}, made {array.dtype}"
    if array.size:
        for made, said, extent in zip(array.strides, announced.stride, array.shape, strict=True):
            assert extent == 1 or made == said * array.itemsize, (
                f"announced strides {announced.stride}, made {array.strides} bytes"
            )


def check_strides(which: str, mine: Tensor, wanted: torch.Tensor) -> None:
    """Equal strides, where they are seen: not of empty tensors, and not of dimensions of extent 1."""
    if not wanted.numel():
        return
    for given, expected, extent in zip(mine.meta.stride, wanted.stride(), wanted.shape, strict=True):
        assert extent == 1 or given == expected, (
            f"{which}strides {mine.meta.stride} instead of {wanted.stride()} for shape {mine.shape}"
        )


def close(what: str, mine: torch.Tensor, wanted: torch.Tensor, tol: tuple[float, float], slack: float = 1) -> None:
    name = str(wanted.dtype).removeprefix("torch.")
    wanted = wanted.detach().resolve_conj()
    # What is given holds for the dtype under test; a result of another may be coarser.
    rtol, atol = wider(TOLERANCES[name], tol) if name in TOLERANCES else EXACT
    torch.testing.assert_close(
        mine, wanted, rtol=rtol * slack, atol=atol * slack, equal_nan=True, check_stride=False,
        msg=lambda text: f"{what}: {text}\nhere  {brief(mine)}\ntorch {brief(wanted)}",
    )  # fmt: skip


def wider(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return max(a[0], b[0]), max(a[1], b[1])


def brief(tensor: torch.Tensor) -> str:
    return str(tensor.detach().tolist())[:400]


# The table and its registrations


OPS = [op for op in TABLE.values() if not op.control and op.base is None]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_op_is_complete(op: Op) -> None:
    """It is documented and sampled; it has a kernel unless it is a view, and a derivative for all it declares."""
    entry = row(op.name)
    assert op.doc, "it has no docstring"
    assert op.name in load(), "it has no samples"
    assert entry.kernel or entry.composite or is_view(op), "it has no kernel"
    if op.grad_fn and not entry.composite and entry.joint is None:
        missing = op.differentiable - set(entry.rules)
        assert not missing, f"it declares {sorted(missing)} differentiable and has no derivative for them"


def is_view(op: Op) -> bool:
    """Whether some sample of it is a view."""
    engine = Engine()
    for samples in load()[op.name]:
        for dtype in samples.dtypes:
            for sample in samples.draw(dtype, 0):
                ours = Ours(engine, sample)
                rule_args, _ = described(row(op.name), op.bind(ours.args, dict(ours.kwargs)))
                try:
                    if op.infer(rule_args).is_view:
                        return True
                except GradwireError:
                    continue  # a sample that is to fail
    return False


def test_samples_name_only_ops_of_the_table() -> None:
    assert set(load()) <= set(TABLE)
