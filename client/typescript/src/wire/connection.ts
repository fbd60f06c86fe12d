/**
 * One connection to a session: the WebSocket of browsers, Node 22, Deno and Bun, opened with a ticket, or requests
 * where there is none (Node 20). A connection that broke is not repaired; the link opens another.
 */

import {
  ConnectionLost,
  GradwireError,
  MalformedFrame,
  SessionGone,
  Superseded,
  Unauthorized,
  VersionMismatch,
  errorOf,
} from "../errors.ts";
import { decode, encode } from "./envelope.ts";
import { PROTOCOL_VERSION } from "./messages.ts";
import type { Chunk, Frame, FromClient, FromServer, Hello, Redirect, Reply, Welcome } from "./messages.ts";
import type { Rest } from "./rest.ts";

/** Seconds in which a server must open a stream, and then answer the hello. */
export const OPENING_S = 30;
const CLOSING_CODE = 1000;

/** What happens on a connection. */
export interface Listener {
  onMessage(message: Reply | Chunk, buffers: Uint8Array[]): void;
  /** The connection is over. Another may succeed unless the error is final. */
  onEnd(error: GradwireError): void;
}

export interface Connection {
  readonly welcome: Welcome;
  /** Whether large payloads travel as chunks before their frame; otherwise they are buffers of it. */
  readonly takesChunks: boolean;
  /** The server at the other end. */
  readonly url: string;
  /** Whether that is the worker to which a gateway redirected. */
  readonly direct: boolean;
  send(message: FromClient, buffers?: readonly Uint8Array[]): void;
  close(): void;
}

/** Opens a stream of a session with a ticket. */
export type TicketSource = (session: string) => Promise<string>;

/** Asks the server for tickets with the key. */
export function ticketsOf(rest: Rest): TicketSource {
  return async (session) =>
    (await rest.json<{ ticket: string }>("POST", "/v1/tickets", { body: { session }, patience: 0 })).ticket;
}

/** The error of a stream that the server closed, by its close code (docs/protocol.md, "How a stream ends"). */
function closedBy(code: number, reason: string): GradwireError {
  const told = `the server ended the stream with code ${code}${reason ? ` (${reason})` : ""}`;
  if (code === 4404) return new SessionGone(told);
  if (code === 4409) return new Superseded(told);
  if (code === 4401) return new Unauthorized(told);
  if (code >= 4400 && code < 4500) return new MalformedFrame(told);
  return new ConnectionLost(told);
}

/** A stream that could not be opened: its address does not answer (`silent`), or refuses. */
export class Unopened extends ConnectionLost {}

/** The URL of a session's stream. */
function streamUrl(server: string, session: string, ticket: string): string {
  const url = server.replace(/^http/, "ws");
  return `${url}/v1/sessions/${encodeURIComponent(session)}/stream?ticket=${encodeURIComponent(ticket)}`;
}

/**
 * Open a stream and exchange hello and welcome. Resolves with the redirect where the server answers with one.
 *
 * @throws ConnectionLost when the server cannot be reached, or what it refused with.
 */
export async function openStream(
  url: string,
  session: string,
  ticket: string,
  hello: Hello,
  listener: Listener,
  patience: number,
  direct: boolean,
): Promise<Connection | Redirect> {
  let socket: WebSocket;
  try {
    socket = new WebSocket(streamUrl(url, session, ticket));
  } catch (error) {
    // For example ws: from a page at https:.
    throw new Unopened(`the page may not connect to ${url}: ${String(error)}`, { silent: true });
  }
  socket.binaryType = "arraybuffer";
  return await new Promise((resolve, reject) => {
    let opened = false;
    let welcome: Welcome | undefined;
    let refusal: GradwireError | undefined;
    const wait = (seconds: number): ReturnType<typeof setTimeout> =>
      setTimeout(() => {
        const late = `${url} did not answer within ${seconds} s`;
        reject(opened ? new ConnectionLost(late) : new Unopened(late, { silent: true }));
        socket.close();
      }, seconds * 1000);
    let timer = wait(patience);
    const end = (error: GradwireError): void => {
      clearTimeout(timer);
      if (welcome === undefined) reject(refusal ?? (opened ? error : new Unopened(error.message)));
      else listener.onEnd(refusal ?? error);
    };
    socket.onopen = () => {
      opened = true;
      clearTimeout(timer);
      timer = wait(OPENING_S);
      socket.send(encode(hello));
    };
    socket.onclose = (event) => end(closedBy(event.code, event.reason));
    socket.onerror = () => end(new ConnectionLost(`the stream to ${url} broke`));
    socket.onmessage = (event) => {
      try {
        const { message, buffers } = decode<FromServer>(new Uint8Array(event.data as ArrayBuffer));
        if (message.type === "refusal") {
          const { code, detail, extra, retryable } = message.problem;
          refusal = retryable
            ? new ConnectionLost(`the server ended the stream: ${detail}`)
            : errorOf(code, detail, extra);
        } else if (message.type === "redirect" && welcome === undefined) {
          clearTimeout(timer);
          socket.onclose = socket.onerror = socket.onmessage = null;
          socket.close(CLOSING_CODE);
          resolve(message);
        } else if (message.type !== "welcome") {
          if (welcome === undefined) throw new MalformedFrame(`expected a welcome, got a ${message.type}`);
          listener.onMessage(message as Reply | Chunk, buffers);
        } else {
          if (message.version !== hello.version) throw new VersionMismatch(`the server speaks ${message.version}`);
          welcome = message;
          clearTimeout(timer);
          resolve({
            welcome: message,
            takesChunks: true,
            url,
            direct,
            send: (sent, parts) => socket.send(encode(sent, parts)),
            close: () => {
              socket.onclose = socket.onerror = socket.onmessage = null;
              socket.close(CLOSING_CODE);
            },
          });
        }
      } catch (error) {
        socket.onclose = socket.onerror = null;
        socket.close();
        end(error instanceof GradwireError ? error : new MalformedFrame(String(error)));
      }
    };
  });
}

