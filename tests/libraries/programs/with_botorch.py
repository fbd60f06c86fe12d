"""Two rounds of Bayesian optimization: a Gaussian process is fitted, and an acquisition function is maximised."""

import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from numpy_numbers import DEVICE, tell, uniform


def value(x):
    return -((x - torch.tensor([0.3, 0.7])) ** 2).sum(-1, keepdim=True) + 0.1 * torch.cos(7 * x).sum(-1, keepdim=True)


torch.set_default_dtype(torch.float64)
torch.set_default_device(DEVICE)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
x = uniform(8, 2, dtype=torch.float64)
y = value(x)
found = []
for _ in range(2):
    model = SingleTaskGP(x, y, input_transform=Normalize(2, bounds=bounds), outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    begin = uniform(3, 1, 2, seed=1, dtype=torch.float64)
    best, gain = optimize_acqf(
        LogExpectedImprovement(model, best_f=y.max()), bounds, q=1, num_restarts=3, batch_initial_conditions=begin
    )
    found.append((best, gain, model.posterior(begin[:, 0]).mean, UpperConfidenceBound(model, beta=0.2)(begin)))
    x, y = torch.cat([x, best]), torch.cat([y, value(best)])
tell(found=found, best=y.max())
