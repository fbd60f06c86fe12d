"""The report of lines that waited for the server: counts, durations and hints."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from time import perf_counter_ns
from timeit import repeat
from types import SimpleNamespace

import pytest

import gradwire
from gradwire._core.session.round_trips import (
    BACKPRESSURE,
    LINES_KEPT,
    TOGETHER,
    Report,
    WaitingLine,
    Waits,
    report,
    spell_seconds,
)
from gradwire._core.wire import send_window
from gradwire._core.wire.server_clock import ServerClock
from gradwire.profiler import round_trips


def line_here() -> int:
    return sys._getframe(1).f_lineno


def test_each_line_that_reads_is_counted_by_itself(session) -> None:
    x = gradwire.ones(3)
    with round_trips() as waited:
        for _ in range(4):
            (x * 2).sum().item()
        first = line_here() - 1
        if (x > 0).all():
            second = line_here() - 1
    assert [(line.line, line.what, line.count) for line in sorted(waited.lines, key=lambda line: line.line)] == [
        (first, "item", 4), (second, "if, while or bool()", 1)
    ]  # fmt: skip
    assert {line.file for line in waited.lines} == {__file__}
    assert waited.lines[0].source.startswith(("(x * 2)", "if (x > 0)"))
    assert waited.count == 5


CASES = {
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "float()": lambda x: float(x),
    "print() or repr()": lambda x: repr(x),
    "an f-string or format()": lambda x: f"{x}",
    "if, while or bool()": lambda x: bool(x),
    ".shape": lambda x: gradwire.nonzero(x).shape,
    "synchronize": lambda x: gradwire.current_session().synchronize(),
    "fetch": lambda x: gradwire.fetch(x, x + 1),
    "allclose": lambda x: gradwire.allclose(x, x),
    "equal": lambda x: gradwire.equal(x, x),
}


@pytest.mark.parametrize("what", CASES)
def test_a_wait_is_called_what_the_program_wrote(session, what: str) -> None:
    x = gradwire.ones(()) * 2
    with round_trips() as waited:
        CASES[what](x)
    (line,) = waited.lines
    assert line.what == what
    assert line.hint
    assert line.file == __file__


def test_a_read_that_cost_nothing_is_not_counted(session) -> None:
    x = gradwire.ones(2).sum()
    x.item()
    with round_trips() as waited:
        x.item()
    assert waited.count == 0


def test_the_report_agrees_with_the_count_of_round_trips(session, round_trips: Callable[[], int]) -> None:
    before = session.round_trip_report().count
    x = gradwire.ones(4)
    for i in range(2):  # the third time both values come together
        x = x + i
        x.sum().item()
        x.tolist()
    assert session.round_trip_report().count - before == round_trips() == 4


def test_times_and_bytes_of_a_wait(session) -> None:
    x = gradwire.ones(1000)
    began = perf_counter_ns()
    with round_trips() as waited:
        x.numpy()
    took = (perf_counter_ns() - began) * 1e-9
    (line,) = waited.lines
    assert line.received == 4000
    assert 0 < line.server <= line.waited <= took
    assert line.mean == line.longest == line.waited


def test_waiting_for_room_counts_and_is_no_round_trip(session, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one frame, the frame after a long one has to wait for it."""
    x = gradwire.ones(1024, 1024)
    session.synchronize()
    monkeypatch.setattr(send_window, "IN_FLIGHT_FRAMES", 1)
    with round_trips() as waited:
        y = x @ x @ x @ x
        session.flush()
        z = y * 2
        session.flush()
        where = line_here() - 1
    (line,) = waited.lines
    assert (line.what, line.file, line.line) == (BACKPRESSURE, __file__, where)
    assert waited.count == 0
    assert z[0, 0].item() == 2.0**31


