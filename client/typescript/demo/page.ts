/** The page of the digits demo. */

import * as gw from "gradwire";

import { digitsOf, train } from "./digits.ts";
import type { Digits, Progress } from "./digits.ts";

const EPOCHS = 15;
const SHOWN = 50;
const [LEFT, RIGHT, TOP, BOTTOM] = [40, 425, 10, 210];

function element<E extends Element>(id: string): E {
  return document.getElementById(id) as unknown as E;
}

const [button, bar, status] = [
  element<HTMLButtonElement>("train"),
  element<HTMLProgressElement>("progress"),
  element("status"),
];
const digits = digitsOf(await (await fetch("/digits.json")).text());
drawDigits(digits);
status.textContent = `${digits.trainImages.length} digits to learn, ${digits.testImages.length} held out.`;
button.disabled = false;
button.onclick = () => {
  button.disabled = true;
  run().catch((error: unknown) => {
    status.textContent = `It failed: ${String(error)}`;
  });
};

async function run(): Promise<void> {
  const { url, session: id } = (await (await fetch("/session.json")).json()) as { url: string; session: string };
  const ticket = async (): Promise<string> => (await fetch(`/ticket?session=${id}`)).text();
  const session = await gw.connect(url, { session: id, ticket });
  const history: Progress[] = [];
  const began = performance.now();
  const accuracy = await train(gw, digits, EPOCHS, async (progress) => {
    const { epoch, epochs, step, steps } = progress;
    bar.max = epochs * steps;
    bar.value = (epoch - 1) * steps + step;
    if (progress.loss === undefined) return;
    history.push(progress);
    drawChart(history);
    drawPredictions(digits, progress.predictions!);
    const reached = percent(progress.accuracy!);
    status.textContent = `Epoch ${epoch} of ${epochs}: loss ${progress.loss.toFixed(3)}, accuracy ${reached}.`;
    await new Promise(requestAnimationFrame);
  });
  const { ops, frames, roundTrips } = session.stats();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  status.textContent =
    `Learned: ${percent(accuracy)} of digits it had never seen, in ${seconds} s: ` +
    `${ops} ops in ${frames} frames and ${roundTrips} round trips.`;
  await session.close();
  document.body.dataset["accuracy"] = String(accuracy);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}

function drawDigits({ testImages, testLabels }: Digits): void {
  for (const [at, image] of testImages.slice(0, SHOWN).entries()) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 8;
    const context = canvas.getContext("2d")!;
    for (const [pixel, value] of image.entries()) {
      context.fillStyle = `rgb(${Array(3)
        .fill(Math.round(255 * (1 - value)))
        .join(" ")})`;
      context.fillRect(pixel % 8, Math.floor(pixel / 8), 1, 1);
    }
    const cell = document.createElement("div");
    const label = document.createElement("span");
    label.textContent = "?";
    cell.append(canvas, label);
    cell.title = `labelled ${testLabels[at]}`;
    element("digits").append(cell);
  }
}

function drawPredictions({ testLabels }: Digits, predictions: readonly number[]): void {
  for (const [at, cell] of [...element("digits").children].entries()) {
    const label = cell.querySelector("span")!;
    label.textContent = String(predictions[at]);
    label.className = predictions[at] === testLabels[at] ? "" : "wrong";
  }
}

function drawChart(history: readonly Progress[]): void {
  const most = Math.max(...history.map(({ loss }) => loss!));
  const x = (at: number): number => LEFT + ((RIGHT - LEFT) * at) / (EPOCHS - 1);
  const y = (share: number): number => BOTTOM - (BOTTOM - TOP) * share;
  const path = (name: string, shares: number[]): string =>
    `<path class="${name}" d="${shares.map((share, at) => `${at ? "L" : "M"}${x(at)} ${y(share)}`).join("")}"/>`;
  const grid = [0, 0.5, 1].map(
    (share) =>
      `<line x1="${LEFT}" x2="${RIGHT}" y1="${y(share)}" y2="${y(share)}"/>` +
      `<text x="${LEFT - 6}" y="${y(share) + 4}" text-anchor="end">${(share * most).toFixed(1)}</text>` +
      `<text x="${RIGHT + 6}" y="${y(share) + 4}">${100 * share} %</text>`,
  );
  const epochs = [1, 5, 10, 15].map(
    (epoch) => `<text x="${x(epoch - 1)}" y="${BOTTOM + 18}" text-anchor="middle">${epoch}</text>`,
  );
  element("chart").innerHTML =
    grid.join("") +
    epochs.join("") +
    path(
      "loss",
      history.map(({ loss }) => loss! / most),
    ) +
    path(
      "accuracy",
      history.map(({ accuracy }) => accuracy!),
    );
}
