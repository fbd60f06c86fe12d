// Train an MLP with the types of openapi-typescript and openapi-fetch: node loop.js URL KEY DATA
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.js";

const [url, key, path] = process.argv.slice(2) as [string, string, string];
const data = JSON.parse(readFileSync(path, "utf8")) as {
  x: number[][]; target: number[]; weights: number[][]; lr: number; steps: number;
};
type Media = "application/json" | "application/problem+json"; // frames and tensors have others, too
const client = createClient<paths, Media>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
const made = await client.POST("/v1/sessions", { body: {} });
if (!made.data) throw new Error(made.error.detail);
const session_id = made.data.id;
for (const [index, values] of [data.x, data.target, ...data.weights].entries()) {
  const { error } = await client.PUT("/v1/sessions/{session_id}/tensors/{tensor_id}", {
    params: { path: { session_id, tensor_id: index + 1 }, query: { requires_grad: index > 1 } }, body: { values },
  });
  if (error) throw new Error(error.detail);
}

const [x, target, weights] = [-1, -2, [-3, -4, -5, -6]];
const step: components["schemas"]["Frame"] = {
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
  const { data: reply, error } = await client.POST("/v1/sessions/{session_id}/frames", {
    params: { path: { session_id } }, body: step,
  });
  if (!reply) throw new Error(error.detail);
  if (reply.errors?.length) throw new Error(reply.errors[0]!.detail);
  losses.push(reply.values![0]!.values as number);
}
await client.DELETE("/v1/sessions/{session_id}", { params: { path: { session_id } } });
console.log(JSON.stringify(losses));
