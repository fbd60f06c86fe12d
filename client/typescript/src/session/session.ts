/** A session: records ops, sends frames, reads values. */

import { InvalidRequest, UnknownTensor } from "../errors.ts";
import type { Op } from "../ops/op.ts";
import { lookup } from "../ops/op.ts";
import type { Value } from "../ops/values.ts";
import type { DTypeName } from "../tensor/dtypes.ts";
import { isDType } from "../tensor/dtypes.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Shape } from "../tensor/values.ts";
import type { TicketSource } from "../wire/connection.ts";
import { ticketsOf } from "../wire/connection.ts";
import { IDS_OF_A_CLIENT } from "../wire/messages.ts";
import type { Direct } from "../wire/dialer.ts";
import { Link } from "../wire/link.ts";
import type { LinkStats } from "../wire/link.ts";
import { Rest } from "../wire/rest.ts";
import { leaveSession, useSession } from "./current.ts";
import { FrameBuilder } from "./frame_builder.ts";
import { Reads } from "./reads.ts";
import type { ReadOptions, ReadValue } from "./reads.ts";

const OPS_PER_FRAME = 2048;
/** A frame is sent when nothing was recorded for so long. */
const QUIET_MS = 4;

export interface ConnectOptions {
  /** The key. Default in Node, Deno and Bun: the environment variable GRADWIRE_API_KEY. */
  apiKey?: string | undefined;
  /** Join this session instead of starting one. It is not deleted when the program closes it. */
  session?: string | undefined;
  /** For pages that are given tickets instead of a key: returns a new one for the session each time it is called. */
  ticket?: TicketSource | undefined;
  /** The device of new tensors, e.g. `"cuda:0"`. */
  device?: string | undefined;
  /** The dtype of numbers. */
  defaultDtype?: "float16" | "bfloat16" | "float32" | "float64" | undefined;
  /** Idle seconds after which the session expires. */
  ttl?: number | undefined;
  durability?: "none" | "applied" | "durable" | undefined;
  seed?: number | undefined;
  /** Seconds to keep trying to reach the server. */
  patience?: number | undefined;
  /** `"requests"` sends each frame as a request, for networks that block WebSockets. */
  transport?: "stream" | "requests" | undefined;
  /**
   * Where the server is the gateway of a fleet: connect to the worker that has the session, as long as its address
   * answers. `false` stays at the gateway; `"plain"` allows it to redirect from https to http. Default: the environment
   * variable GRADWIRE_DIRECT (`0`, `1` or `plain`), else true.
   */
  direct?: Direct | undefined;
  signal?: AbortSignal | undefined;
}

interface SessionView {
  id: string;
  device: string;
  default_dtype: DTypeName;
}

interface TensorRow {
  id: number;
  dtype: string;
  shape: Shape;
  requires_grad: boolean;
}

/** Counts of a session. */
export interface SessionStats extends LinkStats {
  ops: number;
}

function withDefaults(op: Op, given: readonly Value[]): Value[] {
  return [...given, ...op.params.slice(given.length).map((param) => param.default)];
}

/** A variable of the environment, where there is one. */
function environment(name: string): string | undefined {
  const env = (globalThis as { process?: { env?: { [name: string]: string | undefined } } }).process?.env;
  try {
    return env?.[name] || undefined;
  } catch {
    return undefined; // Deno without the permission
  }
}

/** The values of GRADWIRE_DIRECT. */
const DIRECT: { readonly [text: string]: Direct } = { "0": false, false: false, off: false, no: false, plain: "plain" };

