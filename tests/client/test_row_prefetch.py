"""Iteration over a tensor yields PyTorch's rows and reads them together."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest
from tests.side_by_side import Claims, name_of, same

import gradwire

pytestmark = pytest.mark.usefixtures("session")

claims = Claims()


@claims
def numbers_of_rows(lib: Any) -> Any:
    return [[v.item() for v in lib.arange(5)], [bool(v) for v in lib.tensor([True, False])]]


@claims
def rows_of_a_matrix(lib: Any) -> Any:
    return [row.tolist() for row in lib.arange(6.0).reshape(3, 2)]


@claims
def stretches_that_begin_where_a_tensor_says(lib: Any) -> Any:
    data, at = lib.arange(20), lib.tensor([3, 0, 9])
    return lib.stack([data[i : i + 4] for i in at]), lib.stack([data[1 + i : i + 1 + 4] for i in at])


@claims
def arithmetic_on_rows(lib: Any) -> Any:
    at = lib.tensor([1, 5, -3])
    whole = [int(v * 3 - 1) for v in at], [int(2 - v) for v in at], [int(lib.add(v, 2, alpha=3)) for v in at]
    return [*whole, [(v / 2).item() for v in at], [(v + 2.5).item() for v in at], [v + True for v in at]]


@claims
def arithmetic_that_wraps_around(lib: Any) -> Any:
    return [int(v * 4 + 1) for v in lib.tensor([2**62, -(2**61), 7])]


@claims
def arithmetic_in_small_integers(lib: Any) -> Any:
    return [int(v + 100) for v in lib.tensor([100, 1], dtype=lib.int8)]


@claims
def rows_see_what_is_written_between(lib: Any) -> Any:
    x = lib.tensor([1, 1, 2, 0, 3])
    found = []
    for i, v in enumerate(x):
        if i == 1:
            x[2] = 7
        if i == 3:
            v.fill_(9)
        found.append(v.item())
    return found, x


@claims
def rows_see_what_is_written_to_data(lib: Any) -> Any:
    x = lib.arange(4)
    rows = iter(x)
    data, first = x.data, next(rows).item()
    data.fill_(8)
    return first, [v.item() for v in rows]


@claims
def rows_stay_when_the_tensor_gets_other_memory(lib: Any) -> Any:
    x = lib.arange(4)
    rows = iter(x)
    first = next(rows).item()
    x.data = lib.arange(10, 14)
    return first, [v.item() for v in rows], x


@claims
def results_on_rows_keep_their_value(lib: Any) -> Any:
    x = lib.tensor([1, 2, 3])
    moved = [v + 1 for v in x]
    x.zero_()
    return [int(v) for v in moved], [int(v + 1) for v in x]


@claims
def results_on_rows_can_be_written_to(lib: Any) -> Any:
    found = []
    for v in lib.tensor([1, 2, 3]):
        w = v + 1
        w *= 10
        found.append(int(w))
    return found


@claims
def values_are_the_programs_own(lib: Any) -> Any:
    rows = list(lib.arange(4.0).reshape(2, 2))
    rows[0].numpy()[0] = 50
    rows[0].tolist()
    return [row.numpy().sum().item() for row in rows[1:]]


@claims
def rows_of_as_many_elements_as_the_data_say(lib: Any) -> Any:
    x = lib.tensor([[1, 1, 2, 0, 0, 3], [1, 1, 1, 1, 1, 2], [4, 5, 6, 7, 8, 9]])
    runs = [[int(v) for v in lib.unique_consecutive(row)] for row in x]
    return runs, [[int(v) for v in row[row > 1]] for row in x], [len(row[row > 1]) for row in x]


@claims
def rows_of_a_long_tensor_are_views_with_history(lib: Any) -> Any:
    x = lib.arange(10_000.0).reshape(5000, 2).requires_grad_()
    rows = iter(x)
    with lib.no_grad():  # what an iteration records does not depend on where its later rows are asked for
        rest = list(rows)
    first, last = next(iter(x)), [*x][-1]
    (first.sum() + 2 * last.sum()).backward()
    x.data[4999] = 7.0
    return len(rest), x.grad.sum(0), x.grad[[0, 1, 4998, 4999]], last, type(last.grad_fn).__name__


@pytest.mark.parametrize("claim", list(claims), ids=name_of)
def test_as_in_pytorch(claim: Any) -> None:
    same(claim)


def test_all_rows_are_read_in_one_round_trip(round_trips: Any) -> None:
    x = gradwire.arange(50)
    round_trips()
    assert [v.item() for v in x] == list(range(50))
    assert round_trips() == 1


def test_a_batch_of_stretches_makes_one_round_trip(round_trips: Any) -> None:
    data, at = gradwire.arange(100), gradwire.randint(90, (16,))
    round_trips()
    batch = gradwire.stack([data[i + 1 : i + 1 + 8] for i in at])
    assert round_trips() == 1
    assert batch.shape == (16, 8)


def test_a_counter_that_begins_at_a_row_does_not_keep_what_it_was() -> None:
    for start in gradwire.arange(2):
        count = start
        for _ in range(3000):
            count = count + 1
        assert int(count) == 3000 + int(start)
        assert count._row_of is None


def test_rows_that_nobody_reads_make_no_round_trip(round_trips: Any) -> None:
    x = gradwire.arange(6.0)
    round_trips()
    total = sum(v + 1 for v in x)
    assert round_trips() == 0
    assert total.item() == 21


def test_rows_do_not_keep_each_other() -> None:
    rows = iter(gradwire.arange(10))
    first, second = next(rows), next(rows)
    assert [first.item(), (second + 1).item()] == [0, 2]
    gone = ref(first)
    del first, rows
    assert gone() is None


def test_a_long_vector_is_not_as_many_tensors_at_once() -> None:
    rows = iter(gradwire.arange(20_000))
    assert [int(next(rows)) for _ in range(3)] == [0, 1, 2]
    alive = sum(type(each) is gradwire.Tensor for each in gc.get_objects())
    assert alive < 10_000
