"""schemathesis calls every operation of the OpenAPI document with all its checks, many more times than the tests."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    use_after_free,
)

from tests.live_server import live_server
from tests.server.test_openapi import CHECKS, schema

from . import Figures, progress

SECONDS = 300.0
EXAMPLES = 40
"""Of each operation in one round."""
MORE_CHECKS = [response_headers_conformance, missing_required_header, use_after_free, ignored_auth]


def run(most_seconds: float = SECONDS) -> Figures:
    """Go round the operations until the time is over; at least once."""
    end = time.monotonic() + most_seconds
    counts: Counter[str] = Counter()
    rounds = 0
    with live_server(max_key_failures=1 << 30, max_sessions=1 << 20) as server, server.http() as http:
        while not rounds or time.monotonic() < end:
            for found in schema.get_all_operations():
                operation = found.ok()
                path = http.post("/v1/sessions", json={}).headers["location"]
                http.put(f"{path}/tensors/1?requires_grad=true", json={"values": 1.5})
                check_operation(operation, server, path.rsplit("/", 1)[-1], counts)
                http.delete(path)
                progress(f"{counts.total():,} calls, {operation.label}")
                if rounds and time.monotonic() > end:
                    break
            rounds += 1
    return {"operations": len(counts), "calls": counts.total(), "rounds": rounds}


def check_operation(operation: Any, server: Any, session_id: str, counts: Counter[str]) -> None:
    """Call one operation with generated requests, good and bad, each in the place of a session that is there."""

    @seed(random.randrange(1 << 30))
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def called(case: schemathesis.Case) -> None:
        ends = case.method == "DELETE" and case.path == "/v1/sessions/{session_id}"
        if case.path_parameters and "session_id" in case.path_parameters:
            case.path_parameters["session_id"] = "s_of_nobody" if ends else session_id
        checks = [*CHECKS, *MORE_CHECKS]
        if case.path.endswith("/frames"):
            checks.remove(negative_data_rejection)  # a record that makes no sense fails its op, in a success
        case.call_and_validate(base_url=server.url, headers=server.headers, checks=checks)
        counts[operation.label] += 1

    called()
