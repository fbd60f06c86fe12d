"""A second derivative whose graph saved a tensor that was changed since is refused on its line, as in PyTorch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch

import gradwire

Outcome = tuple[list[tuple[str, str]], list[Any]]
SEEDS: Final = range(8)
PROGRAMS_PER_SEED: Final = 15

OPS: Final[dict[str, Callable[[Any, Any, Any], Any]]] = {
    **{
        name: lambda lib, x, w, name=name: getattr(x, name)()
        for name in "sin exp tanh sigmoid log sqrt relu square reciprocal abs neg cos mean var atan log1p erf "
        "std sinh".split()
    },
    "softmax": lambda lib, x, w: x.softmax(-1), "log_softmax": lambda lib, x, w: x.log_softmax(0),
    "logsumexp": lambda lib, x, w: x.logsumexp(0), "cumsum": lambda lib, x, w: x.cumsum(0),
    "sum": lambda lib, x, w: x.sum(0) * w.sum(0), "norm": lambda lib, x, w: x.norm() * w,
    "prod": lambda lib, x, w: x.prod(0), "t": lambda lib, x, w: x.t() * w,
    "expand": lambda lib, x, w: x[:1].expand(2, 2) * w, "cube": lambda lib, x, w: x**3,
    "pow": lambda lib, x, w: x**w, "div": lambda lib, x, w: x / w, "mul": lambda lib, x, w: x * w,
    "add": lambda lib, x, w: x + w, "mm": lambda lib, x, w: x @ w, "mv": lambda lib, x, w: x @ w[0],
    "where": lambda lib, x, w: lib.where(x > 0.5, x * x, x * w), "clamp": lambda lib, x, w: x.clamp(0.2, 1),
    "gelu": lambda lib, x, w: lib.nn.functional.gelu(x), "silu": lambda lib, x, w: lib.nn.functional.silu(x),
    "linear": lambda lib, x, w: lib.nn.functional.linear(x, w), "select": lambda lib, x, w: x[0] * w[1],
    "view": lambda lib, x, w: x.reshape(-1) * w.reshape(4), "maximum": lambda lib, x, w: lib.maximum(x, w),
    "cat": lambda lib, x, w: lib.cat([x, w]) ** 2,
}  # fmt: skip


class Program:
    """One random program: a gradient with a history, a write, and derivatives of the gradient."""

    def __init__(self, lib: Any, seed: int) -> None:
        self.lib = lib
        self.draw = random.Random(seed)
        self.done: list[tuple[str, str]] = []
        self.values: list[Any] = []

    def tell(self, statement: str, action: Callable[[], Any]) -> Any:
        """Run a statement; whether it raised is noted, and what class of PyTorch's it raised."""
        try:
            found = action()
            self.done.append((statement, "done"))
        except RuntimeError:
            self.done.append((statement, "RuntimeError"))
            return None
        return found

    def operands(self) -> tuple[Any, Any, Any]:
        x, w, go = (
            self.lib.tensor([[self.draw.uniform(0.1, 1) for _ in range(2)] for _ in range(2)], requires_grad=True)
            for _ in range(3)
        )
        if self.draw.random() < 0.5:
            go = go.detach()
        return x, (w.detach() if self.draw.random() < 0.3 else w), go

    def run(self) -> Outcome:
        draw, lib = self.draw, self.lib
        x, w, go = self.operands()
        start = x * 1 if draw.random() < 0.5 else x
        factor = w * 1 if draw.random() < 0.3 else w
        y, middle = start, None
        for _ in range(draw.randint(1, 3)):
            y = OPS[draw.choice(list(OPS))](lib, y, factor)
            if tuple(y.shape) != (2, 2):
                y = y.sum() + x * factor
            middle = y if middle is None else middle
        inputs = draw.choice([[x], [x, w] if w.requires_grad else [x], [start]])
        root, given = (y, go) if draw.random() < 0.5 else (y.sum(), None)
        grads = self.tell("grad", lambda: lib.autograd.grad(root, inputs, given, create_graph=True, allow_unused=True))
        places = {"x": x, "w": w, "gradient": go, "start": start, "factor": factor, "middle": middle, "y": y}
        written = draw.choice(list(places))
        if draw.random() < 0.75:
            with lib.no_grad():
                self.tell(f"write {written}", lambda: places[written].mul_(1.5))
        recorded = [g for g in grads if g is not None and g.requires_grad]
        total = sum(((g * g).sum() for g in recorded), lib.zeros(()))
        if recorded:
            for _ in range(2):
                keep = draw.random() < 0.3
                found = self.tell(
                    "second", lambda keep=keep: lib.autograd.grad(total, x, retain_graph=keep, allow_unused=True)
                )
                if found is None:
                    break
                self.values.append(found[0])
        return self.done, [None if v is None else (v + 0).tolist() for v in self.values]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_are_refused_where_pytorch_refuses_them(session: Any, seed: int) -> None:
    for number in range(PROGRAMS_PER_SEED):
        told, expected = Program(torch, seed * 1000 + number).run()
        here, found = Program(gradwire, seed * 1000 + number).run()
        assert here == told, number
        for mine, torchs in zip(found, expected, strict=True):
            zeros = [[0.0, 0.0], [0.0, 0.0]]
            for row, its in zip(mine or zeros, torchs or zeros, strict=True):
                assert row == pytest.approx(its, rel=1e-3, abs=1e-3, nan_ok=True), number


