"""Arguments are checked as in torch, without round trips; checks that only the server can do raise at the next read."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch

import gradwire
from gradwire import distributions as D
from tests.side_by_side import raises, settle


@pytest.fixture(autouse=True)
def torch_checks() -> None:
    """PyTorch's compiler, which another test may have loaded, turns the checks of its distributions off."""
    torch.distributions.Distribution.set_default_validate_args(True)


WRONG: dict[str, Any] = {
    "a negative scale": lambda lib, D: D.Normal(0.0, -1.0),
    "a negative scale in a tensor": lambda lib, D: D.Normal(0.0, lib.tensor([1.0, -1.0])),
    "a mean that is no number": lambda lib, D: D.Normal(float("nan"), 1.0),
    "a string": lambda lib, D: D.Normal("a", 1.0),
    "probs and logits": lambda lib, D: D.Bernoulli(0.5, 0.5),
    "neither probs nor logits": lambda lib, D: D.Categorical(),
    "a probability above 1": lambda lib, D: D.Bernoulli(1.5),
    "probabilities above 1": lambda lib, D: D.Bernoulli(lib.tensor([0.5, 1.5])),
    "outcomes without a dimension": lambda lib, D: D.Categorical(lib.tensor(1.0)),
    "negative weights": lambda lib, D: D.Categorical(lib.tensor([-1.0, 2.0])),
    "a probability of 0": lambda lib, D: D.Geometric(lib.tensor(0.0)),
    "half a trial": lambda lib, D: D.Binomial(1.5, lib.tensor(0.5)),
    "bounds the wrong way round": lambda lib, D: D.Uniform(1.0, 0.0),
    "bounds in tensors the wrong way round": lambda lib, D: D.Uniform(lib.tensor([0.0, 2.0]), 1.0),
    "one concentration": lambda lib, D: D.Dirichlet(lib.tensor(1.0)),
    "a negative concentration": lambda lib, D: D.Dirichlet(lib.tensor([1.0, -1.0])),
    "no covariance": lambda lib, D: D.MultivariateNormal(lib.zeros(2)),
    "two covariances": lambda lib, D: D.MultivariateNormal(lib.zeros(2), lib.eye(2), lib.eye(2)),
    "an asymmetric covariance": lambda lib, D: D.MultivariateNormal(lib.zeros(2), lib.tensor([[1.0, 0.5], [0, 1]])),
    "an indefinite covariance": lambda lib, D: D.MultivariateNormal(lib.zeros(2), lib.tensor([[1.0, 2], [2, 1]])),
    "an upper factor": lambda lib, D: D.MultivariateNormal(lib.zeros(2), scale_tril=lib.ones(2, 2)),
    "too few degrees of freedom": lambda lib, D: D.Wishart(lib.tensor(1.0), lib.eye(3)),
    "a matrix of one row": lambda lib, D: D.LKJCholesky(1),
    "too many dimensions of an event": lambda lib, D: D.Independent(D.Normal(0.0, 1.0), 1),
    "another number of components": lambda lib, D: D.MixtureSameFamily(
        D.Categorical(lib.ones(2)), D.Normal(lib.zeros(3), 1.0)
    ),
    "a value that is a number": lambda lib, D: D.Normal(0.0, 1.0).log_prob(1.0),
    "a value that is no number": lambda lib, D: D.Normal(0.0, 1.0).log_prob(lib.tensor(float("nan"))),
    "a value of another shape": lambda lib, D: D.Normal(lib.zeros(3), 1.0).log_prob(lib.zeros(2)),
    "half an event": lambda lib, D: D.Poisson(2.0).log_prob(lib.tensor(1.5)),
    "more successes than trials": lambda lib, D: D.Binomial(3, lib.tensor(0.5)).log_prob(lib.tensor(4.0)),
    "an index out of range": lambda lib, D: D.Categorical(lib.ones(3)).log_prob(lib.tensor(3)),
    "a point off the simplex": lambda lib, D: D.Dirichlet(lib.ones(2)).log_prob(lib.tensor([0.5, 0.6])),
    "a negative time": lambda lib, D: D.Exponential(1.0).log_prob(lib.tensor([-1.0])),
    "a value outside after a transform": lambda lib, D: D.LogNormal(0.0, 1.0).log_prob(lib.tensor(-1.0)),
    "samples without gradients": lambda lib, D: D.Bernoulli(0.5).rsample(),
    "no support to list": lambda lib, D: D.Normal(0.0, 1.0).enumerate_support(),
    "no closed form": lambda lib, D: D.Poisson(lib.tensor(1.0)).entropy(),
    "different numbers of trials": lambda lib, D: D.Binomial(lib.tensor([3.0, 4.0]), lib.tensor(0.5)).entropy(),
    "a sample shape that is none": lambda lib, D: D.Normal(0.0, 1.0).sample(3),
    "a class without samples": lambda lib, D: D.Distribution(validate_args=False).sample(),
    "a constraint without a transform": lambda lib, D: D.biject_to(D.constraints.boolean),
    "a batch that does not expand": lambda lib, D: D.Normal(lib.zeros(3), 1.0).expand((2,)).loc,
    "a transform that is none": lambda lib, D: D.TransformedDistribution(D.Normal(0.0, 1.0), [1]),
    "not a constraint": lambda lib, D: D.biject_to.register(3, lambda c: c),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", WRONG)
def test_what_torch_refuses_is_refused_with_the_same_class_of_error(case: str) -> None:
    expected = raises(lambda: WRONG[case](torch, torch.distributions))
    assert expected is not None
    found = raises(lambda: WRONG[case](gradwire, D))
    settle()
    assert found == expected


def test_numbers_are_checked_at_once(session: Any) -> None:
    with pytest.raises(ValueError, match=r"Normal: the parameter scale must satisfy GreaterThan.*not -1"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match=r"LogNormal: the parameter scale"):
        D.LogNormal(0.0, -1.0)
    with pytest.raises(ValueError, match=r"Uniform: the parameter low .*upper_bound=0.0"):
        D.Uniform(1.0, 0.0)
    with pytest.raises(ValueError, match=r"Chi2: the parameter df"):
        D.Chi2(-3.0)


def test_tensors_are_checked_on_the_server_and_the_error_names_parameter_and_value(session: Any) -> None:
    scale = gradwire.tensor([1.0, -2.0, -3.0])
    made = D.Normal(0.0, scale)
    with pytest.raises(ValueError, match=r"Normal: the parameter scale must .*\(2 of 3 refused, the first is -2\)"):
        made.mean.tolist()
    assert scale.tolist() == [1, -2, -3]  # told once


def test_checks_make_no_round_trip(round_trips: Any) -> None:
    logits = gradwire.randn(4, 3, requires_grad=True)
    scale = gradwire.rand(3) + 0.1
    round_trips()
    policy = D.Categorical(logits=logits)
    action = policy.sample()
    normal = D.Independent(D.Normal(logits, scale), 1)
    matrix = D.MultivariateNormal(logits, scale.diag())
    loss = policy.log_prob(action).mean() + normal.log_prob(normal.rsample()).mean() - policy.entropy().mean()
    loss = loss + matrix.log_prob(matrix.rsample()).mean() + D.kl_divergence(normal.base_dist, D.Normal(0, 1)).sum()
    loss.backward()
    assert round_trips() <= 1  # sent at backward
    assert bool(gradwire.isfinite(loss))
    assert round_trips() == 1


def test_checks_can_be_switched_off(session: Any) -> None:
    made = D.Normal(0.0, -1.0, validate_args=False)
    assert made.log_prob(gradwire.tensor(float("nan"))).isnan().item()
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Exponential(-1.0).rate.item() == -1
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="True or False"):
        D.Distribution.set_default_validate_args(3)  # type: ignore[arg-type]


