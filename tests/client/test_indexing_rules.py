"""What may index a tensor, and what may be assigned: both libraries run each case."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")
LIBS = (torch, gradwire)


def outcome(lib, case):
    """The values that a case leaves, or the class of its exception, and the classes of its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = case(lib, lib.arange(10, dtype=lib.float32).reshape(5, 2))
            found = (str(found.dtype), found.tolist())
        except Exception as error:
            found = next(kind for kind in (TypeError, ValueError, IndexError, RuntimeError) if isinstance(error, kind))
    return found, [warning.category for warning in told]


def written(key, value):
    def case(lib, x):
        x[key(lib)] = value(lib)
        return x

    return case


def deleted(lib, x):
    del x[0]


SMALL = {
    "a 0-dim int8": lambda lib: lib.tensor(1, dtype=lib.int8),
    "0-dim int16 and int8": lambda lib: (lib.tensor(1, dtype=lib.int16), lib.tensor(0, dtype=lib.int8)),
    "a 0-dim int16 after a slice": lambda lib: (slice(None), lib.tensor(1, dtype=lib.int16)),
    "a vector of int16": lambda lib: lib.tensor([1], dtype=lib.int16),
    "an array of int8": lambda lib: np.array([1, 0], dtype=np.int8),
    "a 0-dim array of int16": lambda lib: np.array(1, dtype=np.int16),
    "an array of uint16": lambda lib: np.array([[1, 0]], dtype=np.uint16),
    "an array of uint8": lambda lib: np.array([1, 0, 1, 0, 0], dtype=np.uint8),
    "a list of np.int16": lambda lib: [np.int16(1)],
    "a list of np.uint8": lambda lib: [np.uint8(n) for n in (1, 0, 1, 0, 0)],
    "a 0-dim int16 out of range": lambda lib: lib.tensor(7, dtype=lib.int16),
}
KEYS = {
    "positions": lambda lib: [1],
    "column positions": lambda lib: (slice(None), lib.tensor([1])),
    "a mask": lambda lib: lib.tensor([True, False, True, False, False]),
    "a mask of all": lambda lib: lib.tensor([[True, False]] * 5),
    "a mask and positions": lambda lib: (lib.tensor([True, False, False, False, False]), lib.tensor([1])),
    "uint8": lambda lib: lib.tensor([1, 0, 1, 0, 0], dtype=lib.uint8),
    "two of uint8": lambda lib: (lib.tensor([1, 0, 0, 0, 0], dtype=lib.uint8), lib.tensor([1, 0], dtype=lib.uint8)),
}
VALUES = {
    "int": lambda lib: 7,
    "float": lambda lib: 7.5,
    "bool": lambda lib: True,
    "float32": lambda lib: lib.tensor(7.5),
    "one float32": lambda lib: lib.tensor([7.5]),
    "int64": lambda lib: lib.tensor(7),
    "one int64": lambda lib: lib.tensor([7]),
    "float64": lambda lib: lib.tensor(7.5, dtype=lib.float64),
    "bools": lambda lib: lib.tensor([True, False]),
    "int64s": lambda lib: lib.tensor([[7], [8]]),
}


@pytest.mark.parametrize("key", SMALL)
def test_small_integers_index_as_in_torch(key):
    theirs, ours = (outcome(lib, lambda lib, x: x[SMALL[key](lib)]) for lib in LIBS)
    assert ours == theirs
    if "uint8" not in key:
        theirs, ours = (outcome(lib, written(SMALL[key], VALUES["int"])) for lib in LIBS)
        assert ours == theirs


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", [key for key in KEYS if "uint8" not in key])
def test_what_is_written_to_indexed_elements_has_their_dtype_or_is_one_masked_value(key, value):
    case = written(KEYS[key], VALUES[value])
    assert outcome(gradwire, case) == outcome(torch, case)


@pytest.mark.parametrize("key", KEYS)
def test_a_uint8_index_is_read_as_a_mask_with_a_warning(key):
    def case(lib, x):
        return x[KEYS[key](lib)]

    assert outcome(gradwire, case) == outcome(torch, case)


@pytest.mark.parametrize(
    "case",
    [
        deleted,
        lambda lib, x: lib.where(lib.tensor([1, 0], dtype=lib.uint8), x, 0.0),
        lambda lib, x: lib.tensor(1.0).index_put([], lib.tensor([1.0]), True),
        lambda lib, x: x.index_put([], lib.tensor(1)),
    ],
)
def test_other_uses_of_indices_end_as_in_torch(case):
    assert outcome(gradwire, case) == outcome(torch, case)


@pytest.mark.parametrize("lib", LIBS)
def test_a_view_without_elements_is_contiguous(lib):
    x = lib.zeros(2, 3, 4, 5)[:, :, :, 1]
    for empty in (x[:, 1:1], x[:0], x.transpose(0, 2)[:, :, :0]):
        assert empty.is_contiguous()
        assert empty.contiguous() is empty or empty.contiguous().stride() == empty.stride()


def test_an_assignment_that_does_not_fit_is_told_as_one():
    x = gradwire.zeros(3, 4)
    with pytest.raises(RuntimeError, match=r"a float32\[3\] tensor cannot be assigned to elements of shape \[2, 4\]"):
        x[1:] = gradwire.ones(3)
    assert x.sum().item() == 0


VIEWS = [
    (1,), (-1, 2), (slice(None), None), (None, slice(None)), (None, 1, slice(0, 2)), (slice(None), slice(None)), (),
    (slice(1, None, 2), -1), (0, 1, 2, 3), (0, 7), (5,), (None,), (1, None, slice(None, 2)), (True,), (Ellipsis, 1),
    (np.int64(1), slice(None)), (slice(3, 1),), (0, slice(None, None, -1)), None, 1, slice(1, 2),
]  # fmt: skip


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("key", VIEWS, ids=str)
def test_ints_slices_and_none_make_the_same_views(key, learns):
    """Three times, since a form of call that comes again is recorded in another way."""
    found = []
    for lib in LIBS:
        x = lib.arange(24.0).reshape(2, 3, 4).clone().requires_grad_(learns)
        for _ in range(3):
            try:
                made = x[key]
            except Exception as error:
                found.append(next(kind for kind in (IndexError, ValueError, TypeError) if isinstance(error, kind)))
                break
        else:
            name = None if made.grad_fn is None else made.grad_fn.name()
            layout = tuple(made.shape), made.stride(), made.storage_offset(), made._is_view(), made is x
            found.append((made.tolist(), layout, name))
    assert found[0] == found[1]
