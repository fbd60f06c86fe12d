"""Other tenants learn nothing of a session, neither from answers nor from response times.

Every route of the OpenAPI document is requested for another tenant's session and for an unknown one, in random order.
The answers are compared literally, the times in pairs: a sign test on their differences, and their medians.
"""

from __future__ import annotations

import math
import random
import statistics
import time

from tests.live_server import server_process
from tests.server.strangers import answer, calls, furnished, unknown_id

from . import Figures, enough, progress

SECONDS = 120.0
LEAST_PAIRS = 400
MOST_SIGMA = 5.0
"""A difference in the signs of paired times that chance gives once in a million."""
TELLING_US = 20.0
"""A difference of medians that nobody can use over a network is none, whatever its sign."""


def run(most_seconds: float = SECONDS) -> Figures:
    """Compare until the time is over; at least once each way."""
    end = time.monotonic() + most_seconds
    differences: list[float] = []
    requests = 0
    with (
        server_process(max_connections=2000) as server,
        server.http() as owner,
        server.http(server.other_key) as stranger,
    ):
        session_id, parameters = furnished(owner)
        document = owner.get("/openapi.json").json()
        every = list(calls(document, parameters))
        for call in every:
            theirs, never = answer(stranger, call, session_id), answer(stranger, call, unknown_id(session_id))
            assert theirs == never, (call[:2], theirs, never)
            requests += 2
        timed = [call for call in every if answer(stranger, call, session_id)[0] == 404]
        assert timed, "no route tells that there is no such session"
        while time.monotonic() < end or len(differences) < LEAST_PAIRS:
            call = random.choice(timed)
            ids = [session_id, unknown_id(session_id)]
            took = [0.0, 0.0]
            for which in random.sample((0, 1), 2):
                started = time.perf_counter()
                answer(stranger, call, ids[which])
                took[which] = time.perf_counter() - started
            differences.append(took[0] - took[1])
            requests += 2
            progress(f"{len(differences)} pairs")
            if time.monotonic() > end + 60:
                break
        assert owner.get(f"/v1/sessions/{session_id}").status_code == 200
    enough(len(differences), LEAST_PAIRS, "pairs timed")
    longer = sum(d > 0 for d in differences)
    sigma = abs(longer - len(differences) / 2) / (math.sqrt(len(differences)) / 2)
    median_us = abs(statistics.median(differences)) * 1e6
    assert sigma < MOST_SIGMA or median_us < TELLING_US, f"times tell: {sigma:.1f} sigma, {median_us:.0f} us"
    return {
        "routes and bodies": len(every), "requests": requests, "pairs timed": len(differences),
        "sigma of the sign test": round(sigma, 2), "difference of medians (us)": round(median_us, 1),
    }  # fmt: skip
