/**
 * Exactly-once delivery of frames. Frames are numbered without gaps and kept until they are answered. After a
 * connection broke, all unanswered frames are sent again: the server applies those that it has not applied, and answers
 * the others from the replies that it keeps. A program notices a dropped connection only as a delay.
 */

import { ConnectionLost, GradwireError, MalformedFrame, SessionGone, Superseded, errorOf } from "../errors.ts";
import { VERSION } from "../version.ts";
import type { Connection, Listener, TicketSource } from "./connection.ts";
import { openRequests } from "./connection.ts";
import { Dialer } from "./dialer.ts";
import type { Direct } from "./dialer.ts";
import { Downloads } from "./downloads.ts";
import { pack } from "./envelope.ts";
import type { Chunk, Frame, Payload, Reply, Value, Welcome } from "./messages.ts";
import type { Rest } from "./rest.ts";
import { PATIENCE_S, RetryPolicy, sleep } from "./retry.ts";
import { SendWindow } from "./send_window.ts";
import type { Answer, CutFrame, SentFrame } from "./send_window.ts";

export const CHUNK_BYTES = 2 * 2 ** 20;
const STRUCTURES_REMEMBERED = 128;
const UNKNOWN_AT_MOST = 3;
const FAILURES_KEPT = 64;
/** Seconds of silence while something is awaited, after which the server is asked whether it still lives. */
const SILENCE_S = 15;
const EMPTY: CutFrame = {
  structure: { ops: [] },
  packed: pack({ ops: [] }),
  hash: undefined,
  first: 0,
  external: [],
  scalars: [],
  payloads: [],
  releases: [],
  sites: [],
  readBytes: 0,
};
const EMPTY_BYTES = new Uint8Array(0);

export interface LinkOptions {
  /** Seconds to keep trying to reach the server before {@link ConnectionLost}. */
  patience?: number | undefined;
  /** Use requests although there are WebSockets. */
  transport?: "stream" | "requests" | undefined;
  /** Whether to follow a gateway's redirects. */
  direct?: Direct | undefined;
}

/** Somebody who waits for the answer to a frame. */
interface Waiting {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Counts of a link. */
export interface LinkStats {
  frames: number;
  roundTrips: number;
  reconnects: number;
  resent: number;
  structureHits: number;
  structureMisses: number;
  unanswered: number;
  /** Whether the connection leads to the session's worker, past the gateway of a fleet. */
  direct: boolean;
  /** How often a gateway sent the program to a worker, and how often the way there was given up for its relay. */
  redirects: number;
  fallbacks: number;
}

function hex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

function randomName(): string {
  return hex(crypto.getRandomValues(new Uint8Array(8)));
}

/** A reliable link to one session, of one client. */
export class Link implements Listener {
  readonly rest: Rest;
  readonly session: string;
  /** Answers with errors that nobody has been told about, oldest first. */
  readonly failed: Answer[] = [];
  readonly #instance = randomName();
  readonly #dialer: Dialer;
  readonly #transport: "stream" | "requests";
  readonly #retry: RetryPolicy;
  readonly #window = new SendWindow();
  readonly #waiting = new Map<number, Waiting>();
  readonly #downloads = new Downloads();
  readonly #known = new Set<string>();
  #connection: Connection | undefined;
  #connecting: Promise<void> | undefined;
  #over: GradwireError | undefined;
  #welcome: Welcome | undefined;
  #epoch = 0;
  #client = 0;
  #transfer = 0;
  #cancelled = 0;
  #heard = 0;
  #watching = false;
  #stats = { roundTrips: 0, reconnects: -1, resent: 0, structureHits: 0, structureMisses: 0 };

  constructor(rest: Rest, session: string, tickets: TicketSource, options: LinkOptions = {}) {
    this.rest = rest;
    this.session = session;
    this.#dialer = new Dialer(rest, session, tickets, options.direct ?? true);
    this.#transport = options.transport ?? (typeof WebSocket === "undefined" ? "requests" : "stream");
    this.#retry = new RetryPolicy(options.patience ?? PATIENCE_S);
  }

  /** The client's number in the session. */
  get client(): number {
    return this.#client;
  }

