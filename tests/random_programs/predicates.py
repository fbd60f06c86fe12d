"""Properties of torch tensors that the program generator needs."""

from __future__ import annotations

from collections.abc import Callable

import torch


def is_leaf_view(x: torch.Tensor) -> bool:
    """Whether it was made without gradients as a view of a leaf: it requires grad then, and receives none."""
    return x.requires_grad and x.is_leaf and x._base is not None


def holds(wanted: Callable[[torch.Tensor], bool], x: torch.Tensor) -> bool:
    """Whether a tensor is wanted. A stale view refuses to tell its history, and is not."""
    try:
        return wanted(x)
    except RuntimeError:
        return False


def writable(x: torch.Tensor) -> bool:
    """Whether no element lies in two places: such writes are different on purpose, or refused."""
    return x.dtype is not torch.bool and not x.is_inference() and not repeats(x)


def repeats(x: torch.Tensor) -> bool:
    """Whether two of its elements lie in one place."""
    return len({offset(x, i) for i in range(x.numel())}) < x.numel()


def unclear(x: torch.Tensor) -> bool:
    """Whether it has complex infinities or NaN, which spread from one part of a number to the other on many ways."""
    return x.is_complex() and not bool(x.detach().isfinite().all())


def exact(x: torch.Tensor) -> bool:
    """Whether it has numbers that no rounding led to: among others, rounding decides which of equal ones is larger."""
    return bool((x.detach() * 64 % 1 == 0).all())


def offset(x: torch.Tensor, i: int) -> int:
    """Where in memory the i-th element lies."""
    at = 0
    for extent, stride in zip(reversed(x.shape), reversed(x.stride()), strict=True):
        at, i = at + i % extent * stride, i // extent
    return at


def shared(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether they are in the same memory."""
    return memory_of(x) == memory_of(y)


def memory_of(x: torch.Tensor) -> int:
    """Where its memory begins. Torch has gradients of zeros without any."""
    try:
        return x.untyped_storage().data_ptr()
    except RuntimeError:
        return -id(x)


def in_order(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether a write to one with the other as operand depends on the order of elements: torch does not look at views
    with gaps or repeated elements, and computes what comes of it."""
    if not shared(x, y) or x.dtype != y.dtype:
        return shared(x, y)
    if (x.shape, x.stride(), x.storage_offset()) == (y.shape, y.stride(), y.storage_offset()):
        return False
    places = [{z.storage_offset() + offset(z, i) for i in range(z.numel())} for z in (x, y)]
    dense = all(len(at) == z.numel() == max(at) - min(at) + 1 for at, z in zip(places, (x, y), strict=True) if at)
    return not dense and bool(places[0] & places[1])


def fits(y: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether they broadcast."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(y.shape), reversed(x.shape), strict=False))


def shape_of(x: torch.Tensor) -> str:
    return "".join(f"{extent}, " for extent in x.shape)


def into_itself(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether a write to one with the other as operand is a tensor's into itself, with history."""
    same = shared(x, y) and (x.shape, x.stride(), x.storage_offset()) == (y.shape, y.stride(), y.storage_offset())
    return same and holds(lambda t: t.requires_grad, x)
