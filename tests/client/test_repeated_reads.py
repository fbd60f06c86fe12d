"""A value that was just read needs no second round trip, unless it may have changed."""

from __future__ import annotations

import numpy as np
import pytest

import gradwire
from gradwire._core.tensor import reading
from gradwire.nn.utils.rnn import pack_padded_sequence

pytestmark = pytest.mark.usefixtures("session")


@pytest.fixture
def patient(monkeypatch):
    """Values are remembered for as long as a test takes, however busy the machine."""
    monkeypatch.setattr(reading, "REMEMBERED_S", 60.0)


def test_a_loss_is_printed_and_added_up_for_one_round_trip(round_trips, patient):
    loss = (gradwire.arange(4.0) ** 2).mean()
    round_trips()
    text, total = f"{loss.item():.2f}", 0.0
    total += loss.item() * 4 + float(loss)
    assert text == "3.50" and total == 17.5 and bool(loss) and loss.tolist() == 3.5
    assert round_trips() == 1


def test_what_is_read_is_the_programs_own(patient):
    x = gradwire.arange(3.0)
    x.numpy()[0] = 5
    first = x.numpy()
    first[1] = 7
    assert x.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("change", [
    lambda x: x.add_(1), lambda x: x[:1].fill_(1), lambda x: x.data.add_(1), lambda x: x.detach().view(-1).add_(1),
    lambda x: setattr(x, "data", gradwire.ones(1)), lambda x: x.copy_(gradwire.ones(1)),
])  # fmt: skip
def test_a_change_is_seen(change, patient):
    x = gradwire.zeros(1)
    assert x.item() == 0.0
    change(x)
    assert x.item() == 1.0


def test_a_parameter_is_read_anew_after_a_step(patient):
    weight = gradwire.nn.Parameter(gradwire.ones(1))
    optimizer = gradwire.optim.SGD([weight], lr=0.5)
    assert weight.item() == 1.0
    (weight * 1).sum().backward()
    assert weight.item() == 1.0
    optimizer.step()
    assert weight.item() == 0.5


def test_an_error_is_not_hidden_by_a_value_that_is_known(patient):
    x = gradwire.ones(1)
    assert x.item() == 1.0
    gradwire.arange(3)[gradwire.tensor([5])]
    with pytest.raises(IndexError):
        x.item()


def test_large_tensors_are_not_kept(round_trips, patient):
    x = gradwire.zeros(reading.REMEMBERED_BYTES)
    round_trips()
    x.tolist()
    x.tolist()
    assert round_trips() == 2


def test_another_clients_write_is_seen_after_a_moment(monkeypatch, round_trips):
    monkeypatch.setattr(reading, "REMEMBERED_S", 0.0)
    x = gradwire.zeros(1)
    x.item()
    round_trips()
    x.item()
    assert round_trips() == 1


LENGTHS = {
    "numbers": lambda: gradwire.tensor([3, 2]), "LongTensor": lambda: gradwire.LongTensor([3, 2]),
    "an array": lambda: gradwire.from_numpy(np.array([3, 2])), "on the CPU": lambda: gradwire.tensor([3, 2]).cpu(),
}  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_that_the_program_gave_are_not_asked_for(name, round_trips):
    x = gradwire.arange(12.0).reshape(2, 3, 2)
    lengths = LENGTHS[name]()
    round_trips()
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    assert round_trips() == 0 and packed.batch_sizes.tolist() == [2, 2, 1]


@pytest.mark.parametrize("change", [
    lambda t: t.sub_(1), lambda t: t[:1].fill_(2), lambda t: t.data.sub_(1), lambda t: t.detach().sub_(1),
    lambda t: setattr(t, "data", gradwire.tensor([2, 1])), lambda t: t.__setitem__(0, 2),
    lambda t: gradwire.sub(t, 1, out=t),
])  # fmt: skip
def test_lengths_that_were_changed_are_asked_for(change):
    lengths = gradwire.tensor([3, 2])
    change(lengths)
    packed = pack_padded_sequence(gradwire.ones(2, 3, 1), lengths, batch_first=True)
    assert len(packed.batch_sizes) == 2
