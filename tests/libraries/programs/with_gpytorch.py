"""Exact Gaussian processes and a sparse variational one learn a curve; their predictions."""

import gpytorch
import torch
from numpy_numbers import DEVICE, normal, tell

torch.set_default_dtype(torch.float64)
torch.set_default_device(DEVICE)
x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x) + 0.1 * normal(20, dtype=torch.float64)
test = torch.linspace(-0.2, 1.2, 9)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=2.5)
        )

    def forward(self, at):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(at), self.covar_module(at))


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, inducing):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(inducing.size(0), mean_init_std=0.0)
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, at):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(at), self.covar_module(at))


def learn(model, likelihood, objective, steps=6):
    model.train(), likelihood.train()
    optimizer = (
        torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.1)
        if not isinstance(model, Exact)
        else torch.optim.Adam(model.parameters(), lr=0.1)
    )
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval(), likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(test))
        return losses, found.mean, found.variance, found.confidence_region()


noise = gpytorch.likelihoods.GaussianLikelihood()
exact = Exact(noise)
results = learn(exact, noise, gpytorch.mlls.ExactMarginalLogLikelihood(noise, exact))
noise = gpytorch.likelihoods.GaussianLikelihood()
sparse = Sparse(x[::4].clone())
further = learn(sparse, noise, gpytorch.mlls.VariationalELBO(noise, sparse, num_data=20))
tell(exact=results, sparse=further, lengthscale=exact.covar_module.base_kernel.kernels[0].lengthscale)
