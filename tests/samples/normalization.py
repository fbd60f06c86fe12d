"""Samples of normalization."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import COMPLEXES, FLOATS, HALVES, Sample, samples

REALS = (*HALVES, *FLOATS)
LOOSE = dict(tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3))
HALF = dict(tol=(2e-2, 2e-2), grad_tol=(5e-2, 5e-2))
"""PyTorch rounds statistics and intermediate values to half precision in places."""


def last(x):
    with torch.no_grad():
        return x.to(memory_format=torch.channels_last).requires_grad_(x.requires_grad)


@samples("layer_norm", dtypes=HALVES, ref=nnf.layer_norm, **HALF)
@samples("layer_norm", dtypes=FLOATS, ref=nnf.layer_norm, **LOOSE)
def layer_norm(make):
    yield Sample(make(2, 3, 4), (4,), make(4), make(4))
    yield Sample(make(2, 3, 4), (4,))
    yield Sample(make(2, 3, 4), (3, 4), make(3, 4))
    yield Sample(make(2, 3, 4), (4,), None, make(4), 0.1).values_only()  # PyTorch's backward fails
    yield Sample(make(2, 3, 4, transposed=True), (4,), make(4), make(4))
    yield Sample(make(5), (5,), make(5), make(5))
    yield Sample(make(0, 4), (4,), make(4), make(4))
    yield Sample(make(2, 3, 4), (3,)).fails()
    yield Sample(make(2, 3, 4), (4,), make(3)).fails()
    yield Sample(make(2, 3, 4), ()).fails()


@samples("layer_norm", dtypes=("float16", "float32"), ref=nnf.layer_norm)
def layer_norm_of_mixed_dtypes(make):
    yield Sample(make(2, 4), (4,), make(4, dtype="float32"), make(4, dtype="float32"))
    yield Sample(make(2, 4), (4,), make(4, dtype="float64")).fails()
    yield Sample(make(2, 4, dtype="int64"), (4,)).fails()


def _layer_norm_training(x, shape, weight=None, bias=None, eps=1e-5):
    out, *kept = torch.native_layer_norm(x, list(shape), weight, bias, eps)
    return out, *(k.float() if k.dtype.itemsize == 2 else k for k in kept)


@samples("layer_norm_training", dtypes=HALVES, ref=_layer_norm_training, grad=False, tol=(2e-2, 2e-2), strides=False)
@samples("layer_norm_training", dtypes=FLOATS, ref=_layer_norm_training, grad=False, tol=(1e-4, 1e-4))
def layer_norm_training(make):
    make = make.plain()
    yield Sample(make(2, 3, 4), (4,), make(4), make(4))
    yield Sample(make(2, 3, 4), (3, 4), make(3, 4), None, 0.1)
    yield Sample(make(2, 3, 4, transposed=True), (4,))
    yield Sample(make(2, 3, 4), (3,)).fails()


def _layer_norm_backward(grad, x, mean, rstd, weight=None, bias=False):
    shape = list(x.shape[-1:])
    mask = [True, weight is not None, bias]
    found = torch.ops.aten.native_layer_norm_backward(grad, x, shape, mean, rstd, weight, weight, mask)
    return tuple(part for part, wanted in zip(found, mask, strict=True) if wanted)


@samples("layer_norm_backward", dtypes=FLOATS, ref=_layer_norm_backward, grad=False, strides=False)
def layer_norm_backward(make):
    x = make(2, 3, 4, requires_grad=False)
    _, mean, rstd = torch.native_layer_norm(x, [4], None, None, 1e-5)
    weight = make(4, requires_grad=False)
    yield Sample(make(2, 3, 4, requires_grad=False), x, mean, rstd)
    yield Sample(make(2, 3, 4, requires_grad=False), x, mean, rstd, weight)
    yield Sample(make(2, 3, 4, requires_grad=False), x, mean, rstd, weight, True)


@samples("rms_norm", dtypes=HALVES, ref=nnf.rms_norm, **HALF)
@samples("rms_norm", dtypes=FLOATS, ref=nnf.rms_norm, **LOOSE)
def rms_norm(make):
    yield Sample(make(2, 3, 4), (4,), make(4))
    yield Sample(make(2, 3, 4), (4,))
    yield Sample(make(2, 3, 4), (3, 4), make(3, 4), 0.1)
    yield Sample(make(2, 3, 4, transposed=True), (4,), make(4))
    yield Sample(make(0, 4), (4,), make(4))
    yield Sample(make(2, 4), (3,)).fails()
    yield Sample(make(2, 4), (4,), make(3)).fails()


def _rms_norm_training(x, shape, weight=None, eps=None):
    wide = x.float() if x.dtype.itemsize == 2 else x
    least = torch.finfo(wide.dtype).eps if eps is None else eps
    dims = tuple(range(-len(shape), 0))
    return nnf.rms_norm(x, shape, weight, eps), (wide.square().mean(dims, keepdim=True) + least).rsqrt()


@samples("rms_norm_training", dtypes=HALVES, ref=_rms_norm_training, grad=False, tol=(2e-2, 2e-2))
@samples("rms_norm_training", dtypes=FLOATS, ref=_rms_norm_training, grad=False, tol=(1e-4, 1e-4))
def rms_norm_training(make):
    make = make.plain()
    yield Sample(make(2, 3, 4), (4,), make(4))
    yield Sample(make(2, 3, 4), (3, 4), None, 0.1)
    yield Sample(make(2, 4), (3,)).fails()


def _rms_norm_backward(grad, x, rstd, weight=None):
    x = x.detach().requires_grad_()
    operands = (x,) if weight is None else (x, weight.detach().requires_grad_())
    with torch.enable_grad():
        y = nnf.rms_norm(x, x.shape[-1:], operands[1] if weight is not None else None, 0.0)
        return torch.autograd.grad(y, operands, grad)


@samples("rms_norm_backward", dtypes=FLOATS, ref=_rms_norm_backward, grad=False, strides=False)
def rms_norm_backward(make):
    x = make(2, 3, 4, requires_grad=False)
    rstd = x.square().mean(-1, keepdim=True).rsqrt()
    yield Sample(make(2, 3, 4, requires_grad=False), x, rstd)
    yield Sample(make(2, 3, 4, requires_grad=False), x, rstd, make(4, requires_grad=False))


def _running(make, n):
    return make(n, requires_grad=False), make(n, low=0.5, high=2, requires_grad=False)


@samples("batch_norm", dtypes=HALVES, ref=nnf.batch_norm, grad=False, **HALF)
@samples("batch_norm", dtypes=FLOATS, ref=nnf.batch_norm, **LOOSE)
def batch_norm(make):
    for training in (True, False):
        yield Sample(make(4, 3, 5), *_running(make, 3), make(3), make(3), training)
        yield Sample(make(4, 3), *_running(make, 3), None, None, training, 0.5, 0.1)
        yield Sample(make(4, 3, 5, 4, transposed=True), *_running(make, 3), make(3), None, training)
        yield Sample(make(4, 3, 5, 4, transposed=True), *_running(make, 3), None, make(3), training).values_only()
        yield Sample(last(make(2, 3, 4, 4)), *_running(make, 3), make(3), make(3), training)
    yield Sample(make(4, 3, 5), None, None, make(3), make(3), True)


@samples("batch_norm", dtypes=("float32",), ref=nnf.batch_norm)
def batch_norm_refusals(make):
    mean, var = _running(make, 3)
    yield Sample(make(1, 3), None, None, training=True).fails()
    yield Sample(make(1, 3, 1), mean, var, training=True).fails()
    yield Sample(make(2, 3), None, None).fails()
    yield Sample(make(2, 3), mean, None).fails()
    yield Sample(make(3), None, None, training=True).fails()
    yield Sample(make(2, 3), mean, None, training=True).fails()
    yield Sample(make(2, 3), mean, var, make(4)).fails()
    yield Sample(make(2, 4), mean, var).fails()
    yield Sample(make(2, 3, dtype="int64"), None, None, training=True).fails()
    yield Sample(make(2, 3), mean, var, make(3, dtype="float64")).fails()


def _batch_norm_training(x, weight=None, bias=None, eps=1e-5):
    dims = [i for i in range(x.ndim) if i != 1]
    var, mean = torch.var_mean(x, dims, correction=0)
    return nnf.batch_norm(x, None, None, weight, bias, True, 0.1, eps), mean, var


@samples("batch_norm_training", dtypes=FLOATS, ref=_batch_norm_training, grad_fn=False, **LOOSE)
def batch_norm_training(make):
    yield Sample(make(4, 3, 20), make(3), make(3))
    yield Sample(make(4, 3))
    yield Sample(make(4, 3), make(3), None)


@samples(
    "batch_norm_inference", dtypes=FLOATS, tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3),
    ref=lambda x, mean, var, weight=None, bias=None, eps=1e-5: nnf.batch_norm(x, mean, var, weight, bias, eps=eps),
)  # fmt: skip
def batch_norm_inference(make):
    yield Sample(make(4, 3, 5), *_running(make, 3), make(3), make(3))
    yield Sample(make(4, 3, 20), *_running(make, 3))
    yield Sample(make(4, 3), *_running(make, 3), make(3), None)


def _batch_norm_backward(grad, x, mean, var, weight=None, training=True, eps=1e-5):
    weight = torch.ones(3, dtype=x.dtype) if weight is None else weight
    return torch.ops.aten.native_batch_norm_backward(
        grad, x, weight, mean, var, mean, (var + eps).rsqrt(), training, eps, [True, True, True]
    )


@samples("batch_norm_backward", dtypes=FLOATS, ref=_batch_norm_backward, grad=False, tol=(1e-4, 1e-4))
def batch_norm_backward(make):
    for training in (True, False):
        for shape in ((4, 3, 20), (4, 3)):
            x = make(*shape, requires_grad=False)
            var, mean = torch.var_mean(x, [i for i in range(x.ndim) if i != 1], correction=0)
            yield Sample(make(*shape, requires_grad=False), x, mean, var, make(3, requires_grad=False), training)
            yield Sample(make(*shape, requires_grad=False), x, mean, var, None, training)


@samples("instance_norm", dtypes=HALVES, ref=nnf.instance_norm, grad=False, **HALF)
@samples("instance_norm", dtypes=FLOATS, ref=nnf.instance_norm, **LOOSE)
def instance_norm(make):
    yield Sample(make(2, 3, 5))
    yield Sample(make(2, 3, 5), *_running(make, 3), make(3), make(3))
    yield Sample(make(2, 3, 4, 4, transposed=True), None, None, make(3), make(3), True, 0.1, 0.1)
    yield Sample(make(2, 3, 5), *_running(make, 3), make(3), make(3), False)
    yield Sample(make(2, 3)).fails()
    yield Sample(make(2, 3, 1)).fails()
    yield Sample(make(2, 3, 5), use_input_stats=False).fails()


@samples("group_norm", dtypes=HALVES, ref=nnf.group_norm, grad=False, **HALF)
@samples("group_norm", dtypes=FLOATS, ref=nnf.group_norm, **LOOSE)
def group_norm(make):
    yield Sample(make(2, 6, 5), 3, make(6), make(6))
    yield Sample(make(2, 6, 20), 2)
    yield Sample(make(2, 6, 3, 3), 6, make(6), None, 0.1)
    yield Sample(make(2, 6, 3, 3), 6, None, make(6), 0.1).values_only()
    yield Sample(make(2, 6, 3, 3, transposed=True), 1, make(6), make(6))
    yield Sample(last(make(2, 6, 3, 3)), 2, make(6), make(6))
    yield Sample(make(2, 6, 5), 4).fails()
    yield Sample(make(1, 6), 6).fails()
    yield Sample(make(6), 3).fails()
    yield Sample(make(2, 6, 2), 3, make(5)).fails()


@samples("group_norm", dtypes=FLOATS, ref=nnf.group_norm, **LOOSE)
def group_norm_of_vectors(make):
    yield Sample(make(2, 6), 3, make(6))


def _group_norm_training(x, groups, weight=None, bias=None, eps=1e-5):
    n, c = x.shape[:2]
    return torch.native_group_norm(x, weight, bias, n, c, x[0, 0].numel(), groups, eps)


@samples("group_norm_training", dtypes=FLOATS, ref=_group_norm_training, grad=False, tol=(1e-4, 1e-4))
def group_norm_training(make):
    make = make.plain()
    yield Sample(make(2, 6, 20), 3, make(6), make(6))
    yield Sample(make(2, 6, 3, 2), 2, None, None, 0.1)
    yield Sample(make(2, 6, 20), 4).fails()


def _group_norm_backward(grad, x, mean, rstd, groups, weight=None):
    n, c = x.shape[:2]
    weight = torch.ones(c, dtype=x.dtype) if weight is None else weight
    return torch.ops.aten.native_group_norm_backward(
        grad, x, mean, rstd, weight, n, c, x[0, 0].numel(), groups, [True, True, True]
    )


@samples("group_norm_backward", dtypes=FLOATS, ref=_group_norm_backward, grad=False, tol=(1e-4, 1e-4))
def group_norm_backward(make):
    x = make(2, 6, 20, requires_grad=False)
    _, mean, rstd = torch.native_group_norm(x, None, None, 2, 6, 20, 3, 1e-5)
    yield Sample(make(2, 6, 20, requires_grad=False), x, mean, rstd, 3, make(6, requires_grad=False))
    yield Sample(make(2, 6, 20, requires_grad=False), x, mean, rstd, 3)


@samples("normalize", dtypes=(*REALS, *COMPLEXES), ref=nnf.normalize)
def normalize(make):
    yield Sample(make(2, 3))
    yield Sample(make(2, 3, transposed=True), 1.0, 0)
    yield Sample(make(2, 3, 4), 3.0, -1)
    yield Sample(make(3), dim=0)
    yield Sample(make(3)).fails()
    yield Sample(make(3, dtype="int64"), dim=0).fails()


@samples("normalize", dtypes=FLOATS, ref=nnf.normalize, gradgrad=False)
def normalize_of_zero(make):
    yield Sample(torch.zeros(2, 3, dtype=make.dtype, requires_grad=True))


@samples("cosine_similarity", dtypes=FLOATS, ref=nnf.cosine_similarity)
def cosine_similarity(make):
    yield Sample(make(2, 3), make(2, 3))
    yield Sample(make(2, 3), make(3), dim=0)
    yield Sample(make(2, 3, 4), make(2, 3, 4), -1, 0.5)
    yield Sample(make(2, 3, transposed=True), make(2, 3, dtype="float64"))
    yield Sample(make(2, 4), make(2, 3)).fails()
    yield Sample(make(2, 3, dtype="int64"), make(2, 3, dtype="int64")).fails()
