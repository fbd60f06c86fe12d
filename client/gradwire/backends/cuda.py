"""``torch.backends.cuda``: switches of matrix products and attention on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradwire_protocol.errors import ArgumentError

from .._core.surface.global_settings import get_float32_matmul_precision, set_float32_matmul_precision


class _MatMul:
    """Switches of products. ``allow_tf32`` and ``fp32_precision`` are the same switch as
    ``set_float32_matmul_precision``; the others keep their value, sums are kept in float32."""

    def __init__(self) -> None:
        self.allow_fp16_reduced_precision_reduction = False
        self.allow_bf16_reduced_precision_reduction = False

    @property
    def allow_tf32(self) -> bool:
        """Whether a GPU may round float32 to TF32 in products."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_float32_matmul_precision("high" if allowed else "highest")

    @property
    def fp32_precision(self) -> str:
        """'tf32' or 'ieee'."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in ("ieee", "tf32", "none"):
            raise ArgumentError(f"the precision is ieee or tf32, not {precision!r}")
        self.allow_tf32 = precision == "tf32"


matmul = _MatMul()


def is_built() -> bool:
    """Whether gradwire can compute on GPUs: yes, where the server has one."""
    return True


_kinds = dict.fromkeys(("flash", "mem_efficient", "math", "cudnn", "overrideable"), True)


def sdp_enabled(kind: str) -> bool:
    """Whether a program has left a kind of kernel allowed."""
    return _kinds[kind]


def enable_sdp(kind: str, enabled: bool) -> None:
    """Allow a kind of kernel or not. It is stored without effect: the server chooses its kernel."""
    _kinds[kind] = bool(enabled)


def flash_sdp_enabled() -> bool:
    """What :func:`enable_flash_sdp` has stored."""
    return sdp_enabled("flash")


def mem_efficient_sdp_enabled() -> bool:
    """What :func:`enable_mem_efficient_sdp` has stored."""
    return sdp_enabled("mem_efficient")


def math_sdp_enabled() -> bool:
    """What :func:`enable_math_sdp` has stored."""
    return sdp_enabled("math")


def cudnn_sdp_enabled() -> bool:
    """What :func:`enable_cudnn_sdp` has stored."""
    return sdp_enabled("cudnn")


def enable_flash_sdp(enabled: bool) -> None:
    """Stored without effect: the server chooses its kernel of attention."""
    enable_sdp("flash", enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Stored without effect: the server chooses its kernel of attention."""
    enable_sdp("mem_efficient", enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Stored without effect: the server chooses its kernel of attention."""
    enable_sdp("math", enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Stored without effect: the server chooses its kernel of attention."""
    enable_sdp("cudnn", enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """No: sums are kept in float32."""
    return False


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Without effect: sums are kept in float32."""


class SDPAParams:
    """The arguments of an attention, for questions about kernels."""

    def __init__(
        self, query: Any, key: Any, value: Any, attn_mask: Any, dropout: float, is_causal: bool, enable_gqa: bool
    ) -> None:
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def is_flash_attention_available() -> bool:
    """No: a program cannot call a kernel by itself."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """No: a program cannot call a kernel by itself."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """No: a program cannot call a kernel by itself."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """No: a program cannot call a kernel by itself."""
    return False


def preferred_linalg_library(backend: Any = None) -> str:
    """Without effect: linear algebra is the server's."""
    return "default"


preferred_blas_library = preferred_linalg_library


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[Any, Any]]:
    """Inside, these kinds of kernels are allowed. Stored without effect: the server chooses its kernel."""
    wanted = {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient, "cudnn": enable_cudnn}
    before = dict(_kinds)
    try:
        _kinds.update(wanted)
        yield {}
    finally:
        _kinds.update(before)
