"""An autoencoder learns with a book of vectors; residual, finite and lookup-free quantizers."""

import torch
from numpy_numbers import DEVICE, fill, normal, norms_of_gradients, tell, train
from torch import nn
from torch.nn import functional as F
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize


class Compressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 8), nn.Linear(8, 6)
        self.quantize = VectorQuantize(dim=8, codebook_size=8, decay=0.8, commitment_weight=0.5)
        book = normal(8, 8, seed=5) * 0.5
        self.quantize._codebook.embed.data.copy_(book[None])
        self.quantize._codebook.embed_avg.data.copy_(book[None])

    def forward(self, x):
        quantized, indices, commitment = self.quantize(self.encode(x))
        return self.decode(quantized), indices, commitment


x = normal(2, 10, 6)
model = fill(Compressor())


def loss():
    decoded, _, commitment = model(x)
    return F.mse_loss(decoded, x) + commitment.sum()


losses = train(model, loss)
gradients = norms_of_gradients(model)
model.eval()
decoded, indices, _ = model(x)
finite = fill(FSQ(levels=[5, 4, 3], dim=6))
further = train(finite, lambda: F.mse_loss(finite(x)[0], x))
free = LFQ(dim=6, codebook_size=64, entropy_loss_weight=0.1).to(DEVICE)
quantized, found, auxiliary = free(x, inv_temperature=10.0)
residual = ResidualVQ(dim=6, codebook_size=8, num_quantizers=2).eval().to(DEVICE)
for k, layer in enumerate(residual.layers):
    layer._codebook.embed.data.copy_(normal(1, 8, 6, seed=k))
tell(
    losses=losses,
    gradients=gradients,
    decoded=decoded,
    indices=indices,
    book=model.quantize.codebook,
    further=further,
    codes=finite(x)[1],
    free=[quantized, found, auxiliary],
    residual=list(residual(x)[:2]),
    count=torch.bincount(indices.flatten(), minlength=8),
)
