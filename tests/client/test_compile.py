"""A compiled function has the effects of the function: values, gradients, histories, versions and errors."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest

import gradwire as torch
from gradwire import nn, optim
from gradwire._core.tensor.tensor import Tensor
from gradwire.nn import functional as F

CALLS = 6


def history(tensor):
    """The names of the nodes behind a tensor, and how they hang together."""
    found, seen, todo = [], {}, [tensor.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen[node] = len(seen)
        nexts = [n for n, _ in node.next_functions]
        found.append((node.name(), [(None if n is None else n.name(), slot) for n, slot in node.next_functions]))
        todo += nexts
    return found


def seen(value):
    """All that a program can see of what a function returned."""
    if isinstance(value, Tensor):
        return (
            value.detach().tolist(), str(value.dtype), tuple(value.shape), value.requires_grad, value.is_leaf,
            value._version, value._is_view(), value.output_nr, history(value),
            None if not value.is_leaf or value.grad is None else value.grad.tolist(),
        )  # fmt: skip
    if isinstance(value, dict):
        return {k: seen(v) for k, v in value.items()}
    return [seen(v) for v in value] if isinstance(value, (list, tuple)) else value


def small_model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(0.3), nn.Linear(7, 3))


def batch(i=0):
    rng = np.random.default_rng(i)
    return torch.tensor(rng.standard_normal((4, 5)).astype(np.float32)), torch.tensor(rng.integers(0, 3, 4))


def training(optimizer, order="zero first", clip=False, norm=False, **options):
    def make():
        model = small_model()
        if norm:
            model.append(nn.BatchNorm1d(3))
        opt = optimizer(model.parameters(), **options)

        def step(x, y):
            if order == "zero first":
                opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            opt.step()
            if order == "zero last":
                opt.zero_grad()
            return loss

        def watched():
            kept = [list(opt.state[p].items()) for p in model.parameters()]
            return [*model.parameters(), *model.buffers(), *kept]

        return step, lambda i: batch(i), watched, opt

    return make


def forward_only():
    model = small_model()
    return (lambda x: model(x)), lambda i: batch(i)[:1], lambda: list(model.parameters()), None


def several_results():
    w = torch.linspace(-1, 1, 20).reshape(5, 4).requires_grad_()

    def f(x):
        h = x @ w
        a, b = h.split(2, dim=1)
        return {"sum": (a * b).sum(), "both": [a, h.view(-1), 3, None], "x": x}, w

    return f, lambda i: batch(i)[:1], lambda: [w], None


def writes_a_buffer():
    count = torch.zeros(3)

    def f(x):
        with torch.no_grad():
            count.add_(x.sum())
            count[1] = 2.0
        return count * 2

    return f, lambda i: batch(i)[:1], lambda: [count], None


def accumulates():
    model = small_model()

    def f(x, y):
        for part in range(2):
            F.cross_entropy(model(x[part * 2 : part * 2 + 2]), y[part * 2 : part * 2 + 2]).backward()

    return f, batch, lambda: list(model.parameters()), None


def keeps_a_state():
    cell = nn.RNNCell(5, 4)

    class Runner:
        def __init__(self):
            self.h = torch.zeros(4, 4)

        def __call__(self, x):
            self.h = cell(x, self.h).detach()
            return self.h.sum()

    runner = Runner()
    with torch.no_grad():
        for p in cell.parameters():
            p.fill_(0.1)
    return runner, lambda i: batch(i)[:1], lambda: [runner.h, *cell.parameters()], None


def draws():
    torch.manual_seed(11)
    return (lambda x: x + torch.randn(4, 5)), lambda i: batch(i)[:1], list, None


def second_order():
    w = torch.linspace(-1, 1, 5).requires_grad_()

    def f(x):
        y = ((x * w).sum(1) ** 3).sum()
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        return (g * g).sum()

    return f, lambda i: batch(i)[:1], lambda: [w], None


def makes_constants():
    return (lambda x: (x * torch.tensor([1.0, 2, 3, 4, 5]), torch.arange(3))), lambda i: batch(i)[:1], list, None


PROGRAMS = {
    "sgd": training(optim.SGD, lr=0.1),
    "sgd with momentum": training(optim.SGD, lr=0.1, momentum=0.9),
    "adam": training(optim.Adam, lr=0.01),
    "adamw, gradients cleared last": training(optim.AdamW, "zero last", lr=0.01),
    "rmsprop, clipped": training(optim.RMSprop, clip=True, lr=0.01),
    "nadam": training(optim.NAdam, lr=0.01),
    "batch norm": training(optim.SGD, norm=True, lr=0.1),
    "no clearing": training(optim.SGD, "never", lr=0.1),
    "forward": forward_only,
    "several results": several_results,
    "buffer": writes_a_buffer,
    "accumulation": accumulates,
    "state": keeps_a_state,
    "random": draws,
    "second order": second_order,
    "constants": makes_constants,
}


def run(make, compiled):
    torch.manual_seed(5)
    function, arguments, watched, opt = make()
    if compiled:
        function = torch.compile(function)
    found = []
    torch.manual_seed(7)
    for i in range(CALLS):
        if opt is not None:
            opt.param_groups[0]["lr"] = 0.05 / (i + 1)
        result = function(*arguments(i))
        found.append((seen(result), seen(watched())))
    return found, function


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_function_does_what_the_function_does(name, session):
    plain, _ = run(PROGRAMS[name], False)
    found, function = run(PROGRAMS[name], True)
    assert found == plain
    assert function.stats()["replayed"] >= CALLS - 3, function.explain()


OPERATIONS = [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: (a @ b.t()).sum(1, keepdim=True) + a, lambda a, b: a.tanh(),
    lambda a, b: torch.where(a > b, a, b), lambda a, b: a.t().reshape(4, 5), lambda a, b: a.clone().mul_(0.5),
    lambda a, b: a[1:].sum(0) + b, lambda a, b: a.detach() - b, lambda a, b: torch.cat([a, b])[::2],
    lambda a, b: a.softmax(1), lambda a, b: F.dropout(a, 0.5) + b,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_a_random_program_does_the_same_compiled(seed, session):
    choice = random.Random(seed)
    plan = [(choice.randrange(len(OPERATIONS)), choice.random(), choice.random()) for _ in range(9)]
    ends = choice.choice(["backward", "grad", "forward"])

    def make():
        w = torch.linspace(-1, 1, 20).reshape(4, 5).requires_grad_()
        v = torch.linspace(1, 2, 20).reshape(4, 5).requires_grad_()

        def f(x):
            values = [x, w, v]
            for op, a, b in plan:
                values.append(OPERATIONS[op](values[int(a * len(values))], values[int(b * len(values))]))
            y = (values[-1] * w).sum() + (values[-2] * v).mean()
            if ends == "backward":
                y.backward()
            if ends == "grad":
                return torch.autograd.grad(y, [w, v], retain_graph=True), y, values[-1]
            return y, values[-3]

        return f, lambda i: batch(i)[:1], lambda: [w, v], None

    plain, _ = run(make, False)
    found, function = run(make, True)
    assert found == plain
    assert function.stats()["replayed"] >= CALLS - 3, function.explain()


def test_a_replayed_step_records_nothing_and_waits_for_nothing(session, round_trips, monkeypatch):
    step, arguments, _, _ = training(optim.SGD, lr=0.1)()
    step = torch.compile(step)
    data = arguments(0)
    for _ in range(3):
        step(*data)
    session.synchronize()
    round_trips()
    from gradwire._core.compiling import variant

    monkeypatch.setattr(step, "_function", None)
    frames = session.frames
    for _ in range(4):
        loss = step(*data)
    assert session.frames == frames + 4
    assert round_trips() == 0
    assert variant.MISS is not loss
    loss.item()
    assert round_trips() == 1


def test_gradients_flow_on_through_a_compiled_forward(session):
    model, plain = small_model(), small_model()
    model.eval(), plain.eval()
    compiled = torch.compile(model)
    for i in range(4):
        x, y = batch(i)
        F.cross_entropy(compiled(x), y).backward()
        F.cross_entropy(plain(x), y).backward()
    assert [p.grad.tolist() for p in model.parameters()] == [p.grad.tolist() for p in plain.parameters()]
    assert compiled.stats()["replayed"] >= 2
    assert [n for n, _ in compiled.named_parameters()] == ["_orig_mod." + n for n, _ in model.named_parameters()]


def test_a_graph_that_was_replayed_is_freed_like_any_other(session):
    w = torch.ones(3, requires_grad=True)
    f = torch.compile(lambda x: (x * w).exp().sum())
    x = torch.ones(3)
    for _ in range(3):
        y = f(x)
    y.backward()
    with pytest.raises(torch.errors.GraphError if hasattr(torch, "errors") else RuntimeError, match="freed"):
        y.backward()


def test_a_replayed_graph_notices_a_write_to_what_it_kept(session):
    w = torch.ones(3, requires_grad=True)
    f = torch.compile(lambda x: (x * w).sum())
    x = torch.ones(3)
    for _ in range(3):
        y = f(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="changed it in place"):
        y.backward()


CHANGES = {
    "training": lambda m, o: m.eval(),
    "a layer's option": lambda m, o: setattr(m[2], "p", 0.0),
    "a frozen parameter": lambda m, o: m[0].weight.requires_grad_(False),
    "another layer": lambda m, o: m.__setitem__(1, nn.ReLU()),
    "no gradient": lambda m, o: setattr(m[0].weight, "grad", None),
    "momentum": lambda m, o: o.param_groups[0].update(momentum=0.5),
    "weight decay": lambda m, o: o.param_groups[0].update(weight_decay=0.1),
    "rate": lambda m, o: o.param_groups[0].update(lr=0.5),
    "hook": lambda m, o: m[0].register_forward_hook(lambda *_: None),
    "other memory": lambda m, o: setattr(m[0].weight, "data", torch.zeros(7, 5)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_between_calls_is_noticed(name, session):
    outcomes = []
    for compiled in (False, True):
        torch.manual_seed(5)
        model = small_model()
        opt = optim.SGD(model.parameters(), lr=0.1)

        def step(x, y, model=model, opt=opt):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            return loss

        function = torch.compile(step) if compiled else step
        found = []
        for i in range(7):
            if i == 4:
                CHANGES[name](model, opt)
            found.append(seen(function(*batch(i))))
        outcomes.append((found, seen(list(model.parameters()))))
    assert outcomes[0] == outcomes[1]
    assert function.stats()["replayed"] >= 2


def test_globals_and_closures_are_looked_at_each_time(session):
    factor = [2.0]
    f = torch.compile(lambda x: (x * factor[0]).sum())
    x = torch.ones(3)
    assert [f(x).item() for _ in range(3)] == [6, 6, 6]
    factor[0] = 5.0
    assert [f(x).item() for _ in range(3)] == [15, 15, 15]
    factor[0] = 2.0
    assert f(x).item() == 6
    assert f.stats()["variants"] == 2


def test_numbers_shapes_dtypes_and_modes_are_kinds_of_calls(session):
    f = torch.compile(lambda x, n=1: x.float() * n)
    calls = [(torch.ones(3), 1), (torch.ones(3), 2), (torch.ones(4), 1), (torch.ones(3, dtype=torch.float64), 1),
             (torch.ones(3, requires_grad=True), 1), (torch.ones(3), 1.0), (torch.ones(3), True)]  # fmt: skip
    for _ in range(2):
        for x, n in calls:
            found = f(x, n)
            assert found.tolist() == [float(n)] * len(x)
            assert found.requires_grad == x.requires_grad
    assert f.stats()["recorded"] == len(calls)
    assert f.stats()["replayed"] == len(calls)
    with torch.no_grad():
        assert not f(torch.ones(3, requires_grad=True), 1).requires_grad


def test_the_number_of_kinds_is_bounded(session):
    f = torch.compile(lambda x, n: x * n, recompile_limit=3)
    x = torch.ones(2)
    assert [f(x, float(n)).tolist() for n in range(9)] == [[n, n] for n in range(9)]
    assert f.stats()["variants"] == 3
    assert "recompile_limit" in f.explain()


def test_arguments_that_are_one_tensor_are_not_two(session):
    f = torch.compile(lambda a, b: (a.add_(1), b * 1)[1])
    for _ in range(2):
        x, y = torch.zeros(2), torch.zeros(2)
        assert f(x, y).tolist() == [0, 0]
        assert f(x, x).tolist() == [2, 2]
        assert x._version == 2
        base = torch.zeros(3)
        assert f(base[:2], base[1:]).tolist() == [1, 0]
        assert base._version == 1


def test_an_error_in_the_body_is_raised_and_not_replayed(session):
    f = torch.compile(lambda a, b: a @ b)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            f(torch.ones(2, 3), torch.ones(2, 3))
    assert f(torch.ones(2, 3), torch.ones(3, 2)).shape == (2, 2)


def test_an_error_on_the_server_names_the_line_of_the_body(session):
    def f(x):
        return torch.linalg.inv(x)  # the line

    compiled = torch.compile(f)
    for _ in range(2):
        compiled(torch.eye(2)).sum().item()
    with pytest.raises(RuntimeError) as caught:
        compiled(torch.zeros(2, 2)).sum().item()
    assert f"test_compile.py:{f.__code__.co_firstlineno + 1}" in str(caught.value)
    assert compiled(torch.eye(2)).sum().item() == 2


def test_dropped_results_are_released_on_the_server(session):
    step = torch.compile(lambda x: (x * 2, x + 1)[0])
    x = torch.ones(4)
    for _ in range(3):
        step(x)
    session.synchronize()
    before = session.describe()["contents"]["tensors"]
    for _ in range(50):
        step(x)
    session.synchronize()
    session.synchronize()
    assert session.describe()["contents"]["tensors"] <= before + 1


def test_neither_arguments_nor_results_are_kept_alive():
    step = torch.compile(lambda x: x * 2)
    seen = []
    for _ in range(3):
        x = torch.ones(4)
        seen += [weakref.ref(x), weakref.ref(step(x))]
        del x
    assert step.stats()["replayed"] == 2
    gc.collect()
    assert [ref() for ref in seen] == [None] * 6


def test_a_method_and_a_module_are_compiled_like_functions(session):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        @torch.compile
        def twice(self, x):
            return self.scale * x * 2

        def forward(self, x):
            return self.scale * x

    module = Scaled()
    compiled = torch.compile(module)
    x = torch.ones(2)
    for _ in range(3):
        assert module.twice(x).tolist() == [4, 4]
        assert compiled(x).tolist() == [2, 2]
    assert Scaled.twice.stats()["replayed"] == 2
    assert compiled.stats()["replayed"] == 2
    assert compiled.scale is module.scale
    other = Scaled()
    with torch.no_grad():
        other.scale.fill_(3)
    assert other.twice(x).tolist() == [6, 6]


@pytest.mark.parametrize(
    "options", [{"dynamic": True}, {"mode": "fastest"}, {"options": {"x": 1}}, {"recompile_limit": 0}]
)
def test_options_that_there_are_not_are_refused(options):
    with pytest.raises(ValueError):
        torch.compile(lambda x: x, **options)


def test_compile_can_be_switched_off():
    def function(x):
        return x * x.sum().item()

    assert torch.compile(function, disable=True) is function
    assert torch.compile(torch.compile(function)) is not None
    with pytest.raises(TypeError):
        torch.compile(3)


LOG = []


class Counted:
    _seen = 1.0

    def __call__(self, x):
        return x * self._seen


def test_what_a_class_a_module_or_a_tensor_carries_is_looked_at_each_time(session, monkeypatch):
    import os

    weight = torch.ones(3)
    weight.scale = 2.0
    counted = Counted()

    def f(x):
        from tests.client import test_compile as here

        return counted(x) * weight.scale * len(here.LOG) * (3.0 if os.environ.get("FACTOR") else 1.0)

    monkeypatch.setattr("tests.client.test_compile.LOG", [1])
    compiled = torch.compile(f)
    x = torch.ones(3)
    assert [compiled(x).tolist() for _ in range(3)] == [[2, 2, 2]] * 3
    assert compiled.stats()["replayed"] == 2, compiled.explain()
    monkeypatch.setattr(Counted, "_seen", 5.0)
    assert compiled(x).tolist() == [10, 10, 10]
    weight.scale = 1.0
    assert compiled(x).tolist() == [5, 5, 5]
    monkeypatch.setattr("tests.client.test_compile.LOG", [1, 2])
    assert compiled(x).tolist() == [10, 10, 10]
    monkeypatch.setenv("FACTOR", "yes")
    assert compiled(x).tolist() == [30, 30, 30]


def test_slots_are_not_trusted(session):
    class Slotted:
        __slots__ = ("factor",)

    held = Slotted()
    held.factor = 2.0
    compiled = torch.compile(lambda x: x * held.factor)
    found = []
    for factor in (2.0, 2.0, 2.0, 7.0):
        held.factor = factor
        found.append(compiled(torch.ones(1)).item())
    assert found == [2, 2, 2, 7]
    assert "slot" in compiled.explain()
