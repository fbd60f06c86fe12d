"""``gradwire top``: the lines it makes of a server's activity, and the command on a real terminal."""

from __future__ import annotations

import fcntl
import http.server
import itertools
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from rich.cells import cell_len
from tests.live_server import SOURCES, live_server
from tests.reported_activity import activity, session
from typer.testing import CliRunner

import gradwire
from gradwire.cli.main import app
from gradwire.cli.top.command import press
from gradwire.cli.top.keyboard import split
from gradwire.cli.top.rows import COLUMNS, ORDERS, Order, ordered
from gradwire.cli.top.screen import View, screen, whole

KEY = "gw_the_key_of_top"
URL = "http://gpu-box.example.com:8000"


def texts(lines: list[Any]) -> list[str]:
    return [line.plain for line in lines]


# Layout


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
@pytest.mark.parametrize(("width", "height"), [(200, 60), (120, 40), (80, 24), (60, 20), (40, 12), (20, 6), (8, 3)])
def test_the_screen_has_the_size_of_the_terminal(width: int, height: int, count: int) -> None:
    for view in (View(), View(helping=True), View(top=10**6), View(paused=True, backwards=True)):
        for trouble in ("", "the connection was closed; trying again in 4 s"):
            lines = texts(screen(activity(count), trouble, URL, view, width, height))
            assert len(lines) == height
            assert max(map(cell_len, lines)) <= width
    if count and height >= 6:
        assert any(line.startswith("s_") for line in texts(screen(activity(count), "", URL, View(), width, height)))


def test_columns_are_left_out_by_rank_until_the_rest_fits() -> None:
    heads = {}
    for width in (240, 120, 100, 80, 60, 40, 20):
        lines = texts(screen(activity(3), "", URL, View(), width, 40))
        head = next(line for line in lines if re.match(r"session( |$)", line))
        heads[width] = [each.head for each in COLUMNS if re.search(rf"(^|  +){re.escape(each.head)}(  |$)", head)]
    ranks = {each.head: each.rank for each in COLUMNS}
    shown = [set(found) for found in heads.values()]
    assert all(narrower <= wider for wider, narrower in itertools.pairwise(shown))
    assert heads[20] == ["session"]
    assert {"session", "state", "live", "ops/s"} <= shown[3]
    for found in shown:
        left_out = [ranks[head] for head in set(heads[240]) - found]
        assert not left_out or max(ranks[head] for head in found) < min(left_out)


def test_totals_devices_queue_quotas_and_plan_hits_are_shown() -> None:
    text = "\n".join(texts(screen(activity(4), "", URL, View(), 240, 30)))
    for said in (
        "gradwire 0.1.0", "up 3h 2m", "4 loaded", "2 busy", "1.2k frames/s",
        "2.1M ops/s", "plan hits 80%", "live 4.00 MiB", "pooled 3.00 MiB", "1 of 2 computing", "3 waiting",
        "1 busy, 1 spare", "cuda:0 NVIDIA H100 80GB HBM3 10.0 GiB of 80.0 GiB free",
        "me max_ops_per_second 900 of 1.0k (90%)", "shape_mismatch in matmul",
    ):  # fmt: skip
        assert said in text, said


@pytest.mark.parametrize("order", Order)
def test_each_order_sorts_and_can_be_reversed(order: Order) -> None:
    found = ordered(activity(5)["sessions"], order, backwards=False)
    key, largest_first = ORDERS[order][1:]
    values = [key(each) for each in found]
    assert values == sorted(values, reverse=largest_first)
    assert [key(each) for each in ordered(found, order, backwards=True)] == values[::-1]


def test_sessions_without_memory_name_or_frames_are_shown() -> None:
    """A dormant session has no memory, and a new one no frames."""
    bare = session(1, memory=None, state="dormant", frames=0, planned_frames=0, last_error=None)
    del bare["name"]
    foreign = session(3, last_error={"at": "", "code": "shape_mismatch", "op": "matmul"})
    lines = texts(screen(activity(0, sessions=[bare, foreign]), "", URL, View(), 200, 30))
    assert any("dormant" in line for line in lines) and any(line.endswith("in matmul") for line in lines)


def test_the_tenant_is_shown_only_where_there_are_several() -> None:
    assert "tenant" in "\n".join(texts(whole(activity(2), URL, View(), 200)))
    mine = texts(whole(activity(2, everybody=False), URL, View(), 200))
    assert not any(line.startswith("session ") and "tenant" in line for line in mine)
    assert any("2 of tenant alice" in line for line in mine)


def test_a_servers_text_does_not_reach_the_terminal_as_commands() -> None:
    evil = session(1, name="\x1b[2Jgone\r\n", last_error={"code": "x\x1b]0;", "op": "\x07", "detail": "\u202e"})
    for lines in (whole(activity(0, sessions=[evil]), URL, View(), 300),
                  screen(activity(0, sessions=[evil]), "\x1b[31m", URL, View(), 300, 20)):  # fmt: skip
        text = "".join(texts(lines))
        assert text.isprintable() and "gone" in text


