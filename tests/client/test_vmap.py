"""``vmap`` over the wire, against torch.func.vmap."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from functools import partial

import numpy as np
import pytest
import torch

import gradwire
from gradwire._core.composed.vmap import materialize
from gradwire._core.context.pytree import tree_flatten, tree_map, tree_unflatten
from gradwire.autograd.functional import hessian, jacobian

pytestmark = pytest.mark.usefixtures("session")
LIBS = (torch, gradwire)
BOTH = pytest.mark.parametrize("lib", LIBS, ids=["torch", "gradwire"])
Pair = namedtuple("Pair", "first second")


def draw(*shape):
    return np.random.default_rng().standard_normal(shape)


def same(found, expected):
    np.testing.assert_equal(shapes(found), shapes(expected))
    for mine, theirs in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


def leaves(tree):
    return [np.asarray(v.detach().numpy()) for v in tree_flatten(tree)[0] if hasattr(v, "detach")]


def shapes(tree):
    return tree_map(lambda v: tuple(v.shape) if hasattr(v, "shape") else v, tree)


def both(func, *arrays, **options):
    """What each library's vmap makes of ``func(lib, ...)``."""
    answers = []
    for lib in LIBS:
        args = [tree_map(lib.tensor, x) for x in arrays]
        answers.append(lib.vmap(partial(func, lib), **options)(*args))
    return answers


