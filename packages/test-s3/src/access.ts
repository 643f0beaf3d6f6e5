/** Where an S3 is and who may use it: plain data, so that it can be handed to another process. */
export interface S3Access {
  /** `http://127.0.0.1:<port>`, for path-style requests. */
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A running S3 for tests, fake or real. */
export interface TestS3 extends S3Access, AsyncDisposable {
  /** Makes an empty bucket with a name that no other has, and gives its name. */
  makeBucket(): Promise<string>;
  /** Ends the server with all that it holds. */
  stop(): Promise<void>;
}
