"""A session switches kernels between two frames, and a replay switches at the same place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradwire
import gradwire_engine.ops  # noqa: F401  (engines run what is registered)
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.snapshot import restore, take
from gradwire_protocol.errors import Unavailable
from gradwire_protocol.frames import Frame
from gradwire_server import cli
from gradwire_server.durable.records import Kind, Reader
from gradwire_server.hosting.runner import Runner
from gradwire_server.hosting.session_thread import HEAVY_BYTES
from gradwire_server.http.shortcut_frames import ShortcutFrame
from tests.live_server import live_server
from tests.server.story import BASE, CLIENT, fingerprint, forget_commits, new_runner, spec

X = BASE + 1
FRAMES = 8
SHAPE = (64, 96)

Choose = Callable[[bool], None]


pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    pytest.importorskip("numba", reason="there is no Numba for this platform")
    assert toolchain.wait(), toolchain.describe()


@pytest.fixture
def choose(monkeypatch: Any) -> Choose:
    """Says whether sessions of this process take compiled kernels from their next frame on."""
    monkeypatch.setattr(Engine, "compiled", False)

    def say(compiled: bool) -> None:
        monkeypatch.setattr(toolchain._shared, "mode", "auto" if compiled else "off")

    say(False)
    return say


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "s_story"


def frame(number: int) -> Frame:
    """The first makes ``X``, the others write into it what many roundings made."""
    builder = ShortcutFrame(CLIENT, X if number == 1 else BASE + 100 * number)
    if number == 1:
        builder.record("randn", SHAPE)
    else:
        x = builder.tensor(X)
        (shares,) = builder.record("softmax", x, 1)
        builder.record("mul_", x, 1.25)
        builder.record("add_", x, shares)
        builder.drop(shares)
    built = builder.build(False, None).frame
    built.seq = number
    return built


def apply(runner: Runner, number: int) -> None:
    reply, _ = runner.apply(frame(number), [])
    assert reply.refused is None, reply.refused
    runner.commit()


def begin(runner: Runner) -> Runner:
    runner.join(0, "program", 0)
    runner.commit()
    return runner


def run(runner: Runner, choose: Choose, switches: dict[int, bool]) -> list[str]:
    """Apply all frames, with what is wanted changed in front of some; the session's states before and after each."""
    begin(runner)
    states = [fingerprint(runner.session)]
    for number in range(1, FRAMES + 1):
        if number in switches:
            choose(switches[number])
        apply(runner, number)
        states.append(fingerprint(runner.session))
    return states


def in_memory(choose: Choose, switches: dict[int, bool]) -> str:
    choose(False)
    return run(Runner(spec("none")), choose, switches)[-1]


def kinds(folder: Path) -> list[tuple[Kind, bool]]:
    (path,) = folder.glob("journal-*.log")
    with Reader(path, "s_story") as reader:
        return [(record.kind, record.notes.compiled) for record in reader if record.kind is not Kind.JOIN]


def test_the_kernels_of_a_session_can_be_told_apart(choose: Choose) -> None:
    """What the other tests rest on: after these frames the bits say by which kernels each of them was computed."""
    cases: list[dict[int, bool]] = [{}, {1: True}, {4: True}, {5: True}, {3: True, 6: False}]
    assert len({in_memory(choose, case) for case in cases}) == len(cases)


def test_a_switch_is_a_record_in_front_of_the_first_frame_that_it_concerns(choose: Choose, folder: Path) -> None:
    runner = new_runner(folder)
    run(runner, choose, {3: True, 6: False})
    runner.close(keep=True)
    written = kinds(folder)
    assert [i for i, (kind, _) in enumerate(written) if kind is Kind.KERNELS] == [2, 6]
    assert [compiled for kind, compiled in written if kind is Kind.KERNELS] == [True, False]


@pytest.mark.parametrize("wanted_later", [False, True])
def test_a_replay_switches_where_the_session_did(choose: Choose, folder: Path, wanted_later: bool) -> None:
    """Whatever the server that recovers it wants for the frames to come; those go on as it wants."""
    runner = new_runner(folder)
    states = run(runner, choose, {3: True, 6: False, 8: True})
    runner.close(keep=True)
    choose(wanted_later)
    recovered = Runner.recover(folder)
    assert fingerprint(recovered.session) == states[-1]
    apply(recovered, FRAMES + 1)
    assert recovered.session.engine.compiled is wanted_later
    after = fingerprint(recovered.session)
    recovered.close(keep=True)
    assert fingerprint(Runner.recover(folder).session) == after


