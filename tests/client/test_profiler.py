"""``gradwire.profiler`` beside ``torch.profiler``: the same surface, and a trace of all that ops go through."""

from __future__ import annotations

import gzip
import inspect
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.live_server import SOURCES, live_server

import gradwire
from gradwire.autograd import profiler as older
from gradwire.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

CPU = ProfilerActivity.CPU


def step(x: Any, w: Any) -> Any:
    loss = (x @ w).relu().sum()
    loss.backward()
    return loss


@pytest.fixture
def tensors(session) -> tuple[Any, Any]:
    return gradwire.randn(4, 8), gradwire.randn(8, 8, requires_grad=True)


# Beside PyTorch's


@pytest.mark.parametrize("name", ["profile", "schedule", "tensorboard_trace_handler", "record_function"])
def test_signatures_are_pytorchs(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module.profiler, name)) for module in (gradwire, torch))
    assert list(ours.parameters) == list(theirs.parameters)
    for parameter in theirs.parameters.values():
        assert ours.parameters[parameter.name].kind == parameter.kind
        assert ours.parameters[parameter.name].default == parameter.default


@pytest.mark.parametrize(
    "name", ["step", "start", "stop", "events", "key_averages", "export_chrome_trace", "export_stacks", "add_metadata"]
)
def test_methods_take_what_pytorchs_take(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module.profiler.profile, name)) for module in (gradwire, torch))
    assert [(p.name, p.default) for p in ours.parameters.values()] == [
        (p.name, p.default) for p in theirs.parameters.values()
    ]


def test_the_table_takes_what_pytorchs_takes() -> None:
    from torch.autograd.profiler_util import EventList

    ours, theirs = (inspect.signature(cls.table) for cls in (older.EventList, EventList))
    assert [(p.name, p.default) for p in ours.parameters.values()] == [
        (p.name, p.default) for p in theirs.parameters.values()
    ]


def test_public_names_are_pytorchs() -> None:
    wanted = set(torch.profiler.__all__) - {"DeviceType", "ExecutionTraceObserver"}
    assert wanted <= set(gradwire.profiler.__all__)
    methods = {name for name in dir(torch.profiler.profile) if not name.startswith("_")}
    assert methods <= set(dir(profile))
    for enum in ("ProfilerActivity", "ProfilerAction"):
        ours, theirs = (getattr(module.profiler, enum).__members__ for module in (gradwire, torch))
        assert list(ours) == list(theirs)


def errors(module: Any) -> dict[str, Callable[[], Any]]:
    p = module.profiler
    cpu = p.ProfilerActivity.CPU
    return {
        "a schedule with a negative wait": lambda: p.schedule(wait=-1, warmup=1, active=1),
        "a schedule without an active step": lambda: p.schedule(wait=1, warmup=1, active=0),
        "a schedule by position": lambda: p.schedule(1, 1, 1),
        "a step below zero": lambda: p.schedule(wait=1, warmup=1, active=1)(-1),
        "no activities": lambda: p.profile(activities=[]),
        "strings for activities": lambda: p.profile(activities=["cpu"]),
        "strings among activities": lambda: p.profile(activities=[cpu, "cpu"]),
        "an activity twice": lambda: p.profile(activities=[cpu, cpu]),
        "events before the start": lambda: p.profile(activities=[cpu]).events(),
        "averages before the start": lambda: p.profile(activities=[cpu]).key_averages(),
        "a trace before the start": lambda: p.profile(activities=[cpu]).export_chrome_trace("/nowhere/x"),
        "stacks before the start": lambda: p.profile(activities=[cpu]).export_stacks("/nowhere/x"),
        "an end before the start": lambda: p.profile(activities=[cpu]).stop(),
    }


@pytest.mark.parametrize("case", errors(gradwire))
def test_errors_are_of_pytorchs_classes(session, case: str) -> None:
    with pytest.raises(Exception) as theirs:
        errors(torch)[case]()
    with pytest.raises(theirs.type):
        errors(gradwire)[case]()


