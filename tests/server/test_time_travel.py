"""Time travel of sessions on disk: what a folder keeps, what a crash leaves, and what the routes refuse."""

from __future__ import annotations

import os
import signal
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from typer.testing import CliRunner

import gradwire
from gradwire.cli.main import app
from gradwire_engine.runtime.backends import Backends
from gradwire_protocol.errors import GradwireError, InvalidRequest, JournalDamaged, NotFound
from gradwire_protocol.frames import Frame
from gradwire_server.durable import checkpoints, recording
from gradwire_server.durable.disk import Disk
from gradwire_server.durable.history import Replay, Source, oldest_frame
from gradwire_server.hosting.replay_command import main as replay_command
from gradwire_server.hosting.runner import Runner
from gradwire_server.hosting.time_travel import search
from gradwire_server.settings.session_spec import JournalPolicy
from tests.live_server import LiveServer, live_server, server_process
from tests.server.story import Story, fingerprint, new_runner, spec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "s_story"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    data = tmp_path_factory.mktemp("data")
    with live_server(data_dir=data, durability="applied", max_key_sessions=4) as found:
        yield found


def counting(runner: Runner, count: int, first: int = 0) -> None:
    """Frames that count up a named tensor, which the one of number 0 makes."""
    for number in range(first, first + count):
        if number:
            ops = [["ones", [[1]]], ["add_", [-1, 0]]]
            apply(runner, {"ops": ops, "drops": [0, 1]}, named=["n"])
        else:
            ops = [["ones", [[1]]]]
            apply(runner, {"ops": ops, "keeps": {"n": 0}})


def apply(runner: Runner, structure: dict[str, Any], **more: Any) -> None:
    """Apply a frame and commit it."""
    reply, _ = runner.apply(Frame(structure=msgspec.Raw(msgspec.msgpack.encode(structure)), **more), [])
    assert reply.refused is None, reply
    assert not reply.errors, reply.errors
    runner.commit()


def count_of(session: Any) -> float:
    held = session.engine.names["n"]
    return float(session.engine.to_numpy(held)[0])


def test_every_frame_of_a_story_is_what_it_was(folder: Path) -> None:
    story = Story()
    runner = new_runner(folder)
    states: dict[int, str] = {}
    for event in story.events:
        event.act(runner)
        runner.commit()
        states[runner.session.frames_applied] = fingerprint(runner.session)
    replay = Replay(Source.of(folder), None)
    seen = {replay.frame: fingerprint(replay.session)}
    for _ in replay.steps():
        seen[replay.frame] = fingerprint(replay.session)
    assert {frame: seen[frame] for frame in states} == states
    runner.close(keep=True)


def test_a_rewind_is_recovered_and_the_frames_before_it_too(folder: Path) -> None:
    runner = Runner(spec(), folder)
    counting(runner, 3)
    runner.travel("checkpoint", {"name": "three"})
    counting(runner, 4, 3)
    assert count_of(runner.session) == 7
    assert runner.travel("rewind", {"name": "three"})["rewound_at"] == 8
    assert count_of(runner.session) == 3
    runner.commit()
    counting(runner, 1, 9)
    runner.close(keep=True)
    runner = Runner.recover(folder)
    assert (count_of(runner.session), runner.session.frames_applied) == (4, 9)
    replay = Replay(Source.of(folder), 7)
    assert count_of(replay.session) == 7
    replay.advance(8)
    assert count_of(replay.session) == 3
    replay.advance(9)
    assert count_of(replay.session) == 4
    replay.advance(4)
    assert count_of(replay.session) == 4
    runner.close(keep=True)


@pytest.mark.parametrize("commits", [False, True])
def test_a_process_that_ends_in_a_rewind_has_done_it_or_not(folder: Path, commits: bool) -> None:
    runner = Runner(spec(), folder)
    counting(runner, 3)
    runner.travel("checkpoint", {"name": "three"})
    counting(runner, 2, 3)
    runner.travel("rewind", {"name": "three"})
    if commits:
        assert runner._journal is not None
        runner._journal.commit()  # and nothing else: no snapshot replaces the journal
    runner.discard()
    again = Runner.recover(folder)
    assert (count_of(again.session), again.session.frames_applied) == ((3, 6) if commits else (5, 5))
    again.travel("rewind", {"name": "three"})
    again.commit()
    assert count_of(again.session) == 3
    again.travel("forget", {"name": "three"})  # no record names it any more
    again.close(keep=True)
    assert count_of(Runner.recover(folder).session) == 3


