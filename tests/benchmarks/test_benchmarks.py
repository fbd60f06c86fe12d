"""The benchmarks report what they should, and the delaying relay adds latency without limiting throughput.

Figures are not judged, because test machines are busy.
"""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
from benchmarks import soak
from benchmarks.__main__ import NAMES, main
from benchmarks.delay import Relay, precise_loop
from benchmarks.report import Plan, Row, Target
from benchmarks.timing import Figures, interleave, paired_ratios

from tests.soak import benchmarks as long_benchmarks

from . import test_runs_of_models, test_runs_of_parts, test_runs_of_steps

ELSEWHERE = ("torch_device",)
"""Run by tests/torch_device, in a process of its own."""


def test_every_benchmark_is_run_by_a_test() -> None:
    quick = [*test_runs_of_models.NAMES, *test_runs_of_steps.NAMES, *test_runs_of_parts.NAMES, *ELSEWHERE]
    tested = [*quick, *long_benchmarks.NAMES]
    assert sorted(tested) == sorted(NAMES)


def test_what_is_written_tells_nothing_of_whose_machine_it_is(tmp_path) -> None:
    import getpass
    import platform

    main(["server_op"], quick=True, out=tmp_path / "figures")
    text = (tmp_path / "figures.json").read_text() + (tmp_path / "figures.md").read_text()
    assert platform.node() not in text
    assert str(tmp_path) not in text
    if len(getpass.getuser()) > 4:  # "root" may be part of a word
        assert getpass.getuser() not in text


def test_ratios_are_those_of_the_rounds() -> None:
    ours, theirs = Figures((1.0, 20.0, 3.0)), Figures((1.0, 10.0, 1.0))
    assert paired_ratios(ours, theirs).median == 2.0
    assert ours.spread == (2.0, 11.5)


def test_a_ratio_is_shown_with_its_spread() -> None:
    row = Row("b", "c", "ms", Figures((1.0, 20.0, 3.0)), Figures((1.0, 10.0, 1.0)))
    assert row.cells()[5] == "2.00 (1.50 to 2.50)"
    assert row.as_data()["ratio_quartiles"] == [1.5, 2.5]


def test_the_side_that_begins_changes_from_round_to_round() -> None:
    order: list[str] = []
    sides = {name: (lambda name=name: float(order.append(name) or 1)) for name in ("a", "b")}
    interleave(sides, 2, warm=0)
    assert order == ["a", "b", "b", "a"]


def test_what_a_side_measures_before_it_is_warm_does_not_count() -> None:
    taken = itertools.count()
    found = interleave({"a": lambda: float(next(taken))}, 1, warm=0.01)["a"]
    assert found.values == (next(taken) - 1,)
    assert found.values[0] > 0


@pytest.mark.parametrize(
    ("target", "value", "theirs", "met"),
    [
        (Target(4), 3.0, None, True),
        (Target(4), 5.0, None, False),
        (Target(4, at_least=True), 5.0, None, True),
        (Target(2, of="ratio"), 5.0, 2.0, False),
        (Target(2, of="ratio"), 5.0, 4.0, True),
        (None, 5.0, 4.0, None),
    ],
)
def test_a_target_is_met_or_not(target, value, theirs, met) -> None:
    row = Row("b", "c", "ms", Figures((value,)), Figures((theirs,)) if theirs else None, target)
    assert row.met is met


def relayed(rtt_s: float, talk) -> None:
    """Let ``talk(reader, writer)`` talk through a relay to a server that sends everything back."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server, Relay("127.0.0.1", server.sockets[0].getsockname()[1], rtt_s) as relay:
            reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            await asyncio.wait_for(talk(reader, writer), 240)
            writer.close()

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(run())


def test_a_round_trip_through_the_relay_takes_at_least_its_time() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            started = time.perf_counter()
            writer.write(b"ping")
            assert await reader.readexactly(4) == b"ping"
            assert time.perf_counter() - started >= 0.050

    relayed(0.050, talk)


def test_messages_in_flight_are_delayed_together() -> None:
    """A hundred messages, sent without waiting, are back long before a hundred round trips."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        started = time.perf_counter()
        for number in range(100):
            writer.write(bytes([number]) * 100)
            await asyncio.sleep(0.001)
        received = await reader.readexactly(10_000)
        assert received == b"".join(bytes([number]) * 100 for number in range(100))
        assert 0.2 <= time.perf_counter() - started < 19

    relayed(0.2, talk)


def test_what_passes_the_relay_arrives_whole_and_so_does_the_end() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = bytes(range(256)) * 40_000

        async def send() -> None:
            writer.write(data)
            await writer.drain()
            writer.write_eof()

        sending = asyncio.create_task(send())
        assert await reader.read(-1) == data
        await sending

    relayed(0.02, talk)


def test_a_server_that_is_not_there_closes_the_connection() -> None:
    async def run() -> None:
        unused = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = unused.sockets[0].getsockname()[1]
        unused.close()
        await unused.wait_closed()
        async with Relay("127.0.0.1", port, 0.02) as relay:
            reader, _ = await asyncio.open_connection("127.0.0.1", relay.port)
            assert await asyncio.wait_for(reader.read(-1), 120) == b""

    asyncio.run(run())


def test_the_soak_fails_when_something_is_left_behind(monkeypatch) -> None:
    held = iter(range(100))
    monkeypatch.setattr(soak, "held_by", lambda opened: {"tensors": next(held)})
    with pytest.raises(AssertionError, match=r"after 40 steps, \{'tensors': 1\} is held; before, \{'tensors': 0\}"):
        list(soak.run(Plan(1, quick=True)))
