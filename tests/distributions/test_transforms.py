"""Transforms and constraints: values, inverses, Jacobians, shapes and registries equal torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradwire
from gradwire import distributions as D

REAL, POSITIVE, UNIT, SIMPLEX, VECTOR, MATRIX = "real", "positive", "unit", "simplex", "vector", "matrix"


def inputs(kind: str) -> Any:
    """Points of a domain."""
    rng = np.random.default_rng(7)
    return {
        REAL: lambda: rng.normal(size=(4, 3)), POSITIVE: lambda: rng.uniform(0.2, 3, (4, 3)),
        UNIT: lambda: rng.uniform(0.1, 0.9, (4, 3)), SIMPLEX: lambda: rng.dirichlet(np.ones(3), 4),
        VECTOR: lambda: rng.normal(size=(2, 6)), MATRIX: lambda: rng.normal(size=(2, 3, 3)),
    }[kind]()  # fmt: skip


TRANSFORMS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "Exp": (lambda T, lib: T.ExpTransform(), REAL),
    "Exp inverted": (lambda T, lib: T.ExpTransform().inv, POSITIVE),
    "Power": (lambda T, lib: T.PowerTransform(lib.tensor([2.0, -0.5, 3.0], dtype=lib.float64)), POSITIVE),
    "Sigmoid": (lambda T, lib: T.SigmoidTransform(), REAL),
    "Softplus": (lambda T, lib: T.SoftplusTransform(), REAL),
    "Tanh": (lambda T, lib: T.TanhTransform(), REAL),
    "Abs": (lambda T, lib: T.AbsTransform(), POSITIVE),
    "Affine": (lambda T, lib: T.AffineTransform(1.5, -2.0), REAL),
    "Affine of tensors": (
        lambda T, lib: T.AffineTransform(lib.tensor([1.0, 2.0, 3.0]).double(), lib.tensor([0.5, -1.0, 2.0]).double()),
        REAL,
    ),
    "Affine of vectors": (lambda T, lib: T.AffineTransform(0.5, 2.0, event_dim=1), REAL),
    "Softmax": (lambda T, lib: T.SoftmaxTransform(), REAL),
    "StickBreaking": (lambda T, lib: T.StickBreakingTransform(), REAL),
    "LowerCholesky": (lambda T, lib: T.LowerCholeskyTransform(), MATRIX),
    "PositiveDefinite": (lambda T, lib: T.PositiveDefiniteTransform(), MATRIX),
    "CorrCholesky": (lambda T, lib: T.CorrCholeskyTransform(), VECTOR),
    "Compose": (lambda T, lib: T.ComposeTransform([T.AffineTransform(1.0, 2.0), T.TanhTransform()]), REAL),
    "Compose of vectors": (
        lambda T, lib: T.ComposeTransform([T.ExpTransform(), T.ExpTransform().inv, T.StickBreakingTransform()]), REAL,
    ),
    "Compose of nothing": (lambda T, lib: T.identity_transform, REAL),
    "Independent": (lambda T, lib: T.IndependentTransform(T.ExpTransform(), 1), REAL),
    "Reshape": (lambda T, lib: T.ReshapeTransform((6,), (2, 3)), VECTOR),
    "Cat": (
        lambda T, lib: T.CatTransform([T.ExpTransform(), T.AffineTransform(0.0, 3.0)], dim=-1, lengths=[1, 2]), REAL,
    ),
    "Stack": (lambda T, lib: T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], -1), REAL),
    "CumulativeDistribution": (
        lambda T, lib: T.CumulativeDistributionTransform(
            {torch: torch.distributions, gradwire: D}[lib].Normal(lib.zeros(3).double(), 2.0)
        ),
        REAL,
    ),
}  # fmt: skip


def outcome(name: str, lib: Any) -> dict[str, Any]:
    """All that can be asked of a transform, at points of its domain; exceptions by class."""
    T = (torch.distributions if lib is torch else D).transforms
    make, kind = TRANSFORMS[name]
    transform = make(T, lib)
    x = lib.tensor(inputs(kind), requires_grad=True)
    y = transform(x)
    found: dict[str, Any] = {"y": y.detach().numpy(), "bijective": bool(transform.bijective), "repr": repr(transform)}
    found["gradient"] = lib.autograd.grad((y * y).sum(), x, retain_graph=True)[0].numpy()

    def attempt(key: str, ask: Callable[[], Any]) -> None:
        try:
            value = ask()
            found[key] = value.detach().numpy() if hasattr(value, "detach") else value
        except (NotImplementedError, ValueError) as error:
            found[key] = "NotImplementedError" if isinstance(error, NotImplementedError) else "ValueError"

    attempt("x", lambda: transform.inv(y))
    attempt("log_abs_det", lambda: transform.log_abs_det_jacobian(x, y))
    attempt("inverse log_abs_det", lambda: transform.inv.log_abs_det_jacobian(y, x))
    attempt("sign", lambda: transform.sign)
    attempt("event_dim", lambda: transform.event_dim)
    attempt("domain", lambda: (type(transform.domain).__name__, transform.domain.event_dim))
    attempt("codomain", lambda: (type(transform.codomain).__name__, transform.codomain.event_dim))
    attempt("forward_shape", lambda: list(transform.forward_shape(x.shape)))
    attempt("inverse_shape", lambda: list(transform.inverse_shape(y.shape)))
    attempt("inside", lambda: transform.codomain.check(y))
    found["inverted twice"] = transform.inv.inv is transform
    found["cached"] = transform.with_cache(1)._cache_size if name != "Compose of nothing" else 1
    return found


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_those_of_torch(name: str) -> None:
    expected, actual = outcome(name, torch), outcome(name, gradwire)
    assert actual.keys() == expected.keys()
    for key, wanted in expected.items():
        if isinstance(wanted, np.ndarray):
            np.testing.assert_allclose(actual[key], wanted, rtol=1e-7, atol=1e-9, err_msg=key)
        else:
            assert actual[key] == wanted, key


@pytest.mark.parametrize("name", [n for n in TRANSFORMS if "StickBreaking" not in n and "vectors" not in n])
def test_a_cached_value_gives_back_the_very_input(name: str) -> None:
    make, kind = TRANSFORMS[name]
    transform = make(D.transforms, gradwire).with_cache(1)
    x = gradwire.tensor(inputs(kind))
    y = transform(x)
    if name != "Compose of nothing":
        assert transform(x) is y or "Compose" in name
    assert transform.inv(y) is x


CONSTRAINTS: dict[str, tuple[Callable[[Any, Any], Any], list[Any]]] = {
    "boolean": (lambda C, lib: C.boolean, [0.0, 1.0, 0.5]),
    "one_hot": (lambda C, lib: C.one_hot, [[0.0, 1, 0], [1.0, 1, 0]]),
    "nonnegative_integer": (lambda C, lib: C.nonnegative_integer, [0.0, -1.0, 1.5, 7]),
    "positive_integer": (lambda C, lib: C.positive_integer, [0.0, 1.0]),
    "integer_interval": (lambda C, lib: C.integer_interval(-1, 2), [-2.0, -1, 0.5, 2, 3]),
    "real": (lambda C, lib: C.real, [0.0, float("nan"), float("inf")]),
    "positive": (lambda C, lib: C.positive, [0.0, 1.0, -1]),
    "nonnegative": (lambda C, lib: C.nonnegative, [0.0, 1.0, -1]),
    "greater_than": (lambda C, lib: C.greater_than(2), [1.0, 2.0, 3.0]),
    "greater_than a tensor": (lambda C, lib: C.greater_than(lib.tensor([1.0, 4.0])), [[2.0, 3.0]]),
    "less_than": (lambda C, lib: C.less_than(2), [1.0, 2.0, 3.0]),
    "unit_interval": (lambda C, lib: C.unit_interval, [0.0, 1.0, 1.1]),
    "half_open_interval": (lambda C, lib: C.half_open_interval(0, 1), [0.0, 1.0]),
    "simplex": (lambda C, lib: C.simplex, [[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]]),
    "multinomial": (lambda C, lib: C.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1, 2]]),
    "lower_triangular": (lambda C, lib: C.lower_triangular, [[[1.0, 0], [2, -3]], [[1.0, 1], [2, -3]]]),
    "lower_cholesky": (lambda C, lib: C.lower_cholesky, [[[1.0, 0], [2, -3]], [[1.0, 0], [2, 3]]]),
    "corr_cholesky": (lambda C, lib: C.corr_cholesky, [[[1.0, 0], [0.6, 0.8]], [[1.0, 0], [0.6, 0.9]]]),
    "square": (lambda C, lib: C.square, [[[1.0, 0], [0.6, 0.8]]]),
    "symmetric": (lambda C, lib: C.symmetric, [[[1.0, 2], [2, 0.8]], [[1.0, 2], [1, 0.8]]]),
    "positive_semidefinite": (lambda C, lib: C.positive_semidefinite, [[[2.0, 0], [0, 0]], [[1.0, 2], [2, 1]]]),
    "positive_definite": (lambda C, lib: C.positive_definite, [[[2.0, 1], [1, 2]], [[1.0, 2], [2, 1]]]),
    "real_vector": (lambda C, lib: C.real_vector, [[1.0, float("nan")], [0.0, 1.0]]),
    "independent": (lambda C, lib: C.independent(C.positive, 2), [[[1.0, 2], [3, 4]], [[1.0, 2], [3, -4]]]),
    "cat": (lambda C, lib: C.cat([C.positive, C.real], -1, [1, 2]), [[1.0, -1, 2], [-1.0, 1, 2]]),
    "stack": (lambda C, lib: C.stack([C.positive, C.boolean], -1), [[1.0, 1], [1.0, 2]]),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_and_the_transforms_onto_them_are_those_of_torch(name: str) -> None:
    make, values = CONSTRAINTS[name]
    found = {}
    for lib, package in ((torch, torch.distributions), (gradwire, D)):
        constraint = make(package.constraints, lib)
        value = lib.tensor(values)
        entry = {"check": constraint.check(value).tolist(), "event_dim": constraint.event_dim}
        entry |= {"discrete": constraint.is_discrete}
        if "tensor" not in name and name not in ("cat", "stack", "multinomial"):
            entry["repr"] = repr(constraint)
        for registry in ("biject_to", "transform_to"):
            try:
                transform = getattr(package, registry)(constraint)
                shape = {0: (3,), 1: (3,), 2: (3, 3)}[transform.domain.event_dim]
                if name in ("cat", "stack", "greater_than a tensor"):
                    shape = (len(values[0]),)
                x = lib.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
                entry[registry] = np.round(transform(x).numpy().astype(float), 5).tolist()
            except NotImplementedError:
                entry[registry] = "NotImplementedError"
        found[lib] = entry
    assert repr(found[gradwire]) == repr(found[torch])


@pytest.mark.parametrize("kind", ["greater_than", "greater_than_eq", "less_than", "interval", "half_open_interval",
                                  "integer_interval", "multinomial", "independent"])  # fmt: skip
def test_programs_tell_kinds_of_constraints_apart_as_in_torch(kind: str) -> None:
    found = []
    for lib, package in ((torch, torch.distributions), (gradwire, D)):
        C: Any = package.constraints
        found.append([name for name, (make, _) in CONSTRAINTS.items() if isinstance(make(C, lib), getattr(C, kind))])
    assert found[0] == found[1]


@pytest.mark.parametrize("package", [torch.distributions, D])
def test_transforms_equal_by_value_have_no_hash(package: Any) -> None:
    assert package.ExpTransform() == package.ExpTransform()
    with pytest.raises(TypeError, match="unhashable"):
        hash(package.ExpTransform())


def test_a_program_registers_a_transform_for_a_constraint_of_its_own() -> None:
    class Even(D.constraints.Constraint):
        def check(self, value: Any) -> Any:
            return value % 2 == 0

    registry = type(D.biject_to)()

    @registry.register(Even())
    def _twice(constraint: Any) -> Any:
        return D.AffineTransform(0, 2)

    assert registry(Even())(gradwire.tensor(3.0)).item() == 6
    assert D.constraints.is_dependent(D.Uniform.support)
    assert not D.constraints.is_dependent(D.Normal.support)


def test_triangles_and_vectors_are_each_others_inverse() -> None:
    for diag in (-2, -1, 0, 1, 2):
        matrix = torch.arange(1.0, 17).reshape(4, 4).tril(diag)
        wanted = torch.distributions.utils.tril_matrix_to_vec(matrix, diag)
        found = D.utils.tril_matrix_to_vec(gradwire.tensor(matrix.tolist()), diag)
        assert found.tolist() == wanted.tolist()
        if diag <= 0:
            assert D.utils.vec_to_tril_matrix(found, diag).tolist() == matrix.tolist()


def test_a_lazy_property_is_computed_once_with_gradients() -> None:
    made = D.Bernoulli(gradwire.tensor([0.3], requires_grad=True))
    with gradwire.no_grad():
        first = made.logits
    assert first.requires_grad
    assert made.logits is first
