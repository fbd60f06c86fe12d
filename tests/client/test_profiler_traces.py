"""Exported traces: lanes of all stages of an op, and files for other tools."""

from __future__ import annotations

import gzip
import inspect
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.live_server import live_server
from tests.profiled_step import lanes, operands, step

import gradwire
from gradwire.profiler import profile, record_function, schedule


@pytest.fixture
def tensors(session) -> tuple[Any, Any]:
    return operands()


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
    assert all(Path(inspect.getfile(step)).name in stretch["args"]["line"] for stretch in products)


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


def test_threads_have_lanes_of_their_own_and_every_event_a_named_one(session, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=240)

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
            thread.join(240)
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
    assert len(frames) >= 3  # a program that is held up while it records sends what it has
    assert commits.keys() == frames.keys()
    for name, frame in frames.items():
        assert frame["end"] <= commits[name]["ts"] + 0.001
        assert commits[name]["end"] > commits[name]["ts"]


# Files for other tools


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
