"""Collectives: tensors that the sessions of a group reduce, gather and hand around.

The ranks of a *group* are sessions: on one server, in several worker processes, or on several machines. Each opens the
group by name (``POST /v1/sessions/{id}/groups``) and says which rank it is. From then on all ranks run the same
collectives of the group in the same order, with tensors of the same shapes and dtypes; a rank that does not ends
the collective of all with an error that names it. Nothing here has a derivative: as PyTorch's ``torch.distributed``,
collectives write over values behind autograd's back. What came from other ranks is kept in the journal of a durable
session, so that it is recovered without them.

A reduction adds the ranks' chunks in an order that only the size of the tensor and of the group decide: all ranks get
the same bits, and each run does.
"""

from __future__ import annotations

from typing import Final

from ..dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL, DType
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..meta import UNKNOWN, Inference, new, nothing
from ..shapes import common_device
from ..table import Ints, Tensor, op

GROUP_LENGTH: Final = 200
"""The most characters of a group's name."""
MAX_WORLD_SIZE: Final = 1024
"""The most ranks of a group."""

CATEGORIES: Final[dict[str, tuple[int, ...]]] = {
    "sum": (BOOLEAN, INTEGRAL, FLOATING, COMPLEX),
    "product": (BOOLEAN, INTEGRAL, FLOATING),
    "min": (BOOLEAN, INTEGRAL, FLOATING),
    "max": (BOOLEAN, INTEGRAL, FLOATING),
    "avg": (FLOATING, COMPLEX),
    "band": (BOOLEAN, INTEGRAL),
    "bor": (BOOLEAN, INTEGRAL),
    "bxor": (BOOLEAN, INTEGRAL),
}
"""The reductions, with the categories of dtypes that each takes. Of booleans, the sum is whether one is true, and the
product whether all are."""
REDUCTIONS: Final = tuple(CATEGORIES)

_KINDS: Final = {BOOLEAN: "boolean", INTEGRAL: "integer", FLOATING: "floating point", COMPLEX: "complex"}


def check_group(name: str, group: str) -> None:
    """Check the name of a group.

    Raises:
        ArgumentValueError: when it is empty or too long.
    """
    if not 0 < len(group) <= GROUP_LENGTH:
        raise ArgumentValueError(
            f"{name}: a group's name has 1 to {GROUP_LENGTH} characters, this one has {len(group)}"
        )


def check_rank(name: str, what: str, rank: int, world_size: int = MAX_WORLD_SIZE) -> None:
    """Check that a group of this size has this rank.

    Raises:
        ArgumentValueError: naming it.
    """
    if not 1 <= world_size <= MAX_WORLD_SIZE:
        raise ArgumentValueError(f"{name}: a group has 1 to {MAX_WORLD_SIZE} ranks, not {world_size}")
    if not 0 <= rank < world_size:
        raise ArgumentValueError(f"{name}: {what} is {rank}, but ranks go from 0 to {world_size - 1}")


def check_reduction(name: str, reduce_op: str, dtype: DType) -> None:
    """Check that a dtype has this reduction.

    Raises:
        ArgumentValueError: for an unknown one.
        DTypeError: for a dtype that it is not defined for.
    """
    if reduce_op not in CATEGORIES:
        raise ArgumentValueError(f"{name}: reduce_op must be one of {', '.join(REDUCTIONS)}, not {reduce_op!r}")
    if dtype.category not in CATEGORIES[reduce_op]:
        raise DTypeError(f"{name}: {reduce_op!r} is not defined for {_KINDS[dtype.category]} tensors, got {dtype.name}")


@op(collective=True, mutates=0, results=0, exposed=())
def all_reduce_(self: Tensor, group: str, reduce_op: str = "sum") -> Inference:
    """Reduce the tensors of all ranks, element by element, and write the result over ``self`` on each of them."""
    check_group("all_reduce_", group)
    check_reduction("all_reduce_", reduce_op, self.dtype)
    return nothing()


@op(collective=True, mutates=0, results=0, exposed=())
def reduce_(self: Tensor, group: str, dst: int, reduce_op: str = "sum") -> Inference:
    """Reduce the tensors of all ranks, element by element, and write the result over ``self`` on rank ``dst`` alone."""
    check_group("reduce_", group)
    check_rank("reduce_", "dst", dst)
    check_reduction("reduce_", reduce_op, self.dtype)
    return nothing()


@op(collective=True, mutates=0, results=0, exposed=())
def broadcast_(self: Tensor, group: str, src: int) -> Inference:
    """Write the values of rank ``src`` over ``self`` on all ranks."""
    check_group("broadcast_", group)
    check_rank("broadcast_", "src", src)
    return nothing()


