"""Attention with rotary positions of several kinds, whose frequencies are learned."""

import torch
from numpy_numbers import DEVICE, integers, normal, tell
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from torch.nn import functional as F

queries, keys, wanted = normal(2, 2, 10, 16), normal(2, 2, 10, 16, seed=1), normal(2, 2, 10, 16, seed=2)
rotary = RotaryEmbedding(dim=16, learned_freq=True).to(DEVICE)
optimizer = torch.optim.SGD(rotary.parameters(), lr=0.5)
losses = []
for _ in range(4):
    optimizer.zero_grad()
    turned = [rotary.rotate_queries_or_keys(x) for x in (queries, keys)]
    loss = F.mse_loss(F.scaled_dot_product_attention(*turned, wanted, is_causal=True), wanted)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
long = RotaryEmbedding(dim=16, use_xpos=True, theta_rescale_factor=2.0).to(DEVICE)
pixels = RotaryEmbedding(dim=8, freqs_for="pixel", max_freq=10).to(DEVICE)
grid = pixels.get_axial_freqs(3, 4)
cached = RotaryEmbedding(dim=16).to(DEVICE).rotate_queries_with_cached_keys(queries[:, :, -1:], keys)
tell(
    losses=losses,
    frequencies=rotary.freqs,
    grad=rotary.freqs.grad,
    long=list(long.rotate_queries_and_keys(queries, keys)),
    grid=grid,
    image=apply_rotary_emb(grid, normal(1, 3, 4, 16)),
    cached=list(cached),
    kinds=integers(3, 2),
)
