"""Linear algebra from a user's view: names, named results, errors, gradients, against PyTorch."""

from __future__ import annotations

import warnings
from math import inf
from typing import Any

import pytest
import torch
from tests.side_by_side import Claim, Claims, leaf, name_of, outcome, raises, same

import gradwire

claims = Claims()


def regular(lib: Any, *batch: int, n: int = 3, dtype: str = "float64") -> Any:
    """Square matrices with spread singular values."""
    x = leaf(lib, *batch, n, n).detach().to(getattr(lib, dtype)) / 20
    if x.is_complex():
        x = x * (1 + 0.5j) + x.mT * 0.25j
    return (x + lib.diag(lib.arange(1.0, n + 1)).to(x.dtype)).requires_grad_()


def positive(lib: Any, *batch: int, dtype: str = "float64") -> Any:
    x = regular(lib, *batch, dtype=dtype).detach()
    return (x @ x.mH).requires_grad_()


def gradient(lib: Any, value: Any, *inputs: Any) -> Any:
    return lib.autograd.grad(value, inputs)


@claims
def results_are_named(lib: Any) -> Any:
    x = positive(lib).detach()
    a = lib.linalg
    return [
        sorted(type(r)._fields if hasattr(type(r), "_fields") else [k for k in dir(r) if k[0] != "_"])
        if lib is gradwire
        else sorted(k for k in dir(r) if k[0] != "_" and not k.startswith("n_") and k not in ("count", "index"))
        for r in (
            a.qr(x), a.svd(x), a.eigh(x), a.eig(x), a.slogdet(x), a.lu(x), a.lu_factor(x), a.lu_factor_ex(x),
            a.cholesky_ex(x), a.inv_ex(x), a.solve_ex(x, x), a.lstsq(x, x), a.ldl_factor(x), a.ldl_factor_ex(x),
            lib.qr(x), lib.svd(x), lib.slogdet(x), lib.geqrf(x), lib.triangular_solve(x, x),
            lib.lu_unpack(*a.lu_factor(x)),
        )
    ]  # fmt: skip


@claims
def a_named_result_unpacks_and_has_fields(lib: Any) -> Any:
    found = lib.linalg.qr(regular(lib).detach())
    q, r = found
    return (q == found.Q).all(), (r == found.R).all(), len(found)


@claims
def methods(lib: Any) -> Any:
    x = positive(lib).detach()
    return [
        x.inverse(), x.det(), x.logdet(), x.matrix_exp() / 1e3, x.pinverse(), x.cholesky(), x.matrix_power(3),
        x.slogdet(), x.trace(), x.cholesky().cholesky_inverse(), x[0].vdot(x[1]), x.corrcoef(), x.cov(),
        x[:, :1].cholesky_solve(x.cholesky()), x.renorm(2, 0, 1.0), x.lu_solve(*lib.linalg.lu_factor(x)),
    ]  # fmt: skip


