"""Repeated frames, over REST and through a journal."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import httpx
import msgspec
import pytest

from gradwire_protocol import envelope
from gradwire_protocol.frames import ID_BITS, Frame, Structure, structure_hash
from gradwire_server.hosting.opening import open_runner
from gradwire_server.hosting.runner import Runner

from .exchange import frame, post, problem, upload
from .story import fingerprint, new_runner

BASE = 2 << ID_BITS


def test_a_loop_over_rest_is_one_request(http: httpx.Client, session: str) -> None:
    post(http, session, upload([[1.0, 2], [3, 4], [5, 6]], "float32", [3, 2], first=10))
    post(http, session, upload([0.0, 0], "float32", [2], first=11))
    body = frame(
        [["select", [-1, 0, "int"]], ["add_", [-2, 0]], ["sum", [-2]]],
        external=[10, 11], scalars=[0, 1, 2], repeat=3, stacked=[1, -2],
    )  # fmt: skip
    reply = post(http, session, body)
    assert reply["made"] == 4
    sums, totals = (http.get(f"{session}/tensors/{reply['first'] + 2 + i}").json()["values"] for i in range(2))
    assert sums == [3.0, 10.0, 21.0]
    assert totals == [[1.0, 2.0], [4.0, 6.0], [9.0, 12.0]]
    assert http.get(f"{session}/tensors/11").json()["values"] == [9.0, 12.0]


def test_a_loop_over_rest_that_is_too_long_is_refused(http: httpx.Client, session: str) -> None:
    body = frame([["zeros", [[2]]]], repeat=1 << 40)
    found = problem(http.post(f"{session}/frames", json=body), 413, "limit_exceeded")
    assert "GRADWIRE_MAX_OPS_PER_FRAME" in found["detail"]


def apply(runner: Runner, seq: int, ops: list, times: int = 0, scalars: list | None = None, **fields) -> None:
    encoded = envelope.encode_part(Structure(ops=ops))
    message = Frame(
        seq=seq, client=2, first=BASE + 100 * seq, structure=msgspec.Raw(encoded), hash=structure_hash(encoded),
        scalars=scalars or [], repeat=times, **fields,
    )  # fmt: skip
    reply, _ = runner.apply(message, [])
    assert reply.refused is None, reply


@pytest.mark.parametrize("memory", [1 << 20, 1 << 12, 3 * 4800 + 100, 10 * 4800])
def test_a_journal_with_loops_in_it_is_replayed_exactly(tmp_path: Path, memory: int) -> None:
    folder = tmp_path / "s_story"
    runner = new_runner(folder)
    runner.join(0, "program", 0)
    apply(runner, 1, [["randn", [[8, 4]]], ["zeros", [[4]]]])
    step = [["select", [-1, 0, "int"]], ["dropout", [0, 0.5]], ["add_", [-2, 1]], ["expand", [1, [300, 4]]],
            ["clone", [3]]]  # fmt: skip
    if memory < 1 << 20:  # what fails for want of memory, and in which iteration, is no matter of the replay's own
        account = runner.session.engine.account
        account.limits = dataclasses.replace(account.limits, max_session_bytes=account.live + memory)
    apply(runner, 2, step, 8, list(range(8)), external=[BASE + 100, BASE + 101], stacked=[4, -2])
    failed = len(runner.session.failed)
    apply(runner, 3, [["mul_", [-1, "float"]]], scalars=[2.0], external=[BASE + 101])
    before = fingerprint(runner.session)
    runner.commit()
    runner.close(keep=True)
    again = open_runner(runner.spec, folder, "recover")
    try:
        assert (failed > 0) == (memory < 1 << 20)
        assert fingerprint(again.session) == before
    finally:
        again.close()


def test_a_result_that_is_dropped_in_each_iteration_cannot_be_stacked(http: httpx.Client, session: str) -> None:
    body = frame([["ones", [[2]]], ["neg", [0]]], repeat=3, stacked=[1])
    body["structure"]["drops"] = [0, 1]
    found = problem(http.post(f"{session}/frames", json=body), 400, "malformed_frame")
    assert "result 1" in found["detail"]
    body["structure"]["drops"] = [0]
    reply = post(http, session, body)
    assert reply["made"] == 3
    values = http.get(f"{session}/tensors/{reply['first'] + 2}").json()["values"]
    assert values == [[-1.0, -1.0]] * 3
