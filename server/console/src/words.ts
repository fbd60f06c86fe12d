/** Numbers as people read them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count: number): string {
  let size = count;
  let unit = 0;
  while (size >= 1023.5 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(size < 9.95 ? 1 : 0)} ${UNITS[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds < 0.9995e-3) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 0.9995) return `${(seconds * 1e3).toFixed(seconds < 0.01 ? 2 : 0)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

/** An age: seconds do not tick below a minute of interest. */
export const age = (seconds: number): string => (seconds < 1 ? "now" : duration(Math.floor(seconds)));

export function rate(perSecond: number): string {
  if (perSecond === 0) return "0";
  if (perSecond < 9.95) return perSecond.toFixed(1);
  if (perSecond < 9999.5) return Math.round(perSecond).toLocaleString("en");
  return perSecond < 999_950 ? `${(perSecond / 1e3).toFixed(1)} k` : `${(perSecond / 1e6).toFixed(1)} M`;
}

export const count = (value: number): string => value.toLocaleString("en");

export const percent = (part: number): string => `${Math.round(100 * part)} %`;

export const clock = (at: string): string => (at ? new Date(at).toLocaleTimeString("en-GB") : "");

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

const ITEM_BYTES: { readonly [dtype: string]: number } = {
  bool: 1, uint8: 1, int8: 1, int16: 2, int32: 4, int64: 8, uint16: 2, uint32: 4, uint64: 8,
  float16: 2, bfloat16: 2, float32: 4, float64: 8, complex32: 4, complex64: 8, complex128: 16,
}; // prettier-ignore

/** The size of a tensor's elements; a view may share its memory. */
export const sizeOf = (shape: readonly number[], dtype: string): number =>
  shape.reduce((a, b) => a * b, ITEM_BYTES[dtype] ?? 1);