A, B, C = (5, 3), (5, 3, 4), (5, 4, 2)
BY_NAME = {"in_dims": ({"u": 1, "v": None},)}
FIRST, SECOND = {"in_dims": (0, None)}, {"in_dims": (None, 0)}
NN = {lib: lib.nn.functional for lib in LIBS}
CASES = {
    "arithmetic": (lambda lib, x, y: x * y - 2 / (y * y + 1), (A, A), {}),
    "ranks differ": (lambda lib, x, y: x + y, ((5,), (5, 3)), {}),
    "unmapped": (lambda lib, x, y: x * y, (A, (4, 3)), FIRST),
    "second dim": (lambda lib, x: x.cumsum(0), ((3, 5),), {"in_dims": 1}),
    "last dim": (lambda lib, x: x.exp(), (B,), {"in_dims": -1}),
    "out last": (lambda lib, x: x.exp(), (B,), {"out_dims": -1}),
    "out middle": (lambda lib, x: (x, x.sum()), (B,), {"out_dims": (1, 0)}),
    "matrix times vector": (lambda lib, x, y: x @ y, (B, (5, 4)), {}),
    "matrix times matrix": (lambda lib, x, y: x @ y, (B, C), {}),
    "shared matrix": (lambda lib, x, y: x @ y, ((5, 3), (3, 2)), FIRST),
    "shared vector": (lambda lib, x, y: y @ x, ((5, 3, 4), (3,)), FIRST),
    "dot": (lambda lib, x, y: lib.dot(x, y), (A, A), {}),
    "einsum": (lambda lib, x, y: lib.einsum("ij,jk->ki", x, y), (B, C), {}),
    "linear": (lambda lib, x, w, b: NN[lib].linear(x, w, b), ((5, 2, 3), (5, 4, 3), (5, 4)), {}),
    "reductions": (lambda lib, x: (x.sum(), x.mean(0), x.var(1), x.amax((0, 1)), x.prod(1)), (B,), {}),
    "softmax": (lambda lib, x: x.softmax(0), (B,), {}),
    "argmax": (lambda lib, x: (x.argmax(), x.argmax(1)), (B,), {}),
    "views": (lambda lib, x: x.t().reshape(-1, 2).unsqueeze(0).squeeze(0).flip(0), (B,), {}),
    "permuted": (lambda lib, x: x.permute(2, 0, 1).contiguous().view(-1), ((5, 2, 3, 4),), {}),
    "indexing": (lambda lib, x: (x[0], x[:, 1:], x[..., None], x[[0, 2]], x[1, [0, 1]]), (B,), {}),
    "split": (lambda lib, x: tuple(x.split(2, 1)) + tuple(x.unbind(0)), (B,), {}),
    "joins": (lambda lib, x, y: (lib.cat([x, y], 1), lib.stack([x, x * 2], -1)), ((5, 3, 4), (3, 2)), FIRST),
    "sorting": (lambda lib, x: (*x.sort(1), *x.topk(2, 0)), (B,), {}),
    "where": (lambda lib, x: lib.where(x > 0, x, x * 0.1), (B,), {}),
    "comparison": (lambda lib, x, y: (x > y, (x == x).all()), (A, (3,)), FIRST),
    "casts": (lambda lib, x: x.to(lib.float32) * lib.ones((), dtype=lib.float64), (A,), {}),
    "promotion": (lambda lib, x, y: x.float() * y, ((5,), (3,)), FIRST),
    "likes": (lambda lib, x: lib.ones_like(x) + lib.zeros(3, dtype=x.dtype), (A,), {}),
    "conv2d": (lambda lib, x, w: NN[lib].conv2d(x, w, padding=1), ((5, 2, 3, 6, 6), (4, 3, 3, 3)), FIRST),
    "conv2d of weights": (lambda lib, x, w: NN[lib].conv2d(x, w), ((2, 3, 6, 6), (5, 4, 3, 3, 3)), SECOND),
    "conv2d of both": (
        lambda lib, x, w, b: NN[lib].conv2d(x, w, b, stride=2), ((5, 3, 6, 6), (5, 4, 3, 3, 3), (5, 4)), {}
    ),
    "pooling": (lambda lib, x: NN[lib].max_pool2d(x, 2), ((5, 2, 3, 6, 6),), {}),
    "layer norm": (lambda lib, x, w: NN[lib].layer_norm(x, (4,), w), (B, (5, 4)), {}),
    "batch norm": (lambda lib, x: NN[lib].batch_norm(x, None, None, training=True), ((5, 4, 3),), {}),
    "mse": (lambda lib, x, y: NN[lib].mse_loss(x, y), (B, B), {}),
    "attention": (
        lambda lib, q, k: NN[lib].scaled_dot_product_attention(q, k, k, is_causal=True),
        ((5, 2, 4, 3), (5, 2, 4, 3)),
        {},
    ),
    "chunks": (lambda lib, x: x.sin().sum(0), (B,), {"chunk_size": 2}),
    "not mapped out": (lambda lib, x: (x, lib.ones(2)), (A,), {"out_dims": (0, None)}),
    "same for all": (lambda lib, x: lib.arange(3), (A,), {}),
    "triangles": (lambda lib, x: (x.tril(), x.diagonal(), x.trace()), ((5, 4, 4),), {}),
    "linear algebra": (lambda lib, x: (lib.det(x), lib.inverse(x)), ((5, 3, 3),), {}),
    "gather": (lambda lib, x: x.gather(1, x.argsort(1)), (B,), {}),
    "one hot": (lambda lib, x: NN[lib].one_hot(x.argmax(1), 4), (B,), {}),
    "dicts": (lambda lib, x: {"a": x["u"], "b": [*x["v"]]}, ({"u": A, "v": (A, A)},), {}),
    "dims of a dict": (lambda lib, x: x["u"] + x["v"], ({"u": (3, 5), "v": (3,)},), BY_NAME),
    "no samples": (lambda lib, x: x.sin().sum(0), ((0, 3),), {}),
}  # fmt: skip


def drawn(spec):
    if isinstance(spec, dict):
        return {k: drawn(v) for k, v in spec.items()}
    if spec and isinstance(spec[0], tuple):
        return tuple(drawn(s) for s in spec)
    return draw(*spec)


@pytest.mark.parametrize("case", CASES)
def test_mapped_functions(case):
    func, specs, options = CASES[case]
    expected, found = both(func, *[drawn(s) for s in specs], **options)
    same(found, expected)


UNDIFFERENTIATED = ("argmax", "comparison", "one hot", "same for all", "likes")


@pytest.mark.parametrize("case", [c for c in CASES if c not in UNDIFFERENTIATED])
def test_gradients_through_mapped_functions(case):
    func, specs, options = CASES[case]
    arrays = [drawn(s) for s in specs]
    answers = []
    for lib in LIBS:
        args = [tree_map(partial(lib.tensor, requires_grad=True), a) for a in arrays]
        results = lib.vmap(partial(func, lib), **options)(*args)
        total = sum((r * r).sum().double() for r in tree_flatten(results)[0] if r.requires_grad)
        total.backward()
        answers.append([t.grad for t in tree_flatten(tuple(args))[0]])
    same(answers[1], answers[0])


ALONE = ("dicts", "no samples", "same for all")


