"""Gaussian-process regression on scikit-learn's diabetes data: length scales, signal and noise by gradient descent on
the marginal likelihood, through a Cholesky decomposition.

Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1.
"""

import argparse
import math

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn


class GaussianProcess(nn.Module):
    """A zero-mean process with a squared-exponential kernel, a length for each input."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.log_length = nn.Parameter(torch.zeros(inputs, dtype=torch.float64))
        self.log_signal = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.log_noise = nn.Parameter(torch.full((), -1.0, dtype=torch.float64))

    def kernel(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = a / self.log_length.exp(), b / self.log_length.exp()
        squares = (a**2).sum(1, keepdim=True) - 2 * a @ b.T + (b**2).sum(1)
        return (2 * self.log_signal).exp() * torch.exp(-0.5 * squares.clamp_min(0))

    def factor(self, x: torch.Tensor) -> torch.Tensor:
        noise = (2 * self.log_noise).exp() + 1e-6
        return torch.linalg.cholesky(self.kernel(x, x) + noise * torch.eye(len(x), dtype=x.dtype, device=x.device))

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The negative log marginal likelihood, for one observation."""
        factor = self.factor(x)
        weights = torch.cholesky_solve(y.unsqueeze(1), factor).squeeze(1)
        fit = 0.5 * torch.dot(y, weights)
        return (fit + factor.diagonal().log().sum()) / len(x) + 0.5 * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, x: torch.Tensor, y: torch.Tensor, there: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation at other places."""
        factor = self.factor(x)
        between = self.kernel(x, there)
        mean = between.T @ torch.cholesky_solve(y.unsqueeze(1), factor)
        seen = torch.linalg.solve_triangular(factor, between, upper=False)
        variance = (2 * self.log_signal).exp() - (seen**2).sum(0) + (2 * self.log_noise).exp()
        return mean.squeeze(1), variance.sqrt()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--points", type=int, default=150)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = load_diabetes(return_X_y=True)
    x, y = x / x.std(0), (y - y.mean()) / y.std()
    order = np.random.default_rng(0).permutation(len(x))
    x, y = (torch.from_numpy(values[order]).to(device) for values in (x, y))
    seen, held_out = slice(None, args.points), slice(args.points, None)

    model = GaussianProcess(x.shape[1]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        loss = model.loss(x[seen], y[seen])
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.8g}")

    mean, deviation = model.predict(x[seen], y[seen], x[held_out])
    error = (mean - y[held_out]).abs()
    inside = (error < 1.96 * deviation).double().mean()
    print(f"held out: mean error {error.mean().item():.4f}, inside of two deviations {inside.item():.1%}")


if __name__ == "__main__":
    main()
