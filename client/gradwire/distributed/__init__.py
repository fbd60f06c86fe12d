"""``torch.distributed``: programs that train together, each in a session of its own.

The sessions exchange tensors on the server's side, by collective ops that are recorded like all others; data does not
pass through the programs. ``process_group.py`` has groups and ranks, ``rendezvous.py`` how a program learns its rank,
``collectives.py``, ``point_to_point.py`` and ``objects.py`` what ranks exchange, ``work.py`` what ``async_op=True``
returns. What gradwire lacks stands in ``refused.py``.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .process_group import (
    Backend,
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from .reductions import ReduceOp
from .refused import fill as _fill
from .stores import HashStore, PrefixStore, Store
from .work import Future, Work

all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor
reduce_op = ReduceOp
_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor


def _named_error(name: str, base: type[Exception], doc: str) -> type[Exception]:
    def __init__(self: Exception, message: str = "") -> None:
        base.__init__(self, message)

    return type(name, (base,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


DistError = _named_error("DistError", RuntimeError, "PyTorch's base of errors of groups.")
DistBackendError = _named_error("DistBackendError", DistError, "PyTorch's error of a backend.")
DistNetworkError = _named_error("DistNetworkError", DistError, "PyTorch's error of a connection.")
DistStoreError = _named_error("DistStoreError", DistError, "PyTorch's error of a store.")


def _rank_not_in_group(group: ProcessGroup | int | None) -> bool:
    """Whether this rank is not in the group."""
    return group == GroupMember.NON_GROUP_MEMBER


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether complex tensors can be reduced so."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


def get_default_backend_for_device(device: Any) -> str:
    """``"gradwire"``, for all devices."""
    return "gradwire"


__all__ = [
    "Backend", "Future", "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store",
    "Work", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_reduce_coalesced",
    "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "default_pg_timeout", "destroy_process_group", "gather", "gather_object", "get_backend", "get_backend_config",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend",
    "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list",
    "reduce", "reduce_op", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
    "scatter_object_list", "send", "send_object_list", "supports_complex",
]  # fmt: skip

_LATER = (
    "_functional_collectives", "algorithms", "checkpoint", "constants", "device_mesh", "distributed_c10d", "elastic",
    "fsdp", "nn", "optim", "pipelining", "rpc", "tensor", "utils",
)  # fmt: skip
"""Submodules, imported at first mention."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


_fill(__name__)
