"""Many reads of a storage at once: in order, as many as said, with the error of any."""

from __future__ import annotations

import threading

import pytest

from gradwire_server.durable.shared.in_parallel import AT_ONCE, BATCH, in_parallel


def test_reads_run_at_once() -> None:
    """Each waits until all of them have begun."""
    begun = threading.Barrier(AT_ONCE)

    def read(number: int) -> int:
        begun.wait(60)
        return number * 2

    assert list(in_parallel(read, range(2 * AT_ONCE))) == list(range(0, 4 * AT_ONCE, 2))


def test_only_a_batch_is_read_ahead() -> None:
    read: list[int] = []
    results = in_parallel(read.append, range(10 * BATCH))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(read) <= BATCH
    assert list(in_parallel(str, ())) == []


def test_an_error_is_raised() -> None:
    results = in_parallel(lambda number: 1 // number, (1, 0))
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
