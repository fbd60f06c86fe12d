"""One photograph in the style of another, both scikit-learn's: the training changes the picture itself.

Gatys, Ecker and Bethge, "A Neural Algorithm of Artistic Style" (2015), with random filters in place of a trained
network, after Ustyuzhaninov et al., "Texture Synthesis Using Shallow Convolutional Networks with Random Filters"
(2016).
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from numpy_weights import draw
from sklearn.datasets import load_sample_image


class Filters(nn.Module):
    """Features of an image at two scales."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.fine = nn.Conv2d(3, channels, 5, padding=2, padding_mode="reflect")
        self.coarse = nn.Conv2d(channels, channels, 5, padding=2, padding_mode="reflect")

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        fine = F.relu(self.fine(image))
        return fine, F.relu(self.coarse(F.avg_pool2d(fine, 2)))


def gram(features: torch.Tensor) -> torch.Tensor:
    """The Gram matrix: which features occur together."""
    rows = features.flatten(2)
    return rows @ rows.transpose(1, 2) / rows.shape[-1]


def photograph(name: str, height: int = 48, width: int = 64) -> torch.Tensor:
    """A photograph as numbers around 0, made small by averages."""
    pixels = torch.from_numpy(np.array(load_sample_image(name)))
    picture = pixels.permute(2, 0, 1).unsqueeze(0).float() / 127.5 - 1
    return F.interpolate(picture, size=(height, width), mode="area")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--style-weight", type=float, default=200.0)
    parser.add_argument("--out", help="where to write the picture, as a PPM file")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    filters = draw(Filters(), scale=2.0).to(device).eval().requires_grad_(False)
    content, style = photograph("china.jpg").to(device), photograph("flower.jpg").to(device)
    wanted = filters(content)[1]
    grams = [gram(features) for features in filters(style)]

    picture = content.clone().requires_grad_()
    optimizer = torch.optim.Adam([picture], lr=0.02)
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        features = filters(picture)
        same_content = F.mse_loss(features[1], wanted)
        same_style = sum(F.mse_loss(gram(ours), theirs) for ours, theirs in zip(features, grams))
        rough = (picture.diff(dim=2) ** 2).mean() + (picture.diff(dim=3) ** 2).mean()
        loss = same_content + args.style_weight * same_style + 0.1 * rough
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            picture.clamp_(-1, 1)
        print(f"step {step} loss {loss.item():.8g}")

    if args.out:
        pixels = ((picture.detach()[0].permute(1, 2, 0) + 1) * 127.5).round().to(torch.uint8).cpu().numpy()
        with open(args.out, "wb") as file:
            file.write(b"P6 %d %d 255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes())


if __name__ == "__main__":
    main()
