/**
 * PyTorch's type promotion: dimensioned tensors outrank 0-dim tensors, which outrank numbers. A lower rank changes the
 * result only if its category (bool < integer < float < complex) is higher.
 */

import { DTypeError } from "../errors.ts";
import { DTYPES, type DTypeName } from "../ops/dtypes.ts";
import type { ScalarKind } from "../ops/values.ts";

const BOOLEAN = 0;
const INTEGRAL = 1;
const FLOATING = 2;
const COMPLEX = 3;

let defaultFloat: DTypeName = "float32";

/** The dtype of floats that nothing else decides. */
export function defaultFloatDType(): DTypeName {
  return defaultFloat;
}

/** Sets what the rules take as the default float dtype; the session's must be the same. */
export function setDefaultFloatDType(dtype: DTypeName): void {
  defaultFloat = dtype;
}

/** 0 for bool, 1 for integers, 2 for floating point, 3 for complex. */
export function categoryOf(dtype: DTypeName): number {
  return DTYPES[dtype].category;
}

/**
 * The smallest dtype that holds both (`torch.promote_types`).
 *
 * @throws DTypeError where there is none: a dtype for storage has a common one with few others.
 */
export function join(a: DTypeName, b: DTypeName): DTypeName {
  if (a === b) return a;
  if (DTYPES[a].forStorage || DTYPES[b].forStorage) return joinStored(a, b);
  const [low, high] = ordered(a, b);
  const least = DTYPES[low];
  const most = DTYPES[high];
  if (least.category === BOOLEAN) return high;
  // uint8 with int8 needs a wider type than either.
  if (most.category === INTEGRAL) return (a === "uint8" || b === "uint8") && most.itemsize === 1 ? "int16" : high;
  if (least.category === INTEGRAL) return high;
  if (most.category === FLOATING) return least.itemsize === 2 && most.itemsize === 2 ? "float32" : high;
  return low === "float64" ? "complex128" : high;
}

function joinStored(a: DTypeName, b: DTypeName): DTypeName {
  const [low, high] = ordered(a, b);
  if (DTYPES[low].category === INTEGRAL && DTYPES[high].category === FLOATING && !DTYPES[high].forStorage) return high;
  throw new DTypeError(`${a} and ${b} are not promoted to a common dtype: convert one of them`);
}

function ordered(a: DTypeName, b: DTypeName): [DTypeName, DTypeName] {
  const first = DTYPES[a];
  const second = DTYPES[b];
  const order = first.category - second.category || first.itemsize - second.itemsize || first.index - second.index;
  return order <= 0 ? [a, b] : [b, a];
}

/** The dtype of a number. */
export function dtypeOfKind(kind: ScalarKind): DTypeName {
  if (kind === "bool") return "bool";
  if (kind === "int") return "int64";
  return kind === "float" ? defaultFloat : toComplex(defaultFloat);
}

/** The dtype of the real and imaginary parts. */
export function toReal(dtype: DTypeName): DTypeName {
  if (dtype === "complex64") return "float32";
  return dtype === "complex128" ? "float64" : dtype;
}

/**
 * The complex dtype of a floating point dtype's precision.
 *
 * @throws DTypeError for a dtype for storage, which has none.
 */
export function toComplex(dtype: DTypeName): DTypeName {
  if (DTYPES[dtype].forStorage) {
    throw new DTypeError(`there is no complex dtype of the precision of ${dtype}: convert it first`);
  }
  if (dtype === "float64") return "complex128";
  return categoryOf(dtype) === FLOATING ? "complex64" : dtype;
}

/** The default float dtype for integers. */
export function toFloat(dtype: DTypeName): DTypeName {
  return categoryOf(dtype) <= INTEGRAL ? defaultFloat : dtype;
}

/** int64 for integers. */
export function toSum(dtype: DTypeName): DTypeName {
  return categoryOf(dtype) <= INTEGRAL ? "int64" : dtype;
}

/** An operand of promotion: a tensor's dtype and whether it has dimensions, or the kind of a number. */
export type Operand = { readonly dtype: DTypeName; readonly dimensioned: boolean } | ScalarKind;

/** The common dtype of tensors and numbers (`torch.result_type`). */
export function resultType(operands: Iterable<Operand>): DTypeName {
  let dimensioned: DTypeName | undefined;
  let zeroDim: DTypeName | undefined;
  let number: DTypeName | undefined;
  for (const operand of operands) {
    if (typeof operand === "string") number = joined(number, dtypeOfKind(operand));
    else if (operand.dimensioned) dimensioned = joined(dimensioned, operand.dtype);
    else zeroDim = joined(zeroDim, operand.dtype);
  }
  return combined(combined(dimensioned, zeroDim), number) ?? defaultFloat;
}

function joined(a: DTypeName | undefined, b: DTypeName): DTypeName {
  return a === undefined ? b : join(a, b);
}

/** Uses `lower` only if its category is above that of `upper`. */
function combined(upper: DTypeName | undefined, lower: DTypeName | undefined): DTypeName | undefined {
  if (upper === undefined) return lower;
  if (lower === undefined || categoryOf(lower) <= categoryOf(upper)) return upper;
  // The lower rank gives the category, the upper rank the precision.
  if (categoryOf(lower) === COMPLEX && categoryOf(upper) === FLOATING) return toComplex(upper);
  if ((DTYPES[lower].forStorage || DTYPES[upper].forStorage) && categoryOf(lower) !== COMPLEX) {
    return join(upper, lower);
  }
  return lower;
}
