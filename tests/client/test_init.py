"""``gradwire.nn.init`` against ``torch.nn.init``: the same distributions, and the same layers' defaults."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import gradwire as gw
from gradwire.nn import init

FILLS = [
    lambda i, t: i.uniform_(t, -0.5, 2.0),
    lambda i, t: i.normal_(t, 3.0, 0.5),
    lambda i, t: i.trunc_normal_(t, 0.5, 1.5, -1.0, 1.0),
    lambda i, t: i.xavier_uniform_(t, gain=2.0),
    lambda i, t: i.xavier_normal_(t),
    lambda i, t: i.kaiming_uniform_(t, a=math.sqrt(5)),
    lambda i, t: i.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
    lambda i, t: i.kaiming_normal_(t, nonlinearity="tanh"),
    lambda i, t: i.sparse_(t, 0.3, std=0.5),
]


@pytest.mark.parametrize("fill", FILLS)
def test_numbers_are_drawn_from_torchs_distribution(session, fill):
    torch.manual_seed(0)
    ours, theirs = fill(init, gw.empty(300, 200)).numpy(), fill(torch.nn.init, torch.empty(300, 200)).numpy()
    spread = theirs.std()
    assert abs(ours.mean() - theirs.mean()) < 0.02 * spread
    assert abs(ours.std() / spread - 1) < 0.02
    for share in (0.0005, 0.1, 0.25, 0.5, 0.75, 0.9, 0.9995):
        assert (
            abs(np.quantile(ours, share) - np.quantile(theirs, share)) < (0.03 if 0.01 < share < 0.99 else 0.3) * spread
        )


EXACT = [
    (lambda i, t: i.zeros_(t), (2, 3)),
    (lambda i, t: i.ones_(t), (2, 3)),
    (lambda i, t: i.constant_(t, 0.3), (2, 3)),
    (lambda i, t: i.eye_(t), (2, 3)),
    (lambda i, t: i.dirac_(t), (3, 2, 4)),
    (lambda i, t: i.dirac_(t, 2), (4, 2, 3, 3)),
    (lambda i, t: i.dirac_(t), (2, 2, 3, 3, 3)),
]


@pytest.mark.parametrize("fill, shape", EXACT)
def test_values_are_torchs(fill, shape):
    made = gw.empty(shape, requires_grad=True)
    assert fill(init, made) is made
    np.testing.assert_array_equal(made.detach().numpy(), fill(torch.nn.init, torch.empty(shape)).numpy())
    assert made.is_leaf


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal_rows_or_columns(shape):
    made = init.orthogonal_(gw.empty(shape), gain=2.0).numpy().reshape(shape[0], -1).astype(np.float64)
    product = made @ made.T if made.shape[0] <= made.shape[1] else made.T @ made
    np.testing.assert_allclose(product, 4 * np.eye(min(made.shape)), atol=1e-5)


def test_sparse_columns_have_their_share_of_zeros():
    made = init.sparse_(gw.empty(10, 6), 0.25).numpy()
    assert ((made == 0).sum(0) == 3).all()


@pytest.mark.parametrize(
    "name", ["linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "conv_transpose1d"]
)
@pytest.mark.parametrize("param", [None, 0.2])
def test_gains_are_torchs(name, param):
    assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)


def test_fans_are_torchs():
    for shape in [(2, 3), (4, 3, 5), (4, 3, 5, 2)]:
        expected = torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(shape))
        assert init._calculate_fan_in_and_fan_out(gw.empty(shape)) == expected


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: init.calculate_gain("swish"),
        lambda: init.calculate_gain("leaky_relu", True),
        lambda: init.xavier_uniform_(gw.empty(3)),
        lambda: init.kaiming_normal_(gw.empty(3, 3), mode="fan"),
        lambda: init.eye_(gw.empty(3)),
        lambda: init.dirac_(gw.empty(3, 3)),
        lambda: init.orthogonal_(gw.empty(3)),
    ],
)
def test_what_cannot_be_filled_is_refused(attempt):
    with pytest.raises(ValueError):
        attempt()


def test_what_is_no_generator_is_refused():
    with pytest.raises(TypeError):
        init.normal_(gw.empty(2), generator=object())


def test_filling_draws_from_the_sessions_generator():
    gw.manual_seed(7)
    first = gw.nn.Linear(3, 2).weight.tolist()
    gw.manual_seed(7)
    assert gw.nn.Linear(3, 2).weight.tolist() == first


LAYERS = [
    lambda nn: nn.Linear(100, 300),
    lambda nn: nn.Bilinear(40, 20, 30),
    lambda nn: nn.Conv1d(20, 40, 9),
    lambda nn: nn.Conv2d(16, 32, 3, groups=2),
    lambda nn: nn.ConvTranspose2d(32, 16, 3),
    lambda nn: nn.Embedding(100, 50, padding_idx=3),
    lambda nn: nn.LayerNorm(10),
    lambda nn: nn.BatchNorm2d(10),
    lambda nn: nn.GroupNorm(2, 10),
    lambda nn: nn.RMSNorm(10),
    lambda nn: nn.PReLU(5, init=0.1),
]


@pytest.mark.parametrize("make", LAYERS, ids=[repr(make(torch.nn)) for make in LAYERS])
def test_a_layer_starts_as_torchs_does(session, make):
    torch.manual_seed(0)
    ours, theirs = make(gw.nn), make(torch.nn)
    for (name, a), (other, b) in zip(ours.state_dict().items(), theirs.state_dict().items(), strict=True):
        assert name == other and tuple(a.shape) == tuple(b.shape) and a.dtype.name == str(b.dtype)[6:]
        a, b = a.numpy().astype(np.float64), b.numpy().astype(np.float64)
        assert abs(a.mean() - b.mean()) <= 5 * b.std() / math.sqrt(b.size)
        assert a.std() == pytest.approx(b.std(), rel=4 / math.sqrt(b.size))
        if name != "weight" or "Embedding" not in repr(ours):
            assert abs(a).max() == pytest.approx(abs(b).max(), rel=max(10 / b.size, 1e-3))


def test_orthogonal_init_waits_for_nothing(session, round_trips):
    weight = gw.empty(6, 4, 3)
    round_trips()
    init.orthogonal_(weight, 2.0)
    assert round_trips() == 0
    flat = weight.reshape(6, 12)
    assert (flat @ flat.T).numpy() == pytest.approx(4 * np.eye(6), abs=1e-5)
