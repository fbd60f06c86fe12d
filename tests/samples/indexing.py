"""Samples of reading and writing by index tensors and masks."""

import torch

from tests.samples import FLOATS, HALVES, INTS, Sample, samples

SOME = ("bool", "uint8", "int64", "bfloat16", "float32", "float64", "complex128")
REAL = SOME[:-1]
SUMS = ("bool", "int16", "int64", *HALVES, *FLOATS, "complex64", "complex128")
ORDERED = ("uint8", "int64", *HALVES, *FLOATS)
aten = torch.ops.aten


def selections(make):
    """(shape of the tensor, list of indices, shape of the result)."""
    i, j = make.index(5, high=3), make.index(5, high=4)
    yield (3, 4), [i]
    yield (3, 4), [i, j]
    yield (3, 4), [make.index(2, 1, high=3), make.index(4, low=-4, high=4)]
    yield (2, 3, 4), [None, i]
    yield (2, 3, 4), [None, i, j]
    yield (3, 2, 4), [i, None, j]
    yield (3, 4), [make.index(high=3)]
    yield (3, 4), [i.int()]
    yield (3, 4), [torch.zeros(0, dtype=torch.int64)]
    yield (3, 4), [torch.tensor([True, False, True])]
    yield (3, 4), [make.mask(3, 4)]
    yield (2, 3, 4), [None, make.mask(3, 4)]
    yield (2, 3, 4), [None, torch.tensor([True, True, False]), make.index(2, high=4)]
    yield (3, 4), [torch.tensor([1, 0, 1], dtype=torch.uint8)]
    yield (3, 4), [torch.zeros(3, dtype=torch.bool)]


@samples("index", dtypes=SOME, ref=aten.index)
def index(make):
    for shape, indices in selections(make):
        yield Sample(make(*shape), indices)
    i = make.index(3, high=2)
    yield Sample(make(4, 3, transposed=True), [i])
    yield Sample(make(4, 3, transposed=True), [None, i])
    yield Sample(make(4, 2, 3, transposed=True), [None, i])
    yield Sample(make(2, 3, 4).permute(1, 2, 0), [None, None, i])
    yield Sample(make(3, 1).expand(3, 4), [i])
    yield Sample(make(2, 3, 8)[:, :, ::2], [i])
    yield Sample(make(2, 3, 4).permute(2, 0, 1), [None, i, torch.tensor([[0], [1]])])


@samples("index", dtypes=("float32",), ref=aten.index)
def index_that_fails(make):
    yield Sample(make(3, 4), [torch.tensor([3])]).fails()
    yield Sample(make(3, 4), [torch.tensor([0]), torch.tensor([-5])]).fails()
    yield Sample(make(3, 4), [torch.tensor([True, False])]).fails()
    yield Sample(make(3, 4), [torch.tensor([0.5])]).fails()
    yield Sample(make(3), [torch.tensor([0]), torch.tensor([0])]).fails()
    yield Sample(make(3, 4), [torch.tensor([0, 1]), torch.tensor([0, 1, 2])]).fails()


def distinct_selections(make):
    """Selections that name no element twice, so that what is written does not depend on an order."""
    rows = make.permutation(3)
    yield (3, 4), [rows[:2]]
    yield (3, 4), [rows, make.permutation(4)[:3]]
    yield (3, 4), [rows[:, None], make.permutation(4) - 4]
    yield (2, 3, 4), [None, rows]
    yield (3, 2, 4), [rows, None, make.permutation(4)[:3]]
    yield (3, 4), [make.mask(3, 4)]
    yield (2, 3, 4), [None, torch.tensor([True, False, True])]
    yield (3, 4), [torch.tensor(1)]


def index_put_oracle(x, indices, values, accumulate=False):
    return aten.index_put(x, indices, values, accumulate)


@samples("index_put", dtypes=SOME, ref=index_put_oracle, inplace_ref=aten.index_put_)
def index_put(make):
    for shape, indices in distinct_selections(make):
        part = torch.zeros(shape)[tuple(slice(None) if i is None else i for i in indices)].shape
        yield Sample(make(*shape, requires_grad=False), indices, make(*part, requires_grad=False))
        yield Sample(make(*shape, requires_grad=False), indices, make(requires_grad=False))
    x = make(4, 3, transposed=True, requires_grad=False)
    yield Sample(x, [torch.tensor([2])], make(1, 3, requires_grad=False))


