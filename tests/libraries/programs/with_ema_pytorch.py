"""Averages of the weights of a network that learns: the usual one, and one after the fact."""

import tempfile

import torch
from ema_pytorch import EMA, PostHocEMA
from numpy_numbers import fill, integers, normal, tell
from torch import nn
from torch.nn import functional as F

model = fill(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 3)))
values, labels = normal(16, 6), integers(3, 16)
average = EMA(model, beta=0.9, update_after_step=1, update_every=1, inv_gamma=1.0, power=0.9)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
losses = []
with tempfile.TemporaryDirectory() as folder:
    after = PostHocEMA(
        model, sigma_rels=(0.05, 0.28), update_every=1, checkpoint_every_num_steps=2, checkpoint_folder=folder
    )
    for _ in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(values), labels)
        loss.backward()
        optimizer.step()
        average.update()
        after.update()
        losses.append(loss.item())
    made = after.synthesize_ema_model(sigma_rel=0.15)
state = average.state_dict()
again = EMA(model, beta=0.9)
again.load_state_dict(state)
average.ema_model.eval(), made.eval()
tell(
    losses=losses,
    average=average(values),
    made=made(values),
    decay=average.get_current_decay(),
    step=int(average.step),
    again=again.ema_model[0].weight,
)