@pytest.mark.parametrize("given", [
    {"wait": 1, "warmup": 1, "active": 2},
    {"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
    {"wait": 2, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 4},
    {"wait": 3, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1},
    {"wait": 3, "warmup": 2, "active": 1, "repeat": 2, "skip_first": 2, "skip_first_wait": 1},
])  # fmt: skip
def test_schedules_go_as_pytorchs(given: dict[str, int]) -> None:
    ours, theirs = schedule(**given), torch.profiler.schedule(**given)
    assert [ours(i).name for i in range(40)] == [theirs(i).name for i in range(40)]


@pytest.mark.parametrize("given", [
    {"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, {"wait": 0, "warmup": 1, "active": 1},
    {"wait": 2, "warmup": 0, "active": 3, "repeat": 1},
])  # fmt: skip
def test_traces_are_ready_when_pytorchs_are(session, given: dict[str, int]) -> None:
    """In the same steps, with the same steps in them."""

    def run(module: Any) -> list[tuple[int, list[str]]]:
        told: list[tuple[int, list[str]]] = []

        def ready(p: Any) -> None:
            steps = {event.key for event in p.key_averages() if event.key.startswith("ProfilerStep")}
            told.append((p.step_num, sorted(steps)))

        x = module.ones(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with module.profiler.profile(
                activities=[module.profiler.ProfilerActivity.CPU],
                schedule=module.profiler.schedule(**given),
                on_trace_ready=ready,
            ) as p:
                for _ in range(9):
                    x = x + 1
                    p.step()
        return told

    ours, theirs = run(gradwire), run(torch)
    assert [number for number, _ in ours] == [number for number, _ in theirs]
    # PyTorch puts every step of a cycle under one key.
    assert [bool(steps) for _, steps in ours] == [bool(steps) for _, steps in theirs]


def test_the_events_of_a_program_are_those_that_ran(tensors) -> None:
    with profile(activities=[CPU], record_shapes=True) as p:
        with record_function("a step"):
            step(*tensors)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as q:
        with torch.profiler.record_function("a step"):
            step(torch.randn(4, 8), torch.randn(8, 8, requires_grad=True))
    ours = {event.name: event for event in p.events()}
    theirs = {event.name.removeprefix("aten::"): event for event in q.events()}
    for name in ("a step", "matmul", "relu", "sum", "MmBackward0", "ReluBackward0", "SumBackward0"):
        assert name in theirs
        assert name in ours
    assert ours["matmul"].input_shapes == theirs["matmul"].input_shapes == [[4, 8], [8, 8]]
    assert ours["a step"].cpu_time_total >= ours["matmul"].cpu_time_total > 0


# What it costs, and what it sees


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


def test_ops_outside_of_it_are_not_in_it(tensors) -> None:
    x, _ = tensors
    x.exp()
    with profile() as p:
        x.sin()
    x.cos()
    names = {event.name for event in p.events()}
    assert "sin" in names
    assert not names & {"exp", "cos"}


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


def test_a_wait_is_an_event_of_its_line(tensors) -> None:
    x, _ = tensors
    with profile() as p:
        x.sum().item()
    (wait,) = [event for event in p.events() if event.kind == "wait"]
    assert wait.name == "wait: item"
    assert wait.client_time_total > 0
    assert __file__ in wait.stack[0]


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


def test_one_profile_at_a_time(session) -> None:
    with profile():
        with pytest.raises(RuntimeError, match="running already"):
            profile().start()
    with profile():
        pass


def test_what_it_lacks_is_told_by_name() -> None:
    for name in ("with_flops", "experimental_config", "execution_trace_observer"):
        with pytest.raises(NotImplementedError, match=name):
            profile(**{name: True})


def test_a_session_that_is_opened_meanwhile_is_seen() -> None:
    with live_server() as server:
        with profile() as p:
            with gradwire.open_session(server.url, server.api_key) as opened:
                opened.record(gradwire.methods.TABLE["manual_seed"], [1], 0)
                opened.synchronize()
        assert [event.name for event in p.events() if event.kind == "op"] == ["manual_seed"]


# The trace


def lanes(trace: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Stretches by process and thread name: ``ts`` and ``end`` in microseconds, exact to the nanosecond."""
    events = trace["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    begun: dict[tuple[str, Any], dict[str, Any]] = {}
    for event in events:
        if event["ph"] == "b":
            begun[event["cat"], event["id"]] = event
            continue
        if event["ph"] == "X":
            stretch = event | {"end": round(event["ts"] + event["dur"], 3)}
        elif event["ph"] == "e":
            stretch = begun.pop((event["cat"], event["id"])) | {"end": event["ts"]}
        else:
            continue
        found.setdefault((processes[event["pid"]], threads[event["pid"], event["tid"]]), []).append(stretch)
    assert not begun, "every stretch that begins ends"
    return found


@pytest.fixture
def traced(tensors, tmp_path: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    with profile(record_shapes=True) as p:
        for _ in range(3):
            with record_function("step"):
                loss = step(*tensors)
            loss.item()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    return lanes(json.loads((tmp_path / "trace.json").read_text()))


def test_a_trace_has_the_lanes_of_all_that_take_part(traced) -> None:
    assert {
        ("client", "program"), ("client", "recording"), ("client", "waiting"), ("network", "frames up"),
        ("network", "replies down"), ("server", "queue"), ("server", "frames"), ("kernel", "ops"),
    } <= set(traced)  # fmt: skip
    assert [stretch["name"] for stretch in traced["client", "program"]] == ["step"] * 3
    assert [stretch["name"] for stretch in traced["client", "waiting"]] == ["item"] * 3


def test_a_frame_goes_through_the_lanes_in_order(traced) -> None:
    def of(lane: tuple[str, str], name: str) -> dict[str, Any]:
        (found,) = [stretch for stretch in traced[lane] if stretch["name"] == name]
        return found

    names = [stretch["name"] for stretch in traced["server", "frames"]]
    assert names
    for name in names:
        number = name.split()[1]
        recorded, up, queued, applied, down = (
            of(("client", "recording"), name), of(("network", "frames up"), name), of(("server", "queue"), name),
            of(("server", "frames"), name), of(("network", "replies down"), f"reply {number}"),
        )  # fmt: skip
        edges = [recorded["ts"], recorded["end"], queued["ts"], applied["ts"], applied["end"], down["ts"], down["end"]]
        assert edges == sorted(edges)
        assert up["ts"] == recorded["end"]
        assert up["end"] >= queued["ts"] or up["end"] == up["ts"]


def test_ops_stand_in_their_frame_and_nodes_in_their_op(traced) -> None:
    frames = {stretch["args"]["frame"]: stretch for stretch in traced["server", "frames"]}
    ops = [stretch for stretch in traced["kernel", "ops"] if stretch["cat"] == "op"]
    nodes = [stretch for stretch in traced["kernel", "ops"] if stretch["cat"] == "node"]
    for op in ops:
        frame = frames[op["args"]["frame"]]
        assert frame["ts"] <= op["ts"] <= op["end"] <= frame["end"]
    backwards = [op for op in ops if op["name"] == "backward"]
    assert len(backwards) == 3
    assert {node["name"] for node in nodes} >= {"MmBackward0", "ReluBackward0", "SumBackward0", "AccumulateGrad"}
    for node in nodes:
        assert any(op["ts"] <= node["ts"] <= node["end"] <= op["end"] for op in backwards)


def test_an_op_in_a_trace_has_its_shapes_and_its_line(traced) -> None:
    products = [stretch for stretch in traced["kernel", "ops"] if stretch["name"] == "matmul"]
    assert [stretch["args"]["shapes"] for stretch in products] == [[[4, 8], [8, 8]]] * 3
    assert all(Path(__file__).name in stretch["args"]["line"] for stretch in products)


def test_stretches_of_a_lane_nest_or_follow_each_other(traced) -> None:
    for (process, thread), stretches in traced.items():
        if stretches[0]["ph"] != "X":
            continue  # those are drawn side by side
        open_until: list[float] = []
        for stretch in sorted(stretches, key=lambda s: (s["ts"], -s["end"])):
            while open_until and open_until[-1] <= stretch["ts"]:
                open_until.pop()
            assert not open_until or stretch["end"] <= open_until[-1] + 0.001, (process, thread, stretch)
            open_until.append(stretch["end"])


def test_a_trace_can_be_compressed_and_carries_metadata(tensors, tmp_path: Path) -> None:
    with profile() as p:
        step(*tensors)
    p.add_metadata("run", 'the "first"')
    p.add_metadata_json("sizes", "[1, 2]")
    p.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        trace = json.load(file)
    assert (trace["run"], trace["sizes"]) == ('the "first"', [1, 2])
    assert trace["trace_id"] == p.get_trace_id()
    assert lanes(trace)["kernel", "ops"]


def test_traces_for_tensorboard(tensors, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    handler = gradwire.profiler.tensorboard_trace_handler(str(folder), worker_name="one", use_gzip=True)
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=handler) as p:
        for _ in range(4):
            step(*tensors)
            p.step()
    files = sorted(path.name for path in folder.iterdir())
    assert len(files) == 2
    assert all(name.startswith("one.") and name.endswith(".pt.trace.json.gz") for name in files)


def test_stacks_for_flame_graphs(tensors, tmp_path: Path) -> None:
    with profile(with_stack=True) as p:
        gradwire.randn(300, 300) @ gradwire.randn(300, 300)
    path = tmp_path / "stacks"
    p.export_stacks(str(path))
    stacks, amounts = zip(*(line.rsplit(" ", 1) for line in path.read_text().splitlines()))
    assert any("test_stacks_for_flame_graphs" in stack.split(";")[-1] for stack in stacks)
    assert all(int(amount) > 0 for amount in amounts)
    with pytest.raises(ValueError, match="metric"):
        p.export_stacks(str(path), "self_time")


# Its older form, and programs under `gradwire run`


def test_the_older_form_has_the_same_events(tensors) -> None:
    with older.profile(record_shapes=True) as p:
        step(*tensors)
    assert {"matmul", "relu", "backward"} <= {event.name for event in p.function_events}
    assert p.self_cpu_time_total > 0
    assert "matmul" in p.key_averages().table(sort_by="cpu_time_total") and "matmul" in str(p)
    with older.profile(enabled=False) as nothing:
        pass
    assert nothing is None
    with pytest.raises(AssertionError):
        older.profile().key_averages()


def test_marks_for_tools_of_another_machine_are_refused() -> None:
    with older.emit_nvtx(enabled=False):
        pass
    with pytest.raises(NotImplementedError, match="kernel lane"):
        older.emit_nvtx().__enter__()


PROGRAM = """
import torch
from torch.profiler import ProfilerActivity, profile, record_function
import torch.autograd.profiler as older

x = torch.randn(16, 16, requires_grad=True)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
    with record_function("mine"):
        (x @ x).sum().backward()
    print(x.grad.sum().item() is not None)
print(p.key_averages().table(sort_by="cpu_time_total", row_limit=-1))
p.export_chrome_trace("trace.json")
print(torch.autograd.profiler.record_function is record_function, torch.profiler.profile is profile)
"""


def test_programs_that_say_torch_profiler_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "gradwire", "run", "--stats", "program.py"],
        cwd=tmp_path, env={"PYTHONPATH": SOURCES, "PATH": "/usr/bin:/bin", "COLUMNS": "120"}, capture_output=True,
        text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "True True" in done.stdout and "matmul" in done.stdout and "mine" in done.stdout
    assert lanes(json.loads((tmp_path / "trace.json").read_text()))["kernel", "ops"]
    assert "program.py:10" in done.stderr and "1 round trip," in done.stderr


def test_actions_are_those_of_the_schedule() -> None:
    assert [action.value for action in ProfilerAction] == [0, 1, 2, 3, 4]


# Programs as users write them


def test_a_profile_after_one_whose_results_nobody_asked_for_has_all_of_its_ops(session) -> None:
    """What the first one noted is still to be sent: the second does not go on with the first one's frame."""
    x = gradwire.randn(4, 4)
    session.synchronize()
    with profile():
        kept = x @ x
    with profile() as second:
        kept = kept + 1
    assert [event.name for event in second.events()] == ["add"]


def test_results_wait_once_for_many_frames_and_make_no_round_trip(session, tensors) -> None:
    with profile() as p:
        for _ in range(20):
            step(*tensors)
            session.flush()
    with gradwire.profiler.round_trips() as waited:
        p.events()
    assert [(line.what, line.count) for line in waited.lines] in ([("profiler", 1)], [])
    assert waited.count == 0


def test_frames_of_a_long_recording_arrive_after_they_were_sent(session, tensors, tmp_path: Path) -> None:
    """More frames than any window, none of whose replies is taken in before the end."""
    with profile() as p:
        for _ in range(100):
            step(*tensors)
            session.flush()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    flows = {ph: {e["id"]: e["ts"] for e in events if e["ph"] == ph} for ph in "sf"}
    assert len(flows["s"]) >= 100  # a program that is held up while it records sends what it has
    assert flows["s"].keys() == flows["f"].keys()
    assert all(flows["s"][number] <= flows["f"][number] for number in flows["s"])


def test_threads_have_lanes_of_their_own_and_every_event_a_named_one(session, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def work(name: str) -> None:
        x = gradwire.ones(4)
        with record_function(name):
            both.wait()  # so that the ranges overlap
            (x + 1).sum().item()
            both.wait()

    with profile() as p:
        threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "other")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert {"one", "other"} <= {average.key for average in p.key_averages()}
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    for event in trace["traceEvents"]:
        assert {"ph", "pid", "tid", "ts", "name"} <= event.keys()
        assert event.get("dur", 0) >= 0
    found = lanes(trace)
    assert [len(found["client", lane]) for lane in ("program", "program (thread 2)")] == [1, 1]
    assert [len(found["client", lane]) for lane in ("waiting", "waiting (thread 2)")] == [1, 1]
    applied = {stretch["args"]["frame"]: stretch for stretch in found["server", "frames"]}
    for lane in ("waiting", "waiting (thread 2)"):
        for wait in found["client", lane]:
            assert applied[wait["args"]["frame"]]["end"] <= wait["end"]


@pytest.mark.parametrize("host", ["inline", "process"])
def test_a_durable_session_has_a_commit_for_each_frame(host: str, tmp_path: Path) -> None:
    with (
        live_server(session_host=host, data_dir=str(tmp_path / "data"), durability="durable") as server,
        gradwire.connect(server.url, api_key=server.api_key),
    ):
        w = gradwire.randn(8, 8, requires_grad=True)
        with profile() as p:
            for _ in range(3):
                (w @ w).sum().item()
        p.export_chrome_trace(str(tmp_path / "trace.json"))
    found = lanes(json.loads((tmp_path / "trace.json").read_text()))
    commits = {stretch["name"]: stretch for stretch in found["server", "commit"]}
    frames = {stretch["name"]: stretch for stretch in found["server", "frames"]}
    assert len(frames) == 3
    assert commits.keys() == frames.keys()
    for name, frame in frames.items():
        assert frame["end"] <= commits[name]["ts"] + 0.001
        assert commits[name]["end"] > commits[name]["ts"]


def test_optimizers_and_loaders_stand_in_profiles_under_pytorchs_names(session) -> None:
    def counts(module: Any) -> dict[str, int]:
        data = module.utils.data.TensorDataset(module.arange(6.0).reshape(6, 1))
        model = module.nn.Linear(1, 1)
        made = module.optim.SGD(model.parameters(), lr=0.1)
        with module.profiler.profile(activities=[module.profiler.ProfilerActivity.CPU]) as p:
            for (x,) in module.utils.data.DataLoader(data, batch_size=2):
                model(x).sum().backward()
                made.step()
                made.zero_grad()
        return {a.key: a.count for a in p.key_averages() if "#" in a.key}

    ours, theirs = counts(gradwire), counts(torch)
    assert ours["Optimizer.step#SGD.step"] == 3
    assert ours == theirs


def test_nodes_and_ops_spell_their_lines_alike(tensors) -> None:
    with profile(with_stack=True) as p:
        step(*tensors)
    by_name = {event.name: event for event in p.events()}
    assert by_name["MmBackward0"].stack[0] == by_name["matmul"].stack[0]


def test_events_have_what_programs_ask_of_pytorchs(tensors) -> None:
    with profile() as p, record_function("a step"):
        step(*tensors)
    for event in (p.events()[0], p.key_averages()[0]):
        assert event.cpu_time_total_str == f"{event.cpu_time_total:.3f}us" or event.cpu_time_total >= 1000
        assert (event.device_type, event.flops, event.is_async) == (gradwire.profiler.DeviceType.CPU, 0, False)
    text = p.key_averages().table(top_level_events_only=True)
    assert "a step" in text
    assert "matmul" not in text
