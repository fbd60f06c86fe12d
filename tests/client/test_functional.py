"""``gradwire.nn.functional``: functions from the op table, and hand-written ones where PyTorch's arguments differ."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import gradwire as gw
import gradwire.nn.functional as F
from gradwire_protocol.table import TABLE


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def agree(call, *arrays: np.ndarray, **tolerance) -> None:
    """Value and gradients of ``call(functional, *tensors)`` agree with torch's."""
    ours = [gw.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    theirs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    found, expected = call(F, *ours), call(TF, *theirs)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12)
    if expected.requires_grad:
        (found * found).sum().backward()
        (expected * expected).sum().backward()
        for a, b in zip(ours, theirs):
            if b.grad is not None:
                np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-8, atol=1e-11)


def test_every_op_that_belongs_here_is_here():
    missing = [op.name for op in TABLE.values() if "nn.functional" in op.exposed and not hasattr(F, op.name)]
    assert missing == []


def test_a_function_knows_its_name_and_says_what_it_does():
    assert F.relu.__name__ == "relu" and "max" in F.relu.__doc__
    assert F.linear.__name__ == "linear" and "weight" in F.linear.__doc__


def test_input_can_be_given_by_name():
    x = gw.tensor([-1.0, 2.0])
    assert F.relu(input=x).tolist() == [0.0, 2.0]
    assert F.leaky_relu(input=x, negative_slope=0.5).tolist() == [-0.5, 2.0]
    assert F.linear(input=x, weight=gw.ones(1, 2)).tolist() == [1.0]


def test_inplace_is_the_last_argument():
    x = gw.tensor([-2.0, 2.0])
    assert F.leaky_relu(x, 0.5, True) is x and x.tolist() == [-1.0, 2.0]
    assert F.elu(x, inplace=False) is not x
    assert F.relu_(x) is x and x.tolist() == [0.0, 2.0]
    with pytest.raises(TypeError):
        F.relu(x, 3)


