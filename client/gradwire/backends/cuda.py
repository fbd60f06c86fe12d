"""``torch.backends.cuda``: switches of matrix products and attention on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class _MatMul:
    """Switches that keep their value. float32 products are computed in float32."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = False
        self.allow_bf16_reduced_precision_reduction = False
        self.fp32_precision = "ieee"


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
