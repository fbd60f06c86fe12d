"""Samples of activations and dropout."""

from __future__ import annotations

import torch

from tests.samples import ALL, COMPLEXES, FLOATS, INTS, REALS, Make, Sample, samples

from .pointwise import Samplings, one, special

aten = torch.ops.aten


def at(make: Make, *values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=make.dtype, requires_grad=True)


@samples("relu", dtypes=ALL)
def relu(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    if make.is_float:
        yield Sample(special(make))


@samples("relu6", dtypes=("bool", *INTS, *REALS))
def relu6(make: Make) -> Samplings:
    for x in one(make, -3, 9):
        yield Sample(x)
    if make.is_float:
        yield Sample(at(make, 0.0, 6.0, -0.0, 7.0, float("nan")))


@samples("hardtanh", dtypes=("int32", "uint8", *REALS))
def hardtanh(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x).expecting(make.dtype is torch.uint8)
    yield Sample(make(4), -2.0, 0.5).expecting(make.dtype is torch.uint8)
    yield Sample(make(9), 1, 2)
    yield Sample(make(4), 2.0, 1.0).fails()
    if make.is_float:
        yield Sample(at(make, -1.0, 1.0, 2.0, float("nan")))


@samples(
    "leaky_relu", "elu", "selu", "celu", "gelu", "mish", "softplus", "logsigmoid", "hardswish", "hardshrink",
    "softshrink", dtypes=REALS, tol=(1e-4, 1e-5),
)  # fmt: skip
def of_floats(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    yield Sample(make(8, low=-8, high=8))
    # gelu and its kin multiply infinities by 0 in their derivatives, and the result depends on the formula.
    yield Sample(at(make, 0.0, -0.0, 3.0, -3.0, 0.5, -0.5))
    yield Sample(make(2, dtype="int64")).values_only()


@samples("hardsigmoid", dtypes=REALS, gradgrad=False, grad_tol=(1e-7, 1e-7))
def hardsigmoid(make: Make) -> Samplings:
    for x in one(make, -6, 6):
        yield Sample(x)
    yield Sample(at(make, 3.0, -3.0, 0.0, float("nan")))


@samples("gelu", dtypes=REALS, tol=(1e-4, 1e-5))
def gelu(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, approximate="tanh")
    yield Sample(make(8, low=-8, high=8), approximate="tanh")
    yield Sample(make(2), approximate="cosh").fails()


@samples("leaky_relu", dtypes=REALS)
def leaky_relu(make: Make) -> Samplings:
    yield Sample(make(6), 0.25)


@samples("elu", "celu", dtypes=REALS, tol=(1e-4, 1e-5))
def elu(make: Make) -> Samplings:
    yield Sample(make(6), alpha=1.75)


@samples("softplus", dtypes=REALS, tol=(1e-4, 1e-5))
def softplus(make: Make) -> Samplings:
    yield Sample(make(6), beta=2.5, threshold=1.0)


@samples("hardshrink", "softshrink", dtypes=REALS)
def shrink(make: Make) -> Samplings:
    yield Sample(make(6), 1.25)
    if make.is_float:
        yield Sample(at(make, 1.25, -1.25, 0.0, float("nan"), float("inf")), 1.25)


@samples("softshrink", dtypes=("float32",))
def softshrink(make: Make) -> Samplings:
    yield Sample(make(6), -1.0).fails()


@samples("silu", dtypes=(*REALS, *COMPLEXES), tol=(1e-4, 1e-5))
def silu(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x.detach() if make.is_complex else x)


@samples("softsign", "tanhshrink", dtypes=("int64", *REALS, *COMPLEXES), tol=(1e-4, 1e-5))
def soft(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)


@samples("threshold", dtypes=(*INTS, *REALS))
def threshold(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, 1, 7)
    if make.is_float:
        yield Sample(at(make, 0.5, 0.25, 1.0, float("nan")), 0.5, -2.5)


@samples("prelu", dtypes=REALS)
def prelu(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(3))
    yield Sample(make(2, 3, 4), make(3))
    yield Sample(make(2, 3, 4), make(1))
    yield Sample(make(4), make(1))
    yield Sample(make(), make(1))
    yield Sample(make(2, 3), make())
    yield Sample(make(2, 3), make(2)).fails()
    yield Sample(make(2, 3), make(3, 1)).fails()


@samples("prelu", dtypes=REALS, gradgrad=False)
def prelu_at_its_kink(make: Make) -> Samplings:
    # PyTorch counts 0 as positive in the second derivative only.
    yield Sample(at(make, 0.0, -0.0, 1.0), make(1))


@samples("threshold_backward", ref=aten.threshold_backward, dtypes=REALS, grad_fn=False, grad=("grad",))
def threshold_backward(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(2, 3), 0)
    yield Sample(make(4), at(make, 0.5, 0.25, 1.0, float("nan")).detach(), 0.5)


def _leaky_relu_backward(grad: torch.Tensor, x: torch.Tensor, negative_slope: float) -> torch.Tensor:
    return aten.leaky_relu_backward(grad, x, negative_slope, False)


@samples("hardtanh_backward", ref=aten.hardtanh_backward, dtypes=REALS, grad_fn=False, grad=("grad",))
def hardtanh_backward(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(2, 3), -0.5, 0.5)
    yield Sample(make(4), at(make, 0.5, 0.25, 1.0, 0.4).detach(), 0.25, 0.5)
    yield Sample(make(2), at(make, 1.0, 1.1).detach(), 0, 1.1)


@samples("leaky_relu_backward", dtypes=REALS, grad_fn=False, grad=("grad",), ref=_leaky_relu_backward)
def leaky_relu_backward(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(2, 3), 0.1)
    yield Sample(make(4), at(make, 0.0, 0.25, -1.0, float("nan")).detach(), -0.5)


@samples("sigmoid_backward", ref=aten.sigmoid_backward, dtypes=(*REALS, *COMPLEXES), grad_fn=False)
def sigmoid_backward(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(2, 3))


@samples("tanh_backward", ref=aten.tanh_backward, dtypes=(*REALS, *COMPLEXES), grad_fn=False)
def tanh_backward(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(2, 3))


@samples(
    "gelu_backward", dtypes=FLOATS, tol=(1e-4, 1e-5), grad_fn=False,
    ref=lambda grad, x, approximate="none": aten.gelu_backward(grad, x, approximate=approximate),
    # Its second derivative has none in PyTorch.
    gradgrad=False,
)  # fmt: skip
def gelu_backward(make: Make) -> Samplings:
    yield Sample(make(2, 3), make(2, 3))
    yield Sample(make(2, 3), make(2, 3), approximate="tanh")


@samples("silu_backward", ref=aten.silu_backward, dtypes=REALS, tol=(1e-4, 1e-5), grad=False)
def silu_backward(make: Make) -> Samplings:
    # PyTorch differentiates silu twice, but by another way.
    yield Sample(make(2, 3, requires_grad=False), make(2, 3, requires_grad=False))


def _check_dropped(results: list[torch.Tensor], x: torch.Tensor, p: float = 0.5, training: bool = True) -> None:
    result, kept = results
    scale = 1 / (1 - p) if training and p < 1 else 1.0
    torch.testing.assert_close(result, (x * kept * scale).to(result.dtype))
    if not training or p == 0:
        assert kept.all()
    elif p == 1:
        assert not kept.any()
    elif kept.numel() > 1000:
        assert abs(kept.float().mean() - (1 - p)) < 0.1


@samples("dropout", ref=None, check=_check_dropped, dtypes=(*REALS, *COMPLEXES))
def dropout(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    yield Sample(make(40, 40), 0.25)
    yield Sample(make(40), p=0.0)
    yield Sample(make(40), p=1.0)
    yield Sample(make(40), training=False)
    yield Sample(make(2), p=1.5).fails()
    yield Sample(make(2, dtype="int64")).fails()


@samples("feature_dropout", ref=None, check=_check_dropped, dtypes=(*REALS, *COMPLEXES))
def feature_dropout(make: Make) -> Samplings:
    yield Sample(make(40, 40, 2, 2), 0.25)
    yield Sample(make(2, 3))
    yield Sample(make(2, 3, 4), training=False)
    yield Sample(make(3)).fails()


@samples("glu", dtypes=REALS, ref=torch.nn.functional.glu)
def glu(make: Make) -> Samplings:
    yield Sample(make(4, 6))
    yield Sample(make(4, 6), 0)
    yield Sample(make(2, 4, 3), -2)
    yield Sample(make(2, 4, 3, transposed=True), 1)
    yield Sample(make(4, 3), -1).fails()
    yield Sample(make(), -1).fails()