def test_the_table_names_the_line_and_the_way_out(session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    losses = [gradwire.ones(()) * i for i in range(3)]
    with round_trips() as waited:
        for loss in losses:
            loss.item()
    text = str(waited)
    assert "3 round trips" in text
    assert "test_round_trips_report.py" in text
    assert "loss.item()" in text
    assert "gradwire.fetch(*losses)" in " ".join(text.split())


@pytest.mark.parametrize("seconds", [4e-5, 0.123456, 12345.6])
@pytest.mark.parametrize("file", ["train.py", "/a/longer/path/to/the/programs/of/a/project/tests/training_loop.py"])
def test_a_narrow_table_keeps_lines_and_hints_whole(seconds: float, file: str) -> None:
    found = Report([WaitingLine(file, 123, "loss.item()", "item", 3, seconds, seconds, seconds / 2, 12, TOGETHER)])
    for columns in (80, 99, 100, 120):
        text = found.text(columns)
        assert max(map(len, text.splitlines())) <= columns
        assert "loss.item()" in text
        assert "gradwire.fetch(*losses)" in text
        assert "\x1b" not in text
    assert "bytes" in found.text(120)
    assert "bytes" not in found.text(80)


@pytest.mark.parametrize(("what", "reads"), [
    ("iteration", lambda n: list(n)), ("len()", lambda n: len(n)), ("chunk", lambda n: n.chunk(2)),
    ("pad", lambda n: gradwire.nn.functional.pad(n, (1, 1))),
])  # fmt: skip
def test_a_line_that_needs_a_shape_is_told_so_by_name(session, what: str, reads: Callable[[object], object]) -> None:
    x = gradwire.arange(6)
    with round_trips() as waited:
        reads(gradwire.masked_select(x, x > 2))
    assert [line.what for line in waited.lines] == [what]
    assert "where()" in waited.lines[0].hint


def test_a_report_of_a_program_that_never_waited_is_empty(session) -> None:
    with round_trips() as waited:
        gradwire.ones(2) + 1
    assert len(waited.report()) == 0
    assert "0 round trips" in str(waited)


def test_lines_are_counted_apart_up_to_a_bound() -> None:
    waits = Waits()
    for i in range(LINES_KEPT + 50):
        waits.note(perf_counter_ns(), what=f"kind {i}")
    assert len(waits.lines) == LINES_KEPT + 1
    found = report([waits.copy()])
    assert found.count == LINES_KEPT + 50


def test_reports_of_several_sessions_add_up() -> None:
    one, other = Waits(), Waits()
    for waits in (one, other):
        waits.note(perf_counter_ns() - 1000)  # the same line
    (line,) = report([one.copy(), other.copy()])
    assert line.count == 2


def test_noting_a_wait_takes_microseconds() -> None:
    """Measured at 2 us; the bound only catches what is slower by a factor."""
    waits = Waits()
    timing = SimpleNamespace(received=1, finished=2, committed=0)
    answer = SimpleNamespace(reply=SimpleNamespace(seq=1, timing=timing), buffers=[memoryview(b"1234")])
    gc.collect()
    assert min(repeat(lambda: waits.note(1, answer), number=1000, repeat=5)) / 1000 < 500e-6


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.50 s"), (0.0125, "12.50 ms"), (4e-5, "40 us")])
def test_times_have_units_that_suit_them(seconds: float, text: str) -> None:
    assert spell_seconds(seconds) == text


def test_an_empty_report_prints() -> None:
    assert repr(Report([])) == "<0 round trips on 0 lines, 0.000 s>"


# The server's clock


def test_the_clock_narrows_down_with_every_exchange() -> None:
    ahead = 1_000_000
    clock = ServerClock(ahead + 500, 0, 1000)
    assert abs(clock.offset - ahead) <= 500
    clock.exchanged(2000, 2010 + ahead, 2020 + ahead, 2030)
    assert abs(clock.offset - ahead) <= 10
    assert clock.uncertainty <= 10
    clock.exchanged(3000, 9000 + ahead, 9100 + ahead, 20_000)  # a slow one tells nothing new
    assert abs(clock.offset - ahead) <= 10


def test_a_clock_keeps_what_a_fast_exchange_told() -> None:
    """Answers that are taken in late, however many, tell less and push nothing out."""
    ahead = 5_000_000
    clock = ServerClock()
    clock.exchanged(1000, 1010 + ahead, 1020 + ahead, 1030)
    for i in range(500):
        clock.exchanged(2000 + i, 2200 + i + ahead, 2300 + i + ahead, 900_000 + i)
    assert abs(clock.offset - ahead) <= 10 + 900_500 * 20e-6


def test_a_clock_that_was_set_is_compared_anew() -> None:
    clock = ServerClock()
    clock.exchanged(1000, 1010, 1020, 1030)
    clock.exchanged(2000, 9_002_010, 9_002_020, 2030)
    assert abs(clock.offset - 9_000_000) <= 10


def test_a_session_knows_the_servers_clock(session) -> None:
    """The embedded server's clock is this machine's: the truth is 0."""
    session.synchronize()
    clock = session.link.clock
    assert abs(clock.offset) <= clock.uncertainty + 1000
