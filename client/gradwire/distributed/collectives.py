"""Collectives over tensors: what the ranks of a group reduce, gather and hand around.

Each is one record of a collective op, with records that cut or join tensors around it. Nothing waits: the server
exchanges the data when it comes to the record. In a group of one rank only arguments are checked and data copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, DTypeError
from gradwire_protocol.ops.collectives import check_reduction

from .._core.context.modes import MODES, no_grad
from .._core.dispatch.dispatch import call
from .._core.tensor.tensor import Tensor
from .process_group import Group, ProcessGroup, member
from .reductions import ReduceOp, name_of
from .work import Work


def checked(value: Any, name: str, what: str) -> Tensor:
    """A tensor that a collective takes.

    Raises:
        ArgumentTypeError: for anything else.
    """
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(f"{what}: {name} is a tensor, not {type(value).__name__}")
    return value


def checked_list(values: Any, name: str, what: str, group: ProcessGroup | None = None) -> list[Tensor]:
    """Tensors that a collective takes, one for each rank of ``group`` where it is given.

    Raises:
        ArgumentTypeError: for anything else than tensors.
        ArgumentValueError: for another number of them.
    """
    if not isinstance(values, (list, tuple)):
        raise ArgumentTypeError(f"{what}: {name} is a list of tensors, not {type(values).__name__}")
    found = [checked(value, f"{name}[{i}]", what) for i, value in enumerate(values)]
    if group is not None and len(found) != group.size():
        raise ArgumentValueError(
            f"{what}: {name} has {len(found)} tensors, one for each of {group.size()} ranks are due"
        )
    return found


def run(op: str, group: ProcessGroup, operand: Tensor | Sequence[Tensor] | None, *args: Any) -> Any:
    """Record a collective op of a group with several ranks.

    Raises:
        ArgumentError: for a tensor of another session than that which is in the group.
    """
    if MODES.capture is not None:
        MODES.capture.refuse("the ranks of a process group exchange data")
    session = group.session
    assert session is not None
    for tensor in () if operand is None else (operand,) if isinstance(operand, Tensor) else operand:
        if tensor._session is not session:
            raise ArgumentError(
                f"{op}: the tensor belongs to session {tensor._session.id}, and session {session.id} is in the group"
            )
    with no_grad():
        return call(op, group.wire, *args) if operand is None else call(op, operand, group.wire, *args)


def copy(target: Tensor, source: Tensor) -> None:
    """Write values over a tensor, behind autograd's back."""
    with no_grad():
        call("copy_", target, source)


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """The values of tensors of one dtype, one after the other."""
    with no_grad():
        flat = [call("reshape", tensor, (-1,)) for tensor in tensors]
        found: Tensor = flat[0] if len(flat) == 1 else call("cat", flat, 0)
        return found


def spread(source: Tensor, targets: Sequence[Tensor]) -> None:
    """Write values over tensors, one after the other: the reverse of :func:`joined`."""
    with no_grad():
        parts = call("split", source, tuple([target.numel() for target in targets]), 0)
        for target, part in zip(targets, parts, strict=True):
            call("copy_", target, call("reshape", part, tuple(target.shape)))


def _alike(tensors: Sequence[Tensor], like: Tensor, name: str, what: str, shapes: bool = True) -> None:
    for i, tensor in enumerate(tensors):
        if tensor.dtype is not like.dtype:
            raise DTypeError(f"{what}: {name}[{i}] is {tensor.dtype.name}, the tensor {like.dtype.name}")
        if shapes and tensor.shape != like.shape:
            raise ArgumentValueError(
                f"{what}: {name}[{i}] has shape {list(tensor.shape)}, the tensor {list(like.shape)}"
            )


def _done(group: ProcessGroup, async_op: bool, result: Any = None) -> Work | None:
    return Work(group.session, result) if async_op else None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False) -> Work | None:
    """Reduce the tensors of all ranks element by element; each has the result in ``tensor`` then."""
    chosen = member(group, "all_reduce")
    if chosen is None:
        return None
    name = name_of(op)
    check_reduction("all_reduce", name, checked(tensor, "tensor", "all_reduce").dtype)
    if chosen.size() > 1:
        run("all_reduce_", chosen, tensor, name)
    return _done(chosen, async_op, [tensor])


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """:func:`all_reduce` of several tensors of one dtype at once."""
    chosen = member(group, "all_reduce_coalesced")
    if chosen is None:
        return None
    listed = checked_list([tensors] if isinstance(tensors, Tensor) else tensors, "tensors", "all_reduce_coalesced")
    name = name_of(op)
    if listed:
        _alike(listed, listed[0], "tensors", "all_reduce_coalesced", shapes=False)
        check_reduction("all_reduce_coalesced", name, listed[0].dtype)
        if chosen.size() > 1:
            flat = joined(listed).clone() if len(listed) == 1 else joined(listed)
            run("all_reduce_", chosen, flat, name)
            spread(flat, listed)
    return _done(chosen, async_op, listed)


