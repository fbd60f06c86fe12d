"""Samples of the adjoint primitives; the oracle is PyTorch's gradient."""

import torch

from tests.samples import Sample, samples

EXACT = ("float64", "complex128")


def gradient_of(read):
    """The oracle ``f(grad, size, ...)``: what ``read`` of a tensor of that size sends back for ``grad``."""

    def oracle(grad, size, *rest):
        x = torch.zeros(size, dtype=grad.dtype, requires_grad=True)
        (found,) = torch.autograd.grad(read(x, *rest), x, grad, create_graph=True)
        return found

    return oracle


def with_probe(make, size, read, *rest):
    """A sample whose gradient has the shape that reading gives."""
    shape = read(torch.zeros(size), *rest).shape
    return Sample(make(*shape), size, *rest)


def _spread(x, size, dim=None, keepdim=False):
    if not size or (dim is None and not keepdim):
        return x.expand(size)
    for d in () if keepdim else sorted(n % len(size) for n in ((dim,) if isinstance(dim, int) else dim)):
        x = x.unsqueeze(d)
    return x.expand(size)


@samples("spread", dtypes=EXACT, ref=_spread, grad_fn=False)
def spread(make):
    yield Sample(make(), (2, 3))
    yield Sample(make(2), (2, 3), -1)
    yield Sample(make(3), (2, 3, 4), (0, 2))
    yield Sample(make(2, 1), (2, 3), 1, True)
    yield Sample(make(1, 1), (2, 3), None, True)
    yield Sample(make(), (), 0)


@samples("select_backward", dtypes=EXACT, ref=gradient_of(torch.select), grad_fn=False)
def select_backward(make):
    yield with_probe(make, (3, 4), torch.select, 1, -1)
    yield with_probe(make, (3,), torch.select, 0, 0)


@samples("slice_backward", dtypes=EXACT, ref=gradient_of(torch.ops.aten.slice.Tensor), grad_fn=False)
def slice_backward(make):
    yield with_probe(make, (5, 4), torch.ops.aten.slice.Tensor, 0, 1, 5, 2)
    yield with_probe(make, (5, 4), torch.ops.aten.slice.Tensor, -1, None, None, 1)
    yield with_probe(make, (5, 4), torch.ops.aten.slice.Tensor, 0, 4, 2, 1)


@samples("diagonal_backward", dtypes=EXACT, ref=gradient_of(torch.diagonal), grad_fn=False)
def diagonal_backward(make):
    yield with_probe(make, (3, 4), torch.diagonal, -1, 0, 1)
    yield with_probe(make, (2, 3, 4), torch.diagonal, 2, 0, -1)
    yield with_probe(make, (3, 4), torch.diagonal, 9, 0, 1)


@samples("unfold_backward", dtypes=(*EXACT, "float16"), ref=gradient_of(torch.Tensor.unfold), grad_fn=False)
def unfold_backward(make):
    yield with_probe(make, (7,), torch.Tensor.unfold, 0, 3, 1)
    yield with_probe(make, (2, 7, 2), torch.Tensor.unfold, 1, 2, 3)


def _restride(x, stride, offset, to_size, to_stride, to_offset, average=None):
    flat = x.new_zeros(64)
    flat = flat.index_add(0, _places(x.shape, stride, offset), x.reshape(-1))
    to = _places(to_size, to_stride, to_offset)
    if average:
        counted = to if average == "to" else _places(x.shape, stride, offset)
        flat = flat / torch.bincount(counted, minlength=64).clamp(min=1)
    return flat[to].reshape(to_size)


def _places(size, stride, offset):
    place = torch.full((1,) * len(size), offset)
    for i, (n, s) in enumerate(zip(size, stride)):
        place = place + (torch.arange(n) * s).reshape([-1 if k == i else 1 for k in range(len(size))])
    return place.expand(size).reshape(-1)


