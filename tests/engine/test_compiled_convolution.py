"""Compiled convolutions against PyTorch's and against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from tests.engine.compiled_kernels import close, compiled, declines, kernels, plain, same_bits_for_any_threads

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

Case = tuple[tuple[int, ...], int, tuple[int, ...], Any, Any, Any, int]

CASES: dict[str, Case] = {
    # input, channels made, kernel, stride, padding, dilation, groups
    "one channel": ((3, 1, 9, 11), 4, (3, 3), 1, 1, 1, 1),
    "padded rows": ((2, 4, 9, 11), 6, (3, 3), 1, 1, 1, 1),
    "more channels than a panel": ((2, 17, 9, 11), 19, (3, 3), 1, 0, 1, 1),
    "stride": ((2, 4, 10, 13), 6, (3, 2), 2, 1, 1, 1),
    "stride beyond the kernel": ((2, 4, 11, 11), 7, (2, 2), 3, 0, 1, 1),
    "pointwise with a stride": ((2, 16, 9, 11), 7, (1, 1), 2, 0, 1, 1),
    "pointwise": ((5, 70, 17, 16), 50, (1, 1), 1, 0, 1, 1),
    "pointwise with groups": ((3, 66, 33, 16), 60, (1, 1), 1, 0, 1, 2),
    "pointwise sequence": ((4, 40, 300), 33, (1,), 1, 0, 1, 1),
    "uneven everything": ((2, 4, 19, 21), 5, (3, 5), (2, 3), (1, 2), (2, 1), 1),
    "dilation": ((2, 16, 12, 12), 5, (3, 3), 1, 2, 2, 1),
    "padding beyond the kernel": ((2, 4, 9, 11), 7, (2, 2), 1, 3, 1, 1),
    "groups": ((2, 6, 9, 11), 12, (3, 3), 1, 2, 1, 3),
    "depthwise": ((3, 8, 9, 11), 8, (3, 3), 2, 1, 1, 8),
    "depthwise, more channels than lanes": ((3, 37, 9, 11), 37, (3, 3), 1, 1, 1, 37),
    "depthwise, uneven everything": ((2, 19, 13, 12), 19, (3, 5), (2, 3), (1, 2), (2, 1), 19),
    "depthwise, stride beyond the kernel": ((2, 6, 11, 11), 6, (2, 2), 3, 0, 1, 6),
    "depthwise, padding beyond the kernel": ((2, 6, 9, 11), 6, (2, 2), 1, 3, 1, 6),
    "depthwise, large images": ((1, 3, 150, 140), 3, (3, 3), 1, 1, 1, 3),
    "depthwise sequence": ((2, 5, 37), 5, (5,), 2, 3, 1, 5),
    "depthwise volume": ((2, 5, 5, 6, 7), 5, (3, 2, 3), (1, 2, 1), (1, 0, 2), 1, 5),
    "depthwise, two for each": ((3, 5, 12, 11), 10, (3, 3), 1, 1, 1, 5),
    "small images together": ((7, 24, 4, 4), 40, (3, 3), 1, 1, 1, 1),
    "small images, a stride and groups": ((5, 10, 7, 8), 38, (3, 2), 2, 1, 1, 2),
    "small images, uneven everything": ((3, 20, 9, 10), 17, (3, 5), (2, 3), (1, 2), (2, 1), 1),
    "small volumes": ((3, 18, 3, 4, 3), 19, (3, 2, 3), (1, 2, 1), (1, 0, 2), 1, 1),
    "one output": ((3, 20, 4, 4), 24, (4, 4), 1, 0, 1, 1),
    "one image, many channels": ((1, 70, 9, 9), 130, (3, 3), 1, 1, 1, 1),
    "rows in blocks": ((2, 24, 150, 70), 3, (3, 3), 1, 1, 1, 1),
    "rows in blocks, with a stride": ((2, 24, 151, 131), 3, (5, 3), 2, 2, 1, 1),
    "sequence": ((2, 3, 37), 5, (5,), 2, 3, 1, 1),
    "volume": ((2, 3, 5, 6, 7), 5, (3, 2, 3), (1, 2, 1), (1, 0, 2), 1, 1),
}

GENERATOR = np.random.default_rng(7)


def _operands(case: Case, dtype: str) -> Any:
    """(input, weight, bias, gradient of the output), and the geometry as tuples."""
    shape, made, kernel, *geometry, groups = case
    count = len(kernel)
    stride, padding, dilation = (v if isinstance(v, tuple) else (v,) * count for v in geometry)
    x = GENERATOR.standard_normal(shape).astype(dtype)
    weight = GENERATOR.standard_normal((made, shape[1] // groups, *kernel)).astype(dtype)
    bias = GENERATOR.standard_normal(made).astype(dtype)
    outputs = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(shape[2:], padding, dilation, kernel, stride, strict=True)
    ]
    g = GENERATOR.standard_normal((shape[0], made, *outputs)).astype(dtype)
    return (x, weight, bias, g), (stride, padding, dilation, groups)


def _torch_gradients(g: Any, x: Any, weight: Any, geometry: Any) -> Any:
    stride, padding, dilation, groups = geometry
    found = torch.ops.aten.convolution_backward(
        *(torch.from_numpy(a) for a in (g, x, weight)), None, stride, padding, dilation, False, [0] * len(stride),
        groups, [True, True, False],
    )  # fmt: skip
    return found[0].numpy(), found[1].numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_convolutions_and_their_gradients_are_pytorchs(name: str, dtype: str) -> None:
    (x, weight, bias, g), geometry = _operands(CASES[name], dtype)
    count = len(geometry[0])
    theirs = getattr(torch.nn.functional, f"conv{count}d")(
        *(torch.from_numpy(a) for a in (x, weight, bias)), geometry[0], geometry[1], geometry[2], geometry[3]
    ).numpy()
    by_input, by_weight = _torch_gradients(g, x, weight, geometry)
    close(compiled(f"conv{count}d", x, weight, bias, *geometry), theirs)
    close(compiled("convolution_input", g, weight, x.shape[2:], *geometry), by_input)
    close(compiled("convolution_weight", g, x, weight.shape[2:], *geometry), by_weight, 3)


TRANSPOSED = [
    "stride", "uneven everything", "groups", "one output", "small images, uneven everything",
    "depthwise, uneven everything", "depthwise sequence", "sequence", "volume",
]  # fmt: skip


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions_are_pytorchs(name: str) -> None:
    (x, weight, _, g), (stride, padding, dilation, groups) = _operands(CASES[name], "float64")
    count = len(stride)
    bias = GENERATOR.standard_normal(weight.shape[1] * groups)
    extra = tuple(
        n + 2 * p - d * (k - 1) - 1 - (m - 1) * s
        for n, p, d, k, m, s in zip(x.shape[2:], padding, dilation, weight.shape[2:], g.shape[2:], stride, strict=True)
    )
    theirs = getattr(torch.nn.functional, f"conv_transpose{count}d")(
        *(torch.from_numpy(a) for a in (g, weight, bias)), stride, padding, extra, groups, dilation
    ).numpy()
    ours = compiled(f"conv_transpose{count}d", g, weight, bias, stride, padding, extra, groups, dilation)
    close(ours, theirs)


def test_one_image_needs_no_batch() -> None:
    x, weight = GENERATOR.standard_normal((4, 9, 9)), GENERATOR.standard_normal((6, 4, 3, 3))
    theirs = torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(weight), padding=1).numpy()
    close(compiled("conv2d", x, weight, None, 1, 1, 1, 1)[0], theirs)


def test_operands_may_lie_in_memory_as_they_like() -> None:
    x = GENERATOR.standard_normal((9, 9, 4, 2)).T
    weight = GENERATOR.standard_normal((3, 3, 4, 6)).T
    close(compiled("conv2d", x, weight, None, 1, 1, 1, 1), plain("conv2d", x, weight, None, 1, 1, 1, 1))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 9])
def test_infinities_stay_where_they_are_seen(groups: int, stride: int) -> None:
    x, weight = np.ones((1, groups, 9, 9)), np.ones((max(groups, 2), 1, 3, 3))
    x[0, 0, 4, 8] = np.inf
    geometry = ((stride, stride), (1, 1), (1, 1), groups)
    with np.errstate(all="ignore"):
        close(compiled("conv2d", x, weight, None, *geometry), plain("conv2d", x, weight, None, *geometry))
        g = np.ones((1, len(weight), *(2 * [8 // stride + 1])))
        ours = compiled("convolution_weight", g, x, (3, 3), *geometry)
        theirs = _torch_gradients(g, x, weight, geometry)[1]
    np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(theirs))
    assert np.isfinite(ours).any()
    weight[0, 0, 0, 0] = np.inf
    ours = compiled("convolution_input", g, weight, (9, 9), *geometry)
    theirs = _torch_gradients(g, x, weight, geometry)[0]
    inner = (..., slice(1, -1), slice(1, -1))  # at the border zeros meet the weight
    np.testing.assert_array_equal(np.isfinite(ours)[inner], np.isfinite(theirs)[inner])


@pytest.mark.parametrize(
    "name", ["one channel", "more channels than a panel", "rows in blocks", "depthwise, more channels than lanes"]
)
def test_threads_change_no_bit(name: str) -> None:
    shape, *rest = CASES[name]
    (x, weight, bias, g), geometry = _operands(((16, *shape[1:]), *rest), "float32")
    same_bits_for_any_threads(lambda: compiled("conv2d", x, weight, bias, *geometry))
    same_bits_for_any_threads(lambda: compiled("convolution_input", g, weight, x.shape[2:], *geometry))
    same_bits_for_any_threads(lambda: compiled("convolution_weight", g, x, (3, 3), *geometry))


@pytest.mark.parametrize(
    "name", ["one image, many channels", "small images together", "depthwise, uneven everything", "pointwise"]
)
def test_threads_change_no_bit_of_a_small_batch(name: str) -> None:
    (x, weight, bias, g), geometry = _operands(CASES[name], "float32")
    same_bits_for_any_threads(lambda: compiled("conv2d", x, weight, bias, *geometry))
    same_bits_for_any_threads(lambda: compiled("convolution_input", g, weight, x.shape[2:], *geometry))
    same_bits_for_any_threads(lambda: compiled("convolution_weight", g, x, weight.shape[2:], *geometry))


def test_what_they_are_not_for_is_left_to_numpy() -> None:
    x, weight = np.ones((2, 4, 5, 5)), np.ones((6, 4, 1, 1))
    assert declines("conv2d", x, weight, None, 1, 0, 1, 1)  # a product of small matrices
    assert declines("conv2d", x.astype(complex), weight.astype(complex), None, 1, 1, 1, 1)
    assert declines("conv2d", x[:0], np.ones((6, 4, 3, 3)), None, 1, 1, 1, 1)


def test_gradients_of_gradients_are_pytorchs() -> None:
    """Each derivative is made of the other two kernels."""
    (x, weight, bias, _), (stride, padding, dilation, groups) = _operands(CASES["stride"], "float64")
    engine = Engine(seed=3)
    engine.compiled = True
    call = engine.call
    ours: Any = [engine.from_numpy(a, requires_grad=True) for a in (x, weight, bias)]
    made = call("conv2d", *ours, stride, padding, dilation, groups)
    call("backward", [call("sum", call("mul", made, call("mul", made, made)))], [None], create_graph=True)
    squares = [call("sum", call("mul", t.grad, t.grad)) for t in ours[:2]]
    call("backward", [call("add", *squares)], [None])

    theirs: Any = [torch.from_numpy(a).requires_grad_() for a in (x, weight, bias)]
    convolution: Any = torch.nn.functional.conv2d
    (convolution(*theirs, stride, padding, dilation, groups) ** 3).sum().backward(create_graph=True)
    (theirs[0].grad.square().sum() + theirs[1].grad.square().sum()).backward()
    for mine, other in zip(ours, theirs, strict=True):
        close(engine.to_numpy(mine.grad), other.grad.detach().numpy(), 10)