def test_nested_maps():
    x, y = draw(2, 3, 4), draw(3, 4)
    answers = []
    for lib in LIBS:
        inner = lib.vmap(lambda a, b: (a * b).cumsum(0), in_dims=(0, 0), out_dims=1)
        outer = lib.vmap(inner, in_dims=(0, None), out_dims=2)
        answers.append(outer(lib.tensor(x), lib.tensor(y)))
    same(answers[1], answers[0])


@pytest.mark.parametrize("case", [c for c in CASES if not CASES[c][2] and c not in ALONE])
def test_mapped_functions_in_a_second_map(case):
    func, specs, _ = CASES[case]
    arrays = [np.stack([drawn(s) for _ in range(2)], 1) for s in specs]
    answers = [lib.vmap(lib.vmap(partial(func, lib)), in_dims=1, out_dims=1)(*map(lib.tensor, arrays)) for lib in LIBS]
    same(answers[1], answers[0])


def test_a_map_in_a_map_of_another_argument():
    x, y = draw(4, 2), draw(3, 2)
    answers = []
    for lib in LIBS:
        pairs = lib.vmap(lambda a, lib=lib: lib.vmap(lambda b: a @ b)(lib.tensor(y)))
        answers.append(pairs(lib.tensor(x)))
    same(answers[1], answers[0])


def test_closures_get_gradients():
    x, w = draw(5, 3), draw(3, 2)
    grads = []
    for lib in LIBS:
        weight = lib.tensor(w, requires_grad=True)
        out = lib.vmap(lambda v, weight=weight: (v @ weight).tanh())(lib.tensor(x))
        assert out.requires_grad and not out.is_leaf
        out.sum().backward()
        grads.append(weight.grad)
    same(grads[1], grads[0])


def test_second_derivatives_through_a_map():
    x = draw(4, 3)
    answers = []
    for lib in LIBS:
        leaf = lib.tensor(x, requires_grad=True)
        (first,) = lib.autograd.grad(lib.vmap(lambda v: (v.exp() * v.sum()).sum())(leaf).sum(), leaf, create_graph=True)
        answers.append(lib.autograd.grad((first * first).sum(), leaf))
    same(answers[1], answers[0])


def test_keyword_arguments_are_not_mapped():
    x, k = draw(5, 3), draw(2, 3)
    answers = [lib.vmap(lambda v, k: v + k.sum(0))(lib.tensor(x), k=lib.tensor(k)) for lib in LIBS]
    same(answers[1], answers[0])


def test_named_tuples_and_ordered_dicts():
    x = draw(5, 3)
    answers = []
    for lib in LIBS:
        t = lib.tensor(x)
        answers.append(lib.vmap(lambda p: OrderedDict(z=Pair(p.first, p.second * 2)))(Pair(t, t)))
    assert isinstance(answers[1]["z"], Pair)
    same(answers[1], answers[0])


def test_in_place_on_samples_writes_to_the_whole():
    x = draw(5, 3)
    for lib in LIBS:
        t = lib.tensor(x)

        def write(v):
            v.mul_(2)
            v[0] = 7.0
            return v.sum()

        lib.vmap(write)(t)
        np.testing.assert_allclose(t.numpy()[:, 1:], x[:, 1:] * 2)
        np.testing.assert_allclose(t.numpy()[:, 0], 7.0)


def test_in_place_with_gradients():
    x = draw(5, 3)
    grads = []
    for lib in LIBS:
        leaf = lib.tensor(x, requires_grad=True)

        def write(v):
            out = v * 2
            out[0] *= v[1]
            out.exp_()
            return out

        lib.vmap(write)(leaf).sum().backward()
        grads.append(leaf.grad)
    same(grads[1], grads[0])


# What cannot be mapped

