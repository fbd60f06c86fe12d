"""Merging and splitting dimensions."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from .module import Module


class Flatten(Module):
    """Merge the dimensions from ``start_dim`` to ``end_dim`` into one: ``(N, C, H, W)`` gives ``(N, C * H * W)``."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        """The input with those dimensions merged."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split dimension ``dim`` into several; one of ``unflattened_size`` may be -1."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise ArgumentTypeError(f"dim is an int, not {type(dim).__name__}: named dimensions are not supported")
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(n, int) for n in unflattened_size):
            raise ArgumentTypeError(f"unflattened_size is a sequence of ints, not {unflattened_size!r:.60}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        """The input with that dimension split."""
        return input.unflatten(self.dim, tuple(self.unflattened_size))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
