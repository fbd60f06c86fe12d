"""Process groups: which ranks take part in a collective, and the session that records it."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, ClassVar, Final

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, GradwireError, Unsupported

from .._core.session.current_session import current_session
from .._core.session.session import Session
from . import membership, rendezvous

BACKENDS: Final = frozenset({"gradwire", "nccl", "gloo", "mpi", "ucc", "xccl", "undefined"})
"""Names of backends that a program may ask for. All mean gradwire's own."""

default_pg_timeout: timedelta = timedelta(minutes=30)
"""How long the ranks of a collective wait for each other, unless a group says otherwise."""


class Backend(str):
    """The name of a backend. ``Backend.GLOO`` and the others are what PyTorch calls them."""

    __slots__ = ()

    UNDEFINED: ClassVar[str] = "undefined"
    GLOO: ClassVar[str] = "gloo"
    NCCL: ClassVar[str] = "nccl"
    MPI: ClassVar[str] = "mpi"
    UCC: ClassVar[str] = "ucc"
    XCCL: ClassVar[str] = "xccl"
    GRADWIRE: ClassVar[str] = "gradwire"
    backend_list: ClassVar[list[str]] = ["undefined", "gloo", "nccl", "mpi", "ucc", "xccl", "gradwire"]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": "gloo", "cuda": "nccl"}

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, _checked_backend(name))


def _checked_backend(name: str | None) -> str:
    """The backend's name, in small letters. ``cpu:gloo,cuda:nccl`` counts as one.

    Raises:
        ArgumentValueError: for one that PyTorch has not either.
    """
    if name is None:
        return "gradwire"
    if not isinstance(name, str):
        raise ArgumentTypeError(f"backend is a name, not {type(name).__name__}")
    wanted = name.lower()
    for part in wanted.split(","):
        if part.rpartition(":")[2] not in BACKENDS:
            raise ArgumentValueError(f"backend {name!r:.40} is unknown: known are {', '.join(sorted(BACKENDS))}")
    return wanted


class ProcessGroup:
    """Ranks that run the same collectives in the same order.

    Attributes:
        ranks: the members, as ranks of the whole job; their places are their ranks in the group.
        wire: the name by which the members' sessions find each other, and which records mention.
        session: the session that records, once a group of several ranks needs one.
    """

    def __init__(self, wire: str, ranks: list[int], me: int, backend: str, timeout: timedelta) -> None:
        self.wire: str = wire
        self.ranks: list[int] = ranks
        self.backend: str = backend
        self.timeout: timedelta = timeout
        self.session: Session | None = None
        self._rank = ranks.index(me)
        self._at = {rank: i for i, rank in enumerate(ranks)}
        if len(ranks) > 1:
            self.session = current_session()
            membership.join(self.session, wire, self._rank, len(ranks), timeout)

    def rank(self) -> int:
        """This program's rank in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks it has."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend's name."""
        return self.backend

    @property
    def group_name(self) -> str:
        """The name by which the members find each other."""
        return self.wire

    def rank_of(self, global_rank: int | None, group_rank: int | None, what: str, default: int | None = None) -> int:
        """A member's rank in the group, from the one in the job or the one in the group.

        Raises:
            ArgumentValueError: for a rank that is no member, and where none or both are given.
        """
        if global_rank is None and group_rank is None and default is None:
            raise ArgumentValueError(f"{what} or group_{what} is needed")
        if global_rank is not None and group_rank is not None:
            raise ArgumentValueError(f"{what} and group_{what} are two names of one rank: give one of them")
        if global_rank is not None:
            if global_rank not in self._at:
                raise ArgumentValueError(f"{what}={global_rank!r:.40} is none of the group's ranks {self.ranks}")
            return self._at[global_rank]
        found = default if group_rank is None else group_rank
        if not isinstance(found, int) or not 0 <= found < self.size():
            raise ArgumentValueError(f"group_{what} goes from 0 to {self.size() - 1}, not {found!r:.40}")
        return found

    def leave(self) -> None:
        """Take no part any more, once all that was recorded is done."""
        session, self.session = self.session, None
        if session is not None and not session.closed:
            try:
                session.synchronize()
            finally:
                membership.leave(session, self.wire)

    def __repr__(self) -> str:
        return f"<ProcessGroup of ranks {self.ranks}, this is rank {self._rank} of them>"


class _World:
    """The groups of this program.

    Attributes:
        default: the group of all ranks, once it is initialised.
        groups: all, the default one included.
        made: how many groups the job has made, so that all ranks give each the same name.
        begun: how often the default group was initialised.
    """

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.made = 0
        self.begun = 0


WORLD: Final = _World()


