"""Samples of eigenvalues, singular values and functions of them."""

from __future__ import annotations

import torch

from tests.samples import Sample, samples
from tests.samples.linalg import LARGE
from tests.samples.linalg_factorization import SHAPES


def spread(make, *shape):
    """Matrices whose singular values lie apart."""
    with torch.no_grad():
        k = min(shape[-2:])
        x = make(*shape) * 0.2
        x.diagonal(0, -2, -1).add_(torch.arange(1, k + 1).to(make.dtype))
    return x.requires_grad_()


def spread_hermitian(make, *shape):
    x = spread(make, *shape).detach()
    return (x + x.mH).requires_grad_()


def near(mine, wanted):
    torch.testing.assert_close(mine, wanted, rtol=1e-4, atol=1e-4)


def is_eigh(results, x, uplo="L"):
    values, vectors = results
    near(values, torch.linalg.eigvalsh(x, uplo))
    near(vectors @ (values[..., None] * vectors.mH), x)


@samples("linalg_eigh", dtypes=LARGE, ref=None, check=is_eigh)  # of the vectors, signs and phases are open
def linalg_eigh(make):
    yield Sample(spread_hermitian(make, 3, 3))
    yield Sample(spread_hermitian(make, 2, 3, 3), "U")
    yield Sample(make(0, 0))
    yield Sample(make(2, 3)).fails()
    yield Sample(make(3, 3), "X").fails()


@samples("linalg_eigvalsh", dtypes=LARGE, ref=lambda x, uplo="L": torch.linalg.eigvalsh(x, uplo), grad_tol=(1e-3, 1e-3))
def linalg_eigvalsh(make):
    yield Sample(spread_hermitian(make, 3, 3))
    yield Sample(spread_hermitian(make, 2, 3, 3), "U")
    yield Sample(make(0, 0))
    yield Sample(make(2, 3)).fails()


@samples("linalg_eig", dtypes=LARGE, ref=lambda x: torch.linalg.eig(x), grad=False, tol=(1e-3, 1e-3))
def linalg_eig(make):
    yield Sample(torch.diag(torch.arange(1, 4)).to(make.dtype))
    yield Sample(make(0, 3, 3))
    yield Sample(make(2, 3)).fails()


@samples("linalg_eigvals", dtypes=LARGE, ref=lambda x: torch.linalg.eigvals(x), tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3))
def linalg_eigvals(make):
    # The order of eigenvalues is LAPACK's own affair, except where they stand on the diagonal.
    yield Sample(spread(make, 3, 3).detach().triu().requires_grad_())
    yield Sample(spread(make, 2, 3, 3).detach().triu().requires_grad_())
    yield Sample(make(2, 3)).fails()


def is_svd(results, x, full_matrices=True):
    u, values, vh = results
    wanted = torch.linalg.svd(x, full_matrices=full_matrices)
    near(values, wanted.S)
    k = values.shape[-1]
    assert [r.shape for r in results] == [r.shape for r in wanted]
    near(u[..., :k] * values[..., None, :] @ vh[..., :k, :], x)
    for unitary in (u, vh.mH):
        near(unitary.mH @ unitary, torch.eye(unitary.shape[-1], dtype=x.dtype).expand_as(unitary.mH @ unitary))


@samples("linalg_svd", dtypes=LARGE, ref=None, check=is_svd)
def linalg_svd(make):
    for shape in SHAPES:
        yield Sample(spread(make, *shape), False)
        yield Sample(spread(make, *shape))
    yield Sample(make(0, 3))
    yield Sample(make(3)).fails()


@samples("linalg_svdvals", dtypes=LARGE, ref=lambda x: torch.linalg.svdvals(x), grad_tol=(1e-3, 1e-3))
def linalg_svdvals(make):
    for shape in SHAPES:
        yield Sample(spread(make, *shape))
    yield Sample(make(0, 3))
    yield Sample(make(3)).fails()


@samples(
    "linalg_pinv", dtypes=LARGE, tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3),
    ref=lambda x, atol=None, rtol=None, hermitian=False: torch.linalg.pinv(
        x, atol=atol, rtol=rtol, hermitian=hermitian),
)  # fmt: skip
def linalg_pinv(make):
    for shape in SHAPES:
        yield Sample(spread(make, *shape))
    yield Sample(spread_hermitian(make, 2, 3, 3), hermitian=True)
    # Where singular values are cut off, the derivative is that of matrices which lack them.
    yield Sample(spread(make, 3, 3), 1.5, 0.1).values_only()
    yield Sample(spread(make, 2, 3, 3), rtol=0.4).values_only()
    yield Sample(spread(make, 2, 3, 3), torch.tensor([0.5, 1.5], dtype=torch.float64)).values_only()
    yield Sample(make(2, 0, 3))
    yield Sample(make(3)).fails()


@samples("matrix_exp", dtypes=LARGE, tol=(1e-4, 1e-4), grad_tol=(1e-3, 1e-3))
def matrix_exp(make):
    yield Sample(make(3, 3, low=-1, high=1))
    yield Sample(make(2, 3, 3, low=-1, high=1))
    yield Sample(make(0, 0))
    yield Sample(make(2, 3)).fails()
    yield Sample(make(3)).fails()


@samples("phase_free", dtypes=("float32", "float64"), ref=lambda turns, scale: turns.clone(), grad=False)
def phase_free(make):
    yield Sample(make(3, low=-1e-3, high=1e-3, requires_grad=False), make(3, 3, requires_grad=False))
    yield Sample(make(0, requires_grad=False), make(0, 0, requires_grad=False))


@samples("phase_free", dtypes=("float64",), ref=None)
def phase_bound(make):
    yield Sample(make(3, low=1, high=2), make(3, 3)).fails()
