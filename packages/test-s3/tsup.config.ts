import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["src/index.ts", "src/fake-server.ts"],
  format: "esm",
  target: "node20",
  dts: false,
  clean: true,
  sourcemap: true,
});
