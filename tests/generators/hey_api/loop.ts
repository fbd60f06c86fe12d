// Train an MLP with the client that @hey-api/openapi-ts made: node loop.js URL KEY DATA
import { readFileSync } from "node:fs";
import { client } from "./generated/client.gen.js";
import { createSession, deleteSession, submitFrame } from "./generated/sdk.gen.js";
import type { Frame, OpRecord, Reply } from "./generated/types.gen.js";

const [url, key, path] = process.argv.slice(2) as [string, string, string];
const data = JSON.parse(readFileSync(path, "utf8")) as {
  x: number[][]; target: number[]; weights: number[][]; lr: number; steps: number;
};
client.setConfig({ baseUrl: url, auth: key, throwOnError: true });
const session = await createSession({ body: {}, throwOnError: true });
const session_id = session.data.id;

async function submit(body: Frame): Promise<Reply> {
  const { data: reply } = await submitFrame({ path: { session_id }, body, throwOnError: true });
  if (reply.errors?.length) throw new Error(reply.errors[0]!.detail);
  return reply;
}

const weights = ["w1", "b1", "w2", "b2"];
await submit({
  ops: [
    { op: "upload", data: data.x, dtype: "float32", as: "x" },
    { op: "upload", data: data.target, dtype: "int64", as: "target" },
    ...weights.flatMap((name, i): OpRecord[] => [
      { op: "upload", data: data.weights[i]!, dtype: "float32", as: name },
      { op: "requires_grad_", self: name },
    ]),
  ],
});
const step: Frame = {
  ops: [
    { op: "linear", self: "x", weight: "w1", bias: "b1", as: "h" },
    { op: "relu", self: "h", as: "a" },
    { op: "linear", self: "a", weight: "w2", bias: "b2", as: "scores" },
    { op: "cross_entropy", self: "scores", target: "target", as: "loss" },
    { op: "backward", tensors: ["loss"] },
    { op: "sgd_step", params: weights, lr: data.lr },
    { op: "zero_grad", params: weights },
  ],
  reads: ["loss"],
};
const losses: number[] = [];
for (let i = 0; i < data.steps; i++) {
  const reply = await submit(step);
  losses.push(reply.values![0]!.values as number);
}
await deleteSession({ path: { session_id } });
console.log(JSON.stringify(losses));
