// Tries every call in folders that this user may not write or read, and prints the errors.
import { FileStore } from "../../dist/index.js";

const [root] = process.argv.slice(2);
const store = new FileStore(root);
const codes = {};
const attempt = async (name, run) => {
  const error = await run().then(
    () => undefined,
    (failure) => failure,
  );
  codes[name] = error === undefined ? "ok" : `${error.name} ${error.code} ${error.retryable}`;
};
const list = async () => {
  for await (const _ of store.list(""));
};
await attempt("put", () => store.put("locked/new", new Uint8Array(1)));
await attempt("create", () => store.put("locked/new", new Uint8Array(1), { ifAbsent: true }));
await attempt("put below", () => store.put("locked/deeper/new", new Uint8Array(1)));
await attempt("delete", () => store.delete("locked/object"));
await attempt("get", () => store.get("locked/object"));
await attempt("get secret", () => store.get("secret"));
await attempt("head in a closed folder", () => store.head("closed/object"));
await attempt("get in a closed folder", () => store.get("closed/object"));
await attempt("list", list);
await attempt("no root", () => new FileStore(`${root}/locked/lake`).put("a", new Uint8Array(1)));
console.log(JSON.stringify(codes));