/** Frames as requests, one after the other. The server keeps order and answers repeated ones, as on a stream. */
class RequestConnection implements Connection {
  readonly welcome: Welcome;
  readonly takesChunks = false;
  readonly direct = false;
  readonly url: string;
  readonly #rest: Rest;
  readonly #session: string;
  readonly #listener: Listener;
  readonly #aborted = new AbortController();
  #last: Promise<void> = Promise.resolve();

  constructor(rest: Rest, session: string, welcome: Welcome, listener: Listener) {
    this.#rest = rest;
    this.url = rest.url;
    this.#session = session;
    this.welcome = welcome;
    this.#listener = listener;
  }

  send(message: FromClient, buffers: readonly Uint8Array[] = []): void {
    if (message.type !== "frame") return;
    const bytes = encode({ ...message, epoch: 0 }, buffers);
    this.#last = this.#last.then(() => this.#post(message, bytes));
  }

  async #post(frame: Frame, body: Uint8Array): Promise<void> {
    if (this.#aborted.signal.aborted) return;
    const path = `/v1/sessions/${encodeURIComponent(this.#session)}/frames`;
    try {
      const answer = await this.#rest.bytes("POST", path, { body, signal: this.#aborted.signal, patience: 0 });
      const { message, buffers } = decode<Reply>(answer);
      this.#listener.onMessage(message, buffers);
    } catch (error) {
      if (this.#aborted.signal.aborted) return;
      const known = error instanceof GradwireError ? error : new ConnectionLost(String(error));
      if (isRefusal(known)) {
        const refused = { code: known.code, detail: known.message, extra: known.details, retryable: known.retryable };
        this.#listener.onMessage({ type: "reply", seq: frame.seq, refused }, []);
      } else {
        this.#aborted.abort();
        this.#listener.onEnd(OF_SESSION.has(known.code) ? known : new ConnectionLost(known.message));
      }
    }
  }

  close(): void {
    this.#aborted.abort();
  }
}

/** Errors that concern the session or the key, not the frame. */
const OF_SESSION: ReadonlySet<string> = new Set([
  "session_gone",
  "not_found",
  "unauthorized",
  "forbidden",
  "superseded",
]);

/** Whether the server refused the frame, rather than not answering. */
function isRefusal(error: GradwireError): boolean {
  const status = error.details["status"];
  return typeof status === "number" && status < 500 && !OF_SESSION.has(error.code);
}

/** Register a client, or go on as one, with requests instead of a stream. */
export async function openRequests(
  rest: Rest,
  session: string,
  hello: Omit<Hello, "version">,
  listener: Listener,
): Promise<Connection> {
  let client = hello.client ?? 0;
  let expected = (hello.acked ?? 0) + 1;
  if (!client) {
    const path = `/v1/sessions/${encodeURIComponent(session)}/clients`;
    ({ client, expected } = await rest.json<{ client: number; expected: number }>("POST", path, { patience: 0 }));
  }
  const welcome: Welcome = { type: "welcome", version: PROTOCOL_VERSION, client, expected, session };
  return new RequestConnection(rest, session, welcome, listener);
}
