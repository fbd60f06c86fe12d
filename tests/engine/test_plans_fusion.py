"""Runs of elementwise work in plans: one pass over memory, with the bits of the ops one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradwire as torch
from gradwire_engine.autograd.registry import row
from gradwire_engine.kernels.cpu import threads
from gradwire_engine.plans import fusion
from gradwire_engine.plans.program import At
from gradwire_engine.runtime.fusing import MACHINES, Layout, Run, RunStep, order_of, walk
from gradwire_engine.session.session import Session
from tests.engine.compiled_kernels import kernels
from tests.engine.recordings import SEED, record
from tests.engine.test_plans import repeated, same, training

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

nn, functional = torch.nn, torch.nn.functional
DTYPES = ["float32", "float64"]
ODD = 4801
"""Elements of several blocks and a part of one, of which some are left behind whole vectors."""


def layout(array: Any) -> Layout:
    return Layout(array.shape, array.strides, array.dtype.char)


def values(dtype: str, count: int, size: int = ODD) -> list[Any]:
    """Arrays of ordinary numbers, the largest and smallest, and what is no number, in all combinations."""
    generator = np.random.default_rng(count)
    info = np.finfo(dtype)
    special = np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.tiny / 8, -info.tiny / 8,
         88.8, -87.0, 9.1, -3.92, 6.0, 3e-4], dtype,
    )  # fmt: skip
    found = []
    for i in range(count):
        x = (generator.standard_normal(size) * 10.0 ** generator.integers(-3, 4, size)).astype(dtype)
        x[: len(special) ** 2] = np.repeat(special, len(special)) if i % 2 else np.tile(special, len(special))
        found.append(generator.permutation(x) if i > 1 else x)
    return found


def alike(found: Any, expected: Any) -> None:
    """Any NaN is NaN, all else is compared by its bits."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(found), nan)
    assert found[~nan].tobytes() == expected[~nan].tobytes()


