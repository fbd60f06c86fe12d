"""The cost of a profile, its events, and their averages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.live_server import live_server
from tests.profiled_step import operands, step

import gradwire
from gradwire.profiler import profile, record_function


@pytest.fixture
def tensors(session) -> tuple[Any, Any]:
    return operands()


# What it costs, and when it is on


def test_a_profile_costs_no_round_trip(tensors, round_trips) -> None:
    round_trips()
    with profile() as p:
        for _ in range(5):
            loss = step(*tensors)
        assert round_trips() == 0
        loss.item()
        assert round_trips() == 1
    assert round_trips() == 0
    assert len(p.events()) > 0
    assert round_trips() == 0


def test_results_wait_once_for_many_frames_and_make_no_round_trip(session, tensors) -> None:
    with profile() as p:
        for _ in range(20):
            step(*tensors)
            session.flush()
    with gradwire.profiler.round_trips() as waited:
        p.events()
    assert [(line.what, line.count) for line in waited.lines] in ([("profiler", 1)], [])
    assert waited.count == 0


def test_frames_are_cut_where_they_would_be_without_it(session, tensors) -> None:
    def frames() -> tuple[int, int]:
        session.synchronize()
        before = session.stats()
        for _ in range(3):
            step(*tensors)
        session.synchronize()
        after = session.stats()
        return after["frames"] - before["frames"], after["ops"] - before["ops"]

    plain = frames()
    with profile():
        assert frames() == plain


def test_one_profile_at_a_time(session) -> None:
    with profile():
        with pytest.raises(RuntimeError, match="running already"):
            profile().start()
    with profile():
        pass


def test_a_session_that_is_opened_meanwhile_is_seen() -> None:
    with live_server() as server:
        with profile() as p:
            with gradwire.open_session(server.url, server.api_key) as opened:
                opened.record(gradwire._core.surface.methods.TABLE["manual_seed"], [1], 0)
                opened.synchronize()
        assert [event.name for event in p.events() if event.kind == "op"] == ["manual_seed"]


def test_ops_outside_of_it_are_not_in_it(tensors) -> None:
    x, _ = tensors
    x.exp()
    with profile() as p:
        x.sin()
    x.cos()
    names = {event.name for event in p.events()}
    assert "sin" in names
    assert not names & {"exp", "cos"}


def test_a_profile_after_one_whose_results_nobody_asked_for_has_all_of_its_ops(session) -> None:
    """What the first one noted is still to be sent: the second does not go on with the first one's frame."""
    x = gradwire.randn(4, 4)
    session.synchronize()
    with profile():
        kept = x @ x
    with profile() as second:
        kept = kept + 1
    assert [event.name for event in second.events()] == ["add"]


# What it sees


def test_ranges_have_the_ops_that_were_recorded_in_them(tensors) -> None:
    x, w = tensors
    with profile() as p:
        with record_function("outer"):
            x.sin()
            with record_function("inner", "of the outer"):
                x.cos()
        x.exp()
    by_name = {event.name: event for event in p.events()}
    assert by_name["inner"].cpu_parent is by_name["outer"]
    assert by_name["cos"].cpu_parent is by_name["inner"]
    assert by_name["sin"].cpu_parent is by_name["outer"]
    assert by_name["exp"].cpu_parent is None
    assert by_name["outer"].cpu_time_total == pytest.approx(
        by_name["sin"].cpu_time_total + by_name["cos"].cpu_time_total
    )


def test_a_range_is_a_decorator_and_does_nothing_without_a_profile(tensors) -> None:
    @record_function("twice")
    def twice(x: Any) -> Any:
        return x * 2

    assert twice(gradwire.ones(2)).tolist() == [2, 2]
    with profile() as p:
        twice(gradwire.ones(2))
    assert [event.name for event in p.events()].count("twice") == 1


def test_nodes_of_backward_stand_in_it_with_the_line_of_their_op(tensors) -> None:
    x, w = tensors
    with profile() as p:
        made = (x @ w).tanh().sum()
        made.backward()
    events = {event.name: event for event in p.events()}
    node = events["TanhBackward0"]
    assert node.cpu_parent is events["backward"]
    assert events["backward"].time_range.start <= node.time_range.start <= node.time_range.end
    assert node.time_range.end <= events["backward"].time_range.end
    assert __file__ in node.stack[0]


def test_nodes_and_ops_spell_their_lines_alike(tensors) -> None:
    with profile(with_stack=True) as p:
        step(*tensors)
    by_name = {event.name: event for event in p.events()}
    assert by_name["MmBackward0"].stack[0] == by_name["matmul"].stack[0]


def test_a_wait_is_an_event_of_its_line(tensors) -> None:
    x, _ = tensors
    with profile() as p:
        x.sum().item()
    (wait,) = [event for event in p.events() if event.kind == "wait"]
    assert wait.name == "wait: item"
    assert wait.client_time_total > 0
    assert __file__ in wait.stack[0]


# Averages and tables


def test_memory_of_ops(session) -> None:
    with profile(profile_memory=True) as p:
        x = gradwire.zeros(1000)
        y = x + 1
    averages = {average.key: average for average in p.key_averages()}
    assert averages["add"].cpu_memory_usage == 4000
    assert "CPU Mem" in p.key_averages().table()
    assert y.shape == (1000,)


def test_averages_by_shape(session) -> None:
    with profile(record_shapes=True) as p:
        for size in (2, 2, 3):
            gradwire.ones(size).sin()
    by_shape = {(a.key, a.input_shapes): a.count for a in p.key_averages(group_by_input_shape=True)}
    assert by_shape["sin", "[[2]]"] == 2
    assert by_shape["sin", "[[3]]"] == 1
    assert {a.key: a.count for a in p.key_averages()}["sin"] == 3


def test_averages_by_line(session) -> None:
    x = gradwire.ones(2)
    with profile(with_stack=True) as p:
        x.sin()
        x.sin()
    found = [a for a in p.key_averages(group_by_stack_n=2) if a.key == "sin"]
    assert [a.count for a in found] == [1, 1]
    assert len({a.stack[0] for a in found}) == 2


def test_a_table_is_sorted_limited_and_in_the_unit_asked_for(tensors) -> None:
    with profile() as p:
        step(*tensors)
    averages = p.key_averages()
    rows = averages.table(sort_by="self_cpu_time_total", row_limit=2, time_unit="us", header="A STEP").splitlines()
    assert rows[1] == "A STEP"
    names = [row.split()[0] for row in rows[5:7]]
    longest = sorted(averages, key=lambda a: -a.self_cpu_time_total)
    assert names == [a.key for a in longest[:2]]
    assert rows[7].startswith("---")
    assert rows[8].startswith("Self CPU time total") and rows[8].endswith("us")
    assert averages.table(sort_by="cuda_time_total")
    with pytest.raises(AttributeError):
        averages.table(sort_by="nonsense")
    with pytest.raises(ValueError, match="time unit"):
        averages.table(time_unit="weeks")


def test_the_parts_of_the_engines_time_add_up(tensors) -> None:
    with profile() as p:
        with record_function("all"):
            step(*tensors)
    events = p.events()
    ops = sum(event.cpu_time_total for event in events if event.kind == "op")
    assert events.self_cpu_time_total == pytest.approx(ops)
    assert p.key_averages().total_average().self_cpu_time_total == pytest.approx(ops)
