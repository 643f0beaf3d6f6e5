import { defineConfig } from "tsup";

export default defineConfig({
  // The worker's name must not be that of a file beside an application's bundle, see docs/bundling.md.
  entry: { index: "src/index.ts", "eider-worker": "src/worker.ts" },
  format: "esm",
  target: "node20",
  dts: false,
  clean: true,
  sourcemap: true,
});
