// Creates an object and kills itself when it is linked to its place, before its unfinished name is removed.
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

fs.unlink = () => process.kill(process.pid, "SIGKILL");
syncBuiltinESMExports();
const { FileStore } = await import("../../dist/index.js");
await new FileStore(process.argv[2]).put("a/object", new Uint8Array(5000).fill(7), { ifAbsent: true });
