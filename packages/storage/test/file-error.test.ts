import { NotFoundError, StoreError } from "@eider/core";
import { expect, test } from "vitest";
import { fileError } from "../src/file-error.js";

const system = (code: string): Error => Object.assign(new Error(code), { code });

// By hand from errno(3): what each means for a caller, and whether the same call may succeed later.
test.each([
  ["ENOSPC", "write", "store_full", false],
  ["EDQUOT", "write", "store_full", false],
  ["EROFS", "write", "store_read_only", false],
  ["EACCES", "write", "store_read_only", false],
  ["EPERM", "write", "store_read_only", false],
  ["EACCES", "read", "store_denied", false],
  ["EPERM", "read", "store_denied", false],
  ["ENOTDIR", "write", "key_conflict", false],
  ["EISDIR", "write", "key_conflict", false],
  ["EEXIST", "write", "key_conflict", false],
  ["ENAMETOOLONG", "write", "name_too_long", false],
  ["ELOOP", "read", "symlink_refused", false],
  ["EXDEV", "write", "other_drive", false],
  ["EFBIG", "write", "object_too_large", false],
  ["EMFILE", "read", "too_many_files", true],
  ["ENFILE", "read", "too_many_files", true],
  ["EBUSY", "write", "store_busy", true],
  ["EAGAIN", "read", "store_busy", true],
  ["EIO", "read", "store_io", true],
  ["ESTALE", "read", "store_io", true],
  ["EWHATEVER", "read", "store_failed", false],
] as const)("%s in a %s is %s", (code, action, expected, retryable) => {
  const cause = system(code);
  const error = fileError(cause, "events/1.parquet", action);
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ code: expected, retryable, subject: "events/1.parquet", cause });
  expect(error.message).toMatch(/^events\/1\.parquet: .+\.$/);
});

test("an absent file is NotFoundError in a read, and Eider's own errors stay", () => {
  expect(fileError(system("ENOENT"), "a", "read")).toBeInstanceOf(NotFoundError);
  const own = new StoreError("short_read", "short");
  expect(fileError(own, "a", "read")).toBe(own);
  expect(fileError(system("EIO"), "", "read").message).toMatch(/^The root: /);
  expect(fileError("no error at all", "a", "read")).toMatchObject({ code: "store_failed" });
});
