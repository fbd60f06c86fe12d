/** The demo's network and training, for Node and for browsers. */

import type * as Gradwire from "../src/index.ts";

/** Images of 8x8 pixels from 0 to 1 in rows, and their labels, for training and held out. */
export interface Digits {
  trainImages: number[][];
  trainLabels: number[];
  testImages: number[][];
  testLabels: number[];
}

/** The digits in a file that `examples/digits_data.py` wrote: a frame that uploads tensors by name. */
export function digitsOf(file: string): Digits {
  const frame = JSON.parse(file) as { ops: { as: string; data: never }[] };
  const named = new Map(frame.ops.map(({ as, data }) => [as, data]));
  const [trainImages, trainLabels] = [named.get("train_x")!, named.get("train_y")!];
  return { trainImages, trainLabels, testImages: named.get("test_x")!, testLabels: named.get("test_y")! };
}

export interface Progress {
  epoch: number;
  epochs: number;
  step: number;
  steps: number;
  /** Only after an epoch: the mean loss, and the share of held-out digits that are labelled correctly. */
  loss?: number;
  accuracy?: number;
  /** What the network takes the held-out digits for. */
  predictions?: number[];
}

const BATCH = 64;

/** Train a small convolutional network. `gw` is the package: a page and a program import it from different places. */
export async function train(
  gw: typeof Gradwire,
  digits: Digits,
  epochs: number,
  onProgress: (progress: Progress) => void | Promise<void>,
): Promise<number> {
  const { nn, optim } = gw;
  const images = (rows: number[][]): Gradwire.Tensor =>
    gw.tensor(new Float32Array(rows.flat()), { shape: [rows.length, 1, 8, 8] });
  const labels = (values: number[]): Gradwire.Tensor => gw.tensor(values, { dtype: "int64" });
  const [trainX, testX] = [images(digits.trainImages), images(digits.testImages)];
  const [trainY, testY] = [labels(digits.trainLabels), labels(digits.testLabels)];
  const model = new nn.Sequential(
    new nn.Conv2d(1, 16, 3, { padding: 1 }),
    new nn.ReLU(),
    new nn.Conv2d(16, 32, 3, { padding: 1 }),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Flatten(),
    new nn.Dropout(0.25),
    new nn.Linear(32 * 4 * 4, 10),
  );
  const optimizer = new optim.AdamW(model.parameters(), { lr: 3e-3, weightDecay: 1e-2 });
  const criterion = new nn.CrossEntropyLoss();
  const steps = Math.floor(digits.trainImages.length / BATCH);
  let accuracy = 0;
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const order = gw.randperm(digits.trainImages.length);
    const total = gw.zeros([]);
    for (let step = 0; step < steps; step++) {
      gw.tidy(() => {
        const chosen = order.narrow(0, step * BATCH, BATCH);
        optimizer.zeroGrad();
        const loss = criterion.call(model.call(trainX.indexSelect(0, chosen)), trainY.indexSelect(0, chosen));
        loss.backward();
        optimizer.step();
        total.add_(loss.detach());
      });
      await onProgress({ epoch, epochs, step: step + 1, steps });
    }
    model.eval();
    const [taken, right] = gw.tidy(() => {
      const taken = gw.noGrad(() => model.call(testX).argmax(1));
      return [taken, taken.eq(testY).to("float32").mean()] as const;
    });
    model.train();
    const [sum, reached, predicted] = await Promise.all([total.item(), right.item(), taken.data()]);
    for (const each of [order, total, taken, right]) each.dispose();
    accuracy = Number(reached);
    const predictions = Array.from(predicted, Number);
    await onProgress({ epoch, epochs, step: steps, steps, loss: Number(sum) / steps, accuracy, predictions });
  }
  return accuracy;
}
