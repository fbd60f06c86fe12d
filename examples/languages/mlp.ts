/** The digit classifier of this folder in TypeScript, on the same data and initial weights. */

import { readFileSync } from "node:fs";

import * as gw from "gradwire";

const [EPOCHS, ROWS, BATCH] = [5, 1344, 64];

await using session = await gw.connect();
const { ops } = JSON.parse(readFileSync(process.argv[2] ?? "digits.json", "utf8")) as { ops: { as: string; data: gw.Nested }[] };
const labels = (name: string): boolean => name.endsWith("_y");
const data = Object.fromEntries(
  ops.map(({ as, data }) => [as, gw.tensor(data, labels(as) ? { dtype: "int64" } : {})]),
);
const model = new gw.nn.Sequential(new gw.nn.Linear(64, 32), new gw.nn.ReLU(), new gw.nn.Linear(32, 10));
const [w1, b1, w2, b2] = [data["w1"]!, data["b1"]!, data["w2"]!, data["b2"]!];
model.loadStateDict({ "0.weight": w1, "0.bias": b1, "2.weight": w2, "2.bias": b2 });
const optimizer = new gw.optim.Adam(model.parameters(), { lr: 0.01 });

for (let epoch = 1; epoch <= EPOCHS; epoch++) {
  let total = 0;
  for (let start = 0; start < ROWS; start += BATCH) {
    const loss = gw.tidy(() => {
      const [x, y] = [data["train_x"]!.narrow(0, start, BATCH), data["train_y"]!.narrow(0, start, BATCH)];
      optimizer.zeroGrad();
      const loss = gw.F.crossEntropy(model.call(x), y);
      loss.backward();
      optimizer.step();
      return loss;
    });
    total += Number(await loss.item());
    loss.dispose();
  }
  console.log(`epoch ${epoch}  loss ${(total / (ROWS / BATCH)).toFixed(7)}`);
}

const right = model.call(data["test_x"]!).argmax(1).eq(data["test_y"]!);
console.log(`accuracy ${Number(await right.to("float32").mean().item()).toFixed(4)}`);
