import assert from "node:assert/strict";
import { test } from "node:test";

import * as gw from "../src/index.ts";
import { nn, optim } from "../src/index.ts";
import { serverForFile } from "./server.ts";

const server = await serverForFile();

function session(name: string, body: (session: gw.Session) => Promise<void>): void {
  test(name, async () => {
    await using opened = await gw.connect(server.url, { apiKey: server.apiKey, seed: 7 });
    await body(opened);
  });
}

function near(actual: unknown, expected: unknown, tolerance: number = 1e-6): void {
  const [a, b] = [[actual].flat(Infinity) as number[], [expected].flat(Infinity) as number[]];
  assert.equal(a.length, b.length);
  a.forEach((value, i) => {
    assert.ok(Math.abs(value - b[i]!) <= tolerance * Math.max(1, Math.abs(b[i]!)), `${i}: ${value} is not ${b[i]}`);
  });
}

class Net extends nn.Module {
  hidden: nn.Linear;
  out: nn.Linear;

  constructor() {
    super();
    this.hidden = new nn.Linear(4, 8);
    this.out = new nn.Linear(8, 3, { bias: false });
  }

  forward(x: gw.Tensor): gw.Tensor {
    return this.out.call(this.hidden.call(x).relu());
  }
}

session("a module names its parameters and its state", async () => {
  const net = new Net();
  assert.deepEqual(
    [...net.namedParameters()].map(([name]) => name),
    ["hidden.weight", "hidden.bias", "out.weight"],
  );
  assert.deepEqual(Object.keys(net.stateDict()), ["hidden.weight", "hidden.bias", "out.weight"]);
  const norm = new nn.Sequential(new nn.Conv2d(1, 2, 3), new nn.BatchNorm2d(2), new nn.ReLU());
  assert.deepEqual(Object.keys(norm.stateDict()), [
    "0.weight",
    "0.bias",
    "1.weight",
    "1.bias",
    "1.running_mean",
    "1.running_var",
    "1.num_batches_tracked",
  ]);
  const lstm = new nn.LSTM(2, 3, { bidirectional: true });
  assert.ok("weight_ih_l0_reverse" in lstm.stateDict(), Object.keys(lstm.stateDict()).join());
  net.eval();
  assert.equal(net.hidden.training, false);
});

session("initial values are bounded as PyTorch's", async () => {
  const linear = new nn.Linear(100, 50);
  const values = [...(await linear.weight.data())] as number[];
  assert.ok(values.every((value) => Math.abs(value) <= 0.1));
  assert.ok(Math.max(...values) > 0.095);
  const [mean] = (await gw.fetch(new nn.Embedding(200, 50).weight.mean())) as number[];
  assert.ok(Math.abs(mean!) < 0.05);
});

session("training makes the loss small, in one round trip a step", async (opened) => {
  const net = new Net();
  const x = gw.randn(16, 4);
  const target = gw.randint(3, [16]);
  const loss = new nn.CrossEntropyLoss();
  for (const optimizer of [
    new optim.SGD(net.parameters(), { lr: 0.1, momentum: 0.9 }),
    new optim.Adam(net.parameters(), { lr: 0.01 }),
    new optim.AdamW(net.parameters(), { lr: 0.01, amsgrad: true }),
  ]) {
    const losses: number[] = [];
    const before = opened.stats().roundTrips;
    for (let step = 0; step < 20; step += 1) {
      optimizer.zeroGrad();
      const value = loss.call(net.call(x), target);
      value.backward();
      optimizer.step();
      losses.push((await value.item()) as number);
    }
    assert.equal(opened.stats().roundTrips - before, 20);
    assert.ok(losses.at(-1)! < losses[0]!, losses.join(" "));
  }
});

session("a step of SGD and of Adam is that of their formulas", async () => {
  const p = new nn.Parameter(gw.tensor([1, -2]));
  const q = new nn.Parameter(gw.tensor([1, -2]));
  const optimizers = [new optim.SGD([p], { lr: 0.1, momentum: 0.5 }), new optim.Adam([q], { lr: 0.1 })];
  for (let step = 0; step < 2; step += 1) {
    for (const optimizer of optimizers) optimizer.zeroGrad();
    p.square().add(q.square()).sum().backward();
    for (const optimizer of optimizers) optimizer.step();
  }
  // The second step of SGD goes against the gradient and half of the first one.
  near(await p.toArray(), [0.8 - 0.1 * (2 * 0.8 + 0.5 * 2), -1.6 + 0.1 * (2 * 1.6 + 0.5 * 4)]);
  near(await q.toArray(), [0.8, -1.8], 1e-2);
});

session("a saved module and optimizer continue as the first ones", async () => {
  const run = async (net: Net, optimizer: optim.Adam): Promise<unknown> => {
    const x = gw.ones(2, 4);
    optimizer.zeroGrad();
    net.call(x).square().mean().backward();
    optimizer.step();
    return net.call(x).toArray();
  };
  const first = new Net();
  const optimizer = new optim.Adam(first.parameters(), { lr: 0.05 });
  await run(first, optimizer);
  const file = await gw.saveSafetensors(first.stateDict());
  const second = new Net();
  assert.deepEqual(second.loadStateDict(gw.loadSafetensors(file)), { missingKeys: [], unexpectedKeys: [] });
  const other = new optim.Adam(second.parameters());
  other.loadStateDict(optimizer.stateDict());
  assert.equal(other.paramGroups[0]!.lr, 0.05);
  near(await run(second, other), await run(first, optimizer));
  assert.throws(() => second.loadStateDict({}), /missing: hidden.weight/);
  assert.throws(() => second.loadStateDict({ ...first.stateDict(), "hidden.bias": gw.zeros(2) }), /has shape \[8\]/);
});