X = draw(3, 2)
Y = draw(4, 2)
ERRORS = {
    "no inputs": lambda lib, x, y: lib.vmap(lambda: lib.ones(1))(),
    "sizes differ": lambda lib, x, y: lib.vmap(lib.add)(x, y),
    "in_dims None": lambda lib, x, y: lib.vmap(lib.sin, in_dims=None)(x),
    "nothing mapped": lambda lib, x, y: lib.vmap(lib.sin, in_dims=(None,))(x),
    "a number mapped": lambda lib, x, y: lib.vmap(lib.mul)(x, 2),
    "dimension out of range": lambda lib, x, y: lib.vmap(lib.sin, in_dims=2)(x),
    "in_dims is a string": lambda lib, x, y: lib.vmap(lib.sin, in_dims="a")(x),
    "in_dims holds a string": lambda lib, x, y: lib.vmap(lib.sin, in_dims=("a",))(x),
    "in_dims too long": lambda lib, x, y: lib.vmap(lib.sin, in_dims=(0, 0))(x),
    "in_dims is a list": lambda lib, x, y: lib.vmap(lib.sin, in_dims=[0])(x),
    "a 0-dim tensor": lambda lib, x, y: lib.vmap(lib.sin)(lib.tensor(1.0)),
    "returns a number": lambda lib, x, y: lib.vmap(lambda v: 3)(x),
    "returns None": lambda lib, x, y: lib.vmap(lambda v: None)(x),
    "out_dims out of range": lambda lib, x, y: lib.vmap(lib.sin, out_dims=5)(x),
    "out_dims too long": lambda lib, x, y: lib.vmap(lib.sin, out_dims=(0, 1))(x),
    "out_dims None for a mapped result": lambda lib, x, y: lib.vmap(lib.sin, out_dims=None)(x),
    "out_dims is a string": lambda lib, x, y: lib.vmap(lib.sin, out_dims="a")(x),
    "out_dims of another dict": lambda lib, x, y: lib.vmap(lambda v: {"a": v, "b": v}, out_dims={"a": 0})(x),
    "unknown randomness": lambda lib, x, y: lib.vmap(lib.sin, randomness="no"),
    "chunk_size 0": lambda lib, x, y: lib.vmap(lib.sin, chunk_size=0),
    "random numbers": lambda lib, x, y: lib.vmap(lambda v: lib.randn(2))(x),
    "random numbers like": lambda lib, x, y: lib.vmap(lib.rand_like)(x),
    "dropout": lambda lib, x, y: lib.vmap(NN[lib].dropout)(x),
    "item": lambda lib, x, y: lib.vmap(lambda v: v.sum().item())(x),
    "bool": lambda lib, x, y: lib.vmap(lambda v: v if v.sum() > 0 else -v)(x),
    "numpy": lambda lib, x, y: lib.vmap(lambda v: lib.tensor(v.numpy()))(x),
    "tolist": lambda lib, x, y: lib.vmap(lambda v: lib.tensor(v.tolist()))(x),
    "float": lambda lib, x, y: lib.vmap(lambda v: lib.tensor(float(v.sum())))(x),
    "nonzero": lambda lib, x, y: lib.vmap(lambda v: v.nonzero())(x),
    "mask": lambda lib, x, y: lib.vmap(lambda v: v[v > 0])(x),
    "write to what is shared": lambda lib, x, y: lib.vmap(lambda v: lib.zeros(2, dtype=v.dtype).add_(v))(x),
    "write random numbers to what is shared": (
        lambda lib, x, y: lib.vmap(lambda v: y.normal_(), randomness="different")(x)
    ),
    "backward inside": lambda lib, x, y: lib.vmap(lambda v: x.requires_grad_().sum().backward() or v)(x),
    "not a function": lambda lib, x, y: lib.vmap(3)(x),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_of_the_same_class(case):
    raised = []
    for lib in LIBS:
        with pytest.raises((RuntimeError, ValueError, IndexError, TypeError)) as caught:
            ERRORS[case](lib, lib.tensor(X), lib.tensor(Y))
        raised.append(caught.value)
    theirs = next(c for c in type(raised[0]).__mro__ if c.__module__ == "builtins")
    assert isinstance(raised[1], theirs), f"{raised[1]!r} instead of {theirs.__name__}"


def test_a_sample_cannot_be_read_after_its_map():
    kept = []
    gradwire.vmap(lambda v: kept.append(v) or v)(gradwire.tensor(X))
    with pytest.raises(RuntimeError):
        kept[0].sum().item()
    assert "outside" in repr(kept[0])


def test_a_mapped_tensor_prints_all_samples():
    printed = []
    for lib in LIBS:
        lib.vmap(lambda v: printed.append(repr(v)) or v)(lib.tensor(X))
        lib.vmap(lib.vmap(lambda v: printed.append(repr(v)) or v))(lib.tensor(X))
    assert printed[2:] == printed[:2]


@BOTH
def test_running_averages_that_samples_share_cannot_be_moved(lib):
    layer = lib.nn.BatchNorm1d(4)
    with pytest.raises(RuntimeError):
        lib.vmap(layer)(lib.ones(3, 5, 4))
    layer.eval()
    assert tuple(lib.vmap(layer)(lib.ones(3, 5, 4)).shape) == (3, 5, 4)


def test_running_averages_of_each_sample_are_moved():
    x, mean, var = draw(3, 5, 4), draw(3, 4), draw(3, 4) ** 2
    answers = []
    for lib in LIBS:
        averages = lib.tensor(mean), lib.tensor(var)
        move = lib.vmap(lambda v, m, s, lib=lib: NN[lib].batch_norm(v, m, s, training=True))
        answers.append((move(lib.tensor(x), *averages), *averages))
    same(answers[1], answers[0])


def test_many_models_at_once():
    answers = []
    models = [
        [lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.Tanh(), lib.nn.Linear(5, 2)) for _ in "abc"] for lib in LIBS
    ]
    for theirs, mine in zip(*models, strict=True):
        mine.load_state_dict({k: gradwire.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = draw(6, 4).astype("float32")
    for lib, group in zip(LIBS, models, strict=True):
        parameters, buffers = lib.func.stack_module_state(group)
        run = partial(lib.func.functional_call, group[0])
        out = lib.vmap(lambda p, b, v, run=run: run((p, b), (v,)), (0, 0, None))(parameters, buffers, lib.tensor(x))
        out.square().sum().backward()
        answers.append((out, *(p.grad for p in parameters.values())))
    for mine, theirs in zip(answers[1], answers[0], strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-4)


# Random numbers

RANDOM = {
    "randn": lambda lib, v: lib.randn(3),
    "rand": lambda lib, v: lib.rand(2, 3),
    "randint": lambda lib, v: lib.randint(0, 1000000, (3,)),
    "randperm": lambda lib, v: lib.randperm(40),
    "rand_like": lambda lib, v: lib.rand_like(v),
    "dropout": lambda lib, v: NN[lib].dropout(lib.ones(64)),
    "dropout of a sample": lambda lib, v: NN[lib].dropout(v[0] * 0 + lib.ones(64)),
    "in place": lambda lib, v: (v * 1).normal_(),
    "alpha_dropout": lambda lib, v: NN[lib].alpha_dropout(lib.ones(64), training=True),
    "feature_alpha_dropout": lambda lib, v: NN[lib].feature_alpha_dropout(lib.ones(1, 64, 2), training=True),
}


@pytest.mark.parametrize("case", RANDOM)
@BOTH
def test_different_random_numbers(lib, case):
    out = lib.vmap(lambda v: RANDOM[case](lib, v), randomness="different")(lib.tensor(X)).numpy()
    assert len({row.tobytes() for row in out}) == 3


@pytest.mark.parametrize("case", RANDOM)
@BOTH
def test_the_same_random_numbers(lib, case):
    if case == "dropout of a sample":
        inputs = lib.zeros(3, 2)
    else:
        inputs = lib.tensor(X)
    out = lib.vmap(lambda v: RANDOM[case](lib, v), randomness="same")(inputs).numpy()
    assert len({row.tobytes() for row in out}) == 1


def test_the_same_random_numbers_in_every_chunk():
    x = gradwire.zeros(5, 2)
    out = gradwire.vmap(lambda v: v + gradwire.rand(2), randomness="same", chunk_size=2)(x).numpy()
    assert len({row.tobytes() for row in out}) == 1


@pytest.mark.parametrize("dims", [(0, 0), (0, 1), (0, None), (None, 1), (1, 0)])
@BOTH
def test_normal_numbers_that_differ_are_those_of_one_draw_for_all_samples(lib, dims):
    mean, std = (lib.arange(1.0, 4.0) if d is None else lib.arange(1.0, 10.0).view(3, 3) for d in dims)
    lib.manual_seed(5)
    mapped = lib.vmap(lib.normal, in_dims=dims, randomness="different")(mean, std)
    full = [t.expand(3, 3) if d is None else t.movedim(d, 0) for t, d in zip((mean, std), dims, strict=True)]
    lib.manual_seed(5)
    assert (mapped - lib.normal(*full)).abs().max().item() == 0


def test_random_permutations_are_permutations():
    out = gradwire.vmap(lambda v: gradwire.randperm(7), randomness="different")(gradwire.zeros(4)).numpy()
    assert (np.sort(out, 1) == np.arange(7)).all()


def test_different_at_one_level_and_the_same_at_another():
    def inner(v):
        return gradwire.vmap(lambda u: gradwire.rand(4), randomness="same")(v)

    out = gradwire.vmap(inner, randomness="different")(gradwire.zeros(3, 2)).numpy()
    assert (out[:, 0] == out[:, 1]).all() and len({row.tobytes() for row in out}) == 3


def test_dropout_in_evaluation_draws_nothing():
    x = gradwire.tensor(X)
    assert gradwire.vmap(lambda v: gradwire.nn.functional.dropout(v, 0.5, False))(x).tolist() == x.tolist()


# Many gradients at once


def test_a_batch_of_gradients():
    x, seeds = draw(3, 2), draw(7, 3)
    answers = []
    for lib in LIBS:
        leaf = lib.tensor(x, requires_grad=True)
        other = lib.tensor(x, requires_grad=True)
        out = (leaf.exp() * other.sum(0)).sum(1)
        rows = lib.tensor(seeds)
        answers.append(lib.autograd.grad(out, (leaf, other), rows, is_grads_batched=True))
    same(answers[1], answers[0])


def test_a_batch_of_gradients_can_be_differentiated():
    x, seeds = draw(3), draw(4, 3)
    answers = []
    for lib in LIBS:
        leaf = lib.tensor(x, requires_grad=True)
        (rows,) = lib.autograd.grad(leaf**3, leaf, lib.tensor(seeds), is_grads_batched=True, create_graph=True)
        answers.append((rows, *lib.autograd.grad((rows * rows).sum(), leaf)))
    same(answers[1], answers[0])


def test_a_batch_of_gradients_for_an_unused_input():
    x = draw(3)
    for lib in LIBS:
        leaf, unused = lib.tensor(x, requires_grad=True), lib.tensor(x, requires_grad=True)
        seeds = lib.ones(4, 3, dtype=leaf.dtype)
        options = {"is_grads_batched": True, "retain_graph": True}
        out = leaf * 2
        assert lib.autograd.grad(out, (leaf, unused), seeds, allow_unused=True, **options)[1] is None
        zeros = lib.autograd.grad(out, (leaf, unused), seeds, materialize_grads=True, **options)[1]
        assert tuple(zeros.shape) == (3,)


BATCHED_ERRORS = {
    "no batch": lambda lib, out, w: lib.autograd.grad(out, w, lib.ones(2), is_grads_batched=True),
    "another shape": lambda lib, out, w: lib.autograd.grad(out, w, lib.ones(2, 3), is_grads_batched=True),
    "none": lambda lib, out, w: lib.autograd.grad(out.sum(), w, is_grads_batched=True),
    "none for a vector": lambda lib, out, w: lib.autograd.grad(out, w, is_grads_batched=True),
    "sizes differ": lambda lib, out, w: lib.autograd.grad(
        [out, out], w, [lib.ones(4, 2), lib.ones(3, 2)], is_grads_batched=True
    ),
}


@pytest.mark.parametrize("case", BATCHED_ERRORS)
def test_gradients_that_are_no_batch(case):
    raised = []
    for lib in LIBS:
        w = lib.ones(2, requires_grad=True)
        with pytest.raises((RuntimeError, ValueError)) as caught:
            BATCHED_ERRORS[case](lib, w * 2, w)
        raised.append(caught.value)
    theirs = next(c for c in type(raised[0]).__mro__ if c.__module__ == "builtins")
    assert isinstance(raised[1], theirs)


def test_vector_jacobian_products_inside_a_map():
    x, seeds = draw(3), draw(4, 3)
    answers = []
    for lib in LIBS:
        leaf = lib.tensor(x, requires_grad=True)
        out = leaf.sin() * leaf.sum()
        pull = lib.vmap(lambda v, out=out, leaf=leaf, lib=lib: lib.autograd.grad(out, leaf, v, retain_graph=True)[0])
        answers.append(pull(lib.tensor(seeds)))
    same(answers[1], answers[0])


LAYERS = {
    "convolution": (lambda F, x: F.conv2d(x, x[:, :, :2, :2] * 2, padding=1).tanh(), (2, 2, 4, 4)),
    "pooling": (lambda F, x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), (1, 2, 4, 4)),
    "norms": (lambda F, x: F.layer_norm(x, (4,), x[0, 0]) + F.softmax(x, -1), (2, 3, 4)),
    "cross entropy": (lambda F, x: F.cross_entropy(x, x.argmax(1), reduction="none"), (3, 4)),
    "attention": (lambda F, x: F.scaled_dot_product_attention(x, x, x), (2, 3, 4)),
    "indexing": (lambda F, x: x[[0, 1, 0]] * x[:, [1]].sum() + x[None, 1], (2, 3)),
    "batch norm": (lambda F, x: F.batch_norm(x, None, None, training=True), (4, 3)),
}


@pytest.mark.parametrize("case", LAYERS)
def test_vectorized_jacobians(case):
    func, shape = LAYERS[case]
    x = draw(*shape)
    expected = torch.autograd.functional.jacobian(lambda t: func(torch.nn.functional, t), torch.tensor(x))
    found = jacobian(lambda t: func(gradwire.nn.functional, t), gradwire.tensor(x), vectorize=True)
    same(found, expected)


def test_a_vectorized_hessian_is_one_round_trip(round_trips):
    x = gradwire.tensor(draw(4))
    found = hessian(lambda t: (t**3).sum() * t.prod(), x, vectorize=True)
    assert round_trips() == 0
    expected = torch.autograd.functional.hessian(lambda t: (t**3).sum() * t.prod(), torch.tensor(x.numpy()))
    round_trips()
    same(found, expected)
    assert round_trips() == 1


# Gradients for each sample


def test_gradients_per_sample_of_what_samples_share():
    x, w = draw(5, 3), draw(3)
    expected = torch.func.vmap(torch.func.grad(lambda w, v: (w * v).sin().sum()), (None, 0))(
        torch.tensor(w), torch.tensor(x)
    )

    def per_sample(v):
        own = materialize(gradwire.tensor(w)).detach().requires_grad_()
        return gradwire.autograd.grad((own * v).sin().sum(), own)[0]

    same(gradwire.vmap(per_sample)(gradwire.tensor(x)), expected)


def test_gradients_per_sample_in_nested_maps():
    x, y = draw(2, 3), draw(4, 3)
    grad = torch.func.grad(lambda a, b: (a * b).exp().sum())
    expected = torch.func.vmap(torch.func.vmap(grad, (None, 0)), (0, None))(torch.tensor(x), torch.tensor(y))

    def per_sample(a, b):
        own = materialize(a).detach().requires_grad_()
        return gradwire.autograd.grad((own * b).exp().sum(), own)[0]

    nested = gradwire.vmap(gradwire.vmap(per_sample, (None, 0)), (0, None))
    same(nested(gradwire.tensor(x), gradwire.tensor(y)), expected)


def test_materialize_outside_of_a_map_is_the_tensor_itself():
    x = gradwire.tensor(X)
    assert materialize(x) is x


def test_a_sum_over_samples_is_not_taken_for_a_gradient_of_one():
    w = gradwire.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="same for all"):
        gradwire.vmap(lambda v: gradwire.autograd.grad((w * v).sum(), w)[0])(gradwire.tensor(X, dtype=gradwire.float32))


