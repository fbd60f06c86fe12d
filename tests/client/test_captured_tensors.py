"""In-place changes of tensors that a differentiated function did not create, under torch and gradwire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.side_by_side import same

pytestmark = pytest.mark.usefixtures("session")


def _no_grad(torch: Any, c: Any, x: Any) -> None:
    with torch.no_grad():
        c.mul_(2)


CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "by a number": lambda torch, c, x: c.add_(1),
    "by the input": lambda torch, c, x: c.add_(x),
    "by index": lambda torch, c, x: c.__setitem__(0, 2.0),
    "through a view": lambda torch, c, x: c[1:].zero_(),
    "through a view of a view": lambda torch, c, x: c.view(3)[1:][:1].fill_(x[0]),
    "under no_grad": _no_grad,
    "a copy of it": lambda torch, c, x: c.clone().add_(1),
    "what was made of it": lambda torch, c, x: (c * x).add_(1),
    "one made inside": lambda torch, c, x: torch.ones(3).add_(x),
    "one made inside, by index": lambda torch, c, x: torch.zeros(3).__setitem__(slice(0, 2), x[:2]),
    "what was made of the input": lambda torch, c, x: (x * 1).mul_(c),
    "nothing": lambda torch, c, x: None,
}


def _around(transform: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def attempt(torch: Any, change: Any) -> Any:
        c = torch.ones(3)

        def function(x: Any) -> Any:
            change(torch, c, x)
            return (x * x * c).sum()

        found = transform(torch, function)
        return found, c

    return attempt


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": _around(lambda torch, f: torch.func.grad(f)(torch.arange(3.0))),
    "grad_and_value": _around(lambda torch, f: torch.func.grad_and_value(f)(torch.arange(3.0))),
    "vjp": _around(lambda torch, f: torch.func.vjp(f, torch.arange(3.0))[0]),
    "jvp": _around(lambda torch, f: torch.func.jvp(f, (torch.arange(3.0),), (torch.ones(3),))),
    "grad of grad": _around(lambda torch, f: torch.func.grad(lambda x: torch.func.grad(f)(x).sum())(torch.arange(3.0))),
    "jacrev": _around(lambda torch, f: torch.func.jacrev(f)(torch.arange(3.0))),
    "jacobian": _around(lambda torch, f: torch.autograd.functional.jacobian(f, torch.arange(3.0))),
    "after grad": _around(
        lambda torch, f: (torch.func.grad(lambda x: (x * x).sum())(torch.ones(3)), f(torch.arange(3.0)))
    ),
}


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("what", CHANGES)
def test_a_tensor_changed_in_place_inside_of(how: str, what: str) -> None:
    same(lambda torch: TRANSFORMS[how](torch, CHANGES[what]))


def test_a_tensor_of_an_outer_transform_is_outside_of_the_inner_one() -> None:
    def attempt(torch: Any, inside: bool) -> Any:
        def outer(x: Any) -> Any:
            c = torch.ones(3)
            if not inside:
                c.mul_(x)

            def inner(y: Any) -> Any:
                if inside:
                    c.mul_(y)
                return (y * c).sum()

            return torch.func.grad(inner)(x).sum()

        return torch.func.grad(outer)(torch.arange(3.0))

    for inside in (False, True):
        same(lambda torch, inside=inside: attempt(torch, inside))


def _by_input(torch: Any, x: Any, y: Any) -> Any:
    y.mul_(x)
    return (y * y).sum()


def _through_a_view(torch: Any, x: Any, y: Any) -> Any:
    y[1:].copy_(x[1:])
    return (y * x).sum()


def _by_number(torch: Any, x: Any, y: Any) -> Any:
    y.add_(1)
    return (x * y).sum()


ARGUMENTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "by the input": _by_input,
    "view": _through_a_view,
    "number": _by_number,
}


def _attached(torch: Any, f: Any, x: Any, y: Any) -> Any:
    leaf = y.clone().requires_grad_()
    z = leaf * 2
    found = torch.func.grad(f)(x, z)
    z.sum().backward()
    return found.detach(), z.detach(), leaf.grad


ARGUMENT_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda torch, f, x, y: torch.func.grad(f)(x, y),
    "grad, by keyword": lambda torch, f, x, y: torch.func.grad(lambda x, *, y: f(x, y["y"]))(x, y={"y": y}),
    "grad, for the last argument": lambda torch, f, x, y: torch.func.grad(lambda y, x: f(x, y), argnums=1)(y, x),
    "grad of grad": lambda torch, f, x, y: torch.func.grad(lambda v: torch.func.grad(f)(x, v * 1).sum())(y),
    "grad of what has a history": _attached,
    "jacrev": lambda torch, f, x, y: torch.func.jacrev(f)(x, y),
    "jacfwd": lambda torch, f, x, y: torch.func.jacfwd(f)(x, y),
    "jvp": lambda torch, f, x, y: torch.func.jvp(f, (x, y), (torch.ones(3), torch.ones(3))),
    "jvp, the other way": lambda torch, f, x, y: torch.func.jvp(lambda y, x: f(x, y), (y, x), (x * 2, x)),
    "vmap of grad": lambda torch, f, x, y: torch.func.vmap(torch.func.grad(f))(x.expand(2, 3), y.repeat(2, 1)),
}


@pytest.mark.parametrize("how", ARGUMENT_TRANSFORMS)
@pytest.mark.parametrize("what", ARGUMENTS)
def test_an_argument_may_be_changed_in_place_and_keeps_no_history_of_it(how: str, what: str) -> None:
    def attempt(torch: Any) -> Any:
        x, y = torch.arange(3.0), torch.ones(3)
        found = ARGUMENT_TRANSFORMS[how](torch, lambda x, y: ARGUMENTS[what](torch, x, y), x, y)
        return found, x, y, y.requires_grad

    same(attempt)


def test_per_sample_forward_derivatives_of_a_function_that_changes_its_argument() -> None:
    def attempt(torch: Any) -> Any:
        def pushed(x: Any, y: Any, along: Any) -> Any:
            def function(x: Any, y: Any) -> Any:
                view = x[::2]
                x.copy_(y)
                return x, view

            return torch.func.jvp(function, (x, y), (along, along * 2))

        x, y, along = torch.arange(6.0).view(3, 2), torch.ones(3, 2), torch.ones(3, 2)
        values, slopes = torch.func.vmap(pushed, in_dims=1)(x, y, along)
        return [t.tolist() for t in (*values, *slopes, x)]

    same(attempt)
