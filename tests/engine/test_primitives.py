"""Operations of derivatives, as others call them: whatever they are given, they compute or say what is wrong."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import (
    ArgumentError,
    GraphError,
    IndexOutOfRange,
    KernelError,
    LimitExceeded,
    ShapeError,
    TimeExceeded,
)
from gradwire_protocol.table import TABLE


def floats(engine: Engine, *shape: int, requires_grad: bool = False) -> Tensor:
    values = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    return engine.from_numpy(values, requires_grad=requires_grad)


def indices(engine: Engine, *values: int) -> Tensor:
    return engine.from_numpy(np.array(values, np.int64))


@pytest.mark.parametrize("index", [3, -4, 1 << 40, -(1 << 62)])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gather_backward", lambda e, at: (floats(e, 2), (3,), 0, indices(e, 0, at))),
        ("index_backward", lambda e, at: (floats(e, 2, 4), (3, 4), [indices(e, 0, at)])),
        ("index_select_backward", lambda e, at: (floats(e, 2, 4), (3, 4), 0, indices(e, 0, at))),
        ("take_backward", lambda e, at: (floats(e, 2), (3,), indices(e, 0, at))),
        ("embedding_backward", lambda e, at: (floats(e, 2, 4), indices(e, 0, at), 3, -1, False)),
        ("embedding_backward", lambda e, at: (floats(e, 2, 4), indices(e, 0, at), 3, -1, True)),
        ("select_backward", lambda e, at: (floats(e, 4), (3, 4), 0, at)),
    ],
)
def test_an_index_that_names_nothing_is_refused(name: str, arguments: Any, index: int) -> None:
    engine = Engine()
    with pytest.raises(IndexOutOfRange):
        engine.call(name, *arguments(engine, index))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("slice_backward", lambda e: (floats(e, 2, 4), (5, 4), 0, 0, 3, 1)),
        ("index_backward", lambda e: (floats(e, 2, 4), (3, 4), [e.from_numpy(np.array([True, False, False]))])),
        ("masked_select_backward", lambda e: (floats(e, 2), (3,), e.from_numpy(np.ones(3, bool)))),
        ("masked_scatter_backward", lambda e: (floats(e, 3), (2,), e.from_numpy(np.ones(3, bool)))),
    ],
)
def test_a_gradient_whose_fit_depends_on_values_is_compared_with_them(name: str, arguments: Any) -> None:
    engine = Engine()
    with pytest.raises(KernelError):
        engine.call(name, *arguments(engine))


@pytest.mark.parametrize(
    ("name", "shapes", "rest"),
    [
        ("convolution", [(1, 1, 9), (1, 1, 3)], ((9,), (1,), (0,), (1,), 1)),
        ("convolution_input", [(1, 1, 7), (1, 1, 3)], ((7,), (1,), (0,), (1,), 1)),
        ("convolution_weight", [(1, 1, 7), (1, 1, 9)], ((5,), (1,), (0,), (1,), 1)),
        ("avg_pool_backward", [(1, 1, 4)], ((6,), (2,), (2,), (0,))),
        ("max_pool_backward", [(1, 1, 3), (1, 1, 7), (1, 1, 3)], ((3,), (1,), (0,), (1,))),
        ("pad_backward", [(1, 1, 9)], ((5, 0), "reflect")),
        ("softmax_backward", [(2, 3), (2, 4)], (1,)),
        ("layer_norm_backward", [(2, 4), (2, 4), (2, 1), (1, 1)], ()),
        ("group_norm_backward", [(2, 4, 3), (2, 4, 3), (2, 2), (4, 1)], (2,)),
    ],
)
def test_shapes_that_no_forward_computation_has_are_refused(
    name: str, shapes: list[tuple[int, ...]], rest: tuple[Any, ...]
) -> None:
    engine = Engine()
    with pytest.raises(ShapeError):
        engine.call(name, *(floats(engine, *shape) for shape in shapes), *rest)


@pytest.mark.parametrize("scale", [float("nan"), 0.0, 1e-300, float("inf")])
def test_images_grow_by_numbers(scale: float) -> None:
    engine = Engine()
    with pytest.raises(ArgumentError, match="positive factors"):
        engine.call("interpolate_backward", floats(engine, 1, 1, 4), (2,), "linear", False, (scale,), False)


@pytest.mark.parametrize(
    ("name", "shapes", "rest"),
    [
        ("unfold_backward", [(0, 1, 1 << 40)], ((0, 1 << 40), 1, 1 << 40, 1)),
        ("avg_pool_backward", [(0, 1, 2)], ((1 << 40,), (1 << 39,), (1 << 39,), (0,))),
        ("max_pool_backward", [(0, 1, 2), (0, 1, 1 << 40), (0, 1, 2)], ((1 << 39,), (1 << 39,), (0,), (1,))),
        ("convolution_input", [(0, 0, 1), (0, 1, 1 << 40)], ((1 << 40,), (1,), (0,), (1,), 1)),
        ("conv1d", [(0, 2, 1 << 41), (0, 1, 1 << 40)], (None, 1, 0, 1, 2)),
    ],
)
def test_nothing_is_done_at_once_however_large_its_windows_are(
    name: str, shapes: list[tuple[int, ...]], rest: tuple[Any, ...]
) -> None:
    engine, started = Engine(), time.process_time()
    given = [engine.call("zeros", shape) for shape in shapes]
    assert engine.call(name, *given, *rest).numel == 0
    assert time.process_time() - started < 5


@pytest.mark.parametrize("name", ["max_pool1d", "avg_pool1d"])
def test_padding_counts_as_memory(name: str) -> None:
    engine = Engine(Limits(max_tensor_bytes=1 << 26, max_session_bytes=1 << 27))
    with pytest.raises((LimitExceeded, TimeExceeded)):
        engine.call(name, engine.call("zeros", (1, 1, 1)), 1 << 30, 1, 1 << 29)


def test_what_has_no_derivative_refuses_a_history() -> None:
    engine = Engine()
    x = floats(engine, 2, 4, requires_grad=True)
    with pytest.raises(GraphError, match="layer_norm_training"):
        engine.call("layer_norm_training", x, (4,))
    engine.grad_enabled = False
    out, mean, rstd = engine.call("layer_norm_training", x, (4,))
    assert (out.shape, mean.shape, rstd.shape) == ((2, 4), (2, 1), (2, 1))


def test_clients_offer_none_of_them_by_name() -> None:
    opened = [op for op in TABLE.values() if op.name.endswith(("_backward", "_training")) and not op.internal]
    assert len(opened) > 40
    assert not any(op.exposed for op in opened)
