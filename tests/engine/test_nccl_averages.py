"""Averages of gradients on GPUs that begin while the backward before them still runs, by NCCL and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gradwire_engine.runtime.groups import Group
from gradwire_engine.session.session import Session
from tests.cuda_emulation.nccl import ConnectedBackend, Network
from tests.wired_ranks import Links, queues_of, spec

from .test_cancelled_frames import Program
from .test_early_averages import AVERAGES, BACKWARD, LAYERS, SIZE, noting
from .test_early_averages import FORWARD as WHOLE_FORWARD

FORWARD = WHOLE_FORWARD[1:]
"""Without the draw of the input, which is on the GPU here."""


class Rank(Program):
    """A session with parameters on a GPU.

    Attributes:
        without: by bucket that was started early, and message that was sent, how many parameters had no gradient then.
    """

    def __init__(self, network: Network, rank: int, size: int, bus: int, meets: bool) -> None:
        super().__init__(Session())
        engine = self.session.engine
        self.device, self.without = f"cuda:{rank}", list[int]()
        engine.backends[self.device] = ConnectedBackend(network, rank, bus)  # type: ignore[assignment]
        engine.generator.set_state((rank + 1, 0))
        drawn = ["randn", [[SIZE, SIZE], None, self.device]]
        made = self.run(*[op for i in range(LAYERS) for op in (drawn, ["requires_grad_", [i]])])
        assert not made.errors
        self.params = [made.first + i for i in range(LAYERS)]
        self.group = engine.groups["world"] = Group(spec(rank, size), meets=meets)
        self.group.start = noting(self, self.group.start)  # type: ignore[method-assign]

    def note(self) -> None:
        tensors = [self.session.tensor(i) for i in self.params]
        self.without.append(sum(tensor.grad is None for tensor in tensors))

    def step(self, *records: Any) -> None:
        drawn = ["randn", [[SIZE, SIZE], None, self.device]]
        reply = self.run(drawn, *records, external=self.params)
        assert not reply.errors

    def gradients(self) -> list[bytes]:
        found = [self.session.tensor(i).grad for i in self.params]
        return [self.session.engine.to_numpy(grad).tobytes() for grad in found if grad is not None]


class Watched(Links):
    """Links that look at the parameters when something is sent."""

    def __init__(self, rank: Rank, queues: Any) -> None:
        super().__init__(rank.group, queues, {})
        self.mine = rank

    def post(self, peer: int) -> None:
        self.mine.note()
        super().post(peer)


def ranks(network: Network, buses: Sequence[int], meets: bool = True) -> list[Rank]:
    size = len(buses)
    queues = queues_of(size)
    made = [Rank(network, rank, size, bus, meets) for rank, bus in enumerate(buses)]
    for rank in made:
        rank.group.communicator = Watched(rank, queues)
    return made


def together(made: list[Rank], work: Callable[[Rank], Any]) -> None:
    with ThreadPoolExecutor(len(made)) as pool:
        list(pool.map(work, made))


def one_frame(rank: Rank) -> None:
    rank.step(*FORWARD, BACKWARD, *AVERAGES)


def frame_by_frame(rank: Rank) -> None:
    rank.step(*FORWARD, BACKWARD)
    for record in AVERAGES:
        reply = rank.run(record, external=rank.params)
        assert not reply.errors


@pytest.mark.parametrize("size", [2, 4])
def test_gradients_have_the_same_bits_on_each_way(size: int) -> None:
    found, moved = [], []
    apart, shared = list(range(size)), [0] * size
    for buses, meets, step in (
        (apart, True, one_frame), (apart, True, frame_by_frame), (shared, True, one_frame), (apart, False, one_frame)
    ):  # fmt: skip
        network = Network()
        made = ranks(network, buses, meets)
        for _ in range(2):  # accumulates
            together(made, step)
        assert len({tuple(rank.gradients()) for rank in made}) == 1
        found.append(made[0].gradients())
        moved.append(network.bytes_moved)
    assert len(found[0]) == LAYERS
    assert all(each == found[0] for each in found)
    assert moved[0] == moved[1] == 2 * 2 * (size - 1) * LAYERS * SIZE * SIZE * 4
    assert moved[2:] == [0, 0]


def test_a_bucket_travels_before_backward_has_given_gradients() -> None:
    made = ranks(Network(), [0, 1])
    together(made, one_frame)
    assert all(rank.without[0] == LAYERS for rank in made)
    made = ranks(Network(), [0, 1])
    together(made, frame_by_frame)
    assert all(rank.without[0] == 0 for rank in made)


def test_unused_parameters() -> None:
    """Of the last layer, that rank 1 leaves out, and of one that both do."""

    def work(rank: Rank) -> None:
        forward = FORWARD[:2] if rank.group.rank else FORWARD[:4]
        ends = [["sum", [len(forward)]], ["backward", [[len(forward) + 1], [None]]]]
        unused = [0, 1] if rank.group.rank else [0]
        rank.step(*forward, *ends, ["average_gradients", [[-3, -2, -1], "world", unused]])

    found = []
    for meets in (True, False):
        made = ranks(Network(), [0, 1], meets)
        together(made, work)
        assert made[0].gradients() == made[1].gradients()
        found.append(made[0].gradients())
    assert found[0] == found[1]
    assert len(found[0]) == LAYERS - 1
