/** Rejects a page at a time: their texts may be 64 KiB each. */

import { type Catalog, type ListedReject, type RejectsOptions, rejectPlace } from "@eider/catalog";
import { InvalidInputError, NotFoundError } from "@eider/core";

const PAGE = 500;

/** @throws InvalidInputError `bad_option` */
export function assertRejectId(id: string): void {
  if (rejectPlace(id)) return;
  const message = `${JSON.stringify(id)} is not the id of a reject: table.rejects() tells their ids`;
  throw new InvalidInputError("bad_option", message, { subject: id });
}

/** Those of a table by some of their properties, in the order of their commits. */
export async function* rejectPages(
  catalog: Catalog,
  tableId: string,
  which: Omit<RejectsOptions, "ids" | "after" | "limit">,
): AsyncGenerator<readonly ListedReject[], void, undefined> {
  let after: string | undefined;
  for (;;) {
    const page = await catalog.rejects(tableId, { ...which, limit: PAGE, ...(after !== undefined && { after }) });
    if (page.length > 0) yield page;
    after = page.at(-1)?.id;
    if (page.length < PAGE) return;
  }
}

/**
 * Those with these ids, which are in the order of their commits and differ.
 * @throws NotFoundError `reject_not_found`
 */
export async function* namedRejects(
  catalog: Catalog,
  table: { readonly id: string; readonly name: string },
  ids: readonly string[],
): AsyncGenerator<readonly ListedReject[], void, undefined> {
  for (let i = 0; i < ids.length; i += PAGE) {
    const asked = ids.slice(i, i + PAGE);
    const page = await catalog.rejects(table.id, { ids: asked, limit: PAGE });
    if (page.length < asked.length) {
      const missing = asked.find((id, at) => page[at]?.id !== id)!;
      throw new NotFoundError("reject_not_found", `table ${table.name} has no reject ${JSON.stringify(missing)}`, {
        subject: missing,
      });
    }
    yield page;
  }
}
