"""A tensor under ``vmap``: a wrapper that hides the mapped dimension of the tensor it holds.

The wrapper is above autograd. The tensor inside, with the mapped dimension in front, carries memory and history, and
ops on the wrapper are compositions of ops on what it holds, so that no derivative knows of mapping.
"""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.meta import Meta, meta

from ..functional import F
from ..tensor import Tensor


class Batched(Tensor):
    """A tensor without its first dimension, which is mapped over.

    Attributes:
        value: the tensor with the mapped dimension in front; itself a ``Batched`` of a lower level in nested maps.
        level: the depth of the map. What a wrapper holds has lower levels only.
        randomness: what random ops do: ``"error"``, ``"different"`` or ``"same"``.
        meta: shape, strides and dtype as a slice shows them.
    """

    __slots__ = ("level", "randomness", "value")

    def __init__(self, value: Tensor, level: int, randomness: str, described: Meta | None = None) -> None:
        outer = value.meta
        self.engine = value.engine
        self.value = value
        self.level = level
        self.randomness = randomness
        if described is None:
            described = meta(outer.shape[1:], outer.dtype, outer.device, outer.stride[1:])
        self.meta = described
        self.engine.batched += 1

    def __del__(self) -> None:
        self.engine.batched -= 1

    def __getattr__(self, name: str) -> Any:
        # Reached for the slots of a plain tensor, which are not filled here: they are those of what is inside.
        if name == "array":
            raise ArgumentError(
                f"the values of a {self.meta!r} tensor inside vmap cannot be read: they differ between "
                "samples, so item(), bool(), numpy() and ops with a data-dependent shape cannot be used"
            )
        if name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)

    @property
    def size(self) -> int:
        """The extent of the mapped dimension."""
        return self.value.shape[0]

    @property
    def requires_grad(self) -> bool:
        return self.value.requires_grad

    @property
    def grad_fn(self) -> Any:
        return self.value.grad_fn

    @grad_fn.setter
    def grad_fn(self, node: Any) -> None:
        self.value.grad_fn = node

    def __repr__(self) -> str:
        return f"<batched engine tensor {self.meta!r} at level {self.level} over {self.size}>"


def levels_of(tensor: Tensor) -> list[tuple[int, int, str]]:
    """Level, size and randomness of every map that the tensor is under, the innermost first."""
    found = []
    while type(tensor) is Batched:
        found.append((tensor.level, tensor.size, tensor.randomness))
        tensor = tensor.value
    return found


def physical(tensor: Tensor) -> Tensor:
    """The plain tensor at the bottom."""
    while type(tensor) is Batched:
        tensor = tensor.value
    return tensor


def enter(tensor: Tensor, level: int, randomness: str) -> Tensor:
    """The tensor with its first dimension mapped at a level, below any higher level that it is already mapped at.

    Raises:
        ArgumentError: when it is mapped at this level.
    """
    if type(tensor) is Batched:
        if tensor.level == level:
            raise ArgumentError(f"batch: the tensor is mapped at level {level} already")
        if tensor.level > level:
            inner = enter(F.movedim(tensor.value, 1, 0), level, randomness)
            return Batched(inner, tensor.level, tensor.randomness)
    return Batched(tensor, level, randomness)


def leave(tensor: Tensor, level: int, size: int) -> Tensor:
    """The tensor with the dimension mapped at a level as its first; one not mapped there is expanded."""
    if type(tensor) is Batched:
        if tensor.level == level:
            return tensor.value
        if tensor.level > level:
            inner = leave(tensor.value, level, size)
            return Batched(F.movedim(inner, 0, 1), tensor.level, tensor.randomness)
    expanded: Tensor = F.expand(F.unsqueeze(tensor, 0), (size, *tensor.shape))
    return expanded
