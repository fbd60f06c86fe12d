"""Samples of distances between points."""

from __future__ import annotations

from math import inf

import torch.nn.functional as nnf

from tests.samples import COMPLEXES, FLOATS, HALVES, Sample, samples


@samples("cdist", dtypes=FLOATS, tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3), gradgrad=False)
def cdist(make):
    for p in (0, 1, 1.5, 2, 3, inf):
        yield Sample(make(4, 3), make(5, 3), p)
    yield Sample(make(2, 4, 3), make(5, 3))
    yield Sample(make(2, 1, 4, 3), make(3, 5, 3), 1)
    yield Sample(make(30, 3), make(28, 3), 2, "donot_use_mm_for_euclid_dist")
    yield Sample(make(4, 0), make(5, 0))
    yield Sample(make(0, 3), make(5, 3))
    yield Sample(make(4, 3), make(4, 2)).fails()
    yield Sample(make(3), make(4, 3)).fails()
    yield Sample(make(4, 3), make(4, 3), -1).fails()
    yield Sample(make(4, 3), make(4, 3), 2, "at once").fails()


@samples("cdist", dtypes=FLOATS, tol=(1e-3, 1e-3), grad_tol=(1e-2, 1e-2), gradgrad=False, grad_fn=False)
def cdist_by_a_product(make):
    yield Sample(make(30, 3), make(28, 3))
    yield Sample(make(2, 30, 3), make(28, 3))


@samples("pdist", dtypes=FLOATS, ref=nnf.pdist, tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3), gradgrad=False)
def pdist(make):
    for p in (0, 1, 1.5, 2, 3, inf):
        yield Sample(make(5, 3), p)
    yield Sample(make(2, 3))
    yield Sample(make(1, 3))
    yield Sample(make(3)).fails()


@samples("renorm", dtypes=(*FLOATS, *HALVES, *COMPLEXES), tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3), gradgrad=False)
def renorm(make):
    for p in (1, 2, 3, *(() if make.is_complex else (inf,))):  # of infinite order and complex, PyTorch's is NaN
        yield Sample(make(3, 4), p, 0, 2.0)
    yield Sample(make(2, 3, 4), 2, 1, 1)
    yield Sample(make(2, 3, transposed=True), 1.5, -1, 0.5)
    yield Sample(make(3), 2, 0, 1).fails()
    yield Sample(make(3, 3), 2, 0, -1).fails()
    yield Sample(make(3, 3), 0, 0, 1).fails()
    yield Sample(make(3, 3), 2, 2, 1).fails()


@samples("nonnegative", dtypes=(*FLOATS, "int64"), ref=lambda x: x.clone(), grad_fn=False)
def nonnegative(make):
    yield Sample(make(4, low=0))


@samples("nonnegative", dtypes=FLOATS, ref=None)
def negative(make):
    yield Sample(make(4, high=-1)).fails()
