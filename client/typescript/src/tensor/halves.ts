/** float16 and bfloat16, for which JavaScript has no typed array everywhere: they are read as Float32Array. */

const scratch = new DataView(new ArrayBuffer(4));

/** The bits of float16 nearest to a number, ties to even. */
export function toFloat16(value: number): number {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) {
    const rebased = magnitude - 0x38000000;
    return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13);
  }
  // Subnormal: a multiple of 2**-24, which float64 rounds exactly.
  const scaled = Math.abs(Math.fround(value)) * 2 ** 24;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  return sign | (floor + (rest > 0.5 || (rest === 0.5 && floor & 1) ? 1 : 0));
}

export function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 0x3ff;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 25) * (fraction + 1024) : sign * fraction * 2 ** -24;
}

/** The bits of bfloat16 nearest to a number, ties to even. */
export function toBfloat16(value: number): number {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

export function fromBfloat16(bits: number): number {
  scratch.setUint32(0, bits << 16);
  return scratch.getFloat32(0);
}
