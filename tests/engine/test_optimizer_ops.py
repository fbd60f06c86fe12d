"""Optimizer ops against ``torch.optim`` over several steps, and their effects on tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_protocol.errors import ArgumentError, DTypeError, GraphError
from gradwire_protocol.table import lookup

STEPS = 4
LARGE = (300, 300)  # more than one piece
SHAPES = ((), (3,), (2, 3), (0, 2), LARGE)


class Run:
    """The same parameters and gradients here and in PyTorch."""

    def __init__(self, dtype: str = "float32", shapes: tuple[tuple[int, ...], ...] = SHAPES) -> None:
        self.engine = Engine()
        self.random = np.random.default_rng(0)
        self.dtype = dtype
        values = [self.draw(shape) for shape in shapes]
        self.ours = [self.engine.from_numpy(v, requires_grad=True) for v in values]
        self.theirs = [torch.tensor(v).requires_grad_() for v in values]

    def draw(self, shape: tuple[int, ...]) -> Any:
        values = self.random.standard_normal(shape)
        if self.dtype.startswith("complex"):
            values = values + 1j * self.random.standard_normal(shape)
        return np.asarray(values).astype(self.dtype)

    def zeros(self) -> list[Tensor]:
        return [self.engine.from_numpy(np.zeros(p.shape, self.dtype)) for p in self.ours]

    def differentiate(self, skip: int | None = None) -> None:
        """Give every parameter but one a fresh gradient."""
        for i, (mine, theirs) in enumerate(zip(self.ours, self.theirs, strict=True)):
            value = self.draw(mine.shape)
            mine.grad = None if i == skip else self.engine.from_numpy(value)
            theirs.grad = None if i == skip else torch.tensor(value)

    def compare(self, rtol: float = 2e-6, atol: float = 1e-7) -> None:
        for mine, theirs in zip(self.ours, self.theirs, strict=True):
            np.testing.assert_allclose(self.engine.to_numpy(mine), theirs.detach().numpy(), rtol=rtol, atol=atol)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """As a frame would: the rule checks first."""
        op = lookup(name)
        values = op.bind(args, kwargs)
        op.infer([_described(v) for v in values])
        return self.engine.call(name, *args, **kwargs)


def _described(value: Any) -> Any:
    if isinstance(value, list):
        return [None if v is None else v.meta for v in value]
    return value


SGD = [
    dict(lr=0.1),
    dict(lr=0.1, weight_decay=0.2),
    dict(lr=0.1, momentum=0.9),
    dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.2),
    dict(lr=0.1, momentum=0.9, nesterov=True),
    dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.2, maximize=True),
    dict(lr=0.1, maximize=True),
]
ADAM = [
    dict(lr=0.1),
    dict(lr=0.1, betas=(0.4, 0.7), eps=1e-3),
    dict(lr=0.1, weight_decay=0.2),
    dict(lr=0.1, amsgrad=True, maximize=True),
    dict(lr=0.1, weight_decay=0.2, maximize=True),
]
RMSPROP = [
    dict(lr=0.1),
    dict(lr=0.1, alpha=0.3, eps=1e-3, weight_decay=0.2),
    dict(lr=0.1, momentum=0.9, centered=True),
    dict(lr=0.1, centered=True, weight_decay=0.2, maximize=True),
    dict(lr=0.1, momentum=0.5, maximize=True),
]
ADAGRAD = [dict(lr=0.1), dict(lr=0.1, lr_decay=0.1, weight_decay=0.2), dict(lr=0.1, eps=1e-3, maximize=True)]


def _sgd(run: Run, options: dict[str, Any]) -> Iterator[None]:
    buffers: list[Any] = run.zeros() if options.get("momentum") else [None] * len(run.ours)
    first = (True,) * len(run.ours)
    while True:
        run.call("sgd_step", run.ours, buffers, first=first, **options)
        first = ()
        yield


def _adam(decoupled: bool) -> Callable[[Run, dict[str, Any]], Iterator[None]]:
    def steps(run: Run, options: dict[str, Any]) -> Iterator[None]:
        given = dict(options)
        if "betas" in given:
            given["beta1"], given["beta2"] = given.pop("betas")
        given.setdefault("weight_decay", 0.01 if decoupled else 0.0)
        mean, square = run.zeros(), run.zeros()
        largest: list[Any] = run.zeros() if given.get("amsgrad") else [None] * len(run.ours)
        for step in range(1, 1000):
            run.call("adam_step", run.ours, mean, square, largest, step=step, decoupled_weight_decay=decoupled, **given)
            yield

    return steps


def _rmsprop(run: Run, options: dict[str, Any]) -> Iterator[None]:
    none: list[Any] = [None] * len(run.ours)
    means = run.zeros() if options.get("centered") else none
    buffers = run.zeros() if options.get("momentum") else none
    squares = run.zeros()
    while True:
        run.call("rmsprop_step", run.ours, squares, means, buffers, **options)
        yield


def _adagrad(run: Run, options: dict[str, Any]) -> Iterator[None]:
    sums = run.zeros()
    for step in range(1, 1000):
        run.call("adagrad_step", run.ours, sums, step=step, **options)
        yield


CASES = [
    *((torch.optim.SGD, _sgd, o) for o in SGD),
    *((torch.optim.Adam, _adam(False), o) for o in ADAM),
    *((torch.optim.AdamW, _adam(True), o) for o in ADAM),
    *((torch.optim.RMSprop, _rmsprop, o) for o in RMSPROP),
    *((torch.optim.Adagrad, _adagrad, o) for o in ADAGRAD),
]


@pytest.mark.parametrize(("optimizer", "ours", "options"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_agree_with_pytorch(optimizer: Any, ours: Any, options: dict[str, Any], dtype: str) -> None:
    run = Run(dtype)
    theirs = optimizer(run.theirs, foreach=False, **options)
    steps = ours(run, options)
    for _ in range(STEPS):
        run.differentiate()
        theirs.step()
        next(steps)
        run.compare(*((1e-12, 1e-14) if dtype == "float64" else (1e-5, 1e-5)))


@pytest.mark.parametrize(
    ("optimizer", "ours", "options"),
    [
        (torch.optim.SGD, _sgd, SGD[3]),
        (torch.optim.Adam, _adam(False), ADAM[3]),
        (torch.optim.RMSprop, _rmsprop, RMSPROP[2]),
    ],
)
def test_complex_parameters_are_pairs_of_reals(optimizer: Any, ours: Any, options: dict[str, Any]) -> None:
    run = Run("complex64", ((), (2, 3)))
    theirs = optimizer(run.theirs, foreach=False, **options)
    steps = ours(run, options)
    for _ in range(STEPS):
        run.differentiate()
        theirs.step()
        next(steps)
        run.compare(1e-5, 1e-6)


@pytest.mark.parametrize(("optimizer", "ours", "options"), [CASES[3], CASES[7]])
def test_half_precision_parameters_stay_half_precision(optimizer: Any, ours: Any, options: dict[str, Any]) -> None:
    run = Run("float16", ((2, 3),))
    theirs = optimizer(run.theirs, foreach=False, **options)
    steps = ours(run, options)
    for _ in range(STEPS):
        run.differentiate()
        theirs.step()
        next(steps)
        run.compare(1e-2, 5e-3)
    assert run.ours[0].dtype.name == "float16"


def test_a_parameter_without_a_gradient_is_left_alone() -> None:
    run = Run(shapes=((3,), (2,)))
    before = run.engine.to_numpy(run.ours[0]).copy()
    buffers = run.zeros()
    run.differentiate(skip=0)
    run.call("sgd_step", run.ours, buffers, 0.1, 0.9)
    assert np.array_equal(run.engine.to_numpy(run.ours[0]), before)
    assert run.ours[0].storage.version == 0
    assert buffers[0].storage.version == 0


def test_a_step_counts_as_a_new_version_of_parameter_and_state() -> None:
    run = Run(shapes=((3,), LARGE))
    buffers = run.zeros()
    run.differentiate()
    run.call("sgd_step", run.ours, buffers, 0.1, 0.9)
    assert [p.storage.version for p in run.ours] == [1, 1]
    assert [b.storage.version for b in buffers] == [1, 1]


def test_a_step_does_not_change_the_gradient() -> None:
    run = Run(shapes=((3,),))
    run.differentiate()
    grad = run.ours[0].grad
    assert grad is not None
    before = run.engine.to_numpy(grad).copy()
    run.call("sgd_step", run.ours, run.zeros(), 0.1, 0.9, 0.0, 0.1, True, True, (True,))
    assert np.array_equal(run.engine.to_numpy(grad), before)


def test_a_step_is_not_recorded() -> None:
    run = Run(shapes=((3,),))
    run.differentiate()
    run.call("sgd_step", run.ours, [None], 0.1)
    assert run.ours[0].is_leaf
    assert run.ours[0].requires_grad


def test_backward_notices_a_step_taken_since() -> None:
    run = Run(shapes=((3,),))
    param = run.ours[0]
    squared = run.engine.call("sum", param * param)
    run.differentiate()
    run.call("sgd_step", run.ours, [None], 0.1)
    with pytest.raises(GraphError, match="modified in place"):
        run.engine.call("backward", [squared], [None])


def test_a_transposed_parameter_is_changed_in_its_own_layout() -> None:
    run = Run(shapes=((4, 3),))
    base = run.engine.from_numpy(np.arange(12, dtype=np.float32).reshape(3, 4))
    param = run.engine.call("detach", run.engine.call("transpose", base, 0, 1))
    param.base = None
    param.requires_grad_flag = True
    param.grad = run.engine.from_numpy(np.ones((4, 3), np.float32))
    run.engine.call("sgd_step", [param], [None], 1.0)
    assert np.array_equal(run.engine.to_numpy(base), np.arange(12, dtype=np.float32).reshape(3, 4) - 1)


def test_a_computed_tensor_cannot_be_optimized() -> None:
    run = Run(shapes=((3,),))
    computed = run.ours[0] * 2
    computed.grad = run.engine.from_numpy(np.ones(3, np.float32))
    with pytest.raises(GraphError, match="is not a leaf"):
        run.engine.call("sgd_step", [computed], [None], 0.1)


def test_integers_cannot_be_optimized() -> None:
    run = Run(shapes=((3,),))
    with pytest.raises(DTypeError, match="int64"):
        run.call("sgd_step", [run.engine.from_numpy(np.arange(3))], [None], 0.1)


def test_a_state_must_belong_to_its_parameter() -> None:
    run = Run(shapes=((3,),))
    with pytest.raises(ArgumentError, match="does not match parameter"):
        run.call("sgd_step", run.ours, [run.engine.from_numpy(np.zeros(4, np.float32))], 0.1)
    with pytest.raises(ArgumentError, match="1 parameters"):
        run.call("sgd_step", run.ours, [None, None], 0.1)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clipping_agrees_with_pytorch(norm_type: float, max_norm: float) -> None:
    run = Run(shapes=((3,), (2, 3), ()))
    run.differentiate(skip=2)
    norm = run.call("clip_grad_norm_", run.ours, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(run.theirs, max_norm, norm_type)
    np.testing.assert_allclose(run.engine.to_numpy(norm), expected.numpy(), rtol=1e-6)
    for mine, theirs in zip(run.ours[:2], run.theirs[:2], strict=True):
        assert mine.grad is not None and theirs.grad is not None
        np.testing.assert_allclose(run.engine.to_numpy(mine.grad), theirs.grad.numpy(), rtol=1e-6)


def test_clipping_nothing_gives_a_norm_of_zero() -> None:
    run = Run(shapes=((3,),))
    norm = run.call("clip_grad_norm_", run.ours, 1.0)
    assert run.engine.to_numpy(norm).item() == 0


def test_clipping_needs_a_tensor() -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        Run().call("clip_grad_norm_", [], 1.0)


def test_zero_grad_removes_gradients_or_fills_them_with_zeros() -> None:
    run = Run(shapes=((3,), (2,)))
    run.differentiate(skip=1)
    kept = run.ours[0].grad
    run.call("zero_grad", run.ours, False)
    assert run.ours[0].grad is kept
    assert kept is not None and not run.engine.to_numpy(kept).any()
    assert run.ours[1].grad is None
    run.call("zero_grad", run.ours)
    assert run.ours[0].grad is None


def test_zero_grad_detaches_a_recorded_gradient() -> None:
    run = Run(shapes=((3,),))
    param = run.ours[0]
    param.grad = param * 2
    run.call("zero_grad", run.ours, False)
    assert param.grad is not None and param.grad.grad_fn is None and not param.grad.requires_grad
