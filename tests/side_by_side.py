"""Runs the same function with torch and with gradwire as its argument, and compares the outcomes.

A result is described by everything that a program can see: values, dtype, shape, strides, ``requires_grad``,
``is_leaf``, ``grad_fn``; an exception by its class, a warning by its category.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import gradwire

torch.set_warn_always(True)  # else each warning of its engine comes once a process, in whichever test is first

Claim = Callable[[Any], Any]

TOLERANCES = {"torch.float16": 2e-3, "torch.bfloat16": 2e-2}


class Claims:
    """A table of functions of a library, each a claim that is named after it. Used as a decorator, it adds one."""

    def __init__(self) -> None:
        self.all: list[Claim] = []

    def __call__(self, claim: Claim) -> Claim:
        assert all(claim.__name__ != other.__name__ for other in self.all), f"two claims are called {claim.__name__}"
        self.all.append(claim)
        return claim

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __contains__(self, claim: object) -> bool:
        return claim in self.all


def name_of(claim: Claim) -> str:
    return claim.__name__


def built_in(error: BaseException) -> str:
    """The name of the nearest class of an exception that is Python's own."""
    return next(c.__name__ for c in type(error).__mro__ if hasattr(builtins, c.__name__))


def described(value: Any, order: bool = True) -> Any:
    """A value as plain data; a tensor with all that can be seen of it."""
    if isinstance(value, (torch.Tensor, gradwire.Tensor)):
        node = value.grad_fn
        plain = value.detach()
        found = {
            "dtype": repr(value.dtype), "shape": list(value.shape), "requires_grad": value.requires_grad,
            "is_leaf": value.is_leaf, "grad_fn": None if node is None else node.name(), "values": plain.tolist(),
        }  # fmt: skip
        if order:
            found["stride"] = list(value.stride())
        return found
    if isinstance(value, dict):
        return {k: described(v, order) for k, v in value.items()}
    if isinstance(value, (torch.Size, gradwire.Size)):
        return list(value)
    if isinstance(value, (list, tuple)):
        return [described(v, order) for v in value]
    if isinstance(value, (torch.dtype, gradwire.dtype)):
        return repr(value)
    return value


def leaf(lib: Any, *shape: int) -> Any:
    """A leaf of float32 numbers without regularities."""
    return ((lib.arange(float(math.prod(shape))) * 7 + 3) % 11 - 4).reshape(shape).detach().requires_grad_()


def doubling(lib: Any) -> Any:
    """A Function of the library that doubles its argument in place."""

    class Doubled(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return Doubled


def history(tensor: Any) -> list[list[str]]:
    """The names of the nodes behind a tensor, level by level; places without gradient are left out."""
    names, level = [], [] if tensor.grad_fn is None else [tensor.grad_fn]
    while level:
        names.append([n.name() for n in level])
        level = [m for n in level for m, _ in n.next_functions if m is not None]
    return names


def outcome(claim: Claim, lib: Any) -> Any:
    """What a claim gives under one library: its result, or the class of its exception, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = described(claim(lib))
            if lib is gradwire:
                settle()
        except Exception as error:
            result = {"raised": built_in(error)}
            if lib is gradwire:
                with contextlib.suppress(gradwire.GradwireError):
                    settle()
    # A file or a socket that some earlier test left open may be collected, and warned about, just now.
    passed_over = (DeprecationWarning, ResourceWarning)
    categories = {w.category.__name__ for w in caught if not issubclass(w.category, passed_over)}
    return {"result": result, "warnings": sorted(categories)}


def settle() -> None:
    """Wait for everything recorded so far: what depends on values raises at the next read, whosever that is."""
    gradwire.current_session().synchronize()


def close(expected: Any, actual: Any, tolerance: float = 1e-5) -> bool:
    """Whether two descriptions agree; numbers to within a tolerance, everything else exactly."""
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or expected.keys() != actual.keys():
            return False
        tolerance = TOLERANCES.get(expected.get("dtype", ""), tolerance)
        return all(close(expected[k], actual[k], tolerance) for k in expected)
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(expected) != len(actual):
            return False
        return all(close(e, a, tolerance) for e, a in zip(expected, actual, strict=True))
    if isinstance(expected, complex) and isinstance(actual, complex):
        return close(expected.real, actual.real, tolerance) and close(expected.imag, actual.imag, tolerance)
    if isinstance(expected, float) and isinstance(actual, float):
        if math.isnan(expected) or math.isinf(expected):
            return repr(expected) == repr(actual)
        return abs(expected - actual) <= tolerance * (1 + abs(expected))
    return type(expected) is type(actual) and bool(expected == actual)


def differences(expected: Any, actual: Any, path: str = "", tolerance: float = 1e-5) -> Iterator[str]:
    """Where two descriptions differ, one line each."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        tolerance = TOLERANCES.get(expected.get("dtype", ""), tolerance)
        for key in expected.keys() & actual.keys():
            yield from differences(expected[key], actual[key], f"{path}.{key}", tolerance)
        if expected.keys() != actual.keys():
            yield f"{path}: torch has {list(expected)}, gradwire {list(actual)}"
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(e, a, f"{path}[{i}]", tolerance)
    elif not close(expected, actual, tolerance):
        yield f"{path}: torch {expected!r:.200}, gradwire {actual!r:.200}"


def same(claim: Claim) -> None:
    """Assert that a claim comes out the same under torch and gradwire."""
    expected, actual = outcome(claim, torch), outcome(claim, gradwire)
    found = list(differences(expected, actual))
    if found:
        lines = "\n  ".join(found)
        raise AssertionError(f"{claim.__name__} differs:\n  {lines}\ntorch:    {expected}\ngradwire: {actual}")


def raises(attempt: Callable[[], Any]) -> str | None:
    """The built-in class of what an attempt raises, None where it succeeds. A tensor that it returns is read, since
    gradwire raises what depends on values at the next read."""
    try:
        described(attempt())
        settle()
    except Exception as error:
        return built_in(error)
    return None
