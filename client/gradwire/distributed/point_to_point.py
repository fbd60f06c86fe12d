"""Sending a tensor from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, Unsupported

from .._core.tensor.tensor import Tensor
from .collectives import checked, run
from .process_group import Group, ProcessGroup, member
from .work import Work


def _other(group: ProcessGroup, rank: int | None, group_rank: int | None, name: str, what: str) -> int:
    if rank is None and group_rank is None and name == "src":
        raise Unsupported(f"{what} from any rank is not supported: say which with src=")
    found = group.rank_of(rank, group_rank, name)
    if found == group.rank():
        raise ArgumentValueError(f"{what}: {name} is this rank itself, {group.ranks[found]}")
    return found


def isend(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Send a tensor to rank ``dst``, which receives it with the same tag."""
    chosen = member(group, "send")
    if chosen is None:
        return None
    at = _other(chosen, dst, group_dst, "dst", "send")
    run("send", chosen, checked(tensor, "tensor", "send"), at, tag)
    return Work(chosen.session, [tensor])


def irecv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receive what rank ``src`` sends with the same tag into ``tensor``.

    Raises:
        Unsupported: without ``src``.
    """
    chosen = member(group, "recv")
    if chosen is None:
        return None
    at = _other(chosen, src, group_src, "src", "recv")
    run("recv_", chosen, checked(tensor, "tensor", "recv"), at, tag)
    return Work(chosen.session, [tensor])


def send(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """As :func:`isend`. It does not wait for the other rank; what is recorded later does."""
    isend(tensor, dst, group, tag, group_dst)


def recv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> int:
    """As :func:`irecv`. Returns the rank that sends, -1 where this one is not in the group."""
    if irecv(tensor, src, group, tag, group_src) is None:
        return -1
    chosen = member(group, "recv")
    assert chosen is not None
    return chosen.ranks[chosen.rank_of(src, group_src, "src")]


class P2POp:
    """One of the sends and receives of :func:`batch_isend_irecv`: ``op`` is :func:`isend` or :func:`irecv`."""

    def __init__(
        self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Group = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ArgumentValueError("P2POp: op is torch.distributed.isend or torch.distributed.irecv")
        self.op: Callable[..., Any] = op
        self.tensor: Tensor = tensor
        self.peer: int | None = peer
        self.group: Group = group
        self.tag: int = tag
        self.group_peer: int | None = group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Send and receive, in the order of the rank pairs' lower rank first, so that no two ranks wait for each other.

    Raises:
        ArgumentTypeError: for anything else than :class:`P2POp`.
    """
    for each in p2p_op_list:
        if not isinstance(each, P2POp):
            raise ArgumentTypeError(f"batch_isend_irecv takes P2POp, not {type(each).__name__}")

    def turn(each: P2POp) -> tuple[int, int, bool]:
        # A session does one after the other, and each waits for its partner. In this order, the same on both sides of
        # each pair, no circle of waiting ranks can come about.
        chosen = member(each.group, "batch_isend_irecv")
        if chosen is None:
            return -1, -1, False
        peer = chosen.ranks[chosen.rank_of(each.peer, each.group_peer, "peer")]
        me = chosen.ranks[chosen.rank()]
        return min(me, peer), max(me, peer), (each.op is isend) != (me < peer)

    found = []
    for each in sorted(p2p_op_list, key=turn):
        if each.op is isend:
            work = isend(each.tensor, each.peer, each.group, each.tag, each.group_peer)
        else:
            work = irecv(each.tensor, each.peer, each.group, each.tag, each.group_peer)
        if work is not None:
            found.append(work)
    return found
