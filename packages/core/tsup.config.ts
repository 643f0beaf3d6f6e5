import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["src/index.ts", "src/node.ts", "src/ranges.ts"],
  format: "esm",
  target: "node20",
  dts: false,
  clean: true,
  sourcemap: true,
});
