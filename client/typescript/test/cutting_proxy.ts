/** A TCP proxy that cuts connections, so that tests see what a program sees on a bad network. */

import { createConnection, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

export class CuttingProxy {
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  /** Called with each piece from the server before it is passed on; `false` drops it and cuts the connection. */
  passes: (data: Buffer) => boolean = () => true;
  cuts = 0;

  private constructor(target: URL) {
    this.#server = createServer((near) => {
      const far = createConnection(Number(target.port), target.hostname);
      const pair: [Socket, Socket] = [near, far];
      this.#pairs.add(pair);
      const end = (): void => {
        this.#pairs.delete(pair);
        near.destroy();
        far.destroy();
      };
      near.on("data", (data) => far.write(data));
      far.on("data", (data) => {
        if (this.passes(data)) near.write(data);
        else {
          this.cuts += 1;
          end();
        }
      });
      for (const socket of pair) socket.on("close", end).on("error", end);
    });
  }

  static async before(url: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(new URL(url));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cut every connection now. */
  cut(): void {
    for (const [near, far] of this.#pairs) {
      this.cuts += 1;
      near.destroy();
      far.destroy();
    }
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
