"""A program run under one library: errors and warnings of each statement, and the final state."""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch

import gradwire
from tests.side_by_side import built_in, differences, settle

from .predicates import memory_of

PRELUDE = '''
import copy
import math

from torch.utils.checkpoint import checkpoint

log = []


def note(name, *values):
    log.append([name, *(v.detach().clone().tolist() if isinstance(v, torch.Tensor) else v for v in values)])


def halve(name, g):
    note(name, g)
    return None if g is None else g * 0.5


def numbers(*shape, dtype=torch.float64):
    found = (torch.arange(float(math.prod(shape))) * 7 + 3) % 11 / 8 - 0.5
    return found.reshape(shape).to(dtype).clone()


def dense(gradients):
    """Gradients in memory of their own: their strides are an implementation's choice."""
    return tuple(None if g is None else g.clone(memory_format=torch.contiguous_format) for g in gradients)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + 1

    @staticmethod
    def backward(ctx, g, h):
        note("Scaled", g, h)
        x, y = ctx.saved_tensors
        return g * y + h, g * x


class Unfilled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x.sin(), x * 2

    @staticmethod
    def backward(ctx, g, h):
        note("Unfilled", g, h)
        return g if h is None else h if g is None else g + h


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        note("Doubled", g)
        return g * 2


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        sign = x > 0
        ctx.mark_non_differentiable(sign)
        return x * 3, sign

    @staticmethod
    def backward(ctx, g, _):
        note("Split", g)
        return g * 3


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("broken")

'''

HALF_DONE = (
    "modified by an inplace operation",
    "modified inplace",
    "second time",
    "to not have been used",
    "broken",
    "moved into the graph interior",
    "Inplace update to inference tensor",
    "different number of tensors was saved",
    "detached in-place",
    "is incompatible with .grad()",
)
DEFECTS = (
    "INTERNAL ASSERT", "Could this error message be improved", "ZeroTensors are immutable", "unallocated storage",
)  # fmt: skip
"""What torch says where it meets a defect of its own."""
OVERLAPS = "to a single memory location"
"""What torch says of an operand that lies where an operation writes; gradwire's server finds out after the line."""
PASSED_OVER = (DeprecationWarning, ResourceWarning)
LAYOUT = "gradient layout contract"
"""What torch says once in a process, of a gradient that lies otherwise in memory than its leaf. It costs time alone."""


