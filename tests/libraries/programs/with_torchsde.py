"""A stochastic differential equation is learned on given Brownian paths; its statistics on the package's own."""

import torch
from numpy_numbers import DEVICE, fill, normal, norms_of_gradients, tell, train
from torch import nn
from torchsde import BaseBrownian, BrownianInterval, sdeint, sdeint_adjoint

torch.set_default_dtype(torch.float64)
torch.set_default_device(DEVICE)


class Equation(nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        self.level = nn.Parameter(torch.zeros(2))

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return (0.1 * self.level).expand_as(y)


class Given(BaseBrownian):
    """A path through numbers of NumPy's at the times k / 20, straight in between."""

    shape, dtype, device, levy_area_approximation = (6, 2), torch.float64, torch.device(DEVICE), "none"

    def __init__(self):
        super().__init__()
        self.path = torch.cat([torch.zeros(1, 6, 2), normal(20, 6, 2, dtype=torch.float64).cumsum(0) / 20**0.5])

    def at(self, t):
        place = float(t) * 20
        low = min(int(place + 1e-9), 19)
        return self.path[low] + (place - low) * (self.path[low + 1] - self.path[low])

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        return self.at(tb) - self.at(ta)

    def __repr__(self):
        return "Given()"

    def to(self, *args, **kwargs):
        return self

    def size(self):
        return self.shape


equation = fill(Equation())
start, times, noise = normal(6, 2, seed=1, dtype=torch.float64), torch.linspace(0, 1, 5), Given()
losses = train(equation, lambda: sdeint(equation, start, times, bm=noise, dt=0.05, method="euler")[-1].square().mean())
gradients = norms_of_gradients(equation)
further = train(
    equation, lambda: sdeint_adjoint(equation, start, times, bm=noise, dt=0.05, method="euler")[-1].square().mean()
)
interval = BrownianInterval(0.0, 1.0, size=(2000, 1), entropy=1)
increment = interval(0.25, 0.75)
consistent = bool(torch.allclose(interval(0.25, 0.5) + interval(0.5, 0.75), increment))
tell(
    losses=losses,
    gradients=gradients,
    further=further,
    consistent=consistent,
    near=bool((increment.std() - 0.5**0.5).abs() < 0.06),
)