@op(collective=True, exposed=())
def all_gather(self: Tensor, group: str, world_size: int) -> Inference:
    """The tensors of all ranks, stacked in the order of ranks: ``(world_size, *shape)``. ``world_size`` must be the
    group's."""
    check_group("all_gather", group)
    check_rank("all_gather", "rank", 0, world_size)
    return new((world_size, *self.shape), self.dtype, self.device)


@op(collective=True, exposed=())
def gather_to(self: Tensor, group: str, dst: int, rank: int, world_size: int) -> Inference:
    """On rank ``dst`` the tensors of all ranks, stacked in the order of ranks: ``(world_size, *shape)``; elsewhere
    ``(0, *shape)``. ``rank`` and ``world_size`` must be those that the session opened the group with."""
    check_group("gather_to", group)
    check_rank("gather_to", "dst", dst, world_size)
    check_rank("gather_to", "rank", rank, world_size)
    return new((world_size if rank == dst else 0, *self.shape), self.dtype, self.device)


@op(collective=True, mutates=0, results=0, exposed=())
def scatter_from_(self: Tensor, group: str, src: int, parts: Tensor | None = None) -> Inference:
    """Write row r of ``parts`` of rank ``src``, ``(world_size, *shape)``, over ``self`` on each rank r. Other ranks
    pass no ``parts``."""
    check_group("scatter_from_", group)
    check_rank("scatter_from_", "src", src)
    if parts is not None:
        if parts.ndim != self.ndim + 1 or not _fit(parts.shape[1:], self.shape):
            raise ShapeError(
                f"scatter_from_: parts need the shape [world size, {', '.join(map(str, self.shape))}], not "
                f"{list(parts.shape)}"
            )
        if parts.dtype is not self.dtype:
            raise DTypeError(f"scatter_from_: parts are {parts.dtype.name}, but self is {self.dtype.name}")
        common_device(self, parts)
    return nothing()


@op(collective=True, exposed=())
def reduce_scatter(self: Tensor, group: str, world_size: int, reduce_op: str = "sum") -> Inference:
    """Reduce the tensors of all ranks, element by element, cut the result into ``world_size`` equal parts along the
    first dimension, and return part r on rank r. ``world_size`` must be the group's."""
    check_group("reduce_scatter", group)
    check_rank("reduce_scatter", "rank", 0, world_size)
    check_reduction("reduce_scatter", reduce_op, self.dtype)
    if not self.ndim:
        raise ShapeError("reduce_scatter needs at least one dimension to cut along, got a 0-dim tensor")
    rows = self.shape[0]
    if rows != UNKNOWN and rows % world_size:
        raise ShapeError(f"reduce_scatter: {rows} rows cannot be cut into {world_size} equal parts")
    return new((UNKNOWN if rows == UNKNOWN else rows // world_size, *self.shape[1:]), self.dtype, self.device)


@op(collective=True, exposed=())
def all_to_all(self: Tensor, group: str, sent: Ints, received: Ints) -> Inference:
    """Cut ``self`` along its first dimension into one part for each rank, ``sent[r]`` rows for rank r, and return what
    the ranks cut for this one, put together in the order of ranks: ``received[r]`` rows from rank r."""
    check_group("all_to_all", group)
    check_rank("all_to_all", "rank", 0, len(sent))
    if len(sent) != len(received):
        raise ArgumentError(f"all_to_all: sent names {len(sent)} parts, but received {len(received)}")
    for what, sizes in (("sent", sent), ("received", received)):
        if min(sizes) < 0:
            raise ArgumentValueError(f"all_to_all: {what} has the negative size {min(sizes)}")
    if not self.ndim:
        raise ShapeError("all_to_all needs at least one dimension to cut along, got a 0-dim tensor")
    if self.shape[0] not in (UNKNOWN, sum(sent)):
        raise ShapeError(f"all_to_all: sent names {sum(sent)} rows, but the tensor has {self.shape[0]}")
    return new((sum(received), *self.shape[1:]), self.dtype, self.device)


@op(collective=True, results=0, exposed=())
def barrier(group: str) -> Inference:
    """Wait until all ranks have come here."""
    check_group("barrier", group)
    return nothing()


@op(collective=True, results=0, exposed=())
def send(self: Tensor, group: str, dst: int, tag: int = 0) -> Inference:
    """Send the values to rank ``dst``, which takes them with :func:`recv_` and the same ``tag``. Only these two ranks
    take part; it waits for the other one."""
    check_group("send", group)
    check_rank("send", "dst", dst)
    return nothing()


@op(collective=True, mutates=0, results=0, exposed=())
def recv_(self: Tensor, group: str, src: int, tag: int = 0) -> Inference:
    """Write what rank ``src`` sends with :func:`send` and the same ``tag`` over ``self``. Only these two ranks take
    part."""
    check_group("recv_", group)
    check_rank("recv_", "src", src)
    return nothing()


def _fit(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return len(a) == len(b) and all(x == y or UNKNOWN in (x, y) for x, y in zip(a, b, strict=True))