class Stopping(Disk):
    """A disk that stops the process before its n-th operation."""

    def __init__(self, after: int) -> None:
        self.left = after

    def _count(self) -> None:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1

    def create(self, path: Path) -> int:
        self._count()
        return super().create(path)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._count()
        super().remove(path)

    def write(self, descriptor: int, pieces: Any, at: int) -> int:
        self._count()
        return super().write(descriptor, pieces, at)


def test_a_session_is_whole_wherever_the_process_ends_in_a_checkpoint_and_a_rewind(tmp_path: Path) -> None:
    outcomes = set()
    for after in range(200):
        folder = tmp_path / str(after) / "s_story"
        folder.parent.mkdir()
        runner = Runner(spec(), folder)
        counting(runner, 3)
        disk = Stopping(after)
        runner.disk = disk
        assert runner._journal is not None
        runner._journal._disk = disk
        done = "nothing"
        try:
            runner.travel("checkpoint", {"name": "three"})
            done = "kept"
            counting(runner, 2, 3)
            done = "counted"
            runner.travel("rewind", {"name": "three"})
            runner.commit()
            done = "rewound"
        except KeyboardInterrupt:
            pass
        runner.discard()
        again = Runner.recover(folder)
        wanted = {"nothing": {3}, "kept": {3, 4, 5}, "counted": {5, 3}, "rewound": {3}}[done]
        assert count_of(again.session) in wanted, (after, done)
        kept = [each.name for each in checkpoints.listed(folder)]
        if done != "nothing":
            assert kept == ["three"]
            again.travel("rewind", {"name": "three"})
            assert count_of(again.session) == 3
        again.close(keep=True)
        outcomes.add(done)
        if done == "rewound":
            break
    assert outcomes == {"nothing", "kept", "counted", "rewound"}


def test_a_checkpoint_keeps_the_journal_that_compactions_would_replace(folder: Path) -> None:
    runner = Runner(spec(), folder, policy=JournalPolicy(journal_bytes=1))
    counting(runner, 3)
    assert runner.compact()
    source = Source.of(folder)
    assert oldest_frame(source) == 3
    with pytest.raises(NotFound, match=r"the journal begins after frame 3.*a checkpoint keeps what follows it"):
        Replay(source, 2)
    runner.travel("checkpoint", {"name": "kept"})
    for number in range(3, 9):
        counting(runner, 1, number)
        assert runner.compact(force=True)
    for frame in range(3, 10):
        assert count_of(Replay(source, frame).session) == frame
    before = sum(path.stat().st_size for path in folder.iterdir())
    runner.travel("forget", {"name": "kept"})
    counting(runner, 1, 9)
    assert runner.compact(force=True)
    assert oldest_frame(source) == 10
    assert sum(path.stat().st_size for path in folder.iterdir()) < before
    runner.close(keep=True)
    assert count_of(Runner.recover(folder).session) == 10


def test_a_checkpoint_that_the_journal_names_is_not_lost(folder: Path) -> None:
    runner = Runner(spec(), folder)
    counting(runner, 2)
    runner.travel("checkpoint", {"name": "a"})
    counting(runner, 2, 2)
    runner.travel("rewind", {"name": "a"})
    runner.travel("checkpoint", {"name": "a"})  # replaces what the record names, after a snapshot
    counting(runner, 1, 5)
    runner.close(keep=True)
    assert count_of(Runner.recover(folder).session) == 3


def test_the_history_goes_through_rewinds_to_forgotten_checkpoints(folder: Path) -> None:
    runner = Runner(spec(), folder)
    counting(runner, 2)
    runner.travel("checkpoint", {"name": "old"})
    counting(runner, 1, 2)
    runner.travel("checkpoint", {"name": "a"})
    counting(runner, 1, 3)
    runner.travel("rewind", {"name": "a"})
    runner.commit()
    counting(runner, 1, 5)
    runner.travel("forget", {"name": "a"})
    assert [row["name"] for row in runner.travel("history", {})["checkpoints"]] == ["old"]
    source = Source.of(folder)
    assert [count_of(Replay(source, frame).session) for frame in range(2, 7)] == [2, 3, 4, 3, 4]
    runner.travel("forget", {"name": "old"})
    assert oldest_frame(source) == 5
    assert not list(folder.glob("checkpoint-*"))
    assert count_of(Replay(source, 6).session) == 4
    runner.close(keep=True)
    assert count_of(Runner.recover(folder).session) == 4


