"""Rate limits: ops, bytes and requests per second of a key; wrong keys per minute of an address.

Usage is counted per tenant, so that a second key adds no quota; the limit is that of the key. For ops and bytes, the
server accepts a message of any size and delays the next one by the excess. It does not read a delayed stream, which
looks to the client like a slow network. A request gets 429 with Retry-After.

Ops and bytes use the generic cell rate algorithm, whose state is one number: the time at which the rate has covered all
costs so far. A window of the ``limits`` library would never admit a message above one second's quota. Requests and
failures cost 1 each and use such windows.
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

from ..settings.settings import Settings, variable
from .keys import Key

RATES: Final = ("max_ops_per_second", "max_bytes_per_second", "max_requests_per_second")
BURST_S: Final = 1.0
"""Unused quota of at most one second can be used later."""

HELD: Final = 2.0
"""What a process of a fleet reports as its use of a rate when it held something back."""

LEAST_SHARE: Final = 0.01

STRUCTURES_COUNTED: Final = 16_384
"""Record counts kept per tenant, for frames that send only the hash of their structure."""

WEIGHTY_BYTES: Final = 1 << 20
"""If a message's decoded values take more memory than this, the larger of that and its length counts."""

MAX_ADDRESSES: Final = 10_000
"""How many blocked addresses, and exempt pairs of address and key, are kept."""


class _Records(msgspec.Struct):
    """The part of a structure needed to count its records."""

    ops: list[msgspec.Raw] = []


_binary: Final = msgspec.msgpack.Decoder(_Records)
_json: Final = msgspec.json.Decoder(_Records)


class AverageRate:
    """Enforces an average rate.

    Attributes:
        share: the part of the rate that this process of a fleet may use.
        used: seconds of the whole rate that the costs so far took.
    """

    __slots__ = ("_covered_at", "_last", "_second", "_this", "share", "used")

    def __init__(self) -> None:
        self._covered_at = 0.0
        self._second = 0
        self._this = self._last = 0.0
        """The costs of the current second and of the one before."""
        self.share = 1.0
        self.used = 0.0

    def charge(self, cost: float, rate: float) -> None:
        """Add a cost."""
        now, seconds = time.monotonic(), cost / rate
        self.used += seconds
        self._covered_at = max(self._covered_at, now - BURST_S) + seconds / self.share
        self._turn_to(int(now))
        self._this += cost

    def _turn_to(self, second: int) -> None:
        if second != self._second:
            self._last = self._this if second == self._second + 1 else 0.0
            self._this, self._second = 0.0, second

    @property
    def last_second(self) -> float:
        """The costs of the last whole second."""
        self._turn_to(int(time.monotonic()))
        return self._last

    @property
    def wait(self) -> float:
        """Seconds until the rate covers all costs so far."""
        return max(0.0, self._covered_at - time.monotonic())


class TenantUsage:
    """A tenant's usage over all its keys, requests and streams."""

    __slots__ = ("_counted", "bytes", "ops", "requests", "requests_held")

    def __init__(self) -> None:
        self.ops = AverageRate()
        self.bytes = AverageRate()
        self.requests = 0.0
        """Requests since the last report, in seconds of their rate."""
        self.requests_held = False
        self._counted: OrderedDict[bytes, int] = OrderedDict()

    def records(self, frame: Frame, human: bool) -> int:
        """The number of op records that a frame runs. Thread-safe."""
        times, encoded = max(frame.repeat, 1), bytes(frame.structure)
        if not encoded:
            return self._counted.get(frame.hash, 1) * times
        try:
            count = len((_json if human else _binary).decode(encoded).ops)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return 0  # the engine will refuse the frame
        if frame.hash and not human and structure_hash(encoded) == frame.hash:
            self._counted[frame.hash] = count
            if len(self._counted) > STRUCTURES_COUNTED:
                self._counted.popitem(last=False)
        return count * times


