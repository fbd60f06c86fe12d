"""Common mistakes raise PyTorch's exception class and name the op, shape or value."""

from __future__ import annotations

import copy

import pytest
from tests.side_by_side import same

import gradwire

pytestmark = pytest.mark.usefixtures("session")


def leaf(torch, *values):
    return torch.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


def matrix(torch):
    return torch.arange(6.0).reshape(2, 3)


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


def cyclic(*entries):
    found = list(entries)
    found.append(found)
    return found


def twice(torch):
    y = (leaf(torch) ** 2).sum()
    y.backward()
    y.backward()


MISTAKES = {
    "requires_grad on integers": lambda t: t.tensor([1, 2], requires_grad=True),
    "backward with no graph": lambda t: t.ones(()).backward(),
    "non-scalar without gradient": lambda t: (leaf(t) * 2).backward(),
    "second backward": twice,
    "unused input of grad": lambda t: t.autograd.grad(leaf(t).sum(), leaf(t)),
    "wrong gradient shape": lambda t: (leaf(t) * 2).backward(t.ones(4)),
    "item of many": lambda t: t.ones(3).item(),
    "bool of many": lambda t: bool(t.ones(3)),
    "bool of none": lambda t: bool(t.ones(0)),
    "float of many": lambda t: float(t.ones(3)),
    "int of many": lambda t: int(t.ones(3)),
    "numpy of what requires grad": lambda t: leaf(t).numpy(),
    "numpy of a result": lambda t: (leaf(t) * 2).numpy(),
    "requires_grad_(False) on a result": lambda t: (leaf(t) * 2).requires_grad_(False),
    "retain_grad without grad": lambda t: t.ones(3).retain_grad(),
    "a hook without grad": lambda t: t.ones(3).register_hook(lambda g: g),
    "deepcopy of a result": lambda t: copy.deepcopy(leaf(t) * 2),
    "shapes that do not broadcast": lambda t: t.ones(2, 3) + t.ones(4),
    "shapes that do not multiply": lambda t: matrix(t) @ matrix(t),
    "einsum by numbers out of range": lambda t: t.einsum(matrix(t), [0, 52]),
    "einsum by something else than numbers": lambda t: t.einsum(matrix(t), 3),
    "einsum without an equation": lambda t: t.einsum(matrix(t)),
    "a view of another size": lambda t: matrix(t).view(4),
    "a view across memory": lambda t: matrix(t).t().view(6),
    "cat of other shapes": lambda t: t.cat([t.ones(2, 3), t.ones(2, 4)]),
    "stack of other shapes": lambda t: t.stack([t.ones(2), t.ones(3)]),
    "gather out of range": lambda t: matrix(t).gather(1, t.tensor([[0], [9]])),
    "negative integer power": lambda t: t.tensor([2]) ** -1,
    "minus on bool": lambda t: t.tensor([True]) - t.tensor([False]),
    "negative of bool": lambda t: -t.tensor([True]),
    "index out of range": lambda t: matrix(t)[5],
    "indices out of range": lambda t: matrix(t)[t.tensor([0, 7])],
    "too many indices": lambda t: matrix(t)[0, 0, 0],
    "dim out of range": lambda t: matrix(t).sum(4),
    "negative dim out of range": lambda t: matrix(t).softmax(-3),
    "float as index": lambda t: matrix(t)[1.0],
    "mask of another shape": lambda t: matrix(t)[t.tensor([True, False, True])],
    "negative slice step": lambda t: matrix(t)[::-1],
    "a loop over a scalar": lambda t: list(t.tensor(1.0)),
    "len of a scalar": lambda t: len(t.tensor(1.0)),
    "a tensor plus a string": lambda t: t.ones(2) + "a",
    "a tensor of strings": lambda t: t.tensor(["a"]),
    "a tensor of None": lambda t: t.tensor(None),
    "uneven lists": lambda t: t.tensor([[1.0], [1.0, 2.0]]),
    "integer division by zero": lambda t: t.tensor([1]) // t.tensor([0]),
    "transposing three dimensions with t": lambda t: t.ones(2, 2, 2).t(),
    "an expansion that shrinks": lambda t: t.ones(3).expand(2),
    "a squeeze of no dimension": lambda t: t.ones(2).squeeze(3),
    "permute with a dimension missing": lambda t: matrix(t).permute(0),
    "permute with a dimension twice": lambda t: matrix(t).permute(0, 0),
    "an in-place result of another shape": lambda t: t.ones(3).add_(t.ones(2, 3)),
    "an in-place op into integers": lambda t: t.ones(3, dtype=t.int64).add_(0.5),
    "an in-place op on a leaf": lambda t: leaf(t).mul_(2),
    "a matrix product of two dtypes": lambda t: t.ones(2, 2) @ t.ones(2, 2, dtype=t.float64),
    "a dot product of two lengths": lambda t: t.ones(2).dot(t.ones(3)),
    "where without a bool": lambda t: t.where(t.ones(2), t.ones(2), t.ones(2)),
    "a mask that is no bool": lambda t: t.ones(2).masked_fill(t.tensor([1, 0]), 0.0),
    "split into nothing": lambda t: t.ones(4).split(0),
    "chunk into nothing": lambda t: t.ones(4).chunk(0),
    "a negative size": lambda t: t.zeros(-2),
    "an assigned grad of another shape": lambda t: setattr(leaf(t), "grad", t.ones(4)),
    "an assigned grad that is no tensor": lambda t: setattr(leaf(t), "grad", 1.0),
    "materialize_grads against allow_unused": lambda t: t.autograd.grad(
        leaf(t).sum(), leaf(t), materialize_grads=True, allow_unused=False
    ),
    "a sequence that contains itself": lambda t: t.tensor(cyclic(0)),
    "a sequence that contains itself, of rows": lambda t: t.as_tensor([[1, 2], cyclic(0)]),
    "a sequence nested too deeply": lambda t: t.tensor(nested(500)),
    "a sequence of too many dimensions": lambda t: t.tensor(nested(130)),
    "no layout": lambda t: t.zeros(2, layout=3),
    "no layout of a copy in shape": lambda t: t.ones(2).new_full((2,), 1, layout="strided"),
    "no layout of a window": lambda t: t.hann_window(3, layout=3),
    "unique of slices without elements": lambda t: t.unique(t.ones(2, 0), dim=0),
    "unique_consecutive of slices without elements": lambda t: t.unique_consecutive(t.ones(0, 0), dim=0),
    "index_select of two from a 0-dim tensor": lambda t: t.ones(()).index_select(0, t.tensor([0, 0])),
    "isin of numbers": lambda t: t.isin(1, 2),
    "isin of complex numbers": lambda t: t.isin(t.ones(2), t.ones(2, dtype=t.complex64)),
    "isin of bools": lambda t: t.isin(t.ones(2), t.ones(2, dtype=t.bool)),
    "_make_subclass of no subclass": lambda t: t.Tensor._make_subclass(list, t.ones(2)),
    "an attribute that is not there": lambda t: t.ones(2).no_such_thing,
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake(what):
    same(MISTAKES[what])


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3,), (0,), (2, 3), (0, 3), (3, 0), (2, 3, 2), (2, 0, 3)])
def test_index_select_out_of_range(shape, dim):
    if dim < len(shape):
        same(lambda t: t.zeros(shape).index_select(dim, t.tensor([0, 5])).tolist())


