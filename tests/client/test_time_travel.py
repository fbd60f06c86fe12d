"""Checkpoints, rewinds, forks and looks at the past, as a program uses them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.live_server import LiveServer, live_server

import gradwire as torch
from gradwire import nn
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, InvalidRequest, NotFound, UnknownTensor


@pytest.fixture(scope="module", params=["inline", "process"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    data = tmp_path_factory.mktemp("data")
    with live_server(data_dir=data, durability="applied", session_host=request.param, max_sessions=1000) as found:
        yield found


@pytest.fixture
def session(server: LiveServer) -> Iterator[Any]:
    with torch.connect(server.url, server.api_key, seed=1) as opened:
        yield opened


class Run:
    """A small training run with everything that keeps state: dropout, running statistics, moments, a schedule."""

    def __init__(self, optimizer: str = "Adam") -> None:
        self.model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
        options = {"momentum": 0.9} if optimizer == "SGD" else {}
        self.optimizer = getattr(torch.optim, optimizer)(self.model.parameters(), lr=0.05, **options)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)
        self.x, self.y = torch.randn(16, 4), torch.randn(16, 1)

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = ((self.model(self.x) - self.y) ** 2).mean()
        loss.set_name("loss")
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return float(loss.item())

    def steps(self, count: int) -> list[float]:
        return [self.step() for _ in range(count)]

    def carried(self, fork: Any) -> Run:
        """The same run in a fork."""
        made = object.__new__(Run)
        made.model, made.optimizer, made.schedule, made.x, made.y = fork[
            self.model, self.optimizer, self.schedule, self.x, self.y
        ]
        return made


@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "Adagrad", "RAdam", "NAdam"])
def test_a_run_goes_on_from_a_checkpoint_as_it_did(session: Any, optimizer: str) -> None:
    run = Run(optimizer)
    run.steps(3)
    session.checkpoint("before")
    rate = run.schedule.get_last_lr()
    first = run.steps(5)
    for _ in range(2):
        session.rewind("before")
        assert run.schedule.get_last_lr() == rate
        assert run.steps(5) == first


def test_a_rewind_before_the_first_step(session: Any) -> None:
    run = Run()
    session.checkpoint("begin")
    first = run.steps(3)
    session.rewind("begin")
    assert not run.optimizer.state
    assert all(parameter.grad is None for parameter in run.model.parameters())
    assert run.steps(3) == first


def test_what_was_made_since_refuses_every_use(session: Any) -> None:
    old = torch.ones(2)
    session.checkpoint("before")
    made = [old * 2, old[0]]
    late, view = made
    session.rewind("before")
    uses: list[Callable[[], Any]] = [
        late.tolist, partial(torch.add, late, 1), partial(torch.add, old, late), partial(torch.stack, [old, late]),
        partial(repr, late), partial(late.add_, 1), view.tolist, late.requires_grad_,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(UnknownTensor, match="made after the checkpoint 'before'"):
            use()
    assert late.shape == (2,)
    assert old.tolist() == [1, 1]
    made.clear()
    uses.clear()
    late = view = None
    gc.collect()
    assert (old + 1).tolist() == [2, 2]


def test_versions_views_and_flags_are_as_they_were(session: Any) -> None:
    base = torch.arange(6.0)
    view = base[2:4]
    base.mul_(2)
    leaf = torch.ones(2, requires_grad=True)
    (leaf * 3).sum().backward()
    version, gradient = base._version, leaf.grad
    session.checkpoint("before")
    view.zero_()
    base.add_(1)
    leaf.requires_grad_(False)
    leaf.grad = None
    session.rewind("before")
    assert base._version == view._version == version
    assert base.tolist() == [0, 2, 4, 6, 8, 10]
    assert view._base is base
    assert view.tolist() == [4, 6]
    view.add_(1)
    assert base.tolist() == [0, 2, 5, 7, 8, 10]
    assert leaf.requires_grad
    assert leaf.grad is gradient
    assert leaf.grad.tolist() == [3, 3]


def test_a_graph_that_was_freed_since_is_whole_again(session: Any) -> None:
    leaf = torch.tensor([2.0], requires_grad=True)
    out = (leaf * leaf).exp()
    session.checkpoint("before")
    out.backward()
    first = leaf.grad.tolist()
    with pytest.raises(RuntimeError, match="freed"):
        out.backward()
    session.rewind("before")
    assert leaf.grad is None
    out.backward()
    assert leaf.grad.tolist() == first


def test_a_change_in_place_that_a_graph_refuses_is_taken_back(session: Any) -> None:
    leaf = torch.tensor([2.0], requires_grad=True)
    middle = leaf * 1
    out = (middle * middle).sum()
    session.checkpoint("before")
    with torch.no_grad():
        middle.add_(1)
    with pytest.raises(RuntimeError, match=r"in place|inplace"):
        out.backward()
    session.rewind("before")
    out.backward()
    assert leaf.grad.tolist() == [4]


def test_hooks_are_those_of_the_checkpoint(session: Any) -> None:
    leaf = torch.ones(2, requires_grad=True)
    out = leaf * 2
    seen: list[str] = []
    out.register_hook(lambda gradient: seen.append("old"))
    session.checkpoint("before")
    out.register_hook(lambda gradient: seen.append("new"))
    session.rewind("before")
    out.sum().backward()
    assert seen == ["old"]
    assert leaf.grad.tolist() == [2, 2]


def test_random_numbers_and_generators_begin_again(session: Any) -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(2, generator=generator)
    session.checkpoint("before")
    first = torch.rand(3).tolist(), torch.rand(3, generator=generator).tolist()
    session.rewind("before")
    assert (torch.rand(3).tolist(), torch.rand(3, generator=generator).tolist()) == first


def test_a_compiled_function_runs_after_a_rewind(session: Any) -> None:
    weight = torch.ones(3, requires_grad=True)

    @torch.compile
    def step(x: Any) -> Any:
        loss = (weight * x).sum()
        loss.backward()
        return loss

    x = torch.arange(3.0)
    values = [step(x).item() for _ in range(4)]
    session.checkpoint("before")
    with torch.no_grad():
        weight.mul_(5)
    assert [step(x).item() for _ in range(3)] != values[:3]
    session.rewind("before")
    assert [step(x).item() for _ in range(4)] == values
    assert weight.grad.tolist() == [0, 8, 16]


def test_uploads_that_the_server_kept_are_sent_again(session: Any) -> None:
    import numpy as np

    data = np.arange(1 << 15, dtype=np.float32)
    session.checkpoint("before")
    for _ in range(4):
        torch.tensor(data).sum().item()
    session.rewind("before")
    for _ in range(4):
        assert torch.tensor(data).sum().item() == pytest.approx(data.sum())


def test_the_default_dtype_of_the_program_counts(session: Any) -> None:
    session.checkpoint("before")
    try:
        torch.set_default_dtype(torch.float64)
        session.rewind("before")
        assert (torch.ones(2) * 1.5).dtype is torch.float64
        assert torch.zeros(2).tolist() == [0, 0]
    finally:
        torch.set_default_dtype(torch.float32)


def test_names_are_those_of_the_checkpoint(session: Any) -> None:
    torch.ones(2).set_name("kept")
    session.checkpoint("before")
    session.tensor("kept").zero_()
    torch.ones(1).set_name("late")
    session.rewind("before")
    assert session.tensor("kept").tolist() == [1, 1]
    with pytest.raises(NotFound, match="late"):
        session.tensor("late")


def test_checkpoints_take_turns(session: Any) -> None:
    tensor = torch.zeros(1)
    session.checkpoint("a")
    tensor.add_(1)
    session.checkpoint("b")
    tensor.add_(1)
    session.rewind("a")
    assert tensor.item() == 0
    session.rewind("b")
    assert tensor.item() == 1
    tensor.add_(5)
    session.checkpoint("a")
    tensor.zero_()
    session.rewind("a")
    assert tensor.item() == 6
    assert [row["name"] for row in session.history()["checkpoints"]] == ["b", "a"]
    session.forget_checkpoint("a")
    with pytest.raises(ArgumentError, match="has no checkpoint 'a'"):
        session.rewind("a")


def test_another_client_keeps_its_place(session: Any, server: LiveServer) -> None:
    with torch.open_session(server.url, server.api_key, session=session.id) as other:
        torch.ones(2).set_name("shared")
        session.synchronize()
        theirs = other.tensor("shared")
        assert theirs.tolist() == [1, 1]
        session.checkpoint("before")
        late = theirs * 3
        theirs.add_(1)
        assert late.tolist() == [3, 3]
        session.rewind("before")
        assert theirs.tolist() == [1, 1]
        with pytest.raises(UnknownTensor, match="checkpoint 'before', to which the session was rewound"):
            (late + 1).tolist()
        assert (theirs + 1).tolist() == [2, 2]


def test_a_checkpoint_that_another_program_made_anew_is_not_taken(session: Any, server: LiveServer) -> None:
    tensor = torch.zeros(1)
    session.checkpoint("before")
    tensor.add_(1)
    session.synchronize()
    with torch.open_session(server.url, server.api_key, session=session.id) as other:
        other.checkpoint("before")
    with pytest.raises(InvalidRequest, match="was made anew"):
        session.rewind("before")
    assert tensor.item() == 1


def test_another_thread_waits_for_a_checkpoint(session: Any) -> None:
    tensor = torch.zeros(1)
    going = True

    def count() -> None:
        while going:
            tensor.add_(1)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for number in range(5):
            session.checkpoint(str(number))
    finally:
        going = False
        thread.join()
    for number in range(5):
        session.rewind(str(number))
        assert tensor.item() == tensor._version


def test_released_tensors_are_not_held_again(session: Any) -> None:
    kept = [torch.ones(1000) for _ in range(5)]
    session.checkpoint("before")
    del kept[1:]
    gc.collect()
    session.rewind("before")
    assert session.memory()["live_bytes"] < 4 * 4000


def test_two_learning_rates_from_one_state(session: Any) -> None:
    run = Run()
    run.steps(3)
    with session.fork() as fork:
        other = run.carried(fork)
        assert run.steps(3) == other.steps(3)
        for group in other.optimizer.param_groups:
            group["lr"] *= 10
        assert run.step() == other.step()
        assert run.step() != other.step()
        assert fork["loss"].item() != session.tensor("loss").item()


def test_a_fork_is_of_the_moment_although_the_session_went_on(session: Any) -> None:
    run = Run()
    run.steps(2)
    with session.fork() as fork:
        first = run.steps(3)
        other = run.carried(fork)
        assert other.steps(3) == first


def test_a_fork_has_the_graph(session: Any) -> None:
    leaf = torch.tensor([3.0], requires_grad=True)
    view = leaf.view(1)
    out = (view * view).sum()
    with session.fork() as fork:
        out.backward()
        theirs = fork[out]
        theirs.backward()
        assert fork[leaf].grad.tolist() == leaf.grad.tolist() == [6]
        assert fork[view]._base is fork[leaf]
        assert fork[leaf] is not leaf
        assert theirs.grad_fn is not out.grad_fn
        with pytest.raises(ArgumentError, match="different sessions"):
            _ = theirs + out
        with pytest.raises(ArgumentError, match="no such tensor"):
            fork[torch.ones(1)]
        with fork.active():
            made = torch.ones(2)
        assert (made + fork[leaf].detach()).tolist() == [4, 4]
        assert torch.ones(1)._session is session


def test_a_fork_of_a_past_frame(session: Any) -> None:
    tensor = torch.zeros(1)
    tensor.set_name("counter")
    frames = []
    for _ in range(3):
        tensor.add_(1)
        frames.append(session.history()["frame"])
    with session.fork(frames[1]) as fork:
        assert fork["counter"].item() == 2
        assert fork.tensor(tensor._id).item() == 2
        fork["counter"].add_(10)
        assert fork["counter"].item() == 12
    assert tensor.item() == 3


def test_the_past_is_looked_at_and_stays(session: Any) -> None:
    run = Run()
    losses = {}
    for _ in range(4):
        run.step()
        losses[session.history()["frame"]] = session.tensor("loss").item()
    weight = run.model[0].weight
    before = weight.tolist()
    frame = min(losses)
    with session.at(frame) as past:
        assert past["loss"].item() == losses[frame]
        assert past[weight].shape == (8, 4)
        assert past[weight].tolist() != before
        past[weight].detach().zero_()
        assert "loss" in past
        assert past.memory()["live_bytes"] > 0
        assert {row["id"] for row in past.tensors()} >= {weight._id}
        assert past.graph()["nodes"][0]["name"] == "MeanBackward0"
        for each, loss in sorted(losses.items(), reverse=True):
            past.move(each)
            assert past["loss"].item() == loss
        with pytest.raises(NotFound, match="was not applied yet"):
            past.move(10_000)
        past.move(0)
        assert past.names() == []
        with pytest.raises(UnknownTensor, match="after frame 0"):
            past[weight]
    assert weight.tolist() == before


def test_the_graph_of_a_past_frame(session: Any) -> None:
    leaf = torch.ones(1, requires_grad=True)
    out = leaf * 2
    frame = session.history()["frame"]
    out.backward()
    with session.at(frame) as past:
        assert [node["name"] for node in past.graph()["nodes"]] == ["MulBackward0", "AccumulateGrad"]
        past[out].backward()
        assert past[leaf].grad.tolist() == [2]


def test_the_first_frame_is_found_by_halves_and_one_by_one(session: Any) -> None:
    tensor = torch.zeros(1)
    tensor.set_name("value")
    frames = []
    for number in range(12):
        tensor.fill_(float("nan") if number == 3 else number)
        tensor.tolist()
        frames.append(session.history()["frame"])
    assert torch.find_first(lambda s: s["value"].isnan().any()) == frames[3]
    assert torch.find_first(lambda s: s["value"] >= 8, monotone=True) == frames[8]
    assert torch.find_first(lambda s: s["value"] >= 8, first=frames[9]) == frames[9]
    assert torch.find_first(lambda s: s["value"] > 100) is None
    assert torch.find_first(lambda s: s["value"] > 100, monotone=True) is None
    assert torch.find_first(lambda s: s["missing"] > 0) is None


def test_the_op_and_the_line_of_the_first_nan_are_found(session: Any) -> None:
    def broken(x: Any) -> Any:
        return x / 0  # a line to find

    code = broken.__code__
    x = torch.zeros(2, requires_grad=True)
    for number in range(5):
        y = broken(x) if number == 3 else x * 2
        y.sum().item()
        if number == 3:
            frame = session.history()["frame"]
    found = session.find_value()
    assert found is not None
    assert (found["frame"], found["op"], found["shape"]) == (frame, "div", [2])
    assert found["line"] == f"{code.co_filename}:{code.co_firstlineno + 1}"
    assert session.find_value("inf") is None


def test_a_derivative_that_made_the_first_nan_is_found(session: Any) -> None:
    x = torch.zeros(2, requires_grad=True)
    torch.sqrt(x * 0).sum().backward()
    found = session.find_value()
    assert found is not None
    assert (found["op"], found["node"]) == ("backward", "MulBackward0")
    assert found["line"].rpartition(":")[0] == __file__


def test_a_session_without_a_journal_says_how_to_get_one(server: LiveServer) -> None:
    with torch.connect(server.url, server.api_key, durability="none") as session:
        tensor = torch.ones(1)
        for use in (
            lambda: session.checkpoint("a"), lambda: session.at(0), session.history, session.find_value,
            lambda: torch.find_first(lambda s: True), lambda: session.fork(0),
        ):  # fmt: skip
            with pytest.raises(InvalidRequest, match=r"has no journal.*GRADWIRE_DATA_DIR.*durability='applied'"):
                use()
        with session.fork() as fork:
            assert fork[tensor].tolist() == [1]


def test_bad_arguments_are_refused(session: Any) -> None:
    for name in ("", "a/b", "x" * 201, "a\nb"):
        with pytest.raises(ArgumentError, match="the name of a checkpoint"):
            session.checkpoint(name)
    with pytest.raises(ArgumentTypeError, match="is a str"):
        session.checkpoint(1)
    with pytest.raises(ArgumentError, match="no checkpoint 'x'"):
        session.rewind("x")
    with pytest.raises(ArgumentError, match="count from 0"):
        session.at(-1)
    with pytest.raises(ArgumentTypeError, match="an int"):
        session.at("last")
    with pytest.raises(NotFound, match="was not applied yet"):
        session.at(1 << 40)
    with pytest.raises(NotFound, match="no checkpoint"):
        session.forget_checkpoint("x")
    assert torch.ones(1).item() == 1


def test_a_rewind_survives_a_restart(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path, durability="applied") as server:
        session = torch.connect(server.url, server.api_key, keep=True)
        tensor = torch.zeros(1)
        tensor.set_name("counter")
        session.checkpoint("before")
        tensor.add_(1)
        session.rewind("before")
        tensor.add_(5)
        assert tensor.item() == 5
        session.close()
    with live_server(data_dir=tmp_path, durability="applied") as server:
        with torch.connect(server.url, server.api_key, session=session.id) as again:
            assert again.tensor("counter").item() == 5
            assert [row["name"] for row in again.history()["checkpoints"]] == ["before"]
            with pytest.raises(ArgumentError, match="this program has no checkpoint"):
                again.rewind("before")