class _GroupType(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks; ``None`` before it is initialised."""
        return WORLD.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        WORLD.default = value


class group(metaclass=_GroupType):
    """``group.WORLD`` is the group of all ranks."""


class GroupMember(metaclass=_GroupType):
    """``GroupMember.NON_GROUP_MEMBER`` is what :func:`new_group` returns on a rank that is not in the group."""

    NON_GROUP_MEMBER: ClassVar[int] = -100


Group = ProcessGroup | int | None
"""What a collective takes for a group: ``None`` is that of all ranks."""


def is_available() -> bool:
    """Yes."""
    return True


def is_initialized() -> bool:
    """Whether there is a group of all ranks."""
    return WORLD.default is not None


def is_torchelastic_launched() -> bool:
    """Whether a launcher that restarts ranks has started this program: ``gradwire run --nproc``, or torchrun."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name can be asked for."""
    return backend.lower() in BACKENDS


def is_gloo_available() -> bool:
    """Yes: the name stands for gradwire's own backend."""
    return True


def is_nccl_available() -> bool:
    """Yes: the name stands for gradwire's own backend."""
    return True


def is_mpi_available() -> bool:
    """No."""
    return False


def is_ucc_available() -> bool:
    """No."""
    return False


def is_xccl_available() -> bool:
    """No."""
    return False


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Begin to take part in a job: make the group of all its ranks.

    With one rank nothing is asked of the server. With several, each opens the group in its session, on one server or
    one fleet.

    Args:
        backend: any of PyTorch's names; all mean gradwire's own.
        init_method: where the ranks' numbers come from; see :func:`.rendezvous.find`.
        timeout: how long ranks wait for each other, 30 minutes by default.

    Raises:
        ArgumentValueError: when it was called before, or the environment lacks something.
        Unsupported: for a ``store`` and several ranks: the server is where they meet.
    """
    if WORLD.default is not None:
        raise ArgumentValueError("init_process_group was called before: destroy_process_group() comes in between")
    if store is not None and (rank, world_size) != (0, 1):
        raise Unsupported("init_process_group(store=) is for one rank: several meet on the server, by init_method")
    name = _checked_backend(backend)
    limit = _checked_timeout(timeout)
    found = rendezvous.find("tcp://store" if store is not None else init_method, rank, world_size)
    wire = f"{found.name}:world:{WORLD.begun}"
    made = ProcessGroup(wire, list(range(found.world_size)), found.rank, name, limit)
    WORLD.begun += 1
    WORLD.made = 0
    WORLD.default = made
    WORLD.groups.append(made)


def _checked_timeout(timeout: timedelta | None) -> timedelta:
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise ArgumentTypeError(f"timeout is a datetime.timedelta, not {type(timeout).__name__}")
    if timeout <= timedelta(0):
        raise ArgumentValueError(f"timeout is above 0, not {timeout}")
    return timeout


def destroy_process_group(group: Group = None) -> None:
    """Leave a group, or all of them, once all that was recorded is done.

    Raises:
        ArgumentValueError: when there is none.
    """
    chosen = WORLD.default if group is None else group
    if chosen is GroupMember.NON_GROUP_MEMBER:
        return
    if not isinstance(chosen, ProcessGroup) or chosen not in WORLD.groups:
        raise ArgumentValueError("there is no such process group: init_process_group() or new_group() makes one")
    leaving = list(WORLD.groups) if chosen is WORLD.default else [chosen]
    for each in leaving:
        WORLD.groups.remove(each)
    if chosen is WORLD.default:
        WORLD.default = None
    for each in reversed(leaving):
        each.leave()


def default_group() -> ProcessGroup:
    """The group of all ranks.

    Raises:
        ArgumentValueError: before :func:`init_process_group`.
    """
    if WORLD.default is None:
        raise ArgumentValueError(
            "the default process group is not initialised: call torch.distributed.init_process_group first"
        )
    return WORLD.default


def member(group: Group, what: str) -> ProcessGroup | None:
    """The group that a collective runs in. ``None``, with a warning, on a rank that is not in it.

    Raises:
        ArgumentTypeError: for anything that is no group.
    """
    if group is None:
        return default_group()
    if isinstance(group, ProcessGroup):
        if group not in WORLD.groups:
            raise ArgumentValueError(f"{what}: the process group was destroyed")
        return group
    if group is GroupMember.NON_GROUP_MEMBER or group == GroupMember.NON_GROUP_MEMBER:
        warnings.warn(f"{what} runs in a group that this rank is not in: nothing is done", UserWarning, stacklevel=3)
        return None
    raise ArgumentTypeError(f"{what}: group is a process group or None, not {type(group).__name__}")


def get_rank(group: Group = None) -> int:
    """This program's rank in a group; -1 where it is not in it."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    found = member(group, "get_rank")
    return -1 if found is None else found.rank()


def get_world_size(group: Group = None) -> int:
    """How many ranks a group has; -1 where this program is not in it."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    found = member(group, "get_world_size")
    return -1 if found is None else found.size()


def get_backend(group: Group = None) -> str:
    """The backend that a group was made with.

    Raises:
        ArgumentValueError: where this program is not in the group.
    """
    found = None if group == GroupMember.NON_GROUP_MEMBER else member(group, "get_backend")
    if found is None:
        raise ArgumentValueError("get_backend: this rank is not in the group")
    return Backend(found.backend)


def get_backend_config(group: Group = None) -> str:
    """The backend by device, as PyTorch spells it."""
    name = get_backend(group)
    return name if ":" in name else f"cpu:{name},cuda:{name}"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among those of this machine, which the launcher says in ``LOCAL_RANK``.

    Raises:
        ArgumentValueError: when it does not, and there is no ``fallback_rank``.
    """
    found = rendezvous.local_rank()
    if found is None:
        found = fallback_rank
    if found is None:
        raise ArgumentValueError(
            "LOCAL_RANK is not in the environment: start the program with `gradwire run --nproc N`"
        )
    return int(found)


def get_process_group_ranks(group: Group) -> list[int]:
    """The members, as ranks of the job."""
    found = member(group, "get_process_group_ranks")
    return [] if found is None else list(found.ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """A member's rank in the group.

    Raises:
        ArgumentValueError: for a rank that is no member.
    """
    found = member(group, "get_group_rank")
    if found is None:
        raise ArgumentValueError("get_group_rank: this rank is not in the group")
    return found.rank_of(global_rank, None, "global_rank")


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """A member's rank in the job.

    Raises:
        ArgumentValueError: for a rank that the group has not.
    """
    found = member(group, "get_global_rank")
    if found is None:
        raise ArgumentValueError("get_global_rank: this rank is not in the group")
    return found.ranks[found.rank_of(None, group_rank, "rank")]


def get_pg_count() -> int:
    """How many groups this program is in."""
    return len(WORLD.groups)


def new_group(
    ranks: Iterable[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
    device_id: Any = None, sort_ranks: bool = True,
) -> ProcessGroup | int:  # fmt: skip
    """Make a group of some ranks. All ranks of the job call it, in the same order, also those that are not in it.

    Raises:
        ArgumentValueError: for ranks that the job has not, or a rank that is named twice.
    """
    world = default_group()
    if use_local_synchronization:
        raise Unsupported("new_group(use_local_synchronization=True) is not supported: all ranks call new_group")
    members = list(range(world.size())) if ranks is None else list(ranks)
    for each in members:
        if not isinstance(each, int) or not 0 <= each < world.size():
            raise ArgumentValueError(f"new_group: ranks go from 0 to {world.size() - 1}, not {each!r:.40}")
    if len(set(members)) != len(members) or not members:
        raise ArgumentValueError(f"new_group: each rank is named once, and at least one is, not {members}")
    if sort_ranks:
        members.sort()
    number, WORLD.made = WORLD.made, WORLD.made + 1
    if world.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    name = world.backend if backend is None else _checked_backend(backend)
    limit = world.timeout if timeout is None else _checked_timeout(timeout)
    made = ProcessGroup(rendezvous.subgroup(world.wire, number, members), members, world.rank(), name, limit)
    WORLD.groups.append(made)
    return made


def new_subgroups(
    group_size: int | None = None, group: Group = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[ProcessGroup | int, list[ProcessGroup | int]]:  # fmt: skip
    """Cut the job's ranks into groups of ``group_size`` that follow each other. Returns this rank's group, and all.

    Raises:
        ArgumentValueError: when the size does not divide the number of ranks.
    """
    size = get_world_size()
    each = size if group_size is None else group_size
    if each < 1 or size % each:
        raise ArgumentValueError(f"new_subgroups: {size} ranks cannot be cut into groups of {each}")
    rows = [list(range(at, at + each)) for at in range(0, size, each)]
    return new_subgroups_by_enumeration(rows, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Iterable[Iterable[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[ProcessGroup | int, list[ProcessGroup | int]]:  # fmt: skip
    """Make a group for each of these lists of ranks, in which a rank is named once. Returns this rank's, and all."""
    rows = [list(row) for row in ranks_per_subgroup_list]
    flat = [rank for row in rows for rank in row]
    if len(set(flat)) != len(flat):
        raise ArgumentValueError("new_subgroups_by_enumeration: a rank is in two of the groups")
    made = [new_group(row, timeout, backend, pg_options) for row in rows]
    own = [each for each in made if isinstance(each, ProcessGroup)]
    return (own[0] if own else GroupMember.NON_GROUP_MEMBER), made


def _leave_at_exit() -> None:
    """At the program's end: what it recorded for others is sent and done before its session closes.

    After an exception that nobody caught, the others may never come to what this program waits for.
    """
    if getattr(sys, "last_exc", None) is not None:
        return
    for each in reversed(WORLD.groups):
        with suppress(GradwireError):
            each.leave()
    WORLD.groups.clear()
    WORLD.default = None


atexit.register(_leave_at_exit)


def _forget() -> None:
    """In a forked child: the groups are the parent's."""
    WORLD.default, WORLD.made, WORLD.begun = None, 0, 0
    WORLD.groups.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