@samples("restride", dtypes=EXACT, ref=_restride, grad_fn=False)
def restride(make):
    yield Sample(make(3, 4), (4, 1), 0, (2, 2), (1, 4), 2)
    yield Sample(make(3, 4), (2, 1), 1, (12,), (1,), 0)
    yield Sample(make(3), (1,), 0, (2, 3), (0, 1), 0, "to")
    yield Sample(make(2, 3), (0, 1), 0, (3,), (1,), 0, "from")


def _gather(x, dim, index, distinct=False):
    return torch.gather(x, dim, index)


@samples("gather_backward", dtypes=(*EXACT, "bfloat16", "float32"), ref=gradient_of(_gather), grad_fn=False)
def gather_backward(make):
    yield Sample(make(2, 4), (3, 4), 0, make.index(2, 4, high=3))
    yield Sample(make(3, 7), (3, 4), -1, make.index(3, 7, high=4))
    yield Sample(make(2, 3), (3, 4), 0, torch.tensor([[0, 1, 2], [2, 0, 1]]), True)
    yield Sample(make(), (), 0, torch.tensor(0))


@samples("index_backward", dtypes=(*EXACT, "bfloat16", "float32"), ref=gradient_of(torch.ops.aten.index), grad_fn=False)
def index_backward(make):
    i, j = make.index(5, high=3), make.index(5, high=4)
    yield Sample(make(5, 4), (3, 4), [i])
    yield Sample(make(5), (3, 4), [i, j - 4])
    yield Sample(make(2, 5), (2, 3, 4), [None, i, j])
    yield Sample(make(5, 3), (3, 3, 4), [i, None, j])
    mask = torch.tensor([True, False, True])
    yield Sample(make(2, 4), (3, 4), [mask])


@samples("index_select_backward", dtypes=EXACT, ref=gradient_of(torch.index_select), grad_fn=False)
def index_select_backward(make):
    yield Sample(make(5, 4), (3, 4), 0, make.index(5, high=3))
    yield Sample(make(3, 5), (3, 4), 1, make.index(5, high=4))


@samples("take_backward", dtypes=EXACT, ref=gradient_of(torch.take), grad_fn=False)
def take_backward(make):
    yield Sample(make(2, 3), (3, 4), make.index(2, 3, low=-12, high=12))


@samples("masked_select_backward", dtypes=EXACT, ref=gradient_of(torch.masked_select), grad_fn=False)
def masked_select_backward(make):
    yield Sample(make(2), (3,), torch.tensor([True, False, True]))
    yield Sample(make(4), (2, 3), torch.tensor([True, False, True]))


def _masked_source(source, mask):
    return torch.zeros(mask.shape, dtype=source.dtype).masked_scatter(mask, source)


@samples("masked_scatter_backward", dtypes=EXACT, ref=gradient_of(_masked_source), grad_fn=False)
def masked_scatter_backward(make):
    yield Sample(make(3), (4,), torch.tensor([True, False, True]))


def _embed(weight, indices, padding_idx, by_frequency):
    return torch.nn.functional.embedding(indices, weight, padding_idx, scale_grad_by_freq=by_frequency)


def _embedding_backward(grad, indices, num_weights, padding_idx, by_frequency):
    padding = None if padding_idx < 0 else padding_idx
    return gradient_of(_embed)(grad, (num_weights, grad.shape[-1]), indices, padding, by_frequency)


@samples("embedding_backward", dtypes=("float64", "float16"), ref=_embedding_backward, grad_fn=False)
def embedding_backward(make):
    yield Sample(make(2, 3, 4), make.index(2, 3, high=5), 5, -1, False)
    yield Sample(make(6, 4), make.index(6, high=5), 5, 2, False)


# PyTorch's gradient of this gradient leaves the division by the frequency out.
@samples("embedding_backward", dtypes=("float64", "float16"), ref=_embedding_backward, grad=False)
def embedding_backward_by_frequency(make):
    yield Sample(make(6, 4), make.index(6, high=3), 5, 1, True)
