"""Details of results under torch and gradwire: output slot, strides, node, version."""

from __future__ import annotations

import warnings

import pytest
from tests.side_by_side import Claims, doubling, leaf, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


@claim
def a_lone_slice_is_an_op_and_a_whole_tuple_is_an_alias(torch):
    x = leaf(torch, 2, 3) * 1
    return [v.grad_fn.name() for v in (x[:], x[0:2], x[:5], x[:, :], x[0:2, :], x[...], x[()], x[1:], x[None])]


@claim
def a_copy_keeps_strides_also_of_extents_of_one(torch):
    x = leaf(torch, 1, 3)[:, :2]
    y = torch.ones(3, 1, 2)[:, :, :1]
    z = torch.ones(0, 6)[::2, :-1]
    copies = [x.clone(), x.double(), x.to(torch.complex64), x.long(), x.to(torch.float32, copy=True)]
    return [list(c.stride()) for c in (*copies, y.double(), z.long(), z.clone(), x.sin())]


@claim
def broadcast_tensors_hands_back_what_has_the_shape(torch):
    x = leaf(torch, 2, 3)
    a, b = torch.broadcast_tensors(x, x[:1])
    return a is x, b is x, b._base is x, torch.broadcast_tensors(x)[0] is x


@claim
def a_result_without_history_is_output_0(torch):
    x = torch.ones(4)
    found = [t.output_nr for t in (*x.split([1, 3]), *x.sort(), *torch.var_mean(x))]
    y = leaf(torch, 4) * 1
    return found, [t.output_nr for t in (*y.split([1, 3]), *y.max(0))]


@claim
def a_second_result_can_be_a_leaf_with_hooks(torch):
    _, mean = torch.var_mean(torch.arange(4.0), 0)
    mean.requires_grad = True
    seen = []
    mean.register_hook(lambda g: seen.append(g.item()))
    (mean * mean).backward()
    return mean.grad, seen


@claim
def mark_dirty_counts_as_a_write(torch):
    doubled = doubling(torch)
    constant, result = torch.ones(3), leaf(torch, 3) * 1
    doubled.apply(constant)
    doubled.apply(result)
    x = leaf(torch, 3)
    return constant._version, result._version, raises(lambda: doubled.apply(x)), x._version


@claim
def a_changed_input_loses_its_history_in_an_alias_without_gradients(torch):
    x = leaf(torch, 3) * 1
    with torch.no_grad():
        y = doubling(torch).apply(x)
    return y is x, y.requires_grad, y.is_leaf, x.requires_grad, x


@claim
def writing_a_number_of_dimensions_0_is_a_fill(torch):
    x, y = leaf(torch, 3) * 1, leaf(torch, 1)[0] * 1
    x[:] = x.sum()
    y[()] = y * 2
    return x.grad_fn.name(), y.grad_fn.name()


@claim
def writing_at_indices_asks_for_the_same_dtype(torch):
    x = torch.zeros(4, dtype=torch.int64)

    def at(key, value):
        def write():
            x[key] = value

        return raises(write)

    index = torch.tensor([0])
    return (
        at(index, torch.ones(1)), at([0, 1], torch.ones(2, dtype=torch.complex64)), at(index, torch.tensor(2.0)),
        at(index, 2.0), at(0, torch.tensor(3.0)), at(slice(None), torch.ones(4)), x,
    )  # fmt: skip


@claim
def backward_through_a_write_to_nothing(torch):
    x = leaf(torch, 3, 4)
    y = (x * 1)[None, :]
    left, _ = y[...].split(2, 2)
    y[1:, 1:] *= 0.5
    (left * 3).sum().backward(create_graph=True)
    return x.grad.detach()


@claim
def complex_view_of_one_row_with_an_odd_stride(torch):
    x = torch.ones(2, 3)[:, :2]
    return (
        torch.view_as_complex(x[:1]),
        raises(lambda: torch.view_as_complex(x)),
        raises(lambda: torch.view_as_complex(x[:0])),
    )


@claim
def is_leaf_looks_at_the_history_of_a_view_and_grad_does_not(torch):
    several = (leaf(torch, 4) * 1).split(2)
    with torch.no_grad():
        several[0].sub_(0.5)
    base = torch.zeros(3)
    view = base[1:]
    base.mul_(leaf(torch, 3))
    return raises(lambda: several[1].is_leaf), several[1].grad, view.is_leaf


@claim
def what_has_no_history_does_not_look_at_that_of_a_stale_view(torch):
    x = leaf(torch, 3)
    with torch.no_grad():
        view = x[:1]
    y = x[:] * 1
    several = y.split(1)
    with torch.no_grad():
        y.mul_(0.5)
    looks = (lambda t: t.long(), lambda t: t > 0, lambda t: t.argmax(), lambda t: t.sin())
    return [raises(lambda look=look, t=t: look(t)) for t in (view, several[0]) for look in looks * 2]


@claim
def imaginary_parts_are_copied_with_a_warning(torch):
    z = torch.ones(3, dtype=torch.complex64)
    torch.zeros(3).copy_(z)
    return z.to(torch.complex128)


@claim
def imaginary_parts_are_lost_with_a_warning_at_each_cast(torch):
    z, x = torch.ones(3, dtype=torch.complex64), torch.zeros(3)
    found = []
    for cast in (lambda: z.float(), lambda: z.long(), lambda: z.bool(), lambda: z.double()) * 2:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cast()
        found.append(len(caught))
    x[0], x[:] = z[0], z[0]
    return found


@claim
def a_copy_into_integers_has_no_history(torch):
    x = leaf(torch, 3) * 1
    i, b = torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.bool)
    i.copy_(x), b.copy_(x)
    j = torch.zeros(3, dtype=torch.int64)
    j[:2] = x[:2]
    return i, b, j


@claim
def lerp_is_not_there_for_integers(torch):
    x = torch.ones(3, dtype=torch.int64)
    return raises(lambda: torch.lerp(x, x, 0.25)), raises(lambda: x.lerp_(x, 0.25))


@claim
def what_every_tensor_has_is_not_deleted(torch):
    x = leaf(torch, 2)
    x.grad = torch.ones(2)
    refused = [raises(lambda name=name: delattr(x, name)) for name in ("data", "requires_grad", "shape", "grad_fn")]
    del x.grad
    return refused, x.grad is None, x.requires_grad


@pytest.mark.parametrize("claim", list(claim), ids=name_of)
def test_is_as_in_pytorch(claim):
    same(claim)