def test_wide_characters_do_not_break_columns() -> None:
    rows = [session(1, name="模型训练"), session(2, name="e\u0301t\u00e9"), session(3, name="plain")]
    lines = texts(screen(activity(0, sessions=rows), "", URL, View(), 120, 30))
    at = {cell_len(line[: line.index("alice")]) for line in lines if "alice" in line}
    assert len(at) == 1


# Keys


def test_keys_choose_the_order_scroll_pause_and_help() -> None:
    view = View()
    for name, (letter, _, _) in ORDERS.items():
        press(letter, view, 10)
        assert view.order == name
    seen = set()
    for _ in ORDERS:
        press("s", view, 10)
        seen.add(view.order)
    assert seen == set(ORDERS)
    for key, expected in (("down", 1), ("pagedown", 11), ("up", 10), ("home", 0), ("up", 0), ("x", 0)):
        press(key, view, 10)
        assert view.top == expected
    for key, field in (("r", "backwards"), ("space", "paused"), ("?", "helping")):
        press(key, view, 10)
        assert getattr(view, field)


def test_letters_of_orders_mean_nothing_else() -> None:
    letters = [letter for letter, _, _ in ORDERS.values()]
    assert len(set(letters)) == len(letters)
    assert not set(letters) & set("qsrjk? ")


def test_escape_sequences_are_split_into_keys() -> None:
    assert list(split("q\x1b[A\x1b[6~j\x1b[1;5Cx\x1b")) == ["q", "up", "pagedown", "down", "x", "escape"]


# The command


class Activity(http.server.BaseHTTPRequestHandler):
    """The two routes of a server's activity. ``served`` makes the report of each moment."""

    served: Callable[[int], dict[str, Any]] = staticmethod(lambda tick: activity(3))
    breaks_after = 10**9
    tick_s = 0.2

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            self.answer(401, {"code": "unauthorized", "detail": "unknown API key", "title": "Unauthorized"})
        elif self.path == "/v1/activity":
            self.answer(200, type(self).served(0))
        elif self.path == "/v1/activity/stream":
            self.stream()
        else:
            self.answer(404, {"code": "not_found", "detail": "no such route"})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"retry: 2000\n\n: a comment\n\n")
        try:
            for tick in range(type(self).breaks_after):
                self.wfile.write(f"data: {json.dumps(type(self).served(tick))}\n\n".encode())
                self.wfile.flush()
                time.sleep(self.tick_s)
            self.wfile.write(b"event: end\ndata: the key was revoked\n\n")
        except OSError:
            pass


@contextmanager
def serving(**attributes: Any) -> Iterator[str]:
    handler = type("Handler", (Activity,), {name: staticmethod(value) if callable(value) else value
                                            for name, value in attributes.items()})  # fmt: skip
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        served.daemon_threads = True
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


