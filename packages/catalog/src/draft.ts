/** What a draft must be in itself, whatever the state of the lake. */

import { InvalidInputError, lastFieldId } from "@eider/core";
import type { DataFile, Draft, Operation, SourceRange } from "./catalog.js";
import {
  checkBatchId,
  checkLabel,
  checkTagName,
  isSequence,
  isUnicode,
  parseTableName,
  quote,
  rangeBatchId,
} from "./names.js";
import { parsePosition } from "./position.js";
import { rejectPlace } from "./reject-id.js";

/**
 * Checks names, numbers and form, before a transaction begins.
 * @throws InvalidInputError `bad_name`, `bad_batch_id`, `bad_position`, `duplicate_batch`, `bad_draft`
 */
export function checkDraft(draft: Draft): void {
  if (draft.operations.length === 0) bad("a draft needs at least one operation");
  for (const [key, value] of Object.entries(draft.meta ?? {})) {
    if (typeof value !== "string") bad(`meta ${quote(key)} is not a text`);
  }
  if (draft.expectSnapshot !== undefined) checkCount(draft.expectSnapshot, "expectSnapshot");
  const batches = new Set<string>();
  for (const operation of draft.operations) checkOperation(operation, batches);
}

function checkOperation(operation: Operation, batches: Set<string>): void {
  switch (operation.op) {
    case "schema": {
      const { create, version, schema } = operation;
      checkText(operation.table, "table id");
      checkCount(version, "schema version");
      checkCount(operation.lastFieldId, "lastFieldId");
      if (create ? version !== 1 : version < 2) bad("schema version 1, and only that, creates a table");
      if (lastFieldId(schema) > operation.lastFieldId) bad("a field id is above lastFieldId");
      if (create) {
        parseTableName(create.name);
        checkText(create.folder, "folder");
      }
      return;
    }
    case "append": {
      checkBatchId(operation.batch);
      const key = JSON.stringify([operation.table, operation.batch]);
      if (batches.has(key)) {
        throw new InvalidInputError(
          "duplicate_batch",
          `the batch ${quote(operation.batch)} is in this transaction twice: give each append its own batch id`,
          { subject: operation.batch },
        );
      }
      batches.add(key);
      if (operation.range) checkRange(operation.batch, operation.range);
      checkText(operation.hash, "content hash");
      checkCount(operation.rows, "rows");
      checkCount(operation.schemaVersion, "schema version");
      for (const reject of operation.rejects) checkCount(reject.line, "line of a reject");
      if (operation.replays) checkRejectIds(operation.replays);
      operation.files.forEach(checkFile);
      if (operation.hot) {
        if (operation.files.length > 0) bad("a batch has its rows in files or is hot, not both");
        if (operation.rows === 0 || operation.hot.data.length === 0) bad("a hot batch has no rows");
      }
      return;
    }
    case "rearrange": {
      const { removeHot, removeFiles, addFiles } = operation;
      if (removeHot.length + removeFiles.length === 0) bad("a rearrangement removes nothing");
      for (const batch of removeHot) checkBatchId(batch);
      for (const key of removeFiles) checkText(key, "key of a file");
      addFiles.forEach(checkFile);
      return;
    }
    case "drop":
      return;
    case "purge":
      checkRejectIds(operation.rejects);
      return;
    case "rollback":
      checkCount(operation.to, "snapshot to roll back to");
      return;
    case "cursor":
      checkLabel(operation.name, "cursor");
      parsePosition(operation.from);
      if (operation.to !== undefined) parsePosition(operation.to);
      return;
    case "tag":
      checkTagName(operation.name);
      if (operation.snapshot !== undefined) checkCount(operation.snapshot, "snapshot of a tag");
      return;
    case "view":
      parseTableName(operation.name);
      if (operation.from !== undefined) checkCount(operation.from, "snapshot of a view");
      if (operation.sql !== undefined) checkText(operation.sql, "text of a view");
      else if (operation.from === undefined) bad("a view that is not there cannot end");
      return;
    case "expire":
      checkCount(operation.before, "snapshot to keep");
      checkCount(operation.unusedSince, "snapshot since which something is unused");
      return;
    case "floor":
      checkCount(operation.floor, "floor");
  }
}

function checkRange(batch: string, range: SourceRange): void {
  checkLabel(range.source, "source");
  if (!isSequence(range.first) || !isSequence(range.last)) bad("a sequence number is not one from 0 to 2^63 − 1");
  if (BigInt(range.first) > BigInt(range.last)) bad(`the range of ${quote(batch)} ends before it begins`);
  if (batch !== rangeBatchId(range)) bad(`the batch ${quote(batch)} is called otherwise than its range`);
}

function checkRejectIds(ids: readonly string[]): void {
  if (ids.length === 0) bad("a list of rejects is empty");
  if (new Set(ids).size < ids.length) bad("a reject is named twice");
  for (const id of ids) if (!rejectPlace(id)) bad(`${quote(id)} is not the id of a reject`);
}

function checkFile(file: DataFile): void {
  checkText(file.key, "key of a file");
  checkCount(file.bytes, "bytes of a file");
  checkCount(file.rows, "rows of a file");
  checkCount(file.base, "base of a file");
  checkCount(file.schemaVersion, "schema version of a file");
  checkSha256(file.sha256, quote(file.key));
  if (file.footer) {
    checkCount(file.footer.bytes, "bytes of a footer");
    checkSha256(file.footer.sha256, `the footer of ${quote(file.key)}`);
  }
  const fields = new Set<number>();
  for (const column of file.columns) {
    checkCount(column.valueCount, "valueCount of a column");
    checkCount(column.nullCount, "nullCount of a column");
    checkCount(column.storedBytes, "storedBytes of a column");
    if (fields.has(column.fieldId)) bad(`${quote(file.key)} has two statistics of field ${column.fieldId}`);
    fields.add(column.fieldId);
  }
}

function checkSha256(digits: string, of: string): void {
  if (!/^[0-9a-f]{64}$/.test(digits)) bad(`the SHA-256 of ${of} is not 64 hex digits`);
}

/** Counts stay exact in JavaScript numbers and in SQLite's integers. */
function checkCount(value: number, what: string): void {
  if (!Number.isSafeInteger(value) || value < 0) bad(`${what} is ${value}, not a count below 2^53`);
}

function checkText(value: string, what: string): void {
  if (typeof value !== "string" || value === "") bad(`${what} is empty`);
  if (!isUnicode(value)) bad(`${what} is not valid Unicode`);
}

function bad(reason: string): never {
  throw new InvalidInputError("bad_draft", `the catalog cannot commit this: ${reason}`);
}