/** Opens, and later ends, what tensors and graphs live in on the server. */
export class Session {
  readonly id: string;
  readonly rest: Rest;
  /** The device of new tensors. */
  readonly device: string;
  /** The dtype of numbers. */
  readonly defaultDtype: DTypeName;
  readonly #link: Link;
  readonly #builder: FrameBuilder;
  readonly #reads: Reads;
  readonly #owned: boolean;
  readonly #proxies = new FinalizationRegistry<number>((counter) => {
    if (!this.#closed) this.#builder.collect(counter);
  });
  #closed = false;
  #due = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ops = 0;

  private constructor(view: SessionView, rest: Rest, link: Link, owned: boolean) {
    this.id = view.id;
    this.rest = rest;
    this.device = view.device;
    this.defaultDtype = view.default_dtype;
    this.#link = link;
    this.#owned = owned;
    this.#builder = new FrameBuilder(this);
    this.#reads = new Reads(link, (tensors) => this.#send(tensors, true));
  }

  /** @internal */
  static async open(url: string | undefined, options: ConnectOptions): Promise<Session> {
    const address = url ?? environment("GRADWIRE_URL");
    if (!address) throw new InvalidRequest("name a server: gw.connect(url), or the environment variable GRADWIRE_URL");
    const key = options.apiKey ?? (options.ticket ? undefined : environment("GRADWIRE_API_KEY"));
    const rest = new Rest(address, key);
    let view: SessionView;
    if (options.session === undefined) {
      const body = {
        device: options.device,
        default_dtype: options.defaultDtype,
        ttl_s: options.ttl,
        durability: options.durability,
        seed: options.seed,
      };
      const headers = { "Idempotency-Key": crypto.randomUUID() };
      view = await rest.json("POST", "/v1/sessions", { body, headers, signal: options.signal });
    } else if (options.ticket && !rest.authorized) {
      view = { id: options.session, device: options.device ?? "cpu", default_dtype: options.defaultDtype ?? "float32" };
    } else {
      view = await rest.json("GET", `/v1/sessions/${encodeURIComponent(options.session)}`, { signal: options.signal });
    }
    const link = new Link(rest, view.id, options.ticket ?? ticketsOf(rest), {
      ...options,
      direct: options.direct ?? DIRECT[environment("GRADWIRE_DIRECT")?.toLowerCase() ?? "1"],
    });
    await link.connect();
    return new Session(view, rest, link, options.session === undefined);
  }

  /** This program's number among the clients of the session. */
  get client(): number {
    return this.#link.client;
  }

  get closed(): boolean {
    return this.#closed;
  }

  // Recording

  /** Record an op; trailing defaults may be left out. Returns the counter of its first result. @internal */
  record(op: Op, given: readonly Value[], results: number): number {
    if (this.#closed) throw new InvalidRequest(`session ${this.id} is closed`);
    if ((this.#due && !op.afterBackward) || this.#builder.length >= OPS_PER_FRAME) this.flush();
    const { params } = op;
    const values = given.length < params.length ? withDefaults(op, given) : given;
    const first = this.#builder.record(op, values, results);
    this.#ops += 1;
    this.#timer ??= setTimeout(() => this.#quiet(), QUIET_MS);
    return first;
  }

  /**
   * The frame is due to end, after a backward or an optimizer's step: with the next read, or before the next record
   * that does not belong to these. So a training step is one frame, whether or not its loss is read. @internal
   */
  frameEnds(): void {
    this.#due = this.#builder.length > 0;
  }

  /** @internal */
  release(tensor: Tensor): void {
    this.#proxies.unregister(tensor);
    this.#builder.release(tensor.counter);
    this.#timer ??= setTimeout(() => this.#quiet(), QUIET_MS);
  }

  /** Release a tensor when its proxy is collected. @internal */
  adopt(tensor: Tensor): void {
    this.#proxies.register(tensor, tensor.counter, tensor);
  }

  #quiet(): void {
    this.#timer = undefined;
    if (!this.#closed) this.flush();
  }

  /** Send what was recorded, without waiting for it. */
  flush(): void {
    if (this.#builder.length || this.#builder.releasing) this.#send([], false);
  }

  #send(tensors: readonly Tensor[], wait: boolean): number {
    if (this.#closed) throw new InvalidRequest(`session ${this.id} is closed`);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = false;
    const readBytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const frame = this.#builder.cut(tensors, wait, readBytes);
    const seq = this.#link.submit(frame);
    this.#reads.remember(seq, frame.sites);
    return seq;
  }

  // Waiting

  /** Read a tensor. @internal */
  read(tensor: Tensor, options?: ReadOptions): Promise<ReadValue> {
    return this.#reads.read(tensor, options);
  }

  /** Wait until everything recorded so far is applied. @throws the first error that no read has thrown. */
  async synchronize(options: ReadOptions = {}): Promise<void> {
    const answer = await this.#link.answer(this.#send([], true), options.signal);
    const failed = answer.refusal ?? this.#reads.takeFailure();
    if (failed) throw failed;
  }

  /** Cancel what was sent and is not answered. Reads of it throw `Cancelled`; the session is as before. */
  async cancel(): Promise<void> {
    await this.#link.cancel();
  }

  // Names

  /**
   * The tensor that a client of the session has given this name.
   *
   * @throws UnknownTensor when there is none.
   */
  async tensor(name: string): Promise<Tensor> {
    const counter = this.record(lookup("by_name"), [name], 1);
    const probe = new Tensor(this, counter, { dtype: undefined, shape: undefined });
    try {
      await this.synchronize();
      const row = await this.describe(probe);
      probe.learn(row.dtype, row.shape);
      probe.share(row.requiresGrad);
      return probe;
    } catch (error) {
      probe.dispose();
      throw error;
    }
  }

  /** What the server knows of a tensor. @internal */
  async describe(tensor: Tensor): Promise<{ dtype: DTypeName; shape: Shape; requiresGrad: boolean }> {
    await this.synchronize();
    const id = this.client * IDS_OF_A_CLIENT + tensor.counter;
    const path = `/v1/sessions/${encodeURIComponent(this.id)}/tensors?tensor=${id}`;
    const page = await this.rest.json<{ tensors: TensorRow[] }>("GET", path);
    const row = page.tensors[0];
    if (!row || !isDType(row.dtype)) throw new UnknownTensor(`the session has no tensor ${id}: it was released`);
    return { dtype: row.dtype, shape: row.shape, requiresGrad: row.requires_grad };
  }

  /** Counts: frames, round trips, structures that travelled as their hash. */
  stats(): SessionStats {
    return { ...this.#link.stats(), ops: this.#ops };
  }

  // End

  /** Send what was recorded, and end: a session that this program started is deleted with all its tensors. */
  async close(): Promise<void> {
    if (this.#closed) return;
    try {
      if (!this.#owned) {
        this.flush();
        await this.#link.drained();
      }
    } finally {
      this.#closed = true;
      clearTimeout(this.#timer);
      this.#link.close();
      leaveSession(this);
    }
    if (this.#owned) await this.rest.json("DELETE", `/v1/sessions/${encodeURIComponent(this.id)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * Start a session on a server, or join one, and have new tensors belong to it.
 *
 * @throws Unauthorized, Unavailable, ... with what the server answered.
 */
export async function connect(url?: string, options: ConnectOptions = {}): Promise<Session> {
  const session = await Session.open(url, options);
  useSession(session);
  return session;
}
