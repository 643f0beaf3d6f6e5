/** What a bucket of the fake holds, in memory. */

export interface StoredObject {
  readonly bytes: Buffer;
  /** Quoted, as in headers. */
  readonly etag: string;
  /** Milliseconds since the epoch, whole seconds: S3 keeps no more. */
  readonly modifiedAt: number;
  readonly contentType: string;
  /** `x-amz-meta-…`, as sent. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Base64 by algorithm. */
  readonly checksums: Readonly<Record<string, string>>;
}

export interface Part {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly checksums: Readonly<Record<string, string>>;
}

export interface Upload {
  readonly id: string;
  readonly key: string;
  readonly startedAt: number;
  readonly contentType: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly parts: Map<number, Part>;
}

export class BucketState {
  readonly objects: Map<string, StoredObject> = new Map();
  /** Those that are open, by id. */
  readonly uploads: Map<string, Upload> = new Map();
  /** Those that were aborted: the upload, and the number of the request that did it. */
  readonly aborted: Map<string, { readonly upload: Upload; readonly by: number }> = new Map();
  /** Answers of those that were completed: the same request again may be told the same. */
  readonly completed: Map<string, { readonly key: string; readonly etag: string }> = new Map();
  /** The largest number of uploads that were open at once. */
  peakUploads = 0;
  #sorted: readonly string[] | undefined;

  set(key: string, object: StoredObject): void {
    if (!this.objects.has(key)) this.#sorted = undefined;
    this.objects.set(key, object);
  }

  delete(key: string): void {
    if (this.objects.delete(key)) this.#sorted = undefined;
  }

  open(upload: Upload): void {
    this.uploads.set(upload.id, upload);
    this.peakUploads = Math.max(this.peakUploads, this.uploads.size);
  }

  /** All keys, in the order of their UTF-8 bytes, which is not that of JavaScript's strings. */
  sortedKeys(): readonly string[] {
    this.#sorted ??= [...this.objects.keys()].sort(compareUtf8);
    return this.#sorted;
  }
}

export function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
