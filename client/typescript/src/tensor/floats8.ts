/** The floats of 8 bits, which JavaScript has no typed array for: they are read as Float32Array. */

interface Format {
  /** Bits of the fraction. */
  readonly fraction: number;
  readonly bias: number;
  /** What numbers beyond the range become: infinity, or the largest number where there is none. */
  readonly beyond: number;
  readonly nan: number;
  /** Whether an exponent of ones is infinity or NaN. */
  readonly infinite: boolean;
}

const FORMATS = {
  float8_e4m3fn: { fraction: 3, bias: 7, beyond: 0x7e, nan: 0x7f, infinite: false },
  float8_e5m2: { fraction: 2, bias: 15, beyond: 0x7c, nan: 0x7e, infinite: true },
} as const satisfies Readonly<Record<string, Format>>;

/** A dtype of 8-bit floats. */
export type Float8Name = keyof typeof FORMATS;

const scratch = new DataView(new ArrayBuffer(4));

/** The bits nearest to a number that was rounded to float32, ties to even, as PyTorch casts. */
export function toFloat8(value: number, dtype: Float8Name): number {
  const { fraction, bias, beyond, nan }: Format = FORMATS[dtype];
  if (Number.isNaN(value)) return nan;
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  const sign = (bits >>> 24) & 0x80;
  const exponent = Math.max(((bits >>> 23) & 0xff) - 127, 1 - bias);
  const scaled = Math.abs(scratch.getFloat32(0)) * 2 ** (fraction - exponent);
  if (scaled === Infinity) return sign | beyond;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const units = floor + (rest > 0.5 || (rest === 0.5 && floor & 1) ? 1 : 0);
  return sign | Math.min(((exponent + bias - 1) << fraction) + units, beyond);
}

export function fromFloat8(bits: number, dtype: Float8Name): number {
  const { fraction, bias, nan, infinite }: Format = FORMATS[dtype];
  const sign = bits & 0x80 ? -1 : 1;
  const exponent = (bits & 0x7f) >>> fraction;
  const rest = bits & ((1 << fraction) - 1);
  if (infinite ? exponent === 31 && rest : (bits & 0x7f) === nan) return NaN;
  if (infinite && exponent === 31) return sign * Infinity;
  return exponent
    ? sign * 2 ** (exponent - bias - fraction) * (rest + (1 << fraction))
    : sign * rest * 2 ** (1 - bias - fraction);
}