def test_damage_to_a_checkpoint_is_found_and_the_session_goes_on(folder: Path) -> None:
    runner = Runner(spec(), folder)
    counting(runner, 2)
    runner.travel("checkpoint", {"name": "a"})
    (file,) = folder.glob("checkpoint-*")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(JournalDamaged, match=r"checkpoint-.*digest"):
        runner.travel("rewind", {"name": "a"})
    counting(runner, 1, 2)
    assert count_of(runner.session) == 3
    index = folder / checkpoints.INDEX
    index.write_bytes(index.read_bytes().replace(b'"a"', b'"b"'))
    with pytest.raises(JournalDamaged, match=r"checkpoints\.json.*digest"):
        runner.travel("history", {})
    assert runner.compact(force=True)
    runner.close(keep=True)
    assert count_of(Runner.recover(folder).session) == 3


def test_the_number_of_checkpoints_has_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_CHECKPOINTS", 2)
    runner = Runner(spec(), folder)
    counting(runner, 1)
    for name in ("a", "b", "a"):
        runner.travel("checkpoint", {"name": name})
    with pytest.raises(GradwireError, match="has 2 checkpoints, the maximum"):
        runner.travel("checkpoint", {"name": "c"})
    assert len(list(folder.glob("checkpoint-*"))) == 1  # the same state under two names
    runner.close()


def test_the_disk_limit_counts_checkpoints(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path, durability="applied", max_data_bytes=300_000) as server, server.http() as http:
        session = http.post("/v1/sessions", json={}).headers["location"]
        frame = {"ops": [["rand", [[10_000]], "x"]]}
        assert http.post(f"{session}/frames", json=frame).status_code == 200
        codes = [http.post(f"{session}/checkpoints", json={"name": str(i)}) for i in range(12)]
        refused = [code for code in codes if code.status_code != 201]
        assert not refused  # the same state is one file
        for number in range(12):
            http.post(f"{session}/frames", json={"ops": [["add_", ["x", 1.0]]]})
            reply = http.post(f"{session}/checkpoints", json={"name": f"n{number}"})
            if reply.status_code != 201:
                break
        assert reply.json()["extra"]["setting"] == "GRADWIRE_MAX_DATA_BYTES"
        assert http.post(f"{session}/frames", json={"ops": [["add_", ["x", 1.0]]]}).status_code == 200


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_the_search_needs_no_lasting_value(folder: Path) -> None:
    runner = Runner(spec(), folder)
    for number in range(5):
        ops = [["zeros", [[2]]], ["zeros" if number == 2 else "ones", [[2]]], ["div", [0, 1]], ["add", [2, 0]]]
        apply(runner, {"ops": ops, "drops": [0, 1, 2, 3]})
    found = search(Source.of(folder), "nan", "", Backends(), lambda: False)
    assert found is not None
    assert (found.frame, found.op, found.index, found.shape) == (3, "div", 2, [2])
    assert search(Source.of(folder), "inf", "", Backends(), lambda: False) is None
    with pytest.raises(GradwireError, match="look for nan, inf, nonfinite"):
        search(Source.of(folder), "zero", "", Backends(), lambda: False)
    runner.close()


# A recording


def recorded(folder: Path, tmp_path: Path) -> Path:
    runner = Runner(spec(), folder)
    counting(runner, 2)
    runner.travel("checkpoint", {"name": "two"})
    counting(runner, 3, 2)
    runner.travel("rewind", {"name": "two"})
    runner.commit()
    counting(runner, 2, 6)
    file = tmp_path / "recording.tar"
    file.write_bytes(recording.record(Source.of(folder), Backends()))
    runner.close()
    return file


def altered(file: Path, change: Any) -> Path:
    """The recording with other digests."""
    made = file.with_name("altered.tar")
    with tarfile.open(file) as old, tarfile.open(made, "w") as new:
        for member in old:
            data = old.extractfile(member)
            assert data is not None
            content = data.read()
            if member.name == recording.DIGESTS:
                content = msgspec.msgpack.encode(change(msgspec.msgpack.decode(content)))
            recording._add(new, member.name, content)
    return made


def test_a_recording_is_the_same_when_it_is_run_again(folder: Path, tmp_path: Path, capsys: Any) -> None:
    file = recorded(folder, tmp_path)
    outcome = recording.compare(file)
    assert outcome.difference is None
    assert outcome.frames == 8
    assert replay_command([str(file)]) == 0
    assert "8 frames" in capsys.readouterr().out


