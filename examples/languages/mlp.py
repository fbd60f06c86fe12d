"""The digit classifier of this folder in Python, on the same data and initial weights."""

import json
import sys
from pathlib import Path

import gradwire as torch
from gradwire import nn
from gradwire.nn.functional import cross_entropy

EPOCHS, ROWS, BATCH = 5, 1344, 64

path = Path(sys.argv[1] if len(sys.argv) > 1 else "digits.json")
data = {record["as"]: torch.tensor(record["data"]) for record in json.loads(path.read_text())["ops"]}
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
names = {"0.weight": "w1", "0.bias": "b1", "2.weight": "w2", "2.bias": "b2"}
model.load_state_dict({key: data[name] for key, name in names.items()})
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for start in range(0, ROWS, BATCH):
        x, y = data["train_x"].narrow(0, start, BATCH), data["train_y"].narrow(0, start, BATCH)
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}  loss {total / (ROWS // BATCH):.7f}")

right = model(data["test_x"]).argmax(1) == data["test_y"]
print(f"accuracy {right.float().mean().item():.4f}")