@claims
def derivatives_of_a_determinant_and_an_inverse(lib: Any) -> Any:
    x = regular(lib, 2)
    (first,) = lib.autograd.grad(lib.linalg.det(x).sum() + lib.linalg.inv(x).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad((first * first).sum(), x)
    return first.detach(), second


@claims
def second_derivatives_of_factors(lib: Any) -> Any:
    x = regular(lib, 2)
    p, lower, upper = lib.linalg.lu(x)
    q, r = lib.linalg.qr(x)
    loss = (p @ lower**2 @ upper).sum() + (q**3).sum() + (r**2).sum() + lib.matrix_exp(x / 4).sum()
    (first,) = lib.autograd.grad(loss, x, create_graph=True)
    return first.detach(), gradient(lib, (first**2).sum(), x)


@claims
def derivatives_of_singular_vectors(lib: Any) -> Any:
    x = regular(lib, dtype="float64")
    u, s, vh = lib.linalg.svd(x[:, :2], full_matrices=False)
    weights = lib.arange(6.0, dtype=lib.float64).reshape(3, 2)
    (first,) = lib.autograd.grad((u[:, :1] @ vh[:1] * weights).sum() + s.prod(), x, create_graph=True)
    return first.detach(), gradient(lib, (first**2).sum(), x)


@claims
def derivatives_of_complex_singular_vectors(lib: Any) -> Any:
    x = regular(lib, dtype="complex128")
    u, s, vh = lib.linalg.svd(x)
    return gradient(lib, (u[:, :1] @ vh[:1]).abs().sum() + s.sum(), x)


@claims
def derivatives_of_eigenvectors(lib: Any) -> Any:
    x = positive(lib, 2, dtype="complex128")
    values, vectors = lib.linalg.eigh(x)
    weights = lib.arange(9.0, dtype=lib.float64).reshape(3, 3)
    return gradient(lib, (vectors.abs() ** 2 * weights).sum() + (values**2).sum(), x)


@claims
def derivatives_of_eigenvectors_of_any_matrix(lib: Any) -> Any:
    x = regular(lib, 2)
    values, vectors = lib.linalg.eig(x)
    projected = vectors @ lib.diag_embed(values.abs() + 0j) @ lib.linalg.inv(vectors)
    return gradient(lib, (projected.real**2).sum() + vectors.abs().sum(), x)


@claims
def tangents_of_vectors(lib: Any) -> Any:
    x = positive(lib).detach()
    along = lib.arange(9.0, dtype=lib.float64).reshape(3, 3)

    def projected(a: Any) -> Any:
        _, vectors = lib.linalg.eigh(a + a.mT)
        u, s, vh = lib.linalg.svd(a, full_matrices=False)
        return vectors[:, :1] @ vectors[:, :1].mT, u[:, :1] @ vh[:1], s

    return lib.func.jvp(projected, (x,), (along,))


@claims
def derivatives_of_wide_and_tall_factors(lib: Any) -> Any:
    x = regular(lib, n=4)
    q, r = lib.linalg.qr(x[:, :3])
    _, wide = lib.linalg.qr(x[:2])
    _, lower, upper = lib.linalg.lu(x[:, :3])
    return gradient(lib, (q * q[:, :1]).sum() + (r**2).sum() + (wide**3).sum() + (lower @ upper**2).sum(), x)


@claims
def derivatives_of_least_squares(lib: Any) -> Any:
    x, b = regular(lib, n=4), leaf(lib, 4, 2).detach().double().requires_grad_()
    found = lib.linalg.lstsq(x[:, :3], b, driver="gelsd")
    return gradient(lib, (found.solution**2).sum() + found.residuals.sum(), x, b)


@claims
def drivers_of_least_squares(lib: Any) -> Any:
    x, b = regular(lib, n=4).detach()[:, :3], leaf(lib, 4).detach().double()
    return [tuple(t.shape) for d in ("gels", "gelsy", "gelsd", "gelss") for t in lib.linalg.lstsq(x, b, driver=d)]


@claims
def a_cholesky_factor_and_its_uses(lib: Any) -> Any:
    x, b = positive(lib, 2), leaf(lib, 2, 3, 1).detach().double()
    factor = lib.linalg.cholesky(x)
    y = lib.cholesky_solve(b, factor)
    return gradient(lib, (y**2).sum() + 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(), x)


@claims
def codes_instead_of_errors(lib: Any) -> Any:
    x = lib.stack([lib.eye(2), lib.zeros(2, 2), -lib.eye(2)])
    inverse, info = lib.linalg.inv_ex(x)
    _, order = lib.linalg.cholesky_ex(x)
    _, _, pivot = lib.linalg.lu_factor_ex(x)
    return info, order, pivot, inverse[0], inverse[2]


@claims
def norms_of_matrices(lib: Any) -> Any:
    x = regular(lib, 2).detach()
    orders = ("fro", "nuc", 1, -1, 2, -2, inf, -inf)
    return [
        [lib.linalg.matrix_norm(x, o) for o in orders],
        [lib.linalg.matrix_norm(x, o, dim=(2, 0), keepdim=True) for o in orders],
        [lib.linalg.norm(x[0], o) for o in orders],
        [lib.linalg.cond(x, o) for o in (None, *orders)],
        lib.linalg.norm(x), lib.linalg.vector_norm(x, 0.5, dim=(0, 1)), lib.norm(x[0], "nuc"),
    ]  # fmt: skip


@claims
def a_singular_matrix_has_an_infinite_condition_number(lib: Any) -> Any:
    x = lib.ones(2, 2)
    return lib.linalg.cond(x, 1), lib.linalg.matrix_rank(x), lib.linalg.matrix_rank(x, hermitian=True)


@claims
def tolerances_of_a_rank(lib: Any) -> Any:
    x = lib.diag(lib.tensor([3.0, 1.0, 0.1]))
    rank = lib.linalg.matrix_rank
    return rank(x), rank(x, 0.5), rank(x, atol=0.5), rank(x, rtol=0.5), rank(x, atol=lib.tensor(2.0), rtol=0.01)


@claims
def tensors_as_matrices(lib: Any) -> Any:
    x = regular(lib, n=6)
    inverse = lib.linalg.tensorinv(x.reshape(2, 3, 6), ind=2)
    solved = lib.linalg.tensorsolve(x.reshape(2, 3, 6), leaf(lib, 2, 3).double())
    return inverse, solved


@claims
def products(lib: Any) -> Any:
    a, b, c = (leaf(lib, *s) for s in ((2, 5), (5, 3), (3, 4)))
    return [
        lib.linalg.multi_dot([a, b, c]), lib.linalg.multi_dot([a[0], b, c]), lib.linalg.multi_dot([a, b, c[:, 0]]),
        lib.chain_matmul(a, b), lib.linalg.vecdot(a, a, dim=0), lib.linalg.vander(a.detach()),
        lib.vander(a.detach()[0]), lib.linalg.matrix_power(lib.eye(2) * 2, -3), lib.linalg.cross(b, b.flip(0)),
    ]  # fmt: skip


@claims
def distances(lib: Any) -> Any:
    x, y = leaf(lib, 4, 3), (leaf(lib, 5, 3) * 2).detach().requires_grad_()
    found = lib.cdist(x, y), lib.cdist(x, y, 1.0), lib.nn.functional.pdist(x), lib.pdist(x, inf)
    return found, gradient(lib, sum(f.sum() for f in found), x, y)


@claims
def covariances(lib: Any) -> Any:
    x = leaf(lib, 3, 5)
    weights = lib.arange(5.0)
    return [
        lib.cov(x), lib.cov(x, correction=0), lib.cov(x, aweights=weights), lib.cov(x, fweights=weights.long() + 1),
        lib.corrcoef(x), lib.cov(x[0]),
    ]  # fmt: skip


@claims
def a_map_over_matrices(lib: Any) -> Any:
    x = positive(lib, 4).detach()

    def solved(a: Any) -> Any:
        return lib.linalg.solve_triangular(lib.linalg.cholesky(a), a[:, :1], upper=False), lib.linalg.eigvalsh(a)

    return lib.func.vmap(solved)(x)


@claims
def out_takes_results(lib: Any) -> Any:
    x = positive(lib).detach()
    q, r = lib.empty(0, dtype=x.dtype), lib.empty(0, dtype=x.dtype)
    found = lib.linalg.qr(x, out=(q, r))
    return found.Q @ found.R, q @ r, lib.linalg.det(x, out=lib.empty((), dtype=x.dtype))


@pytest.mark.parametrize("claim", claims.all, ids=name_of)
def test_it_is_as_in_pytorch(claim: Claim) -> None:
    same(_plain(claim))


def _plain(claim: Claim) -> Claim:
    """Without what a composition is free in: the names of nodes, strides, warnings that a name is old."""

    def values(lib: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _detached(claim(lib))

    values.__name__ = claim.__name__
    return values


def _detached(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, gradwire.Tensor)):
        return [repr(value.dtype), value.requires_grad, list(value.shape), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [_detached(v) for v in value]
    return value


FAILING: dict[str, Any] = {
    "singular": lambda lib: lib.linalg.inv(lib.zeros(2, 2)),
    "singular in a batch": lambda lib: lib.linalg.solve(lib.stack([lib.eye(2), lib.zeros(2, 2)]), lib.ones(2, 2, 1)),
    "not positive definite": lambda lib: lib.linalg.cholesky(-lib.eye(2)),
    "checked": lambda lib: lib.linalg.inv_ex(lib.zeros(2, 2), check_errors=True),
}


@pytest.mark.parametrize("lib", (torch, gradwire), ids=("torch", "gradwire"))
@pytest.mark.parametrize("name", FAILING)
def test_a_failure_of_values_is_a_linalg_error(name: str, lib: Any) -> None:
    with pytest.raises(lib.linalg.LinAlgError) as caught:
        found = FAILING[name](lib)
        (found if isinstance(found, lib.Tensor) else found[0]).tolist()
    assert isinstance(caught.value, RuntimeError)


def _first_vectors(lib: Any, name: str, at: int) -> Any:
    x = positive(lib, dtype="complex128")
    vectors = getattr(lib.linalg, name)(x)[at]
    weights = lib.arange(9.0).reshape(3, 3)
    return (vectors.real * weights).sum() + (vectors.imag * weights).sum(), x


REFUSED: dict[str, Any] = {
    "a singular LU factorization": lambda lib: lib.linalg.lu_factor(lib.zeros(2, 2)),
    "not square": lambda lib: lib.linalg.inv(lib.ones(2, 3)),
    "a vector": lambda lib: lib.linalg.svd(lib.ones(3)),
    "integers": lambda lib: lib.linalg.det(lib.ones(2, 2, dtype=lib.int64)),
    "an unknown mode": lambda lib: lib.linalg.qr(lib.eye(2), "full"),
    "an unknown order": lambda lib: lib.linalg.matrix_norm(lib.eye(2), 3),
    "one dimension": lambda lib: lib.linalg.matrix_norm(lib.eye(2), dim=(0,)),
    "an order for matrices": lambda lib: lib.linalg.norm(lib.ones(3), "nuc"),
    "too many dimensions": lambda lib: lib.linalg.norm(lib.ones(2, 2, 2), 1),
    "no elements": lambda lib: lib.linalg.vector_norm(lib.ones(0), inf),
    "dtypes that differ": lambda lib: lib.linalg.solve(lib.eye(2), lib.eye(2).double()),
    "a chain of one": lambda lib: lib.linalg.multi_dot([lib.eye(2)]),
    "a chain that does not fit": lambda lib: lib.linalg.multi_dot([lib.eye(2), lib.eye(3)]),
    "no square tensor": lambda lib: lib.linalg.tensorinv(lib.ones(2, 3, 4)),
    "a driver of singular values": lambda lib: lib.linalg.svd(lib.eye(2), driver="gesvd"),
    "a driver": lambda lib: lib.linalg.lstsq(lib.eye(2), lib.eye(2), driver="best"),
    "pivots out of range": lambda lib: lib.lu_unpack(lib.eye(2), lib.tensor([1, 5], dtype=lib.int32)),
    "negative weights": lambda lib: lib.cov(lib.ones(2), fweights=lib.tensor([1, -1])),
    "a narrow dtype": lambda lib: lib.linalg.vector_norm(lib.ones(2).double(), dtype=lib.float32),
    "phases of eigenvectors": lambda lib: gradient(lib, *_first_vectors(lib, "eigh", 1)),
    "phases of singular vectors": lambda lib: gradient(lib, *_first_vectors(lib, "svd", 0)),
    "phases of any eigenvectors": lambda lib: gradient(lib, *_first_vectors(lib, "eig", 1)),
    "no gradient of R alone": lambda lib: lib.linalg.qr(lib.ones(2, 2, requires_grad=True), "r")[1].sum().backward(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses_is_refused(name: str) -> None:
    wanted = raises(lambda: REFUSED[name](torch))
    assert wanted is not None, "PyTorch accepts it"
    assert raises(lambda: REFUSED[name](gradwire)) == wanted


def test_pivots_that_no_factorization_leaves_do_not_reach_lapack() -> None:
    with pytest.raises(RuntimeError, match="pivot"):
        pivots = gradwire.tensor([-2, 1, -3], dtype=gradwire.int32)
        gradwire.linalg.ldl_solve(gradwire.eye(3), pivots, gradwire.ones(3, 1)).tolist()
    with pytest.raises(RuntimeError, match="pivot"):
        pivots = gradwire.tensor([1, 900], dtype=gradwire.int32)
        gradwire.linalg.lu_solve(gradwire.eye(2), pivots, gradwire.ones(2, 1)).tolist()


def test_infinities_end_a_singular_value_iteration_before_it_starts() -> None:
    x = gradwire.tensor([[1.0, inf], [inf, 1.0]], requires_grad=True)
    with pytest.raises(gradwire.linalg.LinAlgError, match="infinities"):
        gradwire.linalg.svdvals(x).tolist()
    gradwire.linalg.det(x).backward()
    assert gradwire.isnan(x.grad).all()


def test_a_few_eigenvalues_are_the_extreme_ones() -> None:
    x = positive(gradwire, dtype="float64").detach()
    values, vectors = gradwire.lobpcg(x, 1)
    torch.testing.assert_close((x @ vectors).tolist(), (vectors * values).tolist())
    assert values.item() == pytest.approx(gradwire.linalg.eigvalsh(x)[-1].item())
    both, _ = gradwire.lobpcg(x, 1, B=2 * gradwire.eye(3, dtype=x.dtype), largest=False)
    assert both.item() == pytest.approx(gradwire.linalg.eigvalsh(x)[0].item() / 2)


def test_a_named_result_prints_as_pytorch_does() -> None:
    def printed(lib: Any) -> str:
        return repr(lib.linalg.slogdet(lib.eye(2)))

    assert outcome(printed, torch) == outcome(printed, gradwire)


@pytest.mark.parametrize("order", ["iiw", "wii", "iwi", "iiiw"])
def test_a_chain_is_multiplied_in_the_order_of_torch(order: str) -> None:
    """Seen by what is saved: a tensor made in inference mode is refused where a product keeps it."""

    def made(lib: Any) -> Any:
        with lib.inference_mode():
            i = lib.eye(3)
        w = lib.ones(3, 3, requires_grad=True)
        try:
            return lib.linalg.multi_dot([{"i": i, "w": w}[x] for x in order]).tolist()
        except RuntimeError:
            return "refused"

    assert made(gradwire) == made(torch)
