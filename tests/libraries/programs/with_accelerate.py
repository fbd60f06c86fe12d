"""A training loop prepared by an Accelerator: accumulation, clipping, schedule, gathering, state on disk."""

import os
import tempfile

import torch
from accelerate import Accelerator, init_empty_weights
from accelerate.utils import set_seed
from numpy_numbers import DEVICE, fill, integers, normal, tell
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

os.environ["ACCELERATE_TORCH_DEVICE"] = DEVICE
set_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=2)
model = fill(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)), device="cpu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loader = DataLoader(TensorDataset(normal(16, 6, device="cpu"), integers(3, 16, device="cpu")), batch_size=4)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
losses = []
for _ in range(2):
    for values, labels in loader:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(values), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach().reshape(1)).item())
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = model[0].weight.detach().clone()
    with torch.no_grad():
        model[0].weight.zero_()
    accelerator.load_state(folder)
    restored = torch.equal(before, model[0].weight)
with init_empty_weights():
    empty = nn.Linear(1000, 1000)
tell(
    losses=losses,
    weight=accelerator.unwrap_model(model)[0].weight,
    restored=restored,
    empty=str(empty.weight.device),
    processes=accelerator.num_processes,
)
