"""Samples of negative log-likelihood losses."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import FLOATS, Sample, samples
from tests.samples.losses import REALS, REDUCTIONS, named

POISSON = named(nnf.poisson_nll_loss, "log_input", "full", "eps", "reduction")


def _counts(make, *shape):
    return make(*shape, low=0, high=9, requires_grad=False)


@samples("poisson_nll_loss", dtypes=("int32", *REALS), ref=POISSON, grad_tol=(1e-2, 1e-3))
def poisson_nll_loss(make):
    for reduction in REDUCTIONS:
        for full in (False, True):
            yield Sample(make(2, 3), _counts(make, 2, 3), True, full, 1e-8, reduction)
            yield Sample(make(2, 3, low=0.1), _counts(make, 2, 3), False, full, 1e-2, reduction)
    yield Sample(make(2, 3, transposed=True), _counts(make, 3), True, False, 1e-8, "none")
    yield Sample(make(2, 3), make(2, 3, low=0, dtype="int64"), True, False, 1e-8, "none")
    yield Sample(make(2, 3), make(2, 4)).fails()
    yield Sample(make(2, 3), make(2, 3), reduction="median").fails()


@samples("poisson_nll_loss", dtypes=("bool", "int32", "float32"), ref=POISSON, tol=(1e-5, 1e-5), grad=False)
def poisson_nll_loss_of_one_target(make):
    for log_input in (True, False):  # a 0-dim target beside integers decides the dtype of its product with them
        for reduction in REDUCTIONS:
            target = torch.tensor(3.5, dtype=torch.float64)
            yield Sample(make(2, 3, low=1), target, log_input, True, 1e-8, reduction)
            yield Sample(make(low=1), target.expand(2), log_input, False, 1e-8, reduction)


@samples("gaussian_nll_loss", dtypes=FLOATS)
def gaussian_nll_loss(make):
    for reduction in REDUCTIONS:
        for full in (False, True):
            variance = make(2, 3, low=0.1)
            yield Sample(make(2, 3), make(2, 3), variance, full, 1e-6, reduction)
    yield Sample(make(2, 3), make(2, 3), make(2, low=0.1), reduction="none")
    yield Sample(make(2, 3), make(2, 3), make(2, 1, low=0.1), reduction="none")
    yield Sample(make(2, 3), make(2, 3), make(1, 3, low=0.1), reduction="none")
    yield Sample(make(2, 3), make(3), make(2, 3, low=0.1), reduction="none")
    yield Sample(make(2, 3, transposed=True), make(2, 3), make(2, 3, low=0.1), reduction="none")
    yield Sample(make(2, 3, transposed=True), make(2, 3), make(2, low=0.1), reduction="none")
    yield Sample(make(2, 3), make(2, 3), make(2, 3, low=0.1, transposed=True), reduction="none")
    yield Sample(make(2, 3), make(2, 3), make(2, 3, low=0), False, 2.0)
    yield Sample(make(2, 3), make(2, 3), -make(2, 3, low=0.1)).fails()
    yield Sample(make(2, 3), make(2, 3), make(3, low=0.1)).fails()
    yield Sample(make(2, 3), make(2, 3), make(1, 1, low=0.1)).fails()
    yield Sample(make(2, 3), make(2, 3), make(2, 3, low=0, dtype="int64")).fails()


@samples("bounded_variance", dtypes=FLOATS, ref=lambda x, eps: x.clamp(min=eps), grad=False)
def bounded_variance(make):
    yield Sample(make(2, 3, low=0, requires_grad=False), 0.5)


def _sequences(make, times, batch, classes):
    return torch.log_softmax(make(times, batch, classes, requires_grad=False), -1).requires_grad_()


@samples("ctc_loss", dtypes=FLOATS, ref=nnf.ctc_loss, gradgrad=False, grad_tol=(1e-4, 1e-5), tol=(1e-5, 1e-5))
def ctc_loss(make):
    times, batch, classes = 7, 3, 5
    ends, sizes = torch.tensor([7, 6, 7]), torch.tensor([3, 2, 0])
    targets = make.index(batch, 3, low=1, high=classes)
    for reduction in REDUCTIONS:
        x = _sequences(make, times, batch, classes)
        yield Sample(x, targets, ends, sizes, 0, reduction)
        yield Sample(x, torch.cat([targets[0], targets[1, :2]]), ends, sizes, 0, reduction)
        yield Sample(x, make.index(batch, 3, high=4), ends.int(), sizes.int(), 4, reduction)
        yield Sample(x, torch.ones(batch, 3, dtype=torch.int32), ends, sizes, 0, reduction)
        # The first cannot be aligned: equal labels need a blank between them.
        repeated = torch.ones(batch, 3, dtype=torch.int64)
        yield Sample(x, repeated, torch.tensor([4, 7, 7]), torch.tensor([3, 3, 1]), 0, reduction, True)
        yield Sample(x, repeated, torch.tensor([2, 7, 7]), torch.tensor([3, 3, 1]), 0, reduction, True)
        yield Sample(x, targets, torch.tensor([0, 7, 0]), torch.tensor([3, 3, 0]), 0, reduction, True)
        alone = _sequences(make, times, 1, classes)[:, 0].detach().requires_grad_()
        yield Sample(alone, targets[0], torch.tensor(7), torch.tensor(3), 0, reduction)
        yield Sample(alone, targets[:1], torch.tensor([6]), torch.tensor([2]), 0, reduction)
    x = _sequences(make, times, batch, classes)
    yield Sample(x, torch.zeros(batch, 0, dtype=torch.int64), ends, torch.zeros(batch, dtype=torch.int64))


@samples("ctc_loss", dtypes=FLOATS, ref=nnf.ctc_loss, grad=False)
def ctc_loss_that_is_infinite(make):
    x = _sequences(make, 3, 2, 4)
    yield Sample(x, torch.ones(2, 2, dtype=torch.int64), torch.tensor([2, 3]), torch.tensor([2, 2]), 0, "none")
    yield Sample(x, torch.ones(2, 5, dtype=torch.int64), torch.tensor([3, 3]), torch.tensor([5, 1]), 0, "none")


@samples("ctc_loss_gradient", dtypes=FLOATS, ref=lambda g, each: each * (g[..., None] if g.ndim else g), grad=False)
def ctc_loss_gradient(make):
    plain = make.plain()
    yield Sample(plain(3), plain(5, 3, 4))
    yield Sample(plain(), plain(5, 3, 4))
    yield Sample(plain(), plain(5, 4))


@samples("ctc_loss", dtypes=("float32", "float16"), ref=nnf.ctc_loss)
def ctc_loss_refusals(make):
    x = make(7, 2, 5)
    targets, ends, sizes = make.index(2, 3, low=1, high=5), torch.tensor([7, 6]), torch.tensor([3, 2])
    yield Sample(x, targets, torch.tensor([8, 6]), sizes).fails()
    yield Sample(x, targets, torch.tensor([-1, 6]), sizes).fails()
    yield Sample(x, targets, ends, torch.tensor([4, 2])).fails()
    yield Sample(x, targets, ends, torch.tensor([3, -2])).fails()
    yield Sample(x, targets.reshape(-1), ends, sizes).fails()
    yield Sample(x, targets, ends[:1], sizes).fails()
    yield Sample(x, targets, ends.float(), sizes).fails()
    yield Sample(x, targets, ends, sizes, 5).fails()
    yield Sample(x, targets[:1], ends, sizes).fails()
    yield Sample(make(5), targets, ends, sizes).fails()
    yield Sample(make(0, 2, 5), targets, ends, sizes).fails()
    yield Sample(x, targets, ends, sizes, 0, "median").fails()
