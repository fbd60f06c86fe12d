/** The op table as objects, each made from its row when it is first used. */

import { UnknownOp } from "../errors.ts";
import { ROWS, type Row } from "./table.ts";
import { Float, type Value } from "./values.ts";

/** How an argument is encoded. */
export type Kind =
  "tensor" | "tensors" | "optionalTensors" | "operand" | "scalar" | "position" | "attribute" | "payload";

/** One parameter of an op. */
export interface Param {
  /** The name in the op table. */
  readonly name: string;
  /** The name in TypeScript. */
  readonly key: string;
  readonly kind: Kind;
  /** The types of its arguments, as the table names them; data begins with a capital letter. */
  readonly types: readonly string[];
  readonly nullable: boolean;
  readonly required: boolean;
  /** The value of an argument that is left out. */
  readonly default: Value;
}

/** A row of the op table. */
export interface Op {
  readonly name: string;
  readonly params: readonly Param[];
  /** The positions of parameters by their names in the table. */
  readonly positions: ReadonlyMap<string, number>;
  /** The number of results; `undefined` if it depends on the arguments. */
  readonly results: number | undefined;
  /** The minimum number of arguments of a call. */
  readonly required: number;
  /** How many parameters may be given by position in Python. */
  readonly byPosition: number;
  /** Where clients offer it: `function`, `method`, `nn.functional`, `special`. */
  readonly exposed: readonly string[];
  /** The rule for the results' shapes, and for their dtypes; one a result, or one for all. */
  readonly shapeRules: readonly string[];
  readonly dtypeRules: readonly string[];
  /** Positions of the operands that gradients flow to. */
  readonly differentiable: readonly number[];
  /** Positions of operands that must not require a gradient while history is recorded. */
  readonly underived: readonly number[];
  /** Results that no gradient flows back from. */
  readonly constant: readonly number[];
  /** It writes into its first operand. */
  readonly inplace: boolean;
  /** For an in-place form, the name of the op it is derived from. */
  readonly base: string | undefined;
  /** The position of the parameter that also accepts its ints unpacked. */
  readonly variadic: number | undefined;
  readonly elementwise: boolean;
  /** Its results are views of its first tensor, or may be. */
  readonly view: boolean;
  /** A view without base and version of its own. */
  readonly untracked: boolean;
  readonly random: boolean;
  /** The shape of its results depends on data. */
  readonly dynamic: boolean;
  /** It acts on the session instead of computing a value. */
  readonly control: boolean;
  /** It uses gradients at once and goes into the frame of the backward before it. */
  readonly afterBackward: boolean;
  readonly duplicates: boolean;
  readonly signature: string;
}

const ROW_OF: ReadonlyMap<string, Row> = new Map(ROWS.map((row) => [row[0], row]));
const MADE = new Map<string, Op>();

/** The names of the ops that are offered somewhere, without reading their rows: `function`, `method`, ... */
export function* exposedNames(exposure: string): Generator<string> {
  for (const [name, , , exposed] of ROWS) if (exposed.split(" ").includes(exposure)) yield name;
}

/** The names of all ops. */
export function opNames(): IterableIterator<string> {
  return ROW_OF.keys();
}

/** The op of this name. Throws `UnknownOp` with the closest names. */
export function lookup(name: string): Op {
  const known = MADE.get(name);
  if (known !== undefined) return known;
  const row = ROW_OF.get(name) ?? ROW_OF.get(snake(name));
  if (row === undefined) {
    const close = closest(name);
    const hint = close.length > 0 ? `; did you mean ${close.join(" or ")}?` : "";
    throw new UnknownOp(`unknown op '${name}'${hint}`, { op: name });
  }
  const made = opOf(row);
  MADE.set(name, made);
  MADE.set(made.name, made);
  return made;
}

/** A name of TypeScript as the op table spells it: `logSoftmax` is `log_softmax`. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A name of the op table as TypeScript spells it: `clamp_min_` is `clampMin_`. */
export function camel(name: string): string {
  const end = name.endsWith("_") ? "_" : "";
  const [first, ...rest] = name.slice(0, name.length - end.length).split("_") as [string, ...string[]];
  return first + rest.map((part) => part.charAt(0).toUpperCase() + part.slice(1)).join("") + end;
}

