/** Which imports the architecture allows (docs/architecture.md, "Layers"), checked over a map of files. */

import { builtinModules } from "node:module";
import { posix } from "node:path";
import ts from "typescript";

/** What each package may import of the others: only what lies below it. Storage and catalog do not know each other. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  core: [],
  storage: ["core"],
  catalog: ["core"],
  query: ["core", "storage", "catalog"],
  eider: ["core", "storage", "catalog", "query"],
  cli: ["core", "storage", "catalog", "query", "eider"],
  // For tests and benchmarks: no package and no app may import it.
  "test-s3": [],
};
/** Apps may import all that is published. */
const PACKAGES = Object.keys(BELOW).filter((name) => name !== "test-s3");

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/**
 * Says what is wrong with the imports of a repository, one sentence each.
 * @param files text by path from the root: `packages/<name>/package.json`, `packages/<name>/src/**.ts`, and the same under `apps/`
 */
export function layerProblems(files: ReadonlyMap<string, string>): string[] {
  const folders = new Set([...files.keys()].map((path) => path.split("/").slice(0, 2).join("/")));
  return [...folders].flatMap((folder) => folderProblems(folder, files));
}

function folderProblems(folder: string, files: ReadonlyMap<string, string>): string[] {
  const [kind, name = ""] = folder.split("/");
  const below = kind === "apps" ? PACKAGES : BELOW[name];
  if (below === undefined)
    return [`${folder} has no place in the layers: say in test/support/layers.ts what it may import`];
  const manifest = JSON.parse(files.get(`${folder}/package.json`) ?? "{}") as Manifest;
  const declared = new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }));
  const problems: string[] = [];
  const used = new Set<string>();
  const graph = new Map<string, string[]>();

  for (const [path, text] of files) {
    if (!path.startsWith(`${folder}/src/`) || !/\.m?ts$/.test(path)) continue;
    graph.set(
      path,
      loadedImportsOf(text)
        .filter((specifier) => specifier.startsWith("."))
        .map((specifier) => resolveRelative(path, specifier)),
    );
    // A package can also be used for its files: `require.resolve("vega-datasets")`.
    for (const [, specifier = ""] of text.matchAll(/\.resolve\("([^".][^"]*)"\)/g)) used.add(packageOf(specifier));
    for (const specifier of importsOf(text)) {
      if (specifier.startsWith(".")) {
        const target = resolveRelative(path, specifier);
        if (!target.startsWith(`${folder}/src/`))
          problems.push(`${path} imports ${specifier}, outside its package's src`);
        else if (!files.has(target)) problems.push(`${path} imports ${specifier}, which does not exist`);
        if (folder === "packages/core" && target === "packages/core/src/node.ts")
          problems.push(`${path} imports ${specifier}: the portable part of core must not reach its Node.js part`);
        continue;
      }
      if (isBuiltin(specifier)) {
        if (folder === "packages/core" && path !== "packages/core/src/node.ts")
          problems.push(`${path} imports ${specifier}: core is portable, only src/node.ts may use Node.js`);
        continue;
      }
      const dependency = packageOf(specifier);
      used.add(dependency);
      const internal = internalName(dependency);
      if (internal !== undefined && !below.includes(internal))
        problems.push(`${path} imports ${specifier}: ${folder} may import ${below.join(", ") || "no other package"}`);
      else if (!declared.has(dependency))
        problems.push(`${path} imports ${specifier}, which ${folder}/package.json does not declare`);
    }
  }
  for (const dependency of declared)
    if (!used.has(dependency) && graph.size > 0)
      problems.push(`${folder}/package.json declares ${dependency}, which nothing imports`);
  return [...problems, ...cycles(graph)];
}

/** Static imports, re-exports, `import()` and `import("…")` types, but not text in comments and strings. */
function importsOf(text: string): string[] {
  return ts.preProcessFile(text, true, true).importedFiles.map((file) => file.fileName);
}

/** The imports that run when a file is loaded: without `import type` and `export type`, which leave no trace. */
function loadedImportsOf(text: string): string[] {
  return ts
    .createSourceFile("file.ts", text, ts.ScriptTarget.Latest)
    .statements.map((statement) => {
      if (ts.isImportDeclaration(statement) && statement.importClause?.phaseModifier !== ts.SyntaxKind.TypeKeyword)
        return statement.moduleSpecifier;
      return ts.isExportDeclaration(statement) && !statement.isTypeOnly ? statement.moduleSpecifier : undefined;
    })
    .filter((specifier) => specifier !== undefined && ts.isStringLiteral(specifier))
    .map((specifier) => specifier.text);
}

/** The source file that `./name.js` means. */
function resolveRelative(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier).replace(/\.(m?)js$/, ".$1ts");
}

function isBuiltin(specifier: string): boolean {
  return specifier.startsWith("node:") || builtinModules.includes(specifier);
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** The folder name of one of our own packages. */
function internalName(dependency: string): string | undefined {
  if (dependency.startsWith("@eider/")) return dependency.slice("@eider/".length);
  return dependency === "eider" ? "eider" : undefined;
}

/** Rings of files that load each other, as paths. */
function cycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const path: string[] = [];
  const found: string[] = [];
  const visit = (file: string): void => {
    const start = path.indexOf(file);
    if (start >= 0)
      found.push(`import cycle: ${[...path.slice(start), file].map((f) => posix.basename(f)).join(" → ")}`);
    if (start >= 0 || done.has(file)) return;
    path.push(file);
    graph.get(file)?.forEach(visit);
    path.pop();
    done.add(file);
  };
  [...graph.keys()].forEach(visit);
  return found;
}