def test_a_sparse_layout_is_refused():
    for make in (gradwire.zeros, gradwire.empty, gradwire.rand):
        with pytest.raises(NotImplementedError, match="sparse_coo"):
            make(2, layout=gradwire.sparse_coo)
    assert gradwire.zeros(2, layout=gradwire.strided).tolist() == [0, 0]


SAYS = {
    "the shapes": (lambda t: t.ones(2, 3) + t.ones(4), r"\[2, 3\].*\[4\]"),
    "the shapes of a product": (lambda t: matrix(t) @ matrix(t), r"\[2, 3\]"),
    "the dtype": (lambda t: t.tensor([1, 2]).requires_grad_(), "int64"),
    "the op of a write": (lambda t: leaf(t).mul_(2), "mul_"),
    "the shape of a root": (lambda t: (leaf(t) * 2).backward(), r"\[3\]"),
    "both shapes of a gradient": (lambda t: (leaf(t) * 2).backward(t.ones(4)), r"\[4\].*\[3\]"),
    "why a view is refused": (lambda t: (leaf(t) * 1).split(2)[0].mul_(2), "split"),
    "the dtypes of a grad": (lambda t: setattr(leaf(t), "grad", t.ones(3, dtype=t.float64)), "float64.*float32"),
    "the index of an unused input": (lambda t: t.autograd.grad(leaf(t).sum(), leaf(t)), "input 0.*allow_unused"),
}


@pytest.mark.parametrize("what", SAYS)
def test_an_error_says(what):
    attempt, text = SAYS[what]
    with pytest.raises(RuntimeError, match=text):
        attempt(gradwire)