@samples("index_put", dtypes=SOME, ref=index_put_oracle, inplace_ref=aten.index_put_)
def index_put_with_gradients(make):
    for shape, indices in distinct_selections(make):
        part = torch.zeros(shape)[tuple(slice(None) if i is None else i for i in indices)].shape
        yield Sample(make(*shape), indices, make(*part))
        yield Sample(make(*shape), indices, make())


@samples("index_put", dtypes=SUMS, ref=index_put_oracle, inplace_ref=aten.index_put_)
def index_put_accumulating(make):
    for shape, indices in selections(make):
        part = torch.zeros(shape)[tuple(slice(None) if i is None else i for i in indices)].shape
        yield Sample(make(*shape), indices, make(*part), True)
    i = torch.tensor([0, 0, 1])
    yield Sample(make(3, 4), [i], make(4), True)
    yield Sample(make(4, 3, transposed=True), [i], make(3, 3), True)


@samples("index_put", dtypes=("float32",), ref=index_put_oracle, inplace_ref=aten.index_put_)
def index_put_that_fails(make):
    free = {"requires_grad": False}
    yield Sample(make(3, 4, **free), [torch.tensor([3])], make(4, **free)).fails()
    yield Sample(make(3, 4, **free), [torch.tensor([3])], make(4, **free), True).fails()
    yield Sample(make(3, 4, **free), [torch.tensor([0])], make(5, **free)).fails()
    yield Sample(make(3, 4, **free), [torch.tensor([0])], make(4, dtype="float64", **free)).fails()


@samples("gather", dtypes=SOME)
def gather(make):
    yield Sample(make(3, 4), 0, make.index(2, 4, high=3))
    yield Sample(make(3, 4), 1, make.index(3, 7, high=4))
    yield Sample(make(3, 4), 0, make.index(2, 1, high=3))
    yield Sample(make(3, 4), -1, make.index(2, 3, high=4).int())
    yield Sample(make(4, 3, transposed=True), 0, make.index(4, 3, high=4))
    yield Sample(make(), 0, torch.tensor(0))
    yield Sample(make(3), 0, torch.zeros(0, dtype=torch.int64))
    yield Sample(make(3, 4), 0, torch.zeros(0, 4, dtype=torch.int64))
    yield Sample(make(3, 4), 0, torch.zeros(3, dtype=torch.int64)).fails()
    yield Sample(make(3, 4), 0, torch.zeros(1, 5, dtype=torch.int64)).fails()
    yield Sample(make(3, 4), 0, torch.zeros(1, 4)).fails()
    yield Sample(make(3, 4), 0, torch.full((1, 4), 3)).fails()
    yield Sample(make(3, 4), 0, torch.full((1, 4), -1)).fails()
    yield Sample(make(3, 4), 2, torch.zeros(1, 4, dtype=torch.int64)).fails()


@samples("take_along_dim", dtypes=SOME)
def take_along_dim(make):
    yield Sample(make(3, 4), make.index(2, 4, high=3), 0)
    yield Sample(make(3, 4), make.index(1, 2, low=-4, high=4), 1)
    yield Sample(make(1, 4), make.index(3, 2, high=4), 1)
    yield Sample(make(3, 4), make.index(5, high=12))
    yield Sample(make(3, 4), make.index(5, high=4), 1).fails()


def distinct_along(make):
    """(index, dim) for a 3 by 4 tensor, no place named twice."""
    columns = torch.stack([make.permutation(3) for _ in range(4)], 1)
    yield columns, 0
    yield columns[:2], 0
    yield columns[:1, :2], 0
    yield torch.stack([make.permutation(4) for _ in range(3)])[:, :2], 1
    yield torch.zeros(0, 4, dtype=torch.int64), 0


