"""What a program's long waits show on a terminal, and that pipes, files and ``GRADWIRE_PROGRESS=off`` show nothing."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live_server import SOURCES, LiveServer, live_server

import gradwire
from gradwire._core.context import waiting
from gradwire._core.context.waiting import Facts, Wait
from gradwire._core.surface import wait_line
from gradwire._core.surface.wait_words import duration, size, words
from gradwire._core.wire.connection import Disconnected
from gradwire._core.wire.rest import RestClient
from gradwire._core.wire.retry import RetryPolicy
from gradwire_protocol.errors import ArgumentValueError

pty = pytest.importorskip("pty")

ENVIRONMENT = os.environ | {"PYTHONPATH": SOURCES, "GRADWIRE_COMPILED_KERNELS": "off", "TERM": "xterm"}

BEGIN = """
import sys, threading, time
import gradwire
from gradwire._core.context import waiting
from gradwire._core.context.waiting import Facts, Wait
waiting.SHOWN_AFTER_S = 0.1

def linger(seconds):
    wait = Wait(lambda: Facts("read", op="matmul", ops=3, frames=1))
    time.sleep(wait.pause(None))
    wait.look()
    time.sleep(seconds)
    wait.end()
"""


class Screen:
    """A terminal that knows what the line needs: scrolling, a saved cursor, and erasing."""

    ROWS, COLUMNS = 6, 80

    def __init__(self) -> None:
        self.rows = [""] * self.ROWS
        self.y = self.x = 0
        self.saved = 0, 0
        self.seen: list[str] = []

    def feed(self, text: str) -> None:
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\x1b.|[\r\n]|[^\x1b\r\n]+", text):
            self._take(part)
            self.seen.append("\n".join(self.rows))

    def _take(self, part: str) -> None:
        if part in ("\n", "\x1bD"):
            self.y += 1
            if self.y == self.ROWS:
                self.y -= 1
                self.rows = [*self.rows[1:], ""]
        elif part == "\x1bM":
            assert self.y, "a reverse index at the top would scroll back"
            self.y -= 1
        elif part == "\r":
            self.x = 0
        elif part == "\x1b7":
            self.saved = self.y, self.x
        elif part == "\x1b8":
            self.y, self.x = self.saved
        elif part == "\x1b[2K":
            self.rows[self.y] = ""
        elif part.startswith("\x1b"):
            assert part.endswith("m"), repr(part)
        else:
            row = self.rows[self.y].ljust(self.x)
            self.rows[self.y] = row[: self.x] + part + row[self.x + len(part) :]
            self.x += len(part)
            assert len(self.rows[self.y]) <= self.COLUMNS

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows).rstrip("\n")


def on_terminal(program: str, seconds: float = 120, **variables: str) -> Screen:
    """Run a program on a pseudo-terminal, to its end."""
    near, far = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=far, stdout=far, stderr=far, env=ENVIRONMENT | variables
    )
    os.close(far)
    screen, said = Screen(), b""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if select.select([near], [], [], 0.2)[0]:
            try:
                piece = os.read(near, 65536)
            except OSError:  # the other end is closed
                break
            said += piece
        elif child.poll() is not None:
            break
    os.close(near)
    assert child.wait(10) == 0, said
    screen.feed(said.decode())
    return screen


def test_the_line_is_shown_and_gone_and_half_a_line_stays() -> None:
    screen = on_terminal(BEGIN + "print('loss: ', end='', flush=True); linger(0.6); print(0.25)")
    assert any("loss: \nlook() waits" in seen for seen in screen.seen)
    assert screen.text == "loss: 0.25"


def test_at_the_bottom_of_the_screen_nothing_is_lost() -> None:
    screen = on_terminal(BEGIN + "print(*range(8), sep='\\n'); print('x', end='', flush=True); linger(0.6); print('y')")
    assert screen.text == "4\n5\n6\n7\nxy"
    assert any("for 3 ops up to matmul" in seen for seen in screen.seen)


def test_what_other_threads_print_is_whole_and_the_line_comes_back() -> None:
    talking = """
def talk():
    for i in range(3):
        time.sleep(0.4)
        print("thread", i, file=[sys.stdout, kept][i % 2], flush=True)
