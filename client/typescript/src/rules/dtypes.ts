/** The dtypes of results: the general rules that the op table names, and those of single ops. */

import { DTypeError } from "../errors.ts";
import { DTYPES, type DTypeName } from "../ops/dtypes.ts";
import type { Op } from "../ops/op.ts";
import { isTensor, kindOf, type ScalarKind, type Value } from "../ops/values.ts";
import { named, operandsOf, tensorAt, tensorsOf } from "./operands.ts";
import {
  categoryOf,
  defaultFloatDType,
  dtypeOfKind,
  join,
  resultType,
  toComplex,
  toFloat,
  toReal,
  toSum,
  type Operand,
} from "./promotion.ts";

type DType = DTypeName | undefined;

const CONVERTED: Readonly<Record<string, (dtype: DTypeName) => DTypeName>> = {
  float: toFloat,
  real: toReal,
  complex: toComplex,
  summed: toSum,
};

/** The rule for the dtype of a result. */
type DTypeRule = (op: Op, values: readonly Value[], at: number) => DType;

const READ = new Map<string, DTypeRule>();

/** The dtype of result number `at`; `undefined` if it is not known without asking the server. */
export function dtypeOf(op: Op, values: readonly Value[], at: number): DType {
  const own = OWN.get(op.base ?? op.name);
  if (own !== undefined) return own(op, values, at);
  const rules = op.dtypeRules;
  const name = rules.length === 1 ? rules[0]! : (rules[at] ?? "?");
  let rule = READ.get(name);
  if (rule === undefined) READ.set(name, (rule = ruleOf(name)));
  return rule(op, values, at);
}

/** The general rule of a name of the op table. */
function ruleOf(name: string): DTypeRule {
  if (name === "?") return () => undefined;
  if (name.startsWith("dtype|")) {
    const otherwise = ruleOf(name.slice(6));
    return (op, values, at) => given(op, values) ?? otherwise(op, values, at);
  }
  if (name === "default") return defaultFloatDType;
  if (name in DTYPES) return () => name as DTypeName;
  const [source, ...conversions] = name.split(".") as [string, ...string[]];
  const read = source === "promote" ? ofAll : ofOne(Number(source.slice(1)));
  const steps = conversions.map((conversion) => CONVERTED[conversion]!);
  if (steps.length === 0) return read;
  return (op, values, at) => {
    let found = read(op, values, at);
    for (const step of steps) if (found !== undefined) found = step(found);
    return found;
  };
}

const ofAll: DTypeRule = (op, values) => promoted(operandsOf(op, values));

function ofOne(position: number): DTypeRule {
  return (_, values) => {
    const value = values[position]!;
    if (isTensor(value)) return value.dtype;
    const kind = kindOf(value);
    return kind === undefined ? undefined : dtypeOfKind(kind);
  };
}

/** The common dtype of operands; `undefined` if the dtype or the rank that decides is not known. */
export function promoted(operands: readonly Value[]): DType {
  const first = operands[0];
  if (isTensor(first) && operands.every((operand) => isTensor(operand) && operand.dtype === first.dtype)) {
    return first.dtype;
  }
  const found: Operand[] = [];
  let ranks = true;
  for (const operand of operands) {
    if (!isTensor(operand)) {
      const kind = kindOf(operand);
      if (kind !== undefined) found.push(kind);
      continue;
    }
    if (operand.dtype === undefined) return undefined;
    ranks &&= operand.shape !== undefined;
    found.push({ dtype: operand.dtype, dimensioned: operand.shape === undefined || operand.shape.length > 0 });
  }
  const result = resultType(found);
  if (ranks) return result;
  // Without the shape of a tensor it may have dimensions or none. Both must come to the same.
  const other = found.map((one, i) => {
    const operand = operands[i];
    const open = isTensor(operand) && operand.shape === undefined;
    return open && typeof one !== "string" ? { dtype: one.dtype, dimensioned: false } : one;
  });
  return resultType(other) === result ? result : undefined;
}

/** The kind of a number that may be a default. */
function kind(value: Value | undefined): ScalarKind {
  return kindOf(value) ?? "float";
}

const given = (op: Op, values: readonly Value[]): DType => {
  const dtype = named(op, values, "dtype");
  return typeof dtype === "string" ? (dtype as DTypeName) : undefined;
};

const between: DTypeRule = (op, values) => {
  const complex = kind(values[0]) === "complex" || kind(values[1]) === "complex";
  return given(op, values) ?? (complex ? dtypeOfKind("complex") : defaultFloatDType());
};