def test_an_expanded_distribution_keeps_whether_it_checks(session: Any) -> None:
    assert not D.Gamma(1.0, 1.0, validate_args=False).expand((2,))._validate_args
    assert D.MultivariateNormal(gradwire.zeros(2), gradwire.eye(2)).expand((3,))._validate_args


def test_numbers_beside_integer_tensors_stay_what_they_are(session: Any) -> None:
    made = D.Binomial(gradwire.tensor([3, 4]), 0.5)
    assert made.mean.tolist() == [1.5, 2]
    assert D.Normal(gradwire.tensor(1), 0.5).log_prob(gradwire.tensor(1.0)).item() == pytest.approx(-0.2257914)


def test_a_constraint_with_a_tensor_for_its_bound_is_described_by_its_shape(session: Any) -> None:
    made = D.Uniform(gradwire.zeros(2), gradwire.ones(2))
    value = made.log_prob(gradwire.tensor([2.0, 0.5]))
    with pytest.raises(ValueError, match=r"upper_bound=tensor of shape \[2\].*the first is 2"):
        value.tolist()


def test_a_program_defines_a_distribution_of_its_own(session: Any) -> None:
    class Triangle(D.Distribution):
        arg_constraints = {"width": D.constraints.positive}
        support = D.constraints.real

        def __init__(self, width: Any, validate_args: bool | None = None) -> None:
            (self.width,) = D.utils.broadcast_all(width)
            super().__init__(self.width.size(), validate_args=validate_args)

        def rsample(self, sample_shape: Any = ()) -> Any:
            shape = self._extended_shape(sample_shape)
            return (gradwire.rand(shape) + gradwire.rand(shape) - 1) * self.width

    assert list(Triangle(gradwire.ones(3)).sample((2,)).shape) == [2, 3]
    assert str(Triangle(2.0)) == "Triangle(width: 2.0)"
    with pytest.raises(ValueError, match="width"):
        Triangle(-1.0)
    with pytest.raises(NotImplementedError):
        Triangle(1.0).expand((2,))
    with pytest.raises(NotImplementedError):
        Triangle(1.0).log_prob(gradwire.tensor(0.0))


