"""Copies of tensors by Python's ``copy`` module."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import GraphError

from ..context.modes import no_grad
from ..dispatch.dispatch import call
from ..tensor.tensor import PRESENT, Moved, Tensor


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Any:
    if not self.is_leaf:
        raise GraphError("only a leaf can be deep-copied: detach() it first")
    if id(self) in memo:
        return memo[id(self)]
    with no_grad():
        made = call("clone", self)
    copy = type(self)._make(self._session, made._id, made._form)
    made.__class__ = Moved
    memo[id(self)] = copy
    copy.__dict__.update(self.__dict__)
    if self._requires:
        copy.requires_grad_()
    if self._grad_state == PRESENT:
        there: Any = self.grad
        copy.grad = there.__deepcopy__(memo)
    return copy


Tensor.__deepcopy__ = __deepcopy__  # type: ignore[method-assign, assignment]
