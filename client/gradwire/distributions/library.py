"""The names that formulas of distributions are written in, as ``gradwire`` has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gradwire_protocol.dtypes import bool_, int32, int64

from .. import autograd, linalg, nn, special
from .._core.context.modes import enable_grad, no_grad
from .._core.dispatch.dispatch import call
from .._core.session.batched_read import fetch
from .._core.session.current_session import get_default_dtype
from .._core.surface import creation, creation_like
from .._core.surface.methods import FUNCTIONS

__all__ = ["call", "gw"]

_MADE = "arange empty eye full ones rand randn tensor zeros"
_MADE_LIKE = "full_like ones_like zeros_like"

gw: Any = SimpleNamespace(
    **FUNCTIONS
    | {name: getattr(creation, name) for name in _MADE.split()}
    | {name: getattr(creation_like, name) for name in _MADE_LIKE.split()}
)
gw.autograd, gw.linalg, gw.nn, gw.special = autograd, linalg, nn, special
gw.bool, gw.int, gw.int64, gw.get_default_dtype = bool_, int32, int64, get_default_dtype
gw.enable_grad, gw.no_grad, gw.fetch = enable_grad, no_grad, fetch
