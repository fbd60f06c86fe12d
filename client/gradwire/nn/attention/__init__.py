"""``torch.nn.attention``: which kernel attention may take, causal biases, and attention with a program's own scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NoReturn

from gradwire_protocol.errors import Unsupported

from ...backends import cuda as _switches

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "activate_flash_attention_impl", "current_flash_attention_impl",
    "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip

WARN_FOR_UNFUSED_KERNELS = False
"""Without effect: gradwire chooses the kernel on the server."""


class SDPBackend(IntEnum):
    """PyTorch's kernels for ``scaled_dot_product_attention``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_backend_names = {
    "cudnn": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION", "mem_efficient": "EFFICIENT_ATTENTION", "math": "MATH",
    "overrideable": "OVERRIDEABLE",
}  # fmt: skip


def _backend_from_string(name: str) -> SDPBackend:
    return SDPBackend[name]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    return [SDPBackend[name] for kind, name in _backend_names.items() if _switches.sdp_enabled(kind)]


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[Any, Any]]:
    """Inside, PyTorch takes one of these kernels. Here the choice is stored, and the server's kernel computes."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(f"backends is an SDPBackend or a list of them, not {type(backends).__name__}")
    chosen: Iterable[SDPBackend] = [backends] if isinstance(backends, SDPBackend) else backends
    before = {kind: _switches.sdp_enabled(kind) for kind in _backend_names}
    try:
        for kind, name in _backend_names.items():
            _switches.enable_sdp(kind, SDPBackend[name] in chosen)
        yield {}
    finally:
        for kind, enabled in before.items():
            _switches.enable_sdp(kind, enabled)


def list_flash_attention_impls() -> list[str]:
    """None: kernels are the server's."""
    return []


def current_flash_attention_impl() -> str | None:
    """None: kernels are the server's."""
    return None


def restore_flash_attention_impl() -> None:
    """Nothing to restore."""


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> NoReturn:
    """Not available: kernels are the server's."""
    raise Unsupported(f"register_flash_attention_impl({impl!r:.40}) is not supported: kernels are the server's")


def activate_flash_attention_impl(impl: str) -> NoReturn:
    """Not available: kernels are the server's."""
    raise Unsupported(f"activate_flash_attention_impl({impl!r:.40}) is not supported: kernels are the server's")