class StreamMeter:
    """The usage of one stream, for its rate limits and the audit log.

    Attributes:
        usage: the tenant's.
        held: seconds of delay.
    """

    __slots__ = ("_byte_rate", "_op_rate", "bytes_in", "bytes_out", "frames", "held", "ops", "paced", "usage")

    def __init__(self, usage: TenantUsage, op_rate: int = 0, byte_rate: int = 0) -> None:
        self.usage, self._op_rate, self._byte_rate = usage, op_rate, byte_rate
        self.paced = bool(op_rate or byte_rate)
        self.frames = self.ops = self.bytes_in = self.bytes_out = 0
        self.held = 0.0

    def received(self, size: int, weight: int, records: int | None) -> None:
        """Count a received message: its bytes, its decoded memory and, for a frame, its op records."""
        self.bytes_in += size
        if self._byte_rate:
            self.usage.bytes.charge(max(size, weight if weight > WEIGHTY_BYTES else 0), self._byte_rate)
        if records is not None:
            self.frames += 1
            self.ops += records
            if self._op_rate:
                self.usage.ops.charge(records, self._op_rate)

    @property
    def wait(self) -> float:
        """Seconds until the server may read the next message."""
        byte_wait = self.usage.bytes.wait if self._byte_rate else 0.0
        return max(byte_wait, self.usage.ops.wait) if self._op_rate else byte_wait

    def sent(self, size: int) -> None:
        """Count a sent message."""
        self.bytes_out += size
        if self._byte_rate:
            self.usage.bytes.charge(size, self._byte_rate)


