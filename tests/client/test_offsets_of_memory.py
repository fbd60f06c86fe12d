"""``as_strided`` counts an explicit offset from the start of the storage, on any view."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, name_of, raises, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


@claim
def values_and_gradients(torch):
    base = torch.arange(12.0).requires_grad_()
    memory = base * 1
    view = memory.view(6, 2)[3:]
    found = []
    for offset in (None, 0, 4, 6):
        shown = view.as_strided((3, 2), (2, 1), offset)
        gradients = torch.autograd.grad((shown * shown).sum(), [view, memory, base], retain_graph=True)
        found += [shown, shown.storage_offset(), gradients]
    return found


@claim
def writes(torch):
    base = torch.arange(12.0).requires_grad_()
    memory = base * 1
    part = memory.view(6, 2)[3:].as_strided((2, 2), (2, 1), 5)
    part.mul_(10)
    return memory, part, torch.autograd.grad((memory * memory).sum(), base)


@claim
def forms(torch):
    view = torch.arange(12.0)[2:8]
    filling = -torch.ones(2)
    itself = torch.arange(12.0)[2:8]
    itself.as_strided_((2, 2), (1, 2), 1)
    return (
        itself, torch.as_strided_copy(view, (3,), (1,), 1), torch.as_strided(view, (2,), (1,)),
        torch.as_strided(view, (2,), (1,), storage_offset=0), view.as_strided_scatter(filling, (2,), (2,)),
        torch.as_strided_scatter(view, filling, (2,), (2,), 3), view.data.as_strided((2,), (1,), 0),
        view[1:][::2].as_strided((2,), (3,), 1),
    )  # fmt: skip


@claim
def of_views_between_dtypes(torch):
    numbers = torch.view_as_complex(torch.arange(12.0).view(6, 2))[2:]
    return (
        numbers.as_strided((2,), (1,), 1), numbers.real.as_strided((3,), (1,), 1),
        torch.view_as_real(numbers).as_strided((3,), (1,), 2), numbers.imag.storage_offset(),
    )  # fmt: skip


@claim
def under_transforms(torch):
    rows = torch.arange(16.0).view(4, 4)
    return (
        torch.func.vmap(lambda x: x.as_strided((2,), (1,), 1))(rows).contiguous(),
        torch.func.vmap(lambda x: x.as_strided((2,), (1,), 5))(rows[1:3]).contiguous(),
        torch.func.grad(lambda x: x[1:].as_strided((2,), (1,), 0).sum())(torch.arange(4.0)),
        torch.func.jvp(lambda x: x[1:].as_strided((2,), (1,), 0), (rows[0],), (rows[1],)),
    )


@claim
def where_the_view_begins_may_change(torch):
    found = []
    memory = torch.arange(24.0).requires_grad_()
    for i in (0, 0, 0, 1, 2, 3, 1, 0):  # a step that repeats, with another number
        view = (memory * 2).view(4, 6)[i]
        shown = view.as_strided((2,), (1,), 7)
        found += [shown, torch.autograd.grad((shown * view[:2]).sum(), memory)]
    return found


@claim
def of_gradients_and_data(torch):
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(3, 3, requires_grad=True)
    weights = torch.arange(15.0).view(5, 3)
    torch.cat([x, y]).mul(weights).sum().backward()
    z = torch.zeros(3)
    z.data = torch.arange(9.0)[3:6]
    return (
        y.grad, y.grad.as_strided((2,), (1,)), z.as_strided((2,), (1,), 0), z.storage_offset(),
        z.data.as_strided((2,), (1,), 1), torch.unsafe_split(torch.arange(6.0), 3)[1].as_strided((2,), (1,), 0),
    )  # fmt: skip


@claim
def what_is_refused(torch):
    view = torch.arange(6.0)[2:]
    return [
        raises(lambda: view.as_strided((2,), (1,), -1)), raises(lambda: view.as_strided((2,), (1,), 1.5)),
        raises(lambda: view.as_strided((2,), (1,), 5).sum().item()),
        raises(lambda: view.as_strided((2,), (1, 1), 0)),
    ]  # fmt: skip


@pytest.mark.parametrize("claimed", claim, ids=name_of)
def test_as_in_pytorch(claimed):
    same(claimed)
