"""``BlockMask``: which blocks of queries look at which blocks of keys."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

from gradwire_protocol.dtypes import bool_, int8, int32
from gradwire_protocol.errors import ArgumentError

from ..._core.context.pytree import GetAttrKey
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import arange
from ..._core.tensor.tensor import Tensor
from ...utils._pytree import register_pytree_node
from .. import functional as F

_DEFAULT_SPARSE_BLOCK_SIZE: Final = 128
_LARGE_SPARSE_BLOCK_SIZE: Final = 1 << 30


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask_mod that is true everywhere."""
    found: Tensor = batch.new_ones((), dtype=bool_)
    return found


def _sliced_mask_mod_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    raise ArgumentError(
        "a BlockMask that was sliced has no mask_mod: set one, made from that of the whole BlockMask, which knows the "
        "numbers of queries"
    )


def _blocks_of(mask: Tensor, queries: int, keys: int, separate: bool) -> tuple[Tensor, Tensor | None]:
    """1 for blocks of a dense mask that are partly true (or wholly, unless ``separate``), and for those wholly true."""
    if mask.dtype is not bool_:
        raise AssertionError(f"a mask is bool, not {mask.dtype!r}")
    while mask.ndim < 4:
        mask = mask.unsqueeze(0)
    mask = F.pad(mask, (0, -mask.shape[-1] % keys, 0, -mask.shape[-2] % queries))
    rows, columns = mask.shape[-2] // queries, mask.shape[-1] // keys
    counts = mask.reshape(*mask.shape[:2], rows, queries, columns, keys).permute(0, 1, 2, 4, 3, 5).sum((-2, -1))
    if not separate:
        return (counts > 0).to(int8), None
    whole = counts == queries * keys
    return ((counts > 0) & ~whole).to(int8), whole.to(int8)


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks each row has, and their columns, the others after them."""
    dense = dense.to(int32)
    order = call("argsort", dense, -1, descending=True, stable=True)
    return dense.sum(-1).to(int32), order.to(int32)


def _dense(counts: Tensor, indices: Tensor, columns: int) -> Tensor:
    """The reverse of :func:`_ordered`."""
    listed = arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    made = indices.new_zeros((*indices.shape[:-1], columns + 1), dtype=int32)
    places = call("where", listed, indices, columns).long()
    return call("scatter", made, -1, places, 1)[..., :columns]


def _transposed(counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    return _ordered(_dense(counts, indices, indices.shape[-1]).transpose(-2, -1))


def _cropped(counts: Tensor, indices: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    indices = indices[:, :, :rows, :columns]
    counts = call("clamp", counts[:, :, :rows], max=columns)
    return (indices < counts.unsqueeze(-1)).sum(-1).to(int32), indices


class BlockMask:
    """Blocks of queries and keys that attention computes.

    ``kv_num_blocks`` says for each row of blocks how many it has, ``kv_indices`` which; ``full_kv_num_blocks`` and
    ``full_kv_indices`` say it of blocks without gaps; ``q_num_blocks`` and so on say it by columns. ``mask_mod``
    decides within blocks. Here all scores are computed, and ``mask_mod`` decides everywhere.
    """

    _TENSOR_ATTRS = (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
        "full_q_num_blocks", "full_q_indices",
    )  # fmt: skip
    _CONTEXT_ATTRS = ("seq_lengths", "BLOCK_SIZE", "mask_mod")

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None, q_num_blocks: Tensor | None,
        q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: Callable[..., Any] = noop_mask,
    ) -> None:  # fmt: skip
        if kv_indices.ndim < 2:
            raise ArgumentError(f"BlockMask: kv_indices has at least 2 dimensions, not {kv_indices.ndim}")
        for name, given in (("kv", (full_kv_num_blocks, full_kv_indices)), ("q", (full_q_num_blocks, full_q_indices))):
            if (given[0] is None) != (given[1] is None):
                raise AssertionError(f"BlockMask: full_{name}_num_blocks and full_{name}_indices are given together")
        self.seq_lengths: tuple[int, int] = seq_lengths
        self.kv_num_blocks: Tensor = kv_num_blocks
        self.kv_indices: Tensor = kv_indices
        self.full_kv_num_blocks: Tensor | None = full_kv_num_blocks
        self.full_kv_indices: Tensor | None = full_kv_indices
        self.q_num_blocks: Tensor | None = q_num_blocks
        self.q_indices: Tensor | None = q_indices
        self.full_q_num_blocks: Tensor | None = full_q_num_blocks
        self.full_q_indices: Tensor | None = full_q_indices
        self.BLOCK_SIZE: tuple[int, int] = BLOCK_SIZE
        self.mask_mod: Callable[..., Any] = mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable[..., Any] | None = None, seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:  # fmt: skip
        """A mask from what each row of blocks has; what each column has follows."""
        if kv_indices.ndim < 2:
            raise ArgumentError(f"BlockMask: kv_indices has at least 2 dimensions, not {kv_indices.ndim}")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("BlockMask: full_kv_num_blocks and full_kv_indices are given together")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        none: tuple[Tensor | None, Tensor | None] = (None, None)
        by_column = _transposed(kv_num_blocks, kv_indices) if compute_q_blocks else none
        full_by_column = none
        if compute_q_blocks and full_kv_num_blocks is not None and full_kv_indices is not None:
            full_by_column = _transposed(full_kv_num_blocks, full_kv_indices)
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_column, *full_by_column,
            BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Lengths, tensors, block sizes and mask_mod."""
        lengths, size = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*lengths, *[getattr(self, name) for name in self._TENSOR_ATTRS], *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches, heads, queries and keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are, with those that are masked."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many blocks are not computed, in percent. Waits for the server."""
        counts = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            counts = counts + self.full_kv_num_blocks.sum()
        return 100 * (1 - counts.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """1 for each block that is computed."""
        found = _dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            found = found | _dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])
        return found

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks. It has no mask_mod: numbers of queries may differ."""
        given = index if isinstance(index, tuple) else (index,)
        padded = (*given, slice(None), slice(None), slice(None))[:3]
        at = tuple(
            slice(i, i + 1) if isinstance(i, int) and i != -1 else slice(-1, None) if isinstance(i, int) else i
            for i in padded
        )

        def some(tensor: Tensor | None) -> Any:
            return None if tensor is None else tensor[at]

        return BlockMask.from_kv_blocks(
            some(self.kv_num_blocks), some(self.kv_indices), some(self.full_kv_num_blocks), some(self.full_kv_indices),
            BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=_sliced_mask_mod_error, seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask of the first queries and keys."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        full: tuple[Tensor | None, Tensor | None] = (None, None)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            full = _cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        return BlockMask.from_kv_blocks(
            *_cropped(self.kv_num_blocks, self.kv_indices, rows, columns), *full, BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod, seq_lengths=(new_q_len, new_kv_len), compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on a device."""
        moved = {name: getattr(self, name) for name in self._TENSOR_ATTRS}
        moved = {name: None if tensor is None else tensor.to(device) for name, tensor in moved.items()}
        return BlockMask(seq_lengths=self.seq_lengths, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, **moved)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture: full, partial and empty blocks. Waits for the server."""
        dense = self.to_dense()
        *batches, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        if grid_size == -1:
            most = (rows, columns)
        steps = max(1, -(-rows // most[0])), max(1, -(-columns // most[1]))
        values = dense.numpy()
        shown = []
        for number, at in enumerate(itertools.product(*[range(count) for count in batches])):
            if number == limit:
                shown.append("...\nBlockMask.to_string(limit=N) shows more, BlockMask[batch, head] a certain one")
                break
            lines = [f"{at}"]
            for row in range(0, rows, steps[0]):
                parts = [
                    values[at][row : row + steps[0], column : column + steps[1]].mean()
                    for column in range(0, columns, steps[1])
                ]
                lines.append("".join(("█" if part == 1 else " " if part == 0 else "░") * 2 for part in parts))
            shown.append("\n".join(lines) + "\n")
        return "\n".join(shown)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        shapes = {name: getattr(self, name) for name in self._TENSOR_ATTRS}
        lines = [f"{name}={None if tensor is None else tensor.shape}" for name, tensor in shapes.items()]
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        return "BlockMask(\n" + "".join(f"    {line},\n" for line in lines) + f"    mask_mod={name}\n)"


def _flatten(mask: BlockMask) -> tuple[list[Any], Any]:
    return (
        [getattr(mask, name) for name in BlockMask._TENSOR_ATTRS],
        tuple(getattr(mask, name) for name in BlockMask._CONTEXT_ATTRS),
    )


def _unflatten(values: Any, context: Any) -> BlockMask:
    named = dict(zip(BlockMask._TENSOR_ATTRS, values, strict=True))
    return BlockMask(**named, **dict(zip(BlockMask._CONTEXT_ATTRS, context, strict=True)))


def _flatten_with_keys(mask: BlockMask) -> tuple[list[tuple[Any, Any]], Any]:
    values, context = _flatten(mask)
    return [(GetAttrKey(name), v) for name, v in zip(BlockMask._TENSOR_ATTRS, values, strict=True)], context


register_pytree_node(BlockMask, _flatten, _unflatten, flatten_with_keys_fn=_flatten_with_keys)
