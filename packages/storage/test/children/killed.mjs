// Puts a large object and kills itself: after so many bytes of it, or right after the put took effect.
import { FaultStore, FileStore } from "../../dist/index.js";

const [root, when] = process.argv.slice(2);
const kill = () => process.kill(process.pid, "SIGKILL");
const store = new FaultStore(new FileStore(root), {
  during: (_, bytes) => when !== "after" && bytes >= Number(when) && kill(),
  after: () => when === "after" && kill(),
});
async function* body() {
  for (let i = 0; i < 20; i++) yield new Uint8Array(500_000).fill(i);
}
await store.put("a/large", body(), { ifAbsent: true });
