/** The dtypes under PyTorch's names, and the typed arrays that hold their values. */

/** What a typed array may be made of here. */
export type NumberArray =
  | Uint8Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Float32Array | Float64Array;

/** `category`: 0 for bool, 1 for integers, 2 for floating point, 3 for complex. */
interface DTypeInfo {
  readonly bytes: number;
  readonly category: 0 | 1 | 2 | 3;
}

export const DTYPES = {
  bool: { bytes: 1, category: 0 },
  uint8: { bytes: 1, category: 1 },
  int8: { bytes: 1, category: 1 },
  int16: { bytes: 2, category: 1 },
  int32: { bytes: 4, category: 1 },
  int64: { bytes: 8, category: 1 },
  float16: { bytes: 2, category: 2 },
  bfloat16: { bytes: 2, category: 2 },
  float32: { bytes: 4, category: 2 },
  float64: { bytes: 8, category: 2 },
  complex64: { bytes: 8, category: 3 },
  complex128: { bytes: 16, category: 3 },
} as const satisfies { readonly [name: string]: DTypeInfo };

export type DTypeName = keyof typeof DTYPES;

export function isDType(name: string): name is DTypeName {
  return Object.hasOwn(DTYPES, name);
}

/** Whether tensors of this dtype can require a gradient: floating point and complex ones. */
export function carriesGradient(dtype: DTypeName | undefined): boolean {
  return dtype === undefined || DTYPES[dtype].category >= 2;
}
