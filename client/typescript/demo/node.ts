/**
 * Train the digits demo on a server: `node demo/node.ts digits.json`.
 *
 * The server is the one of GRADWIRE_URL and GRADWIRE_API_KEY. `python examples/digits_data.py digits.json` writes the
 * data.
 */

import { readFileSync } from "node:fs";

import * as gw from "../src/index.ts";
import { digitsOf, train } from "./digits.ts";

const [path = "digits.json", epochs = "15"] = process.argv.slice(2);
const WIDTH = 30;

const session = await gw.connect(undefined, { seed: 0 });
console.log(`gradwire ${gw.VERSION}, session ${session.id} on ${session.rest.url}`);
const began = performance.now();
const digits = digitsOf(readFileSync(path, "utf8"));
const accuracy = await train(gw, digits, Number(epochs), ({ epoch, epochs, step, steps, loss, accuracy }) => {
  if (loss !== undefined) {
    const reached = (100 * accuracy!).toFixed(2);
    const line = `epoch ${String(epoch).padStart(2)}  loss ${loss.toFixed(3)}  accuracy on held-out digits ${reached}%`;
    process.stdout.write(`${process.stdout.isTTY ? "\r\u001b[K" : ""}${line}\n`);
  } else if (process.stdout.isTTY) {
    const done = ((epoch - 1) * steps + step) / (epochs * steps);
    process.stdout.write(`\rtraining ${"=".repeat(Math.round(done * WIDTH)).padEnd(WIDTH)} ${Math.floor(100 * done)}%`);
  }
});
const { ops, frames, roundTrips } = session.stats();
const seconds = ((performance.now() - began) / 1000).toFixed(1);
console.log(`${seconds} s, ${ops} ops in ${frames} frames and ${roundTrips} round trips`);
await session.close();
process.exitCode = accuracy > 0.96 ? 0 : 1;
