"""One engine on NumPy and one on CuPy get the same samples and must agree."""

from __future__ import annotations

import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.functional import F, conj
from gradwire_engine.autograd.tensor import Storage, Tensor
from gradwire_engine.numerics import axes
from gradwire_engine.runtime.backends import Backends
from gradwire_protocol import dtypes as all_dtypes
from gradwire_protocol import ops as _ops  # noqa: F401  (fills the table)
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import IndexOutOfRange, KernelError, Unsupported
from gradwire_protocol.meta import meta
from gradwire_protocol.table import TABLE, Op
from tests.samples import Sample, Samples, load

TOLERANCES = {
    "float16": (5e-3, 5e-3), "bfloat16": (3e-2, 3e-2), "float32": (1e-4, 2e-5), "float64": (1e-8, 1e-9),
    "complex64": (1e-4, 2e-5), "complex128": (1e-8, 1e-9),
}  # fmt: skip
BROKEN_DEVICE = ("CUDARuntimeError", "CUDADriverError")
"""After one of these, e.g. an access outside of memory, every later call fails too."""


INNERMOST = 6
"""Calls that are shown of a failure."""


class DeviceBrokenError(Exception):
    """The GPU is in a state in which no further check means anything."""


class Checks:
    """Runs the checks and counts them: one per op and dtype, and one per training step.

    Args:
        device: the device that is compared with the CPU.
        dtypes: the dtypes that samples are drawn in.
    """

    def __init__(self, device: str, dtypes: tuple[str, ...], seed: int) -> None:
        self.device = device
        self.dtypes = dtypes
        self.seed = seed
        self.passed = 0
        self.failed = 0

    def run(self, only: str = "", share: tuple[int, int] = (0, 1)) -> None:
        """Check the ops whose name contains ``only``, family by family, then training.

        Args:
            share: (k, n) checks only the k-th of every n ops; the first share has what is checked once.
        """
        at, of = share
        samples = load()
        families: dict[str, list[Op]] = {}
        sampled = [op for op in TABLE.values() if only in op.name and op.base is None and op.name in samples]
        for op in sampled[at::of]:
            families.setdefault(op.family, []).append(op)
        unsampled = [o.name for o in TABLE.values() if not o.control and o.base is None and o.name not in samples]
        try:
            for family in sorted(families):
                self._family(family, families[family], samples)
            if not only and not at:
                self.check("training: an MLP", lambda: compare_training(self.device, mlp))
                self.check("training: a CNN", lambda: compare_training(self.device, cnn))
        except DeviceBrokenError as error:
            print(f"stopped: {error}")
        if unsampled and not only and not at:
            print(f"not checked, since they have no samples: {', '.join(unsampled)}")

    def _family(self, family: str, ops: list[Op], samples: dict[str, list[Samples]]) -> None:
        started, before = time.perf_counter(), (self.passed, self.failed)
        for op in ops:
            for dtype in self.dtypes:
                declared = [s for s in samples[op.name] if dtype in s.dtypes]
                if declared:
                    self.check(f"{op.name}, {dtype}", lambda d=declared, t=dtype: self._op(d, t))
        passed, failed = self.passed - before[0], self.failed - before[1]
        print(f"{family}: {passed} passed, {failed} failed, {time.perf_counter() - started:.1f} s", flush=True)

    def check(self, label: str, function: Callable[[], None]) -> None:
        """Run one check and count it.

        Raises:
            DeviceBrokenError: when the GPU can do no more.
        """
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                function()
        except Exception as error:
            self.failed += 1
            print(f"FAILED {label}: {type(error).__name__}: {error}\n{_where(error)}", flush=True)
            if type(error).__name__ in BROKEN_DEVICE:
                raise DeviceBrokenError(f"the device failed in {label}, later checks would say nothing") from error
        else:
            self.passed += 1

    def _op(self, declared: list[Samples], dtype: str) -> None:
        for samples in declared:
            seed = zlib.crc32(f"{samples.op}{dtype}{self.seed}".encode())
            for sample in samples.draw(dtype, seed):
                try:
                    Comparison(samples, sample, self.device, seed).run()
                except Exception as error:
                    if type(error).__name__ in BROKEN_DEVICE:
                        raise
                    raise AssertionError(f"{type(error).__name__} on {sample!r}: {error}") from error