class Rates:
    """The rates of all tenants, and of wrong keys by address."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._usages: dict[str, TenantUsage] = {}
        self._windows = MovingWindowRateLimiter(MemoryStorage())
        self._failures = RateLimitItemPerMinute(settings.max_key_failures)
        self._blocked: OrderedDict[str, float] = OrderedDict()
        self._proven: OrderedDict[tuple[str, str], None] = OrderedDict()

    def usage(self, key: Key) -> TenantUsage:
        """The usage of the key's tenant."""
        found = self._usages.get(key.tenant)
        if found is None:
            found = self._usages[key.tenant] = TenantUsage()
        return found

    def meter(self, key: Key) -> StreamMeter:
        """The meter of a new stream."""
        rates = (key.quota(name, self.settings) for name in ("max_ops_per_second", "max_bytes_per_second"))
        return StreamMeter(self.usage(key), *rates)

    # Requests

    def admit(self, key: Key, counted: bool = False) -> None:
        """Count a request, unless a gateway has ``counted`` it.

        Raises:
            TooManyRequests: when the key exceeds its rate of requests or bytes.
        """
        most = key.quota("max_requests_per_second", self.settings)
        if most and not counted:
            usage = self.usage(key)
            window = RateLimitItemPerSecond(max(1, round(most * usage.ops.share)))
            usage.requests += 1 / most
            if not self._windows.hit(window, "requests", key.tenant):
                usage.requests_held = True
                raise self._too_fast("max_requests_per_second", most, self._time_left(window, "requests", key.tenant))
        rate = key.quota("max_bytes_per_second", self.settings)
        if rate and (wait := self.usage(key).bytes.wait) > 0:
            raise self._too_fast("max_bytes_per_second", rate, wait)

    def recent(self, key: Key) -> dict[str, tuple[float, int]]:
        """The limited rates of a key by setting: use of the last second, and limit. Use is that of the tenant."""
        limits = {name: key.quota(name, self.settings) for name in RATES}
        usage, found = self.usage(key), dict[str, tuple[float, int]]()
        if most := limits["max_ops_per_second"]:
            found["max_ops_per_second"] = usage.ops.last_second, most
        if most := limits["max_bytes_per_second"]:
            found["max_bytes_per_second"] = usage.bytes.last_second, most
        if most := limits["max_requests_per_second"]:
            window = RateLimitItemPerSecond(max(1, round(most * usage.ops.share)))
            left = self._windows.get_window_stats(window, "requests", key.tenant).remaining
            found["max_requests_per_second"] = window.amount - left, most
        return found

    def charge_bytes(self, key: Key, size: int) -> None:
        """Count the body of a request or a response."""
        rate = key.quota("max_bytes_per_second", self.settings)
        if rate:
            self.usage(key).bytes.charge(size, rate)

    def charge_ops(self, key: Key, frame: Frame, human: bool) -> None:
        """Count the frame of a request.

        Raises:
            TooManyRequests: when the key exceeds its rate of ops.
        """
        rate = key.quota("max_ops_per_second", self.settings)
        if not rate:
            return
        usage = self.usage(key)
        if (wait := usage.ops.wait) > 0:
            raise self._too_fast("max_ops_per_second", rate, wait)
        usage.ops.charge(usage.records(frame, human), rate)

    def _too_fast(self, name: str, limit: int, wait: float) -> TooManyRequests:
        return TooManyRequests(
            f"the limit of this key is {limit:,} {name.removeprefix('max_').replace('_', ' ')} ({variable(name)}); "
            f"retry in {wait:.3g} s",
            setting=variable(name), limit=limit, retry_after_s=wait,
        )  # fmt: skip

    # Shares of a fleet

    def take_use(self) -> dict[str, float]:
        """The use of rates since the last call by tenant, in seconds of the rate; :data:`HELD` where it was held."""
        found = {}
        for tenant, usage in self._usages.items():
            used = max(usage.ops.used, usage.bytes.used, usage.requests)
            held = usage.requests_held or usage.ops.wait > 0 or usage.bytes.wait > 0
            usage.ops.used = usage.bytes.used = usage.requests = 0.0
            usage.requests_held = False
            if used or held:
                found[tenant] = HELD if held else min(used, 1.0)
        return found

    def set_shares(self, shares: dict[str, float]) -> None:
        """Use these parts of the rates of these tenants from now on, and the whole rate of others."""
        for tenant, usage in self._usages.items():
            usage.ops.share = usage.bytes.share = max(shares.get(tenant, 1.0), LEAST_SHARE)

    # Wrong keys

    def check_address(self, address: str, digest: str) -> None:
        """Refuse a blocked address, unless it used this key successfully before.

        Raises:
            TooManyRequests: with the time until the block ends.
        """
        if not self._blocked:
            return
        network = _network(address)
        wait = self._blocked.get(network, 0.0) - time.time()
        if wait <= 0:
            self._blocked.pop(network, None)
        elif (network, digest) not in self._proven:
            limit = self.settings.max_key_failures
            raise TooManyRequests(
                f"more than {limit} wrong API keys from this address in a minute ({variable('max_key_failures')})",
                setting=variable("max_key_failures"), limit=limit, retry_after_s=wait,
            )  # fmt: skip

    def failed(self, address: str) -> bool:
        """Count a wrong key. Returns whether the address is now blocked."""
        network = _network(address)
        self._windows.hit(self._failures, "failures", network)
        if self._windows.test(self._failures, "failures", network):
            return False
        self._blocked[network] = time.time() + self._time_left(self._failures, "failures", network)
        if len(self._blocked) > MAX_ADDRESSES:
            self._blocked.popitem(last=False)
        return True

    def proved(self, address: str, digest: str) -> None:
        """Record that this address used this key successfully."""
        pair = (_network(address), digest)
        if pair not in self._proven:
            self._proven[pair] = None
            if len(self._proven) > MAX_ADDRESSES:
                self._proven.popitem(last=False)

    def _time_left(self, window: RateLimitItem, *names: str) -> float:
        return max(0.0, self._windows.get_window_stats(window, *names).reset_time - time.time())


def _network(address: str) -> str:
    """The network that counts as one address: for IPv6 the /64, which providers assign to one customer."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
