"""``torch.Size`` and ``torch.device`` accept and refuse what PyTorch's do."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from tests.side_by_side import built_in

import gradwire

pytestmark = pytest.mark.usefixtures("session")

SIZES = {
    "of nothing": lambda t: t.Size(),
    "of a list": lambda t: t.Size([1, 2]),
    "of a generator": lambda t: t.Size(i for i in range(3)),
    "of an array": lambda t: t.Size(np.array([1, 2])),
    "of integer tensors": lambda t: t.Size([t.tensor(2), 3]),
    "of an integer tensor": lambda t: t.Size(t.ones(3, dtype=t.int64)),
    "of a tensor": lambda t: t.Size(t.ones(3)),
    "of a float": lambda t: t.Size([1.5]),
    "of text": lambda t: t.Size("ab"),
    "of a number": lambda t: t.Size(3),
    "and a tuple": lambda t: t.Size([1]) + (2, 3),
    "and a size": lambda t: t.Size([1]) + t.Size([2]),
    "behind a tuple": lambda t: (2, 3) + t.Size([1]),
    "and a list": lambda t: t.Size([1]) + [2],
    "behind a list": lambda t: [2] + t.Size([1]),
    "and a float": lambda t: t.Size([1]) + (1.5,),
    "behind text": lambda t: ("a", *()) + t.Size([1]),
    "twice": lambda t: t.Size([1, 2]) * 2,
    "two times": lambda t: 2 * t.Size([1, 2]),
    "half": lambda t: t.Size([1, 2]) * 0.5,
    "a part": lambda t: t.Size([1, 2, 3])[1:],
    "an entry": lambda t: t.Size([1, 2, 3])[-1],
    "copied": lambda t: copy.deepcopy(t.Size([1, 2])),
    "of a tensor's shape": lambda t: t.ones(2, 3).shape + t.ones(4).shape,
}


def outcome(call: Any, t: Any) -> Any:
    try:
        found = call(t)
    except Exception as error:
        return built_in(error)
    return repr(found), isinstance(found, t.Size)


@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_made_of_ints(name: str) -> None:
    assert outcome(SIZES[name], gradwire) == outcome(SIZES[name], torch)


DEVICES = [
    "cpu", "cpu:0", "cuda", "cuda:0", "cuda:10", "meta", "cuda:", "cuda:01", "cuda: 2", "cuda:2 ", "cuda:2.", "cpu:-1",
    "cuda:?2", "cuda:2+cuda:3", "other", "other:0", "", "cpu:x", -1, 2, None, 1.5,
]  # fmt: skip


@pytest.mark.parametrize("spelled", DEVICES, ids=repr)
def test_a_device_has_a_kind_and_an_index_in_plain_digits(spelled: Any) -> None:
    def described(t: Any) -> Any:
        try:
            return str(t.device(spelled))
        except Exception as error:
            return built_in(error)

    expected = described(torch)
    if spelled == 2 or spelled == -1:  # an index alone is PyTorch's accelerator, here always a GPU of the server
        expected = "cuda:2" if spelled == 2 else expected
    assert described(gradwire) == expected
