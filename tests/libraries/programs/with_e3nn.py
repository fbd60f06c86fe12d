"""A network that turns with its input: spherical harmonics, tensor products, gates; a training and its symmetry."""

import math

import torch
from e3nn import nn, o3
from e3nn.math import normalize2mom
from numpy_numbers import DEVICE, fill, normal, norms_of_gradients, tell, train

torch.set_default_dtype(torch.float64)
f64 = torch.float64
inside, outside = o3.Irreps("4x0e + 2x1o"), o3.Irreps("3x0e + 1x1o")
harmonics = o3.Irreps.spherical_harmonics(2)
product = o3.FullyConnectedTensorProduct(inside, harmonics, outside)
linear = o3.Linear(outside, outside)
norm = nn.BatchNorm(outside).to(DEVICE)
fill(torch.nn.ModuleList([product, linear]))
x, positions, wanted = inside.randn(5, -1), normal(5, 3, dtype=f64), normal(5, outside.dim, seed=1, dtype=f64)
x = normal(5, inside.dim, seed=2, dtype=f64)


def network(x, positions):
    edge = o3.spherical_harmonics(harmonics, positions, normalize=True, normalization="component")
    return linear(product(x, edge))


both = torch.nn.ModuleList([product, linear])
losses = train(both, lambda: ((network(x, positions) - wanted) ** 2).mean(), lr=0.02)
gradients = norms_of_gradients(both)
turn = o3.angles_to_matrix(*(torch.tensor(a) for a in (0.3, 1.1, -0.4)))  # D_from_matrix computes on the CPU
before = network(x, positions) @ outside.D_from_matrix(turn).T.to(DEVICE)
after = network(x @ inside.D_from_matrix(turn).T.to(DEVICE), positions @ turn.T.to(DEVICE))
gate = nn.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o").to(DEVICE)
for activation in gate.modules():
    if isinstance(activation, normalize2mom):
        activation.cst = round(activation.cst, 2)  # an estimate from a million random numbers
tell(
    losses=losses,
    gradients=gradients,
    error=bool((before - after).abs().max() < 1e-9),
    out=after,
    gated=gate(normal(3, gate.irreps_in.dim, dtype=f64)),
    normed=norm(wanted),
    wigner=o3.wigner_3j(1, 1, 2),
    axis=o3.matrix_to_axis_angle(turn)[1],
    full=o3.FullTensorProduct("1x1o", "1x1o").to(DEVICE)(positions, wanted[:, :3]),
    symmetric=o3.ReducedTensorProducts("ij=ji", i="1o").to(DEVICE)(positions, positions),
    pi=math.pi,
)
