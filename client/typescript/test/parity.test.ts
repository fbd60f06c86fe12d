/** The same program in Python and here, from the same seed, has the same losses. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

import * as gw from "../src/index.ts";
import { nn, optim } from "../src/index.ts";
import { serverForFile } from "./server.ts";

const server = await serverForFile();
const STEPS = 12;

const PROGRAM = `
import json, sys
import gradwire as gw
from gradwire import nn, optim

def losses(model, optimizer, x, y, loss):
    found = []
    for _ in range(${STEPS}):
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        found.append(value.item())
    return found

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, dropout=0.25, bidirectional=True)
        self.out = nn.Linear(10, 3)
    def forward(self, x):
        return self.out(self.lstm(self.table(x))[0][:, -1])

gw.connect(sys.argv[1], api_key=sys.argv[2])
gw.manual_seed(11)
mlp = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
x, y = gw.randn(32, 8), gw.randint(0, 3, (32,))
found = {"mlp": losses(mlp, optim.AdamW(mlp.parameters(), lr=0.02), x, y, nn.CrossEntropyLoss())}
conv = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 2)
)
x, y = gw.randn(6, 1, 8, 8), gw.rand(6, 2)
sgd = optim.SGD(conv.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
found["conv"] = losses(conv, sgd, x, y, nn.MSELoss())
rnn = Recurrent()
x, y = gw.randint(0, 12, (4, 7)), gw.randint(0, 3, (4,))
found["rnn"] = losses(rnn, optim.Adam(rnn.parameters(), lr=0.05, amsgrad=True), x, y, nn.CrossEntropyLoss())
print(json.dumps(found))
`;

class Recurrent extends nn.Module {
  table = new nn.Embedding(12, 6, { paddingIdx: 0 });
  lstm = new nn.LSTM(6, 5, { numLayers: 2, batchFirst: true, dropout: 0.25, bidirectional: true });
  out = new nn.Linear(10, 3);

  forward(x: gw.Tensor): gw.Tensor {
    const [output] = this.lstm.call(this.table.call(x));
    return this.out.call(output.at(":", -1));
  }
}

async function losses(
  model: nn.Module,
  optimizer: optim.Optimizer<object>,
  x: gw.Tensor,
  y: gw.Tensor,
  loss: nn.MSELoss | nn.NLLLoss,
): Promise<number[]> {
  const found: number[] = [];
  for (let step = 0; step < STEPS; step += 1) {
    optimizer.zeroGrad();
    const value = loss.call(model.call(x), y);
    value.backward();
    optimizer.step();
    found.push((await value.item()) as number);
  }
  return found;
}

test("models start and train as in Python", async () => {
  const python = process.env["GRADWIRE_TEST_PYTHON"] ?? "python3";
  const { stdout } = await promisify(execFile)(python, ["-c", PROGRAM, server.url, server.apiKey]);
  const expected = JSON.parse(stdout) as Record<string, number[]>;
  await using _ = await gw.connect(server.url, { apiKey: server.apiKey, seed: 11 });
  const found: Record<string, number[]> = {};

  const mlp = new nn.Sequential(
    new nn.Linear(8, 16),
    new nn.LayerNorm(16),
    new nn.GELU(),
    new nn.Dropout(0.2),
    new nn.Linear(16, 3),
  );
  let [x, y] = [gw.randn(32, 8), gw.randint(3, [32])];
  found["mlp"] = await losses(mlp, new optim.AdamW(mlp.parameters(), { lr: 0.02 }), x, y, new nn.CrossEntropyLoss());

  const conv = new nn.Sequential(
    new nn.Conv2d(1, 4, 3, { padding: 1 }),
    new nn.BatchNorm2d(4),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Flatten(),
    new nn.Linear(64, 2),
  );
  [x, y] = [gw.randn(6, 1, 8, 8), gw.rand(6, 2)];
  const sgd = new optim.SGD(conv.parameters(), { lr: 0.05, momentum: 0.9, weightDecay: 1e-3, nesterov: true });
  found["conv"] = await losses(conv, sgd, x, y, new nn.MSELoss());

  const rnn = new Recurrent();
  [x, y] = [gw.randint(12, [4, 7]), gw.randint(3, [4])];
  const adam = new optim.Adam(rnn.parameters(), { lr: 0.05, amsgrad: true });
  found["rnn"] = await losses(rnn, adam, x, y, new nn.CrossEntropyLoss());

  for (const [name, curve] of Object.entries(expected)) {
    curve.forEach((value, step) => {
      const other = found[name]![step]!;
      const near = Math.abs(value - other) <= 1e-6 * Math.abs(value);
      assert.ok(near, `${name}, step ${step}: ${value} in Python, ${other} here`);
    });
  }
});