# The wire


def test_a_mapped_computation_is_one_round_trip(round_trips):
    x = gradwire.tensor(draw(64, 8))
    w = gradwire.tensor(draw(8, 8), requires_grad=True)
    out = gradwire.vmap(lambda v: (v @ w).relu().softmax(0) @ w)(x).sum()
    out.backward()
    gradient = w.grad
    assert round_trips() == 0
    gradwire.fetch(out, gradient)
    assert round_trips() == 1


def test_the_number_of_ops_does_not_grow_with_samples(session):
    def recorded(samples: int) -> int:
        x = gradwire.tensor(draw(samples, 3))
        before = session.ops
        gradwire.vmap(lambda v: (v * 2).sum())(x).tolist()
        return session.ops - before

    # where a frame is cut, modes and releases may be told again: a busy machine cuts more often
    few, many = (min(recorded(samples) for _ in range(5)) for samples in (2, 200))
    assert abs(few - many) <= 2


def test_trees_come_apart_and_together():
    tree = {"a": [1, (2, 3)], "b": Pair(4, OrderedDict(c=5)), "d": None}
    found, spec = tree_flatten(tree)
    assert found == [1, 2, 3, 4, 5, None]
    assert tree_unflatten(found, spec) == tree
    with pytest.raises(ValueError):
        tree_unflatten([1], spec)
