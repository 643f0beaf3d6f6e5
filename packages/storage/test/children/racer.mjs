// Puts one object a round if absent, when the parent says so, and answers whether it won.
import { FileStore } from "../../dist/index.js";

const [root, name] = process.argv.slice(2);
const store = new FileStore(root);
process.on("message", async (round) => {
  if (round === "end") return process.disconnect();
  try {
    await store.put(`race/${round}/object`, new TextEncoder().encode(`${name} `.repeat(1000)), { ifAbsent: true });
    process.send({ name, round, won: true });
  } catch (error) {
    process.send({ name, round, won: false, code: error.code });
  }
});
process.send({ name, ready: true });
