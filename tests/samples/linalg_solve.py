"""Samples of linear systems."""

from __future__ import annotations

import torch

from tests.samples import Sample, samples
from tests.samples.linalg import LARGE, regular


@samples("linalg_inv_ex", dtypes=LARGE, ref=lambda x, **k: torch.linalg.inv_ex(x, **k), grad_tol=(1e-3, 1e-3))
def linalg_inv_ex(make):
    yield Sample(regular(make))
    yield Sample(regular(make, 2))
    yield Sample(torch.zeros(2, 2, 2, dtype=make.dtype), check_errors=True).fails()


@samples(
    "linalg_solve_ex", dtypes=LARGE, grad_tol=(1e-3, 1e-3),
    ref=lambda a, b, left=True, check_errors=False: torch.linalg.solve_ex(a, b, left=left, check_errors=check_errors),
)  # fmt: skip
def linalg_solve_ex(make):
    yield Sample(regular(make), make(3))
    yield Sample(regular(make, 2), make(2, 3, 2))
    yield Sample(regular(make), make(2, 3), left=False)
    yield Sample(torch.zeros(2, 2, dtype=make.dtype), make(2), check_errors=True).fails()


@samples(
    "linalg_solve_triangular", dtypes=LARGE, grad_tol=(1e-3, 1e-3),
    ref=lambda a, b, upper, left=True, unitriangular=False: torch.linalg.solve_triangular(
        a, b, upper=upper, left=left, unitriangular=unitriangular),
)  # fmt: skip
def linalg_solve_triangular(make):
    for upper in (False, True):
        for left in (True, False):
            for unitriangular in (False, True):
                b = make(2, 3, 2) if left else make(2, 2, 3)
                yield Sample(regular(make, 2), b, upper, left, unitriangular)
    yield Sample(regular(make), make(2, 3, 2), True)
    yield Sample(regular(make, 2), make(3, 2), False)
    yield Sample(regular(make), make(3, 2), False)
    yield Sample(make(3, 3), make(2, 3), True).fails()


@samples("triangular_solve", dtypes=LARGE, grad_tol=(1e-3, 1e-3), strides=False)
def triangular_solve(make):
    for upper in (False, True):
        for transpose in (False, True):
            for unitriangular in (False, True):
                yield Sample(make(2, 3, 2), regular(make, 2), upper, transpose, unitriangular)
    yield Sample(make(3, 2), regular(make))
    yield Sample(make(3, 2), regular(make, 2))
    yield Sample(make(2, 2), regular(make)).fails()


@samples("cholesky_solve", dtypes=LARGE, grad_tol=(1e-3, 1e-3))
def cholesky_solve(make):
    for upper in (False, True):
        factor = regular(make, 2).detach()
        yield Sample(make(2, 3, 2), (factor.triu() if upper else factor.tril()).requires_grad_(), upper)
    yield Sample(make(3, 2), regular(make, 2).detach().tril().requires_grad_())
    yield Sample(make(2, 2), regular(make)).fails()


@samples("cholesky_inverse", dtypes=LARGE, grad_tol=(1e-3, 1e-3))
def cholesky_inverse(make):
    for upper in (False, True):
        whole = regular(make, 2).detach()
        factor = torch.linalg.cholesky(whole @ whole.mH, upper=upper)  # its diagonal is real
        yield Sample((factor.triu() if upper else factor.tril()).requires_grad_(), upper)
    yield Sample(make(2, 3)).fails()


@samples(
    "linalg_lstsq", dtypes=LARGE, tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3), strides=False,
    ref=lambda a, b, rcond=None, driver=None: torch.linalg.lstsq(a, b, rcond=rcond, driver=driver),
)  # fmt: skip
def linalg_lstsq(make):
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        yield Sample(regular(make, 2), make(2, 3, 2), driver=driver)
    for a, b in (((4, 3), (4, 2)), ((2, 4, 3), (2, 4, 2)), ((3, 4), (3, 2)), ((2, 4, 3), (2, 4))):
        tall = 0.4 * make(*a).detach() + 2 * torch.eye(*a[-2:], dtype=make.dtype)
        yield Sample(tall.requires_grad_(), make(*b), driver="gelsy")
        yield Sample(tall.detach().requires_grad_(), make(*b), driver="gelsd")
        yield Sample(tall.detach().requires_grad_(), make(*b), driver="gels")
    yield Sample(make(4, 3), make(3, 2)).fails()
    yield Sample(make(4, 3), make(4, 2), driver="best").fails()
    yield Sample(make(2, 4, 3), make(4)).fails()
