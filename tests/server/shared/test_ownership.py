"""The lease of an owner: it never acts after its certified end, whatever clocks, networks and schedulers do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from gradwire_server.durable.shared.ownership import (
    ENDED,
    MARGIN_S,
    OWNERS,
    SLACK,
    Observer,
    OwnerLease,
    OwnershipLost,
    certify,
)
from tests.server.shared.owners import Clock, MemoryStorage

LEASE_S = 6.0


class Rig:
    """An owner and an observer; time passes for both, at different rates."""

    def __init__(self, rate: float = 1.0) -> None:
        self.storage, self.mine, self.theirs = MemoryStorage(), Clock(), Clock()
        self.rate = rate
        self.lease = OwnerLease(self.storage, LEASE_S, self.mine, threads=False)
        self.lease.start()
        self.observer = Observer(self.storage, "o_other", self.theirs)

    def wait(self, seconds: float) -> None:
        self.mine.now += seconds
        self.theirs.now += seconds * self.rate

    def certified(self) -> bool:
        return OWNERS + self.lease.owner + ENDED in self.storage.blobs


def test_a_renewed_lease_goes_on() -> None:
    rig = Rig()
    for _ in range(20):
        rig.wait(LEASE_S / 3)
        assert rig.lease.renew()
        assert not rig.observer.ended(rig.lease.owner)


def test_a_lease_that_nobody_renews_ends_and_never_comes_back() -> None:
    rig = Rig()
    told: list[str] = []
    rig.lease.on_lapse = told.append
    rig.wait(LEASE_S + 0.1)
    with pytest.raises(OwnershipLost, match="was not renewed in time") as lost:
        rig.lease.check()
    assert lost.value.retryable
    assert lost.value.details["reason"] == "ownership"
    assert not rig.lease.renew()
    assert not rig.lease.valid
    assert len(told) == 1


def test_a_renewal_that_answers_too_late_does_not_count() -> None:
    """An observer may have seen the end meanwhile."""
    rig = Rig()
    rig.wait(LEASE_S - 1)
    rig.storage.before = lambda name, key: rig.wait(2) if name == "put" else None
    assert not rig.lease.renew()
    assert not rig.lease.valid


def test_a_lease_counts_from_the_begin_of_its_renewal() -> None:
    rig = Rig()
    rig.wait(1)
    rig.storage.before = lambda name, key: rig.wait(3) if name == "put" else None
    assert rig.lease.renew()
    rig.storage.before = lambda name, key: None
    rig.wait(2.9)
    assert rig.lease.valid
    rig.wait(0.2)
    assert not rig.lease.valid


def test_an_owner_whose_end_is_certified_stops_at_once() -> None:
    rig = Rig()
    certify(rig.storage, rig.lease.owner, "o_other")
    assert not rig.lease.renew()
    assert not rig.lease.valid


def test_an_end_on_purpose_is_certain_at_once() -> None:
    rig = Rig()
    told: list[str] = []
    rig.lease.on_lapse = told.append
    rig.lease.end()
    assert rig.observer.ended(rig.lease.owner)
    assert not rig.lease.valid
    assert told == []


def test_an_observer_waits_longer_than_the_lease() -> None:
    rig = Rig()
    assert not rig.observer.ended(rig.lease.owner)
    rig.wait(LEASE_S * SLACK + MARGIN_S - 0.1)
    assert not rig.observer.ended(rig.lease.owner)
    rig.wait(0.2)
    assert rig.observer.ended(rig.lease.owner)


class Slow(MemoryStorage):
    """Answers reads of counters late: with the value as of the time at which they were sent."""

    def __init__(self) -> None:
        super().__init__()
        self.on_the_way: Callable[[], None] = lambda: None

    def get(self, key: str) -> bytes | None:
        found = super().get(key)
        if not key.endswith(ENDED):
            on_the_way, self.on_the_way = self.on_the_way, lambda: None
            on_the_way()
        return found


def _life_under_slow_reads() -> tuple[Rig, Slow, Callable[[], None]]:
    """A rig with slow reads, and a function that lets its owner live on for longer than a wait."""
    rig, slow = Rig(), Slow()
    slow.blobs = rig.storage.blobs
    rig.storage, rig.observer = slow, Observer(slow, "o_other", rig.theirs)
    rig.lease._storage = slow

    def live() -> None:
        for _ in range(8):
            rig.wait(LEASE_S / 4)
            assert rig.lease.renew()

    return rig, slow, live


def test_a_last_read_that_is_answered_late_does_not_end_the_wait() -> None:
    """The observer is stopped between a read and its clock, while the owner renews its lease."""
    rig, slow, live = _life_under_slow_reads()
    assert not rig.observer.ended(rig.lease.owner)
    slow.on_the_way = live
    assert not rig.observer.ended(rig.lease.owner)
    assert rig.lease.renew()
    rig.wait(LEASE_S * 3)
    assert not rig.observer.ended(rig.lease.owner)
    rig.wait(LEASE_S * SLACK + MARGIN_S + 0.1)
    assert rig.observer.ended(rig.lease.owner)


def test_a_first_read_that_is_answered_late_does_not_begin_the_wait_before() -> None:
    rig, slow, _ = _life_under_slow_reads()
    slow.on_the_way = lambda: rig.wait(LEASE_S - 1)
    assert not rig.observer.ended(rig.lease.owner)
    rig.wait(LEASE_S * SLACK + MARGIN_S - 0.1)
    assert not rig.observer.ended(rig.lease.owner)
    rig.wait(0.2)
    assert rig.observer.ended(rig.lease.owner)


def test_two_threads_may_certify_the_same_end() -> None:
    rig, slow, _ = _life_under_slow_reads()
    assert not rig.observer.ended(rig.lease.owner)
    rig.wait(LEASE_S * SLACK + MARGIN_S + 0.1)
    # The second one certifies and forgets the owner while the first one's read is under way.
    certified: list[bool] = []
    create = slow.create

    def both(key: str, data: bytes) -> bool:
        slow.create = create  # type: ignore[method-assign]
        certified.append(rig.observer.ended(rig.lease.owner))
        return create(key, data)

    slow.create = both  # type: ignore[method-assign]
    assert rig.observer.ended(rig.lease.owner)
    assert certified == [True]


def test_the_remains_of_owners_are_swept() -> None:
    rig = Rig()
    rig.observer.sweep(time.time())
    rig.wait(LEASE_S * 2)
    rig.observer.sweep(time.time())
    assert rig.storage.keys(OWNERS) == [OWNERS + rig.lease.owner + ENDED]
    assert rig.observer.ended(rig.lease.owner)
    rig.observer.sweep(time.time() + 31 * 86400)
    assert rig.storage.keys(OWNERS) == []
    assert rig.observer.ended(rig.lease.owner)


def _play(seed: int, lease_type: type[OwnerLease]) -> tuple[bool, bool]:
    """Play a random life of an owner under observation: whether its end was certified, and whether it acted then."""
    chance = random.Random(seed)
    rig = Rig(rate=chance.uniform(1 / SLACK, SLACK))
    rig.lease = lease_type(rig.storage, LEASE_S, rig.mine, threads=False)
    rig.lease.start()
    acted = False

    def look() -> None:
        nonlocal acted
        rig.observer.ended(rig.lease.owner)
        # Not by ``valid``, which would tell the owner that time is over.
        valid = not rig.lease._over and rig.mine.now < rig.lease._until
        acted = acted or (rig.certified() and valid)

    def delay(name: str, key: str) -> None:
        """Operations of the owner take their time, or fail; the observer looks meanwhile."""
        rig.storage.before = lambda name, key: None
        for _ in range(chance.randrange(3)):
            rig.wait(chance.choice((0.01, 0.5, 2.0, LEASE_S)))
            look()
        if chance.random() < 0.2:
            raise OSError("the network is down")

    for _ in range(60):
        rig.wait(chance.choice((0.01, 0.5, LEASE_S / 3, LEASE_S / 3, LEASE_S, 3 * LEASE_S)))
        look()
        if chance.random() < 0.8:
            rig.storage.before = delay
            try:
                rig.lease.renew()
            except OSError:
                pass
            rig.storage.before = lambda name, key: None
            look()
    return rig.certified(), acted


def test_no_owner_acts_after_its_certified_end() -> None:
    outcomes = [_play(seed, OwnerLease) for seed in range(1500)]
    assert not any(acted for _, acted in outcomes)
    assert sum(certified for certified, _ in outcomes) > 500


class Careless(OwnerLease):
    """Believes that a renewal counts whenever its answer comes."""

    def renew(self) -> bool:
        began = self._clock()
        self._write()
        self._until = began + self.lease_s
        return True


def test_the_play_finds_an_owner_that_is_careless() -> None:
    assert any(_play(seed, Careless)[1] for seed in range(200))


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_threads_renew_and_watch(tmp_path: object) -> None:
    storage = DirectoryStorage(tmp_path)  # type: ignore[arg-type]
    lease = OwnerLease(storage, 1.0)
    told: list[str] = []
    lease.on_lapse = told.append
    lease.start()
    first = storage.get(OWNERS + lease.owner)
    _until(lambda: storage.get(OWNERS + lease.owner) != first)
    assert lease.valid
    lease._write = lambda: time.sleep(30)  # type: ignore[method-assign]  # the network hangs
    _until(lambda: bool(told))
    assert not lease.valid
