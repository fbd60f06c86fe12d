"""``gradwire.func``: function transforms, alone and nested, as in torch.func.

Each call runs under both libraries; values, dtypes, structure and ``requires_grad`` of the results must agree.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire

pytestmark = [pytest.mark.usefixtures("session"), pytest.mark.filterwarnings("ignore::UserWarning")]
RNG = np.random.default_rng()


def flat(value):
    if isinstance(value, (tuple, list)):
        return [(type(value).__name__, len(value)), *(item for part in value for item in flat(part))]
    if isinstance(value, dict):
        return [("dict", tuple(value)), *(item for part in value.values() for item in flat(part))]
    return [value]


def same(call, *arrays):
    """What ``call(lib, func, *tensors)`` returns, from both libraries."""
    theirs, ours = (
        flat(call(lib, lib.func, *[lib.tensor(a, dtype=lib.float64) for a in arrays])) for lib in (torch, gradwire)
    )
    assert len(theirs) == len(ours)
    for wanted, got in zip(theirs, ours, strict=True):
        if not isinstance(wanted, torch.Tensor):
            assert wanted == got
            continue
        assert tuple(got.shape) == tuple(wanted.shape)
        assert str(got.dtype) == str(wanted.dtype)
        assert got.requires_grad == wanted.requires_grad
        np.testing.assert_allclose(got.detach().numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-12)


def leaf(x):
    return x.clone().requires_grad_()


def with_outer_no_grad(lib, f, x, y, v):
    x = leaf(x)
    with lib.no_grad():
        return f.grad_and_value(lambda t: (t * t).sum())(x), f.jvp(lambda t: t * t, (x,), (v,))


def with_inner_no_grad(lib, f, x, y, v):
    def function(t):
        with lib.no_grad():
            constant = t**2
        return (t * constant).sum()

    return f.grad(function)(x)


def with_backward_outside(lib, f, x, y, v):
    x = leaf(x)
    f.grad(lambda t: (t**3).sum())(x).sum().backward()
    return x.grad


def captured(lib, f, x, y, v):
    y = leaf(y)
    slope = f.grad(lambda t: (t * t * y).sum())(x)
    return slope, lib.autograd.grad(slope.sum(), y)


def twice(lib, f, x, y, v):
    value, pull = f.vjp(lambda t: t.sin() * y, x)
    return value, pull(v), pull(y)


def of_a_structure(lib, f, x, y, v):
    value, pull = f.vjp(lambda d: (d["a"] * d["b"], {"s": d["a"].sum()}), {"a": x, "b": y})
    return value, pull((v, {"s": y[0]}))


def branching(lib, f, x, y, v):
    return f.jacfwd(lambda t: t * t if float(x.sum()) > float(t.sum()) - 1 else t)(x)


def combined_with_what_is_mapped(lib, f, x, y, v):
    return f.vmap(lambda t, c: f.jvp(lambda s: (s * c).sin() * s, (x,), (t,)))(lib.stack([v, y]), lib.stack([x, y]))


def written_in_place(lib, f, x, y, v):
    def function(t):
        total = lib.zeros(3, dtype=t.dtype) * t
        total[1:] = t[:2] * y[:2]
        return total.mul_(t)

    return f.jacfwd(function)(x)


def linearized(lib, f, x, y, v):
    value, push = f.linearize(lambda a, b: a * b.sin(), x, y)
    return value, push(v, y), push(x, v)


REVERSE = {
    "grad": lambda lib, f, x, y, v: f.grad(lambda t: t.sin().sum())(x),
    "of a leaf": lambda lib, f, x, y, v: f.grad(lambda t: t.sin().sum())(leaf(x)),
    "of a linear function": lambda lib, f, x, y, v: f.grad(lambda t: (2 * t).sum())(x),
    "of a constant": lambda lib, f, x, y, v: f.grad(lambda t: y.sum())(x),
    "argnums": lambda lib, f, x, y, v: f.grad(lambda a, b: (a * b * b).sum(), argnums=(1, 0))(x, y),
    "the last argument": lambda lib, f, x, y, v: f.grad(lambda a, b: (a * b * b).sum(), argnums=-1)(x, y),
    "an unused argument": lambda lib, f, x, y, v: f.grad(lambda a, b: a.sum(), argnums=(0, 1))(x, y),
    "a structure": lambda lib, f, x, y, v: f.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": (y, [v])}),
    "keywords": lambda lib, f, x, y, v: f.grad(lambda a, scale: (a * scale).sum())(x, scale=y),
    "aux": lambda lib, f, x, y, v: f.grad(lambda t: ((t * t).sum(), {"twice": 2 * t}), has_aux=True)(x),
    "value": lambda lib, f, x, y, v: f.grad_and_value(lambda t: (t * t).sum())(leaf(x)),
    "value and aux": lambda lib, f, x, y, v: f.grad_and_value(lambda t: (t.sum(), t * 2), has_aux=True)(x),
    "a captured leaf": captured,
    "outer no_grad": with_outer_no_grad,
    "inner no_grad": with_inner_no_grad,
    "backward outside": with_backward_outside,
    "complex": lambda lib, f, x, y, v: f.grad(lambda z: (z * z.conj() * z).abs().sum())(lib.complex(x, y)),
    "vjp": twice,
    "vjp of a structure": of_a_structure,
    "vjp of a leaf": lambda lib, f, x, y, v: f.vjp(lambda t: t * t, leaf(x))[1](v),
    "vjp with a leaf": lambda lib, f, x, y, v: f.vjp(lambda t: t * t, x)[1](leaf(v)),
    "vjp with aux": lambda lib, f, x, y, v: f.vjp(lambda t: (t * t, t + 1), x, has_aux=True)[2],
}
FORWARD = {
    "jvp": lambda lib, f, x, y, v: f.jvp(lambda t: t.sin() * t, (x,), (v,)),
    "structures": lambda lib, f, x, y, v: f.jvp(
        lambda a, b: {"o": (a * b["k"], a), "p": a.sum()}, (x, {"k": y}), (v, {"k": x})
    ),
    "a leaf": lambda lib, f, x, y, v: f.jvp(lambda t: t * t, (leaf(x),), (v,)),
    "a leaf as tangent": lambda lib, f, x, y, v: f.jvp(lambda t: t * t, (x,), (leaf(v),)),
    "a constant": lambda lib, f, x, y, v: f.jvp(lambda t: y, (x,), (v,)),
    "integers out": lambda lib, f, x, y, v: f.jvp(lambda t: lib.tensor([1, 2]), (x,), (v,)),
    "aux": lambda lib, f, x, y, v: f.jvp(lambda t: (t * t, t + 1), (x,), (v,), has_aux=True),
    "complex": lambda lib, f, x, y, v: f.jvp(
        lambda z: (z * z.conj() * z).abs() + z.imag, (lib.complex(x, y),), (lib.complex(v, x),)
    ),
    "a write in place": lambda lib, f, x, y, v: f.jvp(lambda t: t.clone().mul_(t).add_(y), (x,), (v,)),
    "linearize": linearized,
}
JACOBIANS = {
    "jacrev": lambda lib, f, x, y, v: f.jacrev(lambda t: t.sin() * t.sum())(x),
    "jacfwd": lambda lib, f, x, y, v: f.jacfwd(lambda t: t.sin() * t.sum())(x),
    "jacrev of a leaf": lambda lib, f, x, y, v: f.jacrev(lambda t: t.sin() * t.sum())(leaf(x)),
    "jacfwd of a leaf": lambda lib, f, x, y, v: f.jacfwd(lambda t: t.sin() * t.sum())(leaf(x)),
    "jacrev in chunks": lambda lib, f, x, y, v: f.jacrev(lambda t: t.sin() * t.sum(), chunk_size=2)(x),
    "jacrev of several": lambda lib, f, x, y, v: f.jacrev(lambda a, b: {"o": a * b, "p": (b.sum(), a)}, argnums=(0, 1))(
        x, y
    ),
    "jacfwd of several": lambda lib, f, x, y, v: f.jacfwd(lambda a, b: {"o": a * b, "p": (b.sum(), a)}, argnums=(0, 1))(
        x, y
    ),
    "jacrev of a structure": lambda lib, f, x, y, v: f.jacrev(lambda d: {"o": d["a"] * d["b"].sum()})({"a": x, "b": v}),
    "jacfwd of a structure": lambda lib, f, x, y, v: f.jacfwd(lambda d: {"o": d["a"] * d["b"].sum()})({"a": x, "b": v}),
    "jacrev with aux": lambda lib, f, x, y, v: f.jacrev(lambda t: (t * t, 2 * t), has_aux=True)(x),
    "jacfwd with aux": lambda lib, f, x, y, v: f.jacfwd(lambda t: (t * t, 2 * t), has_aux=True)(x),
    "a matrix": lambda lib, f, x, y, v: f.jacrev(lambda m: m @ m.t())(lib.stack([x, y])),
    "jacfwd that branches on the values": branching,
    "jacfwd of writes in place": written_in_place,
    "hessian": lambda lib, f, x, y, v: f.hessian(lambda t: (t**3).sum() * t[0])(x),
    "hessian of several": lambda lib, f, x, y, v: f.hessian(lambda a, b: (a * b * a).sum(), argnums=(0, 1))(x, y),
}
NESTED = {
    "grad of grad": lambda lib, f, x, y, v: f.grad(f.grad(lambda t: t**5))(x[0]),
    "grad of grad of grad": lambda lib, f, x, y, v: f.grad(f.grad(f.grad(lambda t: t**5)))(x[0]),
    "grad of grad of a linear function": lambda lib, f, x, y, v: f.grad(
        lambda s: f.grad(lambda t: (2 * t).sum())(s).sum()
    )(x),
    "grad of a captured variable": lambda lib, f, x, y, v: f.grad(lambda s: s * f.grad(lambda t: s + t)(y[0]))(x[0]),
    "grad of the inner value": lambda lib, f, x, y, v: f.grad(
        lambda s: f.grad_and_value(lambda t: (t * s * t).sum())(s)[1]
    )(x),
    "grad of the inner aux": lambda lib, f, x, y, v: f.grad(
        lambda s: f.grad(lambda t: (t.sum(), t * s), has_aux=True)(s)[1].sum()
    )(x),
    "grad of vjp": lambda lib, f, x, y, v: f.grad(lambda s: f.vjp(lambda t: t.sin() * s, s)[1](v)[0].sum())(x),
    "grad of jvp": lambda lib, f, x, y, v: f.grad(lambda s: f.jvp(lambda t: (t**3).sin(), (s,), (v,))[1].sum())(x),
    "grad of hessian": lambda lib, f, x, y, v: f.grad(lambda s: f.hessian(lambda t: (t**3).sum() * t[0])(s).sum())(x),
    "jvp of grad": lambda lib, f, x, y, v: f.jvp(f.grad(lambda t: (t**3).prod()), (x,), (v,)),
    "jvp of jvp": lambda lib, f, x, y, v: f.jvp(lambda s: f.jvp(lambda t: t**3 * s, (s,), (y,))[1], (x,), (v,)),
    "jvp of jvp of jvp": lambda lib, f, x, y, v: f.jvp(
        lambda r: f.jvp(lambda s: f.jvp(lambda t: (t * s).sin() * r, (s,), (y,))[1], (r,), (v,))[1], (x,), (y,)
    ),
    "perturbations stay apart": lambda lib, f, x, y, v: f.jvp(
        lambda s: s * f.jvp(lambda t: s + t, (y,), (v,))[1], (x,), (v,)
    ),
    "jacrev of jacfwd": lambda lib, f, x, y, v: f.jacrev(f.jacfwd(lambda t: (t**3).sum() * t[0]))(x),
    "jacfwd of jacfwd": lambda lib, f, x, y, v: f.jacfwd(f.jacfwd(lambda t: (t**3).sum() * t[0]))(x),
    "jacrev of jacrev": lambda lib, f, x, y, v: f.jacrev(f.jacrev(lambda t: (t**3).sum() * t[0]))(x),
    "three Jacobians": lambda lib, f, x, y, v: f.jacfwd(f.jacrev(f.jacrev(lambda t: (t**4).sum() * t[0])))(x),
    "jacfwd that also uses its input": lambda lib, f, x, y, v: f.jacfwd(
        lambda s: f.grad(lambda t: (t**3).sum())(s) * s
    )(x),
    "vmap of grad": lambda lib, f, x, y, v: f.vmap(f.grad(lambda a, b: (a * b).sin()), in_dims=(0, None))(x, y[0]),
    "vmap of grad for what is shared": lambda lib, f, x, y, v: f.vmap(
        f.grad(lambda a, b: (a * b).sin(), argnums=1), in_dims=(0, None)
    )(x, y[0]),
    "vmap of grad of grad": lambda lib, f, x, y, v: f.vmap(
        lambda a: f.vmap(f.grad(f.grad(lambda p, q: (p * p * q).sin())), in_dims=(None, 0))(a, y)
    )(x),
    "grad of vmap": lambda lib, f, x, y, v: f.grad(lambda s: f.vmap(lambda t: t * t.sin())(s).sum())(x),
    "jvp of vmap": lambda lib, f, x, y, v: f.jvp(
        f.vmap(lambda t: t.sin() * t), (lib.stack([x, y]),), (lib.stack([v, y]),)
    ),
    "vmap of jvp with what is mapped": combined_with_what_is_mapped,
    "vmap of jvp": lambda lib, f, x, y, v: f.vmap(lambda t: f.jvp(lambda s: s.sin() * s, (x,), (t,)))(
        lib.stack([v, y])
    ),
    "vmap of jacrev": lambda lib, f, x, y, v: f.vmap(f.jacrev(lambda t: t.sin() * t))(lib.stack([x, y])),
    "vmap of jacfwd": lambda lib, f, x, y, v: f.vmap(f.jacfwd(lambda t: t.sin() * t.sum()))(lib.stack([x, y])),
    "vmap of hessian": lambda lib, f, x, y, v: f.vmap(f.hessian(lambda t: (t.sin() * t).sum() * t[0]))(
        lib.stack([x, y])
    ),
    "jacrev of vmap": lambda lib, f, x, y, v: f.jacrev(f.vmap(lambda t: t.sin() * t.sum()))(lib.stack([x, y])),
}


@pytest.mark.parametrize("name", REVERSE)
def test_reverse_mode(name):
    same(REVERSE[name], *RNG.standard_normal((3, 3)))


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(name):
    same(FORWARD[name], *RNG.standard_normal((3, 3)))


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians(name):
    same(JACOBIANS[name], *RNG.standard_normal((3, 3)))


@pytest.mark.parametrize("name", NESTED)
def test_nestings(name):
    same(NESTED[name], *RNG.standard_normal((3, 3)))


MISTAKES = {
    "not a scalar": lambda lib, f, x: f.grad(lambda t: t)(x),
    "a tuple": lambda lib, f, x: f.grad(lambda t: (t.sum(), t.sum()))(x),
    "a number": lambda lib, f, x: f.grad(lambda t: 1.0)(x),
    "a complex scalar": lambda lib, f, x: f.grad(lambda t: t.sum())(lib.complex(x, x)),
    "no such argument": lambda lib, f, x: f.grad(lambda t: t.sum(), argnums=1)(x),
    "no such argument from the end": lambda lib, f, x: f.grad(lambda t: t.sum(), argnums=-2)(x),
    "an argument twice": lambda lib, f, x: f.grad(lambda t: t.sum(), argnums=(0, 0))(x),
    "no argnums": lambda lib, f, x: f.grad(lambda t: t.sum(), argnums=())(x),
    "argnums of text": lambda lib, f, x: f.grad(lambda t: t.sum(), argnums="a")(x),
    "an integer": lambda lib, f, x: f.grad(lambda t: t.sum())(lib.tensor([1, 2])),
    "no tensor": lambda lib, f, x: f.grad(lambda t: t * 2.0)(3.0),
    "no aux": lambda lib, f, x: f.grad(lambda t: t.sum(), has_aux=True)(x),
    "aux of numbers": lambda lib, f, x: f.grad(lambda t: (t.sum(), 3), has_aux=True)(x),
    "primals without a tuple": lambda lib, f, x: f.jvp(lambda t: t, x, x),
    "tangents without a tuple": lambda lib, f, x: f.jvp(lambda t: t, (x,), x),
    "a tangent too many": lambda lib, f, x: f.jvp(lambda t: t, (x,), (x, x)),
    "a tangent of another shape": lambda lib, f, x: f.jvp(lambda t: t, (x,), (x[:2],)),
    "no primals": lambda lib, f, x: f.jvp(lambda: x, (), ()),
    "a primal that is a number": lambda lib, f, x: f.jvp(lambda t: t, (3.0,), (1.0,)),
    "jvp of a number": lambda lib, f, x: f.jvp(lambda t: 3.0, (x,), (x,)),
    "strict independence": lambda lib, f, x: f.jvp(lambda t: lib.ones(2), (x,), (x,), strict=True),
    "a cotangent of another shape": lambda lib, f, x: f.vjp(lambda t: t.sum(), x)[1](x),
    "a cotangent of another structure": lambda lib, f, x: f.vjp(lambda t: t, x)[1]((x,)),
    "vjp of a number": lambda lib, f, x: f.vjp(lambda t: 3.0, x),
    "vjp at a number": lambda lib, f, x: f.vjp(lambda t: t, 3.0),
    "jacrev of a number": lambda lib, f, x: f.jacrev(lambda t: 3.0)(x),
    "an empty chunk": lambda lib, f, x: f.jacrev(lambda t: t, chunk_size=0)(x),
    "jacrev at integers": lambda lib, f, x: f.jacrev(lambda t: t * 1.0)(lib.tensor([1, 2])),
    "jacfwd at integers": lambda lib, f, x: f.jacfwd(lambda t: t * 1.0)(lib.tensor([1, 2])),
    "jacfwd at complex numbers": lambda lib, f, x: f.jacfwd(lambda t: t * t)(lib.complex(x, x)),
    "jacrev to complex numbers": lambda lib, f, x: f.jacrev(lambda t: lib.complex(t, t))(x),
    "linear at another count": lambda lib, f, x: f.linearize(lambda t: t * t, x)[1](x, x),
    "linear at another dtype": lambda lib, f, x: f.linearize(lambda t: t * t, x)[1](x.float()),
    "two tensors for one name": lambda lib, f, x: f.functional_call(_linear(lib), ({"weight": x}, {"weight": x}), x),
    "no dict": lambda lib, f, x: f.functional_call(_linear(lib), 3, x),
    "a parameter that is a number": lambda lib, f, x: f.functional_call(_linear(lib), {"weight": 3}, x),
    "a missing name": lambda lib, f, x: f.functional_call(_linear(lib), {"weight": x}, x, strict=True),
    "a module that does not exist": lambda lib, f, x: f.functional_call(_linear(lib), {"a.b": x}, x),
    "no models": lambda lib, f, x: f.stack_module_state([]),
    "models of different modes": lambda lib, f, x: f.stack_module_state([_linear(lib), _linear(lib).eval()]),
}


def _linear(lib):
    return lib.nn.Linear(3, 3).double()


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_the_same_classes(name):
    values = RNG.standard_normal(3)
    with pytest.raises(Exception) as theirs:
        MISTAKES[name](torch, torch.func, torch.tensor(values))
    wanted = next(c for c in type(theirs.value).__mro__ if c.__module__ == "builtins")
    with pytest.raises(wanted) as ours:
        MISTAKES[name](gradwire, gradwire.func, gradwire.tensor(values))
    assert type(ours.value).__module__.startswith(("gradwire", "builtins"))


def modules(lib, weights):
    class Tied(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = lib.nn.Linear(3, 3, bias=False).double()
            self.b = lib.nn.Linear(3, 3, bias=False).double()
            self.b.weight = self.a.weight

        def forward(self, x, *, scale=1.0):
            return (self.b(self.a(x).tanh()) * scale).sum()

    made = Tied()
    with lib.no_grad():
        made.a.weight.copy_(lib.tensor(weights))
    return made


FUNCTIONAL = {
    "one dict": lambda lib, f, m, w, x: f.functional_call(m, {"a.weight": w}, (x,)),
    "the other name": lambda lib, f, m, w, x: f.functional_call(m, {"b.weight": w}, x),
    "untied": lambda lib, f, m, w, x: f.functional_call(m, {"a.weight": w}, x, tie_weights=False),
    "two values untied": lambda lib, f, m, w, x: f.functional_call(
        m, ({"a.weight": w}, {"b.weight": w * 2}), x, tie_weights=False
    ),
    "strict": lambda lib, f, m, w, x: f.functional_call(m, {"a.weight": w}, x, strict=True),
    "keywords": lambda lib, f, m, w, x: f.functional_call(m, {"a.weight": w}, (x,), {"scale": 3.0}),
    "differentiated": lambda lib, f, m, w, x: f.grad(lambda p: f.functional_call(m, p, x))({"a.weight": w}),
    "per sample": lambda lib, f, m, w, x: f.vmap(f.grad(lambda p, s: f.functional_call(m, p, s)), in_dims=(None, 0))(
        {"a.weight": w}, x
    ),
    "the module afterwards": lambda lib, f, m, w, x: (f.functional_call(m, {"a.weight": w}, x), m(x))[1],
}


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_a_module_as_a_function_of_its_parameters(name):
    weights = RNG.standard_normal((3, 3))
    same(
        lambda lib, f, w, x: FUNCTIONAL[name](lib, f, modules(lib, weights), w, x),
        RNG.standard_normal((3, 3)),
        RNG.standard_normal((4, 3)),
    )


def test_a_failing_module_gets_its_parameters_back():
    module = gradwire.nn.Linear(3, 3)
    kept = module.weight
    with pytest.raises(RuntimeError):
        gradwire.func.functional_call(module, {"weight": gradwire.ones(2, 2)}, gradwire.ones(5))
    assert module.weight is kept


def test_an_ensemble_is_one_map():
    models = [gradwire.nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = gradwire.func.stack_module_state(models)
    x = gradwire.randn(5, 3)
    together = gradwire.func.vmap(
        lambda p, b, t: gradwire.func.functional_call(models[0], (p, b), t), in_dims=(0, 0, None)
    )(parameters, buffers, x)
    assert all(p.requires_grad and p.is_leaf for p in parameters.values())
    one_by_one = np.stack([m(x).detach().numpy() for m in models])
    np.testing.assert_allclose(together.detach().numpy(), one_by_one, rtol=1e-5, atol=1e-6)


def test_writes_to_buffers_go_to_the_given_tensors():
    norm = gradwire.nn.BatchNorm1d(3)
    state = {name: b.clone() for name, b in norm.named_buffers()}
    gradwire.func.functional_call(norm, state, gradwire.randn(8, 3) + 5)
    assert norm.running_mean.abs().sum().item() == 0
    assert state["running_mean"].abs().sum().item() > 0


def _energy(t):
    return (t**3).sum() * t[0]


ONE_TRIP = {
    "grad": lambda f, x, v: f.grad(_energy)(x),
    "hvp, forward over reverse": lambda f, x, v: f.jvp(f.grad(_energy), (x,), (v,))[1],
    "hvp, reverse over reverse": lambda f, x, v: f.vjp(f.grad(_energy), x)[1](v)[0],
    "jacrev": lambda f, x, v: f.jacrev(lambda t: t.sin() * t.sum())(x),
    "jacfwd": lambda f, x, v: f.jacfwd(lambda t: t.sin() * t.sum())(x),
    "hessian": lambda f, x, v: f.hessian(_energy)(x),
    "linearize": lambda f, x, v: f.linearize(lambda t: t.sin(), x)[1](v),
}


@pytest.mark.parametrize("name", ONE_TRIP)
def test_a_transform_is_one_round_trip(name, round_trips):
    x, v = gradwire.tensor(RNG.standard_normal(3)), gradwire.tensor(RNG.standard_normal(3))
    round_trips()
    ONE_TRIP[name](gradwire.func, x, v).tolist()
    assert round_trips() == 1


def test_the_value_of_a_transform_does_not_keep_its_graph():
    x = gradwire.tensor(RNG.standard_normal(1000))
    session = gradwire.current_session()
    session.synchronize()
    before = session.describe()["contents"]["graph_nodes"]
    gradient, value = gradwire.func.grad_and_value(_energy)(x)
    session.synchronize()
    assert session.describe()["contents"]["graph_nodes"] == before
    assert not gradient.requires_grad
    assert not value.requires_grad


class TestJacobiansOfWhatCannotBeMapped:
    """One row at a time, no ``vmap`` is needed."""

    @staticmethod
    def looks_at_its_gradient(lib):
        class Identity(lib.autograd.Function):
            @staticmethod
            def forward(x):
                return x * 1

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def backward(ctx, g):
                g.nonzero()  # its shape depends on values
                return g

        return Identity.apply

    def test_rows_one_by_one(self):
        same(
            lambda lib, func, x: func.jacrev(self.looks_at_its_gradient(lib), chunk_size=1)(x),
            RNG.standard_normal((2, 3)),
        )

    @pytest.mark.parametrize("lib", [torch, gradwire], ids=["torch", "gradwire"])
    def test_rows_two_by_two(self, lib):
        with pytest.raises(RuntimeError):
            lib.func.jacrev(self.looks_at_its_gradient(lib), chunk_size=2)(lib.ones(2, 3))


@pytest.mark.parametrize("lib", [torch, gradwire], ids=["torch", "gradwire"])
@pytest.mark.parametrize("nothing", [(), None, 1, "abc"])
@pytest.mark.parametrize("transform", ["jacrev", "jacfwd", "grad", "vjp", "jvp"])
def test_a_function_without_a_tensor_to_differentiate_is_refused(lib, nothing, transform):
    x = lib.ones(3)
    with pytest.raises(RuntimeError):
        if transform == "vjp":
            lib.func.vjp(lambda _: nothing, x)
        elif transform == "jvp":
            lib.func.jvp(lambda _: nothing, (x,), (x,))
        else:
            getattr(lib.func, transform)(lambda _: nothing)(x)