function opOf(row: Row): Op {
  const [name, parameters, results, exposed, shapes, dtypes, facts] = row;
  const params: Param[] = [];
  let byPosition: number | undefined;
  for (const text of splitParameters(parameters)) {
    if (text === "*") byPosition = params.length;
    else params.push(paramOf(text));
  }
  const words = new Map(
    facts.split(" ").map((fact) => {
      const at = fact.indexOf(":");
      return at < 0 ? [fact, ""] : [fact.slice(0, at), fact.slice(at + 1)];
    }),
  );
  const places = (word: string): readonly number[] => {
    const named = words.get(word);
    if (named === undefined) return [];
    if (named === "") return params.flatMap((p, i) => (TENSOR_KINDS.has(p.kind) ? [i] : []));
    return named.split(",").map((one) => params.findIndex((p) => p.name === one));
  };
  const constant = words.get("constant");
  const variadic = words.get("variadic");
  return {
    name,
    params,
    positions: new Map(params.map((param, i) => [param.name, i])),
    results: results ?? undefined,
    required: params.reduce((least, p, i) => (p.required ? i + 1 : least), 0),
    byPosition: byPosition ?? params.length,
    exposed: exposed === "" ? [] : exposed.split(" "),
    shapeRules: shapes.split(","),
    dtypeRules: dtypes.split(","),
    differentiable: places("differentiable"),
    underived: places("underived"),
    constant: constant === undefined ? [] : constant.split(",").map(Number),
    inplace: words.has("inplace"),
    base: words.get("inplace") || undefined,
    variadic: variadic === undefined ? undefined : params.findIndex((p) => p.name === variadic),
    elementwise: words.has("elementwise"),
    view: words.has("view"),
    untracked: words.has("untracked"),
    random: words.has("random"),
    dynamic: words.has("dynamic"),
    control: words.has("control"),
    afterBackward: words.has("after_backward"),
    duplicates: words.has("duplicates"),
    signature: `${name}(${parameters})`,
  };
}

const TENSOR_KINDS: ReadonlySet<Kind> = new Set<Kind>(["tensor", "tensors", "optionalTensors", "operand"]);

/** Splits at the commas between parameters, not at those inside of defaults. */
function splitParameters(text: string): string[] {
  return text === "" ? [] : text.split(/, (?=\*(?:,|$)|\w+: )/);
}

function paramOf(text: string): Param {
  const colon = text.indexOf(": ");
  const equals = text.indexOf(" = ");
  const name = text.slice(0, colon);
  const types = text.slice(colon + 2, equals < 0 ? undefined : equals).split(" | ");
  const required = equals < 0;
  return {
    name,
    key: camel(name),
    kind: kindOfTypes(types),
    types: types.filter((type) => type !== "null"),
    nullable: types.includes("null"),
    required,
    default: required ? null : defaultOf(text.slice(equals + 3), types),
  };
}

function kindOfTypes(types: readonly string[]): Kind {
  if (types.includes("Tensor")) return types.some((type) => DATA.has(type)) ? "operand" : "tensor";
  if (types.includes("Tensor[]")) return "tensors";
  if (types.includes("Tensor?[]")) return "optionalTensors";
  if (types.includes("Payload")) return "payload";
  if (types.includes("Position")) return "position";
  return types.some((type) => DATA.has(type)) ? "scalar" : "attribute";
}

const DATA: ReadonlySet<string> = new Set(["Scalar", "Real", "Float"]);

/** A default. A float without a fraction that is data stays a float. */
function defaultOf(text: string, types: readonly string[]): Value {
  const value = JSON.parse(text) as Value;
  if (typeof value !== "number" || !Number.isInteger(value)) return value;
  const whole = /[.e]/.test(text);
  if (!whole && types.includes("Float")) return BigInt(value); // a float whose default is an int
  return whole && types.some((type) => DATA.has(type) || type === "number") ? new Float(value) : value;
}

/** The three names that differ least from this one. */
export function closest(name: string, names: Iterable<string> = ROW_OF.keys()): string[] {
  const wanted = snake(name).toLowerCase();
  const limit = Math.max(wanted.length > 3 ? 2 : 1, Math.floor(wanted.length / 3));
  return [...names]
    .map((known): [number, string] => [distance(wanted, snake(known).toLowerCase(), limit), known])
    .filter(([far]) => far <= limit)
    .sort((a, b) => a[0] - b[0])
    .slice(0, 3)
    .map(([, known]) => known);
}

/** How many letters have to be changed, added or removed; above the limit only that it is above. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same));
    }
    row = next;
  }
  return row[b.length]!;
}
