/** Where in the user's program an op was recorded, so that an error of the server names the line. */

/** A line of the program. Formatting a stack is slow, so that waits until the program does: {@link settle}. */
export class CallSite {
  #error: Error | undefined;
  #line = "";

  constructor(error: Error) {
    this.#error = error;
  }

  /** Format the line. An unformatted stack keeps the tensors alive whose methods were called. */
  settle(): void {
    if (this.#error === undefined) return;
    this.#line = lineOf(this.#error.stack ?? "");
    this.#error = undefined;
  }

  /** `file:line:column` of the first frame outside of this package; empty if there is none. */
  toString(): string {
    this.settle();
    return this.#line;
  }
}

function lineOf(stack: string): string {
  for (const line of stack.split("\n").slice(1)) {
    const at = /\(?((?:file:|https?:|node:|\/|[A-Za-z]:\\)[^()]*:\d+:\d+)\)?\s*$/.exec(line)?.[1];
    if (at !== undefined && !isOwn(at)) return at;
  }
  return "";
}

/** Where the package is, and its folders: source maps may name the sources of what was built. */
const PACKAGE = import.meta.url.replace(/(?:dist|src)\/session\/call_sites\.(?:ts|js)$/, "");
const OWN = [`${PACKAGE}dist/`, `${PACKAGE}src/`].flatMap((folder) => [folder, folder.replace(/^file:\/\//, "")]);

/** A bundle does not tell the package's lines from the program's, so none is named. */
const BUNDLED = PACKAGE === import.meta.url;

function isOwn(at: string): boolean {
  return BUNDLED || at.startsWith("node:") || OWN.some((folder) => at.startsWith(folder));
}

/** Frames of a stack that are kept: modules within modules put some of this package's before the program's. */
const FRAMES = 24;
const ErrorWithLimit = Error as { stackTraceLimit?: number };
let noted = true;

/** Switch call sites on or off. Without them recording is faster, and an error of the server names no line. */
export function noteCallSites(on: boolean): void {
  noted = on;
}

/** The program's current line. */
export function callSite(): CallSite | undefined {
  if (!noted) return undefined;
  const before = ErrorWithLimit.stackTraceLimit;
  ErrorWithLimit.stackTraceLimit = FRAMES;
  const error = new Error();
  if (before === undefined) delete ErrorWithLimit.stackTraceLimit;
  else ErrorWithLimit.stackTraceLimit = before;
  return new CallSite(error);
}
