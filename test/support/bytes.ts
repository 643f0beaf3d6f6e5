/** Bytes as a stream of pieces of one size. */
export async function* chunked(all: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size);
}
