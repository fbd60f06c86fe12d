"""Samples of linear algebra."""

from __future__ import annotations

import torch

from tests.samples import COMPLEXES, FLOATS, Sample, samples

LARGE = (*FLOATS, *COMPLEXES)


def regular(make, *batch, n=3):
    """Well-conditioned square matrices."""
    with torch.no_grad():
        x = make(*batch, n, n) * 0.3 + 2 * torch.eye(n, dtype=make.dtype)
    return x.requires_grad_()


@samples("det", dtypes=LARGE, ref=torch.linalg.det, grad_tol=(1e-3, 1e-3))
def det(make):
    yield Sample(regular(make))
    yield Sample(regular(make, 2))
    yield Sample(regular(make, n=0))
    yield Sample(make(2, 3)).fails()
    yield Sample(make(3)).fails()


@samples("slogdet", dtypes=FLOATS, ref=lambda x: tuple(torch.linalg.slogdet(x)), grad_tol=(1e-3, 1e-3))
def slogdet(make):
    yield Sample(regular(make))
    yield Sample(regular(make, 2))


@samples(
    "cofactor", dtypes=LARGE, ref=lambda x: torch.linalg.det(x).conj()[..., None, None] * torch.linalg.inv(x).mH,
    grad=False, strides=False,
)  # fmt: skip
def cofactor(make):
    yield Sample(regular(make).detach())
    yield Sample(regular(make, 2).detach())


@samples("inverse", dtypes=LARGE, grad_tol=(1e-3, 1e-3))
def inverse(make):
    yield Sample(regular(make))
    yield Sample(regular(make, 2, 2))
    yield Sample(regular(make, n=0))
    yield Sample(torch.zeros(2, 2, dtype=make.dtype)).fails()
    yield Sample(make(2, 3)).fails()


@samples(
    "linalg_solve", dtypes=LARGE, ref=lambda a, b, left=True: torch.linalg.solve(a, b, left=left), grad_tol=(1e-3, 1e-3)
)
def linalg_solve(make):
    yield Sample(regular(make), make(3))
    yield Sample(regular(make), make(3, 2))
    yield Sample(regular(make, 2), make(2, 3, 2))
    yield Sample(regular(make, 2), make(2, 3))
    yield Sample(regular(make), make(2, 3, 2))
    yield Sample(regular(make), make(2, 3), left=False)
    yield Sample(regular(make), make(4, 2)).fails()
    yield Sample(regular(make), make(3, dtype="float64" if make.dtype is torch.float32 else "float32")).fails()


@samples(
    "linalg_cholesky", dtypes=LARGE, ref=lambda x, upper=False: torch.linalg.cholesky(x, upper=upper),
    grad_tol=(1e-3, 1e-3),
)  # fmt: skip
def linalg_cholesky(make):
    for upper in (False, True):
        for batch in ((), (2,)):
            x = regular(make, *batch)
            yield Sample((x @ x.mH).detach().requires_grad_(), upper=upper)
    yield Sample(-torch.eye(2, dtype=make.dtype)).fails()
