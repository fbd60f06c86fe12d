/** Requests to the server's REST interface. Problem documents become typed errors. */

import { GradwireError, TooManyRequests, Unavailable, errorOf } from "../errors.ts";
import { RetryPolicy } from "./retry.ts";

const TRYING_S = 20;
const MSGPACK = "application/msgpack";

export interface RequestOptions {
  /** Sent as JSON, or as MessagePack if it is bytes. */
  body?: unknown;
  headers?: { readonly [name: string]: string };
  signal?: AbortSignal | undefined;
  /** Seconds to retry while the server cannot be reached; 0 for one attempt. */
  patience?: number;
}

/** A client of one server. The key travels in a header, never in a URL. */
export class Rest {
  readonly url: string;
  readonly #key: string | undefined;

  /** @throws TypeError for a URL that is not one of http or https. */
  constructor(url: string, key: string | undefined) {
    if (!/^https?:\/\//.test(url))
      throw new TypeError(`${url} is not a server's URL: it begins with http:// or https://`);
    this.url = url.replace(/\/+$/, "");
    this.#key = key;
  }

  /** Whether requests carry a key. */
  get authorized(): boolean {
    return this.#key !== undefined;
  }

  /** Request a path and decode the JSON answer; `undefined` for one without a body. */
  async json<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const response = await this.#request(method, path, options);
    const text = await response.text();
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Request a path and return the bytes of the answer. */
  async bytes(method: string, path: string, options: RequestOptions = {}): Promise<Uint8Array> {
    return new Uint8Array(await (await this.#request(method, path, options)).arrayBuffer());
  }

  async #request(method: string, path: string, options: RequestOptions): Promise<Response> {
    const retry = new RetryPolicy(options.patience ?? TRYING_S);
    for (;;) {
      try {
        return await retry.trying(() => this.#once(method, path, options));
      } catch (error) {
        const again = error instanceof Unavailable || (error instanceof TooManyRequests && retryAfter(error) > 0);
        if (!again || !(await retry.pause(retryAfter(error)))) throw error;
      }
    }
  }

  async #once(method: string, path: string, options: RequestOptions): Promise<Response> {
    const headers: { [name: string]: string } = { ...options.headers };
    if (this.#key !== undefined) headers["Authorization"] = `Bearer ${this.#key}`;
    const init: RequestInit = { method, headers };
    if (options.signal) init.signal = options.signal;
    if (options.body instanceof Uint8Array) {
      headers["Content-Type"] ??= MSGPACK;
      init.body = options.body as Uint8Array<ArrayBuffer>;
    } else if (options.body !== undefined) {
      headers["Content-Type"] ??= "application/json";
      init.body = JSON.stringify(options.body);
    }
    let response: Response;
    try {
      response = await fetch(this.url + path, init);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      const cause = error instanceof Error && error.cause ? error.cause : error;
      throw new Unavailable(`${this.url} cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`);
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }
}

/** Seconds after which the server wants to be asked again; 0 if it does not say. */
export function retryAfter(error: unknown): number {
  const asked = error instanceof GradwireError ? error.details["retry_after_s"] : undefined;
  return typeof asked === "number" ? asked : 0;
}

/** The typed error of an unsuccessful response. */
async function problemOf(response: Response): Promise<GradwireError> {
  const text = await response.text();
  let problem: { code?: unknown; detail?: unknown; extra?: { [name: string]: unknown } } = {};
  try {
    problem = JSON.parse(text) as typeof problem;
  } catch {
    // Not a gradwire server's answer; the status says what is known.
  }
  const details = { status: response.status, ...problem.extra };
  if (typeof problem.code !== "string") {
    return new Unavailable(`the server answered with HTTP ${response.status} and no explanation`, details);
  }
  return errorOf(problem.code, String(problem.detail ?? ""), details);
}
