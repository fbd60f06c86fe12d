"""``torch.nn.utils.stateless``: the older place of :func:`gradwire.func.functional_call`."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core.context.call_sites import user_depth
from ..._core.modules.module import Module
from ...func.modules import Values
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
