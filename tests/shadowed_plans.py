"""A plugin of pytest for ``GRADWIRE_TEST_PLANS``: sessions have these plans, here and in embedded servers, and a run
that compares frames says how many. One that compared none fails: it has proven nothing."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gradwire_engine import plans
from gradwire_engine import session as sessions

MODE = os.environ["GRADWIRE_TEST_PLANS"]
TALLY = "GRADWIRE_TEST_PLANS_TALLY"
SHOWN = 12
"""Reasons of the summary, the most frequent first."""

os.environ["GRADWIRE_PLANS"] = MODE
vars(sessions)["plans_of"] = lambda _: plans.plans_of(plans.MODES[MODE])
outcomes: Counter[str] = Counter()
folder = None if TALLY in os.environ else TemporaryDirectory()  # a worker of pytest-xdist is given it
if folder is not None:
    os.environ[TALLY] = folder.name


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if MODE != "shadow" or folder is None:
        return
    for tally in Path(folder.name).iterdir():
        outcomes.update(tally.read_text().splitlines())
    if not outcomes["verified"] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if MODE == "shadow":
        terminalreporter.section("frames on the tape and by a plan")
        rest = Counter({reason: n for reason, n in outcomes.items() if reason != "verified"})
        terminalreporter.line(f"{outcomes['verified']:,} verified")
        for reason, count in rest.most_common(SHOWN):
            terminalreporter.line(f"{count:,} {reason}")
