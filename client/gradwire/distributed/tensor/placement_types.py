"""``torch.distributed.tensor.placement_types``: how the ranks of a mesh hold a tensor, as plain values.

Libraries write their plans with them when they are imported. Nothing is distributed by them: ``distribute_tensor`` and
``parallelize_module`` are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..._core.surface.stand_ins import stand_ins

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How one dimension of a mesh holds a tensor."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank has a part: of dimension ``dim``, if that is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether each rank has the whole."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the ranks' tensors are still to be reduced: by ``reduce_op``, if that is given."""
        return False

    def __fx_repr__(self) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Shard(Placement):
    """Each rank has a chunk of dimension ``dim``."""

    dim: int

    def __post_init__(self) -> None:
        if not hasattr(self.dim, "__index__"):
            raise TypeError(f"Shard: dim is a {type(self.dim).__name__}, not an int")

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"

    def __hash__(self) -> int:
        return hash(self.dim)

    def __fx_repr__(self) -> tuple[str, dict[str, Any]]:
        return f"torch.distributed.tensor.placement_types.{self!r}", {}

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self.dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """The extent of a rank's chunk and where it begins, as ``torch.chunk`` divides ``curr_local_size``."""
        chunk = -(-curr_local_size // num_chunks)
        begin = min(curr_local_size, chunk * rank)
        return min(chunk, curr_local_size - begin), begin


@dataclass(frozen=True, repr=False)
class _StridedShard(Placement):
    """Each rank has a chunk of every one of ``split_factor`` parts of dimension ``dim``."""

    dim: int
    split_factor: int

    def __init__(self, dim: int, *, split_factor: int = 1, sf: int | None = None) -> None:
        if sf is not None and split_factor != 1:
            raise TypeError("_StridedShard: split_factor and sf are two names of one argument")
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor if sf is None else sf)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"

    def __fx_repr__(self) -> tuple[str, dict[str, Any]]:
        return f"torch.distributed.tensor.placement_types.{self!r}", {}


@dataclass(frozen=True, repr=False)
class Replicate(Placement):
    """Each rank has the whole tensor."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"

    def __hash__(self) -> int:
        return -1

    def __fx_repr__(self) -> tuple[str, dict[str, Any]]:
        return f"torch.distributed.tensor.placement_types.{self!r}", {}

    def is_replicate(self) -> bool:
        return True


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Each rank has a summand, or whatever ``reduce_op`` reduces, of the whole tensor."""

    LINEAR_REDUCE_OPS: ClassVar[tuple[str, ...]] = ("sum", "avg")
    ALL_REDUCE_OPS: ClassVar[tuple[str, ...]] = ("sum", "avg", "min", "max", "product")

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if not isinstance(self.reduce_op, str):
            raise TypeError(f"Partial: reduce_op is a {type(self.reduce_op).__name__}, not a str")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"

    def __hash__(self) -> int:
        return 1 + hash(self.reduce_op)

    def __fx_repr__(self) -> tuple[str, dict[str, Any]]:
        return f"torch.distributed.tensor.placement_types.Partial({self.reduce_op!r})", {}

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or reduce_op == self.reduce_op


_Partial = Partial

globals().update(stand_ins(__name__, "_MaskPartial", "a tensor is in one session"))