class Run:
    """A program under way in one library.

    Attributes:
        space: its names.
        steps: of each statement, the built-in class of what it raised and the classes of its warnings.
        of_inference: the names of what was made of tensors of inference mode. How often an operation writes to its own
            result is counted there, and nowhere else.
        confused: whether torch met a defect of its own when it was asked for a history. A second look finds none.
    """

    def __init__(self, lib: Any) -> None:
        import_module(f"{lib.__name__}.utils.checkpoint")
        self.lib = lib
        self.space: dict[str, Any] = {"torch": lib}
        text = PRELUDE.replace("from torch.", f"from {lib.__name__}.")
        exec(compile(text, "<prelude>", "exec"), self.space)  # noqa: S102 (the text above)
        self.helpers = set(self.space)
        self.steps: list[list[Any]] = []
        self.error: BaseException | None = None
        self.of_inference: set[str] = set()
        self.confused = False
        self._accumulated: set[str] = set()

    def do(self, statement: str, wait: bool = False) -> None:
        """Run one statement. With ``wait``, gradwire has computed it before the next one."""
        raised, self.error = None, None
        if self.lib is torch:
            self._share([t for n, t in self.tensors().items() if n.startswith("g")])
        mentioned = set(re.findall(r"\bt\d+", statement))
        if any(t.is_inference() for n, t in self.tensors().items() if n in mentioned) or mentioned & self.of_inference:
            self.of_inference |= mentioned
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(compile(statement, "<program>", "exec"), self.space)  # noqa: S102 (written by our own generator)
                if wait and self.lib is gradwire:
                    settle()
            except Exception as error:
                raised, self.error = built_in(error), error.with_traceback(None)
        if raised is not None:  # by then torch may have renewed the history of an operand
            for name in mentioned & set(self.tensors()):
                self.confused |= confusing(self.space[name])
        told = {
            w.category.__name__ for w in caught
            if not issubclass(w.category, PASSED_OVER) and LAYOUT not in str(w.message)
        }  # fmt: skip
        self.steps.append([raised, *sorted(told)])

    @property
    def half_done(self) -> bool:
        """Whether torch gave up the last statement in the middle of a backward; gradwire looks before it begins."""
        return any(text in str(self.error) for text in HALF_DONE)

    @property
    def wrote_nevertheless(self) -> bool:
        """Whether torch refused a write that it had done by then; gradwire refuses before it writes."""
        return "Inplace update to inference tensor" in str(self.error)

    def finish(self) -> None:
        """Let the last statement raise what only the server knew."""
        try:
            settle()
        except Exception as error:
            if self.steps[-1][0] is None:
                self.steps[-1][0] = built_in(error)

    def took_for_leaf(self, statement: str) -> bool:
        """Whether torch has just taken a stale view of a former constant for a leaf; gradwire writes to it."""
        named = self.tensors()
        written = [named[name] for name in written_to(statement) if name in named]
        return "a leaf Variable that requires grad" in str(self.error) and not any(
            not stale(x) and x.is_leaf and x.requires_grad and x._base is None for x in written
        )

    def tensors(self) -> dict[str, Any]:
        """The tensors that have a name."""
        return {n: v for n, v in self.space.items() if n not in self.helpers and isinstance(v, self.lib.Tensor)}

    def look(self, gradients: bool, accumulated: set[str], of_inference: set[str]) -> dict[str, Any]:
        """All that can be seen; without the gradients, their memory and what hooks were told, where these may differ.

        ``accumulated`` names the tensors in the memory of a gradient: libraries accumulate there in different ways, so
        their versions and strides are not compared. Nor are those of what was made of tensors of inference mode, and
        the names of nodes there: torch composes some operations otherwise then.
        """
        named = self.tensors()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layout_differs = accumulated | of_inference
            shown = {n: t for n, t in named.items() if gradients or n not in layout_differs}
            found: dict[str, Any] = {n: self._seen(t, named, n not in layout_differs) for n, t in shown.items()}
            for n in shown.keys() & of_inference:
                found[n]["grad_fn"] = found[n]["grad_fn"] is not None
            for n, t in named.items():
                base = t._base if n not in layout_differs else None
                found[f"{n}._base"] = None if base is None else next((m for m, o in named.items() if o is base), "?")
            if gradients:
                found |= {f"{n}.grad": self._gradient(t, named) for n, t in named.items() if not stale(t)}
                found["log"] = self.space["log"]
        return found

    def _seen(self, t: Any, named: dict[str, Any], whole: bool) -> Any:
        found: dict[str, Any] = {}
        for what in LOOKS:
            if not whole and what in ("_version", "stride"):
                continue
            try:
                found[what] = LOOKS[what](t)
            except Exception as error:
                found[what] = {"raised": built_in(error)}
        return found

    def _gradient(self, t: Any, named: dict[str, Any]) -> Any:
        try:
            grad = t.grad
        except Exception as error:
            return {"raised": built_in(error)}
        if grad is None:
            return None
        return {**self._seen(grad, named, False), "is": next((n for n, o in named.items() if o is grad), "?")}

    def accumulated(self) -> set[str]:
        """The names of tensors in memory that is a gradient's, or was by now; only torch can tell."""
        named = self.tensors()
        grads = [t for n, t in named.items() if n.startswith("g")]
        grads += [t.grad for t in named.values() if not stale(t) and t.is_leaf and t.grad is not None]
        self._share(grads)
        return self._accumulated

    def _share(self, grads: list[Any]) -> None:
        """Note which tensors lie in the memory of these gradients. No history is looked at: that would renew it."""
        named = self.tensors()
        former = [named[n] for n in self._accumulated if n in named]
        memory = {memory_of(g) for g in (*grads, *former)}
        self._accumulated |= {n for n, t in named.items() if memory_of(t) in memory}