kept = sys.stderr
thread = threading.Thread(target=talk); thread.start()
linger(1.8); thread.join(); print("end")
assert "write" not in sys.stdout.__dict__ and "write" not in kept.__dict__
"""
    screen = on_terminal(BEGIN + talking)
    assert screen.text == "thread 0\nthread 1\nthread 2\nend"
    assert any("thread 2\n" in seen and "waits" in seen for seen in screen.seen)


def test_a_bar_of_tqdm_stays() -> None:
    pytest.importorskip("tqdm")
    bar = "import tqdm\nfor i in tqdm.tqdm(range(3), ncols=40): linger(0.4)\nprint('end')"
    screen = on_terminal(BEGIN + bar)
    assert "3/3" in screen.text and screen.text.endswith("end") and "waits" not in screen.text


def test_a_long_read_names_op_and_line_on_a_real_server() -> None:
    program = """
import gradwire as torch
from gradwire._core.context import waiting
waiting.SHOWN_AFTER_S = 0.2
a = torch.randn(1500, 1500)
for _ in range(30): a = (a @ a) / 40
print(a.abs().sum().item() != 0)
"""
    screen = on_terminal(program)
    assert any("item() waits" in seen and "Ctrl-C cancels" in seen and "ops up to sum" in seen for seen in screen.seen)
    assert screen.text == "True"


@pytest.mark.parametrize("value", ["off", "0"])
def test_it_can_be_turned_off(value: str) -> None:
    screen = on_terminal(BEGIN + "linger(0.5); print('end')", GRADWIRE_PROGRESS=value)
    assert screen.text == "end" and not any("waits" in seen for seen in screen.seen)


def test_a_dumb_terminal_shows_nothing() -> None:
    screen = on_terminal(BEGIN + "linger(0.5); print('end')", TERM="dumb")
    assert screen.text == "end" and not any("waits" in seen for seen in screen.seen)


def test_pipes_are_silent_and_no_thread_is_started() -> None:
    program = BEGIN + "linger(0.5); assert 'gradwire-wait' not in {t.name for t in threading.enumerate()}; print('end')"
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_value_that_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADWIRE_PROGRESS", "loud")
    with pytest.raises(ArgumentValueError, match="GRADWIRE_PROGRESS='loud' must be on or off"):
        wait_line.enabled()


# What is told


class Told:
    """A listener that keeps the words of each wait that lasts."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.open: list[Wait] = []

    def attend(self, wait: Wait) -> None:
        pass

    def begin(self, wait: Wait) -> None:
        self.open.append(wait)
        self.words.append(words(wait, time.monotonic()))

    def end(self, wait: Wait) -> None:
        self.open.remove(wait)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.setattr(waiting, "SHOWN_AFTER_S", 0.0)
    found = Told()
    before = waiting.listen(found)
    yield found
    waiting.listen(before)
    assert not found.open


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with live_server() as found:
        yield found


def test_uploads_and_downloads_tell_their_bytes(server: LiveServer, told: Told) -> None:
    session = gradwire.connect(server.url, server.api_key)
    try:
        big = gradwire.zeros(5_000_000) + 1
        session.synchronize()
        told.words.clear()
        import numpy as np

        gradwire.from_numpy(np.ones(5_000_000, np.float32))
        session.flush()
        assert any(re.fullmatch(r"sending \d\.\d MB of 20\.0 MB.*", each) for each in told.words)
        told.words.clear()
        big.numpy()
        assert told.words and all(
            re.match(r"numpy\(\) waits 0 s at test_wait_line\.py:\d+|receiving .* of 20\.0 MB", each)
            for each in told.words
        )
    finally:
        session.close()


def test_a_lost_connection_tells_when_it_tries_again(server: LiveServer, told: Told) -> None:
    session = gradwire.connect(server.url, server.api_key, patience=96)
    try:
        x = gradwire.ones(3)
        x.tolist()
        told.words.clear()
        dial, failures = session.link._dialer.dial, [Disconnected("refused")] * 3

        def failing(*given: Any) -> Any:
            if failures:
                raise failures.pop()
            return dial(*given)

        session.link._dialer.dial = failing  # type: ignore[method-assign]
        session.link._way.connection.break_off()  # type: ignore[union-attr]
        assert (x + 1).tolist() == [2, 2, 2]
        lost = [each for each in told.words if each.startswith("no connection to " + server.url)]
        assert lost and re.search(r"9[56] s left", lost[-1])
    finally:
        session.close()


