/** What is done with the gradients of several leaves at once. */

import { noGrad } from "../graph/modes.ts";
import { lookup } from "../ops/op.ts";
import type { Session } from "../session/session.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { one } from "./calling.ts";
import { tensor } from "./tensors.ts";

/**
 * Remove the gradients of leaves, or make them zero, in one record a session. Leaves that could have one are named as
 * well, so that the first step of a loop is recorded as all others are.
 */
export function zeroGradients(leaves: readonly Tensor[], setToNone: boolean = true): void {
  const bySession = new Map<Session, Tensor[]>();
  for (const leaf of leaves) {
    if (!leaf.hasGrad && !leaf.requiresGrad) continue;
    const alike = bySession.get(leaf.session) ?? [];
    bySession.set(leaf.session, alike);
    alike.push(leaf);
  }
  for (const [session, alike] of bySession) {
    session.record(lookup("zero_grad"), [alike, setToNone], 0);
    if (setToNone) for (const leaf of alike) leaf.gradRemoved();
  }
}

/**
 * Scale all gradients by one factor so that their common norm is at most `maxNorm`. Returns the norm they had; nothing
 * waits for the server.
 */
export function clipGradNorm_(parameters: Iterable<Tensor>, maxNorm: number, normType: number = 2): Tensor {
  const leaves = [...parameters].filter((parameter) => parameter.hasGrad);
  if (leaves.length === 0) return tensor(0);
  return noGrad(() => one("clip_grad_norm_", leaves, maxNorm, normType));
}