def _where(error: BaseException) -> str:
    """The innermost calls of an error and of what caused it."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)[-INNERMOST:]
    return "\n".join(f"    {Path(f.filename).name}:{f.lineno} {f.name}: {f.line}" for f in frames)


class Side:
    """An engine on one device, with the sample's tensors as leaves of its own."""

    def __init__(
        self, device: str, sample: Sample, op: Op, seed: int, in_place: bool = False, backends: Backends | None = None
    ) -> None:
        self.engine = Engine(backends=backends, seed=seed)
        self.device = device
        self.leaves: list[Tensor] = []
        self._made: dict[int, Tensor] = {}
        self._cloned = sample.args[0] if in_place else None
        self._args = [self._convert(a) for a in sample.args]
        self._kwargs = {k: self._convert(v) for k, v in sample.kwargs.items()}
        at = op.positions.get("device")
        if at is not None and len(self._args) > at and self._args[at] == "cpu":
            self._args[at] = device
        elif at is not None and self._kwargs.get("device", op.params[at].default) == "cpu":
            self._kwargs["device"] = device

    def _convert(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.dtype):
            return all_dtypes.BY_NAME[str(value).removeprefix("torch.")]
        if isinstance(value, (list, tuple)):
            return type(value)(self._convert(v) for v in value)
        return value

    def _tensor(self, given: torch.Tensor) -> Tensor:
        found = self._made.get(id(given))
        if found is None:
            leaf = upload(self.engine, self.device, to_numpy(given), given.stride(), given.requires_grad)
            self.leaves.append(leaf)
            found = self._made[id(given)] = self.engine.call("clone", leaf) if given is self._cloned else leaf
        return found

    def call(self, name: str) -> list[Tensor]:
        found = self.engine.call(name, *self._args, **self._kwargs)
        if found is None:
            found = self._args[0] if TABLE[name].mutates is not None else ()
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def gradients(self, outs: list[Tensor], seeds: list[np.ndarray]) -> list[Tensor | None]:
        leaves = [leaf for leaf in self.leaves if leaf.requires_grad]
        given = [upload(self.engine, self.device, seed) for seed in seeds]
        return list(self.engine.call("grad", outs, leaves, given, allow_unused=True)) if leaves else []


class Comparison:
    """One sample on both devices: results, errors, gradients, and the in-place form.

    Args:
        backends: makes those of the second engine, where they are not the usual ones.
    """

    def __init__(
        self, samples: Samples, sample: Sample, device: str, seed: int,
        backends: Callable[[], Backends | None] = lambda: None,
    ) -> None:  # fmt: skip
        self.backends = backends
        self.samples = samples
        self.sample = sample
        self.device = device
        self.seed = seed
        self.op = TABLE[samples.op]

    def run(self) -> None:
        self._compare(self.op.name, in_place=False)
        form = TABLE.get(self.op.name + "_")
        first = self.sample.args[0] if self.sample.args else None
        if form is not None and form.base is self.op and isinstance(first, torch.Tensor):
            self._compare(form.name, in_place=True)

    def _compare(self, name: str, in_place: bool) -> None:
        host = Side("cpu", self.sample, self.op, self.seed, in_place)
        other = Side(self.device, self.sample, self.op, self.seed, in_place, self.backends())
        try:
            expected = host.call(name)
        except Exception as error:
            refused(name, other, error, lambda: Side("cpu", self.sample, self.op, self.seed, in_place))
            return
        got = other.call(name)
        assert len(got) == len(expected), f"{name}: {len(got)} results, {len(expected)} on the CPU"
        # Results are where the operands are, or where the device argument says.
        place = self.device if other.leaves or "device" in self.op.positions else "cpu"
        for i, (mine, wanted) in enumerate(zip(got, expected, strict=True)):
            self._compare_result(f"{name}, result {i}", mine, wanted, place)
        determined = DETERMINED.get(name)
        if determined is not None:
            got, expected = determined(*got), determined(*expected)
            for i, (mine, wanted) in enumerate(zip(got, expected, strict=True)):
                close(f"{name}, made of its results {i}", mine, wanted, self.samples.tol)
        differentiable = [i for i, t in enumerate(expected) if t.requires_grad]
        if differentiable and self.samples.grad and self.sample.gradients:
            random = np.random.default_rng(self.seed)
            seeds = [gradient_for(expected[i], random) for i in differentiable]
            theirs = host.gradients([expected[i] for i in differentiable], seeds)
            ours = other.gradients([got[i] for i in differentiable], seeds)
            for i, (mine, wanted) in enumerate(zip(ours, theirs, strict=True)):
                assert (mine is None) == (wanted is None), f"{name}: gradient {i} is there on one device only"
                if mine is not None and wanted is not None:
                    # It is computed in the dtypes of the results, whatever the operand's.
                    through = [expected[k].dtype for k in differentiable]
                    tol = self.samples.grad_tol or self.samples.tol
                    close(f"{name}, gradient {i}", mine, wanted, tol, slack=4, through=through)

    def _compare_result(self, what: str, mine: Tensor, wanted: Tensor, place: str) -> None:
        assert mine.device == place, f"{what} is on {mine.device}"
        assert mine.dtype is wanted.dtype, f"{what} is {mine.dtype}, {wanted.dtype} on the CPU"
        assert mine.shape == wanted.shape, f"{what} has shape {mine.shape}, {wanted.shape} on the CPU"
        assert mine.meta.stride == wanted.meta.stride, f"{what}: strides {mine.meta.stride}, {wanted.meta.stride}"
        assert mine.requires_grad == wanted.requires_grad, f"{what}: requires_grad differs"
        if not self.op.name.startswith("empty") and self.op.name not in DETERMINED:
            close(what, mine, wanted, self.samples.tol)


