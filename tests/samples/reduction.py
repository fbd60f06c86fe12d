"""Samples of reductions."""

import torch

from tests.samples import BOOL, COMPLEXES, FLOATS, HALVES, INTS, Sample, samples

INEXACT = (*HALVES, *FLOATS, *COMPLEXES)
ORDERED = (*INTS, *HALVES, *FLOATS)
WITH_BOOL = (*BOOL, *ORDERED)
NAN = float("nan")
INF = float("inf")


def layouts(make, **kwargs):
    """One tensor each: plain, 0-dim, empty, transposed, strided, expanded."""
    yield make(3, 4, **kwargs)
    yield make(**kwargs)
    yield make(0, 3, **kwargs)
    yield make(4, 3, transposed=True, **kwargs)
    yield make(2, 3, 8, **kwargs)[:, :, ::2]
    yield make(3, 1, **kwargs).expand(3, 4)


def with_nan(make, *shape):
    """Some NaNs among the values, where the dtype has them."""
    x = make(*shape, requires_grad=False)
    if make.is_float:
        x[make.mask(*shape)] = NAN
    return x.requires_grad_(make.is_float)


@samples("sum")
def sum_(make):
    for x in layouts(make):
        yield Sample(x)
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), -1, keepdim=True)
    yield Sample(make(2, 3, 4), (0, 2))
    yield Sample(make(2, 3, 4), (0, 1))
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(2, 3, 4), (1, -1), True)
    yield Sample(make(4, 3, transposed=True), 0)
    yield Sample(make(4, 3, 2, transposed=True), (0, 1))
    yield Sample(make(0, 3), 0)
    yield Sample(make(3, 0), 0)
    yield Sample(make(), 0)
    yield Sample(make(3, 4), ())
    yield Sample(make(3, 4), None, True)
    yield Sample(make(3, 4), 2).fails()
    yield Sample(make(3, 4), (0, -2)).fails()


@samples("sum", dtypes=(*INTS, *BOOL, "float32", "float16"), grad_fn=False)
def sum_dtype(make):
    yield Sample(make(3, 4, requires_grad=False), dtype=torch.float64)
    yield Sample(make(3, 4), 1, dtype=torch.float32)
    yield Sample(make(3, 4, requires_grad=False), 1, dtype=torch.int64)


@samples("sum", dtypes=("float32",), grad=False)
def sum_of_many(make):
    yield Sample(make(700, 300, low=0))
    yield Sample(make(700, 300, low=0), 0)
    yield Sample(make(700, 300, low=0), 1)
    yield Sample(make(2, 70_000, low=0), 1)
    yield Sample(make(70_000, 2, low=0), 0)


@samples("nansum", dtypes=(*BOOL, *ORDERED))
def nansum(make):
    yield Sample(with_nan(make, 3, 4))
    yield Sample(with_nan(make, 3, 4), 0)
    yield Sample(with_nan(make, 3, 4), (0, 1), True)
    yield Sample(make(), 0)


@samples("nansum", dtypes=("complex64",))
def nansum_complex(make):
    yield Sample(make(3)).fails()


@samples("mean", dtypes=INEXACT)
def mean(make):
    for x in layouts(make):
        yield Sample(x)
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), (0, 1), True)
    yield Sample(make(2, 3, 4), (0, -1))
    yield Sample(make(3, 0), 1)
    yield Sample(make(3, 4), None, True)


@samples("mean", dtypes=INTS)
def mean_of_integers(make):
    yield Sample(make(3, 4), dtype=torch.float32)
    yield Sample(make(3, 4)).fails()


@samples("nanmean", dtypes=(*HALVES, *FLOATS))
def nanmean(make):
    yield Sample(with_nan(make, 3, 4))
    yield Sample(with_nan(make, 3, 4), 1)
    yield Sample(with_nan(make, 3, 4), (0, 1), True)
    yield Sample(torch.full((2, 2), NAN, dtype=make.dtype))


SPREADS = ("var", "std", "var_mean", "std_mean")


@samples(*SPREADS, dtypes=INEXACT)
def spreads(make):
    yield Sample(make(3, 4))
    yield Sample(make(4, 3, transposed=True), 0)
    yield Sample(make(3, 4), (0, 1), keepdim=True)
    yield Sample(make(2, 3, 4), (0, 2), correction=0)
    yield Sample(make(3, 4), 1, correction=2)
    yield Sample(make(3, 4), None, correction=1)


@samples(*SPREADS, dtypes=FLOATS, gradgrad=False)
def spreads_at_the_edge(make):
    yield Sample(torch.ones(3, dtype=make.dtype, requires_grad=True))
    yield Sample(make(1, 3), 0)
    yield Sample(make(0, 3), 0)
    yield Sample(make())


@samples("var", "std", dtypes=("int64",))
def spread_of_integers(make):
    yield Sample(make(3)).fails()