const truth: DTypeRule = (_, values) => {
  const dtype = tensorAt(values, 0)?.dtype;
  return dtype === undefined ? undefined : dtype === "uint8" ? "uint8" : "bool";
};

const search: DTypeRule = (op, values) => (named(op, values, "out_int32") === true ? "int32" : "int64");

const distinct: DTypeRule = (_, values, at) => (at === 0 ? tensorAt(values, 0)?.dtype : "int64");

const firstTensor: DTypeRule = (_, values) => tensorsOf(values)[0]?.dtype;

/** Without regard to dimensions. */
const joinedFirstTwo: DTypeRule = (_, values) => {
  const [a, b] = [tensorAt(values, 0)?.dtype, tensorAt(values, 1)?.dtype];
  return a === undefined || b === undefined ? undefined : join(a, b);
};

const floatOfFirstTwo: DTypeRule = (op, values, at) => {
  const joined = joinedFirstTwo(op, values, at);
  return joined === undefined ? undefined : toFloat(joined);
};

/** Rules of single ops. */
const OWN: ReadonlyMap<string, DTypeRule> = new Map<string, DTypeRule>(
  Object.entries({
    div: (op, values) => {
      const common = promoted(operandsOf(op, values));
      return common === undefined || named(op, values, "rounding_mode") !== null ? common : toFloat(common);
    },
    where: (_, values) => promoted(values.slice(1)),
    square: (_, values) => {
      const dtype = tensorAt(values, 0)?.dtype;
      return dtype === "bool" ? "int64" : dtype;
    },
    all: truth,
    any: truth,
    full: (op, values) => given(op, values) ?? dtypeOfKind(kind(values[1])),
    linspace: between,
    logspace: between,
    arange: (op, values) => {
      const whole = values.slice(0, 3).every((value) => value === null || ["int", "bool"].includes(kind(value)));
      return given(op, values) ?? (whole ? "int64" : defaultFloatDType());
    },
    searchsorted: search,
    bucketize: search,
    unique: distinct,
    unique_consecutive: distinct,
    cat: (_, values) => promoted(tensorsOf(values)),
    stack: (_, values) => promoted(tensorsOf(values)),
    pad_sequence: firstTensor,
    einsum: (_, values) => {
      // Integers are summed in int64 where something is summed, and other dtypes promote where nothing is.
      const [first, ...others] = tensorsOf(values).map((tensor) => tensor.dtype);
      const same = others.every((dtype) => dtype === first);
      return same && first !== undefined && categoryOf(first) > 1 ? first : undefined;
    },
    bincount: (_, values) => {
      const weights = values[1] === null ? null : tensorAt(values, 1)?.dtype;
      return weights === null
        ? "int64"
        : weights === undefined
          ? undefined
          : weights === "float32"
            ? weights
            : "float64";
    },
    normal: (op, values) => {
      const drawn = promoted(values.slice(0, 2));
      return given(op, values) ?? (tensorsOf(values).length === 0 ? defaultFloatDType() : drawn && toFloat(drawn));
    },
    multilabel_soft_margin_loss: (op, values) => promoted(operandsOf(op, values)),
    kron: (op, values) => promoted(operandsOf(op, values)),
    cosine_similarity: joinedFirstTwo,
    cosine_embedding_loss: floatOfFirstTwo,
    conv_transpose2d: firstTensor,
    bilinear: firstTensor,
    rnn_layer: firstTensor,
    gru_layer: firstTensor,
    lstm_layer: firstTensor,
    grid_sampler: firstTensor,
    affine_grid_generator: firstTensor,
    ctc_loss: firstTensor,
    linalg_lu_solve: firstTensor,
    fractional_max_pool: distinct,
    embedding_bag: distinct,
    sum_to_size: (_, values) => {
      const dtype = tensorAt(values, 0)?.dtype;
      return dtype === undefined || categoryOf(dtype) > 1 ? dtype : undefined;
    },
  } satisfies Record<string, DTypeRule>),
);

/** Refuses the dtype of a result that an in-place op cannot write. */
export function checkWritten(op: Op, target: DTypeName, result: DTypeName): void {
  if (categoryOf(result) > categoryOf(target)) {
    throw new DTypeError(`${op.name}: a ${result} result cannot be written to a ${target} tensor`, {
      op: op.name,
    });
  }
}
