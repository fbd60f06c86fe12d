"""``torch.backends.cuda``: switches of matrix products and attention on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


_kinds = {"flash": False, "mem_efficient": False, "math": True, "cudnn": False}


def flash_sdp_enabled() -> bool:
    """Whether attention may take the flash kernel: gradwire has the plain one alone."""
    return _kinds["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """Whether attention may take the memory-efficient kernel: gradwire has the plain one alone."""
    return _kinds["mem_efficient"]


def math_sdp_enabled() -> bool:
    """Whether attention may be computed step by step."""
    return _kinds["math"]


def cudnn_sdp_enabled() -> bool:
    """Whether attention may take cuDNN's kernel: gradwire has the plain one alone."""
    return _kinds["cudnn"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allow a kernel that gradwire has not: nothing changes."""


enable_mem_efficient_sdp = enable_cudnn_sdp = enable_flash_sdp


def enable_math_sdp(enabled: bool) -> None:
    """Attention is computed step by step in any case."""


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Choose among kernels of attention: there is one."""
    yield
