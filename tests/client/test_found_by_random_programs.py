"""Differences that random programs found, reduced to a few lines each, under torch and gradwire."""

from __future__ import annotations

import itertools
import warnings
from contextlib import nullcontext
from importlib import import_module

import pytest
import torch
from tests.side_by_side import Claims, doubling, name_of, raises, same

import gradwire

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


def leaf(torch, *shape):
    return torch.ones(*(shape or (3,))).requires_grad_()


# A single root has hooks, and nothing that is wanted lies behind it


@claim
def hooks_of_a_root_run_wherever_it_leads(torch):
    log, other, t = [], leaf(torch), leaf(torch) * 2
    t.register_hook(lambda g: g * 5)
    t.retain_grad()
    t.register_hook(lambda g: log.append(g.tolist()))
    t.grad_fn.register_prehook(lambda grads: log.append("before the node"))
    t.grad_fn.register_hook(lambda *grads: log.append("after the node"))
    for create_graph in (False, True):
        ones = torch.ones_like(t)
        found = torch.autograd.grad(t, [other], ones, allow_unused=True, create_graph=create_graph)
        log += [found, t.grad.tolist()]
    t.sum().backward()
    return log


@claim
def a_root_retains_its_gradient_wherever_it_leads(torch):
    other, t = leaf(torch), leaf(torch) * 2
    t.retain_grad()
    found = torch.autograd.grad(t, [other], torch.ones_like(t), allow_unused=True)
    torch.autograd.backward(t, torch.ones_like(t) * 2, inputs=[other])
    return found, t.grad, other.grad


@claim
def hooks_of_a_leaf_run_where_it_is_the_root(torch):
    log, other, x = [], leaf(torch), leaf(torch)
    x.register_hook(lambda g: log.append(g.tolist()))
    x.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    torch.autograd.backward(x, torch.ones(3), inputs=[other])
    return log, x.grad, other.grad


@claim
def hooks_behind_a_root_and_of_one_of_two_roots_do_not(torch):
    log, x, y = [], leaf(torch), leaf(torch)
    t, u = x * 2, y * 3
    t.register_hook(lambda g: log.append("t"))
    u.register_hook(lambda g: log.append("u"))
    z = t.sum()
    z.register_hook(lambda g: log.append("z"))
    torch.autograd.grad(z, [y], allow_unused=True)
    torch.autograd.backward([t, u], [torch.ones(3)] * 2, inputs=[y])
    return log, x.grad, y.grad


# A leaf that left the graph


@pytest.mark.parametrize("leave", [lambda x: x.requires_grad_(False), lambda x: x.detach_()])
def test_hooks_of_a_leaf_that_left_the_graph_still_run(leave):
    def claimed(torch):
        log, x = [], leaf(torch)
        x.register_hook(lambda g: log.append(g.tolist()))
        y = (x * 2).sum()
        leave(x)
        y.backward(retain_graph=True)
        log.append(x.grad)
        x.requires_grad_()
        y.backward()
        return log, x.grad

    same(claimed)


@claim
def hooks_after_accumulation_run_for_a_leaf_that_left_the_graph(torch):
    log, x = [], leaf(torch)
    x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad))
    y = (x * 2).sum()
    x.detach_()
    y.backward()
    return log, x.grad


INTERIORS = {
    "written to": lambda torch, x, y: x.requires_grad_(False).copy_(y),
    "written to through a view": lambda torch, x, y: x.requires_grad_(False)[:].copy_(y),
    "multiplied": lambda torch, x, y: x.detach_().mul_(torch.zeros(3, requires_grad=True)),
    "written to with hooks": lambda torch, x, y: (x.register_hook(print), x.detach_().copy_(y)),
    "written to and shown again": lambda torch, x, y: x.detach_().copy_(y).detach_(),
}
BACKWARDS = {
    "of a sum": lambda torch, x, y: y.sum().backward(),
    "of two roots": lambda torch, x, y: torch.autograd.backward([y, y], [torch.ones(3)] * 2),
    "to an input": lambda torch, x, y: y.sum().backward(inputs=[y]),
    "that keeps its graph": lambda torch, x, y: y.sum().backward(retain_graph=True),
    "without accumulation": lambda torch, x, y: torch.autograd.grad(y.sum(), [y]),
    "from the former leaf": lambda torch, x, y: torch.autograd.backward(x, torch.ones(3)),
}


