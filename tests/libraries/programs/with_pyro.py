"""Variational inference: a regression by point estimates, a mixture whose classes are summed out."""

import pyro
import pyro.distributions as dist
import torch
from numpy_numbers import DEVICE, normal, tell
from pyro import poutine
from pyro.infer import SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta

torch.set_default_device(DEVICE)
x = normal(30, 2)
y = x @ torch.tensor([1.5, -2.0]) + 0.3 + 0.1 * normal(30, seed=1)


def regression(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
    noise = pyro.sample("noise", dist.LogNormal(torch.tensor(-1.0), 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, noise), obs=y)


points = torch.cat([normal(15, seed=2) - 3, normal(15, seed=3) + 2])


@config_enumerate
def mixture(points):
    weights = pyro.sample("weights", dist.Dirichlet(torch.ones(2)))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("components", 2):
        places = pyro.sample("places", dist.Normal(0.0, 5.0))
    with pyro.plate("data", len(points)):
        kind = pyro.sample("kind", dist.Categorical(weights))
        pyro.sample("point", dist.Normal(places[kind], scale), obs=points)


def start(site):
    return {
        "weights": torch.tensor([0.5, 0.5]),
        "scale": torch.tensor(1.0),
        "places": torch.tensor([-1.0, 1.0]),
        "weight": torch.zeros(2),
        "bias": torch.tensor(0.0),
        "noise": torch.tensor(0.5),
    }[site["name"]]


def infer(model, guide, objective, *arguments, steps=25):
    inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), objective)
    return [inference.step(*arguments) for _ in range(steps)]


pyro.set_rng_seed(0)
pyro.clear_param_store()
guide = AutoDelta(regression, init_loc_fn=start)
losses = infer(regression, guide, Trace_ELBO(), x, y)
estimates = guide.median()
trace = poutine.trace(poutine.condition(regression, estimates)).get_trace(x, y)
samples = Predictive(regression, guide=guide, num_samples=400)(x)["y"]
near = bool(((samples.mean(0) - (x @ estimates["weight"] + estimates["bias"])).abs() < estimates["noise"] / 2).all())
pyro.clear_param_store()
latent = AutoDelta(poutine.block(mixture, expose=["weights", "scale", "places"]), init_loc_fn=start)
further = infer(mixture, latent, TraceEnum_ELBO(max_plate_nesting=1), points)
tell(
    losses=losses,
    estimates=estimates,
    log_density=trace.log_prob_sum(),
    samples=list(samples.shape),
    near=near,
    further=further,
    mixture=latent.median(),
)
