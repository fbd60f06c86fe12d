"""A snapshot holds a whole session; replays fail where the first run failed; epochs fence clients."""

from __future__ import annotations

import gc
import hashlib
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.backends import Backends
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import NotImageable, restore, take
from gradwire_protocol.errors import MalformedFrame, Superseded, VersionMismatch
from gradwire_protocol.frames import Frame, Payload, Problem, Reply, Structure
from tests.engine.recordings import looks, travelled
from tests.strict_backend import StrictBackend

MINE = 1 << 32
"""Ids of client 1 are this plus a counter from 1."""


def frame(ops: list[Any], reads: list[int] | None = None, **data: Any) -> Frame:
    encoded = msgspec.msgpack.encode(Structure(ops=ops, reads=reads or [], drops=data.pop("drops", [])))
    return Frame(structure=msgspec.Raw(encoded), **({"client": 1} | data))


def apply(session: Session, ops: list[Any], reads: list[int] | None = None, **data: Any) -> Reply:
    return session.apply(frame(ops, reads, **data))[0]


def value(tensor: Tensor) -> Any:
    return tensor.engine.to_numpy(tensor).tolist()


def again(session: Session, **options: Any) -> Session:
    return restore(travelled(take(session)), session.limits, **options)


# Images


def test_looking_at_a_session_and_taking_an_image_change_nothing():
    session = Session()
    ops = [["ones", [[4]]], ["requires_grad_", [0, True]], ["mul", [0, 0]], ["slice", [1, 0, "int", "int"]]]
    apply(session, [*ops, ["mul_", [1, "float"]]], scalars=[1, 2, 2.0])
    before = looks(session)
    session.tensors()
    session.graph()
    assert "AsStridedBackward0" in {row["grad_fn"] for row in session.tensors()}
    first = take(session)
    assert take(session).facts == first.facts
    assert looks(session) == before


def test_a_chain_of_100_000_ops_is_taken_restored_and_goes_backward():
    session = Session(Limits(max_ops_per_frame=200_000))
    count = 100_000
    chain = [["add", [i, "float"]] for i in range(count)]
    apply(
        session,
        [["ones", [[]]], ["requires_grad_", [0, True]], *chain],
        scalars=[1.0] * count,
        drops=[*range(1, count)],
    )
    session = restore(take(session), session.limits)
    assert session.describe()["graph_nodes"] == count
    external = [MINE + 1, MINE + 1 + count]
    reply, buffers = session.apply(frame([["backward", [[-2], [None]]], ["grad_of", [-1]]], [-2, 0], external=external))
    assert [np.frombuffer(b, np.float32).item() for b in buffers] == [100_001, 1]
    assert not reply.errors


def test_views_versions_and_data_of_its_own_version_still_share_memory():
    session = Session()
    ops = [["ones", [[2, 3]]], ["t", [0]], ["data_of", [0]], ["mul_", [1, "float"]], ["mul_", [2, "float"]]]
    apply(session, ops, scalars=[2.0, 3.0])
    session = again(session)
    base, view, data = list(session.ids.values())
    assert base.storage is view.storage is not data.storage
    assert (base.storage.version, data.storage.version) == (1, 1)
    assert session.engine.account.live == base.storage.nbytes == 24
    apply(session, [["fill_", [-1, "float"]]], external=[MINE + 2], scalars=[8.0])
    assert value(data) == value(base) == [[8.0] * 3] * 2


def test_what_was_changed_since_it_was_saved_is_still_refused():
    session = Session()
    apply(session, [["ones", [[2]]], ["requires_grad_", [0, True]], ["exp", [0]], ["sum", [1]], ["detach", [1]]])
    apply(session, [["mul_", [-1, "float"]]], external=[MINE + 4], scalars=[2.0])
    session = again(session)
    reply = apply(session, [["backward", [[-1], [None]]]], external=[MINE + 3])
    assert "modified in place" in reply.errors[0].detail


