import { type FileHandle, open } from "node:fs/promises";

/** Bytes of a piece: large enough that a read costs little, small enough to stay in the processor's cache. */
const PIECE_BYTES = 1024 * 1024;

/**
 * A file from its front to its end. Two buffers take turns, one being read into while the other is looked at: a piece is
 * valid until the next one is asked for. A new buffer for each would cost more in the garbage collector than the reading.
 */
export async function* filePieces(path: string): AsyncIterable<Uint8Array> {
  const handle = await open(path);
  let next: Promise<Piece> | undefined;
  try {
    next = read(handle, Buffer.allocUnsafeSlow(PIECE_BYTES));
    let spare = Buffer.allocUnsafeSlow(PIECE_BYTES);
    for (;;) {
      const { buffer, bytesRead } = await next;
      if (bytesRead === 0) return;
      next = read(handle, spare);
      // An error that comes while the piece is looked at is thrown when the next one is asked for.
      next.catch(() => {});
      yield buffer.subarray(0, bytesRead);
      spare = buffer;
    }
  } finally {
    // The buffer must not be let go of while the system writes into it.
    await next?.catch(() => {});
    await handle.close();
  }
}

interface Piece {
  readonly buffer: Buffer<ArrayBuffer>;
  readonly bytesRead: number;
}

/** From where the last read has ended, so that pipes can be read too. */
function read(handle: FileHandle, buffer: Buffer<ArrayBuffer>): Promise<Piece> {
  return handle.read(buffer, 0, buffer.length, null);
}
