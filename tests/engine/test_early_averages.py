"""Averages of gradients that begin while the backward before them still runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gradwire_engine.runtime.deadline import Clock
from gradwire_engine.runtime.groups import Exchanged, Group
from gradwire_engine.session.session import Session
from tests.wired_ranks import Wires, queues_of, spec

from .test_cancelled_frames import Program

SIZE = 33
LAYERS = 3
PARAMS = range(LAYERS)
FORWARD = [
    ["randn", [[SIZE, SIZE]]], ["matmul", [0, -1]], ["tanh", [1]], ["matmul", [2, -2]], ["tanh", [3]],
    ["matmul", [4, -3]], ["sum", [5]],
]  # fmt: skip
BACKWARD = ["backward", [[6], [None]]]
AVERAGES = [["average_gradients", [[-3], "world"]], ["average_gradients", [[-2, -1], "world"]]]
"""The parameters of the last layer first, as DistributedDataParallel has them."""


class Rank(Program):
    """A session with parameters, in a group.

    Attributes:
        without: by bucket that was started early, and message that was sent, how many parameters had no gradient then.
    """

    def __init__(self, rank: int, keeps: bool = False, timeout_s: float = 30.0) -> None:
        super().__init__(Session())
        self.without: list[int] = []
        self.session.engine.generator.set_state((rank + 1, 0))
        made = self.run(*[op for i in PARAMS for op in (["randn", [[SIZE, SIZE]]], ["requires_grad_", [i]])])
        self.params = [made.first + i for i in PARAMS]
        self.group = self.session.engine.groups["world"] = Group(spec(rank, 2, timeout_s), keeps=keeps)
        self.group.start = noting(self, self.group.start)  # type: ignore[method-assign]

    def note(self) -> None:
        tensors = [self.session.tensor(i) for i in self.params]
        self.without.append(sum(tensor.grad is None for tensor in tensors))

    def step(self, *records: Any, **fields: Any) -> Any:
        return self.run(*records, external=self.params, **fields)

    def gradients(self) -> list[bytes]:
        found = [self.session.tensor(i).grad for i in self.params]
        return [self.session.engine.to_numpy(grad).tobytes() for grad in found if grad is not None]


def noting(rank: Any, start: Callable[..., None]) -> Callable[..., None]:
    """Starts a collective in the background, which may send at any time later."""

    def noted(*args: Any) -> None:
        rank.note()
        start(*args)

    return noted


class Watched(Wires):
    """Wires that look at the parameters when something is sent."""

    def __init__(self, rank: Rank, queues: Any) -> None:
        super().__init__(rank.group, queues)
        self.mine, self.failures = rank, list[str]()

    def post(self, peer: int) -> None:
        self.mine.note()
        super().post(peer)

    def fail(self, reason: str) -> None:
        self.failures.append(reason)


def pair(**fields: Any) -> list[Rank]:
    queues = queues_of(2)
    ranks = [Rank(i, **fields) for i in range(2)]
    for rank in ranks:
        rank.group.communicator = Watched(rank, queues)
    return ranks


def both(ranks: list[Rank], work: Callable[[Rank], Any]) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, ranks))


def one_frame(rank: Rank) -> None:
    assert not rank.step(*FORWARD, BACKWARD, *AVERAGES).errors


def frame_by_frame(rank: Rank) -> None:
    assert not rank.step(*FORWARD, BACKWARD).errors
    for record in AVERAGES:
        assert not rank.step(record).errors


@pytest.mark.parametrize("accumulating", [False, True])
def test_the_bits_are_those_of_averages_after_backward(accumulating: bool) -> None:
    found = []
    for step in (one_frame, frame_by_frame):
        ranks = pair()
        if accumulating:
            both(ranks, lambda rank: rank.step(*FORWARD, BACKWARD))
        both(ranks, step)
        assert ranks[0].gradients() == ranks[1].gradients()
        found.append(ranks[0].gradients())
    assert found[0] == found[1]
    assert len(found[0]) == LAYERS


def test_a_bucket_is_sent_before_backward_has_given_gradients() -> None:
    ranks = pair()
    both(ranks, one_frame)
    assert ranks[0].without[0] == ranks[1].without[0] == LAYERS
    ranks = pair()
    both(ranks, frame_by_frame)
    assert ranks[0].without[0] == ranks[1].without[0] == 0


def test_unused_parameters() -> None:
    """Of the last layer, that rank 1 leaves out, and of one that both do."""

    def work(rank: Rank) -> None:
        forward = FORWARD[:3] if rank.group.rank else FORWARD[:5]
        ends = [["sum", [len(forward) - 1]], ["backward", [[len(forward)], [None]]]]
        unused = [0, 1] if rank.group.rank else [0]
        average = ["average_gradients", [[-3, -2, -1], "world", unused]]
        assert not rank.step(*forward, *ends, average).errors

    ranks = pair()
    both(ranks, work)
    assert ranks[0].gradients() == ranks[1].gradients()
    assert len(ranks[0].gradients()) == LAYERS - 1


def test_a_journal_sees_what_it_would_without_overlap() -> None:
    notes: list[list[Exchanged | None]] = []
    for step in (one_frame, frame_by_frame):
        ranks = pair(keeps=True)
        both(ranks, step)
        notes.append([rank.group.exchanged() for rank in ranks])
    for early, later in zip(*notes, strict=True):
        assert early is not None
        assert early == later
    for i in range(2):
        alone, expected = Rank(i, keeps=True), notes[0][i]
        alone.group.replay(expected)
        one_frame(alone)
        alone.group.replayed(expected)
        assert alone.gradients() == ranks[i].gradients()
        assert alone.group.counts() == ranks[i].group.counts()


def test_a_rank_whose_backward_fails_is_named_and_none_steps() -> None:
    """What the first bucket has exchanged does not count."""
    step = ["sgd_step", [[-1, -2, -3], [None] * LAYERS, "float"]]
    boom = ["full", [[SIZE + 1, SIZE], "float"]]  # a product that does not fit, after which there is nothing to average

    def work(rank: Rank) -> Any:
        before = [rank.session.engine.to_numpy(rank.session.tensor(i)).tobytes() for i in rank.params]
        records = [*FORWARD, BACKWARD, *AVERAGES, step]
        if rank.group.rank:
            records = [boom, ["matmul", [0, 0]], ["sum", [1]], ["backward", [[2], [None]]], *AVERAGES, step]
        reply = rank.step(*records, scalars=[1.0] * (1 + rank.group.rank))
        assert [rank.session.engine.to_numpy(rank.session.tensor(i)).tobytes() for i in rank.params] == before
        return reply.errors

    ranks = pair(timeout_s=0.5)
    mine, theirs = both(ranks, work)
    assert any("rank 1" in problem.detail for problem in mine)
    assert theirs
    for rank in ranks:
        assert rank.group.failed
        assert not rank.group.starts


class CancelledOnceSent(Clock):
    """A clock of a frame that is cancelled as soon as its rank has sent something."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        super().__init__()

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        return bool(self._rank.without)


def test_a_frame_that_is_cancelled_while_a_bucket_travels_is_undone_and_ends_the_group() -> None:
    rank = pair()[0]  # the other one never comes
    began = time.monotonic()
    reply = rank.step(*FORWARD, BACKWARD, *AVERAGES, clock=CancelledOnceSent(rank))
    assert [problem.code for problem in reply.errors] == ["cancelled"]
    assert time.monotonic() - began < 20
    assert rank.gradients() == []
    assert "average_gradients" in rank.group.failed
    communicator = rank.group.communicator
    assert isinstance(communicator, Watched)
    assert communicator.failures == [rank.group.failed]