@pytest.mark.parametrize("through", BACKWARDS.values(), ids=BACKWARDS)
@pytest.mark.parametrize("write", INTERIORS.values(), ids=INTERIORS)
def test_no_gradient_arrives_at_a_leaf_that_was_given_a_history(write, through):
    def claimed(torch):
        x = leaf(torch)
        y = x * 2
        write(torch, x, y)
        found = raises(lambda: through(torch, x, y))
        return found, x.requires_grad, x.is_leaf, None if not x.is_leaf else x.grad

    same(claimed)


# Writes into views, once freed


WRITES = {
    "that kept nothing": lambda torch, x, y: y[:2].add_(x[:2]),
    "that kept something": lambda torch, x, y: y[:2].mul_(x[:2]),
    "of two": lambda torch, x, y: (y[:2].add_(x[:2]), y[1:].mul_(2)),
    "without operand": lambda torch, x, y: (y.add_(x), y[1:].neg_()),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_freed_write_into_a_view_is_not_gone_through_again(write):
    def claimed(torch):
        x, y = leaf(torch), torch.ones(3)
        write(torch, x, y)
        first = torch.autograd.grad(y.sum(), [x], retain_graph=True)
        second = torch.autograd.grad(y.sum(), [x])
        return first, second, raises(lambda: torch.autograd.grad(y.sum(), [x]))

    same(claimed)


# Custom functions that write in place


RETAINING = {
    "through the graph": lambda torch, x, t, r: (r * 5).sum().backward(),
    "to the tensor": lambda torch, x, t, r: (r * 5).sum().backward(inputs=[t]),
    "to both": lambda torch, x, t, r: (r * 5).sum().backward(inputs=[x, t]),
    "with a graph": lambda torch, x, t, r: (r * 5).sum().backward(create_graph=True),
    "without accumulation": lambda torch, x, t, r: torch.autograd.grad((r * 5).sum(), [t]),
}


@pytest.mark.parametrize("through", RETAINING.values(), ids=RETAINING)
@pytest.mark.parametrize(
    "written", [lambda t: t, lambda t: t[:2], lambda t: t.view(-1)], ids=["tensor", "part", "view"]
)
def test_a_retained_gradient_is_that_after_the_function(written, through):
    def claimed(torch):
        function = doubling(torch)
        found = []
        for after in (lambda t: t, lambda t: t.retain_grad(), lambda t: t.mul_(3)):
            x = leaf(torch)
            t = written(x * 3)
            t.retain_grad()
            r = function.apply(t)
            after(r)
            through(torch, x, t, r)
            found += [None if u.grad is None else u.grad.detach().tolist() for u in (x, t, r)]
        return found

    same(claimed)


# Checkpoints


CHECKPOINTED = {
    "a product": lambda torch, a, b: (a * b).sin(),
    "a sum": lambda torch, a, b: (a + b).sin(),
    "a quotient": lambda torch, a, b: a / b,
    "functions of one": lambda torch, a, b: a.exp() * b.exp(),
    "a choice": lambda torch, a, b: torch.where(a > 0, a, b),
    "a product of matrices": lambda torch, a, b: a.expand(2, 3) @ b.expand(2, 3).T,
    "a product in place": lambda torch, a, b: (a * 1).mul_(b),
    "a product and a sum": lambda torch, a, b: torch.addcmul(a, b, b),
}


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("function", CHECKPOINTED.values(), ids=CHECKPOINTED)
def test_a_checkpoint_keeps_as_much_the_second_time(function, position):
    def claimed(torch):
        checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
        arguments = [(torch.arange(3.0) + i).requires_grad_() for i in (1, 2)]
        y = checkpoint(lambda a, b: function(torch, a, b), *arguments, use_reentrant=False)
        arguments[position].requires_grad_(False)
        other = arguments[1 - position]
        return raises(lambda: torch.autograd.grad(y.sum(), [other], retain_graph=True)), other.grad

    same(claimed)


PACKED = {
    "copies": (lambda x: x.clone(), lambda x: x),
    "itself": (lambda x: x, lambda x: x),
    "a half": (lambda x: x * 0.5, lambda x: x * 2),
}


@pytest.mark.parametrize("hooks", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("write", [lambda a: None, lambda a: a.data.mul_(3), lambda a: a.detach().mul_(3)])
def test_hooks_keep_the_arguments_of_a_checkpoint(hooks, write):
    def claimed(torch):
        checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
        found = []
        for place in (lambda x: x, lambda x: x * 1):
            a, b = (torch.arange(3.0) + 1).requires_grad_(), (torch.arange(3.0) - 1).requires_grad_()
            x = place(a)
            with torch.autograd.graph.saved_tensors_hooks(*hooks):
                y = checkpoint(lambda p, q, n: (p * q * n).sin(), x, b, 2, use_reentrant=False)
            write(x)
            found += torch.autograd.grad(y.sum(), [a, b], retain_graph=True)
            y.sum().backward()
            found += [a.grad, b.grad]
        return found

    same(claimed)


# Gradients


@claim
def a_gradient_first_read_in_inference_mode_is_an_ordinary_tensor(torch):
    x = leaf(torch)
    (x * 2).sum().backward()
    with torch.inference_mode():
        inside = x.grad.is_inference()
    x.grad.mul_(2)
    return inside, x.grad.is_inference(), x.grad._version, x.grad


@claim
def a_gradient_laid_out_like_its_tensor_is_no_view(torch):
    x = leaf(torch, 2, 3)
    t = (x * 1).t() * 2
    t.retain_grad()
    (t * t).sum().backward()
    t.grad.detach_()
    t.grad.mul_(2)
    return t.grad._base, t.grad._version, t.grad.tolist()


GRADIENTS = [(given, returned) for given in ("float32", "complex64") for returned in (
    "float64", "complex64", "complex128", "int64", "bool",
)]  # fmt: skip


@pytest.mark.parametrize(("given", "returned"), GRADIENTS)
def test_a_derivative_returns_real_gradients_for_real_arguments(given, returned):
    def claimed(torch):
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return torch.ones(2, dtype=getattr(torch, returned))

        x = torch.ones(2, dtype=getattr(torch, given)).requires_grad_()
        y = Own.apply(x)
        found = raises(lambda: y.backward(torch.ones_like(y)))
        return found, x.grad

    same(claimed)


@claim
def a_function_has_history_where_inference_mode_has_gradients(torch):
    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2 + y, x > 0

        @staticmethod
        def backward(ctx, g, _):
            return g * 2, g

    x, found = leaf(torch), []
    for modes in [(True, False), (True, True), (False, False), (False, True)]:
        with torch.inference_mode(modes[0]), torch.set_grad_enabled(modes[1]):
            for operand in (x, x.detach(), torch.ones(3)):
                made, mask = Shifted.apply(x, operand)
                found += [made.is_inference(), made.requires_grad, made.is_leaf, mask.requires_grad]
                found += [node is None or [f is None for f, _ in node.next_functions] for node in [made.grad_fn]]
    return found


MIXED = {
    "where": lambda torch, a, z: torch.where(z.real > 0, a, z),
    "where, the other one": lambda torch, a, z: torch.where(z.real < 0, z, a),
    "masked_fill": lambda torch, a, z: z.masked_fill(z.real > 0, a[0]),
    "an assignment": lambda torch, a, z: _assigned(z.clone(), a[0]),
}


def _assigned(z, number):
    z[1:] = number
    return z


@pytest.mark.parametrize("mix", MIXED.values(), ids=MIXED)
def test_a_real_operand_beside_a_complex_one_gets_the_real_part_of_its_gradient(mix):
    """PyTorch refuses its own complex gradient; of an operand that was converted before, it takes the real part."""

    def gradient(torch, before):
        a = torch.ones(3, dtype=torch.float64).requires_grad_()
        z = torch.arange(3).to(torch.complex128) * (1 + 2j) + 1
        weight = torch.tensor([1 + 1j, 2 - 3j, 4j], dtype=torch.complex128)
        made = mix(torch, a.to(torch.complex128) if before else a, z)
        return torch.autograd.grad(torch.view_as_real(made * weight).sum(), [a])[0].tolist()

    assert gradient(gradwire, False) == gradient(gradwire, True) == gradient(torch, True)


# Memory


@claim
def data_is_shown_with_other_strides(torch):
    x = torch.arange(16.0).reshape(4, 4)
    shown = x.data.as_strided((3,), (1,), 1)
    shown.mul_(2)
    changed = x.detach().clone().data[1:].as_strided((2, 2), (4, 1))
    return shown, x, changed, x._version, raises(lambda: x.data.as_strided((3,), (8,), 1))


# Bools


@claim
def products_powers_and_magnitudes_are_not_of_bools(torch):
    mask, numbers = torch.tensor([True, False, True]), torch.ones(3)
    calls = [
        lambda: mask.abs(), lambda: mask.abs_(), lambda: torch.absolute(mask), lambda: mask[:0].abs(),
        lambda: torch.addcmul(mask, mask, mask), lambda: mask.addcmul_(mask, mask),
        lambda: torch.addcmul(mask, numbers, mask), lambda: torch.addcmul(numbers, mask, mask),
        lambda: torch.pow(mask, mask), lambda: mask**mask, lambda: mask.pow_(mask), lambda: True**mask,
        lambda: mask**True, lambda: mask**False, lambda: mask**2, lambda: mask ** torch.ones(3, dtype=torch.int64),
    ]  # fmt: skip
    return [raises(call) for call in calls], mask


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,)])
def test_running_sums_are_written_in_the_dtype_of_their_tensor(dtype, shape):
    def claimed(torch):
        x, found = torch.ones(shape).to(getattr(torch, dtype)), []
        for op in ("cumsum", "cumprod"):
            for wanted in ("bool", "uint8", "int64", "float32", None):
                given = None if wanted is None else getattr(torch, wanted)
                found.append(raises(lambda: getattr(x, f"{op}_")(0, dtype=given)))  # noqa: B023 (called at once)
                if not x.is_complex():  # else PyTorch warns of imaginary parts, which were 0 all along
                    found.append(raises(lambda: getattr(x, op)(0, dtype=given)))  # noqa: B023
        return found, x

    same(claimed)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "complex64"])