  get welcome(): Welcome | undefined {
    return this.#welcome;
  }

  get unanswered(): number {
    return this.#window.length;
  }

  get next(): number {
    return this.#window.next;
  }

  stats(): LinkStats {
    const frames = this.#window.next - 1;
    const { redirects, fallbacks } = this.#dialer;
    return {
      frames,
      ...this.#stats,
      reconnects: Math.max(this.#stats.reconnects, 0),
      unanswered: this.#window.length,
      direct: this.#connection?.direct ?? false,
      redirects,
      fallbacks,
    };
  }

  /** Connect, unless there is a connection. @throws ConnectionLost when the server cannot be reached. */
  connect(): Promise<void> {
    if (this.#over) return Promise.reject(this.#over);
    if (this.#connection) return Promise.resolve();
    this.#connecting ??= this.#reconnect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /**
   * Take a frame, which is certain to be sent. Returns its number.
   *
   * @throws SessionGone, Superseded when the session cannot be used any more.
   */
  submit(frame: CutFrame): number {
    if (this.#over) throw this.#over;
    const sent = this.#window.add(frame);
    if (this.#connection) this.#write();
    else this.connect().catch(() => undefined); // whoever waits is told
    return sent.seq;
  }

  /**
   * The answer to a frame.
   *
   * @throws ConnectionLost when the server cannot be reached. The frame is kept; the next use tries again.
   */
  answer(seq: number, signal?: AbortSignal): Promise<Answer> {
    this.#stats.roundTrips += 1;
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over);
      const abort = (): void => {
        this.cancel().catch(() => undefined); // the answer says so, or the next hello does
      };
      signal?.addEventListener("abort", abort);
      const done = (): void => signal?.removeEventListener("abort", abort);
      this.#waiting.set(seq, {
        resolve: (answer) => {
          done();
          resolve(answer);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      });
      if (signal?.aborted) abort();
      if (!this.#connection) this.connect().catch(() => undefined);
      void this.#watch();
    });
  }

  /** Resolves once everything that was sent is answered. */
  async drained(): Promise<void> {
    while (this.#window.length) await this.answer(this.#window.next - 1);
  }

  /** Have the server cancel all unanswered frames. Reading one of their results throws {@link Cancelled}. */
  async cancel(): Promise<void> {
    if (!this.#window.length) return;
    const [first, last] = [this.#window.answered + 1, this.#window.next - 1];
    this.#cancelled = last;
    if (this.#connection?.takesChunks) this.#connection.send({ type: "cancel", first, last });
    else await this.rest.json("DELETE", `/v1/sessions/${this.session}/frames?client=${this.#client}`, { patience: 0 });
  }

  close(): void {
    this.#fail(new SessionGone("the session was closed by this program"), true);
  }

  // Listener

  onMessage(message: Reply | Chunk, buffers: Uint8Array[]): void {
    this.#heard = performance.now();
    if (message.type === "chunk") this.#downloads.take(message, buffers, this.#window.expected);
    else if (message.type === "reply") this.#answered(message, buffers);
    else throw new MalformedFrame(`a message of type ${String((message as { type?: unknown }).type)} is not expected`);
  }

  onEnd(error: GradwireError): void {
    this.#connection = undefined;
    if (error instanceof ConnectionLost) {
      if (this.#waiting.size) this.connect().catch(() => undefined);
    } else if (isFinal(error)) {
      this.#fail(error);
    } else {
      this.#reject(error); // the session is untouched, and the next use resumes
    }
  }

  // Sending

  #write(): void {
    for (const sent of this.#window.due()) {
      this.#window.written = sent.seq;
      this.#send(sent);
    }
  }

  #send(sent: SentFrame): void {
    const connection = this.#connection;
    if (!connection) return;
    const { structure, hash, first, external, scalars, releases } = sent.frame;
    const payloads: Payload[] = [];
    const buffers: Uint8Array[] = [];
    for (const data of sent.frame.payloads) {
      if (connection.takesChunks && data.byteLength > CHUNK_BYTES) {
        payloads.push({ upload: this.#upload(connection, data) });
      } else {
        payloads.push({ buffer: buffers.length });
        buffers.push(data);
      }
    }
    const frame: Frame = { type: "frame", seq: sent.seq, client: this.#client };
    if (first) {
      frame.first = first;
      frame.near = true;
    }
    const name = hash && hex(hash);
    if (name === undefined || !this.#known.has(name)) {
      frame.structure = structure;
      this.#stats.structureMisses += 1;
      if (name !== undefined) this.#remember(name);
    } else {
      this.#stats.structureHits += 1;
    }
    if (hash) frame.hash = hash;
    if (external.length) frame.external = external;
    if (scalars.length) frame.scalars = scalars;
    if (payloads.length) frame.payloads = payloads;
    if (releases.length) frame.releases = releases;
    if (this.#window.answered) frame.ack = this.#window.answered;
    frame.epoch = this.#epoch;
    connection.send(frame, buffers);
  }

  #upload(connection: Connection, data: Uint8Array): number {
    const transfer = (this.#transfer += 1);
    for (let offset = 0; offset < data.byteLength; offset += CHUNK_BYTES) {
      const piece = data.subarray(offset, offset + CHUNK_BYTES);
      connection.send({ type: "chunk", transfer, offset, total: data.byteLength }, [piece]);
    }
    return transfer;
  }

  #remember(name: string): void {
    this.#known.add(name);
    if (this.#known.size > STRUCTURES_REMEMBERED) {
      const [oldest] = this.#known;
      this.#known.delete(oldest!);
    }
  }

  // Receiving

  #answered(reply: Reply, buffers: Uint8Array[]): void {
    const sent = this.#window.first;
    if (!sent || reply.seq < sent.seq) return; // an answer to a frame that was sent twice
    if (reply.refused) {
      this.#refused(reply);
      return;
    }
    if (reply.seq !== sent.seq) {
      throw new MalformedFrame(`expected the reply to frame ${sent.seq}, got the reply to frame ${reply.seq}`);
    }
    const values = (reply.values ?? []).map((value) => this.#bytesOf(value, buffers));
    const answer: Answer = { frame: sent.frame, seq: sent.seq, reply, buffers: values, refusal: sent.refusal };
    const told = sent.seq <= this.#cancelled && (reply.errors ?? []).every((problem) => problem.code === "cancelled");
    if ((reply.errors?.length || sent.refusal) && !told && this.failed.length < FAILURES_KEPT) this.failed.push(answer);
    this.#window.answer();
    this.#retry.renew();
    const waiting = this.#waiting.get(sent.seq);
    this.#waiting.delete(sent.seq);
    waiting?.resolve(answer);
    this.#write();
  }

  #bytesOf(value: Value, buffers: readonly Uint8Array[]): Uint8Array | undefined {
    if (value.download !== undefined) return this.#downloads.finish(value.download);
    if (!value.dtype) return undefined;
    if (value.buffer === undefined) return EMPTY_BYTES;
    const bytes = buffers[value.buffer];
    if (!bytes) throw new MalformedFrame(`a value refers to buffer ${value.buffer} of ${buffers.length}`);
    return bytes;
  }

  #refused(reply: Reply): void {
    const { code, detail, extra, retryable } = reply.refused!;
    if (code === "frame_out_of_order") return; // a consequence of an earlier refusal, whose handling resends this one
    const sent = this.#window.find(reply.seq);
    if (!sent) return;
    const error = errorOf(code, detail, { ...extra });
    if (isFinal(error)) {
      this.#fail(error);
      return;
    }
    if (code === "unknown_structure" && (sent.unknown += 1) <= UNKNOWN_AT_MOST) {
      this.#known.clear();
    } else if (retryable && code !== "unknown_structure") {
      const asked = extra?.["retry_after_s"];
      void this.#retryLater(sent.seq, typeof asked === "number" ? asked : 0, error);
      return;
    } else if (!sent.refusal) {
      sent.refusal = error;
      sent.frame = { ...EMPTY, first: sent.frame.first, sites: sent.frame.sites };
    } else {
      this.#fail(error); // even the empty frame is refused
      return;
    }
    this.#resend(sent.seq);
  }

  async #retryLater(seq: number, asked: number, error: GradwireError): Promise<void> {
    if (await this.#retry.pause(asked)) this.#resend(seq);
    else this.#reject(error);
  }

  /** Send this frame again, and all after it, which the server has refused meanwhile. */
  #resend(seq: number): void {
    this.#window.written = Math.min(this.#window.written, seq - 1);
    this.#write();
  }

  // Connecting

  async #reconnect(): Promise<void> {
    let cause: unknown;
    for (let attempt = 0; ; attempt++) {
      if (attempt && !(await this.#retry.pause())) {
        const frames = this.#window.describe();
        const lost = new ConnectionLost(
          `${this.rest.url} could not be reached for ${this.#retry.seconds} s (${messageOf(cause)}); frames up to ` +
            `${this.#window.answered} are applied${frames && `, ${frames} may have been or not`}. Nothing is lost: ` +
            "the next use reconnects and resumes",
        );
        this.#retry.renew();
        this.#reject(lost);
        throw lost;
      }
      try {
        await this.#retry.trying(() => this.#attempt());
        return;
      } catch (error) {
        cause = error;
        const again = error instanceof GradwireError && error.retryable && this.#stats.reconnects >= 0;
        if (!again) {
          if (isFinal(error)) this.#fail(error);
          else this.#reject(error);
          throw error;
        }
      }
    }
  }

  async #attempt(): Promise<void> {
    this.#known.clear();
    this.#downloads.clear();
    const hello = {
      type: "hello" as const,
      client: this.#client,
      acked: this.#window.answered,
      agent: `gradwire-typescript/${VERSION}`,
      instance: this.#instance,
      epoch: this.#epoch,
      cancelled: this.#cancelled,
    };
    const connection =
      this.#transport === "stream"
        ? await this.#dialer.dial(hello, this)
        : await openRequests(this.rest, this.session, hello, this);
    const { welcome } = connection;
    if (welcome.expected <= this.#window.answered || welcome.expected > this.#window.next) {
      connection.close();
      throw new SessionGone(`the session has lost frames: it expects frame ${welcome.expected} next`);
    }
    if (this.#over) {
      connection.close();
      throw this.#over;
    }
    this.#connection = connection;
    this.#welcome = welcome;
    this.#client = welcome.client;
    this.#epoch = welcome.epoch ?? 0;
    this.#transfer = Math.max(this.#transfer, this.#epoch * 2 ** 20);
    this.#stats.reconnects += 1;
    this.#stats.resent += this.#window.length;
    this.#window.written = this.#window.answered;
    this.#write();
  }

  /** While somebody waits, notice a connection that fell silent: the WebSocket of browsers has no pings to send. */
  async #watch(): Promise<void> {
    if (this.#watching) return;
    this.#watching = true;
    this.#heard = performance.now();
    try {
      while (this.#waiting.size && !this.#over) {
        await sleep(SILENCE_S, false);
        const connection = this.#connection;
        if (!connection?.takesChunks || performance.now() - this.#heard < SILENCE_S * 1000) continue;
        try {
          // The worker's answer may be hidden from a page, which only has to know that there is one.
          await fetch(`${connection.url}/livez`, { mode: "no-cors", signal: AbortSignal.timeout(SILENCE_S * 1000) });
        } catch {
          if (this.#connection !== connection) continue;
          connection.close();
          this.onEnd(new ConnectionLost("the server has fallen silent"));
        }
      }
    } finally {
      this.#watching = false;
    }
  }

  // Ends

  /** The session cannot be used any more. */
  #fail(error: GradwireError, quietly = false): void {
    if (this.#over) return;
    const frames = this.#window.describe();
    if (frames && !quietly) {
      error.message += `. Frames up to ${this.#window.answered} are applied; ${frames} may have been or not`;
    }
    this.#over = error;
    this.#connection?.close();
    this.#connection = undefined;
    this.#reject(error);
  }

  #reject(error: unknown): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const each of waiting) each.reject(error);
  }
}

/** Errors after which the session cannot be used any more by this program. */
function isFinal(error: unknown): error is GradwireError {
  return error instanceof SessionGone || error instanceof Superseded;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
