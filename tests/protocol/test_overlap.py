"""Common elements of two strided views, against a comparison of all elements, and against PyTorch."""

from __future__ import annotations

import itertools
import random
import time

import pytest
import torch

from gradwire_protocol.overlap import Overlap, Region, find_overlap, share_elements

STEPS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 20)


def bytes_of(region: Region) -> set[int]:
    found: set[int] = set()
    for index in itertools.product(*[range(extent) for extent in region.shape]):
        place = region.offset + sum(i * step for i, step in zip(index, region.stride, strict=True))
        found.update(range(place * region.itemsize, (place + 1) * region.itemsize))
    return found


def drawn(numbers: random.Random, itemsize: int) -> Region:
    ndim = numbers.randint(0, 4)
    least = 0 if numbers.random() < 0.05 else 1
    shape = tuple(numbers.randint(least, 5) for _ in range(ndim))
    return Region(numbers.randint(0, 40), shape, tuple(numbers.choice(STEPS) for _ in range(ndim)), itemsize)


@pytest.mark.parametrize("seed", range(4))
def test_shared_elements_are_those_found_one_by_one(seed: int) -> None:
    numbers = random.Random(seed)
    answers = {True: 0, False: 0}
    for _ in range(1_000):
        size = numbers.choice((1, 2, 4, 8, 16))
        one = drawn(numbers, size)
        other = drawn(numbers, size if numbers.random() < 0.7 else numbers.choice((1, 2, 4, 8, 16)))
        expected = bool(bytes_of(one) & bytes_of(other))
        assert share_elements(one, other) is expected, (one, other)
        assert share_elements(other, one) is expected, (other, one)
        answers[expected] += 1
    assert min(answers.values()) > 100


PATTERNS = {
    "halves of rows": (Region(0, (1000, 512), (1024, 1), 4), Region(512, (1000, 512), (1024, 1), 4), False),
    "rows in turn": (Region(0, (500, 64), (128, 1), 4), Region(64, (500, 64), (128, 1), 4), False),
    "two columns": (Region(3, (100_000,), (17,), 8), Region(4, (100_000,), (17,), 8), False),
    "a column, shifted": (Region(3, (100_000,), (17,), 8), Region(20, (100_000,), (17,), 8), True),
    "a diagonal and a row without it": (Region(0, (999,), (1000,), 4), Region(1, (998,), (1,), 4), False),
    "windows": (Region(0, (30, 30, 3, 3), (32, 1, 32, 1), 4), Region(66, (3,), (1,), 4), True),
    "planes of images": (Region(0, (8, 64, 64), (9999, 64, 1), 4), Region(4096, (8, 64, 64), (9999, 64, 1), 4), False),
    "real parts and imaginary ones": (Region(0, (1000,), (2,), 4), Region(1, (1000,), (2,), 4), False),
    "complex numbers and their imaginary parts": (Region(0, (1000,), (1,), 8), Region(1, (1000,), (2,), 4), True),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_large_views_are_decided_in_a_few_steps(pattern: str) -> None:
    one, other, expected = PATTERNS[pattern]
    assert share_elements(one, other, limit=50) is expected


def test_views_that_take_too_long_to_decide_count_as_overlapping() -> None:
    numbers = random.Random(0)
    slowest = 0.0
    for _ in range(200):
        ndim = numbers.randint(4, 8)
        one, other = (
            Region(
                numbers.randint(0, 10**6),
                tuple(numbers.randint(2, 3000) for _ in range(ndim)),
                tuple(numbers.randint(1, 10**9) for _ in range(ndim)),
                4,
            )
            for _ in range(2)
        )
        began = time.thread_time()
        share_elements(one, other)
        slowest = max(slowest, time.thread_time() - began)
    assert slowest < 0.5
    one, other = Region(2, (2, 2), (6, 13), 4), Region(7, (2,), (7,), 4)
    assert not share_elements(one, other)
    assert share_elements(one, other, limit=0)


@pytest.mark.parametrize("seed", range(4))
def test_what_pytorch_refuses_is_what_is_found(seed: int) -> None:
    numbers = random.Random(seed)
    seen: dict[Overlap, int] = {}
    for _ in range(400):
        memory = torch.zeros(64)
        ndim = numbers.randint(0, 2)
        shape = tuple(numbers.randint(1, 3) for _ in range(ndim))
        orders = [torch.empty(shape).stride(), tuple(reversed(torch.empty(tuple(reversed(shape))).stride()))]
        places = [
            (numbers.randint(0, 12), numbers.choice([*orders, tuple(2 * n + 1 for n in orders[0])])) for _ in range(2)
        ]
        one, other = (memory.as_strided(shape, stride, offset) for offset, stride in places)
        found = find_overlap(*[Region(offset, shape, tuple(stride), 4) for offset, stride in places])
        seen[found] = seen.get(found, 0) + 1
        try:
            one.add_(other)
            refused = False
        except RuntimeError as error:
            refused = "overlap" in str(error) or "same memory" in str(error) or "memory location" in str(error)
            assert refused, error
        assert refused is (found is Overlap.PARTIAL), (shape, places, found)
    assert len(seen) == 4
