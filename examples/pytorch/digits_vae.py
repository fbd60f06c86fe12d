"""A variational autoencoder for handwritten digits: what it encodes is a distribution, and sampling it has a gradient.

Kingma and Welling, "Auto-Encoding Variational Bayes" (2014).
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from numpy_weights import draw
from sklearn.datasets import load_digits
from torch.distributions import Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, hidden: int = 128, latent: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.GELU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.GELU(), nn.Linear(hidden, 64))

    def encode(self, x: torch.Tensor) -> Normal:
        mean, spread = self.encoder(x).chunk(2, dim=-1)
        return Normal(mean, F.softplus(spread) + 1e-4)

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, Normal]:
        posterior = self.encode(x)
        latent = posterior.loc + posterior.scale * noise
        return self.decoder(latent), posterior


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--latent", type=int, default=8)
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    images = torch.tensor(load_digits().data / 16.0, dtype=torch.float32, device=device)
    model = draw(VAE(latent=args.latent)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    prior = Normal(torch.zeros(args.latent, device=device), torch.ones(args.latent, device=device))
    random = np.random.default_rng(1)

    for step in range(1, args.steps + 1):
        chosen = torch.from_numpy(random.integers(0, len(images), args.batch)).to(device)
        noise = torch.from_numpy(random.standard_normal((args.batch, args.latent)).astype(np.float32)).to(device)
        x = images[chosen]
        logits, posterior = model(x, noise)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)
        divergence = kl_divergence(posterior, prior).sum(-1)
        loss = (reconstruction + divergence).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        print(f"step {step} loss {loss.item():.8g}")

    with torch.no_grad():
        latent = torch.from_numpy(random.standard_normal((1, args.latent)).astype(np.float32)).to(device)
        digit = torch.sigmoid(model.decoder(latent)).reshape(8, 8).cpu().numpy()
    print("a digit that nobody wrote:")
    for row in digit:
        print("  " + "".join(" .:-=+*#%@"[min(int(v * 10), 9)] * 2 for v in row))


if __name__ == "__main__":
    main()
