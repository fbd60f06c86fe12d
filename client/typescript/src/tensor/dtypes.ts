/** What tensors need to know of dtypes. */

import { DTYPES } from "../ops/dtypes.ts";
import type { DTypeName } from "../ops/dtypes.ts";

export type { DTypeName } from "../ops/dtypes.ts";

export function isDType(name: string): name is DTypeName {
  return Object.hasOwn(DTYPES, name);
}

/** Bytes of an element. */
export function itemSize(dtype: DTypeName): number {
  return DTYPES[dtype].itemsize;
}

export function isComplexDType(dtype: DTypeName): boolean {
  return DTYPES[dtype].category === 3;
}

/** Whether tensors of this dtype can require a gradient: floating point and complex ones. */
export function carriesGradient(dtype: DTypeName | undefined): boolean {
  return dtype === undefined || DTYPES[dtype].category >= 2;
}
