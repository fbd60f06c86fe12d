"""The Directory's tables and messages, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ray", reason="a fleet needs Ray: pip install 'gradwire[cluster]'")

from gradwire_protocol.errors import InvalidRequest, NotFound, SessionGone, TooManyRequests, Unavailable
from gradwire_server.auth.keys import Key
from gradwire_server.auth.rates import HELD, Rates
from gradwire_server.auth.scopes import GATEWAY_SCOPES, SCOPES, walk
from gradwire_server.fleet.gateway_app import create_gateway
from gradwire_server.fleet.messages import Placement, Report, answered, pack, refused, unpack
from gradwire_server.fleet.registry import COUNTED, MISSED_REPORTS, FleetSessions
from gradwire_server.fleet.resources import Resources, parse_size, requested
from gradwire_server.fleet.shares import LEAST, Shares
from gradwire_server.settings.settings import Settings

PLAIN = Resources()


def key(tenant: str = "t", **quotas: int) -> Key:
    return Key(id="k", digest="", name="", tenant=tenant, scopes=["session"], quotas=quotas)


def made(table: FleetSessions, session: str, worker: str = "w", tenant: str = "t", durability: str = "none") -> None:
    reservation, _ = table.reserve(key(tenant), None, PLAIN, "", "")
    table.made(reservation, worker, summary(session, durability))


def summary(session: str, durability: str = "none") -> dict[str, Any]:
    return {"id": session, "durability": durability, "ttl_s": 60.0, "limits": {"max_session_bytes": 10}}


@pytest.fixture
def table() -> FleetSessions:
    return FleetSessions(Settings(max_sessions=3))


def test_a_session_under_construction_counts(table: FleetSessions) -> None:
    first, _ = table.reserve(key(max_key_sessions=1), None, PLAIN, "", "")
    with pytest.raises(TooManyRequests):
        table.reserve(key(max_key_sessions=1), None, PLAIN, "", "")
    table.failed(first)
    table.reserve(key(max_key_sessions=1), None, PLAIN, "", "")


@pytest.mark.parametrize("kind", COUNTED)
def test_what_a_key_takes_of_machines_is_bounded_over_the_fleet(kind: str) -> None:
    unit = 1_000_000_000 if kind == "memory" else 1

    def asking(amount: float) -> Resources:
        value: Any = int(amount * unit) if kind == "memory" else amount
        return Resources(**({"cpus": 0.0} | {kind: value}))

    quota = f"max_key_{kind}"
    most: dict[str, Any] = {quota: 2 * unit}
    table = FleetSessions(Settings(**most))
    half, one = asking(0.5), asking(1)
    first, _ = table.reserve(key(), None, one, "", "")
    table.made(first, "w", summary("s_1"))
    second, _ = table.reserve(key(), None, half, "", "")  # counts while it is created
    with pytest.raises(TooManyRequests, match=f"GRADWIRE_{quota.upper()}") as refused:
        table.reserve(key(), None, one, "", "")
    assert refused.value.details == {"setting": f"GRADWIRE_{quota.upper()}", "limit": 2 * unit, "value": 2.5 * unit}
    table.reserve(key(), None, Resources(cpus=0.0), "", "")
    table.reserve(key(tenant="other"), None, asking(2), "", "")
    table.reserve(key(**{quota: 3 * unit}), None, one, "", "")
    table.failed(second)
    table.forget("s_1", "was deleted")
    table.reserve(key(), None, one, "", "")


def test_a_memory_quota_is_divided_over_the_fleet(table: FleetSessions) -> None:
    limits = {"max_key_bytes": 100, "max_key_sessions": 2}
    for worker in ("v", "w"):
        reservation, granted = table.reserve(key(**limits), None, PLAIN, "", "")
        assert granted == {"max_session_bytes": 50}
        table.made(reservation, worker, summary(worker) | {"limits": granted})
    with pytest.raises(TooManyRequests):
        table.reserve(key(**limits), None, PLAIN, "", "")


def test_a_full_fleet_tells_whose_sessions_fill_it(table: FleetSessions) -> None:
    for name in "abc":
        made(table, name)
    with pytest.raises(TooManyRequests, match="the fleet has 3 sessions"):
        table.reserve(key(), None, PLAIN, "", "")
    with pytest.raises(Unavailable):
        table.reserve(key("other"), None, PLAIN, "", "")


def test_sessions_belong_to_tenants(table: FleetSessions) -> None:
    made(table, "a")
    assert table.get("a", "t").worker == "w"
    with pytest.raises(NotFound):
        table.get("a", "other")
    table.forget("a", "was deleted")
    with pytest.raises(SessionGone, match="was deleted"):
        table.get("a", "t")
    assert table.of("t") == []
    assert table.count("w") == 0


def test_a_report_that_left_before_the_creation_forgets_nothing(table: FleetSessions) -> None:
    made(table, "a")
    for _ in range(MISSED_REPORTS - 1):
        table.reported("w", PLAIN, [])
        assert table.get("a", "t")
    table.reported("w", PLAIN, [summary("a") | {"tenant": "t"}])
    for _ in range(MISSED_REPORTS):
        table.reported("w", PLAIN, [])
    with pytest.raises(SessionGone):
        table.get("a", "t")


def test_a_durable_session_that_a_worker_unloads_is_dormant(table: FleetSessions) -> None:
    made(table, "a", durability="applied")
    for _ in range(MISSED_REPORTS):
        table.reported("w", PLAIN, [])
    assert table.get("a", "t").worker is None
    assert table.get("a", "t").summary["state"] == "dormant"


def test_a_session_that_ended_at_its_worker_ends_with_the_reason(table: FleetSessions) -> None:
    made(table, "a", durability="applied")
    table.reported("w", PLAIN, [], {"a": "expired at noon"})
    with pytest.raises(SessionGone, match="expired at noon"):
        table.get("a", "t")


def test_the_end_of_a_worker_ends_what_is_stored_nowhere(table: FleetSessions) -> None:
    made(table, "a")
    made(table, "b", durability="durable")
    assert [each.id for each in table.lost("w", "killed")] == ["b"]
    with pytest.raises(SessionGone, match="was lost with its worker"):
        table.get("a", "t")
    assert table.get("b", "t").worker is None


def test_a_new_directory_learns_sessions_from_reports(table: FleetSessions) -> None:
    table.reported("w", PLAIN, [summary("a") | {"tenant": "t"}])
    assert table.get("a", "t").worker == "w"


def test_a_late_report_of_a_former_worker_moves_nothing(table: FleetSessions) -> None:
    made(table, "a", durability="durable")
    table.move(table.get("a", "t"), "v")
    table.reported("w", PLAIN, [summary("a") | {"tenant": "t"}])
    assert table.get("a", "t").worker == "v"


def test_every_route_of_a_gateway_has_a_scope() -> None:
    app = create_gateway(Settings(api_keys=("unused",), session_host="ray"))
    assert set(walk(app.routes)) == set(SCOPES | GATEWAY_SCOPES)


# Messages of other versions


def test_unknown_and_missing_fields_are_no_error() -> None:
    assert unpack({"worker": "w", "invented_later": [1]}, Placement) == Placement(worker="w")
    assert unpack({}, Report) == Report()
    assert unpack(pack(Report(use={"t": 0.5})), Report).use == {"t": 0.5}


def test_an_error_of_another_version_is_an_error_still() -> None:
    with pytest.raises(InvalidRequest, match="too much") as caught:
        answered(refused(InvalidRequest("too much", limit=3)))
    assert caught.value.details["limit"] == 3
    with pytest.raises(Exception, match="new kind") as unknown:
        answered({"error": {"code": "invented_later", "message": "new kind"}})
    assert unknown.value.details["code"] == "invented_later"


# Resources


@pytest.mark.parametrize(
    ("text", "size"), [("40GB", 40 * 10**9), ("512 MiB", 512 << 20), ("1.5kb", 1500), (7, 7), ("12", 12)]
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["forty", "40 XB", "-1GB", ""])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InvalidRequest, match="memory must be a size"):
        parse_size(text)


def test_a_gpu_is_asked_for_by_its_device_or_its_model() -> None:
    settings = Settings()
    assert requested(settings, "cpu").gpus == 0
    assert requested(settings, "cuda:0").gpus == 1
    assert requested(settings, None, gpu=True) == Resources(gpus=1)
    chosen = requested(settings, None, gpu="H100", gpus=0.25, memory="40GB", cpus=2)
    options = chosen.options({"n2", "n1"})
    assert options["num_gpus"] == 0.25
    assert options["memory"] == 40 * 10**9
    assert options["resources"] == {"accelerator_type:H100": 0.001}
    assert options["label_selector"] == {"ray.io/node-id": "!in(n1,n2)"}
    with pytest.raises(InvalidRequest, match="gpus=0 contradicts device='cuda'"):
        requested(settings, "cuda", gpus=0)
    with pytest.raises(InvalidRequest, match=r"gpus=1\.5"):
        requested(settings, "cuda", gpus=1.5)


# Rates


def test_shares_of_a_rate_add_up_to_it() -> None:
    shares = Shares()
    assert shares.report("a", {"t": HELD}) == {"t": 1.0}
    shares.report("b", {"t": HELD})
    shares.report("c", {"t": 0.1})
    found = {name: shares.report(name, {"t": use})["t"] for name, use in (("a", HELD), ("b", HELD), ("c", 0.1))}
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["a"] == found["b"] > found["c"] >= LEAST


def test_a_process_enforces_its_share() -> None:
    rates = Rates(Settings(max_ops_per_second=100))
    usage = rates.usage(key())
    usage.ops.charge(50, 100)
    assert rates.take_use() == {"t": 0.5}
    rates.set_shares({"t": 0.5})
    usage.ops.charge(200, 100)
    assert usage.ops.wait > 2.0
    assert rates.take_use() == {"t": HELD}
    rates.set_shares({})
    assert usage.ops.share == 1.0