@samples("scatter", dtypes=SOME, ref=lambda x, dim, index, src: torch.scatter(x, dim, index, src))
def scatter(make):
    for at, dim in distinct_along(make):
        yield Sample(make(3, 4), dim, at, make(*at.shape))
        yield Sample(make(3, 4), dim, at, 1)
    yield Sample(make(4, 3, transposed=True), 0, make.permutation(4)[:, None], make(4, 1))
    yield Sample(make(), 0, torch.tensor(0), make())
    yield Sample(make(3, 4), 0, torch.full((1, 4), 3), 1).fails()
    yield Sample(make(3, 4), 0, torch.full((1, 4), -1), make(1, 4)).fails()
    yield Sample(make(3, 4), 0, torch.zeros(1, 4, dtype=torch.int64), make(1, 3)).fails()


@samples("scatter_add", dtypes=SUMS)
def scatter_add(make):
    yield Sample(make(3, 4), 0, make.index(5, 4, high=3), make(5, 4))
    yield Sample(make(3, 4), 1, make.index(3, 7, high=4), make(3, 7))
    yield Sample(make(3, 4), 0, make.index(2, 3, high=3), make(2, 3))
    yield Sample(make(4, 3, transposed=True), 0, make.index(2, 3, high=4), make(2, 3))
    yield Sample(make(), 0, torch.tensor(0), make())
    yield Sample(make(3, 4), 0, torch.full((1, 4), 3), make(1, 4)).fails()
    mixed = make(1, 4, dtype="float64" if make.name != "float64" else "float32")
    yield Sample(make(3, 4), 0, torch.zeros(1, 4, dtype=torch.int64), mixed).fails()


def scatter_reduce_in_place(x, dim, index, src, reduce, include_self=True):
    return x.scatter_reduce_(dim, index, src, reduce, include_self=include_self)


def scatter_reduce_oracle(x, dim, index, src, reduce, include_self=True):
    return torch.scatter_reduce(x, dim, index, src, reduce, include_self=include_self)


@samples("scatter_reduce", dtypes=ORDERED, ref=scatter_reduce_oracle, inplace_ref=scatter_reduce_in_place)
def scatter_reduce(make):
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            yield Sample(make(3, 4), 0, make.index(5, 4, high=3), make(5, 4), reduce, include_self)
        yield Sample(make(4, 3, transposed=True), 1, make.index(4, 2, high=3), make(4, 2), reduce)
    yield Sample(make(3, 4), 0, torch.zeros(1, 4, dtype=torch.int64), make(1, 4), "most").fails()


@samples(
    "scatter_reduce", dtypes=("float64",), gradgrad=False,
    ref=scatter_reduce_oracle, inplace_ref=scatter_reduce_in_place,
)  # fmt: skip
def scatter_reduce_with_zeros_and_ties(make):
    x = torch.tensor([2.0, 0.0, 5.0, 1.0], dtype=make.dtype, requires_grad=True)
    src = torch.tensor([0.0, 3.0, 0.0, 0.0, 5.0, 5.0, 2.0], dtype=make.dtype, requires_grad=True)
    at = torch.tensor([0, 0, 1, 3, 2, 2, 3])
    for reduce in ("prod", "amax", "amin"):
        yield Sample(x, 0, at, src, reduce)
        yield Sample(x, 0, at, src, reduce, False)


@samples("index_select", dtypes=SOME)
def index_select(make):
    yield Sample(make(3, 4), 0, make.index(5, high=3))
    yield Sample(make(2, 3, 4), -2, make.index(5, high=3).int())
    yield Sample(make(4, 3, transposed=True), 1, make.index(2, high=3))
    yield Sample(make(3, 4), 0, torch.tensor(1))
    yield Sample(make(), 0, torch.tensor([0]))
    yield Sample(make(3, 4), 0, torch.zeros(0, dtype=torch.int64))
    yield Sample(make(3, 4), 0, torch.tensor([3])).fails()
    yield Sample(make(3, 4), 0, torch.tensor([-1])).fails()
    yield Sample(make(3, 4), 0, torch.tensor([0.5])).fails()
    yield Sample(make(3, 4), 0, torch.tensor([[0]])).fails()