def test_the_first_difference_of_a_replay_is_told(folder: Path, tmp_path: Path, capsys: Any) -> None:
    def change(rows: list[Any]) -> list[Any]:
        for frame, digests in rows:
            if frame >= 4:
                for key in digests:
                    digests[key] = "0" * 16
        return rows

    file = altered(recorded(folder, tmp_path), change)
    found = recording.compare(file).difference
    assert found is not None
    assert (found.frame, found.name, found.shape, found.expected) == (4, "n", [1], "0" * 16)
    assert replay_command([str(file)]) == 1
    assert "differs first after frame 4" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"not a tar", b"\0" * 20_000])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest, match="no recording of a session"):
        recording.compare(file)
    assert replay_command([str(file)]) == 2
    assert replay_command([str(tmp_path / "missing")]) == 2


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "journal-1.log", "x/recording.json"])
def test_a_recording_writes_no_other_files(folder: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "file.tar"
    with tarfile.open(file, "w") as archive:
        recording._add(archive, name, b"x")
    with pytest.raises(InvalidRequest, match="no recording"):
        recording.compare(file)


# Over REST


def test_the_routes_refuse_strangers_and_nonsense(live: LiveServer) -> None:
    with live.http() as http, live.http(live.other_key) as stranger:
        session = http.post("/v1/sessions", json={}).headers["location"]
        for method, path, body in (
            ("GET", "history", None), ("POST", "checkpoints", {"name": "a"}), ("POST", "rewind", {"checkpoint": "a"}),
            ("POST", "fork", {}), ("POST", "past", {"frame": 0}), ("PUT", "past", {"frame": 0}),
            ("GET", "history/search", None), ("GET", "history/recording", None), ("DELETE", "checkpoints/a", None),
        ):  # fmt: skip
            assert stranger.request(method, f"{session}/{path}", json=body).status_code == 404, path
        assert http.post(f"{session}/rewind", json={"checkpoint": "a"}).status_code == 404
        assert http.post(f"{session}/checkpoints", json={"name": "a/b"}).status_code == 422
        assert http.post(f"{session}/checkpoints", json={"name": ""}).status_code == 422
        assert http.post(f"{session}/past", json={"frame": -1}).status_code == 422
        assert http.post(f"{session}/past", json={"frame": 7}).status_code == 404
        assert http.post(f"{session}/fork", json={"frame": 7}).status_code == 404
        assert http.put(f"{session}/past", json={"frame": 0}).status_code == 422
        assert http.get(f"{session}/history/search?value=zero").status_code == 422
        http.delete(session)


def test_a_fork_counts_for_the_quota_and_a_repeated_request_makes_one(live: LiveServer) -> None:
    with live.http() as http:
        session = http.post("/v1/sessions", json={}).headers["location"]
        http.post(f"{session}/frames", json={"ops": [["ones", [[2]], "x"]]})
        once = {"Idempotency-Key": "the same"}
        made = {http.post(f"{session}/fork", json={}, headers=once).headers["location"] for _ in range(3)}
        assert len(made) == 1
        past = http.post(f"{session}/past", json={"frame": 1})
        assert past.json()["past_of"] == session.rpartition("/")[2]
        assert http.get(f"{session}/history/search").json() == {"found": None}
        last = http.post(f"{session}/fork", json={})
        for method, path, body in (
            ("POST", "fork", {}), ("POST", "past", {"frame": 1}), ("GET", "history/search", None),
        ):  # fmt: skip
            refused = http.request(method, f"{session}/{path}", json=body)
            assert refused.status_code == 429
            assert refused.json()["extra"]["setting"] == "GRADWIRE_MAX_KEY_SESSIONS"
        assert http.get(f"{session}/history").status_code == 200
        for url in (session, *made, past.headers["location"], last.headers["location"]):
            assert http.delete(url).status_code == 204


def test_a_fork_is_durable_as_its_session(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path, durability="applied") as server, server.http() as http:
        session = http.post("/v1/sessions", json={}).headers["location"]
        http.post(f"{session}/frames", json={"ops": [["ones", [[2]], "x"]]})
        fork = http.post(f"{session}/fork", json={}).headers["location"]
        http.post(f"{fork}/frames", json={"ops": [["add_", ["x", 1.0]]]})
    with live_server(data_dir=tmp_path, durability="applied") as server, server.http() as http:
        assert values(http, fork) == [2, 2]
        assert values(http, session) == [1, 1]


def values(http: httpx.Client, session: str) -> Any:
    return http.get(f"{session}/names/x", headers={"accept": "application/json"}).json()["values"]


@pytest.mark.parametrize("host", ["inline", "process"])
def test_a_server_that_is_killed_in_rewinds_and_forks_loses_nothing(tmp_path: Path, host: str) -> None:
    settings = {"data_dir": tmp_path, "durability": "applied", "session_host": host}
    for pause in (0.02, 0.1):
        with server_process(**settings) as server:
            with server.http() as http:
                session = http.post("/v1/sessions", json={}).headers["location"]
                http.post(f"{session}/frames", json={"ops": [["ones", [[1000]], "x"]]})
                assert http.post(f"{session}/checkpoints", json={"name": "one"}).status_code == 201
                http.post(f"{session}/frames", json={"ops": [["add_", ["x", 1.0]]]})

            def travel(server: Any = server, session: str = session) -> None:
                with server.http() as http:
                    try:
                        for _ in range(200):
                            http.post(f"{session}/fork", json={})
                            http.post(f"{session}/rewind", json={"checkpoint": "one"})
                            http.post(f"{session}/frames", json={"ops": [["add_", ["x", 1.0]]]})
                    except httpx.TransportError:
                        pass  # it was killed

            thread = threading.Thread(target=travel)
            thread.start()
            time.sleep(pause)
            os.kill(server.process.pid, signal.SIGKILL)
            thread.join()
        with server_process(**settings) as server, server.http() as http:
            assert set(values(http, session)) in ({1}, {2})
            for row in http.get("/v1/sessions").json()["sessions"]:
                assert set(values(http, f"/v1/sessions/{row['id']}")) in ({1}, {2})
            assert http.post(f"{session}/rewind", json={"checkpoint": "one"}).status_code == 200
            assert set(values(http, session)) == {1}


def test_a_server_restarts_between_checkpoint_and_rewind(tmp_path: Path) -> None:
    settings = {"data_dir": tmp_path, "durability": "applied"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with server_process("--port", str(port), **settings) as server:
        session = gradwire.connect(server.url, server.api_key)
        tensor = gradwire.zeros(3)
        session.checkpoint("before")
        tensor.add_(1)
        session.synchronize()
        os.kill(server.process.pid, signal.SIGKILL)
    with server_process("--port", str(port), **settings):
        session.rewind("before")
        assert tensor.tolist() == [0, 0, 0]
        assert (tensor + 1).tolist() == [1, 1, 1]
        session.close()


def test_a_session_in_a_group_does_not_travel(tmp_path: Path) -> None:
    with live_server(data_dir=tmp_path, durability="applied") as server, server.http() as http:
        session = http.post("/v1/sessions", json={}).headers["location"]
        group = {"group": "world", "rank": 0, "world_size": 1, "timeout_s": 60.0}
        assert http.post(f"{session}/groups", json=group).status_code == 201
        for path, body in (("checkpoints", {"name": "a"}), ("fork", {}), ("fork", {"frame": 0})):
            refused = http.post(f"{session}/{path}", json=body)
            assert refused.status_code == 422
            assert "is in group world" in refused.json()["detail"]
        assert http.delete(f"{session}/groups/world").status_code == 204
        assert http.post(f"{session}/checkpoints", json={"name": "a"}).status_code == 201


def test_the_commands_find_a_nan_and_replay_a_journal(live: LiveServer, tmp_path: Path, capfd: Any) -> None:
    where = ["--url", live.url, "--api-key", live.api_key]
    with gradwire.connect(live.url, live.api_key) as session:
        x = gradwire.ones(2)
        for number in range(4):
            ((x - 1) / (0 if number == 2 else 1)).sum().item()
        done = CliRunner().invoke(app, ["sessions", "bisect", session.id, "--nan", *where])
        assert done.exit_code == 0, done.output
        assert "div made a NaN in a tensor of shape [2]" in " ".join(done.output.split())
        assert f"{__file__}:" in done.output
        done = CliRunner().invoke(app, ["sessions", "bisect", session.id, "--inf", "--json", *where])
        assert (done.exit_code, done.output.strip()) == (0, "null")
        done = CliRunner().invoke(app, ["sessions", "bisect", session.id, "--inf", *where])
        assert "none of what the journal keeps made an infinity" in done.output
        file = tmp_path / "run.tar"
        done = CliRunner().invoke(app, ["sessions", "export", session.id, str(file), "--journal", *where])
        assert done.exit_code == 0, done.output
        capfd.readouterr()
        done = CliRunner().invoke(app, ["sessions", "replay", str(file)])
        assert done.exit_code == 0, done.output
        assert "all alike, bit for bit" in capfd.readouterr().out
    with gradwire.connect(live.url, live.api_key, durability="none") as session:
        done = CliRunner().invoke(app, ["sessions", "bisect", session.id, *where])
        assert done.exit_code == 1
        assert "has no journal" in done.output
