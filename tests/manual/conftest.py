"""The manual, built once, and a Chromium that opens its pages."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradwire_server.http.manual_site import Manual
from gradwire_server.routes import manual as routes
from tests.live_server import LiveServer, live_server
from tests.typescript.node import MODULES, node, run

SCRIPT = Path(__file__).with_name("browse.mjs")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Building it fails if there is a warning, such as a link that leads nowhere."""
    pytest.importorskip("furo", reason="the manual needs Sphinx and furo: pip install 'gradwire[docs]'")
    pytest.importorskip("myst_parser", reason="the manual needs myst-parser: pip install 'gradwire[docs]'")
    from tools.manual import site as maker
    from tools.manual import sources

    work = tmp_path_factory.mktemp("manual")
    sources.write(work / "source")
    maker.build(work / "source", work / "out", work, jobs=1)
    return work / "out"


@pytest.fixture(scope="session")
def served(site: Path) -> Iterator[LiveServer]:
    """A server whose manual is this site."""
    with pytest.MonkeyPatch.context() as patch, live_server() as server:
        patch.setattr(routes, "_manual", Manual(site))
        yield server


@pytest.fixture(scope="session")
def browse() -> Callable[..., list[dict[str, Any]]]:
    """Opens pages: see ``browse.mjs``."""
    executable = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    playwright = MODULES / "playwright-core" / "index.mjs"
    if executable is None or node() is None or not playwright.exists():
        pytest.skip("there is no Chromium, Node or playwright-core: make setup")

    def steps(*steps: dict[str, Any]) -> list[dict[str, Any]]:
        told = {"module": str(playwright), "executable": executable, "steps": steps}
        done = run(str(SCRIPT), json.dumps(told))
        assert done.returncode == 0, done.stdout + done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers

    return steps
