"""Corner cases of pooling, under torch and gradwire: numbers of sizes, empty extents, overwritten indices."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()

LIBRARIES = pytest.mark.parametrize("lib", [torch, gradwire], ids=lambda lib: lib.__name__)


def images(lib, count, *lead, extent=8):
    n = extent**count
    for size in lead:
        n *= size
    return (lib.arange(n, dtype=lib.float64) * 7 % 11 - 5).reshape(*lead, *(extent,) * count)


@pytest.mark.parametrize("pool", ["max_pool", "adaptive_max_pool"])
@pytest.mark.parametrize("count", [1, 2, 3])
@LIBRARIES
def test_backward_refuses_indices_that_were_written_to(lib, count, pool):
    x = images(lib, count, 2, 3).requires_grad_()
    values, indices = getattr(lib.nn.functional, f"{pool}{count}d")(x, 2, return_indices=True)
    values.sum().backward(retain_graph=True)
    indices.add_(1)
    with pytest.raises(RuntimeError):
        values.sum().backward()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_pool_that_returns_indices_has_the_gradients_of_one_that_does_not(count):
    found = []
    for lib, with_indices in ((torch, False), (gradwire, False), (gradwire, True)):
        x = images(lib, count, 2, 3, extent=7).requires_grad_()
        geometry = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
        values = getattr(lib.nn.functional, f"max_pool{count}d")(x, return_indices=with_indices, **geometry)
        values = values[0] if with_indices else values
        weights = lib.arange(values.numel(), dtype=lib.float64).reshape(values.shape)
        (first,) = lib.autograd.grad((values**3 * weights).sum(), [x], create_graph=True)
        (second,) = lib.autograd.grad((first**2).sum(), [x])
        found.append([t.detach().tolist() for t in (values, first, second)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("size", [(0, 1, 1), (2, 0, 2), (0, 0, 0)])
def test_a_fractional_pool_may_have_no_windows(count, size):
    for lib in (torch, gradwire):
        x = images(lib, count, 2, 3).requires_grad_()
        pool = getattr(lib.nn, f"FractionalMaxPool{count}d")([2] * count, output_size=list(size[:count]))
        made = pool(x)
        made.sum().backward()
        assert tuple(made.shape) == (2, 3, *size[:count])
        assert made.tolist() == lib.empty(made.shape).tolist()
        assert not x.grad.any().item()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "pool", ["adaptive_max_pool{}d", "adaptive_avg_pool{}d", "max_unpool{}d", "fractional_max_pool{}d"]
)
def test_an_input_without_a_batch_may_have_no_channels(count, pool):
    shapes = []
    for lib in (torch, gradwire):
        function = getattr(lib.nn.functional, pool.format(count), None)
        if function is None:
            pytest.skip("there is none")
        x = lib.ones(0, *(8,) * count)
        arguments = (2,) if "unpool" not in pool else (lib.zeros(x.shape, dtype=lib.int64), 2)
        options = {"output_size": 3} if "fractional" in pool else {}
        made = function(x, *arguments, **options)
        shapes.append((tuple(made.shape), made.tolist()))
    assert shapes[0] == shapes[1]


@claim
def sizes_of_a_wrong_number_of_dimensions(torch):
    F, found = torch.nn.functional, []
    for count in (2, 3):
        x = images(torch, count, 2, 3)
        for sizes in ((), (1,), (1,) * (count - 1), (1,) * (count + 1)):
            found += [
                raises(partial(getattr(F, f"{name}{count}d"), x, *arguments, **options))
                for name, arguments, options in (
                    ("fractional_max_pool", (sizes,), {"output_size": 3}),
                    ("fractional_max_pool", (2,), {"output_size": sizes}),
                    ("adaptive_avg_pool", (sizes,), {}),
                    ("adaptive_max_pool", (sizes,), {}),
                    ("lp_pool", (2.0, sizes), {}),
                )
            ]
    return found


@LIBRARIES
@pytest.mark.parametrize("what", ["kernel_size", "stride", "padding"])
def test_unpooling_refuses_sizes_of_a_wrong_number_of_dimensions(lib, what):
    x = images(lib, 3, 2, 3)
    values, indices = lib.nn.functional.max_pool3d(x, 2, return_indices=True)
    for sizes in ((1,), (1, 1)):
        with pytest.raises((RuntimeError, IndexError)):
            lib.nn.functional.max_unpool3d(values, indices, **{"kernel_size": 2, what: sizes})


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
