import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { eider, eiderOk, temporaryFolder } from "./harness.js";

const COMMANDS = [
  "append",
  "sql",
  "tables",
  "schema",
  "batches",
  "receipt",
  "rejects",
  "replay",
  "purge-rejects",
  "files",
  "snapshots",
  "changes",
  "tag",
  "rollback",
  "view",
  "types",
  "verify",
  "maintain",
  "copy",
  "share",
  "rebuild",
];

/** The arguments of each `eider` in a script, as bash passes them. */
function shellWords(script: string, cwd: string): string[][] {
  writeFileSync(join(cwd, "report.sql"), "SELECT 1");
  const stubs = `eider() { for word in "$@"; do printf '%s\\0' "$word" >> words; done; printf '\\n\\0' >> words; }; curl() { :; }; duckdb() { :; }`;
  const { status, stderr } = spawnSync("bash", ["-c", `${stubs}\n${script}`], { cwd, encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  const lines = readFileSync(join(cwd, "words"), "utf8").split("\n\0").slice(0, -1);
  return lines.map((line) => line.split("\0").slice(0, -1));
}

describe("--help", () => {
  it("names every command, shows examples and the exit status", async () => {
    const { stdout, stderr } = await eiderOk(["--help"]);
    expect(stderr).toBe("");
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} <lake>`, "m"));
    expect(stdout).toContain("\nExamples:\n");
    expect(stdout).toContain("0 done, 1 failed");
    expect((await eiderOk(["help"])).stdout).toBe(stdout);
  });

  it.each(COMMANDS)("%s has a description, its options and examples that are its own", async (command) => {
    const { stdout } = await eiderOk([command, "--help"]);
    expect(stdout).toMatch(new RegExp(`^Usage: eider ${command} \\[options\\] <lake>.*\n\n[A-Z]`));
    const examples = /\nExamples?:\n([\s\S]+)$/.exec(stdout)?.[1] ?? "";
    expect(examples).toContain(`eider ${command} ./lake`);
    expect((await eiderOk(["help", command])).stdout).toBe(stdout);
    expect(stdout.includes("--json")).toBe(command !== "sql");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none is wanted.
    expect(stdout).not.toMatch(/\x1b/);
  });

  it.each(["", ...COMMANDS])("%s: every example is a command line that parses", async (command) => {
    const { stdout } = await eiderOk([...(command === "" ? [] : [command]), "--help"]);
    const examples = /\nExamples?:\n((?: {2}.*\n?)+)/.exec(stdout)?.[1] ?? "";
    const folder = temporaryFolder();
    const lines = shellWords(examples.replaceAll(/ {5}.*$/gm, ""), folder);
    expect(lines.length).toBeGreaterThan(0);
    for (const [i, words] of lines.entries()) {
      expect(words[1]).toBe("./lake");
      // There is no such lake and no such file; but nothing is wrong with how it is asked for.
      const { code, stderr } = await eider(words.with(1, join(folder, `lake-${i}`)));
      expect([words, code, stderr]).toEqual([words, 1, expect.stringMatching(/^(lake|file)_not_found|^empty_input/)]);
    }
  });

  it.each(["", ...COMMANDS])("%s fits a terminal of 80 columns", async (command) => {
    const { stdout } = await eiderOk([...(command === "" ? [] : [command]), "--help"], { columns: 80 });
    for (const line of stdout.split("\n")) expect(line).toMatch(/^.{0,80}$/u);
  });
});

it("--version is the package's", async () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string };
  expect((await eiderOk(["--version"])).stdout).toBe(`${manifest.version}\n`);
});

describe("wrong usage ends with 2, says what is wrong, and how to learn more", () => {
  const cases: [string, string[], RegExp][] = [
    ["no command", [], /^Usage: eider/],
    [
      "an unknown command",
      ["tabels", "x"],
      /^error: unknown command 'tabels'\n\(Did you mean tables\?\)\n\(eider --help shows how\)\n$/,
    ],
    ["help on an unknown command", ["help", "nope"], /Usage: eider/],
    [
      "an unknown option",
      ["sql", "x", "SELECT 1", "--fromat", "csv"],
      /^error: unknown option '--fromat'\n\(Did you mean --format\?\)\n\(eider sql --help shows how\)\n$/,
    ],
    [
      "a missing argument",
      ["schema", "x"],
      /^error: missing required argument 'table'\n\(eider schema --help shows how\)\n$/,
    ],
    ["one argument too many", ["tables", "x", "y"], /^error: too many arguments/],
    [
      "a choice that is none",
      ["sql", "x", "SELECT 1", "--format", "xlsx"],
      /Allowed choices are table, json, ndjson, csv, parquet, arrow\./,
    ],
    ["a number that is none", ["batches", "x", "t", "--limit", "many"], /It is a whole number\./],
    ["nothing at the most", ["batches", "x", "t", "--limit", "0"], /It is at least 1\./],
    ["hours that are none", ["maintain", "x", "--grace-hours", "-1"], /It is a number of hours/],
    ["a tag to forget without its name", ["tag", "x", "--delete"], /^error: name the tag\n/],
    ["--json on sql", ["sql", "x", "SELECT 1", "--json"], /^error: unknown option '--json'/],
  ];
  it.each(cases)("%s", async (_, args, message) => {
    const outcome = await eider(args);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(message);
  });
});

it("failures are one line of code and message, also with --json", async () => {
  const outcome = await eider(["tables", join(temporaryFolder(), "none"), "--json"]);
  expect(outcome).toMatchObject({ code: 1, stdout: "" });
  expect(outcome.stderr).toMatch(/^lake_not_found: .+\n$/);
});