CALLS = {
    "softmax": (lambda f, x: f.softmax(x, 1), (3, 4)),
    "softmin": (lambda f, x: f.softmin(x, 0), (3, 4)),
    "log_softmax": (lambda f, x: f.log_softmax(x, dim=1), (3, 4)),
    "bilinear": (lambda f, x, y, w: f.bilinear(input1=x, input2=y, weight=w), (5, 3), (5, 4), (2, 3, 4)),
    "glu": (lambda f, x: f.glu(x, 0), (4, 3)),
    "normalize": (lambda f, x: f.normalize(x), (3, 4)),
    "normalize with p": (lambda f, x: f.normalize(x, p=1.0, dim=0), (3, 4)),
    "cosine_similarity": (lambda f, x, y: f.cosine_similarity(x, y, dim=1), (3, 4), (3, 4)),
    "pairwise_distance": (lambda f, x, y: f.pairwise_distance(x, y, keepdim=True), (3, 4), (3, 4)),
    "pairwise_distance with p": (lambda f, x, y: f.pairwise_distance(x, y, p=1.0), (3, 4), (4,)),
    "mse_loss with weight": (lambda f, x, y, w: f.mse_loss(x, y, weight=w), (3, 4), (3, 4), (3, 4)),
    "l1_loss with weight": (lambda f, x, y, w: f.l1_loss(x, y, weight=w, reduction="none"), (3, 4), (3, 4), (3, 4)),
    "huber_loss with weight": (lambda f, x, y, w: f.huber_loss(x, y, weight=w), (3, 4), (3, 4), (3, 4)),
    "kl_div": (lambda f, x, y: f.kl_div(x, y.exp(), reduction="batchmean"), (3, 4), (3, 4)),
    "bce with weight": (
        lambda f, x, y, w: f.binary_cross_entropy(x.sigmoid(), y.sigmoid(), weight=w.detach()), (3, 4), (3, 4), (4,),
    ),
    "bce with logits": (
        lambda f, x, y, w: f.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=w.detach().exp()),
        (3, 4), (3, 4), (4,),
    ),
    "max_pool1d": (lambda f, x: f.max_pool1d(x, 2), (2, 3, 8)),
    "max_pool2d": (lambda f, x: f.max_pool2d(x, (2, 3), stride=[], padding=(1, 0)), (2, 3, 6, 6)),
    "max_pool3d": (lambda f, x: f.max_pool3d(x, 2), (2, 3, 4, 4, 4)),
    "adaptive_max_pool2d": (lambda f, x: f.adaptive_max_pool2d(x, (2, 3)), (2, 3, 6, 7)),
    "avg_pool2d": (lambda f, x: f.avg_pool2d(x, 3, 2, 1, False, False, 4), (2, 3, 6, 7)),
    "conv1d": (lambda f, x, w, b: f.conv1d(x, w, b, padding=1), (2, 3, 6), (4, 3, 3), (4,)),
    "layer_norm": (lambda f, x, w, b: f.layer_norm(x, (4,), w, b, 1e-3), (3, 4), (4,), (4,)),
    "group_norm": (lambda f, x: f.group_norm(x, 2), (3, 4, 2)),
    "rms_norm": (lambda f, x, w: f.rms_norm(x, (4,), w), (3, 4), (4,)),
    "scaled_dot_product_attention": (
        lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True),
        (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_function_computes_what_torch_computes(name):
    call, *shapes = CALLS[name]
    agree(call, *[drawn(*shape, seed=i) for i, shape in enumerate(shapes)])


def test_a_softmax_can_convert_first():
    x = drawn(3, 4).astype(np.float32)
    found = F.softmax(gw.tensor(x), 1, dtype=gw.float64)
    assert found.dtype is gw.float64
    np.testing.assert_allclose(found.numpy(), TF.softmax(torch.tensor(x), 1, dtype=torch.float64).numpy(), rtol=1e-12)


def test_a_softmax_without_dim_warns_and_guesses_as_torch_does():
    for shape in [(3,), (3, 4), (2, 3, 4), (2, 3, 2, 2)]:
        with pytest.warns(UserWarning, match="dim"):
            agree(lambda f, x: f.softmax(x), drawn(*shape))


def test_shapes_that_differ_are_broadcast_with_a_warning():
    with pytest.warns(UserWarning, match="broadcasting"):
        agree(lambda f, x, y: f.mse_loss(x, y), drawn(3, 4), drawn(4, seed=1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.mse_loss(x, x, reduction="average"),
        lambda x: F.binary_cross_entropy(x, x[0]),
        lambda x: F.dropout(x, 1.5),
        lambda x: F.mse_loss(x, x, weight=x[0]),
    ],
)
def test_bad_arguments_raise_value_error(call):
    with pytest.raises(ValueError):
        call(gw.ones(2, 3))


@pytest.mark.parametrize("call", [lambda x: F.embedding(gw.tensor([0]), x, sparse=True)])
def test_what_is_not_offered_says_so(call):
    with pytest.raises(NotImplementedError):
        call(gw.ones(2, 3))


def test_one_hot():
    index = gw.tensor([[0, 2], [1, 1]])
    expected = TF.one_hot(torch.tensor([[0, 2], [1, 1]]))
    assert F.one_hot(index).tolist() == expected.tolist()
    assert F.one_hot(index, 4).shape == (2, 2, 4)
    with pytest.raises(RuntimeError):
        F.one_hot(gw.zeros(0, dtype=gw.int64))


def test_gumbel_softmax_samples_and_lets_gradients_through():
    gw.manual_seed(0)
    logits = gw.tensor([0.0, 2.0, 1.0], requires_grad=True)
    hard = F.gumbel_softmax(logits.expand(2000, 3), hard=True)
    counts = hard.sum(0).tolist()
    shares = np.exp([0, 2, 1]) / np.exp([0, 2, 1]).sum()
    assert np.abs(np.array(counts) / 2000 - shares).max() < 0.04
    assert sum(counts) == pytest.approx(2000)
    (hard * gw.tensor([1.0, 0.0, 0.0])).sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_dropout_in_place_keeps_the_history():
    gw.manual_seed(1)
    x = gw.ones(50, requires_grad=True)
    y = x * 2
    assert F.dropout(y, 0.5, inplace=True) is y
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert F.dropout(x, 0.9, training=False) is x


@pytest.mark.parametrize("name, shape", [("dropout1d", (4, 3)), ("dropout1d", (2, 4, 3)), ("dropout3d", (4, 2, 2, 2))])
def test_channels_are_dropped_with_and_without_a_batch(name, shape):
    gw.manual_seed(2)
    found = getattr(F, name)(gw.ones(shape), 0.5).numpy().reshape(-1, int(np.prod(shape[-(int(name[-2])) :])))
    assert (found.std(1) == 0).all() and set(np.unique(found)) <= {0.0, 2.0}
    refuses = []
    for lib in (torch, gw):
        try:
            getattr(lib.nn.functional, name)(lib.ones(2), 0.5)
            refuses.append(False)
        except RuntimeError:
            refuses.append(True)
    assert refuses[0] == refuses[1]
