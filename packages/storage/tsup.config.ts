import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["src/index.ts", "src/conformance.ts", "src/s3.ts"],
  format: "esm",
  target: "node20",
  dts: false,
  clean: true,
  sourcemap: true,
});
