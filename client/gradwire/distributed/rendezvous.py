"""How a program learns which rank it is, how many there are, and by which name they find each other."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Final

from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.ops.collectives import GROUP_LENGTH, MAX_WORLD_SIZE

PREFIX_LENGTH: Final = 120
"""The most characters of a rendezvous' name that stay readable; a longer one is told by its digest."""


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """What the ranks of a job agree on.

    Attributes:
        rank: of this program.
        world_size: how many programs there are.
        name: the same for all of them, and for no other job of the same API key at the same time.
    """

    rank: int
    world_size: int
    name: str


def find(init_method: str | None, rank: int, world_size: int) -> Rendezvous:
    """The rendezvous that arguments and environment describe, as PyTorch's do.

    Args:
        init_method: ``env://`` (the default), ``tcp://host:port`` or ``file:///path``. Nobody listens at the address
            and no file is written: it only names the job, and the server is where the ranks meet.
        rank, world_size: below 0 where the environment tells.

    Raises:
        ArgumentValueError: when something is missing or out of range.
    """
    method = init_method or "env://"
    scheme = method.partition("://")[0]
    if scheme not in ("env", "tcp", "file") or "://" not in method:
        raise ArgumentValueError(f"init_method is env://, tcp://host:port or file:///path, not {method!r:.80}")
    if scheme == "env":
        rank = _number("RANK") if rank < 0 else rank
        world_size = _number("WORLD_SIZE") if world_size < 0 else world_size
        name = _named_by_environment(world_size)
    else:
        if rank < 0 or world_size < 0:
            raise ArgumentValueError(f"init_method={method!r:.80} needs rank= and world_size=")
        name = method
    if not 0 < world_size <= MAX_WORLD_SIZE:
        raise ArgumentValueError(f"world_size is {world_size}; a group has 1 to {MAX_WORLD_SIZE} ranks")
    if rank >= world_size:
        raise ArgumentValueError(
            f"rank is {rank}, but with world_size={world_size} ranks go from 0 to {world_size - 1}"
        )
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return Rendezvous(rank, world_size, f"{shortened(name)}:{attempt}")


def _number(variable: str) -> int:
    given = os.environ.get(variable)
    if given is None:
        raise ArgumentValueError(
            f"init_method env:// needs the environment variable {variable}, which is not set: start the program with "
            "`gradwire run --nproc N`, or give rank= and world_size="
        )
    if not given.isdigit():
        raise ArgumentValueError(f"the environment variable {variable} is a number from 0, not {given!r:.40}")
    return int(given)


def _named_by_environment(world_size: int) -> str:
    parts = [os.environ.get(name) for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
    if world_size > 1 and parts[0] is None and None in parts[1:]:
        missing = "MASTER_ADDR" if parts[1] is None else "MASTER_PORT"
        raise ArgumentValueError(
            f"init_method env:// needs the environment variable {missing}, which is not set: all ranks of a job name "
            "it by the same MASTER_ADDR and MASTER_PORT, or TORCHELASTIC_RUN_ID"
        )
    return ":".join(part or "" for part in parts)


def shortened(name: str) -> str:
    """A name that leaves room in a group's name for what tells groups of one job apart."""
    name = name.replace("/", "_")  # it is a part of a URL's path
    if len(name) <= PREFIX_LENGTH:
        return name
    return name[: PREFIX_LENGTH - 33] + "-" + hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def subgroup(name: str, number: int, ranks: list[int]) -> str:
    """The name of the ``number``-th group that a job has made, of these ranks."""
    listed = hashlib.blake2b(",".join(map(str, ranks)).encode(), digest_size=8).hexdigest()
    return f"{name}:{number}:{listed}"[:GROUP_LENGTH]


def local_rank() -> int | None:
    """The rank among those of this machine, where the launcher says it."""
    given = os.environ.get("LOCAL_RANK", "")
    return int(given) if given.isdigit() else None
