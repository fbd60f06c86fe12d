"""``gradwire.profiler`` against ``torch.profiler``: API, error classes, schedules and events."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.live_server import SOURCES
from tests.profiled_step import lanes, operands, step

import gradwire
from gradwire.autograd import profiler as older
from gradwire.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

CPU = ProfilerActivity.CPU


@pytest.fixture
def tensors(session) -> tuple[Any, Any]:
    return operands()


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


def test_actions_are_those_of_the_schedule() -> None:
    assert [action.value for action in ProfilerAction] == [0, 1, 2, 3, 4]


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


def test_what_it_lacks_is_told_by_name() -> None:
    for name in ("with_flops", "experimental_config", "execution_trace_observer"):
        with pytest.raises(NotImplementedError, match=name):
            profile(**{name: True})


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


def test_events_have_what_programs_ask_of_pytorchs(tensors) -> None:
    with profile() as p, record_function("a step"):
        step(*tensors)
    for event in (p.events()[0], p.key_averages()[0]):
        assert event.cpu_time_total_str == f"{event.cpu_time_total:.3f}us" or event.cpu_time_total >= 1000
        assert (event.device_type, event.flops, event.is_async) == (gradwire.profiler.DeviceType.CPU, 0, False)
    text = p.key_averages().table(top_level_events_only=True)
    assert "a step" in text
    assert "matmul" not in text


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
        text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "True True" in done.stdout and "matmul" in done.stdout and "mine" in done.stdout
    assert lanes(json.loads((tmp_path / "trace.json").read_text()))["kernel", "ops"]
    assert "program.py:10" in done.stderr and "1 round trip," in done.stderr
