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
  | "complex128";

/** Facts of a dtype. Categories: 0 bool, 1 integers, 2 floating point, 3 complex. */
export interface DTypeFacts {
  readonly index: number;
  readonly category: 0 | 1 | 2 | 3;
  readonly itemsize: number;
  readonly safetensors: string | null;
}

export const DTYPES: Readonly<Record<DTypeName, DTypeFacts>> = {
  bool: { index: 0, category: 0, itemsize: 1, safetensors: "BOOL" },
  uint8: { index: 1, category: 1, itemsize: 1, safetensors: "U8" },
  int8: { index: 2, category: 1, itemsize: 1, safetensors: "I8" },
  int16: { index: 3, category: 1, itemsize: 2, safetensors: "I16" },
  int32: { index: 4, category: 1, itemsize: 4, safetensors: "I32" },
  int64: { index: 5, category: 1, itemsize: 8, safetensors: "I64" },
  float16: { index: 6, category: 2, itemsize: 2, safetensors: "F16" },
  bfloat16: { index: 7, category: 2, itemsize: 2, safetensors: "BF16" },
  float32: { index: 8, category: 2, itemsize: 4, safetensors: "F32" },
  float64: { index: 9, category: 2, itemsize: 8, safetensors: "F64" },
  complex64: { index: 10, category: 3, itemsize: 8, safetensors: "C64" },
  complex128: { index: 11, category: 3, itemsize: 16, safetensors: null },
};
