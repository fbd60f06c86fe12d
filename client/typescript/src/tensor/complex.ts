/** A complex number. */
export interface Complex {
  readonly re: number;
  readonly im: number;
}

export function isComplex(value: unknown): value is Complex {
  return typeof value === "object" && value !== null && "re" in value && "im" in value;
}
