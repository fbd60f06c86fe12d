"""The same classifier in several languages: each learns as the Python one does, with one request per step.

A program whose interpreter is not installed is skipped. docs/languages.md has a row for each with what is measured
here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live_server import ROOT, SOURCES, LiveServer, server_process

PROGRAMS = ROOT / "examples" / "languages"
EPOCHS, STEPS = 5, 21
BESIDE = 3
"""Requests beside the steps: the data, the optimizer's state, the accuracy."""
MOST_LINES = 60
RELATIVE = 1e-5
COUNTED = """
import runpy, sys
runpy.run_path(sys.argv.pop(1), run_name="__main__")
from gradwire import current_session
print("round trips", current_session().stats()["round_trips"])
"""


@dataclass(frozen=True)
class Language:
    """A program of ``examples/languages``.

    Attributes:
        probe: a command that succeeds where the program can run.
        most_lines: how long it may be.
    """

    name: str
    file: str
    command: tuple[str, ...]
    probe: tuple[str, ...]
    comment: str = "#"
    most_lines: int = MOST_LINES

    @property
    def path(self) -> Path:
        return PROGRAMS / self.file

    def lines_of_code(self) -> int:
        """Lines that are neither blank nor comments only."""
        lines = (line.strip() for line in self.path.read_text(encoding="utf-8").splitlines())
        return sum(bool(line) and not line.startswith((self.comment, '"""')) for line in lines)

    def require(self) -> None:
        """Skip the test where the program cannot run."""
        found = shutil.which(self.probe[0])
        if found is None or subprocess.run(self.probe, capture_output=True, timeout=120, check=False).returncode:
            pytest.skip(f"{' '.join(self.probe)} does not work here, so {self.file} is not run")


PYTHON = Language("Python", "mlp.py", (sys.executable, "-c", COUNTED), (sys.executable, "--version"))
OTHERS = [
    Language("Go", "mlp.go", ("go", "run"), ("go", "version"), "//", 130),
    Language("R", "mlp.R", ("Rscript",), ("Rscript", "-e", "library(httr)")),
    Language("Ruby", "mlp.rb", ("ruby",), ("ruby", "--version")),
    Language("curl and bash", "mlp.sh", ("bash",), ("sh", "-c", "curl --version && jq --version")),
]
languages = pytest.mark.parametrize("language", OTHERS, ids=lambda each: each.file)


@dataclass(frozen=True)
class Training:
    """What a program printed, and how often it waited for the server after a session was there."""

    losses: list[float]
    accuracy: float
    requests: int


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with server_process() as running:
        yield running


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "digits.json"
    subprocess.run([sys.executable, str(ROOT / "examples" / "digits_data.py"), str(path)], check=True, timeout=120)
    return path


@pytest.fixture(scope="module")
def reference(server: LiveServer, digits: Path) -> Training:
    output = run(PYTHON, server, digits).stdout
    waited = re.search(r"round trips (\d+)", output)
    assert waited is not None
    return told(output, int(waited[1]))


def run(
    language: Language, server: LiveServer, data: Path, key: str | None = None, succeeds: bool = True
) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    settings = {"GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": key or server.api_key, "PYTHONPATH": SOURCES}
    done = subprocess.run(
        [*language.command, str(language.path), str(data)], env=inherited | settings, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
    return done


def told(output: str, requests: int) -> Training:
    losses = [float(found) for found in re.findall(r"^epoch \d+  loss ([\d.]+)$", output, re.MULTILINE)]
    accuracy = re.search(r"^accuracy ([\d.]+)$", output, re.MULTILINE)
    assert accuracy is not None, output
    return Training(losses, float(accuracy[1]), requests)


def frames_posted(server: LiveServer) -> int:
    """How many frames the server has received over REST."""
    with server.http(server.admin_key) as http:
        text = http.get("/metrics").text
    counts = re.findall(r'^gradwire_http_requests_total\{method="POST",route="[^"]*/frames",[^}]*\} (\S+)$', text, re.M)
    return int(sum(map(float, counts)))


def documented(language: Language) -> tuple[int, str]:
    """Lines of code and requests per step, as docs/languages.md says."""
    page = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    row = re.search(
        rf"^\| {re.escape(language.name)} \|.*{re.escape(language.file)}.*\| (\d+) \| ([\d.]+) \|$", page, re.M
    )
    assert row is not None, f"docs/languages.md has no row of {language.name}"
    return int(row[1]), row[2]


def test_the_python_program_learns_with_one_round_trip_per_step(reference: Training) -> None:
    assert len(reference.losses) == EPOCHS
    assert reference.losses[-1] < 0.2 * reference.losses[0]
    assert reference.accuracy >= 0.9
    assert EPOCHS * STEPS <= reference.requests <= EPOCHS * STEPS + BESIDE
    assert documented(PYTHON)[1] == "1.00"


@languages
def test_a_program_learns_as_the_python_one_with_one_request_per_step(
    language: Language, server: LiveServer, digits: Path, reference: Training
) -> None:
    language.require()
    before = frames_posted(server)
    output = run(language, server, digits).stdout
    training = told(output, frames_posted(server) - before)
    assert training.losses == pytest.approx(reference.losses, rel=RELATIVE)
    assert training.accuracy == pytest.approx(reference.accuracy, abs=1e-4)
    assert training.accuracy >= 0.9
    steps = EPOCHS * STEPS
    assert training.requests == steps + BESIDE
    assert documented(language)[1] == f"{(training.requests - BESIDE) / steps:.2f}"
    with server.http() as http:
        assert http.get("/v1/sessions").json()["sessions"] == [], "the program deletes its session"


@languages
def test_a_program_shows_the_servers_problem(language: Language, server: LiveServer, digits: Path) -> None:
    language.require()
    done = run(language, server, digits, key="gw_wrong", succeeds=False)
    assert "unknown API key" in done.stdout + done.stderr


@languages
def test_a_program_shows_the_error_of_an_op_and_leaves_no_session(
    language: Language, server: LiveServer, tmp_path: Path
) -> None:
    language.require()
    data = tmp_path / "digits.json"
    data.write_text('{"ops": [["ones", [[2, 3]], "a"], ["matmul", ["a", "a"], "b"]]}', encoding="utf-8")
    done = run(language, server, data, succeeds=False)
    assert "cannot be multiplied" in done.stdout + done.stderr
    with server.http() as http:
        assert http.get("/v1/sessions").json()["sessions"] == []


@pytest.mark.parametrize("language", [PYTHON, *OTHERS], ids=lambda each: each.file)
def test_a_program_is_short_and_the_page_says_how_short(language: Language) -> None:
    assert language.lines_of_code() <= language.most_lines
    assert documented(language)[0] == language.lines_of_code()