@samples("prod")
def prod(make):
    # In the half types PyTorch rounds every product: few values near 1 keep that within bounds.
    near = {"low": 0.5, "high": 1.5} if make.name in HALVES else {}
    for x in [make(4, **near)[::2]] if near else layouts(make):
        yield Sample(x)
    yield Sample(make(3, 4, **near), 0)
    yield Sample(make(3, 4, **near), -1, True)
    yield Sample(make(4, 3, transposed=True, **near), 1)
    yield Sample(make(), 0)
    yield Sample(make(), -1, True)
    yield Sample(make(0, 3), 0)


@samples("prod", "cumprod", dtypes=("float64", "complex128"))
def products_with_zeros(make):
    for values in ([2, 0, 3], [0, 0, 3], [2, 3, 0], [0, 2, 3], [0, 0, 0]):
        yield Sample(torch.tensor(values, dtype=make.dtype, requires_grad=True), 0)
    yield Sample(torch.tensor([[2, 0, 3], [0, 0, 3]], dtype=make.dtype, requires_grad=True), 1)


@samples("prod", dtypes=("float64",))
def prod_of_all_with_zeros(make):
    yield Sample(torch.tensor([[2, 0, 3], [1, 4, 5]], dtype=make.dtype, requires_grad=True))
    yield Sample(torch.tensor([[2, 0, 3], [1, 0, 5]], dtype=make.dtype, requires_grad=True))


@samples("norm", dtypes=INEXACT)
def norm(make):
    for x in layouts(make):
        yield Sample(x)
    for p in (0, 1, 2, 3, 1.5, 0.5, INF, -INF, -1, 2.5):
        yield Sample(make(3, 4), p)
        yield Sample(make(3, 4), p, 0)
    yield Sample(make(2, 3, 4), 2, (0, 2), True)
    yield Sample(make(3, 4), 2, None, True)


@samples("norm", dtypes=FLOATS, gradgrad=False)
def norm_at_the_edge(make):
    zeros = torch.zeros(3, dtype=make.dtype, requires_grad=True)
    for p in (0, 1, 2, 3, 1.5, INF):
        yield Sample(zeros, p)
    yield Sample(torch.tensor([2.0, -2.0, 1.0], dtype=make.dtype, requires_grad=True), INF)
    yield Sample(make(0), INF).fails()
    yield Sample(make(0), -1).fails()
    yield Sample(make(0, 3), INF, 1)
    yield Sample(make(3), 2, dtype=torch.complex64).fails()


@samples("norm", dtypes=("float16", "float32"))
def norm_dtype(make):
    yield Sample(make(3, 4), 2, 0, False, dtype=torch.float64)


@samples("count_nonzero")
def count_nonzero(make):
    for x in layouts(make):
        yield Sample(x)
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), (0, 1))


@samples("all", "any")
def truths(make):
    for x in layouts(make):
        yield Sample(x)
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), (0, 1), True)
    yield Sample(make(0, 3), 0)
    yield Sample(make(), 0)
    yield Sample(make(3, 4), ())


@samples("logsumexp", dtypes=(*INTS, *INEXACT))
def logsumexp(make):
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), (0, 1), True)
    yield Sample(make(3, 4), -1)
    yield Sample(make(4, 3, transposed=True), 0)
    yield Sample(make(), 0)


@samples("logsumexp", dtypes=FLOATS)
def logsumexp_at_the_edge(make):
    yield Sample(make(0, 3), 0)
    yield Sample(torch.full((2, 3), -INF, dtype=make.dtype, requires_grad=True), 1)
    yield Sample(torch.tensor([[INF, 1.0], [-INF, 1.0]], dtype=make.dtype), 1)
    yield Sample(torch.tensor([1000.0, 1001.0], dtype=make.dtype, requires_grad=True), 0)


@samples("softmax", "log_softmax", dtypes=(*HALVES, *FLOATS))
def softmaxes(make):
    yield Sample(make(3, 4), 0)
    yield Sample(make(3, 4), 1)
    yield Sample(make(2, 3, 4), 1)
    yield Sample(make(4, 3, transposed=True), -1)
    yield Sample(make(), 0)
    yield Sample(make(0, 3), 0)
    yield Sample(make(3, 0), 1)
    yield Sample(make(3, 4), 1, torch.float64)
    yield Sample(torch.full((2, 3), -INF, dtype=make.dtype, requires_grad=True), 1)
    yield Sample(torch.tensor([1000.0, 1001.0, -INF], dtype=make.dtype), 0)


@samples("softmax", "log_softmax", dtypes=("int64", "complex64"))
def softmax_of_others(make):
    yield Sample(make(3), 0).fails()
    yield Sample(make(3, 4), 1, torch.float64)


# Primitives: the oracle is what they are defined to be


def _softmax_backward(grad, output, dim):
    return output * (grad - (grad * output).sum(dim, keepdim=True))


def _log_softmax_backward(grad, output, dim):
    return grad - output.exp() * grad.sum(dim, keepdim=True)


@samples("softmax_backward", dtypes=FLOATS, ref=_softmax_backward, grad_fn=False)
@samples("log_softmax_backward", dtypes=FLOATS, ref=_log_softmax_backward, grad_fn=False)
def softmax_gradients(make):
    yield Sample(make(3, 4), make(3, 4), 1)
    yield Sample(make(3, 4), make(3, 4), 0)
