"""A transient failure is replayed as the same failure, with the same effects."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.autograd.registry import CONTROLS
from gradwire_engine.runtime import deadline
from gradwire_protocol import envelope
from gradwire_protocol.errors import LimitExceeded
from gradwire_protocol.frames import Chunk, Frame, Payload, Reply, Structure
from gradwire_server.durable.recovery import recover
from gradwire_server.durable.store import read_spec
from gradwire_server.hosting.runner import Runner
from gradwire_server.settings.session_spec import JournalPolicy, SessionSpec
from tests.server.story import CLIENT, fingerprint, policy

BASE = CLIENT << 32
SECONDS = 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s_replay"


@pytest.fixture
def runner(folder: Path) -> Iterator[Runner]:
    limits = {"max_frame_seconds": SECONDS, "max_tensor_bytes": 1 << 20}
    found = Runner(SessionSpec(id="s_replay", durability="applied", seed=3, limits=limits), folder, policy=policy())
    found.join(0, "program", 0)
    yield found
    found.close(keep=True)


def tell(runner: Runner, seq: int, *ops: Any, reads: Any = (), **fields: Any) -> Reply:
    """Apply a frame of a program and write it down."""
    structure = msgspec.Raw(envelope.encode_part(Structure(ops=list(ops), reads=list(reads))))
    frame = Frame(seq=seq, client=CLIENT, first=BASE + 100 * seq, structure=structure, **fields)
    reply, _ = runner.apply(frame, [])
    assert reply.refused is None, reply.refused
    runner.commit()
    return reply


def replayed(runner: Runner, folder: Path) -> str:
    """What the session of the folder is when all of its journal is applied again, beside the runner that has it."""
    found = recover(runner.disk, folder, read_spec(folder))
    found.journal.close()
    found.manifest.close()
    return fingerprint(found.session)


class Clock:
    """Time stands still until it is asked for the ``late``-th time, and is over then."""

    def __init__(self, late: int) -> None:
        self.asked, self.late, self.now = 0, late, time.monotonic()

    def __call__(self) -> float:
        self.asked += 1
        return self.now + (1e6 if self.asked > self.late else 0)


@pytest.mark.parametrize("late", range(2, 9))
def test_a_frame_whose_time_was_over_is_replayed_up_to_the_same_record(
    runner: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    tell(runner, 1, ["ones", [[2]]], ["requires_grad_", [0]], ["zeros", [[3]]])
    ops: list[Any] = [
        ["randn", [[2]]],
        ["mul", [0, -1]],
        ["sum", [1]],
        ["backward", [[2], [None]]],
        ["sgd_step", [[-1], [None], "float"]],
        ["add_", [-2, "float"]],
        ["randn", [[4]]],
    ]
    with monkeypatch.context() as patch:
        patch.setattr(deadline, "monotonic", Clock(late))
        reply = tell(runner, 2, *ops, external=[BASE + 100, BASE + 101], scalars=[0.5, 2.0])
    assert [problem.code for problem in reply.errors] == ["time_exceeded"]
    assert runner.snapshots_taken == (reply.errors[0].op in ("backward", "sgd_step", "add_"))
    if not runner.snapshots_taken:
        assert replayed(runner, folder) == fingerprint(runner.session)
    after = tell(runner, 3, ["randn", [[2]]], reads=[-1, -2], external=[BASE + 100, BASE + 101])
    assert after.values[0].error is None
    before = fingerprint(runner.session)
    runner.close(keep=True)
    back = Runner.recover(folder)
    assert fingerprint(back.session) == before
    back.close(keep=True)


def test_a_write_that_ran_out_of_time_is_replayed_without_a_snapshot(
    runner: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "compact", lambda *_: False)
    tell(runner, 1, ["ones", [[2]]], ["requires_grad_", [0]], ["zeros", [[3]]])
    for seq, record in ((2, ["add_", [-2, "float"]]), (3, ["sgd_step", [[-1], [None], "float"]])):
        with monkeypatch.context() as patch:
            patch.setattr(deadline, "monotonic", Clock(1))
            reply = tell(runner, seq, record, external=[BASE + 100, BASE + 101], scalars=[1.0])
        assert [problem.extra["begun"] for problem in reply.errors] == [False]
    assert replayed(runner, folder) == fingerprint(runner.session)


def test_an_op_that_failed_by_a_defect_has_drawn_no_random_numbers(
    runner: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "compact", lambda *_: False)
    engine = runner.session.engine

    def broken(*_: Any) -> Any:
        engine.generator.words(np, 64)
        raise AssertionError("a defect")

    with monkeypatch.context() as patch:
        patch.setitem(CONTROLS, "set_name", broken)
        reply = tell(runner, 1, ["ones", [[2]]], ["set_name", [0, "x"]], ["randn", [[2]]])
    assert [problem.code for problem in reply.errors] == ["internal"]
    assert replayed(runner, folder) == fingerprint(runner.session)


def test_uploads_that_came_again_are_let_go_of_in_a_replay_too(runner: Runner, folder: Path) -> None:
    piece = memoryview(np.arange(64, dtype=np.uint8).tobytes())

    def send(transfer: int) -> None:
        runner.add_chunk(CLIENT, Chunk(transfer, 0, 64), piece)

    upload = ["upload", ["payload", "uint8", [64]]]
    send(1)
    first = tell(runner, 1, upload, reads=[0], payloads=[Payload(upload=1)])
    send(1)
    again = tell(runner, 1, upload, reads=[0], payloads=[Payload(upload=1)])
    assert again == first
    assert not runner.session.uploads
    assert replayed(runner, folder) == fingerprint(runner.session)
    send(1)  # what is under way now is not what the next repetition lets go of
    assert list(runner.session.uploads) == [(CLIENT, 1)]
    runner.commit()
    assert replayed(runner, folder) == fingerprint(runner.session)


def test_an_upload_that_the_disk_had_no_room_for_fails_its_frame_by_that_limit(tmp_path: Path) -> None:
    folder = tmp_path / "s_replay"
    runner = Runner(SessionSpec(id="s_replay", durability="applied"), folder, policy=JournalPolicy(1 << 30, 1 << 16))
    runner.join(0, "program", 0)
    piece = memoryview(bytes(1 << 17))
    with pytest.raises(LimitExceeded):
        runner.add_chunk(CLIENT, Chunk(1, 0, piece.nbytes), piece)
    upload = ["upload", ["payload", "uint8", [piece.nbytes]]]
    reply = tell(runner, 1, upload, payloads=[Payload(upload=1)])
    assert [problem.code for problem in reply.errors] == ["limit_exceeded"]
    assert reply.errors[0].extra["setting"] == "GRADWIRE_MAX_DATA_BYTES"
    assert replayed(runner, folder) == fingerprint(runner.session)
    runner.close(keep=True)
