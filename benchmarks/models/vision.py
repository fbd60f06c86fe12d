"""Models of images: ViT, ResNet-18, depthwise blocks, a U-Net, a DCGAN."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..training import BATCHES, Build, Training


def vit(torch: Any) -> Training:
    """A vision transformer: 4 layers, width 192, 3 heads, patches of 4 of 16 x 3 x 32 x 32 images, AdamW."""
    nn, functional = torch.nn, torch.nn.functional
    width, heads, patch, batch, side = 192, 3, 4, 16, 32

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before_attention = nn.LayerNorm(width)
            self.project = nn.Linear(width, 3 * width)
            self.merge = nn.Linear(width, width)
            self.before_mlp = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            joined = self.project(self.before_attention(x)).reshape(b, t, 3, heads, width // heads)
            q, k, v = joined.permute(2, 0, 3, 1, 4).unbind(0)
            attended = functional.scaled_dot_product_attention(q, k, v)
            x = x + self.merge(attended.transpose(1, 2).reshape(b, t, width))
            return x + self.mlp(self.before_mlp(x))

    class ViT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.first = nn.Parameter(torch.zeros(1, 1, width))
            self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.positions
            return self.head(self.norm(self.blocks(x))[:, 0])

    model = ViT()
    return _classifying(torch, model, torch.optim.AdamW(model.parameters(), lr=1e-3), batch, side)


def resnet(torch: Any, width: int = 64, batch: int = 16, side: int = 32) -> Training:
    """ResNet-18 for 16 x 3 x 32 x 32 images, SGD with momentum and weight decay.

    Args:
        width: the channels of its first layers.
    """
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inside: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.short = nn.Sequential()
            if stride != 1 or inside != out:
                self.short = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            y = functional.relu(self.bn1(self.conv1(x)))
            return functional.relu(self.bn2(self.conv2(y)) + self.short(x))

    layers = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inside = width
    for out, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        layers += [Block(inside, out, stride), Block(out, out, 1)]
        inside = out
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    return _classifying(torch, model, optimizer, batch, side)


def mobile(torch: Any) -> Training:
    """Inverted residual blocks with depthwise convolutions and ReLU6 for 16 x 3 x 64 x 64 images, SGD."""
    nn = torch.nn

    def normed(inside: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
        conv = nn.Conv2d(inside, out, kernel, stride, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU6())

    class Inverted(nn.Module):
        def __init__(self, inside: int, out: int, stride: int, expand: int) -> None:
            super().__init__()
            wide = inside * expand
            self.adds = stride == 1 and inside == out
            self.layers = nn.Sequential(
                normed(inside, wide, 1), normed(wide, wide, 3, stride, wide), nn.Conv2d(wide, out, 1, bias=False),
                nn.BatchNorm2d(out),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return x + self.layers(x) if self.adds else self.layers(x)

    model = nn.Sequential(
        normed(3, 16, 3, 2), Inverted(16, 24, 2, 4), Inverted(24, 24, 1, 4), Inverted(24, 32, 2, 4),
        Inverted(32, 32, 1, 4), Inverted(32, 64, 2, 4), Inverted(64, 64, 1, 4), normed(64, 256, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    return _classifying(torch, model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), 16, 64)


def unet(torch: Any) -> Training:
    """A U-Net with group norm, SiLU and nearest upsampling for 8 x 1 x 32 x 32 images, Adam."""
    nn, functional = torch.nn, torch.nn.functional

    def double(inside: int, out: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(inside, out, 3, padding=1), nn.GroupNorm(8, out), nn.SiLU(),
            nn.Conv2d(out, out, 3, padding=1), nn.GroupNorm(8, out), nn.SiLU(),
        )  # fmt: skip

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2, self.middle = double(1, 32), double(32, 64), double(64, 128)
            self.up2, self.up1, self.head = double(128 + 64, 64), double(64 + 32, 32), nn.Conv2d(32, 1, 1)

        def forward(self, x: Any) -> Any:
            a = self.down1(x)
            b = self.down2(functional.max_pool2d(a, 2))
            c = self.middle(functional.max_pool2d(b, 2))
            y = self.up2(torch.cat([functional.interpolate(c, scale_factor=2), b], 1))
            return self.head(self.up1(torch.cat([functional.interpolate(y, scale_factor=2), a], 1)))

    random = np.random.default_rng(0)
    images = torch.tensor(random.standard_normal((BATCHES * 8, 1, 32, 32), dtype=np.float32))
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(number: int) -> Any:
        at = number % BATCHES * 8
        clean = images[at : at + 8]
        optimizer.zero_grad()
        loss = functional.mse_loss(model(clean * 0.5), clean)
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


def dcgan(torch: Any) -> Training:
    """Generator and discriminator in turns, 16 images of 3 x 32 x 32, transposed convolutions, Adam."""
    nn, functional = torch.nn, torch.nn.functional
    batch, noise, wide = 16, 64, 32
    generator = nn.Sequential(
        nn.ConvTranspose2d(noise, wide * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(wide * 4), nn.ReLU(),
        nn.ConvTranspose2d(wide * 4, wide * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(wide * 2), nn.ReLU(),
        nn.ConvTranspose2d(wide * 2, wide, 4, 2, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(),
        nn.ConvTranspose2d(wide, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(3, wide, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
        nn.Conv2d(wide, wide * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(wide * 2), nn.LeakyReLU(0.2),
        nn.Conv2d(wide * 2, wide * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(wide * 4), nn.LeakyReLU(0.2),
        nn.Conv2d(wide * 4, 1, 4, 1, 0, bias=False), nn.Flatten(0),
    )  # fmt: skip
    random = np.random.default_rng(0)
    images = torch.tensor(random.standard_normal((BATCHES * batch, 3, 32, 32), dtype=np.float32).clip(-1, 1))
    seeds = torch.tensor(random.standard_normal((BATCHES * batch, noise, 1, 1), dtype=np.float32))
    ones, zeros = torch.ones(batch), torch.zeros(batch)
    learns = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    makes = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def step(number: int) -> Any:
        at = number % BATCHES * batch
        made = generator(seeds[at : at + batch])
        learns.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(critic(images[at : at + batch]), ones)
        loss = loss + functional.binary_cross_entropy_with_logits(critic(made.detach()), zeros)
        loss.backward()
        learns.step()
        makes.zero_grad()
        functional.binary_cross_entropy_with_logits(critic(made), ones).backward()
        makes.step()
        return loss

    return Training(nn.ModuleList([generator, critic]), step)


def _classifying(torch: Any, model: Any, optimizer: Any, batch: int, side: int) -> Training:
    random = np.random.default_rng(0)
    images = torch.tensor(random.standard_normal((BATCHES * batch, 3, side, side), dtype=np.float32))
    labels = torch.tensor(random.integers(0, 10, BATCHES * batch))

    def step(number: int) -> Any:
        at = number % BATCHES * batch
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[at : at + batch]), labels[at : at + batch])
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


MODELS: Final[dict[str, Build]] = {
    "ViT": vit, "ResNet-18": resnet, "MobileNet blocks": mobile, "U-Net": unet, "DCGAN": dcgan,
}  # fmt: skip