def test_poison_is_one_problem_however_many_results_share_it():
    session = Session()
    apply(session, [["nope", []], ["neg", [0]], ["ones", [[2]]], ["ones", [[3]]], ["add_", [2, 3]]])
    session = again(session)
    reply = apply(session, [], [-1, -2, -3], external=[MINE + 1, MINE + 2, MINE + 3])
    assert [v.error for v in reply.values] == [0, 0, 1]
    assert [error.code for error in reply.errors] == ["unknown_op", "shape_mismatch"]
    assert apply(session, [], [-1], external=[MINE + 3]).errors == []


def test_the_strict_backend_is_written_and_read_by_its_own_means():
    session = Session(backends=Backends(cpu=StrictBackend()))
    apply(session, [["rand", [[3, 4]]], ["requires_grad_", [0, True]], ["t", [0]], ["matmul", [0, 1]], ["sum", [2]]])
    session = again(session, backends=Backends(cpu=StrictBackend()))
    reply, buffers = session.apply(
        frame([["backward", [[-1], [None]]], ["grad_of", [-2]]], [0], external=[MINE + 4, MINE + 1])
    )
    assert not reply.errors and buffers


def test_an_unfinished_upload_goes_on_where_it_was():
    session = Session()
    data = np.arange(6, dtype=np.float32)
    session.add_chunk(1, 5, 0, 24, memoryview(data.tobytes())[:10])
    session = again(session)
    session.add_chunk(1, 5, 10, 24, memoryview(data.tobytes())[10:])
    taking = frame([["upload", ["payload", "float32", [6], "cpu"]]], [0], payloads=[Payload(upload=5)])
    _, buffers = session.apply(taking)
    assert bytes(buffers[0]) == data.tobytes()


def test_kept_replies_and_known_structures_are_there_again():
    session = Session()
    number, _, _ = session.join(0, "one")
    encoded = msgspec.msgpack.encode(Structure(ops=[["rand", [[2]]]], reads=[0]))
    digest = hashlib.blake2b(encoded, digest_size=16).digest()
    sent = Frame(seq=1, client=number, first=(number << 32) + 1, structure=msgspec.Raw(encoded), hash=digest)
    reply, buffers = session.apply(sent)
    session = again(session)
    kept, data = session.apply(sent)
    assert kept == reply and [bytes(b) for b in data] == [bytes(b) for b in buffers]
    assert session.clients[number].reply_bytes == 8
    by_hash = Frame(seq=2, client=number, first=(number << 32) + 2, hash=digest)
    assert session.apply(by_hash)[0].refused is None


def test_what_is_transient_is_named_and_holds_an_image_up_until_it_ends():
    session = Session()
    apply(session, [["enter_dual_level", ["int"]]], scalars=[0])
    with pytest.raises(NotImageable, match="forward mode"):
        take(session)
    apply(session, [["exit_dual_level", ["int"]]], scalars=[0])
    ops = [["ones", [[2]]], ["requires_grad_", [0, True]], ["sum", [0]], ["place_of", [1]]]
    apply(session, [*ops, ["begin_backward", [[1], [None], None, [2], [0]]]])
    with pytest.raises(NotImageable, match="backward waits"):
        take(session)
    apply(session, [["abandon_backward", [-1]]], external=[MINE + 4])
    take(session)


def test_an_image_of_another_form_is_refused():
    image = take(Session())
    image.facts["format"] = 99
    with pytest.raises(VersionMismatch, match="99"):
        restore(image)


# Frames


def test_a_record_that_fails_takes_its_numbers_with_it():
    session = Session()
    ops = [
        ["nope", []],
        ["mul", [0, "float"]],
        ["full", [[1], "float"]],
        ["add", [2, "float", 1, 5]],
        ["full", [[1], "int"]],
    ]
    reply, buffers = session.apply(frame(ops, [2, 4], scalars=[2.0, 3.0, 4.0, 5]))
    assert [np.frombuffer(b, np.float32).tolist() for b in buffers[:1]] == [[3.0]]
    assert np.frombuffer(buffers[1], np.int64).tolist() == [5]
    assert reply.values[0].error is None