@samples(
    "index_add", dtypes=SUMS,
    ref=lambda x, dim, at, source, alpha=1: x.index_add(dim, at, source, alpha=alpha),
    inplace_ref=lambda x, dim, at, source, alpha=1: x.index_add_(dim, at, source, alpha=alpha),
)  # fmt: skip
def index_add(make):
    yield Sample(make(3, 4), 0, make.index(5, high=3), make(5, 4))
    yield Sample(make(2, 3, 4), 1, make.index(5, high=3).int(), make(2, 5, 4))
    yield Sample(make(4, 3, transposed=True), 0, make.index(5, high=4), make(5, 3))
    if not make.is_bool:
        yield Sample(make(3, 4), -1, make.index(2, high=4), make(3, 2), 2)
    yield Sample(make(), 0, torch.tensor([0]), make())
    yield Sample(make(3, 4), 0, torch.tensor([3]), make(1, 4)).fails()
    yield Sample(make(3, 4), 0, torch.tensor([-1]), make(1, 4)).fails()
    yield Sample(make(3, 4), 0, torch.tensor([0]), make(1, 5)).fails()


@samples("index_copy", dtypes=SOME)
def index_copy(make):
    yield Sample(make(3, 4), 0, make.permutation(3)[:2], make(2, 4))
    yield Sample(make(4, 3, transposed=True), 1, make.permutation(3)[:2], make(4, 2))
    yield Sample(make(), 0, torch.tensor([0]), make(1))
    yield Sample(make(3, 4), 0, torch.tensor([3]), make(1, 4)).fails()
    yield Sample(make(3, 4), 0, torch.tensor([0], dtype=torch.int32), make(1, 4)).fails()


@samples("index_fill", dtypes=SOME)
def index_fill(make):
    yield Sample(make(3, 4), 0, torch.tensor([0, 2, 0]), 1)
    yield Sample(make(3, 4), 1, torch.tensor([3, 1, 3]), make())
    yield Sample(make(3, 4), 1, torch.tensor([-1]), 1)
    yield Sample(make(4, 3, transposed=True), 0, torch.tensor([1]), 1)
    yield Sample(make(3, 4), 0, torch.tensor(1), 1)
    yield Sample(make(3, 4), 0, torch.tensor([3]), 1).fails()
    yield Sample(make(3, 4), 0, torch.tensor([0], dtype=torch.int32), 1).fails()
    yield Sample(make(3, 4), 0, torch.tensor([0]), make(1)).fails()


@samples("take", dtypes=SOME)
def take(make):
    yield Sample(make(3, 4), make.index(2, 3, low=-12, high=12))
    yield Sample(make(4, 3, transposed=True), make.index(5, high=12))
    yield Sample(make(), torch.tensor([0, 0]))
    yield Sample(make(3, 4), torch.zeros(0, dtype=torch.int64))
    yield Sample(make(3, 4), torch.tensor([12])).fails()
    yield Sample(make(3, 4), torch.tensor([0], dtype=torch.int32)).fails()


@samples("put", dtypes=SOME)
def put(make):
    yield Sample(make(3, 4), make.permutation(12)[:5] - 12, make(5))
    yield Sample(make(4, 3, transposed=True), make.permutation(12)[:4].reshape(2, 2), make(4))
    yield Sample(make(3, 4), torch.tensor([0]), make(2)).fails()
    yield Sample(make(3, 4), torch.tensor([12]), make(1)).fails()


@samples("put", dtypes=SUMS)
def put_accumulating(make):
    yield Sample(make(3, 4), torch.tensor([0, 5, 0, -1]), make(4), True)


@samples("masked_select", dtypes=SOME)
def masked_select(make):
    yield Sample(make(3, 4), make.mask(3, 4))
    yield Sample(make(3, 4), make.mask(4))
    yield Sample(make(4), make.mask(3, 1))
    yield Sample(make(), torch.tensor(True))
    yield Sample(make(4, 3, transposed=True), make.mask(4, 3))
    yield Sample(make(0, 3), make.mask(0, 3))
    yield Sample(make(3), make.index(3, high=2)).fails()


@samples("masked_scatter", dtypes=SOME)
def masked_scatter(make):
    yield Sample(make(3, 4), make.mask(3, 4), make(3, 4))
    yield Sample(make(3, 4), make.mask(4), make(15))
    yield Sample(make(4, 3, transposed=True), make.mask(4, 3), make(12))
    yield Sample(make(3), torch.tensor([True, True, False]), make(1)).fails()
    yield Sample(make(3), make.index(3, high=2), make(3)).fails()