def test_checks_work_inside_vmap(session: Any) -> None:
    x = gradwire.randn(5, 3)
    found = gradwire.func.vmap(lambda row: D.Normal(row, 1.0).log_prob(row * 2).sum())(x)
    wanted = D.Normal(x, 1.0).log_prob(x * 2).sum(-1)
    assert gradwire.allclose(found, wanted)
    result = gradwire.func.vmap(lambda row: D.Normal(row, row.abs() - 100).loc)(x)
    with pytest.raises(ValueError, match="scale"):
        result.tolist()


@pytest.mark.parametrize("name", ["Exponential", "Chi2", "Poisson", "Dirichlet", "Categorical", "HalfCauchy"])
def test_samples_inside_vmap_differ_where_asked_to(session: Any, name: str) -> None:
    row = gradwire.ones(5, 3)
    drawn = gradwire.func.vmap(lambda p: getattr(D, name)(p).sample((40,)), randomness="different")(row)
    assert drawn.shape[:2] == (5, 40)
    assert not (drawn[0] == drawn[1]).all()


def test_samples_move_in_forward_mode_as_in_backward(session: Any) -> None:
    a = gradwire.tensor([0.4, 1.0, 7.0], requires_grad=True)

    def draw(concentration: Any) -> Any:
        gradwire.manual_seed(1)
        return D.Gamma(concentration, concentration).rsample()

    (backward,) = gradwire.autograd.grad(draw(a).sum(), a)
    _, forward = gradwire.func.jvp(draw, (a.detach(),), (gradwire.ones(3),))
    assert gradwire.allclose(forward, backward)


def test_distributions_are_found_where_programs_import_them_from() -> None:
    from gradwire.distributions.constraints import positive
    from gradwire.distributions.kl import kl_divergence
    from gradwire.distributions.normal import Normal
    from gradwire.distributions.transforms import ExpTransform
    from gradwire.distributions.utils import broadcast_all

    assert Normal is D.Normal
    assert kl_divergence is D.kl_divergence
    assert positive is D.constraints.positive
    assert ExpTransform is D.ExpTransform
    assert len(broadcast_all(1.0, gradwire.ones(2))) == 2
    for theirs in (v for v in vars(torch.distributions).values() if isinstance(v, type)):
        path = theirs.__module__.replace("torch", "gradwire", 1)
        assert getattr(importlib.import_module(path), theirs.__name__) is getattr(D, theirs.__name__)
    assert set(torch.distributions.__all__) <= set(vars(D))
    assert set(torch.distributions.constraints.__all__) <= set(vars(D.constraints))
    assert set(torch.distributions.transforms.__all__) <= set(vars(D.transforms))
