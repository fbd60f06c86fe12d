"""Generates random programs. Torch runs along, so that a statement fits the shapes, dtypes and history it meets.

Most statements are valid; some are refused, by both libraries or by neither. Deliberate differences
(``docs/differences.md``) are not generated.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from weakref import WeakValueDictionary

import torch

from .predicates import (
    exact,
    fits,
    holds,
    in_order,
    into_itself,
    is_leaf_view,
    repeats,
    shape_of,
    shared,
    unclear,
    writable,
)
from .running import Program, Run

SHAPES = [(2, 3), (2, 3), (4,), (4,), (3, 4), (2, 2), (2, 3, 2), (1, 3), (4, 4), (), (0, 3)]
DTYPES = ["torch.float64"] * 6 + ["torch.float32"] * 2 + ["torch.complex128", "torch.int64"]
MODES = ["torch.no_grad()"] * 4 + ["torch.enable_grad()"] * 2 + [
    "torch.inference_mode()", "torch.set_grad_enabled(False)", "torch.inference_mode(False)",
    "torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x)",
    "torch.autograd.set_multithreading_enabled(False)",
]  # fmt: skip

MOST_TENSORS = 24
"""So many are enough to choose from: older ones are rarely used after that."""


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.torch = Run(torch)
        self.program = Program(seed, wait=self.draw.random() < 0.3)
        self.made = 0
        self.hooks = 0
        self.checkpointed: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()
        """By identity: what checkpoints returned, under whichever name."""

    def write(self) -> Program:
        for _ in range(self.draw.randint(1, 3)):
            self.add(self.leaf())
        for _ in range(self.draw.randint(5, 40)):
            if self.torch.half_done:
                break
            before = len(self.program.statements)
            text = self.statement()
            self.add(text)
            if any(holds(unclear, x) for x in self.torch.tensors().values()):
                del self.program.statements[before:]
                break
            if "create_graph=True" in text:
                self.cut(text)
        return self.program

    def cut(self, text: str) -> None:
        """Detach the gradients that torch keeps no graph of: gradwire may keep one that only zeros flow through."""
        for name, x in self.torch.tensors().items():
            if holds(lambda x: x.is_leaf or x.retains_grad, x) and x.grad is not None and not x.grad.requires_grad:
                copied = ".clone()" if x.grad.is_inference() else ""  # torch lets its detached form be written to
                self.add(f"{name}.grad = {name}.grad.detach(){copied}")
        for name in re.findall(r"\bt\d+", text.split("=")[0] if " = dense(" in text else ""):
            if name in self.torch.space and self.torch.space[name] is not None and not self.tensor(name).requires_grad:
                self.add(f"{name} = {name}.detach()")

    def add(self, text: str) -> None:
        self.torch.do(text)
        if not (self.torch.took_for_leaf(text) or self.torch.wrote_nevertheless):
            self.program.statements.append(text)
        if " = checkpoint(" in text and isinstance(made := self.torch.space.get(text.split(" = ")[0]), torch.Tensor):
            self.checkpointed[id(made)] = made

    # Choosing

    def name(self) -> str:
        self.made += 1
        return f"t{self.made}"

    def hook(self) -> str:
        self.hooks += 1
        return f"h{self.hooks}"

    def one(self, wanted: Callable[[torch.Tensor], bool] | None = None) -> str | None:
        """The name of a tensor, mostly a young one."""
        names = [n for n, t in self.torch.tensors().items() if wanted is None or holds(wanted, t)][-MOST_TENSORS:]
        if not names:
            return None
        if self.draw.random() < 0.4:
            return self.draw.choice(names[-4:])
        return self.draw.choice(names)

    def tensor(self, name: str) -> torch.Tensor:
        return self.torch.space[name]

    def goes_into(self, u: str, x: torch.Tensor) -> bool:
        """Whether a write of one tensor into another is compared."""
        return x.is_complex() or x.is_floating_point() or not self.tensor(u).is_complex()

    def in_order(self, target: str, operand: str) -> bool:
        """Whether what a write of the one expression into the other leaves depends on the order of elements, or whether
        it is a write with history into itself: its backward is refused by torch alone."""
        for mode in (nullcontext, torch.inference_mode):  # where views may be looked at that have lost their history
            try:
                with mode():
                    found = [eval(text, self.torch.space) for text in (target, operand)]  # noqa: S307 (written here)
            except Exception:
                continue
            return in_order(*found) or into_itself(*found)
        return False

    def partner(self, name: str) -> str:
        """Another tensor, mostly one that broadcasts with this one."""
        x = self.tensor(name)
        if self.draw.random() < 0.95:
            found = self.one(lambda y: y is not x and fits(y, x))
            if found is not None:
                return found
        return self.one() or name

    # Statements

    def statement(self) -> str:
        kinds = [
            (2, self.leaf), (6, self.result), (10, self.view), (10, self.write_in_place), (4, self.write_at),
            (4, self.backward), (3, self.grad), (3, self.hooking), (3, self.grad_attribute), (2, self.flags),
            (2, self.function), (2, self.cast), (1, self.out), (3, self.mode), (1, self.other), (3, self.several),
        ]  # fmt: skip
        while True:
            text = self.draw.choices([k for _, k in kinds], [w for w, _ in kinds])[0]()
            if text is not None:
                return text

    def leaf(self, grad: bool = True) -> str:
        shape = self.draw.choice(SHAPES)
        dtype = self.draw.choice(DTYPES)
        given = ", ".join([*map(str, shape), *([] if dtype == "torch.float64" else [f"dtype={dtype}"])])
        requires = ".requires_grad_()" if grad and dtype != "torch.int64" and self.draw.random() < 0.7 else ""
        return f"{self.name()} = numbers({given}){requires}"

    def result(self) -> str | None:
        t = self.one(lambda x: x.dtype is not torch.bool)
        if t is None:
            return None
        x = self.tensor(t)
        d = self.dim(x)
        options = [
            f"{t} * 0.5", f"{t} + 0.25", f"{t} * 2 - 1", f"-{t}", f"{t}.clone()", f"{t}.sin()", f"{t}.cos()",
            f"{t}.tanh()", f"{t}.sum({d})", f"{t}.sum()", f"{t}.mean()", f"{t}.cumsum({d})", f"{t} * {t}",
            f"2 / ({t} + 9)",
            f"{t} ** 2", f"torch.zeros_like({t})", f"{t}.sigmoid()", f"{t}.flip({d})",
            f"{t}.roll(1, {d})" if x.numel() else f"{t}.flip({d})",
            f"{t}.contiguous()", f"{t}.sum({d}, keepdim=True)", f"{t}.detach().clone()",
            f"{t}.new_ones(2)", f"{t} > 0.1", f"{t}.exp()",
        ]  # fmt: skip
        if x.is_floating_point():
            options += [f"{t}.softmax({d})", f"{t}.abs()"]
        if x.ndim:
            options += [f"{t}[{self.index(x)}]"] * 2
            options += (
                [f"{t}[torch.arange({x.shape[0]}) > 0].sum()"] if self.program.wait else []
            )  # how many is a value
        if self.draw.random() < 0.55:
            u = self.partner(t)
            options = [
                f"{t} + {u}", f"{t} * {u}", f"{t} - {u} * 0.5", f"torch.where({t} > 0, {t}, {u})", f"{u} * {t}.sin()",
                f"torch.cat([{t}, {u}], {d})", f"torch.stack([{t}, {u}])",
                f"torch.addcmul({t}, {u}, {u}, value=0.5)", f"{t}.expand_as({u})", f"torch.mul({t}, {u})",
                f"{t} / ({u} * {u} + 1)",
            ]  # fmt: skip
            if x.is_complex() != self.tensor(u).is_complex():  # torch's derivative refuses its own gradient then
                options.remove(f"torch.where({t} > 0, {t}, {u})")
            if x.is_floating_point():
                options.append(f"torch.lerp({t}, {u}, 0.25)")
        return f"{self.name()} = {self.draw.choice(options)}"

    def dim(self, x: torch.Tensor) -> int:
        if x.ndim == 0 or self.draw.random() < 0.02:
            return self.draw.choice((0, -1, 3))
        return self.draw.randrange(-x.ndim, x.ndim)

    def index(self, x: torch.Tensor, basic: bool = False) -> str:
        """What stands in brackets."""
        if x.ndim == 0:
            return self.draw.choice(["...", "None", "()"])
        parts = []
        for extent in x.shape[: self.draw.randint(1, x.ndim)]:
            options = [":", ":", "0" if extent else ":", "-1" if extent else ":", "1:", ":1", "::2", "1::2", ":-1"]
            if self.draw.random() < 0.05:
                options = ["None", "...", str(extent + 1)]
            parts.append(self.draw.choice(options))
        if not basic and self.draw.random() < 0.2 and x.shape[0]:
            parts[0] = self.draw.choice(["[0, -1]", "[0, 0]", "torch.tensor([0])"])
        if parts.count("...") > 1:
            return "..."
        return ", ".join(parts)

    def view_of(self, t: str) -> str:
        """An expression that is a view of a tensor, mostly."""
        x = self.tensor(t)
        d = self.dim(x)
        options = [
            f"{t}.detach()",
            f"{t}.view_as({t})",
            f"{t}.unsqueeze({d})",
            f"{t}.reshape(-1)",
            f"{t}[...]",
            f"{t}.view(-1)",
        ]
        if t in self.torch.accumulated():  # the strides of gradients are an implementation's choice
            options = [f"{t}.detach()", f"{t}.view_as({t})", f"{t}.unsqueeze({d})", f"{t}[...]"]
            return self.draw.choice([*options, *[f"{t}[{self.index(x, basic=True)}]" for _ in range(4)]])
        options += [f"{t}[{self.index(x, basic=True)}]" for _ in range(6)]
        if x.ndim:
            extent = x.shape[d] if -x.ndim <= d < x.ndim else 1
            options += [
                f"{t}.select({d}, {self.draw.randrange(max(extent, 1))})", f"{t}.narrow({d}, 0, {max(extent - 1, 1)})",
                f"{t}.squeeze()", f"{t}.movedim({d}, 0)",
                f"{t}.transpose({d}, 0)", f"{t}.swapaxes(0, {d})", f"torch.atleast_2d({t})",
            ]  # fmt: skip
            if extent == 1:
                options += [f"{t}.expand({', '.join('3' if i == d % x.ndim else '-1' for i in range(x.ndim))})"] * 3
            if extent % 2 == 0 and extent:
                options.append(f"{t}.unflatten({d}, (2, {extent // 2}))")
        if x.ndim >= 2:
            options += [
                f"{t}.mT", f"{t}.diagonal()", f"{t}.diagonal(1)",
                f"{t}.permute({', '.join(map(str, self.order(x.ndim)))})",
                f"{t}.flatten(0, 1)", f"{t}.flatten()", f"{t}.view({x.shape[0]}, -1)",
            ]  # fmt: skip
        if x.ndim == 2:
            options += [f"{t}.t()", f"{t}.T"]
        if x.numel() >= 4 and x.is_contiguous() and not x.is_complex():
            options += [f"{t}.as_strided((2, 2), (2, 1))", f"{t}.as_strided((3,), (1,), {x.storage_offset() + 1})"]
        if x.is_complex() and x.numel():  # torch's derivative refuses gradients that are empty and expanded
            options += [f"{t}.real", f"{t}.imag", f"torch.view_as_real({t})"] * 2
        elif (
            x.numel()
            and x.shape[-1:] == (2,)
            and x.storage_offset() % 2 == 0
            and x.dtype in (torch.float64, torch.float32)
        ):  # the strides of a tensor without elements decide whether torch refuses, and no values depend on them
            options += [f"torch.view_as_complex({t})"] * 2
        return self.draw.choice(options)

    def has_leaf_views(self) -> bool:
        """Whether there are views of leaves: for gradients of gradients they require grad in torch alone, where they
        were made before the leaf did."""
        return any(holds(is_leaf_view, x) for x in self.torch.tensors().values())

    def order(self, count: int) -> list[int]:
        return self.draw.sample(range(count), count)

    def view(self) -> str | None:
        t = self.one()
        if t is None:
            return None
        x = self.tensor(t)
        d = self.dim(x)
        if x.numel() and x.ndim and self.draw.random() < 0.03:
            return f"{self.name()} = {t}.unfold({d}, {min(2, max(x.shape))}, 1)"
        return f"{self.name()} = {self.view_of(t)}"

    def several(self) -> str | None:
        """Outputs of an op that has several."""
        t = self.one(lambda x: x.ndim > 0 and x.numel() > 0)
        if t is None:
            return None
        x = self.tensor(t)
        d = self.draw.randrange(x.ndim)
        extent = x.shape[d]
        options: list[tuple[str, int]] = [
            (f"{t}.unbind({d})", extent), (f"{t}.split(1, {d})", extent),
            (f"{t}.chunk(2, {d})", -(-extent // -(-extent // 2))),
            (f"torch.broadcast_tensors({t}, {t}[:1])", 2),
        ]  # fmt: skip
        if extent > 1:
            options += [(f"{t}.tensor_split(2, {d})", 2), (f"{t}.split([1, {extent - 1}], {d})", 2)]
        if not x.is_complex():
            options += [(f"{t}.sort(dim={d}, stable=True)", 2), (f"{t}.max({d})", 2)] if exact(x) else []
            options += [(f"torch.var_mean({t} * 1.0, {d}, correction=0)", 2)]
            options += [(f"torch.frexp({t} * 1.0)", 2)] if x.dtype.is_floating_point and exact(x) else []
        text, count = self.draw.choice(options)
        return f"{', '.join(self.name() for _ in range(count))}{',' if count == 1 else ''} = {text}"

    def write_in_place(self) -> str | None:
        t = self.one(writable)
        if t is None:
            return None
        x = self.tensor(t)
        if holds(lambda x: x.retains_grad and x.output_nr > 0, x):
            return None  # torch mixes up what is retained of the several results of one node
        target = t if self.draw.random() < 0.75 else self.view_of(t)
        floats = x.is_floating_point() or x.is_complex()  # else they may be the positions that a backward reads
        if self.draw.random() < 0.05 and floats:
            target = self.draw.choice([f"{t}.data", f"{t}.detach()"])
        options = [
            "mul_(0.5)", "add_(0.25)", "neg_()", "sin_()", "zero_()", "fill_(0.75)", "sigmoid_()", "tanh_()", "cos_()",
            "sub_(0.5)", "mul_(2)", f"masked_fill_({t} > 0, 0.5)", "square_()",
        ]  # fmt: skip
        if x.ndim and x.shape[0] and target == t:
            options += [
                "index_fill_(0, torch.tensor([0]), 0.5)", "cumsum_(-1)",
                f"index_add_(0, torch.tensor([0]), {t}[:1].detach().clone())",
            ]  # fmt: skip
        if self.draw.random() < 0.55:
            u = self.partner(t)
            if not self.goes_into(u, x):
                return None
            other = u if self.draw.random() < 0.7 else self.view_of(u)
            if self.in_order(target, other):
                return None
            options = [
                f"mul_({other})", f"add_({other})", f"copy_({other})", f"sub_({other}, alpha=0.5)",
                f"add_({other} * 0.5)",
                f"addcmul_({other}, {other})", f"copy_({other}.detach())", f"mul_({other}.sin())",
            ]  # fmt: skip
            if x.is_floating_point():
                options.append(f"lerp_({other}, 0.25)")
            if target == t and self.draw.random() < 0.3:
                return f"{t} {self.draw.choice(['+=', '*=', '-='])} {other}"
        wrote = f"{target}.{self.draw.choice(options)}"
        return f"{self.name()} = {wrote}" if self.draw.random() < 0.2 else wrote

    def write_at(self) -> str | None:
        t = self.one(writable)
        if t is None:
            return None
        x = self.tensor(t)
        at = f"{t}[{self.index(x)}]"
        u = self.partner(t)
        v = self.view_of(u)
        if not self.goes_into(u, x) or ((self.tensor(u).is_complex() or "as_complex" in v) and not x.is_complex()):
            return None  # torch fills with one complex number, and refuses it for its value
        positions = "[[" in at or "tensor" in at
        if positions and shared(x, self.tensor(u)):
            return None
        if any(self.in_order(at, o) or self.in_order(at, f"{o}.expand_as({at})") for o in (u, v)):
            return None
        mixed = x.is_complex() != self.tensor(u).is_complex()  # torch refuses the derivative of its own fill
        if mixed or not (x.is_floating_point() or x.is_complex()):  # torch lets integers have a history, which fails
            u, v = f"{u}.detach()", f"{v}.detach()"
        if not any(part.lstrip("-").isdigit() for part in at[:-1].replace("[", ", ").split(", ")):
            return self.draw.choice(
                [f"{at} = {v}", f"{at} *= 0.5", f"{at} += {v}"]
            )  # a number would fill with a tensor
        return self.draw.choice(
            [
                f"{at} = 0.75",
                f"{at} = {u}",
                f"{at} *= 0.5",
                f"{at} += {v}",
                f"{at} = {v}",
                f"{at} = {t}.sum()",
                f"{at} *= {v}",
            ]
        )

    def backward(self) -> str | None:
        t = self.one(lambda x: x.requires_grad)
        if t is None or self.draw.random() < 0.02:
            t = self.one()
        if t is None:
            return None
        options = []
        inputs = self.inputs()
        if self.draw.random() < 0.6:
            options.append("retain_graph=True")
        if self.draw.random() < 0.15 and not self.has_leaf_views():
            options.append("create_graph=True")
        if self.draw.random() < 0.3 and inputs:
            options.append(f"inputs=[{', '.join(inputs)}]")
        if self.draw.random() < 0.2:
            u = self.partner(t)
            roots = [t, u] if self.draw.random() < 0.5 else [t]
            seeds = ", ".join(self.draw.choice([f"torch.ones_like({r})", f"{r}.detach() * 2"]) for r in roots)
            arguments = [f"[{', '.join(roots)}]", f"[{seeds}]", *options]
            return f"torch.autograd.backward({', '.join(arguments)})"
        return f"{self.loss(t)}.backward({', '.join(options)})"

    def loss(self, t: str) -> str:
        x = self.tensor(t)
        if x.is_complex():
            return f"{t}.abs().sum()" if self.draw.random() < 0.1 else f"torch.view_as_real({t}).sin().sum()"
        if x.ndim == 0 and self.draw.random() < 0.5:
            return t
        return f"{t}.sum()" if self.draw.random() < 0.6 else f"({t} * {t}).sum()"

    def inputs(self) -> list[str]:
        """Tensors to differentiate with respect to: leaves, results, views."""
        found = []
        for _ in range(self.draw.randint(1, 3)):
            name = self.one(lambda x: x.requires_grad)
            if name is None or id(self.tensor(name)) in self.checkpointed:
                continue
            if name not in found or self.draw.random() < 0.1:
                found.append(name)  # a node that saved nothing runs in torch without the function being run again
        return found

    def grad(self) -> str | None:
        t = self.one(lambda x: x.requires_grad and not x.is_leaf)
        if t is None:
            return None
        inputs = self.inputs()
        if not inputs:
            return None
        options = [f"[{', '.join(inputs)}]"]
        root = self.loss(t)
        if self.draw.random() < 0.2:
            root = t
            options.append(f"torch.ones_like({t})")
        options += [
            o for o, share in [("allow_unused=True", 0.8), ("retain_graph=True", 0.6), ("create_graph=True", 0.3)]
            if self.draw.random() < share and not (o == "create_graph=True" and self.has_leaf_views())
        ]  # fmt: skip
        if self.draw.random() < 0.1:
            options.append("materialize_grads=True")
        names = ", ".join(self.name() for _ in inputs)
        return f"{names}{',' if len(inputs) == 1 else ''} = dense(torch.autograd.grad({root}, {', '.join(options)}))"

    def hooking(self) -> str | None:
        t = self.one(lambda x: x.requires_grad and (x.is_leaf or x.grad_fn is not None))
        if t is None:
            return None
        x, h = self.tensor(t), self.hook()
        options = [
            f'{h} = {t}.register_hook(lambda g: note("{h}", g))', f'{h} = {t}.register_hook(lambda g: halve("{h}", g))',
            *[f"{t}.retain_grad()"] * 2,
        ]  # fmt: skip
        if x.is_leaf:
            options.append(f'{h} = {t}.register_post_accumulate_grad_hook(lambda p: note("{h}", p.grad))')
        else:
            options += [
                f'{h} = {t}.grad_fn.register_hook(lambda ins, outs: note("{h}", *outs[:1]))',
                f'{h} = {t}.grad_fn.register_prehook(lambda outs: note("{h}", *outs[:1]))',
            ]
        if self.hooks > 1:
            options.append(f"h{self.draw.randrange(1, self.hooks)}.remove()")
        # Torch crashes when a hook is put on a view whose history it has yet to make.
        return f"{t}.grad_fn\n{self.draw.choice(options)}"

    def grad_attribute(self) -> str | None:
        # The strides of a gradient that a strided result retains are an implementation's choice.
        t = self.one(lambda x: x.requires_grad and (x.is_leaf or (x.retains_grad and x.is_contiguous())))
        if t is None:
            return None
        x = self.tensor(t)
        g = f"g{self.made + 1}"
        options = [f"{g} = {t}.grad", f"{t}.grad = None", f"{t}.grad = numbers({shape_of(x)}dtype={x.dtype})"]
        if x.grad is not None:
            options += [
                f"{g} = {t}.grad", f"{t}.grad.zero_()", f"{t}.grad.mul_(2)", f"{t}.grad = {t}.grad.clone()",
                f"{t}.grad.detach_()", f"{t}.grad = {t}.grad * 2", f"{self.name()} = {t}.grad * {t}",
            ]  # fmt: skip
        return self.draw.choice(options)

    def flags(self) -> str | None:
        t = self.one(lambda x: x._base is None and not x.retains_grad)
        if t is None:
            return None
        # Torch mixes up what a checkpoint saved of one that requires grad since, and runs a function again only for
        # nodes that saved something: it may not notice that an argument requires none any more.
        if any("checkpoint(" in text and t in re.findall(r"\bt\d+", text) for text in self.program.statements):
            return None
        x = self.tensor(t)
        flags = ["detach_()", "requires_grad_()", "requires_grad = True"]
        if not any(y._base is x for y in self.torch.tensors().values()):
            flags.append("requires_grad_(False)")
        return f"{t}.{self.draw.choice(flags)}"

    def function(self) -> str | None:
        t = self.one(lambda x: x.is_floating_point() or x.is_complex())
        if t is None:
            return None
        x, u = self.tensor(t), self.partner(t)
        if x.dtype != self.tensor(u).dtype:
            return None
        fn = self.draw.choice(
            [
                f"lambda a, b: (a * b).sin(), {t}, {u}",
                f"lambda a: a.tanh() * 2, {t}",
                f"lambda a: a.cumsum(0).sin(), {t}",
            ]
        )
        changed = t if x._base is None and not x.retains_grad and writable(x) else f"{t} * 2"
        return self.draw.choice([
            f"{self.name()}, {self.name()} = Scaled.apply({t}, {u})",
            f"{self.name()}, {self.name()} = Unfilled.apply({t})",
            f"{self.name()} = Doubled.apply({t} * 1)",
            f"{self.name()} = Doubled.apply({changed})",
            f"{self.name()}, {self.name()} = Split.apply({t})", f"{self.name()} = Kept.apply({t})",
            f"{self.name()} = Broken.apply({t})", f"{self.name()} = checkpoint({fn}, use_reentrant=False)",
            f"{self.name()} = checkpoint({fn}, use_reentrant={self.draw.random() < 0.4})",
        ])  # fmt: skip

    def cast(self) -> str | None:
        t = self.one()
        if t is None:
            return None
        x = self.tensor(t)
        options = ["double()", "float()", "to(torch.complex64)", "to(torch.float64)", "to(torch.float64, copy=True)"]
        if x.is_complex():
            options = ["to(torch.complex64)", "to(torch.complex128)"]
            if not x.is_inference():  # torch saves it by the way of out=
                options.append("abs()")
        elif self.draw.random() < 0.2:
            # A gradient that is zero on paper may be 1e-17 in one of the two, which is True.
            rounded = "round(decimals=5)." if x.is_floating_point() else ""
            options = [f"{rounded}{cast}" for cast in ("long()", "bool()", "to(torch.int32)")]
        return f"{self.name()} = {t}.{self.draw.choice(options)}"

    def out(self) -> str | None:
        t = self.one()
        if t is None:
            return None
        u = self.partner(t)
        same = (
            torch.broadcast_shapes(self.tensor(t).shape, self.tensor(u).shape)
            if fits(self.tensor(t), self.tensor(u))
            else ()
        )
        taken = (self.tensor(t), self.tensor(u))
        into = self.one(
            lambda x: (
                x.shape == same
                and not x.is_inference()
                and not x.requires_grad
                and not repeats(x)
                and not any(in_order(x, y) for y in taken)
            )
        )
        if into is None:
            return None
        options = [f"torch.{op}({t}, {u}, out={into})" for op in ("add", "mul", "sub")]
        if self.tensor(t).shape == same:  # else it changes the shape, of what may be a gradient
            options.append(f"torch.sin({t}, out={into})")
        return self.draw.choice(options)

    def mode(self) -> str | None:
        modes = [self.draw.choice(MODES) for _ in range(self.draw.choice((1, 1, 1, 2, 3)))]
        body = []
        for _ in range(self.draw.choice((1, 1, 2, 3))):
            kinds = [self.view, self.write_in_place, self.result, self.several, self.write_at,
                     lambda: self.leaf(grad=False), self.backward, self.grad,
                     self.cast, self.flags, self.function, self.out, self.hooking]  # fmt: skip
            text = self.draw.choices(kinds, [4, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1])[0]()
            if text is not None:
                body.append(textwrap.indent(text, "    "))
        return "\n".join([f"with {', '.join(modes)}:", *body]) if body else None

    def other(self) -> str | None:
        t = self.one()
        if t is None:
            return None
        return self.draw.choice([f"del {t}", f"{self.name()} = {t}", f"{t} = {t}.sin()", f"{t} = {self.view_of(t)}"])


def written(seed: int) -> Program:
    """The program of a seed."""
    return Writer(seed).write()
