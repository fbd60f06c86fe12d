"""How fast a key may go: ops, bytes and requests in a second, wrong keys in a minute.

What is counted is counted for a tenant, so that a second key is no second share; how much is allowed is the matter of
the key that asks. Ops and bytes are paced: a message is taken whole, however large, and what it is above the rate
delays the next one. A stream is not read in the meantime, which its client notices as a slower network. A request is
told when to come again.

The pace is the generic cell rate algorithm: one number, the moment at which everything taken so far is paid for. (A
window of the ``limits`` library takes a cost whole or not at all, so a message above a second's share would never
pass.) Requests and failures, which cost 1 each, are windows of that library.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from typing import Final

import msgspec
from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from gradwire_protocol.errors import TooManyRequests
from gradwire_protocol.frames import Frame, structure_hash

from ..settings import Settings, variable
from .keys import Key

BURST_S: Final = 1.0
"""A quiet second may be made up for."""

STRUCTURES_COUNTED: Final = 16_384
"""Known structures of one tenant: as many as its sessions remember, so that one sent as a hash is counted rightly."""

WEIGHTY_BYTES: Final = 1 << 20
"""A message whose values take more than this in memory is paced by that, where it is more than its length."""

PLACES: Final = 10_000
"""Addresses that are turned away, and pairs of an address and a key that are let in all the same."""


class _Records(msgspec.Struct):
    """A structure, as far as it takes to count its records."""

    ops: list[msgspec.Raw] = []


_binary: Final = msgspec.msgpack.Decoder(_Records)
_json: Final = msgspec.json.Decoder(_Records)


class Pace:
    """A rate that is kept on average."""

    __slots__ = ("_paid",)

    def __init__(self) -> None:
        self._paid = 0.0

    def take(self, cost: float, rate: float) -> None:
        """Count a cost."""
        self._paid = max(self._paid, time.monotonic() - BURST_S) + cost / rate

    @property
    def wait(self) -> float:
        """Seconds until everything taken so far is paid for."""
        return max(0.0, self._paid - time.monotonic())


class Share:
    """What a tenant has used of its rates, by all its keys, requests and streams."""

    __slots__ = ("_counted", "bytes", "ops")

    def __init__(self) -> None:
        self.ops = Pace()
        self.bytes = Pace()
        self._counted: OrderedDict[bytes, int] = OrderedDict()

    def records(self, frame: Frame, human: bool) -> int:
        """How many op records a frame runs. One that only names its structure has those that this structure had."""
        return self._records(frame, human) * max(frame.repeat, 1)

    def _records(self, frame: Frame, human: bool) -> int:
        encoded = bytes(frame.structure)
        if not encoded:
            return self._counted.get(frame.hash, 1)
        try:
            count = len((_json if human else _binary).decode(encoded).ops)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return 0  # the engine refuses it
        if frame.hash and not human and structure_hash(encoded) == frame.hash:
            self._counted[frame.hash] = count
            if len(self._counted) > STRUCTURES_COUNTED:
                self._counted.popitem(last=False)
        return count


class Meter:
    """What one stream takes, for its pace and for the audit log. ``held``: seconds for which it was not read."""

    __slots__ = ("_byte_rate", "_op_rate", "_share", "bytes_in", "bytes_out", "frames", "held", "ops", "paced")

    def __init__(self, share: Share, op_rate: int = 0, byte_rate: int = 0) -> None:
        self._share, self._op_rate, self._byte_rate = share, op_rate, byte_rate
        self.paced = bool(op_rate or byte_rate)
        self.frames = self.ops = self.bytes_in = self.bytes_out = 0
        self.held = 0.0

    def records(self, frame: Frame, human: bool) -> int:
        """How many op records a frame runs. Another thread may ask."""
        return self._share.records(frame, human)

    def took(self, size: int, weight: int, records: int | None) -> None:
        """Count a message of so many bytes, which has become so many in memory, and the frame that it is."""
        self.bytes_in += size
        if self._byte_rate:
            self._share.bytes.take(max(size, weight if weight > WEIGHTY_BYTES else 0), self._byte_rate)
        if records is not None:
            self.frames += 1
            self.ops += records
            if self._op_rate:
                self._share.ops.take(records, self._op_rate)

    @property
    def wait(self) -> float:
        """Seconds until the next message may be read."""
        byte_wait = self._share.bytes.wait if self._byte_rate else 0.0
        return max(byte_wait, self._share.ops.wait) if self._op_rate else byte_wait

    def gave(self, size: int) -> None:
        """Count a message that was sent."""
        self.bytes_out += size
        if self._byte_rate:
            self._share.bytes.take(size, self._byte_rate)


class Rates:
    """The rates of all tenants, and of those who have no key."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._shares: dict[str, Share] = {}
        self._windows = MovingWindowRateLimiter(MemoryStorage())
        self._failures = RateLimitItemPerMinute(settings.max_key_failures)
        self._away: OrderedDict[str, float] = OrderedDict()
        self._proven: OrderedDict[tuple[str, str], None] = OrderedDict()

    def share(self, key: Key) -> Share:
        """What the key's tenant has used."""
        found = self._shares.get(key.tenant)
        if found is None:
            found = self._shares[key.tenant] = Share()
        return found

    def meter(self, key: Key) -> Meter:
        """The meter of a new stream."""
        rates = (key.quota(name, self.settings) for name in ("max_ops_per_second", "max_bytes_per_second"))
        return Meter(self.share(key), *rates)

    # Requests

    def admit(self, key: Key) -> None:
        """Count a request.

        Raises:
            TooManyRequests: when the key has had too many, or has not paid yet for the bytes it took.
        """
        most = key.quota("max_requests_per_second", self.settings)
        if most:
            window = RateLimitItemPerSecond(most)
            if not self._windows.hit(window, "requests", key.tenant):
                raise self._too_fast("max_requests_per_second", most, self._left(window, "requests", key.tenant))
        rate = key.quota("max_bytes_per_second", self.settings)
        if rate and (wait := self.share(key).bytes.wait) > 0:
            raise self._too_fast("max_bytes_per_second", rate, wait)

    def charge_bytes(self, key: Key, size: int) -> None:
        """Count the body of a request or of a response."""
        rate = key.quota("max_bytes_per_second", self.settings)
        if rate:
            self.share(key).bytes.take(size, rate)

    def charge_ops(self, key: Key, frame: Frame, human: bool) -> None:
        """Count the frame of a request.

        Raises:
            TooManyRequests: when the key has not paid yet for the ops that were run for it.
        """
        rate = key.quota("max_ops_per_second", self.settings)
        if not rate:
            return
        share = self.share(key)
        if (wait := share.ops.wait) > 0:
            raise self._too_fast("max_ops_per_second", rate, wait)
        share.ops.take(share.records(frame, human), rate)

    def _too_fast(self, name: str, limit: int, wait: float) -> TooManyRequests:
        return TooManyRequests(
            f"this key may have {limit:,} {name.removeprefix('max_').replace('_', ' ')} ({variable(name)}): "
            f"wait {wait:.3g} s",
            setting=variable(name), limit=limit, retry_after_s=wait,
        )  # fmt: skip

    # Wrong keys

    def check_address(self, address: str, digest: str) -> None:
        """Turn an address away that has tried too many wrong keys, unless it has used this very key before.

        Raises:
            TooManyRequests: with the time until it may try again.
        """
        if not self._away:
            return
        place = _network(address)
        wait = self._away.get(place, 0.0) - time.time()
        if wait <= 0:
            self._away.pop(place, None)
        elif (place, digest) not in self._proven:
            limit = self.settings.max_key_failures
            raise TooManyRequests(
                f"{limit} wrong API keys came from this address within a minute ({variable('max_key_failures')})",
                setting=variable("max_key_failures"), limit=limit, retry_after_s=wait,
            )  # fmt: skip

    def failed(self, address: str) -> bool:
        """Count a wrong key. Returns whether the address is turned away from now on."""
        place = _network(address)
        self._windows.hit(self._failures, "failures", place)
        if self._windows.test(self._failures, "failures", place):
            return False
        self._away[place] = time.time() + self._left(self._failures, "failures", place)
        if len(self._away) > PLACES:
            self._away.popitem(last=False)
        return True

    def proved(self, address: str, digest: str) -> None:
        """Remember that this key came from this address."""
        pair = (_network(address), digest)
        if pair not in self._proven:
            self._proven[pair] = None
            if len(self._proven) > PLACES:
                self._proven.popitem(last=False)

    def _left(self, window: RateLimitItem, *names: str) -> float:
        return max(0.0, self._windows.get_window_stats(window, *names).reset_time - time.time())


def _network(address: str) -> str:
    """What counts as one address: for IPv6 a /64, which is what one customer gets."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
