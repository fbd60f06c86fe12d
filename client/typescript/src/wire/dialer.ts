/**
 * How a link gets a stream: at the server's URL, and from there, if that is a gateway, at the worker of the session.
 * Each attempt starts at the gateway, because the session may have moved. If the worker's address does not answer, the
 * link goes on through the gateway, which relays, and tries the direct way again after some minutes.
 */

import { ConnectionLost, MalformedFrame, NotFound, SessionGone, Unauthorized, VersionMismatch } from "../errors.ts";
import type { Connection, Listener, TicketSource } from "./connection.ts";
import { OPENING_S, Unopened, openStream } from "./connection.ts";
import { MIN_PROTOCOL_VERSION, PROTOCOL_VERSION } from "./messages.ts";
import type { Hello, Redirect } from "./messages.ts";
import type { Rest } from "./rest.ts";

/** Seconds in which a worker must open a stream. */
const PROBE_S = 10;
/** Redirects that one attempt follows. */
const REDIRECTS_AT_MOST = 3;
/** Failures in a row at a worker's address. One may be a ticket that came too late, which a WebSocket hides. */
const FAILURES_AT_MOST = 2;
/** How long the direct way is avoided after its address did not answer. */
const AVOIDED_S = 300;

/** Whether redirects are followed; `"plain"` follows those from https to http as well. */
export type Direct = boolean | "plain";

export class Dialer {
  /** How many redirects were followed. */
  redirects = 0;
  /** How often the direct way was given up for the gateway's relay. */
  fallbacks = 0;
  readonly #rest: Rest;
  readonly #session: string;
  readonly #tickets: TicketSource;
  readonly #direct: Direct;
  #avoidedUntil = 0;
  #failures = 0;
  #version = PROTOCOL_VERSION;

  constructor(rest: Rest, session: string, tickets: TicketSource, direct: Direct) {
    this.#rest = rest;
    this.#session = session;
    this.#tickets = tickets;
    this.#direct = direct;
  }

  /** Open a stream. @throws ConnectionLost when another attempt may succeed, or what the server refused with. */
  async dial(hello: Omit<Hello, "version" | "capabilities">, listener: Listener): Promise<Connection> {
    for (let redirects = 0; ; redirects++) {
      const offers = this.#offers && redirects < REDIRECTS_AT_MOST;
      const ticket = await this.#tickets(this.#session);
      const spoken: Hello = { ...hello, version: this.#version };
      if (offers) spoken.capabilities = ["redirect"];
      let found: Connection | Redirect;
      try {
        found = await openStream(this.#rest.url, this.#session, ticket, spoken, listener, OPENING_S, false);
      } catch (error) {
        if (this.#speaksOlder(error)) continue;
        throw error;
      }
      if (!("type" in found)) return found;
      if (!offers) throw new MalformedFrame("the server redirects a client that does not follow redirects");
      const direct = await this.#follow(found, hello, listener);
      if (direct) return direct;
    }
  }

  get #offers(): boolean {
    return this.#direct !== false && performance.now() >= this.#avoidedUntil;
  }

  /** The stream of the worker; `undefined` to ask the gateway again. */
  async #follow(
    redirect: Redirect,
    hello: Omit<Hello, "version" | "capabilities">,
    listener: Listener,
  ): Promise<Connection | undefined> {
    if (!trusted(this.#rest.url, redirect.url, this.#direct === "plain")) {
      this.#avoid();
      return undefined;
    }
    const spoken: Hello = { ...hello, version: this.#version };
    try {
      const found = await openStream(
        redirect.url.replace(/\/+$/, ""),
        this.#session,
        redirect.ticket,
        spoken,
        listener,
        PROBE_S,
        true,
      );
      if ("type" in found) throw new MalformedFrame("a worker redirects");
      this.#failures = 0;
      this.redirects += 1;
      return found;
    } catch (error) {
      if (error instanceof Unopened) {
        this.#failed(error.details["silent"] === true);
        return undefined;
      }
      if (error instanceof ConnectionLost) this.#failed(); // it is starting, stopping or recovering
      if (error instanceof SessionGone || error instanceof NotFound || error instanceof Unauthorized) return undefined;
      if (this.#speaksOlder(error)) return undefined;
      throw error;
    }
  }

  #failed(silent = false): void {
    this.#failures += 1;
    if (silent || this.#failures >= FAILURES_AT_MOST) this.#avoid();
  }

  #avoid(): void {
    this.#failures = 0;
    this.#avoidedUntil = performance.now() + AVOIDED_S * 1000;
    this.fallbacks += 1;
  }

  /** Speak the server's older version from now on, if this client does. */
  #speaksOlder(error: unknown): boolean {
    const theirs = error instanceof VersionMismatch ? error.details["server"] : undefined;
    if (typeof theirs !== "number" || theirs < MIN_PROTOCOL_VERSION || theirs >= this.#version) return false;
    this.#version = theirs;
    return true;
  }
}

/** Whether a redirect may be followed: it does not give up the gateway's encryption, except on this machine. */
export function trusted(gateway: string, worker: string, plain: boolean): boolean {
  let url: URL;
  try {
    url = new URL(worker);
  } catch {
    return false;
  }
  if (!/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) return false;
  if (url.protocol === "https:" || !gateway.startsWith("https:") || plain) return true;
  return url.hostname === "localhost" || url.hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(url.hostname);
}
