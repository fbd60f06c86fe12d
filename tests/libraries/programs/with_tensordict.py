"""Dictionaries of tensors: indexing, stacking, storing; modules that read and write them, trained."""

import tempfile

import torch
from numpy_numbers import fill, integers, normal, tell, train
from tensordict import LazyStackedTensorDict, TensorDict, TensorDictParams, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torch.nn import functional as F


@tensorclass
class Sample:
    place: torch.Tensor
    label: torch.Tensor


data = TensorDict({"values": normal(12, 6), "nested": {"label": integers(3, 12)}}, batch_size=[12])
first = TensorDictModule(nn.Linear(6, 8), in_keys=["values"], out_keys=["hidden"])
second = TensorDictModule(nn.Sequential(nn.Tanh(), nn.Linear(8, 3)), in_keys=["hidden"], out_keys=[("out", "logits")])
model = fill(TensorDictSequential(first, second))


def loss():
    out = model(data.clone())
    return F.cross_entropy(out["out", "logits"], out["nested", "label"])


losses = train(model, loss, lr=0.2)
halves = torch.stack([data[:6], data[6:]])
lazy = LazyStackedTensorDict(data[0], data[1], stack_dim=0)
weights = TensorDict.from_module(model)
with (weights * 0.5).to_module(model):
    smaller = model(data.clone())["out", "logits"]
stacked = torch.vmap(lambda one: one["values"].sum())(data)
with tempfile.TemporaryDirectory() as folder:
    torch.save(data.to_dict(), f"{folder}/data.pt")
    stored = TensorDict.from_dict(torch.load(f"{folder}/data.pt"), batch_size=[12])
    same = bool((stored == data).all())
sample = Sample(place=data["values"], label=data["nested", "label"], batch_size=[12])
tell(
    losses=losses,
    halves=list(halves.shape),
    first=halves[0, 2]["values"],
    lazy=lazy["values"],
    smaller=smaller,
    norm=(data.select("values") + 1).apply(torch.square)["values"],
    stacked=stacked,
    same=same,
    masked=data[data["nested", "label"] == 1]["values"],
    keys=sorted(str(k) for k in data.keys(True, True)),
    parameters=len(list(TensorDictParams(weights.clone()).parameters())),
    sample=sample[3:5].place,
    flat=sorted(data.flatten_keys(".").keys()),
    split=[list(part.shape) for part in data.split(5)],
)
