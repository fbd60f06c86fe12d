"""An image is optimised to be perceptually near another one; the package's own weights of layers."""

import lpips
import torch
from numpy_numbers import DEVICE, fill, tell, uniform

distance = lpips.LPIPS(net="alex", pnet_rand=True, verbose=False).to(DEVICE)
fill(distance.net, scale=2.0)
wanted = uniform(1, 3, 64, 64) * 2 - 1
image = (uniform(1, 3, 64, 64, seed=1) * 2 - 1).requires_grad_()
optimizer = torch.optim.SGD([image], lr=50.0)
losses = []
for _ in range(4):
    optimizer.zero_grad()
    loss = distance(image, wanted).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
squeeze = lpips.LPIPS(net="squeeze", pnet_rand=True, spatial=True, verbose=False).to(DEVICE)
fill(squeeze.net, scale=2.0)
tell(
    losses=losses,
    grad=image.grad,
    layers=[layer.model[-1].weight for layer in distance.lins],
    map=squeeze(image, wanted),
)
