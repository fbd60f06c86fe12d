"""/metrics has every metric of the table, and clients cannot create label values."""

from __future__ import annotations

import time
from collections.abc import Iterator
from timeit import repeat

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gradwire_engine.session.session import Session
from gradwire_protocol import envelope
from gradwire_protocol.frames import Frame, Problem, Reply, Structure, structure_hash
from gradwire_server.observability.metrics import (
    FLEET,
    METRICS,
    PREFIX,
    TALLIES_KEPT,
    Applied,
    Metrics,
    SessionState,
    families,
)
from gradwire_server.observability.scraping import MemoryWatch
from tests.live_server import LiveServer, live_server

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]

ADDITION = {"ops": [["full", [[2], "float"]], ["add", [0, 0, "int"]]], "reads": [1]}


def parsed(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def one(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((PREFIX + name, tuple(sorted(labels.items()))), 0.0)


@pytest.fixture
def alone() -> Iterator[LiveServer]:
    """A server that nobody else counts on."""
    with live_server() as found:
        yield found


def scrape(server: LiveServer) -> Samples:
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.admin_key}"}) as http:
        response = http.get("/metrics")
        assert response.status_code == 200, response.text
        return parsed(response.text)


def frame(http: httpx.Client, session: str, structure: dict, scalars: list[float]) -> None:
    response = http.post(f"/v1/sessions/{session}/frames", json={"structure": structure, "scalars": scalars})
    assert response.status_code == 200, response.text


def test_every_metric_of_the_table_is_told(alone: LiveServer) -> None:
    with httpx.Client(base_url=alone.url, headers={"Authorization": f"Bearer {alone.admin_key}"}) as http:
        text = http.get("/metrics").text
    told = {family.name for family in text_string_to_metric_families(text)}
    own = [row.name for row in METRICS if not row.name.startswith(FLEET)]  # those of a fleet are a gateway's
    assert {(PREFIX + name).removesuffix("_total") for name in own} <= told
    assert {"process_cpu_seconds", "python_info"} <= told
    assert not [name for name in told if name.startswith(PREFIX) and name.endswith("_created")]


def test_a_frame_is_counted_by_what_it_did(alone: LiveServer) -> None:
    with alone.http() as http:
        session = http.post("/v1/sessions", json={}).json()["id"]
        before = scrape(alone)
        for _ in range(3):
            frame(http, session, ADDITION, [1.5, 1])
        after = scrape(alone)

    def gained(name: str, **labels: str) -> float:
        return one(after, name, **labels) - one(before, name, **labels)

    assert gained("frames_total", outcome="applied") == 3
    assert gained("ops_total", family="creation") == 3
    assert gained("ops_total", family="pointwise") == 3
    assert gained("results_total") == 6
    assert gained("round_trips_total") == 3
    assert gained("structures_total", how="whole") == 3
    assert gained("frame_seconds_count") == 3
    assert gained("frame_wait_seconds_count") == 3
    assert gained("received_bytes_total", via="rest") > 0
    assert one(after, "sessions", state="live", durability="none") == 1


def test_memory_is_told_by_device(alone: LiveServer) -> None:
    with alone.http() as http:
        for _ in range(2):
            session = http.post("/v1/sessions", json={}).json()["id"]
            frame(http, session, {"ops": [["full", [[256], "float"]]]}, [1.0])
        samples = scrape(alone)
    assert one(samples, "memory_bytes", device="cpu", kind="live") == 2 * 256 * 4
    assert one(samples, "memory_bytes", device="cpu", kind="peak") >= 2 * 256 * 4


def test_a_wrong_key_and_an_error_are_counted_by_code(alone: LiveServer) -> None:
    before = scrape(alone)
    assert httpx.get(f"{alone.url}/v1/sessions", headers={"Authorization": "Bearer wrong"}).status_code == 401
    with alone.http() as http:
        assert http.get("/v1/sessions/s_unknown").status_code == 404
    after = scrape(alone)
    for name, code in (("auth_failures_total", "unauthorized"), ("errors_total", "not_found")):
        assert one(after, name, code=code) - one(before, name, code=code) == 1


def test_what_a_client_chooses_is_no_label(alone: LiveServer) -> None:
    """Paths, methods, ids, names of ops and request ids of a client's making lead to no series of their own."""
    with alone.http() as http:
        session = http.post("/v1/sessions", json={}).json()["id"]
        scrape(alone)

        def provoke(i: int) -> None:
            http.get(f"/no/such/path/{i}", headers={"X-Request-ID": f"mine{i}"})
            http.request(f"METHOD{i}", "/v1/sessions")
            http.get(f"/v1/sessions/s_{i}")
            frame(http, session, {"ops": [[f"no_such_op_{i}", []]]}, [])

        provoke(0)
        few = len(scrape(alone))
        for i in range(1, 20):
            provoke(i)
        assert len(scrape(alone)) == few


def test_an_unknown_op_counts_as_other() -> None:
    assert families(Structure(ops=[["no_such_op", []], ["add", [0, 1, "int"]], [3, []]])) == {
        "other": 2, "pointwise": 1
    }  # fmt: skip


def test_a_known_structure_is_counted_without_being_looked_at() -> None:
    metrics = Metrics()
    structure = Structure(ops=[["add", [0, 1, "int"]]] * 5)
    key = structure_hash(envelope.encode_part(structure))
    assert not metrics.knows(key)
    metrics.applied(key, True, Reply(seq=1, made=5), Applied.of(structure, False, 0.0, 0.0))
    assert metrics.knows(key)
    metrics.applied(key, False, Reply(seq=2, made=5), Applied.of(structure, True, 0.0, 0.0))
    samples = parsed(metrics.exposition().decode())
    assert one(samples, "ops_total", family="pointwise") == 10
    assert one(samples, "structures_total", how="hash") == 1


def test_frames_that_ran_by_a_plan_are_counted() -> None:
    """Of six that are alike, all but the first two: those were seen, and captured."""
    found = []
    session, metrics = Session(seed=0), Metrics()
    encoded = envelope.encode_part(Structure(ops=[["full", [[2], "float"]], ["add", [0, 0, "int"]]], drops=[0, 1]))
    client = session.new_client()
    session.join(client)
    for number in range(1, 7):
        frame = Frame(
            seq=number, client=client, first=(client << 32) + 2 * number, structure=encoded, scalars=[1.5, 1],
            hash=structure_hash(encoded),
        )  # fmt: skip
        reply, _ = session.apply(frame)
        assert not reply.errors
        metrics.applied(frame.hash, True, reply, Applied.of(session.ran, True, 0.0, 0.0, session.planned))
        found.append(session.planned)
    assert found == [False, False, True, True, True, True]
    assert one(parsed(metrics.exposition().decode()), "planned_frames_total") == 4


def test_a_repeated_frame_counts_no_ops() -> None:
    metrics = Metrics()
    structure = Structure(ops=[["add", [0, 1, "int"]]])
    metrics.applied(b"k" * 16, True, Reply(seq=1), Applied.of(structure, False, 0.0, 0.0))
    metrics.applied(b"k" * 16, False, Reply(seq=1), Applied.of(None, True, 0.0, 0.0))
    samples = parsed(metrics.exposition().decode())
    assert one(samples, "ops_total", family="pointwise") == 1
    assert one(samples, "frames_total", outcome="repeated") == 1


def test_structures_are_forgotten_and_their_ops_are_not() -> None:
    metrics = Metrics()
    for i in range(TALLIES_KEPT + 100):
        metrics.op_counts.add(i.to_bytes(16, "big"), {"pointwise": 2})
    assert metrics.op_counts.totals() == {"pointwise": 2 * (TALLIES_KEPT + 100)}
    assert not metrics.knows((0).to_bytes(16, "big"))


def test_an_error_with_a_code_of_its_own_counts_as_other() -> None:
    metrics = Metrics()
    metrics.count_errors(Reply(seq=1, errors=[Problem("shape_mismatch", ""), Problem("made_up", "")]), "stream")
    samples = parsed(metrics.exposition().decode())
    assert one(samples, "errors_total", code="other") >= 1
    assert not any(("code", "made_up") in labels for _, labels in samples)


def test_notes_of_a_worker_reach_the_counters() -> None:
    metrics = Metrics()
    told = Applied(notes=[("commit_seconds", 0.01), ("journal_bytes_total", 512.0), ("recovery_seconds", 2.0)])
    metrics.applied(b"", True, Reply(seq=1), told)
    samples = parsed(metrics.exposition().decode())
    assert one(samples, "commit_seconds_count") == 1
    assert one(samples, "journal_bytes_total") == 512
    assert one(samples, "recovery_seconds_sum") == 2


def test_the_memory_of_sessions_is_added_up_by_device() -> None:
    metrics = Metrics()
    metrics.gauges.states = lambda: [
        SessionState("live", "none", device, memory={"live_bytes": 1, "pooled_bytes": 100})
        for device in ("cuda:0", "cuda:0", "cpu")
    ]
    samples = parsed(metrics.exposition().decode())
    assert one(samples, "memory_bytes", device="cuda:0", kind="pooled") == 200
    assert one(samples, "memory_bytes", device="cuda:0", kind="live") == 2


async def test_a_busy_session_does_not_hold_up_a_scrape() -> None:
    import asyncio

    class Busy:
        async def memory(self, reset_peak: bool = False) -> dict[str, int]:
            await asyncio.sleep(3600)
            return {}

    class Quiet:
        async def memory(self, reset_peak: bool = False) -> dict[str, int]:
            return {"live_bytes": 7}

    watch = MemoryWatch()
    begun = time.monotonic()
    await watch.refresh({"busy": Busy(), "quiet": Quiet()})
    assert time.monotonic() - begun < 300
    assert watch.memory("quiet") == {"live_bytes": 7}
    assert watch.memory("busy") is None
    await watch.refresh({})
    assert watch.memory("quiet") is None


def test_counting_a_frame_takes_microseconds() -> None:
    """Measured at 3 to 4 us; the bound only catches what is slower by a factor."""
    metrics = Metrics()
    structure = Structure(ops=[["add", [0, 1, "int"]]] * 250, reads=[1])
    reply, told = Reply(seq=1, made=5), Applied.of(structure, False, 1e-4, 1e-3)
    metrics.applied(b"k" * 16, True, reply, told)
    least = min(repeat(lambda: metrics.applied(b"k" * 16, False, reply, told), number=1000, repeat=5)) / 1000
    assert least < 50e-6