def _adjoint(x: Tensor) -> Tensor:
    return conj(F.transpose(x, -2, -1))


def _of_pairs(left: Tensor, right: Tensor) -> Tensor:
    """A weighted sum of the products of the columns of ``left`` with the rows of ``right``: the same whatever sign or
    phase a column has, as long as its row has the opposite one."""
    ranks = F.cumsum(F.ones_like(F.sum(F.abs(F.detach(right)), -1, True)), -2)
    return left @ (right * ranks)


def _of_singular_vectors(u: Tensor, values: Tensor, vh: Tensor) -> list[Tensor]:
    k = values.shape[-1]
    whole = [F.detach(_adjoint(u) @ u), F.detach(vh @ _adjoint(vh))]  # vectors of the value 0 are any basis
    return [values, _of_pairs(F.narrow(u, -1, 0, k), F.narrow(vh, -2, 0, k)), *whole]


DETERMINED: dict[str, Callable[..., list[Tensor]]] = {
    "linalg_eigh": lambda values, vectors: [values, _of_pairs(vectors, _adjoint(vectors))],
    "linalg_svd": _of_singular_vectors,
}
"""Of ops whose results are unique up to signs or phases, what is made of the results and unique."""


def refused(name: str, side: Side, error: Exception, unwatched: Callable[[], Side] | None = None) -> None:
    """Check that an op fails there with the same class of error as on the CPU.

    A GPU may accept what the CPU found by looking at values; and what only GPUs do in PyTorch may be unsupported.

    Args:
        unwatched: makes the CPU's side again, to see whether the error is one of those.
    """
    raised: Exception | None = None
    try:
        side.call(name)
    except Exception as found:
        raised = found
    if side.device != "cpu":
        if isinstance(raised, Unsupported):
            return
        if raised is None and (isinstance(error, (IndexOutOfRange, KernelError)) or _is_of_values(name, unwatched)):
            return
    assert type(raised) is type(error), (
        f"{name}: {type(raised).__name__} ({raised}), on the CPU {type(error).__name__} ({error})"
    )


def _is_of_values(name: str, make: Callable[[], Side] | None) -> bool:
    """Whether the CPU accepts the arguments as well, where its kernels do not look at values."""
    if make is None:
        return False
    side = make()
    with _unwatched():
        try:
            side.call(name)
        except Exception:
            return False
    return True


@contextmanager
def _unwatched() -> Iterator[None]:
    """Let kernels take looking at a value for waiting, as it is on a GPU (``numerics.axes.waits``)."""
    waits = axes.waits
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("gradwire_engine.") and vars(module).get("waits") is waits:
                stack.enter_context(mock.patch.object(module, "waits", return_value=True))
        yield


# Values across devices


