"""Functions that ``torch`` offers beside methods and operators: on tensors in place, and on what is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.out import Out

from ..dispatch.dispatch import call
from ..dispatch.out_argument import accepts_out
from ..tensor.tensor import Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """What one of two functions makes of the operands. A round trip for a tensor, whose value decides.

    Raises:
        ArgumentTypeError: for a condition that is no truth value and no tensor.
    """
    if not isinstance(pred, (bool, Tensor)):
        raise ArgumentTypeError(f"cond: the condition is a bool or a bool tensor, not {pred!r:.60}")
    return true_fn(*operands) if pred else false_fn(*operands)


def detach_(input: Tensor) -> Tensor:
    """Cut a tensor from its history, in place."""
    return input.detach_()


@partial(accepts_out, how=Out.EXACT)
def detach_copy(input: Tensor) -> Tensor:
    """A copy without history."""
    return call("clone", input.detach(), row_major=True)


def as_strided_(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Let a tensor show its memory in another geometry."""
    made: Tensor = input.as_strided_(size, stride, storage_offset)
    return made


def is_vulkan_available() -> bool:
    """False: devices are CPUs and CUDA devices."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """True, as of every build of the PyTorch that gradwire follows."""
    return True


def cudnn_is_acceptable(tensor: Tensor) -> bool:
    """Whether cuDNN takes a tensor: a floating point one, of some elements, on a GPU."""
    return tensor.is_cuda and tensor.dtype.is_floating_point and tensor.numel() > 0


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """The direction of ``v`` with the magnitudes ``g``, one for each index of ``dim``."""
    others = tuple(d for d in range(v.ndim) if d != dim % v.ndim) if dim != -1 else tuple(range(v.ndim))
    norm = (v * v).sum(others, keepdim=True).sqrt() if others else v.abs()
    return v * (g / norm)
