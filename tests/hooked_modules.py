"""Small modules for tests of hooks."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import raises


def shown(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def module(torch: Any, forward: Any) -> Any:
    """A module whose forward is a function."""

    class Made(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return forward(*args, **kwargs)

    return Made()


def ones(torch: Any, *shape: int) -> Any:
    return torch.ones(*shape, requires_grad=True)


def product(torch: Any) -> tuple[Any, Any, Any]:
    return module(torch, lambda a, b: a * b * 2), ones(torch, 2), torch.full((2,), 3.0, requires_grad=True)


def failure(net: Any, *args: Any) -> str | None:
    """What a module's forward and backward raise."""
    return raises(lambda: net(*args).sum().backward())


def fan(torch: Any) -> Any:
    """A linear layer with known weights."""
    made = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return made
