import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { blake2b } from "../src/wire/blake2b.ts";

test("hashes of 64 bytes equal those of Node, around the ends of blocks", () => {
  for (const size of [0, 1, 3, 127, 128, 129, 255, 256, 257, 5000]) {
    const data = Uint8Array.from({ length: size }, (_, at) => (at * 31 + 7) & 255);
    const expected = createHash("blake2b512").update(data).digest("hex");
    assert.equal(Buffer.from(blake2b(data, 64)).toString("hex"), expected);
  }
});

test("a hash of 16 bytes is one of its own, not the beginning of a longer one", () => {
  // Computed with Python: hashlib.blake2b(b"gradwire", digest_size=16).hexdigest()
  assert.equal(
    Buffer.from(blake2b(new TextEncoder().encode("gradwire"), 16)).toString("hex"),
    "7607e37d5887783bb4f8bbd867674ab9",
  );
});
