/** Tables as they are now, as long as that is certain: appends ask for theirs again and again. */

import { nameKey } from "@eider/core";
import type { Operation, TableInfo, TableLayout } from "./catalog.js";
import type { SqliteDriver } from "./sqlite-driver.js";

/** Tables remembered at once. */
const LIMIT = 1000;

export class TableLayouts {
  readonly #byName = new Map<string, TableLayout>();
  #driver: SqliteDriver | undefined;
  #version = 0;

  /** @param version of the data: what another connection has written meanwhile may have changed any table */
  find(driver: SqliteDriver, version: number, name: string): TableLayout | undefined {
    return driver === this.#driver && version === this.#version ? this.#byName.get(nameKey(name)) : undefined;
  }

  /** @param version of the data, in the transaction in which the table was read */
  keep(driver: SqliteDriver, version: number, table: TableInfo): void {
    if (driver !== this.#driver || version !== this.#version || this.#byName.size === LIMIT) this.#byName.clear();
    this.#driver = driver;
    this.#version = version;
    this.#byName.set(nameKey(table.name), table);
  }

  /** This connection commits these operations. */
  changed(operations: readonly Operation[]): void {
    if (operations.some(({ op }) => op === "schema" || op === "drop" || op === "rollback")) this.clear();
  }

  clear(): void {
    this.#byName.clear();
  }
}