def upload(engine: Engine, device: str, values: np.ndarray, stride: Any = None, requires_grad: bool = False) -> Tensor:
    """A leaf with these values, and with these strides (in elements) if any are given."""
    backend = engine.backends[device]
    dtype = all_dtypes.BY_NAME[values.dtype.name]
    shape = values.shape
    if stride is None:
        return engine.from_numpy(values, requires_grad, device)
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if values.size else 0
    memory = backend.empty_bytes(extent * dtype.itemsize)
    array = backend.view(memory, shape, tuple(stride), 0, dtype)
    array[...] = backend.from_host(np.ascontiguousarray(values))
    tensor = Tensor(engine, array, meta(shape, dtype, device, tuple(stride)), Storage(memory, engine.account))
    tensor.requires_grad_flag = requires_grad
    return tensor


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The values of a sample."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def gradient_for(result: Tensor, random: np.random.Generator) -> np.ndarray:
    """An initial gradient for a result."""
    values = random.standard_normal(result.shape)
    if result.dtype.is_complex:
        values = values + 1j * random.standard_normal(result.shape)
    host = result.engine.to_numpy(result)
    return np.asarray(values).astype(host.dtype)


def close(
    what: str, mine: Tensor, wanted: Tensor, tol: tuple[float, float] | None, slack: float = 1,
    through: Sequence[DType] = (),
) -> None:  # fmt: skip
    """Check that values agree, within what the order of a sum allows in their dtype, or in one of ``through``, by which
    they were computed."""
    ours, theirs = mine.engine.to_numpy(mine), wanted.engine.to_numpy(wanted)
    rtol, atol = max(TOLERANCES.get(dtype.name, (0.0, 0.0)) for dtype in (wanted.dtype, *through))
    if tol is not None and rtol:
        rtol, atol = max(rtol, tol[0]), max(atol, tol[1])
    wide = {"f": np.float64, "c": np.complex128}.get(theirs.dtype.kind)
    if wide is None and wanted.dtype is all_dtypes.bfloat16:
        wide = np.float64
    if wide is not None:
        ours, theirs = ours.astype(wide), theirs.astype(wide)
    np.testing.assert_allclose(ours, theirs, rtol=rtol * slack, atol=atol * slack, equal_nan=True, err_msg=what)


# Training

Network = Callable[[Engine, list[Tensor], Tensor], Tensor]


def mlp(engine: Engine, parameters: list[Tensor], images: Tensor) -> Tensor:
    """64-32-10, on flattened images."""
    w1, b1, w2, b2 = parameters
    hidden = engine.call("relu", engine.call("linear", engine.call("reshape", images, (-1, 64)), w1, b1))
    return engine.call("linear", hidden, w2, b2)


def cnn(engine: Engine, parameters: list[Tensor], images: Tensor) -> Tensor:
    """A 3x3 convolution and a linear layer."""
    kernel, bias, w, b = parameters
    hidden = engine.call("relu", engine.call("conv2d", images, kernel, bias, padding=(1, 1)))
    return engine.call("linear", engine.call("reshape", hidden, (-1, 4 * 64)), w, b)


SHAPES = {mlp: ((32, 64), (32,), (10, 32), (10,)), cnn: ((4, 1, 3, 3), (4,), (10, 256), (10,))}


def losses(device: str, network: Network, steps: int = 5) -> list[float]:
    """The losses of a few steps of gradient descent on that device."""
    engine = Engine()
    random = np.random.default_rng(0)

    def leaf(*shape: int, requires_grad: bool = True) -> Tensor:
        return upload(engine, device, random.standard_normal(shape).astype(np.float32) * 0.2, None, requires_grad)

    parameters = [leaf(*shape) for shape in SHAPES[network]]
    images = leaf(16, 1, 8, 8, requires_grad=False)
    labels = upload(engine, device, random.integers(0, 10, (16, 1)))
    found = []
    for _ in range(steps):
        scores = engine.call("log_softmax", network(engine, parameters, images), -1)
        loss = engine.call("neg", engine.call("mean", engine.call("gather", scores, 1, labels)))
        engine.call("backward", [loss], [None])
        engine.call("set_mode", 0)
        for parameter in parameters:
            engine.call("sub_", parameter, parameter.grad, alpha=0.5)
            engine.call("set_grad", parameter, None)
        engine.call("set_mode", 1)
        found.append(float(engine.to_numpy(loss)))
    return found


def compare_training(device: str, network: Network) -> None:
    """Check that training takes the same course on that device as on the CPU, and that it is one downhill."""
    expected, got = losses("cpu", network), losses(device, network)
    assert expected[-1] < expected[0], f"the loss does not fall: {expected}"
    np.testing.assert_allclose(got, expected, rtol=1e-3)
