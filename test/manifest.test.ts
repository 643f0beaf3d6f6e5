import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { root, workspaceNames } from "./support/repository.js";

interface Manifest {
  readonly name: string;
  readonly version: string;
  /** Never published: for our own tests. */
  readonly private?: true;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const names = workspaceNames("packages");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const manifestOf = (name: string): Manifest => JSON.parse(read(`packages/${name}/package.json`)) as Manifest;
const versions = new Map(names.map(manifestOf).map(({ name, version }) => [name, version]));

test("there are packages to look at", () => {
  expect(names).toEqual(expect.arrayContaining(["core", "storage", "catalog", "query", "eider", "cli"]));
});

test("what is released together is what is published", () => {
  const { fixed } = JSON.parse(read(".changeset/config.json")) as { fixed: string[][] };
  const published = names.map(manifestOf).filter((manifest) => !manifest.private);
  expect([...fixed[0]!].sort()).toEqual(published.map((manifest) => manifest.name).sort());
});

test.each(readdirSync(join(root, ".changeset")).filter((name) => name.endsWith(".md") && name !== "README.md"))(
  ".changeset/%s says which packages change, as changesets reads it",
  (name) => {
    const [, packages, text] = /^---\n(.+?)\n---\n\n(\S.*)$/s.exec(read(`.changeset/${name}`)) ?? [];
    const published = names.map(manifestOf).filter((manifest) => !manifest.private);
    const bump = new RegExp(`^"(${published.map((manifest) => manifest.name).join("|")})": (patch|minor|major)$`);
    for (const line of packages?.split("\n") ?? [""]) expect(line).toMatch(bump);
    expect(text).toBeDefined();
  },
);

describe.each(names)("packages/%s", (name) => {
  const manifest = manifestOf(name);

  test("says who it is in the same way as the others", () => {
    expect(manifest).toMatchObject({
      name: name === "eider" ? "eider" : `@eider/${name}`,
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      description: expect.stringMatching(/\.$/),
      license: "Apache-2.0",
      type: "module",
      engines: { node: ">=20.19" },
      sideEffects: false,
      files: expect.arrayContaining(["dist"]),
    });
    expect(read(`packages/${name}/LICENSE`)).toBe(read("LICENSE"));
  });

  test("exports types first, then code, and its package.json", () => {
    const { "./package.json": self, ...entries } = manifest.exports;
    expect(self).toBe("./package.json");
    expect(Object.keys(entries)).toContain(".");
    for (const [path, target] of Object.entries(entries)) {
      const file = path === "." ? "index" : path.slice(2);
      // The order matters: TypeScript takes the first condition that matches.
      expect(Object.entries(target as object)).toEqual([
        ["types", `./dist/${file}.d.ts`],
        ["default", `./dist/${file}.js`],
      ]);
      expect(existsSync(join(root, "packages", name, "src", `${file}.ts`)), `src/${file}.ts`).toBe(true);
    }
  });

  test("pins its own siblings and everything else exactly", () => {
    for (const [dependency, version] of Object.entries(manifest.dependencies ?? {})) {
      expect(version, dependency).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
      if (versions.has(dependency)) expect(version, dependency).toBe(versions.get(dependency));
    }
    expect(Object.keys(manifest.dependencies ?? {})).toEqual(Object.keys(manifest.dependencies ?? {}).sort());
  });

  test("needs nothing that is private, unless it is itself", () => {
    const needed = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
    const ours = names.map(manifestOf).filter((other) => other.private && needed.includes(other.name));
    if (!manifest.private) expect(ours.map((other) => other.name)).toEqual([]);
  });

  test("has a README: its name, one sentence, one runnable example", () => {
    const readme = read(`packages/${name}/README.md`);
    const [heading, sentence] = readme.split("\n\n");
    expect(heading).toBe(`# ${manifest.name}`);
    expect(sentence).toMatch(/^[^#`].*\.$/s);
    expect(readme.match(/^```(ts|js|sh)\b/gm)).toHaveLength(1);
    // Published without the repository around it, it names documents instead of leading nowhere.
    if (!manifest.private) expect(readme.match(/\]\((?!https:)[^)]*\)/g) ?? []).toEqual([]);
  });
});
