"""Arrays of other libraries: gradwire accepts and exports what PyTorch does."""

from __future__ import annotations

import array

import numpy as np
import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire as gw

claims = Claims()
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


class Interfaced:
    """Speaks NumPy's array interface alone."""

    __array_interface__ = ARRAY.__array_interface__
    keep = ARRAY


class Arraylike:
    def __array__(self, dtype=None, copy=None):
        return ARRAY if dtype is None else ARRAY.astype(dtype)


@claims
def arrays_become_tensors(lib):
    views = (
        ARRAY,
        ARRAY.T.copy(),
        ARRAY[:, 1:].copy(),
        np.array(2.0),
        np.array([True, False]),
        np.arange(3, dtype=np.int8),
    )
    return [lib.from_numpy(a) for a in views], [lib.as_tensor(a) for a in views], [lib.tensor(a) for a in views]


@claims
def other_things_become_tensors(lib):
    things = (ARRAY, [1, 2], 3.5, np.float64(2), array.array("d", [1.0, 2.0]), [np.float32(1), 2], (1, True))
    return (
        [lib.as_tensor(t) for t in things],
        lib.as_tensor(ARRAY, dtype=lib.float64),
        lib.as_tensor([1, 2], dtype=lib.int8),
    )


@claims
def asarray_takes_all_of_them(lib):
    x = lib.arange(3.0)
    things = (ARRAY, [1, 2], 3.5, np.int16(4), x, x.requires_grad_(False), (1.0, 2.0), True)
    return (
        [lib.asarray(t) for t in things],
        lib.asarray(ARRAY, dtype=lib.float64),
        lib.asarray([1.0], requires_grad=True),
    )


@claims
def asarray_of_a_tensor_shares_its_memory(lib):
    x = lib.zeros(3)
    lib.asarray(x).add_(1)
    lib.asarray(x, copy=True).add_(1)
    lib.asarray(x, dtype=lib.float64).add_(1)
    return (
        x,
        raises(lambda: lib.asarray(x, dtype=lib.float64, copy=False)),
        raises(lambda: lib.asarray([1], copy=False)),
    )


def leaf_and_result(lib):
    x = lib.ones(2, requires_grad=True)
    return x, x * 2


@claims
def asarray_keeps_history_unless_told_otherwise(lib):
    found = []
    for options in (
        {}, {"copy": True}, {"dtype": lib.float64}, {"requires_grad": True}, {"requires_grad": True, "copy": True},
        {"requires_grad": False}, {"requires_grad": False, "copy": True},
    ):  # fmt: skip
        for source in leaf_and_result(lib):
            made = lib.asarray(source, **options)
            found.append((made is source, made.requires_grad, made.is_leaf, source.requires_grad))
    return found


@claims
def asarray_under_no_grad_makes_leaves_that_require_grad(lib):
    x, _ = leaf_and_result(lib)
    with lib.no_grad():
        made = lib.asarray(x, copy=True)
    return made.requires_grad, made.is_leaf


@claims
def asarray_refuses_a_gradient_of_integers(lib):
    x, _ = leaf_and_result(lib)
    return (
        raises(lambda: lib.asarray(x, dtype=lib.int64)),
        raises(lambda: lib.asarray(lib.ones(2), dtype=lib.int64, requires_grad=True)),
        lib.asarray(x, dtype=lib.int64, requires_grad=False),
    )


@claims
def buffers_become_tensors(lib):
    data = bytearray(ARRAY.tobytes())
    return (
        lib.frombuffer(data, dtype=lib.float32), lib.frombuffer(data, dtype=lib.float32, count=2),
        lib.frombuffer(data, dtype=lib.uint8, offset=20), lib.frombuffer(data, dtype=lib.float64, requires_grad=True),
        lib.frombuffer(data, dtype=lib.float32, offset=4, count=3),
        lib.frombuffer(array.array("i", [1, -1]), dtype=lib.int32),
    )  # fmt: skip


