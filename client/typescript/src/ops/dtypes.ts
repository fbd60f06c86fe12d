// Derived from protocol/gradwire_protocol/dtypes.py: change that, and run `make derive`.

/** A dtype by PyTorch's name. */
export type DTypeName =
  | "bool"
  | "uint8"
  | "int8"
  | "int16"
  | "int32"
  | "int64"
  | "float16"
  | "bfloat16"
  | "float32"
  | "float64"
  | "complex64"
  | "complex128"
  | "uint16"
  | "uint32"
  | "uint64"
  | "float8_e4m3fn"
  | "float8_e5m2";

/** Facts of a dtype. Categories: 0 bool, 1 integers, 2 floating point, 3 complex. */
export interface DTypeFacts {
  readonly index: number;
  readonly category: 0 | 1 | 2 | 3;
  readonly itemsize: number;
  readonly safetensors: string | null;
  /** Whether it is for storage, and few operations take it. */
  readonly forStorage: boolean;
}

export const DTYPES: Readonly<Record<DTypeName, DTypeFacts>> = {
  bool: { index: 0, category: 0, itemsize: 1, safetensors: "BOOL", forStorage: false },
  uint8: { index: 1, category: 1, itemsize: 1, safetensors: "U8", forStorage: false },
  int8: { index: 2, category: 1, itemsize: 1, safetensors: "I8", forStorage: false },
  int16: { index: 3, category: 1, itemsize: 2, safetensors: "I16", forStorage: false },
  int32: { index: 4, category: 1, itemsize: 4, safetensors: "I32", forStorage: false },
  int64: { index: 5, category: 1, itemsize: 8, safetensors: "I64", forStorage: false },
  float16: { index: 6, category: 2, itemsize: 2, safetensors: "F16", forStorage: false },
  bfloat16: { index: 7, category: 2, itemsize: 2, safetensors: "BF16", forStorage: false },
  float32: { index: 8, category: 2, itemsize: 4, safetensors: "F32", forStorage: false },
  float64: { index: 9, category: 2, itemsize: 8, safetensors: "F64", forStorage: false },
  complex64: { index: 10, category: 3, itemsize: 8, safetensors: "C64", forStorage: false },
  complex128: { index: 11, category: 3, itemsize: 16, safetensors: null, forStorage: false },
  uint16: { index: 12, category: 1, itemsize: 2, safetensors: "U16", forStorage: true },
  uint32: { index: 13, category: 1, itemsize: 4, safetensors: "U32", forStorage: true },
  uint64: { index: 14, category: 1, itemsize: 8, safetensors: "U64", forStorage: true },
  float8_e4m3fn: { index: 15, category: 2, itemsize: 1, safetensors: "F8_E4M3", forStorage: true },
  float8_e5m2: { index: 16, category: 2, itemsize: 1, safetensors: "F8_E5M2", forStorage: true },
};