def run_of(spelled: fusion.Spelled, arguments: list[Any]) -> tuple[Run, list[Any]]:
    """A run that is one call, whose arguments are places in a list of arrays, and numbers."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    numbers: list[Any] = []
    steps: list[RunStep] = []
    count = sum(type(r) in (int, float) for _, reads in spelled for r in reads)
    for operation, reads in spelled:
        slots = []
        for read in reads:
            if type(read) is At:
                slots.append(read.value)
            elif type(read) in (int, float):
                slots.append(len(arrays) + len(numbers))
                numbers.append(read)
            else:
                slots.append(len(arrays) + count + len(steps) - 1)
        steps.append(RunStep(operation, tuple(slots)))
    out = np.empty(np.broadcast_shapes(*[a.shape for a in arrays]), arrays[0].dtype)
    run = Run(layout(out), tuple(map(layout, arrays)), count, tuple(steps), (len(steps) - 1,))
    return run, [*arrays, *numbers]


ATTRIBUTES: dict[str, list[tuple[Any, ...]]] = {
    "add": [(1,), (0.3,)], "sub": [(1,), (-2,)], "rsub": [(1,), (0.3,)], "div": [(None,)], "addcmul": [(1,), (0.7,)],
    "addcdiv": [(1,), (-3,)], "gelu": [("none",), ("tanh",)], "gelu_backward": [("none",), ("tanh",)],
    "hardtanh": [(-1.5, 2)], "threshold_backward": [(0,), (0.25,)], "leaky_relu": [(0.2,)],
    "leaky_relu_backward": [(0.2,)],
}  # fmt: skip
ARRAYS = dict.fromkeys(("add", "sub", "rsub", "mul", "div"), 2) | {"addcmul": 3, "addcdiv": 3}
CASES = [(name, dtype) for name in [*fusion.NUMPY, *fusion.COMPILED] for dtype in DTYPES]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_operation_has_the_bits_of_the_kernel(name: str, dtype: str) -> None:
    table = fusion.NUMPY if name in fusion.NUMPY else fusion.COMPILED
    count = ARRAYS.get(name, 2 if name.endswith("_backward") else 1)
    arrays = values(dtype, count)
    kernel = row(name).compiled if name in fusion.COMPILED else row(name).kernel
    assert kernel is not None
    for attributes in ATTRIBUTES.get(name, [()]):
        spelled = table[name](*[At(i) for i in range(count)], *attributes)
        assert spelled is not None
        run, given = run_of(spelled, arrays)
        for most in (1, 2, 3):
            threads.use_threads(most)
            with np.errstate(all="ignore"):
                expected = kernel(np, *arrays, *attributes)
            if expected is NotImplemented:
                assert dtype == "float64"  # then the tape takes NumPy's, and the call is part of no run
                return
            alike(MACHINES["cpu"](run)(*given), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "sub", "rsub", "mul", "div"])
def test_numbers_become_what_numpy_makes_of_them(name: str, dtype: str) -> None:
    x = values(dtype, 1)[0]
    attributes = ATTRIBUTES.get(name, [()])[0]
    for number in (0.1, -3, 0, -0.0, (1 << 60) + 1, (1 << 24) + 1, float("nan"), float("inf")):
        for operands in ((At(0), number), (number, At(0))):
            spelled = fusion.NUMPY[name](*operands, *attributes)
            assert spelled is not None
            run, given = run_of(spelled, [x])
            with np.errstate(all="ignore"):
                plain = [x if type(each) is At else each for each in operands]
                kernel = row(name).kernel
                assert kernel is not None
                alike(MACHINES["cpu"](run)(*given), kernel(np, *plain, *attributes))


NUMPYS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(12))
def test_runs_have_the_bits_of_their_steps(seed: int, dtype: str) -> None:
    choose = random.Random(seed)
    arrays = values(dtype, 4)
    numbers = [0.5, -2, 1]
    steps, found = [], [*arrays, *numbers]
    for _ in range(choose.randint(2, 30)):
        operation = choose.choice([*NUMPYS, "negate"])
        reads = (choose.randrange(len(found)),) if operation == "negate" else (
            choose.randrange(len(found)), choose.randrange(len(found)),
        )  # fmt: skip
        if all(type(found[r]) is not np.ndarray for r in reads):
            continue
        steps.append(RunStep(operation, reads))
        with np.errstate(all="ignore"):
            read = [found[r] for r in reads]
            found.append(-read[0] if operation == "negate" else NUMPYS[operation](*read))
    kept = tuple(sorted(choose.sample(range(len(steps)), min(3, len(steps)))))
    run = Run(layout(arrays[0]), tuple(map(layout, arrays)), len(numbers), tuple(steps), kept)
    for most in (1, 2):
        threads.use_threads(most)
        made = MACHINES["cpu"](run)(*arrays, *numbers)
        for array, step in zip(made if len(kept) > 1 else [made], kept, strict=True):
            alike(array, found[len(arrays) + len(numbers) + step])


LAID = {
    "a row": ((37,), None), "a column": ((61, 1), None), "one": ((), None), "one of one dimension": ((1,), None),
    "planes": ((5, 1, 37), None), "rows of planes": ((61, 37), None), "transposed": ((37, 61, 5), (2, 1, 0)),
    "with gaps": ((5, 61, 74), None), "a middle": ((1, 61, 1), None),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LAID)
@pytest.mark.parametrize("turned", [False, True])
def test_operands_may_lie_in_memory_as_they_like(name: str, dtype: str, turned: bool) -> None:
    shape, order = LAID[name]
    generator = np.random.default_rng(5)
    x = generator.standard_normal((5, 61, 37)).astype(dtype)
    other = generator.standard_normal(shape).astype(dtype)
    if name == "with gaps":
        other = other[..., ::2]
    if order is not None:
        other = other.transpose(order)
    if turned:
        x = np.asfortranarray(x)
    expected = (x * other + x) * other
    out = layout(expected if not turned else np.asfortranarray(expected))
    steps = (RunStep("multiply", (0, 1)), RunStep("add", (2, 0)), RunStep("multiply", (3, 1)))
    for most in (1, 3):
        threads.use_threads(most)
        found = MACHINES["cpu"](Run(out, (layout(x), layout(other)), 0, steps, (2,)))(x, other)
        assert found.strides == out.strides
        alike(found, expected)


def test_square_results_may_be_laid_out_by_columns() -> None:
    x = np.asfortranarray(np.arange(9, dtype="f").reshape(3, 3))
    steps = (RunStep("add", (0, 0)), RunStep("multiply", (1, 0)))
    found = MACHINES["cpu"](Run(layout(x), (layout(x),), 0, steps, (1,)))(x)
    assert found.strides == x.strides
    alike(found, (x + x) * x)


def test_neighbouring_dimensions_are_walked_as_one() -> None:
    out = Layout((4, 5, 6), (120, 24, 4), "f")
    order = order_of(out)
    assert order == (0, 1, 2)
    assert walk(out, order, out) == ((120, 1),)
    assert walk(out, order, Layout((6,), (4,), "f")) == ((20, 0), (6, 1))
    assert walk(out, order, Layout((4, 1, 1), (8, 8, 8), "f")) == ((4, 2), (30, 0))
    assert order_of(Layout((4, 5), (40, 4), "f")) is None


# Plans


def watch(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """A list of the runs of the plans that are made from now on."""
    found: list[Run] = []
    plain = MACHINES["cpu"]

    def noted(run: Run) -> Any:
        found.append(run)
        return plain(run)

    monkeypatch.setitem(MACHINES, "cpu", noted)
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Run]]:
    """Sessions with compiled kernels, whose plans fuse arrays of any size."""

    def compiled_session() -> Session:
        session = Session(seed=SEED)
        session.run_compiled(True)
        return session

    monkeypatch.setattr(fusion, "SMALLEST", 1)
    monkeypatch.setattr(fusion, "WORTH", 1)
    monkeypatch.setattr("tests.engine.test_plans.new_session", compiled_session)
    monkeypatch.setattr("tests.engine.recordings.new_session", compiled_session)
    yield watch(monkeypatch)
    threads.use_threads(0)


def elementwise(number: int) -> None:
    """Values that are needed later, views of them, broadcasting, and a number that differs each time."""
    x, w = torch.randn(40, 30, requires_grad=True), torch.randn(30, requires_grad=True)
    hidden = torch.tanh(x * w + 0.5) * (1 - x)
    part = hidden[:, 3:9]
    made = (hidden - hidden.mean(1, keepdim=True)) / 3 * number + functional.gelu(hidden)
    (made.sum() + (part * part).sum()).backward()
    (x.grad * 2 - x).sum().item(), w.grad.tolist()


def in_place(number: int) -> None:
    """Writes to what a run reads and makes, on the whole and through views."""
    x = torch.randn(40, 30)
    y = x * 2 + 1
    z = y * x - 3
    x.add_(z, alpha=number + 1)
    y[:, 5:].mul_(0.5)
    z = z * y + x
    y.mul_(z).sub_(1)
    (z - y).tolist(), x.sum().item()


def double(number: int) -> None:
    x = torch.randn(50, 20, dtype=torch.float64, requires_grad=True)
    made = torch.relu(x * 3 - 1) * x.sigmoid() / 7
    (g,) = torch.autograd.grad(made.sum(), x, create_graph=True)
    (g * g).sum().backward()
    x.grad.tolist()


@pytest.mark.parametrize("step", [elementwise, in_place, double])
@pytest.mark.parametrize("most", [1, 2])
def test_plans_fuse_runs_and_leave_the_session_of_the_tape(step: Any, most: int, runs: list[Run]) -> None:
    threads.use_threads(most)
    same(record(repeated(step)))
    assert any(len(run.steps) > 1 for run in runs)


def physics() -> None:
    """A second derivative in the loss, clipping and an optimizer."""
    x = torch.randn(32, 2, requires_grad=True)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 1))

    def loss(model: Any, _: int) -> Any:
        u = model(x)
        (slope,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
        return ((slope - u) ** 2).mean()

    training(model, loss, lambda p: torch.optim.Adam(p, lr=0.01), clip=True)()


def test_a_step_of_training_is_the_same(runs: list[Run]) -> None:
    same(record(physics))
    assert max(len(run.steps) for run in runs) > 4


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_the_same(seed: int, runs: list[Run]) -> None:
    def program() -> None:
        for number in range(6):
            choose = random.Random(seed)  # the same steps each time
            made = [torch.randn(24, 16, requires_grad=True), torch.randn(24, 16), torch.randn(16), torch.randn(24, 1)]
            made[1] = made[1] * 1
            for _ in range(25):
                a, b = choose.choice(made), choose.choice(made)
                kind = choose.randrange(9)
                if kind < 4:
                    made.append((a * b, a + b, a - b * number, a / (b * b + 1))[kind])
                elif kind < 6:
                    made.append((torch.tanh(a), torch.relu(-a))[kind - 4])
                elif kind == 6 and a.dim() == 2:
                    made.append(a.t().contiguous().t())
                elif kind == 7 and a.dim() == 2:
                    made.append(a[:, :1] * b)
                elif not a.is_leaf and not a.requires_grad:
                    a.mul_(0.5)
            total = sum(t.sum() for t in made if t.requires_grad)
            total.backward()
            made[0].grad.tolist(), made[-1].tolist()

    same(record(program))
    assert runs


def polynomial() -> None:
    x = torch.randn(40, 30)

    def step(_: int) -> None:
        ((x * 2 + 1) * x - 3).tolist()

    repeated(step)()


def test_what_nobody_needs_has_no_memory(runs: list[Run]) -> None:
    same(record(polynomial))
    assert {(len(run.steps), len(run.kept)) for run in runs} == {(4, 1)}


def test_what_is_computed_twice_is_computed_once(runs: list[Run]) -> None:
    def program() -> None:
        x = torch.randn(40, 30)
        repeated(lambda _: (x * x + x * x).tolist())()

    same(record(program))
    assert {len(run.steps) for run in runs} == {2}


def test_what_is_needed_twice_has_two_memories(runs: list[Run]) -> None:
    def program() -> None:
        x = torch.randn(40, 30)

        def step(_: int) -> None:
            a, b = x * x, x * x
            a[0] = 7
            (a - b).tolist()

        repeated(step)()

    same(record(program))
    assert {run.kept for run in runs} == {(0, 1)}


def test_small_results_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    found = watch(monkeypatch)
    same(record(polynomial))
    assert not found
