"""Less common optimizers, LBFGS's vectors and the scaler's ops, on NumPy and on the stand-in for CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_protocol.errors import ArgumentError, DTypeError, ShapeError
from gradwire_protocol.table import lookup

SHAPES = ((3,), (2, 3), (300, 300))  # the last is worked on in pieces
MATRICES = ((4, 3), (2, 5))


def call(engine: Engine, name: str, *args: Any, **kwargs: Any) -> Any:
    """As a frame would: the rule checks first."""
    op = lookup(name)
    values = op.bind(args, kwargs)
    described = [[None if v is None else v.meta for v in x] if isinstance(x, list) else x for x in values]
    op.infer([v.meta if isinstance(v, Tensor) else v for v in described])
    return engine.call(name, *args, **kwargs)


class Run:
    """The same parameters and gradients here and in PyTorch."""

    def __init__(self, engine: Engine, shapes: tuple[tuple[int, ...], ...], dtype: str = "float64") -> None:
        self.engine, self.dtype = engine, dtype
        self.random = np.random.default_rng(0)
        values = [self.draw(shape) for shape in shapes]
        self.ours = [engine.from_numpy(v, requires_grad=True) for v in values]
        self.theirs = [torch.tensor(v).requires_grad_() for v in values]

    def draw(self, shape: tuple[int, ...]) -> Any:
        return np.asarray(self.random.standard_normal(shape)).astype(self.dtype)

    def full(self, value: float = 0.0) -> list[Tensor]:
        return [self.engine.from_numpy(np.full(p.shape, value, self.dtype)) for p in self.ours]

    def differentiate(self) -> None:
        for mine, theirs in zip(self.ours, self.theirs, strict=True):
            value = self.draw(mine.shape)
            mine.grad, theirs.grad = self.engine.from_numpy(value), torch.tensor(value)

    def values(self) -> list[Any]:
        return [self.engine.to_numpy(p).copy() for p in self.ours]

    def compare(self, tolerance: float) -> None:
        for mine, theirs in zip(self.values(), self.theirs, strict=True):
            np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


STEPS: list[tuple[Any, dict[str, Any], str, int, dict[str, Any]]] = [
    (torch.optim.Adamax, dict(lr=0.1, weight_decay=0.2), "adamax_step", 2, {}),
    (torch.optim.RAdam, dict(lr=0.1, weight_decay=0.2), "radam_step", 2, {}),
    (torch.optim.RAdam, dict(lr=0.1, weight_decay=0.2, maximize=True, betas=(0.5, 0.6)), "radam_step", 2, {}),
    (torch.optim.Adadelta, dict(lr=0.5, weight_decay=0.2), "adadelta_step", 2, {"step": None}),
    (torch.optim.Adadelta, dict(lr=0.5, weight_decay=0.2, maximize=True), "adadelta_step", 2, {"step": None}),
]


@pytest.mark.parametrize("made, options, name, states, more", STEPS)
def test_steps_agree_with_torchs(engine: Engine, made: Any, options: Any, name: str, states: int, more: Any) -> None:
    run = Run(engine, SHAPES)
    optimizer = made(run.theirs, foreach=False, **options)
    given = dict(options)
    if "betas" in given:
        given["beta1"], given["beta2"] = given.pop("betas")
    kept = [run.full() for _ in range(states)]
    for step in range(1, 8):
        run.differentiate()
        optimizer.step()
        counted = {} if "step" in more else {"step": step}
        call(engine, name, run.ours, *kept, **given, **counted)
        run.compare(1e-9)


def test_rprop_agrees_with_torchs(engine: Engine) -> None:
    run = Run(engine, SHAPES)
    optimizer = torch.optim.Rprop(run.theirs, lr=0.1)
    before, sizes = run.full(), run.full(0.1)
    for _ in range(6):
        run.differentiate()
        optimizer.step()
        call(engine, "rprop_step", run.ours, before, sizes)
        run.compare(1e-12)


def test_adafactor_agrees_with_torchs(engine: Engine) -> None:
    run = Run(engine, SHAPES)
    optimizer = torch.optim.Adafactor(run.theirs, lr=0.1, weight_decay=0.1)
    zeros = lambda shape: engine.from_numpy(np.zeros(shape))
    rows = [None, zeros((2, 1)), zeros((300, 1))]
    columns = [None, zeros((1, 3)), zeros((1, 300))]
    vectors = [zeros((3,)), None, None]
    for step in range(1, 5):
        run.differentiate()
        optimizer.step()
        call(engine, "adafactor_step", run.ours, rows, columns, vectors, 0.1, weight_decay=0.1, step=step)
        run.compare(1e-9)


@pytest.mark.parametrize("adjust", ["original", "match_rms_adamw"])
def test_muon_agrees_with_torchs_up_to_bfloat16(engine: Engine, adjust: str) -> None:
    run = Run(engine, MATRICES, "float32")
    optimizer = torch.optim.Muon(run.theirs, lr=0.1, adjust_lr_fn=adjust)
    buffers = run.full()
    for _ in range(3):
        run.differentiate()
        optimizer.step()
        call(engine, "muon_step", run.ours, buffers, 0.1, adjust=adjust)
        run.compare(5e-3)


@pytest.mark.parametrize("name", ["sgd_step", "adam_step", "adafactor_step", "muon_step"])
def test_a_step_that_is_to_be_skipped_changes_nothing(engine: Engine, name: str) -> None:
    run = Run(engine, MATRICES, "float32")
    run.differentiate()
    before = run.values()
    states: list[Any] = {
        "sgd_step": [run.full()], "adam_step": [run.full(), run.full(), [None] * 2], "muon_step": [run.full()],
        "adafactor_step": [
            [engine.from_numpy(np.zeros((r, 1), "f")) for r, _ in MATRICES],
            [engine.from_numpy(np.zeros((1, c), "f")) for _, c in MATRICES], [None] * 2,
        ],
    }[name]  # fmt: skip
    for found, moves in ((1.0, False), (0.0, True)):
        call(engine, name, run.ours, *states, 0.1, skip=engine.from_numpy(np.float32(found)))
        assert moves != all(np.array_equal(a, b) for a, b in zip(run.values(), before, strict=True))
        assert [p.storage.version for p in run.ours] == [int(moves)] * 2


def test_matrices_alone_are_muons(engine: Engine) -> None:
    run = Run(engine, ((3,),))
    with pytest.raises(ShapeError, match="matrix"):
        call(engine, "muon_step", run.ours, run.full(), 0.1)
    with pytest.raises(ArgumentError, match="adjust"):
        call(engine, "muon_step", [], [], 0.1, adjust="other")


def test_a_state_of_adafactor_must_fit(engine: Engine) -> None:
    run = Run(engine, ((3,),))
    with pytest.raises(ArgumentError, match=r"\[3\]"):
        call(engine, "adafactor_step", run.ours, [None], [None], [None], 0.1)
    with pytest.raises(DTypeError, match="complex"):
        call(engine, "adafactor_step", [engine.from_numpy(np.ones(2, complex))], [None], [None], [None], 0.1)


def test_parameters_become_one_vector_and_move_along_one(engine: Engine) -> None:
    real, pairs = np.arange(4.0).reshape(2, 2), np.array([1 + 2j, 3 - 4j])
    params = [engine.from_numpy(real, requires_grad=True), engine.from_numpy(pairs, requires_grad=True)]
    params[1].grad = engine.from_numpy(np.array([5 + 6j, 7j]))
    told = lambda t: engine.to_numpy(t).tolist()
    assert told(call(engine, "flat_values", params)) == [0, 1, 2, 3, 1, 2, 3, -4]
    assert told(call(engine, "flat_gradient", params)) == [0, 0, 0, 0, 5, 6, 0, 7]
    origin = call(engine, "flat_values", params)
    call(engine, "move_params", params, engine.from_numpy(np.ones(8)), 0.5)
    assert told(params[0]) == [[0.5, 1.5], [2.5, 3.5]] and told(params[1]) == [1.5 + 2.5j, 3.5 - 3.5j]
    call(engine, "move_params", params, engine.from_numpy(np.ones(8)), 1.0, origin)
    assert told(params[0]) == [[1, 2], [3, 4]]
    with pytest.raises(ShapeError, match="8 numbers"):
        call(engine, "move_params", params, engine.from_numpy(np.ones(7)), 1.0)


def test_a_direction_of_lbfgs_solves_a_quadratic(engine: Engine) -> None:
    """Along its directions, with exact steps, a quadratic in n dimensions is at its minimum after n steps."""
    matrix = np.diag([1.0, 3.0, 10.0])
    x = np.array([1.0, -2.0, 0.5])
    tensor = engine.from_numpy
    dirs, steps, ros, scale = [], [], [], tensor(np.float64(1))
    d, previous, t = -matrix @ x, matrix @ x, 0.0
    for _ in range(3):
        t = -float(previous @ d) / float(d @ matrix @ d)
        x = x + t * d
        gradient = matrix @ x
        found = call(
            engine, "lbfgs_direction", tensor(gradient), tensor(previous), tensor(d), t, dirs, steps, ros, scale
        )
        if engine.to_numpy(found[5])[0] > 1e-10:
            dirs, steps, ros, scale = [*dirs, found[1]], [*steps, found[2]], [*ros, found[3]], found[4]
        previous, d = gradient, engine.to_numpy(found[0])
        assert np.isclose(engine.to_numpy(found[5])[1], gradient @ d)
    np.testing.assert_allclose(x, 0, atol=1e-9)


def test_a_gradients_facts(engine: Engine) -> None:
    found = call(
        engine, "gradient_facts", engine.from_numpy(np.array([1.0, -3.0])), engine.from_numpy(np.array([2.0, 1.0]))
    )
    assert engine.to_numpy(found).tolist() == [3.0, 4.0, -1.0, 10.0]


@pytest.mark.parametrize("bad", [None, np.inf, np.nan])
def test_gradients_are_unscaled_and_checked(engine: Engine, bad: float | None) -> None:
    params = [engine.from_numpy(np.ones(3, kind), requires_grad=True) for kind in ("f", "d", "F")]
    for param in params[:2]:
        param.grad = engine.from_numpy(np.full(3, 8, param.array.dtype))
    if bad is not None:
        assert params[1].grad is not None
        params[1].grad.array[1] = bad
    found = call(engine, "unscale_gradients", params, engine.from_numpy(np.float32(4)))
    assert engine.to_numpy(found) == (bad is not None)
    assert params[0].grad is not None
    assert engine.to_numpy(params[0].grad).tolist() == [2.0] * 3


def test_the_scale_follows_what_was_found(engine: Engine) -> None:
    scale, tracker = engine.from_numpy(np.float32(8)), engine.from_numpy(np.int32(0))
    seen = []
    for found in (0.0, 0.0, 1.0, 0.0, 0.0):
        call(engine, "update_scale", scale, tracker, [engine.from_numpy(np.float32(found))], 2.0, 0.25, 2)
        seen.append((float(engine.to_numpy(scale)), int(engine.to_numpy(tracker))))
    assert seen == [(8, 1), (16, 0), (4, 0), (4, 1), (8, 0)]


def test_a_scale_that_would_overflow_stays(engine: Engine) -> None:
    scale, tracker = engine.from_numpy(np.float32(3e38)), engine.from_numpy(np.int32(0))
    with np.errstate(over="ignore"):
        call(engine, "update_scale", scale, tracker, [engine.from_numpy(np.float32(0))], 2.0, 0.5, 1)
    assert float(engine.to_numpy(scale)) == np.float32(3e38)
