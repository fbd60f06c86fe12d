"""A program takes over another's place in a session: the old one is fenced, and ids and tensors continue."""

from __future__ import annotations

import pytest
from tests.live_server import live_server

import gradwire
from gradwire._core.session import current_session
from gradwire._core.wire.rest import RestClient
from gradwire_protocol.errors import ArgumentError, UnknownTensor


@pytest.fixture(scope="module")
def server():
    with live_server(max_sessions=1000) as found:
        yield found


@pytest.fixture(autouse=True)
def restore_session():
    before = current_session._current
    yield
    current_session._current = before


@pytest.fixture
def program(server):
    """Opens sessions on the server as different programs would; the last one opened is the current one."""
    opened = []

    def start(**options):
        opened.append(gradwire.connect(server.url, server.api_key, patience=20, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def exists(server, session_id):
    rest = RestClient(server.url, server.api_key)
    try:
        return session_id in [row["id"] for row in rest.get("/v1/sessions")["sessions"]]
    finally:
        rest.close()


def test_nothing_of_a_replaced_program_is_applied_and_it_is_told(server, program):
    old = program()
    x = gradwire.ones(3)
    assert x.tolist() == [1, 1, 1]
    new = program(session=old.id, client=old.client)
    applied = new.describe()["contents"]["frames_applied"]
    for _ in range(2):  # and it stays so
        with pytest.raises(gradwire.Superseded, match=f"took the place of client {old.client}"):
            (x + 1).tolist()
    assert new.describe()["contents"]["frames_applied"] == applied
    assert gradwire.zeros(2).tolist() == [0, 0]


def test_the_error_says_what_was_applied(program):
    old = program()
    x = gradwire.ones(3)
    x.tolist()
    frames = old.stats()["acknowledged"]
    program(session=old.id, client=old.client)
    with pytest.raises(gradwire.Superseded) as caught, old.lock:
        (x + 1).tolist()
    assert caught.value.details["answered"] == frames
    assert caught.value.details["unanswered"] == 1
    assert "test_takeover.py" in caught.value.details["lines"][0]


def test_a_replaced_program_that_ends_leaves_the_session(server, program):
    old = program()
    gradwire.ones(3).tolist()
    new = program(session=old.id, client=old.client)
    old.close()
    assert exists(server, new.id)
    assert gradwire.ones(2).tolist() == [1, 1]


def test_the_successor_has_the_same_number_a_higher_epoch_and_ids_of_its_own(program):
    old = program()
    kept = [gradwire.full((2,), float(i)) for i in range(5)]
    kept[4].tolist()
    new = program(session=old.id, client=old.client)
    assert new.client == old.client
    assert new.epoch > old.epoch
    fresh = [gradwire.full((2,), 10.0 + i) for i in range(5)]
    assert not {t._id for t in fresh} & {t._id for t in kept}
    assert [new.tensor(t._id).tolist() for t in kept] == [[float(i)] * 2 for i in range(5)]
    assert [t.tolist() for t in fresh] == [[10.0 + i] * 2 for i in range(5)]


def test_the_successor_finds_tensors_by_name_and_can_go_on_training(program):
    old = program(seed=3)
    weight = gradwire.randn(4, requires_grad=True)
    weight.set_name("weight")
    (weight * 2).sum().backward()
    assert weight.grad.tolist() == [2.0] * 4
    number, values = weight._id, weight.tolist()
    new = program(session=old.id, client=old.client)
    assert new.tensor("weight").tolist() == values
    found = new.tensor(number)
    assert found.tolist() == values
    assert found.requires_grad
    assert found.is_leaf
    (found * 3).sum().backward()
    assert found.grad.tolist() == [5.0] * 4  # onto what the program before had accumulated


def test_an_id_that_is_not_there_is_an_unknown_tensor(program):
    old = program()
    x = gradwire.ones(2)
    x.tolist()
    new = program(session=old.id, client=old.client)
    with pytest.raises(UnknownTensor):
        new.tensor(x._id + 1000)


def test_another_clients_tensor_is_not_to_be_had_by_id(program):
    first = program()
    x = gradwire.ones(2)
    x.tolist()
    beside = program(session=first.id)
    assert beside.client != first.client
    with pytest.raises(ArgumentError, match="client"):
        beside.tensor(x._id)


def test_a_place_that_never_was_cannot_be_taken(program):
    session = program()
    with pytest.raises(gradwire.GradwireError, match="client 77"):
        program(session=session.id, client=77)


def test_places_are_taken_over_again_and_again(program):
    latest = program()
    chain = [latest]
    for i in range(4):
        x = gradwire.full((2,), float(i))
        x.tolist()
        chain.append(program(session=latest.id, client=latest.client))
        assert chain[-1].tensor(x._id).tolist() == [float(i)] * 2
    assert [each.epoch for each in chain] == sorted({each.epoch for each in chain})
    for each in chain[:-1]:
        with pytest.raises(gradwire.Superseded):
            each.synchronize()
    chain[-1].synchronize()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"session": "s_x", "seed": 1}, "seed="),
        ({"session": "s_x", "durability": "none"}, "durability="),
        ({"session": "s_x", "ttl": 3}, "ttl="),
        ({"session": "s_x", "keep": True}, "keep="),
        ({"client": 3}, "session="),
        ({"session": "s_x", "client": -1}, "client"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused_before_anything_is_sent(server, options, text):
    with pytest.raises(ArgumentError, match=text):
        gradwire.connect(server.url, server.api_key, **options)


def test_a_session_that_was_to_be_kept_is_there_when_the_program_has_ended(server, program, recwarn):
    first = program(keep=True, ttl=600)
    assert first.describe()["ttl_s"] == 600
    x = gradwire.zeros(3)
    for _ in range(50):
        x += 1
    with first.lock:
        x += 1
        first.close()  # with ops that were not sent yet
    assert exists(server, first.id)
    second = program(session=first.id, client=first.client)
    assert second.tensor(x._id).tolist() == [51.0] * 3
    RestClient(server.url, server.api_key).delete(f"/v1/sessions/{first.id}")
    assert not recwarn.list


def test_a_session_of_ones_own_ends_with_the_program(server, program):
    first = program()
    gradwire.ones(2).tolist()
    first.close()
    assert not exists(server, first.id)