# A column-major table of indices, as PyTorch lays it out, is of no use to anyone.
@samples("nonzero", "argwhere", strides=False)
def nonzero(make):
    yield Sample(make(3, 4))
    yield Sample(make(4, 3, transposed=True))
    yield Sample(make())
    yield Sample(make(0, 3))
    yield Sample(torch.zeros(3, dtype=make.dtype))


@samples("nonzero_static", ref=lambda x, size, fill_value=-1: torch.nonzero_static(x, size=size, fill_value=fill_value))
def nonzero_static(make):
    yield Sample(make(3, 4), 5)
    yield Sample(make(3, 4), 20, -7)
    yield Sample(make(3, 4), 0)
    yield Sample(make(), 2)


@samples(
    "embedding", dtypes=("float32", "float64", "bfloat16"),
    ref=lambda weight, indices, padding_idx=-1, by_frequency=False: torch.embedding(
        weight, indices, padding_idx, by_frequency
    ),
)  # fmt: skip
def embedding(make):
    yield Sample(make(5, 4), make.index(2, 3, high=5))
    yield Sample(make(5, 4), make.index(6, high=5), 2)
    yield Sample(make(5, 4), make.index(high=5).int())
    yield Sample(make(5, 4, requires_grad=False), torch.zeros(0, dtype=torch.int64))
    yield Sample(make(5, 4), torch.tensor([5])).fails()
    yield Sample(make(5, 4), torch.tensor([-1])).fails()
    yield Sample(make(5, 4), torch.tensor([0.0])).fails()


@samples(
    "embedding",
    dtypes=("float64",),
    gradgrad=False,
    ref=lambda weight, indices, padding_idx, by_frequency: torch.embedding(weight, indices, padding_idx, by_frequency),
)
def embedding_by_frequency(make):
    yield Sample(make(5, 4), torch.tensor([0, 1, 1, 3, 1]), -1, True)


@samples("one_hot", dtypes=("int64",))
def one_hot(make):
    yield Sample(make.index(2, 3, high=4), 4)
    yield Sample(torch.tensor(2), 3)
    yield Sample(make.index(2, 3, high=4))
    yield Sample(torch.zeros(0, dtype=torch.int64)).fails()
    yield Sample(torch.tensor([4]), 4).fails()
    yield Sample(torch.tensor([-1]), 4).fails()
    yield Sample(torch.tensor([1], dtype=torch.int32), 4).fails()


@samples("bincount", dtypes=INTS)
def bincount(make):
    yield Sample(make(9, low=0, high=4))
    yield Sample(make(9, low=0, high=4), None, 7)
    yield Sample(make(9, low=0, high=4), make(9, dtype="float32", requires_grad=False))
    yield Sample(make(9, low=0, high=4), make(9))
    yield Sample(make(0), None, 2)
    yield Sample(make(2, 2)).fails()
    yield Sample(make(3, low=0), make(2)).fails()


@samples("bincount", dtypes=("int64",))
def bincount_that_fails(make):
    yield Sample(torch.tensor([-1])).fails()


@samples("select_scatter", dtypes=REAL)
def select_scatter(make):
    yield Sample(make(3, 4), make(4), 0, 1)
    yield Sample(make(4, 3, transposed=True), make(4), -1, -1)
    yield Sample(make(3, 4), make(3), 0, 1).fails()
    yield Sample(make(3, 4), make(4), 0, 3).fails()


@samples("slice_scatter", dtypes=REAL)
def slice_scatter(make):
    yield Sample(make(5, 4), make(2, 4), 0, 1, 3)
    yield Sample(make(4, 3, transposed=True), make(4, 2), 1, None, None, 2)
    yield Sample(make(5, 4), make(1, 4), 0, -1)
    yield Sample(make(5, 4), make(3, 4), 0, 1, 3).fails()


@samples("diagonal_scatter", dtypes=SOME)
def diagonal_scatter(make):
    yield Sample(make(3, 4), make(3))
    yield Sample(make(4, 3, transposed=True), make(2), -2)
    yield Sample(make(2, 3, 4), make(3, 2), 1, 0, 2)
    yield Sample(make(3, 4), make(4)).fails()
