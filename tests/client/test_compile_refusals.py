"""A body that cannot be replayed runs each time, and the function says why."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest

import gradwire as torch


def reads_an_item(x):
    return x * x.sum().item()


def decides(x):
    return x if x.sum() > 0 else -x


def shows(x):
    print(x.shape)
    return x + 1


def rolls_dice(x):
    return x * random.random()


def asks_numpy(x):
    return x * float(np.random.rand())


def looks_at_the_clock(x):
    return x * (time.perf_counter() * 0 + 1)


LOG = []
NUMBERS = itertools.count()


def keeps_a_list(x):
    LOG.append(1)
    return x + len(LOG)


def counts(x):
    return x + next(NUMBERS)


def hooks(x):
    y = x.clone().requires_grad_()
    y.register_hook(lambda g: g * 2)
    (y * 2).sum().backward()
    return y.grad


UNFIT = [reads_an_item, decides, shows, rolls_dice, asks_numpy, looks_at_the_clock, keeps_a_list, counts, hooks]


@pytest.mark.parametrize("function", UNFIT, ids=lambda f: f.__name__)
def test_a_body_that_cannot_be_replayed_runs_each_time_and_says_why(function, session):
    compiled = torch.compile(function)
    ran = 0
    for _ in range(7):
        compiled(torch.randn(4, 5))
        ran += 1
    stats = compiled.stats()
    assert stats["replayed"] == 0
    assert stats["ran"] == ran
    assert stats["reasons"], function
    assert compiled.__name__ in compiled.explain()


def test_what_cannot_be_replayed_is_an_error_where_that_is_wanted(session):
    compiled = torch.compile(reads_an_item, fullgraph=True)
    with pytest.raises(ValueError, match="reads a value"):
        for _ in range(9):
            compiled(torch.randn(4, 5))


def test_a_body_that_waits_for_a_thread_that_records_is_run_as_it_is(session):
    import threading

    def f(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(torch.ones(3) + 1))
        thread.start()
        thread.join(240)
        return x + found[0]

    compiled = torch.compile(f)
    for _ in range(2):
        assert compiled(torch.ones(3)).tolist() == [3, 3, 3]
    assert compiled.stats()["replayed"] == 0


def test_a_body_that_takes_batches_of_workers_is_run_as_it_is(session):
    class Made(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return torch.ones(2) * i

    loader = torch.utils.data.DataLoader(Made(), batch_size=2, num_workers=2)

    def f(x):
        for batch in loader:
            x = x + batch.sum()
        return x

    compiled = torch.compile(f)
    assert compiled(torch.zeros(())).item() == 12
    assert compiled(torch.zeros(())).item() == 12
    assert compiled.stats()["replayed"] == 0
