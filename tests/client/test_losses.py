"""Losses beyond their values, which the samples compare: arguments, modules, gradients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tests.side_by_side import Claims, built_in, name_of, same, settle

import gradwire

claims = Claims()


def _numbers(lib, *shape, start=3):
    """Numbers without regularities, the same under both libraries."""
    count = int(np.prod(shape, dtype=int))
    return ((lib.arange(float(count)) * 7 + start) % 11 / 4 - 1).reshape(shape)


def _three(lib):
    return (_numbers(lib, 4, 3, start=s).requires_grad_() for s in (1, 5, 8))


def _step(lib, loss, *inputs):
    """A loss, and the gradients of its inputs."""
    value = loss(*inputs)
    value.sum().backward()
    return value, [i.grad for i in inputs if i.requires_grad]


@claims
def legacy_arguments_of_functions(lib):
    f, x, y = lib.nn.functional, _numbers(lib, 3), _numbers(lib, 3, start=4)
    return [
        f.mse_loss(x, y, size_average=False), f.l1_loss(x, y, reduce=False), f.l1_loss(x, y, None, True),
        f.smooth_l1_loss(x, y, False, False), f.soft_margin_loss(x, y.sign(), size_average=True),
        f.kl_div(x, y.abs(), size_average=False), f.poisson_nll_loss(x, y.abs(), size_average=False),
    ]  # fmt: skip


@claims
def legacy_arguments_of_modules(lib):
    made = [
        lib.nn.MSELoss(size_average=False), lib.nn.L1Loss(reduce=False), lib.nn.CrossEntropyLoss(size_average=True),
        lib.nn.TripletMarginLoss(reduce=False), lib.nn.MultiMarginLoss(size_average=False, reduce=True),
    ]  # fmt: skip
    return [m.reduction for m in made]


@claims
def the_old_name_of_the_mean(lib):
    return lib.nn.functional.mse_loss(_numbers(lib, 3), _numbers(lib, 3, start=4), reduction="elementwise_mean")


@claims
def an_old_class_warns(lib):
    return lib.nn.NLLLoss2d()(_numbers(lib, 2, 3, 2, 2), lib.ones(2, 2, 2, dtype=lib.int64))


@claims
def distances_may_be_functions(lib):
    def furthest(x, y):
        return (x - y).abs().amax(-1)

    loss = lib.nn.TripletMarginWithDistanceLoss(distance_function=furthest, margin=0.5, swap=True)
    return _step(lib, loss, *_three(lib))


@claims
def distances_may_be_modules(lib):
    loss = lib.nn.TripletMarginWithDistanceLoss(distance_function=lib.nn.PairwiseDistance(), reduction="sum")
    return repr(loss), _step(lib, loss, *_three(lib))


@claims
def triplets(lib):
    return _step(lib, lib.nn.TripletMarginLoss(margin=0.7, p=3.0, swap=True), *_three(lib))


@claims
def pairs(lib):
    x, y, _ = _three(lib)
    sign = lib.tensor([1, -1, 1, -1])
    return [
        _step(lib, lib.nn.CosineEmbeddingLoss(0.2), x, y, sign),
        _step(lib, lib.nn.MarginRankingLoss(0.3), *(t.detach()[:, 0].clone().requires_grad_() for t in (x, y)), sign),
        _step(lib, lib.nn.HingeEmbeddingLoss(0.5, reduction="sum"), x.detach().requires_grad_(), sign[:, None]),
        _step(lib, lib.nn.SoftMarginLoss(), y.detach().requires_grad_(), sign[:3]),
    ]


@claims
def several_classes(lib):
    x, classes = _numbers(lib, 4, 3), lib.tensor([0, 2, 1, 1])
    weight = lib.tensor([0.5, 1.0, 2.0])
    labels = lib.tensor([[0, 2, -1], [1, -1, 0], [-1, 0, 0], [2, 1, 0]])
    hot = (labels > 0).to(lib.float32)
    return [
        _step(lib, lib.nn.MultiMarginLoss(2, 0.7, weight), x.clone().requires_grad_(), classes),
        _step(lib, lib.nn.MultiLabelMarginLoss(), x.clone().requires_grad_(), labels),
        _step(lib, lib.nn.MultiLabelSoftMarginLoss(weight), x.clone().requires_grad_(), hot),
    ]


@claims
def counts_and_variances(lib):
    x, y, z = _three(lib)
    return [
        _step(lib, lib.nn.PoissonNLLLoss(full=True), x, y.detach().abs().round()),
        _step(lib, lib.nn.GaussianNLLLoss(full=True), y, z.detach(), x.detach().abs().requires_grad_()),
        lib.nn.functional.gaussian_nll_loss(y, z, 0.5),
    ]


@claims
def a_variance_is_no_int(lib):
    return lib.nn.functional.gaussian_nll_loss(_numbers(lib, 3), _numbers(lib, 3), 1)


@claims
def a_variance_is_not_negative(lib):
    return lib.nn.functional.gaussian_nll_loss(_numbers(lib, 3), _numbers(lib, 3), lib.tensor([1.0, -1.0, 1.0]))


def _sequences(lib):
    return lib.log_softmax(_numbers(lib, 6, 2, 4), -1).detach().requires_grad_()


@claims
def lengths_of_sequences_may_be_tuples(lib):
    loss = lib.nn.CTCLoss(blank=3)
    x, targets = _sequences(lib), lib.tensor([[0, 1, 2], [2, 2, 0]])
    value = loss(x, targets, (6, 5), [3, 1])
    value.backward()
    return value, x.grad, repr(loss)


@claims
def sequences_of_labels_one_after_the_other(lib):
    x = _sequences(lib)
    value = lib.nn.functional.ctc_loss(x, lib.tensor([1, 2, 3]), (6, 6), (1, 2), reduction="none")
    value.sum().backward()
    return value, x.grad


@claims
def a_length_of_a_sequence_is_no_bare_int(lib):
    return lib.nn.functional.ctc_loss(_sequences(lib)[:, 0], lib.tensor([1]), 6, 1)


@claims
def no_second_derivative_of_ctc(lib):
    x = _sequences(lib)
    value = lib.nn.functional.ctc_loss(x, lib.tensor([1, 2, 3]), (6, 6), (1, 2))
    (slope,) = lib.autograd.grad(value, x, create_graph=True)
    try:
        lib.autograd.grad(slope.sum(), x)[0].tolist()
    except (RuntimeError, NotImplementedError):
        return "refused"
    return None


@claims
def second_derivatives(lib):
    f, sign = lib.nn.functional, lib.tensor([1, -1, 1, -1])
    losses = [
        lambda x, y: f.cosine_embedding_loss(x, y, sign, margin=-1),
        lambda x, y: f.triplet_margin_loss(x, y, y.flip(0), swap=True, margin=9),
        lambda x, y: f.poisson_nll_loss(x, y, full=True),
        lambda x, y: f.gaussian_nll_loss(x, y, y**2 + 1),
        lambda x, y: f.multilabel_soft_margin_loss(x, y),
        lambda x, y: f.soft_margin_loss(x, y.detach().sign()),
    ]
    found = []
    for loss in losses:
        x, y, _ = _three(lib)
        slopes = lib.autograd.grad(loss(x, y.abs() + 0.3), x, create_graph=True)[0]
        found.append(lib.autograd.grad((slopes * slopes).sum(), x)[0].tolist())
    return found


@claims
def a_linear_layer_and_its_loss(lib):
    loss = lib.nn.LinearCrossEntropyLoss(3, 5, bias=True, label_smoothing=0.1, out_features=(2,))
    with lib.no_grad():
        loss.linear.weight.copy_(_numbers(lib, 10, 3))
        loss.linear.bias.copy_(_numbers(lib, 10))
    x = _numbers(lib, 4, 3).requires_grad_()
    value = loss(x, lib.tensor([[0, 1], [2, 3], [4, 0], [1, 2]]))
    value.backward()
    return value.item(), x.grad, loss.linear.weight.grad, repr(loss), sorted(loss.state_dict())


@claims
def options_change_nothing(lib):
    x, weight = _numbers(lib, 4, 3).requires_grad_(), _numbers(lib, 5, 3, start=6).requires_grad_()
    options = lib.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    value = lib.nn.functional.linear_cross_entropy(x, weight, lib.tensor([0, 1, 4, 2]), options=options)
    value.backward()
    return value.item(), x.grad, weight.grad


@claims
def refused_arguments(lib):
    f, x = lib.nn.functional, _numbers(lib, 4, 3)
    attempts = {
        "reduction": lambda: f.soft_margin_loss(x, x, reduction="median"),
        "margin": lambda: f.triplet_margin_loss(x, x, x, margin=0),
        "margin of a function": lambda: f.triplet_margin_with_distance_loss(x, x, x, margin=-1),
        "margin of a module": lambda: lib.nn.TripletMarginLoss(margin=0),
        "power": lambda: lib.nn.MultiMarginLoss(p=3),
        "dimensions": lambda: f.margin_ranking_loss(x, x[0], x),
        "cosine": lambda: f.cosine_embedding_loss(x, x, x),
        "linear": lambda: f.linear_cross_entropy(x, x[:, :2], lib.tensor([0, 1, 2, 3])),
        "cutoffs": lambda: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 4]),
        "no cutoffs": lambda: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, []),
        "last cutoff": lambda: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [20]),
    }
    found = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            found[name] = None
        except Exception as error:
            found[name] = built_in(error)
    return found


@claims
def modules_as_text(lib):
    nn = lib.nn
    made = [
        nn.CTCLoss(), nn.PoissonNLLLoss(), nn.GaussianNLLLoss(), nn.MultiMarginLoss(), nn.TripletMarginLoss(),
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True), nn.LinearCrossEntropyLoss(3, 4),
    ]  # fmt: skip
    return [repr(m) for m in made]


def _adaptive(lib):
    made = lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True)
    with lib.no_grad():
        for i, parameter in enumerate(made.parameters()):
            parameter.copy_(_numbers(lib, *parameter.shape, start=i))
    return made


@claims
def adaptive_softmax(lib):
    made, x = _adaptive(lib), _numbers(lib, 5, 8).requires_grad_()
    output, loss = made(x, lib.tensor([0, 15, 5, 19, 3]))
    loss.backward()
    return output.tolist(), loss.item(), x.grad, [p.grad for p in made.parameters()]


@claims
def adaptive_softmax_of_one_sample(lib):
    made, x = _adaptive(lib), _numbers(lib, 8)
    found = made(x, lib.tensor(12))
    return found.output.item(), found.loss.item(), made.log_prob(x[None]).tolist(), made.predict(x[None]).tolist()


@claims
def adaptive_softmax_with_an_unknown_class(lib):
    return _adaptive(lib)(_numbers(lib, 2, 8), lib.tensor([0, 25])).output


@claims
def dtypes_of_losses_of_two_dtypes(lib):
    f, found = lib.nn.functional, []
    dtypes = [lib.float16, lib.bfloat16, lib.float32, lib.float64]
    losses = [f.huber_loss, f.binary_cross_entropy_with_logits, f.mse_loss, f.smooth_l1_loss, f.poisson_nll_loss]
    for loss in losses:
        for first in dtypes:
            for second in dtypes:
                x, y = lib.full((2,), 0.5, dtype=first), lib.full((2,), 0.5, dtype=second)
                found.append([loss(x, y, reduction=reduction).dtype for reduction in ("none", "sum", "mean")])
    return found


@claims
def a_huber_loss_that_integers_would_have(lib):
    return lib.nn.functional.huber_loss(lib.ones(2, dtype=lib.int64), lib.ones(2))


@claims
def integer_logits(lib):
    return lib.nn.functional.binary_cross_entropy_with_logits(lib.ones(2, dtype=lib.int64), lib.ones(2))


@claims
def one_rate_for_integers(lib):
    f, target = lib.nn.functional, lib.tensor(2.0, dtype=lib.float64)
    return [
        f.poisson_nll_loss(lib.ones(2, dtype=dtype), target, log_input=log).dtype
        for dtype in (lib.bool, lib.int64, lib.float32)
        for log in (True, False)
    ]


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_losses_are_pytorchs(claim) -> None:
    same(claim)


def test_an_adaptive_softmax_costs_no_round_trip() -> None:
    made, x = _adaptive(gradwire), _numbers(gradwire, 5, 8)
    settle()
    before = gradwire.current_session().stats()["round_trips"]
    loss = made(x, gradwire.tensor([0, 15, 5, 19, 3])).loss
    loss.backward()
    assert gradwire.current_session().stats()["round_trips"] == before
    assert loss.item() > 0


def test_gradients_of_ctc_are_as_exact_as_pytorchs_in_float64() -> None:
    torch.manual_seed(0)
    scores = torch.randn(50, 4, 15, dtype=torch.float64).log_softmax(-1)
    targets, lengths = torch.randint(1, 15, (4, 20)), (50, 40, 50, 45)
    exact = scores.clone().requires_grad_()
    torch.nn.functional.ctc_loss(exact, targets, lengths, (20, 10, 15, 20), reduction="sum").backward()
    x = gradwire.tensor(scores.float().numpy(), requires_grad=True)
    gradwire.nn.functional.ctc_loss(
        x, gradwire.tensor(targets.numpy()), lengths, (20, 10, 15, 20), reduction="sum"
    ).backward()
    np.testing.assert_allclose(x.grad.numpy(), exact.grad.numpy(), atol=2e-6)


def test_a_legacy_argument_is_named_at_the_programs_line() -> None:
    x = gradwire.ones(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradwire.nn.functional.mse_loss(x, x, size_average=False)
        gradwire.nn.functional.mse_loss(x, x, reduction="elementwise_mean")
    assert [w.filename for w in caught] == [__file__, __file__]
    assert "reduction='sum'" in str(caught[0].message)
