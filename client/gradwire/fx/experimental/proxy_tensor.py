"""Tracing with values, which gradwire does not do."""

from __future__ import annotations

from typing import Any, NoReturn

from gradwire_protocol.errors import Unsupported


def make_fx(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused.

    Raises:
        Unsupported: always.
    """
    raise Unsupported(
        "make_fx traces the kernels of PyTorch's dispatcher, which gradwire has not: torch.fx.symbolic_trace traces "
        "functions and modules"
    )


def get_proxy_mode() -> None:
    """The tracer that traces with values: none."""
    return


__all__ = ["get_proxy_mode", "make_fx"]
