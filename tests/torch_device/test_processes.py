"""Loaders with workers, forked processes, and tensors handed to other processes."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import gradwire_torch

gradwire_torch.register()
D = "gradwire"
pytestmark = pytest.mark.filterwarnings("ignore:pin_memory_device is deprecated", "ignore:The argument 'device' of")


class Made(Dataset[Any]):
    """Makes its tensors on the device, or hands over one that is there."""

    def __init__(self, given: Any = None) -> None:
        self.given = given

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return torch.ones(2, device=D) if self.given is None else self.given


@pytest.mark.parametrize(
    "options",
    [{}, {"pin_memory": True}, {"pin_memory": True, "pin_memory_device": D}, {"persistent_workers": True}],
    ids=repr,
)
def test_batches_of_workers_are_moved_to_the_device(options: Any) -> None:
    torch.ones(1, device=D).item()
    loader = DataLoader(TensorDataset(torch.arange(8.0), torch.arange(8)), 4, num_workers=2, **options)
    for _ in range(2):
        assert [(x.to(D, non_blocking=True) * y.to(D)).sum().item() for x, y in loader] == [14, 126]


@pytest.mark.parametrize("given", [False, True])
def test_a_worker_that_uses_the_device_is_refused_and_the_program_goes_on(given: bool) -> None:
    x = torch.ones(2, device=D)
    loader = DataLoader(Made(x) if given else Made(), None, num_workers=1)
    with pytest.raises(RuntimeError, match="cannot be handed to another process" if given else "forked from one that"):
        next(iter(loader))
    assert (x + 1).tolist() == [2, 2]


def _bad_fork(answers: Any) -> None:
    torch.manual_seed(3)  # does not touch the parent's session
    answers.put(torch.gradwire._is_in_bad_fork())


def test_a_forked_process_knows_that_it_is_one() -> None:
    torch.ones(1, device=D).item()
    assert not torch.gradwire._is_in_bad_fork()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=_bad_fork, args=(answers,))
    process.start()
    assert answers.get() is True
    process.join(60)
    assert process.exitcode == 0 and not torch.gradwire._is_in_bad_fork()


def test_a_tensor_is_not_handed_to_another_process() -> None:
    queue = torch.multiprocessing.get_context("fork").SimpleQueue()
    with pytest.raises(RuntimeError, match="cannot be handed to another process"):
        queue.put(torch.nn.Linear(2, 2, device=D).weight)
    queue.put(torch.ones(2))
    assert queue.get().tolist() == [1, 1]
