"""Layers that rearrange, reduce and mix axes, in a network that learns; the functions."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from numpy_numbers import DEVICE, fill, integers, norms_of_gradients, tell, train, uniform
from torch import nn
from torch.nn import functional as F

images, labels = uniform(4, 3, 8, 8), integers(5, 4)
model = fill(
    nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
        EinMix("b n c -> b n d", weight_shape="c d", bias_shape="d", c=48, d=16),
        nn.GELU(),
        EinMix("b n d -> b m d", weight_shape="n m", n=4, m=4),
        nn.Linear(16, 5),
        Reduce("b m k -> b k", "mean"),
    )
)
losses = train(model, lambda: F.cross_entropy(model(images), labels), lr=0.5)
gradients = norms_of_gradients(model)
packed, shapes = pack([images, images[:, :, 0]], "b c *")
tell(
    losses=losses,
    gradients=gradients,
    rearranged=rearrange(images, "b c h w -> (b h) w c"),
    reduced=reduce(images, "b c (h 2) (w 2) -> b c h w", "max"),
    repeated=repeat(images[0, 0], "h w -> h (w 2)"),
    product=einsum(images, images, "b c h w, d c h w -> b d"),
    packed=packed,
    unpacked=[list(part.shape) for part in unpack(packed, shapes, "b c *")],
    stacked=rearrange([torch.ones(2, device=DEVICE), torch.zeros(2, device=DEVICE)], "k n -> n k"),
)
