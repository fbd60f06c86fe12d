"""What a program calls between two reads is recorded ahead of it, and comes with the first read."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from tests.cutting_relay import cutting_relay

import gradwire
from gradwire._core.session.current_session import connect
from gradwire._core.wire.embedded_server import embedded_server

TURNS = 7
SEEN = 4
"""From this turn on, what follows comes with the first read. In the first turn there is no gradient to remove yet, so
that its frame has another form than those of the others."""


@pytest.fixture(autouse=True)
def patient(alone, uncut, monkeypatch):
    """A session in which nothing was learnt; values are kept for as long as a test takes, however busy the machine."""
    monkeypatch.setattr("gradwire._core.session.read_ahead.KEPT_S", 60.0)
    return alone


def leaves(lib, count=3):
    found = [lib.arange(1.0, 4.0 + i, requires_grad=True) for i in range(count)]
    if lib is gradwire:
        lib.current_session().synchronize()  # sent, so that all steps' frames have one form
    return found


def loss_of(weights, scale):
    return sum((w * scale).sin().sum() for w in weights)


def triple(p):
    p.grad.mul_(3)


def forget(weights):
    for w in weights:
        w.grad = None


def plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


def beside_torch(program, turns=TURNS):
    """Run turns of a program on both, which must see the same. The round trips of each turn."""
    found, taken = {}, []
    for lib in (torch, gradwire):
        turn_of, seen = program(lib), []
        for turn in range(turns):
            before = 0 if lib is torch else lib.current_session().link.round_trips
            seen.append([plain(value) for value in turn_of(turn)])
            if lib is gradwire:
                taken.append(lib.current_session().link.round_trips - before)
        found[lib] = seen
    for turn, (theirs, ours) in enumerate(zip(found[torch], found[gradwire], strict=True)):
        assert len(theirs) == len(ours)
        for a, b in zip(theirs, ours, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6, err_msg=f"turn {turn}")
    return taken


READS = {
    "numpy": lambda lib, p: p.grad.numpy(),
    "tolist": lambda lib, p: p.grad.tolist(),
    "element": lambda lib, p: p.grad[1].item(),
    "sum": lambda lib, p: float(p.grad.sum()),
    "norm": lambda lib, p: p.grad.norm().item(),
    "detach": lambda lib, p: p.grad.detach().numpy(),
    "view": lambda lib, p: p.grad.reshape(-1).max().item(),
    "leaf": lambda lib, p: p.detach().numpy(),
    "comparison": lambda lib, p: bool(p.grad[0] < 0.5),
}


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("name", READS)
def test_gradients_read_one_by_one_are_one_round_trip(name, new):
    read = READS[name]

    def program(lib):
        kept = leaves(lib)

        def turn(number):
            weights = [w.detach().clone().requires_grad_() for w in kept] if new else kept
            loss_of(weights, 1.0 + number).backward()
            seen = [read(lib, p) for p in weights]
            forget(kept)
            return seen

        return turn

    assert beside_torch(program)[SEEN:] == [1, 1, 1]


def test_calls_without_history_come_ahead_too():
    def program(lib):
        weights = leaves(lib)

        def turn(number):
            loss = loss_of(weights, 1.0 + number)
            loss.backward()
            seen = [loss.item()]
            with lib.no_grad():
                seen += [p.norm().item() for p in weights]
            forget(weights)
            return seen

        return turn

    assert beside_torch(program)[SEEN:] == [1, 1, 1]


def test_a_step_with_its_loss_and_norms_of_gradients_is_one_round_trip():
    def program(lib):
        weights = leaves(lib)
        optimizer = lib.optim.SGD(weights, lr=0.01)

        def turn(number):
            optimizer.zero_grad()
            loss = loss_of(weights, 2.0)
            loss.backward()
            optimizer.step()
            return [loss.item(), *(float(p.grad.norm()) for p in weights), *(p.detach().sum().item() for p in weights)]

        return turn

    assert beside_torch(program)[SEEN:] == [1, 1, 1]


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_add_up_over_several_backwards(to_none):
    def program(lib):
        weights = leaves(lib)
        optimizer = lib.optim.SGD(weights, lr=0.01)

        def turn(number):
            optimizer.zero_grad(set_to_none=to_none)
            loss_of(weights, 1.0 + number).backward()
            loss_of(weights, 2.0).backward()
            return [p.grad.numpy() for p in weights]

        return turn

    assert beside_torch(program)[SEEN:] == [1, 1, 1]


def test_gradients_that_stay_are_read_in_one_round_trip():
    def program(lib):
        weights = leaves(lib)

        def turn(number):
            loss_of(weights, 1.0 + number).backward()
            return [p.grad.numpy() for p in weights]

        return turn

    assert beside_torch(program)[SEEN:] == [1, 1, 1]


def test_a_gradient_is_one_object_however_it_came():
    weights = leaves(gradwire)
    for _ in range(TURNS):
        loss_of(weights, 2.0).backward()
        for p in weights:
            first = p.grad
            first.numpy()
            assert p.grad is first
            first.mul_(2.0)
            assert p.grad.numpy().tolist() == first.numpy().tolist()
        forget(weights)


CHANGES = {
    "removed": lambda lib, w: setattr(w[1], "grad", None),
    "assigned": lambda lib, w: setattr(w[1], "grad", lib.ones(4)),
    "scaled": lambda lib, w: w[1].grad.mul_(3.0),
    "scaled without history": lambda lib, w: w[1].grad.data.mul_(3.0),
    "other scaled": lambda lib, w: w[2].grad.neg_(),
    "added to": lambda lib, w: loss_of(w, 0.5).backward(),
    "added to one": lambda lib, w: w[2].sum().backward(),
    "zeroed": lambda lib, w: lib.optim.SGD(w, lr=0.1).zero_grad(set_to_none=False),
    "none": lambda lib, w: lib.optim.SGD(w, lr=0.1).zero_grad(),
    "stepped": lambda lib, w: lib.optim.SGD(w, lr=0.1).step(),
    "clipped": lambda lib, w: lib.nn.utils.clip_grad_norm_(w, 0.1),
    "set": lambda lib, w: w[1].data.fill_(0.25),
    "filled": lambda lib, w: lib.nn.init.constant_(w[2], 2.0),
    "not required": lambda lib, w: w[1].requires_grad_(False),
    "computed": lambda lib, w: (w[1] * 2).sum().item(),
    "dead": lambda lib, w: w.pop(),
}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_program_does_between_two_reads_is_seen(name, last):
    """In the seventh turn, when the reads come ahead, something happens after the first or second of them."""

    def program(lib):
        weights = leaves(lib)

        def turn(number):
            loss_of(weights, 1.0 + number).backward()
            seen = []
            for i, p in enumerate(list(weights)):
                seen += [None if p.grad is None else p.grad.numpy().copy(), p.detach().sum().item()]
                if number == 6 and i == last:
                    CHANGES[name](lib, weights)
                    del p
            forget(weights)
            return seen

        return turn

    assert beside_torch(program, 9)[5] == 1


def test_hooks_see_and_change_what_is_read():
    def program(lib):
        weights, seen = leaves(lib), []
        weights[0].register_hook(lambda g: g * 2)
        weights[1].register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))

        def turn(number):
            del seen[:]
            loss_of(weights, 1.0 + number).backward()
            found = [p.grad.numpy() for p in weights]
            forget(weights)
            return [*seen, *found]

        return turn

    beside_torch(program)


def test_a_hook_that_comes_later_is_called():
    def program(lib):
        weights = leaves(lib)

        def turn(number):
            if number == 8:
                weights[1].register_hook(lambda g: g * 5)
                weights[2].register_post_accumulate_grad_hook(triple)
            loss_of(weights, 1.0 + number).backward()
            found = [p.grad.numpy() for p in weights]
            forget(weights)
            return found

        return turn

    beside_torch(program, 9)


def test_retained_gradients_are_read_in_one_round_trip():
    def program(lib):
        weights = leaves(lib)

        def turn(number):
            hidden = [w * (1.0 + number) for w in weights]
            for h in hidden:
                h.retain_grad()
            loss_of(hidden, 2.0).backward()
            found = [h.grad.numpy() for h in hidden]
            forget(weights)
            return found

        return turn

    assert beside_torch(program)[SEEN:] == [1, 1, 1]


@pytest.mark.filterwarnings("ignore:.*create_graph=True")
def test_gradients_with_a_history_have_it():
    def program(lib):
        weights = leaves(lib)

        def turn(number):
            loss_of(weights, 1.0 + number).backward(create_graph=True)
            seen = [p.grad.detach().numpy().copy() for p in weights]
            assert all(p.grad.requires_grad for p in weights)
            sum(p.grad.sum() for p in weights).backward()
            seen += [p.grad.detach().numpy() for p in weights]
            forget(weights)
            return seen

        return turn

    beside_torch(program)


def test_several_parts_of_a_model_have_gradients_or_not():
    def program(lib):
        weights = leaves(lib)

        def turn(number):
            loss_of(weights[: 2 + number % 2], 2.0).backward()
            seen = [None if p.grad is None else p.grad.numpy() for p in weights]
            forget(weights)
            return seen

        return turn

    beside_torch(program, 10)


def test_what_changes_its_operands_is_never_made_ahead(round_trips):
    x, mean, var = gradwire.arange(6.0).reshape(3, 2), gradwire.zeros(2), gradwire.ones(2)
    for number in range(10):
        total = (x * 2.0).sum()
        assert total.item() == 30.0
        if number < 8:
            gradwire.nn.functional.batch_norm(x, mean, var, training=True).numpy()
    assert mean.tolist() == pytest.approx([2.0 * (1 - 0.9**8), 3.0 * (1 - 0.9**8)], rel=1e-5)


def test_numbers_that_differ_are_other_calls():
    def program(lib):
        table = lib.arange(100.0)

        def turn(number):
            loss = (table * (1.0 + number)).sum()
            return [loss.item(), table[number].item(), table[2 * number + 1].item(), (table[0] * -0.0).item()]

        return turn

    beside_torch(program, 10)


def test_frames_whose_calls_differ_each_time_still_bring_what_is_read_next(round_trips):
    table = gradwire.arange(100.0)
    for number in range(12):
        first, second = table[number], table[number + 1]
        round_trips()
        assert (first.item(), second.item()) == (number, number + 1)
        taken = round_trips()
    assert taken == 1


def test_an_error_of_a_call_made_ahead_is_met_where_the_program_makes_the_call(round_trips):
    table, index = gradwire.arange(5.0), gradwire.tensor([3])
    for number in range(10):
        index.fill_(9 if number == 7 else 3)
        total = (table * 2.0).sum()
        assert total.item() == 20.0
        chosen = table.index_select(0, index)
        if number == 7:
            with pytest.raises(IndexError) as met:
                chosen.numpy()
            text = Path(__file__).read_text(encoding="utf-8").splitlines()
            line = next(i for i, each in enumerate(text, 1) if "chosen = table.index_select" in each)
            assert f"{__file__}:{line}" in str(met.value)
            assert (table + 1).sum().item() == 15.0
        else:
            assert chosen.tolist() == [3.0]
    assert not gradwire.current_session().link.failed


def test_a_poisoned_gradient_is_met_where_it_was(round_trips):
    weights, index = leaves(gradwire), gradwire.tensor([1])
    for number in range(10):
        index.fill_(9 if number == 7 else 1)
        loss = loss_of(weights, 2.0)
        chosen = weights[1].index_select(0, index).sum()
        (loss + chosen).backward()
        if number == 7:
            with pytest.raises(IndexError, match="index_select"):
                weights[0].grad.numpy()
        elif number != 8:  # the first one after it still has what the failed backward left
            found = [p.grad.numpy() for p in weights]
            assert found[1][1] == pytest.approx(2 * np.cos(4.0) + 1, rel=1e-5)
        forget(weights)


def test_what_failed_before_does_not_fail_another_read():
    weights, bad = leaves(gradwire), None
    for number in range(10):
        loss_of(weights, 2.0).backward()
        if number == 7:
            bad = gradwire.zeros(2)[gradwire.tensor([7])]
            with pytest.raises(IndexError):
                bad.numpy()
        if number == 8:
            weights[1].grad = None
            weights[1].grad = bad.sum() * gradwire.ones(4)
        assert weights[0].grad.numpy()[0] == pytest.approx(2 * np.cos(2.0), rel=1e-5)
        if number == 8:
            with pytest.raises(IndexError):
                weights[1].grad.numpy()
        else:
            weights[1].grad.numpy()
        forget(weights)


def test_what_is_gone_fails_nothing():
    kept = leaves(gradwire)
    for number in range(TURNS):
        weights = kept if number < 4 else leaves(gradwire)
        if number == 4:
            kept = None
        loss_of(weights, 2.0).backward()
        found = [p.grad.numpy() for p in weights]
        for i, value in enumerate(found):
            np.testing.assert_allclose(value, 2 * np.cos(2 * np.arange(1.0, 4.0 + i)), rtol=1e-4)
        forget(weights)
    assert not gradwire.current_session().link.failed


def test_what_was_not_wanted_is_dropped_and_not_made_again_soon():
    weights, session = leaves(gradwire), gradwire.current_session()
    ahead = []
    for number in range(13):
        before = session.recorded
        loss_of(weights, 2.0).backward()
        made = session.recorded - before
        weights[0].grad.numpy()
        ahead.append(session.recorded - before - made - 1)
        if number < 6:
            for p in weights[1:]:
                p.grad.numpy()
        forget(weights)
    assert ahead == [0, 0, 0, 2, 2, 2, 2, *[0] * 6]
    session.synchronize()
    assert session.describe()["contents"]["tensors"] == 3


def test_nothing_is_held_longer_than_without():
    weights, session = leaves(gradwire), gradwire.current_session()
    held = []
    for _ in range(TURNS):
        loss_of(weights, 2.0).backward()
        for p in weights:
            p.grad.norm().item()
        forget(weights)
        session.synchronize()
        session.synchronize()
        held.append(session.describe()["contents"]["tensors"])
    assert held == [3] * TURNS


def test_a_thread_that_records_in_between_is_seen():
    weights = leaves(gradwire)
    for number in range(10):
        loss_of(weights, 2.0).backward()
        for i, p in enumerate(weights):
            factor = 1.0
            if number >= 6 and i == 1:
                thread = threading.Thread(target=lambda q=p: q.grad.mul_(3.0))
                thread.start()
                thread.join()
                factor = 3.0
            wanted = factor * 2 * np.cos(2 * np.arange(1.0, 4.0 + i))
            np.testing.assert_allclose(p.grad.numpy(), wanted, rtol=1e-4)
        forget(weights)


def test_threads_read_the_same_gradients():
    weights, failed = leaves(gradwire), []
    wanted = [2 * np.cos(2 * np.arange(1.0, 4.0 + i)) for i in range(3)]

    def look():
        for p, value in zip(weights, wanted, strict=True):
            try:
                np.testing.assert_allclose(p.grad.numpy(), value, rtol=1e-4)
            except AssertionError as error:
                failed.append(error)

    for _ in range(12):
        loss_of(weights, 2.0).backward()
        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        forget(weights)
    assert not failed


def test_sessions_know_nothing_of_each_other(alone):
    with gradwire.connect() as other:
        gradwire._core.session.current_session._current = alone
        ours = leaves(gradwire)
        gradwire._core.session.current_session._current = other
        theirs = leaves(gradwire)
        for _ in range(TURNS):
            before = alone.link.round_trips, other.link.round_trips
            for weights in (ours, theirs):
                loss_of(weights, 2.0).backward()
            for p, q in zip(ours, theirs, strict=True):
                assert p.grad.tolist() == q.grad.tolist()
            taken = alone.link.round_trips - before[0], other.link.round_trips - before[1]
            forget([*ours, *theirs])
        assert taken == (1, 1)


def test_a_compiled_call_in_between_is_seen():
    weights = leaves(gradwire)

    @gradwire.compile
    def double(gradient):
        gradient.mul_(2.0)

    for number in range(12):
        loss_of(weights, 2.0).backward()
        for i, p in enumerate(weights):
            factor = 1.0
            if number >= 7 and i == 1:
                double(weights[1].grad)
                factor = 2.0
            wanted = factor * 2 * np.cos(2 * np.arange(1.0, 4.0 + i))
            np.testing.assert_allclose(p.grad.numpy(), wanted, rtol=1e-4)
        forget(weights)


def test_a_profile_has_the_program_s_own_calls():
    weights = leaves(gradwire)
    for number in range(TURNS):
        if number == 4:
            profile = gradwire.profiler.profile()
            profile.start()
        loss_of(weights, 2.0).backward()
        for p in weights:
            p.grad.norm().item()
        forget(weights)
    profile.stop()
    counts = {event.key: event.count for event in profile.key_averages()}
    assert next(n for key, n in counts.items() if key.endswith("norm")) == 3 * (TURNS - 4)


def test_values_that_are_too_old_are_read_again(monkeypatch):
    monkeypatch.setattr("gradwire._core.session.read_ahead.KEPT_S", 0.0)

    def program(lib):
        weights = leaves(lib)

        def turn(number):
            loss_of(weights, 1.0 + number).backward()
            seen = [p.grad.numpy() for p in weights]
            forget(weights)
            return seen

        return turn

    assert set(beside_torch(program)) == {3}


@pytest.mark.parametrize("seed", range(3))
def test_a_connection_that_is_cut_changes_nothing(seed):
    server = embedded_server()
    cuts = [int(n) for n in np.random.default_rng(seed).integers(1, 3000, 8)]
    before = gradwire._core.session.current_session._current
    with cutting_relay(urlsplit(server.url).port, cuts) as relay:
        direct = gradwire.open_session(server.url, server.api_key)
        session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=120)
        weights = leaves(gradwire)
        for number in range(30):
            loss_of(weights, 1.0 + number).backward()
            for i, p in enumerate(weights):
                wanted = np.arange(1.0, 4.0 + i, dtype=np.float32) * np.float32(1.0 + number)
                np.testing.assert_allclose(p.grad.numpy(), np.cos(wanted) * (1 + number), rtol=1e-3, atol=1e-4)
            forget(weights)
        assert session.link.reconnects > 0
        assert direct.describe()["contents"]["frames_applied"] == session.frames
        session.close()
        direct.close()
    gradwire._core.session.current_session._current = before
