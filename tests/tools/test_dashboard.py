"""The dashboard for Grafana shows every metric of the server, and no other."""

from __future__ import annotations

import json
import re

import httpx
from tools.dashboard import FILE, dashboard

from gradwire_server.observability.metrics import METRICS, PREFIX
from tests.live_server import LiveServer, live_server


def queries() -> list[str]:
    panels = json.loads(FILE.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def test_the_file_is_what_the_table_says() -> None:
    assert FILE.read_text(encoding="utf-8") == dashboard()


def test_every_metric_has_a_panel_and_every_panel_a_metric() -> None:
    named = {name.removesuffix("_bucket") for query in queries() for name in re.findall(PREFIX + r"\w+", query)}
    assert named == {PREFIX + row.name for row in METRICS}


def test_labels_of_queries_are_those_of_their_metrics() -> None:
    labels = {PREFIX + row.name: {name for name, _ in row.labels} for row in METRICS}
    for query in queries():
        for name, matchers in re.findall(rf"({PREFIX}\w+?)(?:_bucket)?\{{([^}}]*)\}}", query):
            assert {each.split("=")[0].strip() for each in matchers.split(",")} <= labels[name] | {"instance"}, query
        for grouped in re.findall(r"by \(([^)]*)\)", query):
            (name,) = {each.removesuffix("_bucket") for each in re.findall(PREFIX + r"\w+", query)}
            assert set(grouped.split(", ")) <= labels[name] | {"le"}, query


def test_a_server_tells_the_names_that_the_queries_use() -> None:
    with live_server() as server:
        told = scraped(server)
    wanted = {name for query in queries() for name in re.findall(PREFIX + r"\w+", query)}
    unlabelled = {PREFIX + row.name for row in METRICS if not row.labels and not row.name.startswith("fleet_")}
    assert {name for name in wanted if name.removesuffix("_bucket") in unlabelled} <= told


def scraped(server: LiveServer) -> set[str]:
    text = httpx.get(f"{server.url}/metrics", headers={"X-API-Key": server.admin_key}).text
    return set(re.findall(rf"^({PREFIX}\w+)", text, re.MULTILINE))


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(FILE.read_text(encoding="utf-8"))["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24
        taken |= cells