def _cube(lib: Any) -> tuple[Any, Any]:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    return x, lib.autograd.grad((x**3).sum(), x, create_graph=True)[0]


def leaf_written(lib: Any) -> None:
    x, g = _cube(lib)
    with lib.no_grad():
        x.add_(1)
    g.sum().backward()


def result_written(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1
    (g,) = lib.autograd.grad((h.sin() + 0).sum(), x, create_graph=True)
    h.add_(1)
    g.sum().backward()


def freed(lib: Any) -> None:
    _, g = _cube(lib)
    total = g.sum()
    total.backward()
    total.backward()


def gradient_given_written(lib: Any) -> None:
    x, v = lib.tensor([1.0, 2.0], requires_grad=True), lib.ones(2)
    (g,) = lib.autograd.grad(x.exp(), x, v, create_graph=True)
    v.mul_(2)
    g.sum().backward()


def gradient_given_of_inference_mode(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with lib.inference_mode():
        v = lib.ones(2)
    lib.autograd.grad(x.exp(), x, v, create_graph=True)


def gradient_returned_written(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    h = x.exp()
    by_h, by_x = lib.autograd.grad((h**3).sum(), [h, x], create_graph=True)
    with lib.no_grad():
        by_h.mul_(2)
    by_x.sum().backward()


def grad_attribute_accumulated(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    total = x.grad.sum()
    with lib.no_grad():
        x.add_(1)
    total.backward()


def third_derivative(lib: Any) -> None:
    x, g = _cube(lib)
    (h,) = lib.autograd.grad((g * x.sin()).sum(), x, create_graph=True)
    with lib.no_grad():
        x.add_(1)
    h.sum().backward()


def transposed_weight(lib: Any) -> None:
    x, w = (lib.ones(2, 2, requires_grad=True) for _ in range(2))
    by_x, _ = lib.autograd.grad((x @ w).square().sum(), [x, w], create_graph=True)
    with lib.no_grad():
        w.add_(1)
    by_x.sum().backward()


def view_of_a_slice(lib: Any) -> None:
    x = lib.ones(2, 2, requires_grad=True)
    y = x.clone()
    y[0].mul_(x[1])
    (g,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    with lib.no_grad():
        x.add_(1)
    g.sum().backward()


def custom_function(lib: Any) -> None:
    class Cube(lib.autograd.Function):  # type: ignore[name-defined, misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    (g,) = lib.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    with lib.no_grad():
        x.add_(1)
    g.sum().backward()


def hooked(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    h = x * 2
    factor = lib.ones(2)
    h.register_hook(lambda g: factor)
    (g,) = lib.autograd.grad((h * x).sum(), x, create_graph=True)
    with lib.no_grad():
        h.add_(1)
    g.sum().backward()


def checkpointed(lib: Any) -> None:
    from importlib import import_module

    checkpoint = import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = checkpoint(lambda t: t**3, x * 1, use_reentrant=False)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    with lib.no_grad():
        x.add_(1)
    g.sum().backward()


PROGRAMS: Final = (
    leaf_written, result_written, freed, gradient_given_written, gradient_given_of_inference_mode,
    gradient_returned_written, grad_attribute_accumulated, third_derivative, transposed_weight, view_of_a_slice,
    custom_function, hooked, checkpointed,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_line_that_goes_through_it_raises(session: Any, program: Callable[[Any], None]) -> None:
    lines = []
    for lib in (torch, gradwire):
        try:
            program(lib)
            lines.append(None)
        except RuntimeError as error:
            at = error.__traceback__
            assert at is not None
            assert at.tb_next is not None
            lines.append(at.tb_next.tb_lineno)
    session.synchronize()
    assert lines[0] == lines[1]


def test_the_error_names_the_operand_and_the_write(session: Any) -> None:
    x, g = _cube(gradwire)
    with gradwire.no_grad():
        x.add_(1)
    total = g.sum()
    recorded = session.recorded
    with pytest.raises(RuntimeError, match=r"PowBackward0 .*'self'.*add_ changed it in place at .*clone"):
        total.backward()
    assert session.recorded == recorded