@claims
def buffers_that_do_not_fit_are_refused(lib):
    data = bytearray(12)
    attempts = [
        lambda: lib.frombuffer(data, dtype=lib.float64), lambda: lib.frombuffer(data, dtype=lib.float32, count=4),
        lambda: lib.frombuffer(data, dtype=lib.float32, offset=12),
        lambda: lib.frombuffer(data, dtype=lib.float32, offset=-1),
        lambda: lib.frombuffer(bytearray(), dtype=lib.float32),
        lambda: lib.frombuffer(data, dtype=lib.float32, count=0),
        lambda: lib.frombuffer(3, dtype=lib.float32), lambda: lib.frombuffer(data),
        lambda: lib.frombuffer(data, dtype=lib.int32, requires_grad=True),
    ]  # fmt: skip
    return [raises(a) for a in attempts]


@claims
def dlpack_goes_both_ways(lib):
    x = lib.arange(6.0).reshape(2, 3)
    there = np.from_dlpack(x)
    return (
        there.tolist(), there.dtype.name, x.__dlpack_device__()[0] == 1, lib.from_dlpack(ARRAY),
        lib.from_dlpack(ARRAY.__dlpack__()),
        lib.from_dlpack(x), raises(lambda: lib.ones(2, requires_grad=True).__dlpack__()),
        lib.from_dlpack(lib.utils.dlpack.to_dlpack(x)), lib.utils.dlpack.from_dlpack(x) is x,
        lib.from_dlpack(lib.utils.dlpack.to_dlpack(lib.ones(2, requires_grad=True))),
        raises(lambda: lib.from_dlpack(lib.ones(2, requires_grad=True))),
        [lib.utils.dlpack.DLDeviceType(kind).name for kind, _ in (x.__dlpack_device__(), (2, 0))],
    )  # fmt: skip


@claims
def tensors_become_arrays(lib):
    x = lib.arange(3.0)
    return (
        np.asarray(x).tolist(), np.asarray(x).dtype.name, np.asarray(x, dtype=np.int64).tolist(),
        np.array(x, "f8").dtype.name,
        np.stack([x, x]).tolist(), raises(lambda: np.asarray(lib.ones(1, requires_grad=True))),
        float(np.mean(np.asarray(x))),
        np.asarray(lib.tensor([True, False])).dtype.name, np.asarray(lib.ones(2, dtype=lib.complex64)).dtype.name,
    )  # fmt: skip


@claims
def numpys_functions_of_a_tensor_give_a_tensor(lib):
    return type(np.sin(lib.zeros(2))).__name__, np.sqrt(lib.ones(2) * 4)


@claims
def arithmetic_of_an_array_and_a_tensor_is_the_tensors(lib):
    x = lib.ones(3, dtype=lib.float64)
    a = np.arange(3.0)
    attempts = [lambda: x + a, lambda: a + x, lambda: a * x, lambda: x * np.float64(2), lambda: np.float64(2) * x]
    return [a() if raises(a) is None else raises(a) for a in attempts]


@pytest.mark.parametrize("claim", list(claims), ids=name_of)
def test_it_is_as_under_torch(claim):
    same(claim)


def test_an_array_interface_is_enough():
    assert gw.as_tensor(Arraylike()).tolist() == ARRAY.tolist()
    assert gw.asarray(Interfaced()).tolist() == ARRAY.tolist() == gw.as_tensor(np.asarray(Interfaced())).tolist()


def test_an_array_of_torchs_comes_over():
    x = torch.arange(4.0)
    assert gw.from_dlpack(x).tolist() == gw.asarray(x).tolist() == gw.as_tensor(x).tolist() == x.tolist()


def test_a_tensor_goes_to_torch():
    x = gw.arange(4.0)
    assert torch.from_dlpack(x).tolist() == x.tolist()


def test_bfloat16_is_not_exported():
    with pytest.raises(BufferError, match="bfloat16"):
        gw.ones(2, dtype=gw.bfloat16).__dlpack__()
