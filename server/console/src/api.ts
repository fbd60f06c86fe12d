/** The server's answers, and requests with the cookie of the sign-in. */

import { errorOf } from "../../../client/typescript/src/errors.ts";
import type { GradwireError } from "../../../client/typescript/src/errors.ts";

export interface Memory {
  live_bytes: number;
  saved_bytes: number;
  pooled_bytes: number;
  peak_bytes: number;
  limit_bytes: number;
}

export interface SessionRow {
  id: string;
  name: string;
  tenant: string;
  device: string;
  durability: string;
  state: "busy" | "idle" | "dormant" | "damaged";
  created_at: string;
  age_s: number;
  idle_s: number;
  expires_in_s: number;
  streams: number;
  pending_frames: number;
  memory: Memory | null;
  frames_per_second: number;
  ops_per_second: number;
  busy: number;
  frames: number;
  ops: number;
  planned_frames: number;
  errors: number;
  last_error: { at: string; code: string; op: string; detail?: string } | null;
}

export interface RecentFrame {
  at: string;
  seq: number;
  ops: number;
  what: string;
  took_s: number;
  waited_s: number;
  planned: boolean;
  error: string;
}

export interface LogLine {
  at: string;
  level: string;
  event: string;
  facts: { [name: string]: string | number | boolean };
}

export interface Device {
  name: string;
  model: string;
  total_bytes: number;
  free_bytes: number;
}

export interface Worker {
  id: string;
  state: string;
  sessions: number;
  calls: number;
}

export interface Quota {
  key: string;
  name: string;
  tenant: string;
  quota: string;
  used: number;
  limit: number;
}

export interface Activity {
  at: string;
  version: string;
  uptime_s: number;
  session_host: string;
  draining: boolean;
  caller: { key: string; name: string; tenant: string; scopes: string[]; all: boolean };
  totals: {
    sessions: number;
    loaded: number;
    busy: number;
    streams: number;
    frames_per_second: number;
    ops_per_second: number;
    live_bytes: number;
    saved_bytes: number;
    pooled_bytes: number;
    errors: number;
  };
  queue: { slots: number | null; computing: number; waiting: number | null; pending_frames: number };
  devices: Device[];
  workers: Worker[];
  quotas: Quota[];
  sessions: SessionRow[];
  detail?: { id: string; frames: RecentFrame[]; log: LogLine[] };
}

export interface TensorRow {
  /** Missing for a tensor that has only a name. */
  id?: number;
  name: string | null;
  shape: number[];
  dtype: string;
  device: string;
  requires_grad: boolean;
  is_leaf: boolean;
  grad_fn: string | null;
}

export interface Branch {
  name: string;
  ns: number;
  count: number;
  below: Branch[];
}

export interface KeyRow {
  id: string;
  name: string;
  tenant: string;
  scopes: string[];
  state: string;
  kept: string;
  created_at: string | null;
  last_used_at: string | null;
}

export interface Who {
  key: string;
  name: string;
  tenant: string;
  scopes: string[];
}

/** The address of a route. The page is at `/console`, possibly behind a prefix. */
export function at(path: string): string {
  const { pathname, search } = new URL(path, new URL(".", document.baseURI));
  return pathname + search;
}

async function fail(response: Response): Promise<GradwireError> {
  try {
    const problem = (await response.json()) as { code?: string; detail?: string };
    return errorOf(problem.code ?? "internal", problem.detail ?? response.statusText);
  } catch {
    return errorOf("internal", `the server answered ${response.status}`);
  }
}

/** Make a request with the cookie, and with a key if there is one. */
export async function ask<T>(method: string, path: string, body?: unknown, key?: string): Promise<T> {
  const headers: Record<string, string> = { "X-Gradwire-Console": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key !== undefined) headers["Authorization"] = `Bearer ${key}`;
  const sent: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) sent.body = JSON.stringify(body);
  const response = await fetch(at(path), sent);
  if (!response.ok) throw await fail(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** All pages of a list, at most `most` rows. */
async function pagesOf<T>(path: string, field: string, most: number): Promise<{ rows: T[]; more: boolean }> {
  const rows: T[] = [];
  let after: string | number | null = null;
  do {
    const query = `limit=1000${after === null ? "" : `&after=${encodeURIComponent(after)}`}`;
    const page: { [name: string]: unknown } = await ask("GET", `${path}?${query}`);
    rows.push(...(page[field] as T[]));
    after = page["next"] as string | number | null;
  } while (after !== null && rows.length < most);
  return { rows, more: after !== null };
}

/** The tensors of a session, with those that have only a name. */
export async function tensorsOf(session: string, most = 5000): Promise<{ rows: TensorRow[]; more: boolean }> {
  const [numbered, named] = await Promise.all([
    pagesOf<TensorRow>(`v1/sessions/${session}/tensors`, "tensors", most),
    pagesOf<TensorRow>(`v1/sessions/${session}/names`, "names", most),
  ]);
  const known = new Set(numbered.rows.map((row) => row.name));
  const rows = [...numbered.rows, ...named.rows.filter((row) => !known.has(row.name))];
  return { rows, more: numbered.more || named.more };
}