session("dropout and batch normalisation follow the mode", async () => {
  const x = gw.ones(8, 2, 3, 3);
  const dropout = new nn.Dropout(0.5);
  const dropped = (await dropout.call(x).data()) as Float32Array;
  assert.ok(dropped.every((value) => value === 0 || value === 2) && dropped.includes(0) && dropped.includes(2));
  assert.equal(dropout.eval().call(x), x);
  const norm = new nn.BatchNorm2d(2);
  const y = norm.call(gw.randn(8, 2, 3, 3).add(5));
  near(await y.mean().item(), 0, 1e-5);
  const [mean, count] = await gw.fetch(norm.runningMean!, norm.numBatchesTracked!);
  assert.ok(
    (mean as number[]).every((value) => value > 0.3 && value < 0.7),
    String(mean),
  );
  assert.equal(count, 1);
});

session("layers have the shapes of PyTorch's", async () => {
  const images = gw.randn(2, 1, 8, 8);
  const net = new nn.Sequential(
    new nn.Conv2d(1, 4, 3, { padding: 1 }),
    new nn.GELU(),
    new nn.MaxPool2d(2),
    new nn.Flatten(),
    new nn.LayerNorm(64),
    new nn.Linear(64, 5),
    new nn.Tanh(),
    new nn.Sigmoid(),
    new nn.SiLU(),
    new nn.LogSoftmax(-1),
  );
  const y = net.call(images);
  assert.deepEqual(y.shape, [2, 5]);
  near(await y.exp().sum(1).toArray(), [1, 1], 1e-5);
  assert.deepEqual(new nn.Conv1d(3, 6, 3, { stride: 2 }).call(gw.ones(2, 3, 9)).shape, [2, 6, 4]);
  assert.deepEqual(new nn.Embedding(10, 3).call(gw.tensor([[1n, 2n]])).shape, [1, 2, 3]);
  const lstm = new nn.LSTM(3, 4, { numLayers: 2, batchFirst: true, bidirectional: true });
  const [output, [h, c]] = lstm.call(gw.randn(5, 7, 3));
  assert.deepEqual(
    [output.shape, h.shape, c.shape],
    [
      [5, 7, 8],
      [4, 5, 4],
      [4, 5, 4],
    ],
  );
  assert.deepEqual([await output.size(), (await output.data()).length], [[5, 7, 8], 280]);
  const [one, last] = new nn.GRU(3, 4).call(gw.randn(7, 3));
  assert.deepEqual(
    [one.shape, last.shape],
    [
      [7, 4],
      [1, 4],
    ],
  );
});

session("losses are their formulas", async () => {
  const [x, y] = [gw.tensor([1, 2, 3]), gw.tensor([1, 0, 1])];
  const values = await gw.fetch(
    new nn.MSELoss().call(x, y),
    new nn.L1Loss({ reduction: "sum" }).call(x, y),
    new nn.BCEWithLogitsLoss().call(x, y),
    new nn.NLLLoss().call(
      gw.tensor([
        [-1, -2],
        [-3, -4],
      ]),
      gw.tensor([0n, 1n]),
    ),
    new nn.CrossEntropyLoss({ labelSmoothing: 0.1 }).call(
      gw.tensor([
        [1, 1],
        [1, 1],
      ]),
      gw.tensor([0n, 1n]),
    ),
  );
  const softplus = (z: number): number => Math.log1p(Math.exp(z));
  near(values, [8 / 3, 4, (softplus(-1) + softplus(2) + softplus(-3)) / 3, 2.5, Math.log(2)]);
});

session("options of optimizers are checked, and gradients clipped", async () => {
  const p = new nn.Parameter(gw.tensor([3, 4]));
  assert.throws(() => new optim.SGD([p], { lr: -1 }), /lr must be at least 0, not -1/);
  assert.throws(() => new optim.SGD([p], { nesterov: true }), /nesterov needs momentum/);
  assert.throws(() => new optim.Adam([p], { betas: [0.9, 1] }), /betas\[1\] must be in \[0, 1\)/);
  assert.throws(() => new optim.Adam([]), /at least one parameter/);
  assert.throws(() => new optim.Adam([p.mul(2)]), /works on leaves/);
  const groups = new optim.SGD([{ params: [p], lr: 0.5 }, { params: [new nn.Parameter(gw.zeros(1))] }], { lr: 0.1 });
  assert.deepEqual(
    groups.paramGroups.map((group) => group.lr),
    [0.5, 0.1],
  );
  p.square().sum().div(2).backward();
  const norm = nn.clipGradNorm_([p], 1);
  near([await norm.item(), await p.grad!.toArray()], [5, 0.6, 0.8], 1e-5);
});
