"""Structured matrices: solutions, determinants and their gradients; a covariance is learned."""

import torch
from linear_operator import to_linear_operator
from linear_operator.operators import (
    AddedDiagLinearOperator,
    BlockDiagLinearOperator,
    DenseLinearOperator,
    DiagLinearOperator,
    KroneckerProductLinearOperator,
    LowRankRootLinearOperator,
    ToeplitzLinearOperator,
    TriangularLinearOperator,
)
from numpy_numbers import DEVICE, normal, tell, uniform

f64 = torch.float64
torch.set_default_device(DEVICE)
root = normal(6, 6, dtype=f64)
dense = (root @ root.T + 6 * torch.eye(6, dtype=f64)).requires_grad_()
diagonal = (uniform(6, seed=1, dtype=f64) + 0.5).requires_grad_()
right = normal(6, 2, seed=2, dtype=f64)
covariance = AddedDiagLinearOperator(DenseLinearOperator(dense), DiagLinearOperator(diagonal))
quadratic, logdet = covariance.inv_quad_logdet(right, logdet=True)
(quadratic + logdet).backward()
small = to_linear_operator(dense.detach()[:3, :3].contiguous())
kronecker = KroneckerProductLinearOperator(small, to_linear_operator(torch.eye(2, dtype=f64) * 2))
blocks = BlockDiagLinearOperator(to_linear_operator(torch.stack([dense.detach()[:3, :3]] * 2)))
toeplitz = ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.0, 0.0, 0.1], dtype=f64))
triangular = TriangularLinearOperator(torch.linalg.cholesky(dense.detach()), upper=False)
low = LowRankRootLinearOperator(normal(6, 2, seed=3, dtype=f64)).add_diagonal(torch.ones(6, dtype=f64))

scale = torch.tensor(0.5, dtype=f64, requires_grad=True)
optimizer = torch.optim.SGD([scale], lr=0.05)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    learned = DenseLinearOperator(dense.detach()) * scale.exp() + DiagLinearOperator(torch.ones(6, dtype=f64))
    quadratic2, logdet2 = learned.inv_quad_logdet(right, logdet=True)
    loss = (quadratic2 + logdet2) / 6
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
tell(
    quadratic=quadratic,
    logdet=logdet,
    grad=dense.grad,
    grad_diagonal=diagonal.grad,
    losses=losses,
    solved=[m.solve(right) for m in (covariance, kronecker, blocks, toeplitz, triangular, low)],
    product=(kronecker @ blocks).to_dense(),
    root=covariance.root_decomposition().to_dense(),
    diagonal=toeplitz.diagonal(),
    part=covariance[1:3, 2].to_dense(),
    eigenvalues=kronecker.eigvalsh(),
)
