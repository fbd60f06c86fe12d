"""A neural differential equation learns a spiral, with the adjoint method and through the solver."""

import torch
from numpy_numbers import DEVICE, fill, norms_of_gradients, tell, train
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.set_default_dtype(torch.float64)
torch.set_default_device(DEVICE)
times = torch.linspace(0.0, 1.5, 8)
start = torch.tensor([[2.0, 0.0]])
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
with torch.no_grad():
    wanted = odeint(lambda t, y: (y**3) @ matrix, start, times, method="dopri5")


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


field = fill(Field())
losses = train(
    field, lambda: (odeint_adjoint(field, start, times, rtol=1e-6, atol=1e-8) - wanted).abs().mean(), lr=0.01
)
gradients = norms_of_gradients(field)
further = train(field, lambda: (odeint(field, start, times, method="rk4") - wanted).square().mean(), lr=0.01)
when, state = odeint_event(
    lambda t, y: torch.stack([y[1], torch.tensor(-9.81)]),
    torch.tensor([1.0, 0.0]),
    torch.tensor(0.0),
    event_fn=lambda t, y: y[0],
    method="dopri5",
)
tell(
    wanted=wanted,
    losses=losses,
    gradients=gradients,
    further=further,
    when=when,
    state=state,
    multistep=odeint(field, start, times, method="explicit_adams"),
)
