"""A pytest plugin for ``GRADWIRE_TEST_PLANS``: sessions here and in embedded servers verify their plans, and the run
prints how many frames it compared. A run that compared none fails.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gradwire._core.wire import embedded_server
from gradwire_engine.session import session as sessions

from . import ALIKE, shadow_sessions
from .plans import TALLY

MODE = os.environ["GRADWIRE_TEST_PLANS"]
SHOWN = 12
"""Reasons of the summary, the most frequent first."""

if MODE == "shadow":
    shadow_sessions()
    vars(embedded_server)["PROGRAM"] = (*ALIKE, "gradwire_server")
    root = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
else:
    os.environ["GRADWIRE_PLANS"] = MODE
    vars(sessions)["Plans"] = (lambda: None) if MODE == "off" else sessions.Plans
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
