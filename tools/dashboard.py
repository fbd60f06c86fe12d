"""A dashboard of the server's metrics for Grafana: ``docker/grafana/dashboard.json``.

A panel for each row of the table of metrics, so a new metric is on the dashboard at once. A counter is shown as its
rate, a histogram as its median and 95th percentile, a gauge as it is. The first panels answer common questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from prometheus_client import Counter, Histogram

from gradwire_server.observability.metrics import METRICS, PREFIX, Metric

FILE: Final = Path(__file__).parents[1] / "docker" / "grafana" / "dashboard.json"
WINDOW: Final = "$__rate_interval"
CHOSEN: Final = 'instance=~"$instance"'
COLUMNS, WIDTH, HEIGHT = 3, 8, 8
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}

SECTIONS: Final = (
    ("Frames", ("frames", "ops", "results", "round_trips", "structures", "planned_frames", "frame_", "pending")),
    ("Sessions and memory", ("session", "streams", "memory", "worker_restarts")),
    ("Requests", ("http_", "received", "sent", "errors", "auth", "rate_limited")),
    ("Journals", ("journal", "commit", "snapshot", "recovery")),
    ("Fleet", ("fleet_",)),
    ("Server", ("",)),
)
"""Rows of panels, by the beginning of the metrics' names; a metric belongs to the first that fits."""

QUESTIONS: Final = (
    ("Frames that run by a plan", "percentunit", "sum(rate({planned_frames_total}))/sum(rate({frames_total}))"),
    ("Structures that are known", "percentunit", "sum(rate({structures_total:hash}))/sum(rate({structures_total}))"),
    ("Memory that only backward needs", "percentunit", "sum({memory_bytes:saved})/sum({memory_bytes:live})"),
)
"""Titles, units and queries; ``{name}`` is a metric, and ``{name:value}`` one value of its label that has it."""


def _series(name: str, value: str = "") -> str:
    row = next(row for row in METRICS if row.name == name)
    matched = [CHOSEN, *(f'{label}="{value}"' for label, values in row.labels if f"`{value}`" in values)]
    assert value == "" or len(matched) == 2, (name, value)
    window = f"[{WINDOW}]" if row.kind is Counter else ""
    return f"{PREFIX}{name}{{{','.join(matched)}}}{window}"


def _question(query: str) -> str:
    parts = query.split("{")
    text = parts[0]
    for part in parts[1:]:
        inner, rest = part.split("}", 1)
        text += _series(*inner.split(":")) + rest
    return text.replace("/", " / ")


def _unit(row: Metric) -> str:
    if row.name.endswith("_seconds"):
        return "s"
    per_second = row.kind is Counter
    if "bytes" in row.name:
        return "Bps" if per_second else "bytes"
    return "ops" if per_second else "short"


def _targets(row: Metric) -> Iterator[tuple[str, str]]:
    """Queries of a metric, with the legends of their lines."""
    by = [label for label, _ in row.labels]
    legend = " ".join(f"{{{{{label}}}}}" for label in by) or row.name.removesuffix("_total").replace("_", " ")
    grouped = f" by ({', '.join(by)})" if by else ""
    series = f"{PREFIX}{row.name}"
    if row.kind is Histogram:
        for share in (0.5, 0.95):
            inner = f"sum by ({', '.join(['le', *by])}) (rate({series}_bucket{{{CHOSEN}}}[{WINDOW}]))"
            yield f"histogram_quantile({share}, {inner})", f"{share:.0%} {legend if by else ''}".strip()
    elif row.kind is Counter:
        yield f"sum{grouped} (rate({series}{{{CHOSEN}}}[{WINDOW}]))", legend
    else:
        yield f"sum{grouped} ({series}{{{CHOSEN}}})", legend


def _panel(title: str, about: str, unit: str, targets: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 10}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + i), "expr": query, "legendFormat": legend, "datasource": SOURCE}
            for i, (query, legend) in enumerate(targets)
        ],
    }


def _rows() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    yield "Questions", [_panel(title, "", unit, [(_question(query), title)]) for title, unit, query in QUESTIONS]
    taken: set[str] = set()
    for title, beginnings in SECTIONS:
        members = [row for row in METRICS if row.name not in taken and row.name.startswith(beginnings)]
        taken |= {row.name for row in members}
        yield (
            title,
            [
                _panel(
                    row.name.removesuffix("_total").replace("_", " ").capitalize(),
                    row.text,
                    _unit(row),
                    [*_targets(row)],
                )
                for row in members
            ],
        )


def dashboard() -> str:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, members in _rows():
        panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        y += 1
        for i, panel in enumerate(members):
            where = {"x": i % COLUMNS * WIDTH, "y": y + i // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}
            panels.append({**panel, "gridPos": where})
        y += -(-len(members) // COLUMNS) * HEIGHT
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    instance = {
        "name": "instance", "type": "query", "label": "Server", "datasource": SOURCE, "multi": True, "includeAll": True,
        "query": {"query": f"label_values({PREFIX}build_info, instance)", "refId": "instances"}, "refresh": 2,
        "current": {"text": ["All"], "value": ["$__all"]},
    }  # fmt: skip
    told = {
        "title": "gradwire",
        "uid": "gradwire",
        "description": "Derived from the table of metrics: run `make derive`.",
        "tags": ["gradwire"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [source, instance]},
        "panels": [{"id": i + 1, **panel} for i, panel in enumerate(panels)],
    }
    return json.dumps(told, indent=1) + "\n"
