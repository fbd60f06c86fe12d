"""Collectives over Python objects, which travel as bytes in tensors. Their sizes go first, which is one round trip, and
their bytes are another."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError
from gradwire_protocol.meta import meta

from .._core.session.session import Session
from .._core.tensor.tensor import Tensor
from . import point_to_point
from .collectives import run
from .encoding import decode, encode
from .process_group import Group, ProcessGroup, member


def _session(group: ProcessGroup) -> Session:
    assert group.session is not None
    return group.session


def _sent(group: ProcessGroup, values: np.ndarray[Any, Any]) -> Tensor:
    """A tensor of these values."""
    session = _session(group)
    dtype = dtypes.uint8 if values.dtype == np.uint8 else dtypes.int64
    made: Tensor = Tensor._make(session, session.upload(values, dtype, "cpu"), meta(tuple(values.shape), dtype, "cpu"))
    return made


def _read(group: ProcessGroup, tensor: Tensor) -> np.ndarray[Any, Any]:
    found = _session(group).read([tensor])[0]
    assert found is not None
    return found


def _padded(data: bytes, size: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(data.ljust(size, b"\0"), np.uint8).copy()


def _sizes(group: ProcessGroup, size: int) -> list[int]:
    """The sizes of all ranks."""
    found = run("all_gather", group, _sent(group, np.array([size], np.int64)), group.size())
    return [int(each) for each in _read(group, found).reshape(-1)]


def all_gather_object(object_list: list[Any], obj: Any, group: Group = None) -> None:
    """Put the object of each rank into ``object_list`` of all.

    Raises:
        ArgumentTypeError: for objects that are no plain data; see :mod:`.encoding`.
    """
    chosen = member(group, "all_gather_object")
    if chosen is None:
        return
    _check_list(object_list, "object_list", "all_gather_object", chosen.size())
    data = encode(obj)
    if chosen.size() == 1:
        object_list[0] = decode(data)
        return
    sizes = _sizes(chosen, len(data))
    rows = _read(chosen, run("all_gather", chosen, _sent(chosen, _padded(data, max(sizes))), chosen.size()))
    for i, size in enumerate(sizes):
        object_list[i] = decode(rows[i, :size].tobytes())


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Group = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Put the object of each rank into ``object_gather_list`` of rank ``dst``; others give none."""
    chosen = member(group, "gather_object")
    if chosen is None:
        return
    at = chosen.rank_of(dst, group_dst, "dst", default=0)
    mine = chosen.rank() == at
    if mine:
        _check_list(object_gather_list, "object_gather_list", "gather_object", chosen.size())
    elif object_gather_list:
        raise ArgumentValueError(f"gather_object: only rank {chosen.ranks[at]}, which is dst, gives object_gather_list")
    data = encode(obj)
    if chosen.size() == 1:
        assert object_gather_list is not None
        object_gather_list[0] = decode(data)
        return
    sizes = _sizes(chosen, len(data))
    sent = _sent(chosen, _padded(data, max(sizes)))
    rows = run("gather_to", chosen, sent, at, chosen.rank(), chosen.size())
    if mine:
        assert object_gather_list is not None
        values = _read(chosen, rows)
        for i, size in enumerate(sizes):
            object_gather_list[i] = decode(values[i, :size].tobytes())


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Group = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Replace the objects in ``object_list`` by those of rank ``src``."""
    chosen = member(group, "broadcast_object_list")
    if chosen is None:
        return
    at = chosen.rank_of(src, group_src, "src", default=0)
    _check_list(object_list, "object_list", "broadcast_object_list", None)
    mine = chosen.rank() == at
    data = encode(object_list) if mine else b""
    if chosen.size() == 1:
        return
    size = _sent(chosen, np.array([len(data)], np.int64))
    run("broadcast_", chosen, size, at)
    values = _sent(chosen, _padded(data, int(_read(chosen, size)[0])))
    run("broadcast_", chosen, values, at)
    if mine:
        _session(chosen).flush()
        return
    found = decode(_read(chosen, values).tobytes())
    if len(found) != len(object_list):
        raise ArgumentValueError(
            f"broadcast_object_list: rank {chosen.ranks[at]} sent {len(found)} objects, this rank expects "
            f"{len(object_list)}"
        )
    object_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Group = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Put one object of rank ``src`` into the first place of ``scatter_object_output_list`` of each rank."""
    chosen = member(group, "scatter_object_list")
    if chosen is None:
        return
    what = "scatter_object_list"
    at = chosen.rank_of(src, group_src, "src", default=0)
    _check_list(scatter_object_output_list, "scatter_object_output_list", what, None)
    if not scatter_object_output_list:
        raise ArgumentValueError(f"{what}: scatter_object_output_list has no place for an object")
    mine = chosen.rank() == at
    given: list[Any] = []
    if mine:
        _check_list(scatter_object_input_list, "scatter_object_input_list", what, chosen.size())
        given = list(scatter_object_input_list or ())
    parts = [encode(each) for each in given]
    if chosen.size() == 1:
        scatter_object_output_list[0] = decode(parts[0])
        return
    lengths = [len(part) for part in parts] or [0] * chosen.size()
    sizes = _sent(chosen, np.array(lengths, np.int64))
    run("broadcast_", chosen, sizes, at)
    counted = [int(each) for each in _read(chosen, sizes)]
    longest = max(counted)
    rows = _sent(chosen, np.stack([_padded(part, longest) for part in parts])) if mine else None
    target = _sent(chosen, np.zeros(longest, np.uint8))
    run("scatter_from_", chosen, target, at, rows)
    scatter_object_output_list[0] = decode(_read(chosen, target)[: counted[chosen.rank()]].tobytes())


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Group = None, device: Any = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Send objects to rank ``dst``."""
    chosen = member(group, "send_object_list")
    if chosen is None:
        return
    _check_list(object_list, "object_list", "send_object_list", None)
    data = encode(object_list)
    point_to_point.send(_sent(chosen, np.array([len(data)], np.int64)), dst, chosen, group_dst=group_dst)
    point_to_point.send(_sent(chosen, _padded(data, len(data))), dst, chosen, group_dst=group_dst)
    _session(chosen).flush()


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group = None, device: Any = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Replace the objects in ``object_list`` by those that rank ``src`` sends. Returns its rank."""
    chosen = member(group, "recv_object_list")
    if chosen is None:
        return -1
    _check_list(object_list, "object_list", "recv_object_list", None)
    size = _sent(chosen, np.zeros(1, np.int64))
    rank = point_to_point.recv(size, src, chosen, group_src=group_src)
    values = _sent(chosen, np.zeros(int(_read(chosen, size)[0]), np.uint8))
    point_to_point.recv(values, src, chosen, group_src=group_src)
    found = decode(_read(chosen, values).tobytes())
    if len(found) != len(object_list):
        raise ArgumentValueError(f"rank {rank} sent {len(found)} objects, this rank expects {len(object_list)}")
    object_list[:] = found
    return rank


def _check_list(given: Any, name: str, what: str, size: int | None) -> None:
    if not isinstance(given, list):
        raise ArgumentTypeError(f"{what}: {name} is a list, not {type(given).__name__}")
    if size is not None and len(given) != size:
        raise ArgumentValueError(f"{what}: {name} has {len(given)} places, one for each of {size} ranks are due")
