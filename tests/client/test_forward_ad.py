"""``autograd.forward_ad``: dual tensors, as in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad as torch_fwd

import gradwire
import gradwire.autograd.forward_ad as our_fwd

pytestmark = pytest.mark.usefixtures("session")
RNG = np.random.default_rng()
BOTH = pytest.mark.parametrize(("lib", "fwd"), [(torch, torch_fwd), (gradwire, our_fwd)], ids=["torch", "gradwire"])


def numbers(*shape, dtype="float64"):
    values = RNG.standard_normal(shape)
    return values + 1j * RNG.standard_normal(shape) if dtype.startswith("complex") else values


def flat(value):
    """Tensors of nested tuples, as (array or None, requires_grad)."""
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flat(part)]
    if value is None:
        return [(None, None)]
    return [(value.detach().numpy(), value.requires_grad)]


def check(function, *arrays):
    """The same from both libraries: ``function(lib, fwd, *tensors)`` inside of a level."""
    results = []
    for lib, fwd in ((torch, torch_fwd), (gradwire, our_fwd)):
        tensors = [lib.tensor(a) for a in arrays]
        with fwd.dual_level():
            results.append(flat(function(lib, fwd, *tensors)))
    theirs, ours = results
    assert len(theirs) == len(ours)
    for (wanted, wants_grad), (got, requires) in zip(theirs, ours, strict=True):
        if wanted is None:
            assert got is None
            continue
        assert got is not None
        assert got.dtype == wanted.dtype
        assert requires == wants_grad
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


def in_view(lib, fwd, x, v):
    base = lib.zeros(5, dtype=x.dtype)
    part, early = base[1:4], base[2:]
    part.copy_(fwd.make_dual(x, v))
    early.mul_(3)
    return [fwd.unpack_dual(t) for t in (base, base[:2], part, early)]


def into_dual(lib, fwd, x, v):
    dual = fwd.make_dual(x, v)
    whole = dual * 1
    row = whole[:2]
    row.mul_(2)
    whole.add_(row.sum())
    return [fwd.unpack_dual(t) for t in (whole, row, dual)]


def primal_of_a_written_base(lib, fwd, x, v):
    base = lib.zeros(3, dtype=x.dtype)
    base.copy_(fwd.make_dual(x, v))
    primal = fwd.unpack_dual(base).primal
    return [fwd.unpack_dual(t) for t in (base, primal, primal[1:], primal[1:] * 2)]


def zeroed(lib, fwd, x, v):
    dual = fwd.make_dual(x, v) * 1
    dual.zero_()
    return fwd.unpack_dual(dual)


def filled(lib, fwd, x, v):
    y = lib.ones(2, dtype=x.dtype)
    y.fill_(fwd.make_dual(x, v)[0])
    return fwd.unpack_dual(y)


def set_item(lib, fwd, x, v):
    y = lib.zeros(2, 3, dtype=x.dtype)
    y[1] = fwd.make_dual(x, v)
    y[:, 0] = 7.0
    return fwd.unpack_dual(y)


def to_the_primal(lib, fwd, x, v):
    held = fwd.make_dual(x, v)
    x.mul_(2)
    return fwd.unpack_dual(held)


def without_gradients(lib, fwd, x, v):
    with lib.no_grad():
        return fwd.unpack_dual(fwd.make_dual(x, v).sin())


def in_inference_mode(lib, fwd, x, v):
    dual = fwd.make_dual(x, v)
    with lib.inference_mode():
        return fwd.unpack_dual(dual * 2).tangent


def reverse_over_forward(lib, fwd, x, v):
    x = x.requires_grad_()
    y = (fwd.make_dual(x, v) ** 3).sin()
    tangent = fwd.unpack_dual(y).tangent
    return tangent, lib.autograd.grad(tangent.sum(), x)


def for_the_tangent(lib, fwd, x, v):
    v = v.requires_grad_()
    tangent = fwd.unpack_dual((fwd.make_dual(x, v) ** 3).exp()).tangent
    return lib.autograd.grad(tangent.sum(), v)


def forward_over_reverse(lib, fwd, x, v):
    dual = fwd.make_dual(x.requires_grad_(), v)
    (gradient,) = lib.autograd.grad((dual**3).prod(), dual)
    return fwd.unpack_dual(gradient)


def forward_over_reverse_twice(lib, fwd, x, v):
    dual = fwd.make_dual(x.requires_grad_(), v)
    (first,) = lib.autograd.grad((dual**4).sum(), dual, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), dual)
    return fwd.unpack_dual(second)


def backward_leaves_no_tangent(lib, fwd, x, v):
    x.requires_grad_()
    (fwd.make_dual(x, v) ** 2).sum().backward()
    return fwd.unpack_dual(x.grad)


CASES = {
    "a chain": lambda lib, fwd, x, v: fwd.unpack_dual((fwd.make_dual(x, v).sin() * x).sum()),
    "both operands": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v) * fwd.make_dual(v, x) + 2),
    "a view": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).view(1, 3).t()),
    "several views": lambda lib, fwd, x, v: [fwd.unpack_dual(t) for t in fwd.make_dual(x, v).unbind()],
    "several results": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).sort()[0]),
    "a constant": lambda lib, fwd, x, v: fwd.unpack_dual(x * 2),
    "zeros_like": lambda lib, fwd, x, v: fwd.unpack_dual(lib.zeros_like(fwd.make_dual(x, v))),
    "floor": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).floor()),
    "a comparison": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v) > 0).tangent,
    "detach": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).detach()).tangent,
    "data": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).data).tangent,
    "unpacked": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.unpack_dual(fwd.make_dual(x, v)).primal * 2).tangent,
    "a cast": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).float()),
    "a norm of a product": lambda lib, fwd, x, v: fwd.unpack_dual((fwd.make_dual(x, v)[:, None] @ x[None]).norm()),
    "softmax": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).softmax(0)),
    "a write into a view": in_view,
    "writes into a dual": into_dual,
    "views of a primal": primal_of_a_written_base,
    "zero_": zeroed,
    "fill_": filled,
    "assignment": set_item,
    "a write to the primal": to_the_primal,
    "no_grad": without_gradients,
    "inference_mode": in_inference_mode,
    "reverse over forward": reverse_over_forward,
    "the gradient for the tangent": for_the_tangent,
    "forward over reverse": forward_over_reverse,
    "forward over reverse over reverse": forward_over_reverse_twice,
    "grad after backward": backward_leaves_no_tangent,
}


@pytest.mark.parametrize("name", CASES)
def test_tangents_are_those_of_torch(name):
    check(CASES[name], numbers(3), numbers(3))


COMPLEX = {
    "holomorphic": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).exp() * x),
    "conjugate": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).conj() * fwd.make_dual(x, v) * 1),
    "abs": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).abs()),
    "angle": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).angle()),
    "real": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v).real * 2),
    "vdot": lambda lib, fwd, x, v: fwd.unpack_dual(lib.vdot(fwd.make_dual(x, v), fwd.make_dual(v, x))),
    "a power": lambda lib, fwd, x, v: fwd.unpack_dual(fwd.make_dual(x, v) ** (2 - 1j)),
    "a write into a real view": lambda lib, fwd, x, v: _real_part_written(lib, fwd, x, v),
}


def _real_part_written(lib, fwd, x, v):
    z = fwd.make_dual(x, v) * 1
    lib.view_as_real(z)[:, 0].mul_(2)
    return fwd.unpack_dual(z)


@pytest.mark.parametrize("name", COMPLEX)
def test_tangents_of_complex_tensors_are_those_of_torch(name):
    check(COMPLEX[name], numbers(3, dtype="complex128"), numbers(3, dtype="complex128"))


def mistakes(lib, fwd):
    x, v = lib.ones(3), lib.ones(3)
    yield "no level", RuntimeError, lambda: fwd.make_dual(x, v)
    yield "nothing to exit", RuntimeError, fwd.exit_dual_level

    def inside(call):
        def run():
            with fwd.dual_level():
                call()

        return run

    yield "nested", RuntimeError, inside(fwd.enter_dual_level)
    yield "an integer primal", ValueError, inside(lambda: fwd.make_dual(lib.tensor([1, 2]), v))
    yield "an integer tangent", ValueError, inside(lambda: fwd.make_dual(x, lib.tensor([1, 2])))
    yield "another shape", RuntimeError, inside(lambda: fwd.make_dual(x, lib.ones(1)))
    yield "dual already", RuntimeError, inside(lambda: fwd.make_dual(fwd.make_dual(x, v), v))
    yield "a dual tangent", RuntimeError, inside(lambda: fwd.make_dual(x, fwd.make_dual(v, x)))
    yield "another level", RuntimeError, inside(lambda: fwd.make_dual(x, v, level=5))
    yield "no tensor to unpack", TypeError, inside(lambda: fwd.unpack_dual(1.0))


@BOTH
def test_mistakes_raise_the_same_classes(lib, fwd):
    for name, error, call in mistakes(lib, fwd):
        with pytest.raises(error):
            call()
            pytest.fail(f"{name} was accepted")
        with fwd.dual_level():
            pass  # the level was left all the same


@BOTH
def test_a_tangent_ends_with_its_level(lib, fwd):
    x = lib.ones(3)
    with fwd.dual_level():
        dual = fwd.make_dual(x, x)
        y = dual * 2
        assert fwd.unpack_dual(y).tangent is not None
    assert fwd.unpack_dual(y).tangent is None
    with fwd.dual_level():
        assert fwd.unpack_dual(y).tangent is None
        assert fwd.unpack_dual(dual * y).tangent is None
        assert fwd.unpack_dual(fwd.make_dual(dual, x)).tangent is not None


@pytest.mark.parametrize("values", [[1.0, 2.0], [[1.5, 2.0], [3.0, 4.0]], 3.0])
def test_a_dual_tensor_is_printed_with_its_tangent(values):
    texts = []
    for lib, fwd in ((torch, torch_fwd), (gradwire, our_fwd)):
        x = lib.tensor(values)
        with fwd.dual_level():
            texts.append(repr(fwd.make_dual(x, x * 2)))
    assert texts[0] == texts[1]


@BOTH
def test_a_level_decorates_a_function(lib, fwd):
    @fwd.dual_level()
    def slope(x, v):
        return fwd.unpack_dual(fwd.make_dual(x, v) ** 2).tangent

    assert slope(lib.tensor(3.0), lib.tensor(1.0)).item() == 6.0
    assert slope(lib.tensor(4.0), lib.tensor(1.0)).item() == 8.0


def test_a_level_frees_its_tangents_on_the_server():
    session = gradwire.current_session()
    x = gradwire.ones(1000)
    before = session.memory()["live_bytes"]
    with our_fwd.dual_level():
        y = our_fwd.make_dual(x, gradwire.ones(1000)) * 2
        during = session.memory()["live_bytes"]
    after = session.memory()["live_bytes"]
    assert during >= before + 2 * 4000
    assert after <= during - 4000
    assert y.sum().item() == 2000.0


def test_a_derivative_is_one_round_trip(round_trips):
    x, v = gradwire.tensor(numbers(3)), gradwire.tensor(numbers(3))
    round_trips()
    with our_fwd.dual_level():
        y = (our_fwd.make_dual(x, v) ** 3).sin().sum()
        tangent = our_fwd.unpack_dual(y).tangent
        assert our_fwd.unpack_dual(x * 2).tangent is None
    tangent.item()
    assert round_trips() == 1


@pytest.mark.parametrize("lookup", ["embedding", "embedding_bag"])
def test_shortening_the_rows_of_a_table_leaves_its_tangent(lookup):
    table, rows = [[3.0, 4.0], [0.1, 0.2], [6.0, 8.0]], [[0, 1], [2, 2]]

    def shortened(lib, fwd, name):
        weight = lib.tensor(table)
        with fwd.dual_level():
            dual = fwd.make_dual(weight, lib.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
            found = fwd.unpack_dual(getattr(lib.nn.functional, name)(lib.tensor(rows), dual, max_norm=1.0))
            return [t.numpy() for t in (found.primal, found.tangent, fwd.unpack_dual(dual).tangent, weight)]

    expected = shortened(torch, torch_fwd, "embedding")  # PyTorch has no forward mode for bags, which are means here
    if lookup == "embedding_bag":
        expected[:2] = [looked_up.mean(1) for looked_up in expected[:2]]
    for ours, theirs in zip(shortened(gradwire, our_fwd, lookup), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_levels_of_two_threads_do_not_meet():
    import threading

    found = {}

    def work(name, power):
        x = gradwire.tensor(2.0)
        with our_fwd.dual_level():
            y = our_fwd.make_dual(x, gradwire.tensor(1.0)) ** power
            found[name] = our_fwd.unpack_dual(y).tangent.item()

    threads = [threading.Thread(target=work, args=(n, n)) for n in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {2: 4.0, 3: 12.0, 4: 32.0}