def test_a_kill_at_any_byte_loses_whole_records_only(choose: Choose, folder: Path) -> None:
    runner = new_runner(folder)
    states = run(runner, choose, {4: True})
    runner.close(keep=True)
    (path,) = folder.glob("journal-*.log")
    data = path.read_bytes()
    with Reader(path, "s_story") as reader:
        ends = [(record.end, record.kind) for record in reader]
    for size in [end + cut for end, _ in ends for cut in (0, -1)][1:]:
        path.write_bytes(data[:size])
        forget_commits(folder)
        applied = sum(end <= size and kind is Kind.FRAME for end, kind in ends)
        if not any(end <= size for end, _ in ends):
            continue
        recovered = Runner.recover(folder)
        assert fingerprint(recovered.session) == states[applied]
        choose(applied >= 3)
        for number in range(applied + 1, FRAMES + 1):
            apply(recovered, number)
            choose(number >= 3)
        assert fingerprint(recovered.session) == states[-1]
        recovered.close(keep=True)
        choose(True)


@pytest.mark.parametrize("at", [2, 4, 6])
def test_a_snapshot_knows_by_which_kernels_the_session_is_computed(choose: Choose, folder: Path, at: int) -> None:
    runner = begin(new_runner(folder))
    for number in range(1, FRAMES + 1):
        choose(3 < number < 7)
        apply(runner, number)
        if number == at:
            assert runner.compact(force=True)
    expected = fingerprint(runner.session)
    runner.close(keep=True)
    recovered = Runner.recover(folder)
    assert fingerprint(recovered.session) == expected
    assert expected == in_memory(choose, {4: True, 7: False})


def test_an_image_and_what_is_made_of_it_go_on_alike(choose: Choose) -> None:
    runner = begin(Runner(spec("none")))
    choose(True)
    apply(runner, 1)
    again = restore(take(runner.session))
    assert again.engine.compiled
    for number in range(2, FRAMES):
        runner.session.apply(frame(number))
        again.apply(frame(number))
    assert fingerprint(again) == fingerprint(runner.session)


def test_without_the_kernels_a_session_that_needs_them_waits(choose: Choose, folder: Path, monkeypatch: Any) -> None:
    """Refused for now and left as it is: another machine, or this one repaired, can bring it back."""
    runner = new_runner(folder)
    states = run(runner, choose, {5: True})
    runner.close(keep=True)
    with monkeypatch.context() as without:
        without.setattr(toolchain, "wait", lambda timeout_s=None: False)
        with pytest.raises(Unavailable, match="compiled kernels"):
            Runner.recover(folder)
    assert fingerprint(Runner.recover(folder).session) == states[-1]


def test_a_worker_process_takes_the_setting_of_its_server() -> None:
    """The bits of an op tell: they are those of the compiled kernel, computed here."""
    import gradwire

    values = (np.arange(64 * 96).reshape(SHAPE) % 97 / 7).astype(np.float32)
    with live_server(session_host="process", compiled_kernels="wait") as server:
        session = gradwire.connect(server.url, api_key=server.api_key)
        with session:
            found = gradwire.softmax(gradwire.tensor(values), 1).numpy()
    by_numpy, by_kernel = Engine(), Engine()
    by_numpy.compiled, by_kernel.compiled = False, True
    expected, other = (e.to_numpy(e.call("softmax", e.from_numpy(values), 1)) for e in (by_kernel, by_numpy))
    assert not np.array_equal(expected, other)
    assert np.array_equal(found, expected)


def test_a_session_tells_which_kernels_it_runs(choose: Choose) -> None:
    runner = begin(Runner(spec("none")))
    assert runner.describe()["kernels"] == {"in_use": False, "state": "ready"}
    choose(True)
    apply(runner, 1)
    assert runner.glance()["kernels"]["in_use"]


def test_a_cache_is_filled_before_the_first_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    filled: list[Path] = []
    monkeypatch.setenv("GRADWIRE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(toolchain, "_complete", lambda folder: bool(filled))
    monkeypatch.setattr(toolchain, "_fill", lambda folder, parent: filled.append(folder))
    monkeypatch.setattr(toolchain.subprocess, "Popen", lambda *_, **__: contextlib.nullcontext())
    assert cli.main(["warm"]) == 0
    assert filled == [tmp_path / "kernels" / toolchain._digest()]
    assert str(filled[0]) in capsys.readouterr().out
    assert cli.main(["warm"]) == 0
    assert len(filled) == 1
    (tmp_path / "kernels").chmod(0o777)
    assert cli.main(["warm"]) == cli.EXIT_UNABLE
    assert len(filled) == 1
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("loading", [False, True])
def test_a_session_that_holds_much_waits_for_kernels_that_are_being_loaded(
    heavy: bool, loading: bool, monkeypatch: Any
) -> None:
    """In a new process, for a second; not for kernels that are being compiled, and small sessions never."""
    waited: list[float] = []
    state = toolchain._Toolchain()
    state.state, state.loading = "preparing", loading
    monkeypatch.setattr(state.over, "wait", waited.append)
    monkeypatch.setattr(toolchain, "_shared", state)
    with live_server() as server, gradwire.connect(server.url, server.api_key) as session:
        x = gradwire.zeros(HEAVY_BYTES // 4 if heavy else 4)
        session.synchronize()
        waited.clear()
        assert float((x + 1).sum()) > 0
    assert bool(waited) == (heavy and loading)
    assert set(waited) <= {toolchain.LOADING_S}