def test_a_pause_between_attempts_is_told() -> None:
    policy = RetryPolicy(96.0)
    facts = Facts("connection", url="http://h", cause="[Errno 111] Connection refused", left=96.0)
    facts.again_at = time.monotonic() + 4
    said = words(Wait(lambda: facts), time.monotonic())
    assert said == "no connection to http://h: trying again in 4 s, 96 s left (Connection refused)"
    assert policy.left == 96.0 and policy.pause(0.01) and policy.left < 96.0 and policy.again_at == 0


def test_words_of_numbers() -> None:
    assert [duration(each) for each in (3.9, 96, 185, 7800)] == ["3 s", "96 s", "3 min 5 s", "2 h 10 min"]
    assert [size(each) for each in (12, 4000, 4_200_000, 512e6, 1.5e9)] == [
        "12 bytes", "4 kB", "4.2 MB", "512 MB", "1.5 GB",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "answer", "said"),
    [
        (Facts("server"), "", "the embedded server starts, 5 s"),
        (Facts("session", url="http://h"), "waking", "the server replays the session's journal, 5 s"),
        (Facts("session", url="http://h"), "compiling", "the server compiles kernels, 5 s"),
        (Facts("session", url="http://h"), "", "waiting for the session at http://h, 5 s"),
        (Facts("upload", done=50_000_000, total=100_000_000, began=995.0), "",
         "sending 50.0 MB of 100 MB, 10.0 MB/s, 5 s left"),
        (Facts("download", done=50_000_000, began=995.0), "", "receiving 50.0 MB, 10.0 MB/s"),
    ],
)  # fmt: skip
def test_each_kind_has_its_words(facts: Facts, answer: str, said: str) -> None:
    wait = Wait(lambda: facts, began=995.0)
    wait.answer = answer
    assert words(wait, 1000.0) == said


def test_a_short_wait_is_never_told(server: LiveServer) -> None:
    found = Told()
    before = waiting.listen(found)
    try:
        session = gradwire.connect(server.url, server.api_key)
        for _ in range(20):
            gradwire.ones(2).tolist()
        session.close()
    finally:
        waiting.listen(before)
    assert not found.words


def test_a_session_that_wakes_up_says_so(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path) as server:
        session = gradwire.connect(server.url, server.api_key, durability="applied", keep=True)
        (gradwire.ones(3) + 1).tolist()
        name = session.id
        session.close()
    with live_server(data_dir=tmp_path) as server:
        rest = RestClient(server.url, server.api_key)
        try:
            found: dict[str, Any] = rest.glance(f"/v1/sessions/{name}?contents=false")
            assert (found["state"], found["activity"]) == ("dormant", "idle") and "contents" not in found
            (held,) = server.app.state.server.registry.all()
            held.host._waking = object()
            assert rest.glance(f"/v1/sessions/{name}?contents=false")["activity"] == "waking"
            held.host._waking = None
            found = rest.get(f"/v1/sessions/{name}")
            assert found["state"] == "running" and found["contents"]["tensors"]
            assert rest.glance("/v1/version")["kernels"] in ("idle", "preparing", "ready", "failed")
            assert rest.glance("/v1/sessions/s_none") is None
        finally:
            rest.close()


def test_waits_of_several_threads_leave_one_after_the_other(told: Told) -> None:
    def linger() -> None:
        wait = Wait(lambda: Facts("server"))
        wait.look()
        time.sleep(0.05)
        wait.end()

    threads = [threading.Thread(target=linger) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told.words) == 8 and not told.open


def test_a_notebook_shows_it_in_the_cell_and_empties_it() -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(BEGIN + "linger(0.8); print('end')")])
    seen: list[str] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc, name-defined]
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            seen.append(str(msg["content"].get("data", {}).get("text/plain", "")))
            return super().process_message(msg, cell, cell_index)

    Client(book, timeout=120, kernel_name="python3").execute(env=ENVIRONMENT)
    assert any("look() waits" in each for each in seen)
    shown, printed = book.cells[0].outputs
    assert shown["data"] == {"text/plain": ""} and printed["text"] == "end\n"
