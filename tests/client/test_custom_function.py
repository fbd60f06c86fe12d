"""Custom Functions: PyTorch calls the program's forward and backward in exactly this way."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from tests.side_by_side import Claims, built_in, name_of, raises, same

import gradwire

claim = Claims()


def submodule(lib: Any, name: str) -> Any:
    return import_module(f"{lib.__name__}.{name}")


def make(lib: Any, forward: Any, backward: Any, **more: Any) -> Any:
    methods = {"forward": forward, "backward": backward, **more}
    return type("F", (lib.autograd.Function,), {k: staticmethod(v) for k, v in methods.items()})


def error_of(run: Any) -> Any:

    try:
        return run()
    except Exception as error:
        return built_in(error)


@claim
def an_instance_of_a_function_is_of_no_use(torch: Any) -> Any:
    class Same(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x)

    return isinstance(Same(), Same), raises(lambda: Same()(torch.ones(1)))


@claim
def backward_gets_gradients_of_all_results_and_context_keeps_what_is_set(lib: Any) -> Any:
    seen = []

    def forward(ctx: Any, a: Any, n: int, b: Any) -> Any:
        ctx.n = n
        seen.append(ctx.needs_input_grad)
        ctx.save_for_backward(a, b)
        return a * b, (a * b).int()

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.extend([g.tolist(), h.dtype, h.tolist(), ctx.n])
        a, b = ctx.saved_tensors
        return g * b, None, None

    a, b = lib.ones(2, requires_grad=True), lib.ones(2)
    y, i = make(lib, forward, backward).apply(a, 3, b)
    y.sum().backward()
    return y, i, a.grad, seen, y.grad_fn.n, y.grad_fn.needs_input_grad, error_of(lambda: y.grad_fn.saved_tensors)


@claim
def a_second_backward_fails_where_something_was_saved_and_only_there(lib: Any) -> Any:
    saving = make(lib, lambda ctx, a: (ctx.save_for_backward(a), a * 1)[1], lambda ctx, g: g * ctx.saved_tensors[0])
    not_saving = make(lib, lambda ctx, a: a * 1, lambda ctx, g: g)
    found = []
    for kind in (saving, not_saving):
        a = lib.ones(2, requires_grad=True)
        y = kind.apply(a)
        s = y.sum()
        s.backward()
        found += [error_of(s.backward), a.grad]
    return found


@claim
def forward_without_context_goes_with_setup_context(lib: Any) -> Any:
    seen = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append((len(inputs), output[1:]))
        ctx.n = inputs[1]

    kind = make(
        lib, lambda a, n=3: (a * n, None, 5), lambda ctx, g, *rest: (seen.append(rest), (g * ctx.n, None))[1],
        setup_context=setup,
    )  # fmt: skip
    a = lib.ones(2, requires_grad=True)
    r = kind.apply(a)
    r[0].sum().backward()
    return r, a.grad, seen


@claim
def an_input_returned_as_it_is_becomes_a_view(lib: Any) -> Any:
    a = lib.ones(2, requires_grad=True)
    v = make(lib, lambda ctx, a: a, lambda ctx, g: g).apply(a)
    return v, v is a, v._base is a, error_of(lambda: v.add_(1))


@claim
def a_view_made_in_forward_cannot_be_changed_in_place(lib: Any) -> Any:
    v = make(lib, lambda ctx, a: a.view(1, 2), lambda ctx, g: g.view(2)).apply(lib.ones(2, requires_grad=True) * 1)
    return v, error_of(lambda: v.add_(1))


@claim
def a_dirty_input_is_the_result(lib: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a)
        return a.mul_(2)

    a = lib.ones(2, requires_grad=True)
    c = a * 1
    d = make(lib, forward, lambda ctx, g: g * 2).apply(c)
    d.sum().backward()
    leaf = error_of(lambda: make(lib, forward, lambda ctx, g: g).apply(a))
    return d is c, c, c._version, a.grad, leaf


@claim
def a_dirty_view_writes_into_its_base(torch: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a)
        return a.mul_(2)

    def two(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a)
        return a.mul_(2), a + 1

    x = torch.arange(4.0).requires_grad_()
    base = x * 3
    view = base[1:3]
    kind = make(torch, forward, lambda ctx, g: g * 5)
    result = kind.apply(view)
    (base * base).sum().backward()
    of_leaf = torch.ones(3, requires_grad=True)
    several = make(torch, two, lambda ctx, g, h: g)
    return (
        result is view, view, base, x.grad.tolist(), view._version, raises(lambda: kind.apply(of_leaf[:2])),
        raises(lambda: several.apply((x * 1)[:2])),
    )  # fmt: skip


@claim
def a_dirty_input_that_is_not_returned_is_refused(lib: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a)
        return a.mul_(2) * 1

    return error_of(lambda: make(lib, forward, lambda ctx, g: g).apply(lib.ones(2, requires_grad=True) * 1))


@claim
def what_backward_returns_is_checked(lib: Any) -> Any:
    a = lib.ones(2, requires_grad=True)
    wrong = [
        lambda ctx, g: (g, g), lambda ctx, g: 5, lambda ctx, g: (g, None, None), lambda ctx, g: lib.ones(3),
        lambda ctx, g: g.double(), lambda ctx, g: g.unsqueeze(0), lambda ctx, g: (), lambda ctx, g: lib.ones(()),
    ]  # fmt: skip
    return [error_of(lambda b=b: make(lib, lambda ctx, a: a * 1, b).apply(a).sum().backward()) for b in wrong], a.grad


@claim
def an_undefined_gradient_is_zeros_or_none(lib: Any) -> Any:
    found = []
    for materialize in (True, False):
        seen = []

        def forward(ctx: Any, a: Any, materialize: bool = materialize) -> Any:
            ctx.set_materialize_grads(materialize)
            return a * 1, a * 2

        def backward(ctx: Any, g: Any, h: Any, seen: list[Any] = seen) -> Any:
            seen.extend([None if t is None else t.tolist() for t in (g, h)])
            return None

        def inner(ctx: Any, g: Any, seen: list[Any] = seen) -> Any:
            seen.append(None if g is None else g.tolist())
            return g

        a = lib.ones(2, requires_grad=True)
        below = make(lib, lambda ctx, a: a * 1, inner).apply(a)
        make(lib, forward, backward).apply(below)[0].sum().backward()
        found += [seen, a.grad]
    return found


@claim
def results_can_be_marked_non_differentiable(lib: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        y, mask = a * 2, a * 0
        ctx.mark_non_differentiable(mask)
        return y, mask

    a = lib.ones(2, requires_grad=True)
    y, mask = make(lib, forward, lambda ctx, g, h: g * 2 + h).apply(a)
    y.sum().backward()
    return y, mask, a.grad


@claim
def derivatives_of_any_order_go_through(lib: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * 3 * y / x

    def forward(ctx: Any, x: Any) -> Any:
        y = x**3
        ctx.save_for_backward(x, y)
        return y

    cube = make(lib, forward, backward)
    x = lib.tensor(2.0, requires_grad=True, dtype=lib.float64)
    (g,) = lib.autograd.grad(cube.apply(x), x, create_graph=True)
    (h,) = lib.autograd.grad(g, x, create_graph=True)
    (k,) = lib.autograd.grad(h, x)
    checks = lib.autograd.gradcheck(cube.apply, (x,)), lib.autograd.gradgradcheck(cube.apply, (x,))
    return g.item(), h.item(), k.item(), checks


@claim
def a_saved_result_keeps_its_history_when_the_program_takes_it_away(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)

    x = lib.tensor(0.5, requires_grad=True)
    y = make(lib, forward, backward).apply(x)
    z = y * 3
    y.detach_()
    (g,) = lib.autograd.grad(z, x, create_graph=True)
    (h,) = lib.autograd.grad(g, x)
    return g, g.requires_grad, h, y.requires_grad


@claim
def once_differentiable_is_that(lib: Any) -> Any:
    once = submodule(lib, "autograd.function").once_differentiable
    x = lib.tensor(2.0, requires_grad=True)
    square = make(
        lib, lambda ctx, x: (ctx.save_for_backward(x), x**2)[1], once(lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    )
    (first,) = lib.autograd.grad(square.apply(x), x)
    (g,) = lib.autograd.grad(square.apply(x) * x, x, create_graph=True)
    return first, g.item(), g.requires_grad, error_of(lambda: lib.autograd.grad(g, x))


@claim
def exceptions_of_backward_surface_where_backward_was_called(lib: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        raise LookupError("mine")

    x = lib.tensor(2.0, requires_grad=True)
    found = [error_of(make(lib, lambda ctx, x: x * 1, backward).apply(x * 3).backward)]
    found.append(
        error_of(type("N", (lib.autograd.Function,), {"forward": staticmethod(lambda c, x: x * 1)}).apply(x).backward)
    )
    (x * 2).backward()
    return found, x.grad


@claim
def without_recording_there_is_no_node(lib: Any) -> Any:
    kind = make(lib, lambda ctx, a: (ctx.save_for_backward(a), a * 2)[1], lambda ctx, g: g)
    a = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        y = kind.apply(a)
    return y, kind.apply(lib.ones(2)), kind.apply(a)


@claim
def a_saved_tensor_that_was_changed_is_refused(lib: Any) -> Any:
    kind = make(lib, lambda ctx, a: (ctx.save_for_backward(a), a * 2)[1], lambda ctx, g: g * ctx.saved_tensors[0])
    x = lib.ones(2, requires_grad=True)
    a = x * 1
    y = kind.apply(a)
    a.add_(1)
    return error_of(y.sum().backward)


@claim
def jvp_gives_tangents_in_forward_mode(torch: Any) -> Any:
    forward_mode = submodule(torch, "autograd.forward_ad")
    seen = []

    def forward(ctx: Any, a: Any, k: int, b: Any) -> Any:
        ctx.k = k
        ctx.save_for_forward(a, b)
        return a * b * k, a.sum()

    def jvp(ctx: Any, at: Any, kt: Any, bt: Any) -> Any:
        a, b = ctx.saved_tensors
        seen.extend([at.tolist(), kt, bt.tolist()])
        return (at * b + a * bt) * ctx.k, at.sum()

    kind = make(torch, forward, lambda ctx, g, h: (g, None, g), jvp=jvp)
    without = make(torch, lambda ctx, a: a * 1, lambda ctx, g: g)
    two = make(torch, lambda ctx, a: a * 1, lambda ctx, g: g, jvp=lambda ctx, t: (t, t))
    with forward_mode.dual_level():
        x = forward_mode.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
        y, s = kind.apply(x, 2, torch.ones(2) * 3)
        found = [forward_mode.unpack_dual(t).tangent.tolist() for t in (y, s)]
        errors = error_of(lambda: without.apply(x)), error_of(lambda: two.apply(x))
    return seen, found, errors


@pytest.mark.parametrize("run", claim.all, ids=name_of)
def test_as_in_pytorch(run: Any) -> None:
    same(run)


def test_a_custom_backward_costs_no_round_trip(round_trips: Any) -> None:
    kind = make(
        gradwire, lambda ctx, a: (ctx.save_for_backward(a), a * a)[1], lambda ctx, g: g * 2 * ctx.saved_tensors[0]
    )
    x = gradwire.ones(3, requires_grad=True)
    y = kind.apply(kind.apply(x))
    y.sum().backward()
    assert round_trips() == 0
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
    assert round_trips() == 1


def test_the_users_traceback_shows_the_users_lines() -> None:
    def explode(ctx: Any, g: Any) -> Any:
        raise ZeroDivisionError("in the user's backward")

    x = gradwire.ones(3, requires_grad=True)
    with pytest.raises(ZeroDivisionError) as caught:
        make(gradwire, lambda ctx, a: a * 1, explode).apply(x).sum().backward()
    assert [entry.name for entry in caught.traceback][-1] == "explode"
    assert caught.traceback[0].path.name == "test_custom_function.py"


def test_a_function_and_its_graph_are_freed_with_the_last_reference() -> None:
    import gc
    from weakref import ref

    kind = make(gradwire, lambda ctx, a: (ctx.save_for_backward(a, y := a * 2), y)[1], lambda ctx, g: g)
    y = kind.apply(gradwire.ones(3, requires_grad=True))
    node = ref(y.grad_fn)
    gc.disable()
    try:
        del y
        assert node() is None
    finally:
        gc.enable()


def test_the_class_of_a_functions_nodes_is_an_attribute_of_the_function() -> None:
    def claim(torch: Any) -> Any:
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        return type(Double.apply(torch.ones(2, requires_grad=True)).grad_fn) is Double._backward_cls

    same(claim)
