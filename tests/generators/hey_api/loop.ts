// Train an MLP with the client that @hey-api/openapi-ts made: node loop.js URL KEY DATA
import { readFileSync } from "node:fs";
import { client } from "./generated/client.gen.js";
import { createSession, deleteSession, putTensor, submitFrame } from "./generated/sdk.gen.js";
import type { Frame } from "./generated/types.gen.js";

const [url, key, path] = process.argv.slice(2) as [string, string, string];
const data = JSON.parse(readFileSync(path, "utf8")) as {
  x: number[][]; target: number[]; weights: number[][]; lr: number; steps: number;
};
client.setConfig({ baseUrl: url, auth: key, throwOnError: true });
const session = await createSession({ body: {}, throwOnError: true });
const session_id = session.data.id;
for (const [index, values] of [data.x, data.target, ...data.weights].entries()) {
  await putTensor({
    path: { session_id, tensor_id: index + 1 }, query: { requires_grad: index > 1 }, body: { values },
    throwOnError: true,
  });
}

const [x, target, weights] = [-1, -2, [-3, -4, -5, -6]];
const step: Frame = {
  external: [1, 2, 3, 4, 5, 6],
  structure: {
    ops: [
      ["linear", [x, -3, -4]],
      ["relu", [0]],
      ["linear", [1, -5, -6]],
      ["cross_entropy", [2, target]],
      ["backward", [[3], [null]]],
      ["sgd_step", [weights, [null, null, null, null], "float"]],
      ["zero_grad", [weights]],
    ],
    reads: [3],
    drops: [0, 1, 2, 3],
  },
  scalars: [data.lr],
};
const losses: number[] = [];
for (let i = 0; i < data.steps; i++) {
  const { data: reply } = await submitFrame({ path: { session_id }, body: step, throwOnError: true });
  if (reply.errors?.length) throw new Error(reply.errors[0]!.detail);
  losses.push(reply.values![0]!.values as number);
}
await deleteSession({ path: { session_id } });
console.log(JSON.stringify(losses));
