"""Workers report changes at once and little else; the Directory's table stays right. Without a cluster."""

from __future__ import annotations

from typing import Any

from gradwire_server.fleet.messages import Report, Shared
from gradwire_server.fleet.registry import FleetSessions
from gradwire_server.fleet.reporting import QUIET_S, REPEATED, Reports
from gradwire_server.fleet.resources import Resources
from gradwire_server.settings.settings import Settings


class Worker:
    """A worker and its Directory's table, with a clock that stands."""

    def __init__(self) -> None:
        self.now = 100.0
        self.table = FleetSessions(Settings())
        self.rows: dict[str, dict[str, Any]] = {}
        self.gone: dict[str, str] = {}
        self.incarnation = "a"
        self.reports = Reports(lambda: Report(process="w", worker=True), lambda: self.now)

    def tick(self, seconds: float = 1.0, **use: float) -> Report | None:
        self.now += seconds
        gone = dict(self.gone)
        told = self.reports.next([dict(row) for row in self.rows.values()], gone, use)
        if told is not None:
            rows = [dict(row) for row in told.sessions]
            whole = self.table.reported("w", Resources(), rows, told.gone, told.here)
            self.reports.answered(told, gone, Shared(incarnation=self.incarnation, whole=whole))
        return told

    def quiet(self) -> None:
        for _ in range(REPEATED + 3):
            self.tick()
        assert self.tick() is None

    def begin(self, session: str, state: str = "running") -> None:
        self.rows[session] = {
            "id": session, "tenant": "t", "state": state, "expires_at": self.now, "ttl_s": 60.0, "durability": "applied"
        }  # fmt: skip


def test_a_report_has_what_changed_and_a_quiet_worker_reports_rarely() -> None:
    worker = Worker()
    worker.begin("s_1")
    worker.begin("s_2")
    worker.quiet()
    assert set(worker.table.sessions) == {"s_1", "s_2"}
    worker.rows["s_1"]["expires_at"] += 1  # moves on with each use
    assert worker.tick() is None
    worker.rows["s_1"]["state"] = "damaged"
    told = worker.tick()
    assert told is not None and [row["id"] for row in told.sessions] == ["s_1"] and told.here == ["s_1", "s_2"]
    assert worker.table.sessions["s_1"].summary["state"] == "damaged"
    worker.quiet()
    sign = worker.tick(QUIET_S)
    assert sign is not None and sign.sessions == []
    assert worker.tick(t=0.5) is not None  # rates are shared each second


def test_ends_and_departures_arrive() -> None:
    worker = Worker()
    worker.begin("s_1")
    worker.begin("s_2")
    worker.quiet()
    del worker.rows["s_1"], worker.rows["s_2"]
    worker.gone["s_1"] = "was deleted"
    for _ in range(REPEATED):
        assert worker.tick() is not None
    assert "s_1" not in worker.table.sessions
    assert worker.table.sessions["s_2"].worker is None  # it is in the storage


def test_another_directory_and_one_that_forgot_get_everything() -> None:
    worker = Worker()
    worker.begin("s_1")
    worker.quiet()
    worker.table, worker.incarnation = FleetSessions(Settings()), "b"
    for _ in range(int(QUIET_S) + 2):
        worker.tick()
    assert set(worker.table.sessions) == {"s_1"}
    worker.quiet()
    session = worker.table.sessions["s_1"]
    worker.table.sleep(session)
    worker.table.move(session, "w")  # placed here again: the table's facts are not the worker's
    for _ in range(int(QUIET_S) + 2):
        worker.tick()
    assert session.summary["state"] == "running"
