"""Writes through real views of complex tensors and complex views of real ones, under torch and gradwire."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.side_by_side import Claims, history, leaf, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


# Complex bases with real views


@claim
def a_write_into_the_real_part(torch):
    x = leaf(torch, 3)
    z = torch.complex(x, x * 2)
    z.real.mul_(3)
    (z * z.conj()).real.sum().backward()
    return z, x.grad, history(z)


@claim
def a_write_into_the_imaginary_part(torch):
    x, w = leaf(torch, 3), leaf(torch, 2)
    z = torch.complex(x, x * 2)
    z.imag[1:] = w * w
    torch.view_as_real(z).pow(2).sum().backward()
    return z, x.grad, w.grad


@claim
def a_real_view_of_a_changed_complex_base(torch):
    x = leaf(torch, 3)
    z = torch.complex(x, x * 2)
    parts = torch.view_as_real(z)
    real, imag = z.real, z.imag
    z.mul_(2 - 1j)
    (parts.pow(2).sum() + (real * torch.tensor([1.0, 2.0, 3.0])).sum() + imag[1]).backward()
    return parts, real, imag, x.grad


@claim
def a_real_view_of_a_part_of_a_changed_complex_base(torch):
    x = leaf(torch, 2, 3)
    z = torch.complex(x, x * 2)
    part = z[1, 1:].imag
    z.mul_(1j)
    (part * part).sum().backward()
    return part, x.grad


@claim
def a_real_view_of_a_complex_base_that_was_detached_and_changed(torch):
    found = []
    for retains in (False, True):
        base = torch.ones(1, 2, dtype=torch.complex128).requires_grad_()
        part = base[0:1]
        views = [part.imag, part.real, torch.view_as_real(part), part[0]]
        if retains:
            for view in views:
                view.retain_grad()
        base.detach_()
        base.mul_(2)
        for view in views:
            with suppress(RuntimeError):
                view.grad_fn  # PyTorch's first look fails an assertion of its own
            found += [view, view.is_leaf, (view * view).requires_grad]
    return found


@claim
def a_complex_view_of_a_real_base_that_was_detached_and_changed(torch):
    base = torch.ones(3, 2, dtype=torch.float64).requires_grad_()
    view = torch.view_as_complex(base[1:])
    base.detach_()
    base.mul_(2)
    with suppress(RuntimeError):
        view.grad_fn
    return view, view.is_leaf, (view * view).requires_grad


@claim
def a_complex_view_of_a_changed_real_base(torch):
    x = leaf(torch, 3, 2)
    y = x * 1
    z = torch.view_as_complex(y)
    y.mul_(3)
    (z * z).abs().sum().backward()
    return z, x.grad


@claim
def a_write_into_a_complex_view_of_a_real_base(torch):
    x = leaf(torch, 3, 2)
    y = x * 1
    z = torch.view_as_complex(y)
    z.mul_(1 + 2j)
    y[0].mul_(2)
    y.pow(2).sum().backward()
    return y, z, x.grad


@claim
def a_real_view_of_a_constant_complex_base(torch):
    z = torch.zeros(3, dtype=torch.complex64)
    w = leaf(torch, 3)
    z.real.copy_(w)
    (z * z).sum().real.backward()
    return z, w.grad


@claim
def a_view_through_both_kinds(torch):
    x = leaf(torch, 2, 2, 2)
    y = x * 1
    z = torch.view_as_complex(y)[1]
    again = torch.view_as_real(z)[:, 1]
    y.mul_(2)
    z.mul_(1j)
    again.add_(5)
    (y * torch.arange(8.0).reshape(2, 2, 2)).sum().backward()
    return y, z, again, x.grad


@claim
def double_backward_through_a_written_real_view(torch):
    x = leaf(torch, 3)
    z = torch.complex(x, x * 2)
    z.real.mul_(x)
    first = torch.autograd.grad(torch.view_as_real(z).pow(3).sum(), x, create_graph=True)[0]
    return first.detach(), torch.autograd.grad(first.sum(), x)[0]


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