def test_a_refused_frame_is_not_remembered():
    session = Session()
    encoded = msgspec.msgpack.encode(Structure(ops=[["ones", [[1]]]]))
    digest = hashlib.blake2b(encoded, digest_size=16).digest()
    refused = session.apply(Frame(client=1, first=5 << 32, structure=msgspec.Raw(encoded), hash=digest))[0].refused
    assert refused is not None and refused.code == "malformed_frame"
    assert not session.structures


def test_results_that_nobody_counted_do_not_confuse_what_is_dropped():
    session = Session()
    reply = apply(session, [["zeros", [[0, 3]]], ["unbind", [0]]], drops=[0, 1])
    assert reply.refused is None and reply.errors == []


# Replays


def problem(index: int, **extra: Any) -> Problem:
    return Problem("out_of_memory", "no memory left", op="some op", seq=1, index=index, extra=extra)


def test_a_replayed_failure_poisons_what_it_poisoned_then():
    session = Session()
    ops = [["ones", [[2]]], ["mul", [0, "float"]], ["neg", [1]], ["add", [0, "float"]]]
    reply, buffers = session.apply(frame(ops, [2, 3], scalars=[2.0, 5.0]), failures={1: problem(1)})
    assert reply.errors == [problem(1)]
    assert reply.values[0].error == 0
    assert np.frombuffer(buffers[0], np.float32).tolist() == [6, 6]


def test_a_replayed_write_or_backward_that_failed_has_its_consequences():
    session = Session()
    start = [["ones", [[2]]], ["requires_grad_", [0, True]], ["sum", [0]], ["ones", [[2]]]]
    session.apply(
        frame([*start, ["add_", [2, "float"]], ["backward", [[1], [None]]]], scalars=[1.0]),
        failures={4: problem(4), 5: problem(5)},
    )
    client = session.clients[1]
    assert session.ids[MINE + 3].storage.poison == problem(4)
    assert client.failed_backward == problem(5)
    assert session.ids[MINE + 1].grad is None
    assert client.failed_writes == [session.ids[MINE + 3].storage]


def test_a_frame_that_ran_out_of_time_is_replayed_up_to_there():
    session = Session()
    late = problem(1, setting="GRADWIRE_MAX_FRAME_SECONDS")
    reply, _ = session.apply(frame([["ones", [[1]]]] * 4, [0, 1, 2, 3]), failures={1: late})
    assert [v.error for v in reply.values] == [None, 0, 0, 0]


def test_limits_of_memory_do_not_stop_what_was_applied_before():
    session = Session(Limits(max_tensor_bytes=16, max_session_bytes=16))
    assert apply(session, [["ones", [[9]]]]).errors
    assert not session.apply(frame([["ones", [[9]]]]), failures={})[0].errors
    assert apply(session, [["ones", [[1]]]]).errors


# Epochs


def test_each_join_begins_an_epoch_and_fences_the_one_before():
    session = Session()
    number, expected, epoch = session.join(0, "one")
    assert (number, expected, epoch) == (2, 1, 1)
    assert session.join(number, "one", 1) == (2, 1, 2)
    assert session.join(number, "two") == (2, 1, 3)
    with pytest.raises(Superseded, match="another program"):
        session.join(number, "one", 2)
    old = apply(session, [["ones", [[1]]]], client=number, epoch=2)
    assert old.refused is not None and old.refused.code == "superseded"
    assert session.frames_applied == 0
    assert apply(session, [["ones", [[1]]]], client=number, epoch=3).refused is None
    assert apply(session, [["ones", [[1]]]], client=number).refused is None
    with pytest.raises(MalformedFrame, match="no client 9"):
        session.join(9, "one")


def test_epochs_survive_an_image():
    session = Session()
    session.join(0, "one")
    session.join(2, "one", 1)
    session = again(session)
    with pytest.raises(Superseded):
        session.join(2, "two", 2)
    assert session.join(2, "one", 2) == (2, 1, 3)


def test_taking_an_image_keeps_nothing_of_the_session_alive():
    """Not even until the next garbage collection: what a client releases then would count as memory in use."""
    gc.collect()
    gc.disable()
    try:
        session = Session()
        session.ids[1] = session.engine.from_numpy(np.ones(1000, np.float32))
        take(session)
        session.ids.clear()
        assert session.engine.account.live == 0
    finally:
        gc.enable()
