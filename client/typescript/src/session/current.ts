/** The session that new tensors belong to. */

import { InvalidRequest } from "../errors.ts";
import type { Session } from "./session.ts";

let current: Session | undefined;

/** @throws InvalidRequest when the program has not connected. */
export function currentSession(): Session {
  if (!current) throw new InvalidRequest("there is no session: await gw.connect(url, { apiKey }) first");
  return current;
}

/** New tensors do not belong to this session any more. */
export function leaveSession(session: Session): void {
  if (current === session) current = undefined;
}

/** Have new tensors belong to this session; `undefined` for none. Returns the one before. */
export function useSession(session: Session | undefined): Session | undefined {
  const before = current;
  current = session;
  return before;
}
