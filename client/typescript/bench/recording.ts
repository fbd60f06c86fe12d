/**
 * What recording costs: microseconds an op in this process, and round trips a training step.
 *
 *     GRADWIRE_URL=... GRADWIRE_API_KEY=... node bench/recording.ts
 */

import * as gw from "../src/index.ts";

const OPS = 1000;
const ROUNDS = 200;

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

/** Microseconds an op of a step of so many, recorded and cut, without waiting for the server. */
async function cost(session: gw.Session, step: () => void): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = session.stats().ops;
    const began = performance.now();
    gw.tidy(step);
    session.flush();
    rounds.push(((performance.now() - began) * 1000) / (session.stats().ops - before));
    await session.synchronize();
  }
  return median(rounds.slice(ROUNDS / 3));
}

const session = await gw.connect();
const x = gw.keep(gw.randn([8]));
const w = gw.keep(gw.randn([8]).detach().requiresGrad_());

const plain = await cost(session, () => {
  let y: gw.Tensor = x;
  for (let i = 0; i < OPS / 2; i++) y = y.mul(x).add(1);
});
const differentiated = await cost(session, () => {
  let y: gw.Tensor = w;
  for (let i = 0; i < OPS / 2; i++) y = y.mul(x).tanh();
  y.sum().backward();
  w.grad = null;
});
const before = session.stats().roundTrips;
const STEPS = 50;
for (let step = 0; step < STEPS; step++) {
  const loss = gw.tidy(() => {
    const error = w.mul(x).sub(1).pow(2).mean();
    error.backward();
    gw.noGrad(() => w.sub_(w.grad!.mul(0.1)));
    w.grad = null;
    return error;
  });
  await loss.item();
  loss.dispose();
}
const trips = (session.stats().roundTrips - before) / STEPS;
console.log(
  JSON.stringify({ plain_us: plain, differentiated_us: differentiated, trips_per_step: trips, ...session.stats() }),
);
await session.close();
