export type * from "./catalog.js";
export { applyCheckpointFile, copyCatalog, renameCatalog, type SharedCopy, shareCopy } from "./checkpoint.js";
export { checkDraft } from "./draft.js";
export { decodeEntry } from "./entry.js";
export {
  ANY_FILE,
  allOf,
  anyOf,
  type Comparison,
  type FilePredicate,
  type PredicateField,
  predicateKey,
  saysNothing,
} from "./file-predicate.js";
export { GroupQueue, type Outcome } from "./group-queue.js";
export { type HotPagesOptions, hotPages } from "./hot-pages.js";
export {
  checkBatchId,
  checkLabel,
  checkTagName,
  isSequence,
  parseTableName,
  rangeBatchId,
  type TableName,
} from "./names.js";
export { parsePosition, START } from "./position.js";
export { compareRejectIds, ordinalsBySnapshot, rejectPlace } from "./reject-id.js";
export { scrubEntry } from "./scrub.js";
export { type Proposal, SqliteCatalog, type SqliteCatalogOptions } from "./sqlite-catalog.js";
export { sharesEntry } from "./sqlite-commit.js";
export {
  type DriverOptions,
  type OpenDriver,
  openSqlite,
  type SqliteDriver,
  type SqliteValue,
} from "./sqlite-driver.js";
export { type JournalPage, journalEntries } from "./sqlite-journal.js";
export { encodeStub, entryFacts, isStub, stubOf } from "./stub.js";
export { realTimer, type Timer } from "./timer.js";
