// Opens bodies until the process may open no more files, then gives one back and opens it.
import { FileStore } from "../../dist/index.js";

const [root] = process.argv.slice(2);
const store = new FileStore(root);
const bodies = [];
let error;
while (error === undefined && bodies.length < 1000) {
  await store.get("large").then(
    (object) => bodies.push(object.body),
    (failure) => {
      error = failure;
    },
  );
}
for await (const _ of bodies.pop()) break;
for await (const _ of bodies.pop()) break;
const again = await store.get("large");
console.log(JSON.stringify({ name: error?.name, code: error?.code, retryable: error?.retryable, again: again.size }));
await store[Symbol.asyncDispose]();
