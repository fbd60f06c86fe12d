"""Samples of losses."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import COMPLEXES, FLOATS, HALVES, Sample, samples

REALS = (*HALVES, *FLOATS)
REDUCTIONS = ("mean", "sum", "none")


def named(function, *names):
    """PyTorch's function, whose positional arguments include deprecated ones, called by the table's names."""
    return lambda *args, **kwargs: function(*args[:2], **dict(zip(names, args[2:], strict=False)), **kwargs)


CROSS_ENTROPY = named(nnf.cross_entropy, "weight", "ignore_index", "reduction", "label_smoothing")
NLL_LOSS = named(nnf.nll_loss, "weight", "ignore_index", "reduction")
BINARY_CROSS_ENTROPY = named(nnf.binary_cross_entropy, "weight", "reduction")
BINARY_CROSS_ENTROPY_WITH_LOGITS = named(nnf.binary_cross_entropy_with_logits, "weight", "pos_weight", "reduction")


def _pairs(make, *extra):
    for reduction in REDUCTIONS:
        yield Sample(make(2, 3), make(2, 3), reduction, *extra)
    yield Sample(make(2, 3), make(3), "none", *extra)
    yield Sample(make(2, 3), make(2, 1), "mean", *extra)
    yield Sample(make(2, 3, transposed=True), make(2, 3, transposed=True), "none", *extra)
    yield Sample(make(), make(), "mean", *extra)
    yield Sample(make(0, 3), make(0, 3), "sum", *extra)
    yield Sample(make(2, 3), make(2, 4), "mean", *extra).fails()
    yield Sample(make(2, 3), make(2, 3), "median", *extra).fails()


def _promoting(make):
    yield Sample(make(2, 3), make(2, 3, dtype="float64"), "none")


@samples("mse_loss", dtypes=REALS, ref=named(nnf.mse_loss, "reduction"))
def mse_loss(make):
    yield from _pairs(make)
    yield from _promoting(make)


@samples("mse_loss", "huber_loss", dtypes=("int64", "complex64"), ref=named(nnf.mse_loss, "reduction"))
def losses_of_other_dtypes(make):
    yield Sample(make(2, 3), make(2, 3)).fails()


@samples("l1_loss", dtypes=("int64", *REALS, *COMPLEXES), ref=named(nnf.l1_loss, "reduction"))
def l1_loss(make):
    yield from _pairs(make)


@samples("smooth_l1_loss", dtypes=REALS, ref=named(nnf.smooth_l1_loss, "reduction", "beta"))
def smooth_l1_loss(make):
    yield from _pairs(make)
    yield from _pairs(make, 0.5)
    yield from _pairs(make, 0.0)
    yield Sample(make(2, 3), make(2, 3), "mean", -1.0).fails()


@samples("huber_loss", dtypes=REALS, ref=named(nnf.huber_loss, "reduction", "delta"))
def huber_loss(make):
    yield from _pairs(make)
    yield from _pairs(make, 0.5)
    yield Sample(make(2, 3, dtype="int64"), make(2, 3)).fails()
    yield Sample(make(2, 3), make(2, 3), "mean", 0.0).fails()


@samples("huber_loss", dtypes=REALS, ref=named(nnf.huber_loss, "reduction", "delta"), grad=False)
def huber_loss_of_two_dtypes(make):
    for reduction in REDUCTIONS:  # the input's dtype is that of the result
        for dtype in ("float32", "float64"):
            yield Sample(make(2, 3), make(2, 3, dtype=dtype), reduction)
            yield Sample(make(2, 3, dtype=dtype), make(3), reduction)


def _probabilities(make, *shape, **kwargs):
    return make(*shape, low=0.05, high=0.95, **kwargs)


@samples("binary_cross_entropy", dtypes=HALVES, ref=BINARY_CROSS_ENTROPY, grad=False)
def binary_cross_entropy_in_half_precision(make):
    fixed = dict(requires_grad=False)
    yield Sample(_probabilities(make, 2, 3, **fixed), _probabilities(make, 2, 3, **fixed))


@samples("binary_cross_entropy", dtypes=FLOATS, ref=BINARY_CROSS_ENTROPY, grad_tol=(1e-3, 1e-3))
def binary_cross_entropy(make):
    for reduction in REDUCTIONS:
        yield Sample(_probabilities(make, 2, 3), _probabilities(make, 2, 3), None, reduction)
        fixed = _probabilities(make, 2, 3, requires_grad=False)
        yield Sample(_probabilities(make, 2, 3), fixed, make(3, requires_grad=False), reduction)
    yield Sample(_probabilities(make, 2, 3, transposed=True), _probabilities(make, 2, 3), None, "none")
    yield Sample(make(2, 3, low=1.5), _probabilities(make, 2, 3)).fails()
    yield Sample(_probabilities(make, 2, 3), _probabilities(make, 3)).fails()


@samples("binary_cross_entropy", dtypes=FLOATS, ref=BINARY_CROSS_ENTROPY, gradgrad=False)
def binary_cross_entropy_at_the_ends(make):
    x = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=make.dtype, requires_grad=True)
    yield Sample(x, torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=make.dtype))


@samples("binary_cross_entropy_with_logits", dtypes=HALVES, ref=BINARY_CROSS_ENTROPY_WITH_LOGITS)
def binary_cross_entropy_with_logits_in_half_precision(make):
    yield Sample(make(2, 3), _probabilities(make, 2, 3))


@samples("binary_cross_entropy_with_logits", dtypes=FLOATS, ref=BINARY_CROSS_ENTROPY_WITH_LOGITS)
def binary_cross_entropy_with_logits(make):
    for reduction in REDUCTIONS:
        yield Sample(make(2, 3), _probabilities(make, 2, 3), None, None, reduction)
        fixed = dict(requires_grad=False)
        yield Sample(make(2, 3), _probabilities(make, 2, 3), make(3, **fixed), None, reduction)
        yield Sample(make(2, 3), _probabilities(make, 2, 3), None, make(3, low=0.1, **fixed), reduction)
        yield Sample(make(2, 3), _probabilities(make, 2, 3), make(1, 3, **fixed), make(3, low=0.1, **fixed), reduction)
    yield Sample(make(2, 3, transposed=True), _probabilities(make, 2, 3, transposed=True), None, None, "none")
    yield Sample(make(2, 3) * 100, _probabilities(make, 2, 3))
    yield Sample(make(2, 3), _probabilities(make, 3)).fails()
    yield Sample(make(2, 3), make(2, 3, dtype="int64")).fails()
    yield Sample(make(2, 3, dtype="int64"), _probabilities(make, 2, 3)).fails()


@samples(
    "binary_cross_entropy_with_logits", dtypes=("float32",), ref=BINARY_CROSS_ENTROPY_WITH_LOGITS, tol=(1e-5, 1e-5),
    gradgrad=False,
)  # fmt: skip
def binary_cross_entropy_with_logits_of_two_dtypes(make):
    weight, double = make(3, requires_grad=False), {"dtype": "float64"}  # the result has the target's dtype
    yield Sample(make(2, 3), _probabilities(make, 2, 3, **double), None, None, "none")
    yield Sample(make(2, 3), _probabilities(make, 2, 3, **double), weight, weight.abs(), "mean")
    yield Sample(make(2, 3, **double), _probabilities(make, 2, 3), None, weight.abs(), "none")


@samples("kl_div", dtypes=REALS, ref=named(nnf.kl_div, "reduction", "log_target"))
def kl_div(make):
    for reduction in (*REDUCTIONS, "batchmean"):
        yield Sample(make(2, 3), _probabilities(make, 2, 3), reduction)
        yield Sample(make(2, 3), make(2, 3), reduction, True)
        yield Sample(make(2, 3), _probabilities(make, 3), reduction)
        yield Sample(make(3), _probabilities(make, 2, 3), reduction)
        yield Sample(make(2, 3), make(3), reduction, True)
    yield Sample(make(2, 3), torch.zeros(2, 3, dtype=make.dtype), "sum")
    yield Sample(make(2, 3, dtype="int64"), make(2, 3)).fails()


# Classes


def _targets(make, *shape, classes=3):
    return make.index(*shape, high=classes)


def _class_samples(make, **options):
    weight = make(3, low=0.1, high=2, requires_grad=False)
    for reduction in REDUCTIONS:
        yield Sample(make(4, 3), _targets(make, 4), None, -100, reduction, **options)
        yield Sample(make(4, 3), torch.tensor([0, 2, -100, 1]), None, -100, reduction, **options)
        yield Sample(make(4, 3), torch.tensor([0, 2, 1, 1]), weight, 1, reduction, **options)
        yield Sample(make(3), _targets(make), weight, -100, reduction, **options)
        yield Sample(make(2, 3, 4), _targets(make, 2, 4), None, 0, reduction, **options)
        yield Sample(make(2, 3, 4, 2), _targets(make, 2, 4, 2), weight, 0, reduction, **options)
        yield Sample(make(2, 3, 2, 2, 2), _targets(make, 2, 2, 2, 2), None, -100, reduction, **options)
    yield Sample(make(4, 3, transposed=True), _targets(make, 4), **options)
    yield Sample(make(0, 3), _targets(make, 0), reduction="sum", **options)
    yield Sample(make(4, 3), _targets(make, 4).to(torch.uint8), **options)


@samples("nll_loss", dtypes=FLOATS, ref=NLL_LOSS, gradgrad=False)
def nll_loss_of_nothing(make):
    yield Sample(make(2, 3), torch.tensor([1, 1]), None, 1)


@samples("cross_entropy", dtypes=FLOATS, ref=CROSS_ENTROPY, gradgrad=False)
def cross_entropy_of_nothing(make):
    yield Sample(make(2, 3), torch.tensor([1, 1]), None, 1)
    yield Sample(make(2, 3), torch.tensor([1, 1]), None, 1, "mean", 0.2)


def _class_refusals(make):
    yield Sample(make(2, 3), torch.tensor([0, 3])).fails()
    yield Sample(make(2, 3), torch.tensor([0, -1])).fails()
    yield Sample(make(2, 3), torch.tensor([0, 1, 2])).fails()
    yield Sample(make(2, 3), torch.tensor([[0], [1]])).fails()
    yield Sample(make(2, 3, 4), torch.zeros(2, 5, dtype=torch.int64)).fails()
    yield Sample(make(2, 3), torch.tensor([0, 1], dtype=torch.int32)).fails()
    yield Sample(make(2, 3), torch.tensor([0, 1]), make(2)).fails()
    yield Sample(make(2, 3), torch.tensor([0, 1]), make(3, dtype="float64", requires_grad=False)).fails()
    yield Sample(make(2, 3), torch.tensor([0, 1]), reduction="median").fails()
    yield Sample(make(2, 3, dtype="int64"), torch.tensor([0, 1])).fails()
    yield Sample(make(), torch.tensor([0])).fails()


@samples("nll_loss", dtypes=FLOATS, ref=NLL_LOSS)
def nll_loss(make):
    yield from _class_samples(make)


@samples("nll_loss", dtypes=HALVES, ref=NLL_LOSS, tol=(2e-2, 1e-1))  # PyTorch adds up in half precision
def nll_loss_in_half_precision(make):
    yield from _class_samples(make)


@samples("nll_loss", dtypes=("float32",), ref=NLL_LOSS)
def nll_loss_refusals(make):
    yield from _class_refusals(make)


@samples("cross_entropy", dtypes=HALVES, ref=CROSS_ENTROPY, tol=(2e-2, 1e-1))
def cross_entropy_in_half_precision(make):
    yield from _class_samples(make)


@samples("cross_entropy", dtypes=FLOATS, ref=CROSS_ENTROPY)
def cross_entropy(make):
    yield from _class_samples(make)
    yield from _class_samples(make, label_smoothing=0.2)


@samples("cross_entropy", dtypes=FLOATS, ref=CROSS_ENTROPY)
def cross_entropy_of_distributions(make):
    weight = make(3, low=0.1, high=2, requires_grad=False)
    for reduction in REDUCTIONS:
        for smoothing in (0.0, 0.2):
            for shape in ((4, 3), (2, 3, 4), (3,)):
                x, target = make(*shape), _probabilities(make, *shape)
                yield Sample(x, target, None, -100, reduction, smoothing)
                yield Sample(x, target, weight, -100, reduction, smoothing)
    yield Sample(make(2, 3), _probabilities(make, 2, 3, requires_grad=False))
    yield Sample(make(2, 3), _probabilities(make, 2, 3), ignore_index=1).fails()
    yield Sample(make(2, 3), _probabilities(make, 2)).fails()


@samples("cross_entropy", dtypes=("float32",), ref=CROSS_ENTROPY)
def cross_entropy_refusals(make):
    yield from _class_refusals(make)
    yield Sample(make(2, 3), torch.tensor([0, 1]), label_smoothing=2.0).fails()


@samples("cross_entropy", dtypes=FLOATS, ref=CROSS_ENTROPY)
def cross_entropy_of_large_scores(make):
    yield Sample(make(4, 3, low=-1e4, high=1e4), _targets(make, 4))
    with torch.no_grad():
        x = make(2, 3)
        x[0, 0] = -torch.inf
    yield Sample(x.requires_grad_(), torch.tensor([1, 2]))


def _class_weights(target, weight, shape, ignore_index, mean, smoothing, dtype):
    logs = torch.zeros(shape, dtype=dtype, requires_grad=True)
    reduction = "mean" if mean else "sum"
    # Zeros are their own log-softmax up to a constant, whose gradient is removed by a sum of one.
    with torch.enable_grad():
        if smoothing == 0:
            nnf.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction).backward()
            return -logs.grad
        nnf.cross_entropy(
            logs, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=smoothing
        ).backward()
    hot = torch.nn.functional.one_hot(target, shape[1]).to(dtype)
    return -logs.grad + torch.softmax(logs.detach(), 1) * _mass(hot, weight, smoothing, mean)


def _mass(hot, weight, smoothing, mean):
    weight = torch.ones(hot.shape[1], dtype=hot.dtype) if weight is None else weight
    own = hot @ weight
    mass = own * (1 - smoothing) + smoothing / hot.shape[1] * weight.sum()
    return (mass / own.sum() if mean else mass)[:, None]


@samples("class_weights", dtypes=FLOATS, ref=_class_weights, grad=False)
def class_weights(make):
    weight = make(3, low=0.1, high=2, requires_grad=False)
    for mean in (True, False):
        yield Sample(_targets(make, 4), None, (4, 3), -100, mean, 0.0, make.dtype)
        yield Sample(torch.tensor([0, 1, 2, 1]), weight, (4, 3), 1, mean, 0.0, make.dtype)
        yield Sample(_targets(make, 4), weight, (4, 3), -100, mean, 0.2, make.dtype)


def _cross_entropy_backward(grad, logs, target, weight, ignore_index, mean, smoothing):
    x = logs.detach().requires_grad_()
    reduction = "mean" if mean else "sum" if grad.ndim == 0 else "none"
    with torch.enable_grad():
        loss = nnf.cross_entropy(
            x, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=smoothing
        )
        return torch.autograd.grad(loss, x, grad)[0]


@samples("cross_entropy_backward", dtypes=FLOATS, ref=_cross_entropy_backward, grad=False)
def cross_entropy_backward(make):
    weight = make(3, low=0.1, high=2, requires_grad=False)
    logs = torch.log_softmax(make(4, 3, requires_grad=False), 1)
    for smoothing in (0.0, 0.2):
        yield Sample(make(requires_grad=False), logs, _targets(make, 4), None, -100, True, smoothing)
        yield Sample(make(requires_grad=False), logs, _targets(make, 4), weight, 0, True, smoothing)
        yield Sample(make(4, requires_grad=False), logs, _targets(make, 4), weight, 0, False, smoothing)
