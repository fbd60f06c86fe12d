"""``torch.nn.utils.rnn``: sequences of different lengths, padded to one tensor or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..._core.context.late_signatures import called_as
from ..._core.dispatch.dispatch import call
from ..._core.surface.creation import tensor
from ..._core.surface.to_arguments import to_form
from ..._core.tensor.reading import given_values
from ..._core.tensor.tensor import Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Several sequences without padding, as :func:`pack_padded_sequence` and :func:`pack_sequence` make them.

    Attributes:
        data: ``(steps, ...)``: for each time step the rows of all sequences that are still going on, longest first.
        batch_sizes: how many those are, int64 on the CPU.
        sorted_indices: which sequence each place has; None where they were in order.
        unsorted_indices: the way back.
    """

    _sizes: tuple[int, ...] | None = None
    """What batch_sizes holds, where that is known without asking the server."""

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("without batch_sizes the first argument is a pair, (data, batch_sizes)")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ArgumentValueError(f"batch_sizes are on the CPU, not on {batch_sizes.device}")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> Self:
        def moved(indices: Tensor | None) -> Tensor | None:
            return None if indices is None else indices.to(data.device)

        made = type(self)(data, self.batch_sizes, moved(self.sorted_indices), moved(self.unsorted_indices))
        made._sizes = self._sizes
        return made

    @called_as(to_form)
    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same with ``data`` converted as :meth:`Tensor.to` does, and indices on its device."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data)

    @called_as(to_form)
    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """On a GPU of the server."""
        return self.to(*args, **kwargs) if args or "device" in kwargs else self.to(device="cuda", **kwargs)

    @called_as(to_form)
    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """On the server's CPU."""
        return self.to(*args, device="cpu", **kwargs)  # type: ignore[misc]  # a device in args is refused

    def double(self) -> Self:
        """In float64."""
        return self.to(dtypes.float64)

    def float(self) -> Self:
        """In float32."""
        return self.to(dtypes.float32)

    def half(self) -> Self:
        """In float16."""
        return self.to(dtypes.float16)

    def long(self) -> Self:
        """In int64."""
        return self.to(dtypes.int64)

    def int(self) -> Self:
        """In int32."""
        return self.to(dtypes.int32)

    def short(self) -> Self:
        """In int16."""
        return self.to(dtypes.int16)

    def char(self) -> Self:
        """In int8."""
        return self.to(dtypes.int8)

    def byte(self) -> Self:
        """In uint8."""
        return self.to(dtypes.uint8)

    def pin_memory(self) -> Self:
        """The same: memory is the server's."""
        return self

    def is_pinned(self) -> bool:
        """False."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a GPU of the server."""
        found: bool = self.data.is_cuda
        return found


def packed(
    data: Tensor, sizes: tuple[int, ...], sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None
) -> PackedSequence:
    """A packed sequence whose steps' numbers of rows are known here."""
    made = PackedSequence(data, tensor(sizes, dtype=dtypes.int64), sorted_indices, unsorted_indices)
    made._sizes = sizes
    return made


def like(sequence: PackedSequence, data: Tensor) -> PackedSequence:
    """A packed sequence of other data, with the same steps and order."""
    made = PackedSequence(data, sequence.batch_sizes, sequence.sorted_indices, sequence.unsorted_indices)
    made._sizes = sequence._sizes
    return made


