"""Normalizing flows learn a conditional density; their transformations and the inverse."""

import torch
import zuko
from numpy_numbers import fill, normal, norms_of_gradients, tell, train

x, c = normal(32, 2), normal(32, 3, seed=1)
flows = {
    "spline": zuko.flows.NSF(2, context=3, transforms=2, hidden_features=(16,), bins=4),
    "affine": zuko.flows.MAF(2, context=3, transforms=2, hidden_features=(16,)),
    "coupling": zuko.flows.NICE(2, context=3, transforms=2, hidden_features=(16,)),
    "mixture": zuko.flows.GMM(2, context=3, components=3, hidden_features=(16,)),
}
results = {}
for name, flow in flows.items():
    fill(flow)
    results[f"{name}_losses"] = train(flow, lambda flow=flow: -flow(c).log_prob(x).mean())
    results[f"{name}_gradients"] = norms_of_gradients(flow)
    if name != "mixture":
        transform = flow(c).transform
        z, ladj = transform.call_and_ladj(x)
        results[name] = [z, ladj, transform.inv(z)]
with torch.no_grad():
    results["samples"] = list(flows["spline"](c[0]).sample((5,)).shape)
tell(**results)
