"""Forward mode through a custom Function: the tangents that its ``jvp`` computes, and what they may be."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import GraphError

from ..context.modes import is_grad_enabled, no_grad
from ..dispatch.dual_tensors import make_dual, primal_of, tangent_of
from ..graph.forward_levels import STACK as DUAL_LEVELS
from ..graph.forward_levels import ForwardLevel, duals_of
from ..graph.graph_mirror import edge_of
from ..tensor.tensor import Tensor


def innermost_level(args: tuple[Any, ...]) -> ForwardLevel | None:
    """The innermost level of forward mode at which some argument is dual."""
    found = {level for a in args if isinstance(a, Tensor) for level in duals_of(a)}
    return next((level for level in reversed(DUAL_LEVELS.levels) if level in found), None)


def with_tangents(cls: Any, args: tuple[Any, ...], separate: bool, level: ForwardLevel) -> tuple[Any, Any]:
    """The call without the tangents of one level, and dual results with those that ``jvp`` computes.

    Raises:
        GraphError: when it returns another number of tangents than there are results, none for one of them, or one
            for a result that has none.
    """
    dual = [isinstance(a, Tensor) and level in duals_of(a) for a in args]
    plain = tuple([primal_of(a, level) if d else a for a, d in zip(args, dual, strict=True)])
    context, result = cls._called(plain, separate)
    given = [tangent_of(a, level) if d else context.no_tangent(a) for a, d in zip(args, dual, strict=True)]
    versions = [None if g is None else g._version for g in given]
    context.jvp_tensors = context.saved_for_forward or ()
    try:
        returned = cls.jvp(context, *given)
    finally:
        context.jvp_tensors = None
    results = result if isinstance(result, tuple) else (result,)
    tangents = returned if isinstance(returned, tuple) else (returned,)
    if len(tangents) != len(results):
        raise GraphError(f"the jvp of {cls.__name__} returned {len(tangents)} tangents for {len(results)} results")
    at = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    operands = [(plain[i], given[i] if dual[i] else None) for i in at]
    made = []
    for i, (value, tangent) in enumerate(zip(results, tangents, strict=True)):
        if not isinstance(value, Tensor):
            made.append(value)
            continue
        if i in context._undifferentiated or not value._form.dtype.carries_gradient:
            if isinstance(tangent, Tensor):
                raise GraphError(f"the jvp of {cls.__name__} returned tangent {i} for a result without one: None there")
            made.append(value)
            continue
        if not isinstance(tangent, Tensor):
            raise GraphError(f"the jvp of {cls.__name__} returned {type(tangent).__name__} as tangent {i}: a tensor")
        changed = context._changed.get(i)
        _check_tangent(f"the jvp of {cls.__name__}", changed, value, tangent, operands)
        if changed is not None and operands[changed][1] is not None:
            if tangent._version == versions[at[changed]]:
                raise GraphError(f"the jvp of {cls.__name__} must change the tangent in place, as forward its input")
            made.append(args[at[changed]])  # the views of it that forward and jvp got were changed, and so it was
        elif changed is not None and _takes(value, tangent):
            _make_dual_itself(value, tangent, level)
            made.append(value)
        else:
            made.append(make_dual(value, tangent, level))
    return context, tuple(made) if isinstance(result, tuple) else made[0]


def _takes(value: Any, tangent: Any) -> bool:
    """Whether a write can give a tensor this tangent: the tangent's own history would be lost."""
    return value._levels == tangent._levels and (edge_of(tangent) is None or not is_grad_enabled())


def _make_dual_itself(value: Any, tangent: Tensor | None, level: ForwardLevel) -> None:
    """Make a tensor that forward has changed in place dual, and what it is a view of: by a write that leaves the
    elements as they are, and does not count as one."""
    with no_grad():
        value.copy_(make_dual(value, tangent, level))
    value._cell()[0] -= 1


def _check_tangent(name: str, changed: int | None, value: Any, tangent: Any, operands: list[tuple[Any, Any]]) -> None:
    """Check that a tangent came to be as its result did.

    Args:
        changed: which operand the result is, if it was changed in place.
        operands: the tensors that forward took, each with its tangent.

    Raises:
        GraphError: for an operand that was changed in place when its tangent was not, and for a view of an operand
            when the tangent is no view of that operand's.
    """
    if changed is not None:
        given = operands[changed][1]
        if given is not None and tangent is not given:
            raise GraphError(
                f"{name} must change the tangent of the input that forward changes in place, and return that tangent"
            )
        return
    root = value._base_tensor
    if root is None:
        return
    shown = [g for p, g in operands if g is not None and (p is root or p._base_tensor is root)]
    if shown and not any(tangent is g or tangent._base_tensor is _root(g) for g in shown):
        raise GraphError(
            f"{name} must return a view of the input's tangent, since forward returns a view of that input (or the "
            "input as it is)"
        )


def _root(tensor: Tensor) -> Any:
    return tensor if tensor._base_tensor is None else tensor._base_tensor