def sizes_of(sequence: PackedSequence) -> tuple[int, ...]:
    """How many rows each step has. One that was made from a tensor of sizes is asked for it, once."""
    if sequence._sizes is None:
        sequence._sizes = tuple(sequence.batch_sizes.tolist())
    return sequence._sizes


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one, for an int64 vector; None for None."""
    return None if permutation is None else call("argsort", permutation)


def _plain_lengths(lengths: Any) -> list[int]:
    if isinstance(lengths, Tensor):
        if lengths.device.type != "cpu":
            raise ArgumentError(f"lengths are a list or a tensor on the CPU, not on {lengths.device}")
        given = given_values(lengths)
        lengths = (lengths if given is None else given).tolist()
    if any(isinstance(n, list) for n in lengths):
        raise ArgumentError("lengths are a list or a vector of numbers, one for each sequence")
    return [int(n) for n in lengths]


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Padded sequences without their padding.

    Args:
        input: ``(time, batch, ...)``, or ``(batch, time, ...)`` with ``batch_first``.
        lengths: of each sequence. A tensor that was computed is asked for its values, which costs a round trip; a
            list, and a tensor made of Python's or NumPy's numbers, are not.
        enforce_sorted: the sequences come longest first. Without, they are brought into that order.

    Raises:
        ArgumentError: for lengths that do not fit, or are not in order.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"pack_padded_sequence takes a tensor, not {type(input).__name__}")
    values = _plain_lengths(lengths)
    time, batch = (1, 0) if batch_first else (0, 1)
    if len(values) != input.shape[batch]:
        raise ArgumentError(f"{len(values)} lengths were given for {input.shape[batch]} sequences")
    if not values or min(values) <= 0:
        raise ArgumentError(f"all lengths are greater than 0; they are {values}")
    if max(values) > input.shape[time]:
        raise ArgumentError(f"a length of {max(values)} is more than the {input.shape[time]} steps of the input")
    order = sorted(range(len(values)), key=lambda k: -values[k])
    sorted_indices = None
    if not enforce_sorted:
        sorted_indices = tensor(order, dtype=dtypes.int64, device=input.device)
        input = call("index_select", input, batch, sorted_indices)
    elif any(a < b for a, b in pairwise(values)):
        raise ArgumentError(f"lengths never rise where enforce_sorted is set; they are {values}")
    sizes = tuple(sum(n > t for n in values) for t in range(max(values)))
    data = call("pack_padded", call("transpose", input, 0, 1) if batch_first else input, sizes)
    return _in_order(data, sizes, sorted_indices, order)


def _in_order(data: Any, sizes: tuple[int, ...], sorted_indices: Any, order: list[int]) -> PackedSequence:
    unsorted = None
    if sorted_indices is not None:
        unsorted = tensor(sorted(range(len(order)), key=order.__getitem__), dtype=dtypes.int64, device=data.device)
    made: PackedSequence = packed(data, sizes, sorted_indices, unsorted)
    return made


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """(the sequences padded to one tensor, their lengths), the way back of :func:`pack_padded_sequence`.

    Args:
        total_length: pad to so many steps, not to the longest sequence's.

    Raises:
        ArgumentValueError: for a ``total_length`` that is less.
    """
    sizes = sizes_of(sequence)
    if total_length is not None and total_length < len(sizes):
        raise ArgumentValueError(f"total_length is {total_length}, the longest sequence has {len(sizes)} steps")
    found = call("pad_packed", sequence.data, sizes, padding_value, total_length)
    if batch_first:
        found = call("transpose", found, 0, 1)
    lengths = tensor([sum(b > k for b in sizes) for k in range(sizes[0])], dtype=dtypes.int64)
    if sequence.unsorted_indices is not None:
        found = call("index_select", found, 0 if batch_first else 1, sequence.unsorted_indices)
        lengths = call("index_select", lengths, 0, sequence.unsorted_indices.cpu())
    return found, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:  # fmt: skip
    """Sequences ``(length, ...)`` as one tensor ``(time, batch, ...)``, with ``batch_first`` ``(batch, time, ...)``.

    Args:
        padding_value: what fills shorter sequences up.
        padding_side: ``"right"`` fills after, ``"left"`` before them.
    """
    if isinstance(sequences, Tensor):
        sequences = list(call("unbind", sequences, 0))
    elif not isinstance(sequences, Iterable):
        raise ArgumentError(f"pad_sequence takes tensors in an iterable, not {type(sequences).__name__}")
    return call("pad_sequence", list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences in a padded tensor, each of its own length."""
    if not batch_first:
        padded_sequences = call("transpose", padded_sequences, 0, 1)
    values = _plain_lengths(lengths)
    rows = call("unbind", padded_sequences, 0)
    return [call("narrow", row, 0, 0, n) for row, n in zip(rows, values, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences ``(length, ...)`` packed; see :func:`pack_padded_sequence`."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one, in the order they were given in."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip
