import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Tests run against sources; child processes they start run the built packages. */
const alias = [
  { find: /^@eider\/core\/(node|ranges)$/, replacement: source("packages/core/src/$1.ts") },
  { find: /^@eider\/storage\/s3$/, replacement: source("packages/storage/src/s3.ts") },
  { find: /^@eider\/storage\/conformance$/, replacement: source("packages/storage/src/conformance.ts") },
  { find: /^@eider\/(core|storage|catalog|query|cli|test-s3)$/, replacement: source("packages/$1/src/index.ts") },
  { find: /^eider$/, replacement: source("packages/eider/src/index.ts") },
];

const setupFiles = [source("test/support/seed.ts")];

export default defineConfig({
  resolve: { alias },
  test: {
    globalSetup: [source("test/support/seed-setup.ts"), source("test/support/real-s3-setup.ts")],
    // Many suites wait for disks, servers and child processes: Vitest's own default leaves a core idle.
    maxWorkers: availableParallelism(),
    projects: [
      ...["core", "storage", "catalog", "query", "eider", "cli", "test-s3"].map((name) => ({
        resolve: { alias },
        test: { name, include: [`packages/${name}/test/**/*.test.ts`], setupFiles, testTimeout: 60_000 },
      })),
      { resolve: { alias }, test: { name: "lake", include: ["test/**/*.test.ts"], setupFiles, testTimeout: 180_000 } },
    ],
  },
});
