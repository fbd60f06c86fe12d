"""``torch.nn.utils.stateless``: the older place of :func:`gradwire.func.functional_call`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._core.context.call_sites import user_depth
from ..._core.modules.module import Module
from ...func.modules import Values, _holding, _names_by_tensor, _tied
from ...func.modules import functional_call as _functional_call


def functional_call(
    module: Module, parameters_and_buffers: Values, args: Any = None, kwargs: dict[str, Any] | None = None,
    *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """:func:`gradwire.func.functional_call`."""
    warnings.warn(
        "nn.utils.stateless.functional_call moved to func.functional_call", FutureWarning, stacklevel=user_depth()
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


__all__ = ["functional_call"]


@contextmanager
def _reparametrize_module(
    module: Any, parameters_and_buffers: dict[str, Any], tie_weights: bool = False, strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:  # fmt: skip
    """Inside, a module has these tensors for parameters and buffers."""
    given = _tied(parameters_and_buffers, _names_by_tensor(module)) if tie_weights else parameters_and_buffers
    with _holding(module, given):
        yield
