"""Flows of couplings and splines learn a density; their transformations and the inverse."""

import torch
from nflows.distributions.normal import ConditionalDiagonalNormal, StandardNormal
from nflows.flows.base import Flow
from nflows.nn.nets import ResidualNet
from nflows.transforms import (
    AffineCouplingTransform,
    CompositeTransform,
    LULinear,
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
    ReversePermutation,
)
from nflows.utils.torchutils import create_alternating_binary_mask
from numpy_numbers import DEVICE, fill, normal, norms_of_gradients, tell, train
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_default_device(DEVICE)
x, c = normal(24, 3, dtype=torch.float64), normal(24, 2, seed=1, dtype=torch.float64)
transforms = CompositeTransform(
    [
        MaskedAffineAutoregressiveTransform(3, hidden_features=16, context_features=2, num_blocks=1),
        ReversePermutation(3),
        MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
            3, hidden_features=16, context_features=2, num_blocks=1, num_bins=4, tails="linear", tail_bound=3.0
        ),
        LULinear(3, identity_init=True),
        AffineCouplingTransform(
            create_alternating_binary_mask(3),
            lambda i, o: ResidualNet(i, o, hidden_features=8, context_features=2, num_blocks=1),
        ),
    ]
)
flow = fill(Flow(transforms, ConditionalDiagonalNormal([3], context_encoder=nn.Linear(2, 6))))
losses = train(flow, lambda: -flow.log_prob(inputs=x, context=c).mean(), lr=0.02)
gradients = norms_of_gradients(flow)
z, logdet = transforms(x, context=c)
back, _ = transforms.inverse(z, context=c)
samples = flow.sample(4, context=c[:2])
tell(
    losses=losses,
    gradients=gradients,
    z=z,
    logdet=logdet,
    back=back,
    samples=list(samples.shape),
    standard=StandardNormal([3]).log_prob(x),
)
