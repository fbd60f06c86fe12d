"""Claims, takeovers and acknowledgements of several owners, one storage operation at a time in random orders."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from gradwire_server.durable.shared import claims, epochs
from gradwire_server.durable.shared.claims import ClaimHeld, claim, release
from gradwire_server.durable.shared.epochs import epoch_prefix, newest_published
from gradwire_server.durable.shared.ownership import Observer, OwnerLease, OwnershipLost, certify
from tests.server.shared.owners import Clock, MemoryStorage, Turns, spec_of

SESSION = "s_one"
SEEDS = 150


class Writer:
    """An owner that appends numbers to the session's one file, as servers append records."""

    def __init__(self, number: int, storage: MemoryStorage, acknowledged: list[int], chance: random.Random) -> None:
        self.number = number
        self.storage = storage
        self.acknowledged = acknowledged
        self.chance = chance
        self.clock = Clock()
        self.lease = OwnerLease(storage, 6.0, self.clock, threads=False)
        self.lease.start()
        self.observer = Observer(storage, self.lease.owner, Clock())  # the test certifies the ends
        self.checks = self.lease.check
        self.takeovers = 0

    def run(self) -> None:
        try:
            for _ in range(6):
                try:
                    epoch = claim(self.storage, SESSION, self.lease, self.observer)
                except ClaimHeld:
                    continue
                self._own(epoch)
        except OwnershipLost:
            pass

    def _own(self, epoch: int) -> None:
        while True:
            found = newest_published(self.storage, SESSION)
            source = 0 if found is None else found[0]
            data = self.storage.get(epoch_prefix(SESSION, source) + "file") if source else b"[]"
            if data is not None:
                break
        file = epoch_prefix(SESSION, epoch) + "file"
        self.storage.put(file, data)
        self.checks()
        epochs.publish(self.storage, spec_of(SESSION), epoch, source, 0, self.lease.owner)
        self.checks()
        epochs.remove_older(self.storage, SESSION, epoch)
        self.takeovers += 1
        records = json.loads(data)
        for _ in range(self.chance.randrange(4)):
            record = self.chance.getrandbits(60)
            records.append(record)
            self.storage.put(file, json.dumps(records).encode())
            self.checks()
            self.acknowledged.append(record)
        if self.chance.random() < 0.5:
            self.checks()
            release(self.storage, SESSION, epoch)


def _play(seed: int, careless: bool = False) -> tuple[list[int], list[int], int]:
    """What was acknowledged, what the session has in the end, and how often it was taken over."""
    chance = random.Random(seed)
    turns = Turns()
    storage = MemoryStorage(turns.pause)
    acknowledged: list[int] = []
    writers = [Writer(number, storage, acknowledged, chance) for number in range(4)]
    for writer in writers:
        if careless:
            writer.checks = lambda: None
        turns.add(f"writer-{seed}-{writer.number}", writer.run)
    lapsed: list[Writer] = []
    while turns.alive:
        # A writer goes on for a while, as threads do, and others stop for long.
        name = chance.choice(turns.alive)
        for _ in range(chance.choice((1, 1, 3, 10))):
            if name in turns.alive:
                turns.step(name)
        if chance.random() < 0.1:
            writer = chance.choice(writers)
            writer.clock.now += 100  # its lease is over, and it finds out at its next check
            lapsed.append(writer)
        if lapsed and chance.random() < 0.3:
            certify(storage, lapsed.pop().lease.owner, "o_observer")
    assert turns.failures == []
    storage.before = lambda name, key: None
    found = newest_published(storage, SESSION)
    data = b"[]" if found is None else storage.get(epoch_prefix(SESSION, found[0]) + "file")
    assert data is not None
    return acknowledged, json.loads(data), sum(writer.takeovers for writer in writers)


def test_what_was_acknowledged_is_in_the_session_once_and_in_order() -> None:
    takeovers = records = 0
    for seed in range(SEEDS):
        acknowledged, kept, taken = _play(seed)
        assert len(set(kept)) == len(kept)
        assert [each for each in kept if each in acknowledged] == acknowledged, seed
        takeovers, records = takeovers + taken, records + len(acknowledged)
    assert takeovers > SEEDS
    assert records > SEEDS


def test_the_play_finds_owners_that_do_not_check() -> None:
    def wrong(seed: int) -> bool:
        try:
            acknowledged, kept, _ = _play(seed, careless=True)
        except AssertionError:
            return True
        return [each for each in kept if each in acknowledged] != acknowledged

    assert any(wrong(seed) for seed in range(100))


def test_a_contender_that_slept_does_not_take_a_superseded_place(monkeypatch: Any) -> None:
    """It saw claim 1; meanwhile claims 2 and 3 came, and claim 2 was removed: its place is free again."""
    storage = MemoryStorage()
    late, others = (OwnerLease(storage, 6.0, Clock(), threads=False) for _ in range(2))
    late.start()
    others.start()
    observer = Observer(storage, "o_x", Clock())
    release(storage, SESSION, claim(storage, SESSION, others, observer))

    def sleep(*arguments: Any) -> bool:
        monkeypatch.undo()
        release(storage, SESSION, claim(storage, SESSION, others, observer))
        assert claim(storage, SESSION, others, observer) == 3
        return True

    monkeypatch.setattr(claims, "is_free", sleep)
    with pytest.raises(ClaimHeld):
        claim(storage, SESSION, late, observer)
    assert claims.newest_claim(storage, SESSION) == (3, others.owner)


def test_claims_of_the_past_are_removed() -> None:
    storage = MemoryStorage()
    lease = OwnerLease(storage, 6.0, Clock(), threads=False)
    lease.start()
    for _ in range(5):
        epoch = claim(storage, SESSION, lease, Observer(storage, "o_x", Clock()))
        release(storage, SESSION, epoch)
    assert storage.keys("sessions/") == [
        f"sessions/{SESSION}/claims/0000000005", f"sessions/{SESSION}/released/0000000005",
    ]  # fmt: skip