class Terminal:
    """The command on a pseudo-terminal, and what its screen shows."""

    def __init__(self, *arguments: str, width: int = 80, height: int = 24) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        environment |= {"PYTHONPATH": SOURCES, "TERM": "xterm-256color", "TZ": "UTC"}
        self.descriptor, theirs = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradwire", "top", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self.theirs = theirs
        self.output = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self.descriptor)
        os.close(self.theirs)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def read(self, seconds: float) -> None:
        while select.select([self.descriptor], [], [], seconds)[0]:
            self.output += os.read(self.descriptor, 1 << 16).decode(errors="replace")
            seconds = 0.05

    def frame(self) -> list[str]:
        """The lines of the last whole frame: each begins at the top left corner."""
        frames = self.output.split("\x1b[H")
        for text in reversed(frames):
            lines = [
                re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip() for line in text.replace("\r", "").split("\n")
            ]
            if "quit" in lines[-1]:
                return lines
        return []

    def until(self, seen: Callable[[list[str]], bool], seconds: float = 30) -> list[str]:
        """The first frame that shows this."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            self.read(0.2)
            if (frame := self.frame()) and seen(frame):
                return frame
        raise AssertionError(f"not shown:\n{self.output[-4000:]!r}")

    def ended(self, seconds: float = 20) -> int:
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.1)
        self.read(0.1)
        code = self.process.poll()
        assert code is not None, "it goes on"
        return code


def changing(tick: int) -> dict[str, Any]:
    found = activity(40)
    found["totals"]["frames_per_second"] = float(tick)
    return found


def first_row(frame: list[str]) -> str:
    return next((line.split()[0] for line in frame if line.startswith("s_")), "")


def test_on_a_terminal_numbers_move_keys_act_and_q_restores_it() -> None:
    with serving(served=changing) as url, Terminal("--url", url, "--api-key", KEY) as terminal:
        frame = terminal.until(lambda lines: first_row(lines) == "s_0040abcdefghijkl")
        assert len(frame) == 24 and max(map(cell_len, frame)) <= 80
        assert "\x1b[?1049h" in terminal.output  # the screen of its own, which leaves what was there
        assert any("40 sessions" in line for line in frame)
        terminal.until(lambda lines: any("5 frames/s" in line for line in lines))
        terminal.type("r")
        terminal.until(lambda lines: first_row(lines) == "s_0001abcdefghijkl" and "reversed" in lines[-1])
        terminal.type("r\x1b[B\x1b[B")
        terminal.until(lambda lines: first_row(lines) == "s_0038abcdefghijkl")
        terminal.type("n")
        terminal.until(lambda lines: "by name" in lines[-1])
        terminal.type("?")
        terminal.until(lambda lines: any("sort by memory" in line for line in lines))
        terminal.type("?")
        terminal.resize(50, 15)
        frame = terminal.until(lambda lines: len(lines) == 15)
        assert max(map(cell_len, frame)) <= 50
        terminal.type("q")
        assert terminal.ended() == 0
        assert terminal.output.rstrip().endswith(("\x1b[?25h", "\x1b[?1049l")) and "Traceback" not in terminal.output
        assert termios.tcgetattr(terminal.theirs) == terminal.before
        assert KEY not in terminal.output


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals_leave_the_terminal_as_it_was(number: int, code: int) -> None:
    with serving() as url, Terminal("--url", url, "--api-key", KEY) as terminal:
        terminal.until(lambda lines: bool(first_row(lines)))
        if number == signal.SIGINT:
            terminal.type("\x03")  # as Ctrl-C comes
        else:
            terminal.process.send_signal(number)
        assert terminal.ended() == code
        assert "\x1b[?1049l" in terminal.output and "Traceback" not in terminal.output
        assert termios.tcgetattr(terminal.theirs) == terminal.before


def test_a_broken_stream_is_told_and_opened_again() -> None:
    with serving(served=changing, breaks_after=3) as url, Terminal("--url", url, "--api-key", KEY) as terminal:
        terminal.until(lambda lines: any("the key was revoked; trying again in 1 s" in line for line in lines))
        before = terminal.output.count("trying again")
        terminal.until(lambda lines: not any("trying again" in line for line in lines) and bool(first_row(lines)))
        assert before
        terminal.type("q")
        assert terminal.ended() == 0


def test_a_refusal_ends_it_with_one_line() -> None:
    with serving() as url, Terminal("--url", url, "--api-key", "gw_another_key") as terminal:
        assert terminal.ended() == 1
        assert "unauthorized: unknown API key" in terminal.output
        assert "\x1b[?1049h" not in terminal.output and "gw_another_key" not in terminal.output


def test_a_server_out_of_reach_is_told_with_what_to_do() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Terminal("--url", f"http://127.0.0.1:{port}", "--api-key", KEY) as terminal:
        assert terminal.ended() == 1
        assert "gradwire doctor" in terminal.output and "Traceback" not in terminal.output


@pytest.mark.parametrize("arguments", [[], ["--once"], ["--once", "--sort", "ops", "--reverse"]])
def test_in_a_pipe_it_prints_once_without_control_characters(arguments: list[str]) -> None:
    with serving(served=lambda _: activity(30)) as url:
        options = ["top", "--url", url, "--api-key", KEY, *arguments]
        done = CliRunner().invoke(app, options, env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("s_")]
    assert len(rows) == 30
    assert rows[0].startswith("s_0001" if "--reverse" in arguments else "s_0030")
    assert max(map(cell_len, done.stdout.splitlines())) <= 80


def test_a_real_server_moves_the_numbers_of_a_session_that_computes() -> None:
    with (
        live_server(compiled_kernels="off") as server,
        gradwire.connect(server.url, server.api_key) as computing,
        Terminal("--url", server.url, "--api-key", server.api_key, width=120) as terminal,
    ):
        x = gradwire.ones(64, 64, requires_grad=True)
        deadline = time.monotonic() + 60
        shown = False
        while not shown and time.monotonic() < deadline:
            (x @ x).sum().backward()
            assert x.grad is not None
            x.grad = x.grad * 0
            gradwire.fetch(x.grad)
            terminal.read(0.05)
            shown = any(
                line.startswith(computing.id) and not re.search(r" 0 +0 +0% ", line) for line in terminal.frame()
            )
        assert shown, terminal.output[-3000:]
        head = next(line for line in terminal.frame() if line.startswith("session "))
        row = next(line for line in terminal.frame() if line.startswith(computing.id))
        assert row[head.index("state") :].startswith(("busy", "idle"))
        with pytest.raises(RuntimeError):
            gradwire.linalg.inv(gradwire.zeros(2, 2)).sum().item()
        terminal.until(lambda lines: any("linalg_failed in inverse: a matrix is singular" in line for line in lines))
        terminal.type("q")
        assert terminal.ended() == 0
        printed = CliRunner().invoke(app, ["top", "--once", "--url", server.url, "--api-key", server.other_key])
        assert printed.exit_code == 0 and computing.id not in printed.stdout  # another tenant's
        printed = CliRunner().invoke(app, ["top", "--once", "--url", server.url, "--api-key", server.admin_key])
        assert computing.id in printed.stdout and "is singular" not in printed.stdout


def test_json_is_the_report_of_the_server() -> None:
    with serving(served=lambda _: activity(2)) as url:
        done = CliRunner().invoke(app, ["top", "--json", "--url", url, "--api-key", KEY])
    assert done.exit_code == 0 and json.loads(done.stdout) == activity(2)
