"""``gradwire.utils.data`` against ``torch.utils.data``, and its own feature: batches made and uploaded ahead."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter, OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire as gw

claims = Claims()
Pair = namedtuple("Pair", ["x", "y"])


def data(lib):
    return lib.utils.data


class Squares:
    """A data set of Python numbers and arrays."""

    def __init__(self, size: int = 7) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int):
        if i >= self.size:
            raise IndexError(i)
        return np.full((2, 2), i, np.float32), i * i


def stream(lib, size: int = 7):
    class Counting(data(lib).IterableDataset):
        def __iter__(self):
            info = data(lib).get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            return iter([float(i) for i in range(first, size, step)])

    return Counting()


def rows(lib, n: int = 10):
    return data(lib).TensorDataset(lib.arange(float(n * 3)).reshape(n, 3), lib.arange(n))


@claims
def tensors_are_batched(lib):
    return list(data(lib).DataLoader(rows(lib), batch_size=4))


@claims
def a_short_batch_can_be_left_out(lib):
    loader = data(lib).DataLoader(rows(lib), batch_size=4, drop_last=True)
    return len(loader), list(loader)


@claims
def arrays_and_numbers_are_batched(lib):
    return list(data(lib).DataLoader(Squares(), batch_size=3))


@claims
def entries_come_one_by_one_without_a_batch_size(lib):
    loader = data(lib).DataLoader(Squares(), batch_size=None)
    return len(loader), list(loader)


@claims
def a_list_is_a_data_set(lib):
    return list(data(lib).DataLoader([1.5, 2.5, 3.5], batch_size=2)), list(data(lib).DataLoader(["a", "b", "c"], 2))


@claims
def a_sampler_is_followed(lib):
    return list(data(lib).DataLoader(rows(lib), batch_size=3, sampler=[4, 1, 9, 0]))


@claims
def a_batch_sampler_is_followed(lib):
    loader = data(lib).DataLoader(rows(lib), batch_sampler=[[0, 2], [5, 5, -1], [3, 4, 5]])
    return len(loader), loader.batch_size, list(loader)


@claims
def streams_are_batched(lib):
    return list(data(lib).DataLoader(stream(lib), batch_size=3)), list(
        data(lib).DataLoader(stream(lib), batch_size=None)
    )


@claims
def streams_drop_their_last(lib):
    return list(data(lib).DataLoader(stream(lib), batch_size=3, drop_last=True))


@claims
def a_collate_function_makes_the_batch(lib):
    return list(data(lib).DataLoader(Squares(), batch_size=3, collate_fn=lambda rows: sum(y for _, y in rows)))


@claims
def subsets_and_concatenations_are_batched(lib):
    d = data(lib)
    some = d.Subset(rows(lib), [5, 1, 7, 2])
    both = d.ConcatDataset([some, rows(lib, 2)])
    return list(d.DataLoader(some, 3)), list(d.DataLoader(both, 4)), len(both), both[-1], (rows(lib) + rows(lib))[12]


@claims
def data_sets_are_stacked(lib):
    d = data(lib)
    tuples, dicts = d.StackDataset(rows(lib), [0.5] * 10), d.StackDataset(a=range(10), b=rows(lib))
    return tuples[3], dicts[4], list(d.DataLoader(dicts, 5)), len(tuples), tuples.__getitems__([1, 2])


@claims
def streams_are_chained(lib):
    d = data(lib)
    return list(d.DataLoader(d.ChainDataset([stream(lib, 3), stream(lib, 2)]), 2)), list(
        stream(lib, 2) + stream(lib, 1)
    )


@claims
def containers_are_collated_part_by_part(lib):
    collate = data(lib).default_collate
    entry = lambda i: {"a": np.arange(2.0) + i, "b": [i, "text"], "c": (lib.ones(2) * i, i / 2), "d": i > 1}
    return collate([entry(1), entry(2)])


@claims
def named_tuples_and_mappings_keep_their_kind(lib):
    collate = data(lib).default_collate
    pairs = collate([Pair(1, np.float32(2)), Pair(3, np.float32(4))])
    ordered = collate([OrderedDict(a=1), OrderedDict(a=2)])
    return type(pairs).__name__, list(pairs), type(ordered).__name__, dict(ordered)


@claims
def numbers_keep_their_kind(lib):
    collate = data(lib).default_collate
    kinds = (
        [1, 2],
        [1.0, 2.0],
        [True, False],
        [np.float32(1), np.float32(2)],
        [np.int16(1), np.int16(2)],
        [b"a", b"b"],
    )
    return [collate(k) for k in kinds]


@claims
def entries_are_converted(lib):
    convert = data(lib).default_convert
    return convert([np.arange(3), {"a": np.float64(2)}, "text", 5, Pair(np.ones(1), 2), (np.zeros(2), 1)])


@claims
def batches_cannot_be_made_of_everything(lib):
    collate = data(lib).default_collate
    bad = (
        [np.zeros(2), np.zeros(3)],
        [object(), object()],
        [[1], [1, 2]],
        [lib.ones(2), lib.ones(3)],
        [np.array(["a"])] * 2,
    )
    return [raises(lambda b=b: collate(b)) for b in bad]


@claims
def samplers_give_indices(lib):
    d = data(lib)
    return (
        list(d.SequentialSampler(range(4))), list(d.BatchSampler(range(7), 3, False)),
        len(d.BatchSampler(range(7), 3, True)),
        sorted(d.RandomSampler(range(9))), len(list(d.RandomSampler(range(3), num_samples=8))),
        len(list(d.RandomSampler(range(3), replacement=True, num_samples=50))),
        sorted(d.SubsetRandomSampler([3, 5, 8])),
        set(d.WeightedRandomSampler([0.0, 1.0, 0.0, 2.0], 60)), sorted(d.WeightedRandomSampler([1.0, 2.0], 2, False)),
    )  # fmt: skip


@claims
def replicas_share_the_data(lib):
    D = data(lib).distributed.DistributedSampler
    plain = [list(D(range(10), 3, rank, shuffle=False)) for rank in range(3)]
    dropped = [list(D(range(10), 3, rank, shuffle=False, drop_last=True)) for rank in range(3)]
    mixed = sorted(i for rank in range(3) for i in D(range(9), 3, rank))
    return plain, dropped, mixed, len(D(range(10), 3, 0))


@claims
def misuse_is_refused(lib):
    d, s = data(lib), [1, 2, 3]
    attempts = [
        lambda: d.DataLoader(s, num_workers=-1), lambda: d.DataLoader(s, timeout=-1),
        lambda: d.DataLoader(s, prefetch_factor=2),
        lambda: d.DataLoader(s, persistent_workers=True), lambda: d.DataLoader(s, shuffle=True, sampler=[1]),
        lambda: d.DataLoader(s, batch_sampler=[[1]], batch_size=2),
        lambda: d.DataLoader(s, batch_sampler=[[1]], shuffle=True),
        lambda: d.DataLoader(s, batch_size=None, drop_last=True), lambda: d.DataLoader(s, batch_size=0),
        lambda: d.DataLoader(s, batch_size=1.5), lambda: d.DataLoader(stream(lib), shuffle=True),
        lambda: d.DataLoader(stream(lib), sampler=[1]), lambda: d.DataLoader(stream(lib), batch_sampler=[[1]]),
        lambda: setattr(d.DataLoader(s), "batch_size", 3), lambda: d.RandomSampler(s, num_samples=-1),
        lambda: d.RandomSampler(s, replacement=1), lambda: d.WeightedRandomSampler([1.0], 0),
        lambda: len(d.DataLoader(stream(lib))),
        lambda: d.WeightedRandomSampler([[1.0]], 1), lambda: d.BatchSampler(s, 0, False),
        lambda: d.BatchSampler(s, 1, 1),
        lambda: d.random_split(s, [1, 1]), lambda: d.random_split(s, [0.5, 0.6]),
        lambda: d.TensorDataset(lib.ones(2), lib.ones(3)),
        lambda: d.ConcatDataset([]), lambda: d.ConcatDataset([stream(lib)]), lambda: d.StackDataset(),
        lambda: d.StackDataset([1], [1, 2]), lambda: list(d.ChainDataset([s])), lambda: d.Dataset()[0],
        lambda: d.distributed.DistributedSampler(s, 2, 2), lambda: d.ConcatDataset([s])[-5],
    ]  # fmt: skip
    return [raises(a) for a in attempts]


@claims
def workers_give_batches_in_order(lib):
    if lib is gw:
        return list(data(lib).DataLoader(Squares(11), batch_size=2, num_workers=3))
    return list(data(lib).DataLoader(Squares(11), batch_size=2))


@claims
def workers_share_a_stream(lib):
    if lib is gw:
        return list(data(lib).DataLoader(stream(lib, 9), batch_size=2, num_workers=2))
    return [lib.tensor(v, dtype=lib.float64) for v in ([0.0, 2.0], [1.0, 3.0], [4.0, 6.0], [5.0, 7.0], [8.0])]


@pytest.mark.parametrize("claim", list(claims), ids=name_of)
def test_it_is_as_under_torch(claim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(claim)


# Orders


def order(**options) -> list:
    return [int(x) for batch in gw.utils.data.DataLoader(range(20), batch_size=3, **options) for x in batch.tolist()]


def test_a_shuffled_order_follows_the_seed():
    gw.manual_seed(5)
    first, second = order(shuffle=True), order(shuffle=True)
    gw.manual_seed(5)
    assert order(shuffle=True) == first != second
    assert sorted(first) == list(range(20))


def test_a_shuffled_order_follows_its_generator():
    seeded = lambda: gw.Generator().manual_seed(3)
    assert order(shuffle=True, generator=seeded()) == order(shuffle=True, generator=seeded()) != list(range(20))


def test_shuffling_makes_no_round_trip(round_trips):
    loader = gw.utils.data.DataLoader(rows(gw, 30), batch_size=4, shuffle=True)
    for x, _ in loader:
        x.sum()
    assert round_trips() == 0


def test_a_split_is_disjoint_and_follows_its_generator():
    for lengths in ([3, 7], [0.5, 0.25, 0.25], [0.3, 0.7]):
        parts = gw.utils.data.random_split(range(10), lengths, gw.Generator().manual_seed(1))
        again = gw.utils.data.random_split(range(10), lengths, gw.Generator().manual_seed(1))
        assert [len(p) for p in parts] == [len(p) for p in torch.utils.data.random_split(range(10), lengths)]
        assert sorted(x for p in parts for x in p) == list(range(10))
        assert [list(p) for p in parts] == [list(p) for p in again]


# Tensors on the server


def test_rows_on_the_server_are_not_uploaded(session):
    set_of_rows = gw.utils.data.TensorDataset(gw.zeros(1000, 500))
    session.synchronize()
    before = session.stats()["bytes_sent"]
    for (x,) in gw.utils.data.DataLoader(set_of_rows, batch_size=100, shuffle=True):
        x.sum()
    session.synchronize()
    assert session.stats()["bytes_sent"] - before < 40_000


def test_a_batch_is_a_copy():
    x = gw.zeros(4, 2)
    for (batch,) in gw.utils.data.DataLoader(gw.utils.data.TensorDataset(x), batch_size=2):
        batch += 1
    assert x.sum().item() == 0


def test_rows_of_a_split_stay_on_the_server(session):
    parts = gw.utils.data.random_split(rows(gw), [6, 4])
    batches = [y.tolist() for part in parts for _, y in gw.utils.data.DataLoader(part, batch_size=4)]
    assert sorted(v for batch in batches for v in batch) == list(range(10))


# Workers


def test_a_worker_knows_what_it_is():
    seen = []

    class Telling(Squares):
        def __getitem__(self, i):
            info = gw.utils.data.get_worker_info()
            seen.append((info.id, info.num_workers, info.dataset is self))
            return i

    started = []
    loader = gw.utils.data.DataLoader(Telling(8), batch_size=2, num_workers=2, worker_init_fn=started.append)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert set(seen) == {(0, 2, True), (1, 2, True)} and sorted(started) == [0, 1]
    assert gw.utils.data.get_worker_info() is None


def test_workers_persist_where_asked_to():
    started = []
    options = dict(batch_size=2, num_workers=2, worker_init_fn=started.append)
    loader = gw.utils.data.DataLoader(Squares(), persistent_workers=True, **options)
    passes = [[y.tolist() for _, y in loader] for _ in range(3)]
    assert passes[0] == passes[1] == passes[2] and len(started) == 2
    loader = gw.utils.data.DataLoader(Squares(), **options)
    list(loader), list(loader)
    assert len(started) == 6


def test_an_exception_of_a_worker_is_raised_at_its_batch():
    class Broken(Squares):
        def __getitem__(self, i):
            if i == 4:
                raise KeyError("the fourth is broken")
            return i

    found: list = []
    with pytest.raises(KeyError, match="fourth") as caught:
        found.extend(batch.tolist() for batch in gw.utils.data.DataLoader(Broken(), batch_size=2, num_workers=2))
    assert found == [[0, 1], [2, 3]] and "worker" in caught.value.__notes__[0]


def test_a_batch_that_takes_too_long_is_an_error():
    class Slow(Squares):
        def __getitem__(self, i):
            time.sleep(2)
            return i

    with pytest.raises(RuntimeError, match=r"timeout=0.1"):
        next(iter(gw.utils.data.DataLoader(Slow(), num_workers=1, timeout=0.1)))


def test_threads_end_with_the_pass():
    before, waiting = threading.active_count(), len(gw.current_session().reader.while_waiting)
    list(gw.utils.data.DataLoader(Squares(), num_workers=3))
    given_up = iter(gw.utils.data.DataLoader(Squares(50), num_workers=3))
    next(given_up)
    del given_up
    deadline = time.monotonic() + 120
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    assert len(gw.current_session().reader.while_waiting) == waiting


def wait_for_the_workers(batches) -> None:
    """Until a batch after those that were taken is fetched."""
    pool = batches._pool
    with pool._arrived:
        assert pool._arrived.wait_for(lambda: batches._tasks[0][0] in pool._done, 240)


def test_the_next_batches_are_uploaded_while_the_program_waits(session):
    loader = gw.utils.data.DataLoader(Squares(12), batch_size=2, num_workers=2)
    batches = iter(loader)
    x, _ = next(batches)
    wait_for_the_workers(batches)
    x.sum().item()
    assert len(batches._uploaded) > 0
    ops = session.recorded
    y, _ = next(batches)
    assert session.recorded == ops, "the batch was on the server already"
    assert y[0, 0, 0].item() == 2.0


def test_batches_made_while_waiting_in_inference_mode_can_be_trained_on():
    batches = iter(gw.utils.data.DataLoader(Squares(12), batch_size=2, num_workers=1))
    first, _ = next(batches)
    wait_for_the_workers(batches)
    with gw.inference_mode():
        first.sum().item()
    x, _ = next(batches)
    assert not x.is_inference()


def test_a_training_loop_with_workers_visits_everything_once():
    seen = Counter()
    for x, y in gw.utils.data.DataLoader(Squares(40), batch_size=4, shuffle=True, num_workers=3):
        x.sum().item()
        seen.update(y.tolist())
    assert seen == Counter(i * i for i in range(40))


def test_torchs_warning_about_too_long_streams():
    class Liar(gw.utils.data.IterableDataset):
        def __len__(self):
            return 2

        def __iter__(self):
            return iter([1, 2, 3])

    with pytest.warns(UserWarning, match="this is number 3"):
        list(gw.utils.data.DataLoader(Liar(), batch_size=None))
