/** Results as JSON for programs. */

/** One line of JSON; integers beyond 2^53 as text, bytes as base64. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => {
    if (typeof item === "bigint") {
      const number = Number(item);
      return Number.isSafeInteger(number) ? number : item.toString();
    }
    return item instanceof Uint8Array ? Buffer.from(item).toString("base64") : item;
  });
}
