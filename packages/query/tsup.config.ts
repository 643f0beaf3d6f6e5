import { defineConfig } from "tsup";

export default defineConfig({
  // The name of the process's entry must not be that of a file beside an application's bundle, see docs/bundling.md.
  entry: { index: "src/index.ts", "eider-scope": "src/scope/process.ts" },
  format: "esm",
  target: "node20",
  dts: false,
  clean: true,
  sourcemap: true,
});
