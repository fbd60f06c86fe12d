/** BLAKE2b without a key (RFC 7693), which names structures. 64-bit words are pairs of 32-bit ones: low, high. */

const BLOCK = 128;

const IV = new Uint32Array([
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a, 0xade682d1,
  0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
]);

const SIGMA: readonly (readonly number[])[] = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
];

/** The pairs of words that each round mixes: four columns, then four diagonals. */
const MIXED: readonly (readonly [number, number, number, number])[] = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
];

const v = new Uint32Array(32);
const m = new Uint32Array(32);

/** `v[a] += v[b] + m[x]`, in 64 bits. */
function add(a: number, b: number, x: number): void {
  const low = v[a]! + v[b]! + m[x]!;
  const carry = Math.floor(low / 0x1_0000_0000);
  v[a + 1] = v[a + 1]! + v[b + 1]! + m[x + 1]! + carry;
  v[a] = low;
}

/** `v[a] += v[b]`, in 64 bits. */
function sum(a: number, b: number): void {
  const low = v[a]! + v[b]!;
  v[a + 1] = v[a + 1]! + v[b + 1]! + (low >= 0x1_0000_0000 ? 1 : 0);
  v[a] = low;
}

/** `v[a] = (v[a] ^ v[b])`, rotated right by so many of 32, 24, 16 and 63 bits. */
function turn(a: number, b: number, bits: 32 | 24 | 16 | 63): void {
  const low = v[a]! ^ v[b]!;
  const high = v[a + 1]! ^ v[b + 1]!;
  if (bits === 32) {
    v[a] = high;
    v[a + 1] = low;
  } else if (bits === 63) {
    v[a] = (low << 1) | (high >>> 31);
    v[a + 1] = (high << 1) | (low >>> 31);
  } else {
    v[a] = (low >>> bits) | (high << (32 - bits));
    v[a + 1] = (high >>> bits) | (low << (32 - bits));
  }
}

function compress(h: Uint32Array, block: DataView, at: number, count: number, last: boolean): void {
  for (let i = 0; i < 32; i++) m[i] = block.getUint32(at + 4 * i, true);
  v.set(h);
  v.set(IV, 16);
  v[24] = v[24]! ^ (count >>> 0);
  v[25] = v[25]! ^ Math.floor(count / 0x1_0000_0000);
  if (last) {
    v[28] = ~v[28]!;
    v[29] = ~v[29]!;
  }
  for (const order of SIGMA) {
    for (let i = 0; i < 8; i++) {
      const [a, b, c, d] = MIXED[i]!;
      add(2 * a, 2 * b, 2 * order[2 * i]!);
      turn(2 * d, 2 * a, 32);
      sum(2 * c, 2 * d);
      turn(2 * b, 2 * c, 24);
      add(2 * a, 2 * b, 2 * order[2 * i + 1]!);
      turn(2 * d, 2 * a, 16);
      sum(2 * c, 2 * d);
      turn(2 * b, 2 * c, 63);
    }
  }
  for (let i = 0; i < 16; i++) h[i] = h[i]! ^ v[i]! ^ v[i + 16]!;
}

/** The hash of `data`, of `size` bytes (1 to 64). */
export function blake2b(data: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const h = IV.slice();
  h[0] = h[0]! ^ 0x01010000 ^ size;
  const whole = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  for (; at + BLOCK < data.length; at += BLOCK) compress(h, whole, at, at + BLOCK, false);
  const rest = new Uint8Array(BLOCK);
  rest.set(data.subarray(at));
  compress(h, new DataView(rest.buffer), 0, data.length, true);
  return new Uint8Array(h.buffer).slice(0, size);
}