def reduce(
    tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Reduce the tensors of all ranks; rank ``dst`` has the result in ``tensor`` then, the others keep their values."""
    chosen = member(group, "reduce")
    if chosen is None:
        return None
    name, at = name_of(op), chosen.rank_of(dst, group_dst, "dst")
    check_reduction("reduce", name, checked(tensor, "tensor", "reduce").dtype)
    if chosen.size() > 1:
        run("reduce_", chosen, tensor, at, name)
    return _done(chosen, async_op, [tensor])


def broadcast(
    tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copy the values of rank ``src`` to all."""
    chosen = member(group, "broadcast")
    if chosen is None:
        return None
    at = chosen.rank_of(src, group_src, "src")
    checked(tensor, "tensor", "broadcast")
    if chosen.size() > 1:
        run("broadcast_", chosen, tensor, at)
    return _done(chosen, async_op, [tensor])


def _gathered(group: ProcessGroup, tensor: Tensor) -> Tensor:
    """The tensors of all ranks, stacked."""
    if group.size() > 1:
        found: Tensor = run("all_gather", group, tensor, group.size())
        return found
    with no_grad():
        alone: Tensor = call("unsqueeze", tensor, 0)
        return alone


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Copy the tensor of each rank to ``tensor_list`` of all, in the order of ranks."""
    chosen = member(group, "all_gather")
    if chosen is None:
        return None
    listed = checked_list(tensor_list, "tensor_list", "all_gather", chosen)
    _alike(listed, checked(tensor, "tensor", "all_gather"), "tensor_list", "all_gather")
    with no_grad():
        for target, row in zip(listed, call("unbind", _gathered(chosen, tensor), 0), strict=True):
            call("copy_", target, row)
    return _done(chosen, async_op, listed)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all ranks into one tensor, joined along the first dimension, or stacked."""
    chosen = member(group, "all_gather_into_tensor")
    if chosen is None:
        return None
    what = "all_gather_into_tensor"
    checked(output_tensor, "output_tensor", what)
    checked(input_tensor, "input_tensor", what)
    _alike([output_tensor], input_tensor, "output_tensor", what, shapes=False)
    if output_tensor.numel() != input_tensor.numel() * chosen.size():
        raise ArgumentValueError(
            f"{what}: the output has {output_tensor.numel()} elements, {chosen.size()} times the input's "
            f"{input_tensor.numel()} are due"
        )
    copy(output_tensor, call("reshape", _gathered(chosen, input_tensor), tuple(output_tensor.shape)))
    return _done(chosen, async_op, [output_tensor])


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Group = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Copy the tensor of each rank to ``gather_list`` of rank ``dst``; others give none."""
    chosen = member(group, "gather")
    if chosen is None:
        return None
    at = chosen.rank_of(dst, group_dst, "dst", default=0)
    checked(tensor, "tensor", "gather")
    listed: list[Tensor] = []
    if chosen.rank() == at:
        listed = checked_list(gather_list, "gather_list", "gather", chosen)
        _alike(listed, tensor, "gather_list", "gather")
    elif gather_list:
        raise ArgumentValueError(f"gather: only rank {chosen.ranks[at]}, which is dst, gives gather_list")
    if chosen.size() > 1:
        rows = run("gather_to", chosen, tensor, at, chosen.rank(), chosen.size())
    else:
        rows = _gathered(chosen, tensor)
    if listed:
        with no_grad():
            for target, row in zip(listed, call("unbind", rows, 0), strict=True):
                call("copy_", target, row)
    return _done(chosen, async_op, listed)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Group = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Copy one tensor of ``scatter_list`` of rank ``src`` to ``tensor`` of each rank; others give none."""
    chosen = member(group, "scatter")
    if chosen is None:
        return None
    at = chosen.rank_of(src, group_src, "src", default=0)
    checked(tensor, "tensor", "scatter")
    parts = None
    if chosen.rank() == at:
        listed = checked_list(scatter_list, "scatter_list", "scatter", chosen)
        _alike(listed, tensor, "scatter_list", "scatter")
        with no_grad():
            parts = call("stack", listed, 0)
    elif scatter_list:
        raise ArgumentValueError(f"scatter: only rank {chosen.ranks[at]}, which is src, gives scatter_list")
    if chosen.size() > 1:
        run("scatter_from_", chosen, tensor, at, parts)
    elif parts is not None:
        copy(tensor, call("reshape", parts, tuple(tensor.shape)))
    return _done(chosen, async_op, [tensor])


def _reduced_part(group: ProcessGroup, rows: Tensor, op: str) -> Tensor:
    """This rank's row of the reduction of ``rows``."""
    if group.size() > 1:
        found: Tensor = run("reduce_scatter", group, rows, group.size(), op)
        return found
    return rows


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Group = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Reduce the lists of all ranks element by element; rank r has tensor r of the result in ``output`` then."""
    chosen = member(group, "reduce_scatter")
    if chosen is None:
        return None
    name = name_of(op)
    listed = checked_list(input_list, "input_list", "reduce_scatter", chosen)
    _alike(listed, checked(output, "output", "reduce_scatter"), "input_list", "reduce_scatter")
    check_reduction("reduce_scatter", name, output.dtype)
    with no_grad():
        rows = call("stack", listed, 0)
    copy(output, call("reshape", _reduced_part(chosen, rows, name), tuple(output.shape)))
    return _done(chosen, async_op, [output])


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce the tensors of all ranks element by element; rank r has part r of the result in ``output`` then."""
    chosen = member(group, "reduce_scatter_tensor")
    if chosen is None:
        return None
    what, name = "reduce_scatter_tensor", name_of(op)
    checked(output, "output", what)
    _alike([output], checked(input, "input", what), "output", what, shapes=False)
    check_reduction(what, name, output.dtype)
    if input.numel() != output.numel() * chosen.size():
        raise ArgumentValueError(
            f"{what}: the input has {input.numel()} elements, not {chosen.size()} times the output's {output.numel()}"
        )
    with no_grad():
        rows = call("reshape", input, (chosen.size(), output.numel()))
    copy(output, call("reshape", _reduced_part(chosen, rows, name), tuple(output.shape)))
    return _done(chosen, async_op, [output])


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Copy tensor r of each rank's input list to rank r, which has them in the order of ranks in its output list."""
    chosen = member(group, "all_to_all")
    if chosen is None:
        return None
    outputs = checked_list(output_tensor_list, "output_tensor_list", "all_to_all", chosen)
    inputs = checked_list(input_tensor_list, "input_tensor_list", "all_to_all", chosen)
    _alike([*outputs, *inputs], inputs[0], "tensors", "all_to_all", shapes=False)
    sent, received = tuple([t.numel() for t in inputs]), tuple([t.numel() for t in outputs])
    spread(_exchanged(chosen, joined(inputs), sent, received, "all_to_all"), outputs)
    return _done(chosen, async_op, outputs)


def _exchanged(
    group: ProcessGroup, rows: Tensor, sent: tuple[int, ...], received: tuple[int, ...], what: str
) -> Tensor:
    if group.size() > 1:
        found: Tensor = run("all_to_all", group, rows, sent, received)
        return found
    if sent != received:
        raise ArgumentValueError(f"{what}: the only rank sends itself {list(sent)} and expects {list(received)}")
    return rows


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Group = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Cut ``input`` along its first dimension, one part for each rank, and join what the ranks cut for this one."""
    chosen = member(group, "all_to_all_single")
    if chosen is None:
        return None
    what = "all_to_all_single"
    checked(output, "output", what)
    _alike([output], checked(input, "input", what), "output", what, shapes=False)
    sent = _split(input, input_split_sizes, chosen, "input", what)
    received = _split(output, output_split_sizes, chosen, "output", what)
    copy(output, _exchanged(chosen, input, sent, received, what))
    return _done(chosen, async_op, [output])


def _split(tensor: Tensor, sizes: Sequence[int] | None, group: ProcessGroup, name: str, what: str) -> tuple[int, ...]:
    if not tensor.ndim:
        raise ArgumentValueError(f"{what}: {name} has no dimension to cut along")
    rows, ranks = tensor.shape[0], group.size()
    if not sizes:
        if rows % ranks:
            raise ArgumentValueError(f"{what}: {name} has {rows} rows, which {ranks} ranks cannot have equally many of")
        return (rows // ranks,) * ranks
    found = tuple(int(size) for size in sizes)
    if len(found) != ranks or sum(found) != rows or min(found) < 0:
        raise ArgumentValueError(
            f"{what}: the sizes of {name} are one for each of {ranks} ranks and sum up to {rows}, not {list(found)}"
        )
    return found


def barrier(
    group: Group = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until all ranks have come here, and all that they recorded before is done.

    Raises:
        CollectiveError: naming a rank that did not come.
    """
    chosen = member(group, "barrier")
    if chosen is None:
        return None
    if chosen.size() > 1:
        run("barrier", chosen, None)
        if not async_op and chosen.session is not None:
            chosen.session.synchronize()
    return _done(chosen, async_op)


def monitored_barrier(group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """As :func:`barrier`, whose error names the rank that did not come. The time limit is the group's.

    Raises:
        CollectiveError: naming a rank that did not come.
    """
    barrier(group)