def written_to(statement: str) -> set[str]:
    """The names of what a statement writes to in place, or through a view."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(statement)):
        places: list[ast.expr] = []
        if isinstance(node, ast.AugAssign):
            places = [node.target]
        elif isinstance(node, ast.Assign):
            places = [place for place in node.targets if isinstance(place, ast.Subscript)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr.endswith("_"):
                places = [node.func.value]
            elif node.func.attr == "apply":  # of a Function, which may mark its arguments dirty
                places = node.args
        for place in places:
            found |= {named.id for named in ast.walk(place) if isinstance(named, ast.Name)}
    return found


def stale(t: Any) -> bool:
    """Whether a tensor refuses to tell its history."""
    try:
        t.grad_fn
    except RuntimeError:
        return True
    return False


def confusing(t: Any) -> bool:
    """Whether torch meets a defect of its own when it is asked for the history of a tensor."""
    try:
        t.grad_fn
    except RuntimeError as error:
        return "INTERNAL ASSERT" in str(error)
    return False


LOOKS: dict[str, Any] = {
    "dtype": lambda t: repr(t.dtype).removeprefix("gradwire.").removeprefix("torch."),
    "shape": lambda t: list(t.shape),
    "stride": lambda t: [s if n > 1 and t.numel() else None for n, s in zip(t.shape, t.stride(), strict=True)],
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "retains_grad": lambda t: t.retains_grad and not t.is_leaf,
    "grad_fn": lambda t: None if t.grad_fn is None else t.grad_fn.name(),
    "output_nr": lambda t: t.output_nr,
    "_version": lambda t: None if t.is_inference() else t._version,
    "is_inference": lambda t: t.is_inference(),
    "values": lambda t: t.detach().clone().tolist(),  # torch has zeros without memory, which only a copy shows
}


@dataclass
class Program:
    """What is run.

    Attributes:
        seed: of the generator.
        wait: whether gradwire computes each statement before the next, or all of them in the end.
    """

    seed: int
    statements: list[str] = field(default_factory=list)
    wait: bool = False


def disagreements(program: Program) -> list[str]:
    """Where the two libraries differ, one line each; by statement first."""
    expected, actual = Run(torch), Run(gradwire)
    for statement in program.statements:
        expected.do(statement)
        actual.do(statement, program.wait)
        if expected.took_for_leaf(statement) or any(text in str(expected.error) for text in DEFECTS):
            actual.finish()  # or the next program meets what this one left
            return []
        if expected.half_done or OVERLAPS in str(expected.error):
            actual.finish()
            break  # its gradients are those of the part that was done, and that part of the graph is freed
    with contextlib.suppress(gradwire.GradwireError):
        settle()
    found = [
        f"`{text}`: torch {e}, gradwire {a}"
        for text, e, a in zip(program.statements, expected.steps, actual.steps, strict=False)
        if e != a
    ]
    if expected.half_done and len(found) == 1 and expected.steps[-1] != actual.steps[-1]:
        known = "second time" in str(expected.error) or "checkpoint(" in "".join(program.statements)
        if known or actual.steps[-1][0] is not None:  # which of two errors comes first is another matter
            return []
    if OVERLAPS in str(expected.error):  # the server tells of it later, or has a value that no order decides
        return [line for line in found if not line.startswith(f"`{program.statements[len(expected.steps) - 1]}`")]
    if expected.confused or any(confusing(t) for t in expected.tensors().values()):
        return []
    for t in actual.tensors().values():
        stale(t)  # looking at a history may renew it, so both are looked at
    how = (not expected.half_done, expected.accumulated(), expected.of_inference)
    return found + list(differences(expected.look(*how), actual.look(*how), tolerance=1e-4))
