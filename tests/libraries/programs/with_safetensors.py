"""Tensors and a trained model with shared weights go through safetensors files."""

import tempfile

import torch
from numpy_numbers import DEVICE, fill, integers, normal, tell, train
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn
from torch.nn import functional as F


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


tokens = integers(20, 4, 6)
model = fill(Tied())
losses = train(model, lambda: F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()), lr=0.5)
with tempfile.TemporaryDirectory() as folder:
    tensors = {"a": normal(3, 4), "b": integers(9, 5), "c": normal(2, 2).bfloat16(), "d": normal(4) > 0}
    save_file(tensors, f"{folder}/tensors.safetensors", metadata={"made": "here"})
    loaded = {name: tensor.to(DEVICE) for name, tensor in load_file(f"{folder}/tensors.safetensors").items()}
    same = {name: torch.equal(loaded[name], tensor) for name, tensor in tensors.items()}
    kinds = {name: str(tensor.dtype) for name, tensor in loaded.items()}
    with safe_open(f"{folder}/tensors.safetensors", framework="pt") as file:
        part = file.get_slice("a")[1:, :2]
        metadata = file.metadata()
    save_model(model, f"{folder}/model.safetensors")
    other = Tied().to(DEVICE)
    missing = load_model(other, f"{folder}/model.safetensors")
    names = sorted(load_file(f"{folder}/model.safetensors"))
    try:
        save_file(model.state_dict(), f"{folder}/shared.safetensors")
        refused = "no"
    except RuntimeError as error:
        refused = type(error).__name__
again = load(save({"x": tensors["a"].T.contiguous()}))["x"]
tell(
    losses=losses,
    same=same,
    kinds=kinds,
    part=part,
    metadata=metadata,
    missing=[list(m) for m in missing],
    names=names,
    refused=refused,
    again=again,
    logits=other(tokens),
)