def test_samplers_fill_what_they_fill_in_torch(dtype):
    def claimed(torch):
        x = torch.ones(3).to(getattr(torch, dtype))
        fill = [
            lambda: x.log_normal_(), lambda: x.geometric_(0.5), lambda: x.exponential_(), lambda: x.cauchy_(),
            lambda: x.uniform_(), lambda: x.normal_(), lambda: x.random_(), lambda: x.bernoulli_(0.5),
        ]  # fmt: skip
        return [raises(call) for call in fill]

    same(claimed)


@pytest.mark.parametrize("mode", ["as it is", "through hooks"])
@pytest.mark.parametrize("wait", [False, True])
def test_a_leaf_that_was_detached_since_is_read_by_backward(mode, wait):
    def claimed(torch):
        s, x = torch.tensor(0.5).requires_grad_(), torch.arange(4.0).requires_grad_()
        hooks = (lambda t: t.clone(), lambda t: t)
        with torch.autograd.graph.saved_tensors_hooks(*hooks) if mode == "through hooks" else nullcontext():
            y = x / (s * s + 1)
        x.detach_()
        if wait:
            y.tolist()
        y.sum().backward()
        return s.grad, x.grad

    same(claimed)


@pytest.mark.parametrize("op", ["sigmoid_", "exp_", "tanh_", "sqrt_", "reciprocal_", "rsqrt_", "relu_", "softmax"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_hooks_keep_results_of_operations_in_place(op, shape):
    def claimed(torch):
        x, log = torch.ones(shape).requires_grad_(), []
        y = x.clone()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: log.append(list(t.shape)) or t.clone(), lambda t: t):
            y = y.softmax(0) if op == "softmax" else getattr(y, op)()
        y.sum().backward()
        return x.grad, len(log)

    same(claimed)


def _operand(torch, how, dtype):
    x = torch.ones(3, 3, dtype=getattr(torch, dtype))
    return {
        "turned": x.T, "one row": x[:1].expand(3, 3), "one column": x[:, :1].expand(3, 3), "whole": x,
        "of a row": x.T[:1].expand(3, 3), "every other": torch.cat([x, x], 1)[:, ::2], "twice": x.T.expand(2, 3, 3),
        "windows": x.flatten()[:5].unfold(0, 3, 1),
    }[how]  # fmt: skip


@pytest.mark.parametrize("op", ["mul", "gt", "div", "where", "addcmul"])
def test_results_of_operands_that_are_cast_lie_in_pytorchs_order(op):
    kinds = ["turned", "one row", "one column", "whole", "of a row", "every other", "twice", "windows"]
    dtypes = ["float32", "float64", "int64"]

    def claimed(torch):
        found = []
        for (a, s), (b, t) in itertools.product(itertools.product(kinds, dtypes), repeat=2):
            x, y = _operand(torch, a, s), _operand(torch, b, t)
            call = {"where": lambda x, y: torch.where(x > 0, x, y), "addcmul": lambda x, y: torch.addcmul(x, y, y)}
            found.append([a, s, b, t, list(call.get(op, getattr(torch, op))(x, y).stride())])
        return found

    same(claimed)


@claim
def results_of_functions_in_inference_mode_are_used_without_history(torch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(torch)
    with torch.inference_mode(), torch.enable_grad():
        y = Doubled.apply(x)
    z = torch.zeros(3, 1)
    z[:] = y.unsqueeze(-1)
    return y.requires_grad, y.is_inference(), y.unsqueeze(-1).requires_grad, z.requires_grad, (y + z).requires_grad


@claim
def inputs_that_nothing_leads_to_because_their_view_is_old(torch):
    found = []
    for retain in (False, True):
        base = torch.ones(3)
        old, other = base.view(3), leaf(torch, 2)
        root = leaf(torch).max(0)[0]
        if retain:
            root.retain_grad()
        base.requires_grad_()
        for inputs in ([old, other], [old], [base]):
            found.append(torch.autograd.grad(root, inputs, retain_graph=True, materialize_grads=True))
            found.append(root.grad if retain else None)
        found.append(raises(lambda: torch.autograd.grad(root, [old], retain_graph=True)))  # noqa: B023 (at once)
    return found


@claim
def a_tensor_that_a_function_changes_has_no_gradient_any_more(torch):
    function = doubling(torch)
    found = []
    for write in (lambda x, y: x.mul_(y), lambda x, y: x.copy_(y), lambda x, y: x):
        x, y = torch.zeros(3), leaf(torch)
        x.requires_grad_()
        x.grad = torch.ones(3)
        x.detach_()
        write(x, y)
        found.append(x.grad)
        found.append(function.apply(x).grad)
    view = (leaf(torch) * 2)[:2]
    view.retain_grad()
    view.sum().backward()
    found += [view.grad, function.apply(view).grad, view.grad]
    return found


@claim
def a_refused_write_to_an_expanded_leaf_does_not_warn(torch):
    x = leaf(torch, 1, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refused = raises(lambda: x.expand(3, -1).masked_fill_(x > 0, 0.5))
    return refused, [w.category.__name__ for w in caught]


@claim
def a_view_keeps_the_history_that_it_was_seen_with_when_its_base_loses_its_own(torch):
    found = []
    for lose in (lambda t: t.detach_(), lambda t: t.requires_grad_(False)):
        base = torch.ones(4)
        view, other = base[...], base[1:]
        base.requires_grad_()
        base.detach().sub_(0.5)
        found.append([view.grad_fn.name(), view.requires_grad])
        lose(base)
        found.append([view.grad_fn.name(), view.requires_grad, view.is_leaf, base.requires_grad])
        found.append([other.grad_fn is None, other.requires_grad])
        (view * other).sum().backward()
        found.append([view.tolist(), None if base.grad is None else base.grad.tolist()])
    return found


@claim
def a_smaller_value_in_the_same_memory_is_assigned(torch):
    x, y = torch.ones(4), torch.arange(6.0).view(2, 3)
    x[:] = x.data[:1]
    y[1] = y.data[0, 1:2]
    y[:, 1:] = y.data[:, :1]
    z, source = torch.zeros(2, 3), torch.arange(3.0).requires_grad_()
    z[:] = (source * 2)[None]
    z.sum().backward()
    return (
        x,
        y,
        z.detach(),
        source.grad,
        [raises(lambda size=size: x.__setitem__(slice(3), torch.ones(*size))) for size in ((2,), (2, 3))],
    )


@claim
def hooks_of_roots_that_are_leaves_run_in_the_order_of_the_roots(torch):
    found = []
    for order in ("ab", "ba", "abc", "cab", "bca", "aba", "abab"):
        for used in ("", "b", "ac"):
            log = []
            leaves = {name: leaf(torch, at + 1) for at, name in enumerate("abc")}
            results = [leaves[name].cos() for name in used]  # an accumulator is made at the first use
            for at, (name, x) in enumerate(leaves.items()):
                register = x.register_post_accumulate_grad_hook if at == 1 else x.register_hook
                register(lambda _, name=name, log=log: log.append(name))
            torch.autograd.backward([leaves[name] for name in order], [leaves[name].detach() for name in order])
            found.append((order, len(results), log))
    return found


@claim
def a_view_of_complex_numbers_is_checkpointed_after_a_write_to_its_base(torch):
    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    found = []
    for hooked in (False, True):
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
        view = torch.view_as_complex(x)
        with torch.no_grad():
            x.mul_(2)
        if hooked:
            x.register_hook(lambda g: found.append(g.clone()))
        y = checkpoint(lambda a: a.cumsum(0).sin(), view, use_reentrant=False)
        torch.view_as_real(y).sin().sum().backward()
        found.append(x.grad)
    return found


@claim
def a_leaf_that_no_gradient_reaches_may_have_one_of_inference_mode(torch):
    x, y = leaf(torch, 2), leaf(torch, 3)
    with torch.inference_mode():
        x.sum().backward() if x.sum().requires_grad else x.backward(torch.ones(2))
    y.sum().backward(inputs=[y, x])
    return x.grad.tolist(), y.grad


@pytest.mark.parametrize("claimed", claim.all, ids=name_of)
def test_claim(claimed):
    same(claimed)
