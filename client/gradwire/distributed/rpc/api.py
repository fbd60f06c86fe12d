"""``torch.distributed.rpc.api``: names that are refused where they are called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from gradwire_protocol.errors import Unsupported

from ..refused import REFUSED, fill


def _require_initialized(func: Callable[..., Any]) -> Callable[..., NoReturn]:
    """A function that needs calls between ranks, which nothing sets up here: a call of it is refused."""

    @wraps(func)
    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported(f"{func.__name__}: torch.distributed.rpc is not supported by gradwire: {REFUSED['rpc'][1]}")

    return refused


fill(__name__)
