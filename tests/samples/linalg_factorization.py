"""Samples of factorizations."""

from __future__ import annotations

import torch

from tests.samples import Sample, samples
from tests.samples.linalg import LARGE, regular

SHAPES = ((3, 3), (4, 3), (3, 4), (2, 4, 3), (2, 3, 4), (2, 2, 3, 3))


def varied(make, *shape):
    """Matrices of full rank, far from losing it."""
    with torch.no_grad():
        x = make(*shape) * 0.4 + 2 * torch.eye(*shape[-2:], dtype=make.dtype)
    return x.requires_grad_()


@samples(
    "linalg_cholesky_ex", dtypes=LARGE,
    ref=lambda x, upper=False, check_errors=False: torch.linalg.cholesky_ex(x, upper=upper, check_errors=check_errors),
    grad_tol=(1e-3, 1e-3),
)  # fmt: skip
def linalg_cholesky_ex(make):
    for upper in (False, True):
        x = regular(make, 2)
        yield Sample((x @ x.mH).detach().requires_grad_(), upper=upper)
    yield Sample(-torch.eye(2, dtype=make.dtype), check_errors=True).fails()


@samples("linalg_cholesky_ex", dtypes=LARGE, ref=lambda x: torch.linalg.cholesky_ex(x)[1:], grad=False)
def linalg_cholesky_ex_info(make):
    yield Sample(make(2, 3)).fails()


@samples("linalg_qr", dtypes=LARGE, ref=lambda x, mode="reduced": torch.linalg.qr(x, mode), grad_tol=(1e-3, 1e-3))
def linalg_qr(make):
    for shape in SHAPES:
        yield Sample(varied(make, *shape))
    yield Sample(varied(make, 3, 4), "complete")
    yield Sample(varied(make, 4, 3).detach(), "complete")
    yield Sample(varied(make, 3, 3), "complete")
    yield Sample(varied(make, 2, 4, 3).detach(), "r")
    yield Sample(make(0, 3), "complete")
    yield Sample(make(3, 0, requires_grad=False), "complete")
    yield Sample(make(0, 2, 3))
    yield Sample(make(3)).fails()
    yield Sample(make(3, 3), "full").fails()


@samples("geqrf", dtypes=LARGE, grad=False)
def geqrf(make):
    for shape in SHAPES:
        yield Sample(varied(make, *shape).detach())
    yield Sample(make(0, 3, requires_grad=False))
    yield Sample(make(3, requires_grad=False)).fails()


@samples(
    "linalg_householder_product", dtypes=LARGE, ref=lambda a, tau: torch.linalg.householder_product(a, tau),
    grad_tol=(1e-3, 1e-3),
)  # fmt: skip
def linalg_householder_product(make):
    for shape in ((3, 3), (4, 3), (2, 4, 3)):
        a, tau = torch.geqrf(varied(make, *shape).detach())
        yield Sample(a.requires_grad_(), tau.requires_grad_())
        yield Sample(a.detach().requires_grad_(), tau[..., :2].detach().requires_grad_())
    yield Sample(make(3, 0), make(0))
    yield Sample(make(3, 4), make(3)).fails()
    yield Sample(make(4, 3), make(4)).fails()


@samples("ormqr", dtypes=LARGE, grad_tol=(1e-3, 1e-3))
def ormqr(make):
    for left in (True, False):
        for transpose in (False, True):
            a, tau = torch.geqrf(varied(make, 2, 4, 3).detach())
            other = make(2, 4, 2) if left else make(2, 2, 4)
            yield Sample(a.requires_grad_(), tau.requires_grad_(), other, left, transpose)
    yield Sample(make(4, 3), make(3), make(3, 2)).fails()
    yield Sample(make(4, 3), make(2, 3), make(4, 2)).fails()


@samples("linalg_lu", dtypes=LARGE, ref=lambda x: torch.linalg.lu(x), grad_tol=(1e-3, 1e-3))
def linalg_lu(make):
    for shape in SHAPES:
        yield Sample(varied(make, *shape))
    yield Sample(make(3)).fails()


@samples(
    "linalg_lu_factor_ex", dtypes=LARGE, ref=lambda x, **k: torch.linalg.lu_factor_ex(x, **k), grad_tol=(1e-3, 1e-3)
)
def linalg_lu_factor_ex(make):
    for shape in SHAPES:
        yield Sample(varied(make, *shape))
    yield Sample(make(3, 3), pivot=False).fails()
    yield Sample(torch.zeros(2, 3, 3, dtype=make.dtype), check_errors=True).fails()


@samples(
    "lu_unpack", dtypes=LARGE, grad_tol=(1e-3, 1e-3),
    ref=lambda x, p, data=True, pivots=True: torch.lu_unpack(x, p, data, pivots),
)  # fmt: skip
def lu_unpack(make):
    for shape in SHAPES:
        packed, pivots = torch.linalg.lu_factor(varied(make, *shape).detach())
        yield Sample(packed.requires_grad_(), pivots)
    yield Sample(packed, pivots, True, False)
    yield Sample(packed.detach(), pivots, False, True)
    yield Sample(packed, pivots.long()).fails()


@samples(
    "linalg_lu_solve", dtypes=LARGE, grad_tol=(1e-3, 1e-3),
    ref=lambda lu, p, b, left=True, adjoint=False: torch.linalg.lu_solve(lu, p, b, left=left, adjoint=adjoint),
)  # fmt: skip
def linalg_lu_solve(make):
    for left in (True, False):
        for adjoint in (False, True):
            packed, pivots = torch.linalg.lu_factor(varied(make, 2, 3, 3).detach())
            yield Sample(packed.requires_grad_(), pivots, make(2, 3, 4) if left else make(2, 4, 3), left, adjoint)
    packed, pivots = torch.linalg.lu_factor(varied(make, 3, 3).detach())
    yield Sample(packed.requires_grad_(), pivots, make(2, 3, 4))
    yield Sample(packed, pivots, make(4, 3)).fails()
    yield Sample(packed, pivots[:2], make(3, 3)).fails()


def symmetric(make, *shape, hermitian=False):
    x = make(*shape, requires_grad=False)
    return x + (x.mH if hermitian else x.mT)


@samples(
    "linalg_ldl_factor_ex", dtypes=LARGE, grad=False,
    ref=lambda x, hermitian=False, **k: torch.linalg.ldl_factor_ex(x, hermitian=hermitian, **k),
)  # fmt: skip
def linalg_ldl_factor_ex(make):
    for hermitian in (False, True):
        yield Sample(symmetric(make, 4, 4, hermitian=hermitian), hermitian)
        yield Sample(symmetric(make, 2, 3, 3, hermitian=hermitian), hermitian)
    yield Sample(torch.zeros(2, 2, dtype=make.dtype), check_errors=True).fails()


@samples(
    "linalg_ldl_solve", dtypes=LARGE, grad=False, tol=(1e-3, 1e-3),
    ref=lambda ld, p, b, hermitian=False: torch.linalg.ldl_solve(ld, p, b, hermitian=hermitian),
)  # fmt: skip
def linalg_ldl_solve(make):
    for hermitian in (False, True):
        eye = 3 * torch.eye(3, dtype=make.dtype)
        packed, pivots = torch.linalg.ldl_factor(
            symmetric(make, 2, 3, 3, hermitian=hermitian) + eye, hermitian=hermitian
        )
        yield Sample(packed, pivots, make(2, 3, 2, requires_grad=False), hermitian)
        yield Sample(packed[0], pivots[0], make(2, 3, 2, requires_grad=False), hermitian)
    yield Sample(packed, pivots, make(2, 2, 3, requires_grad=False)).fails()
