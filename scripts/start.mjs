/** `npm start`: makes the checkout ready, then runs the demo: real files into a lake, and answers out. */

import { join } from "node:path";
import { bootstrap, root, run } from "./bootstrap.mjs";

await bootstrap();
process.exitCode = await run(process.execPath, [
  join(root, "apps", "demo", "dist", "main.js"),
  ...process.argv.slice(2),
]);
