import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import fs, { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NotFoundError } from "@eider/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { installDebianPackages } from "../../../test/support/debian.js";
import { reportUnavailable } from "../../../test/support/unavailable.js";
import { conformanceChecks, runCheck } from "../src/conformance.js";
import { FileStore, type StoreWarning } from "../src/index.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "eider-names-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The warning about FUSE is looked at by itself. */
const quiet = { onWarning: () => undefined };
const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const conflict = { name: "StoreError", code: "key_conflict", retryable: false };

async function keysOf(store: FileStore, prefix = ""): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix)) keys.push(key);
  return keys;
}

async function read(store: FileStore, key: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await store.get(key)).body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Each rule for a pair of keys that are one name there. */
async function expectApart(
  root: string,
  pairs: readonly (readonly [string, string])[],
  create: boolean,
): Promise<void> {
  for (const [first, second] of pairs) {
    await using store = new FileStore(root, quiet);
    await store.put(first, text(first));
    for (const other of [store, new FileStore(root, quiet), new FileStore(root, { ...quiet, readOnly: true })]) {
      expect(await other.head(second)).toBeUndefined();
      await expect(other.get(second)).rejects.toThrow(NotFoundError);
      expect(await keysOf(other, second)).toEqual([]);
      expect(await keysOf(other, first)).toEqual([first]);
    }
    await expect(store.put(second, text(second))).rejects.toMatchObject(conflict);
    if (create) await expect(store.put(second, text(second), { ifAbsent: true })).rejects.toMatchObject(conflict);
    await store.delete(second);
    expect(await read(store, first)).toBe(first);
    expect(await keysOf(store, first)).toEqual([first]);
    await store.delete(first);
    // The exFAT driver for FUSE goes on finding what is gone by its other name.
    if (!create) continue;
    // Once the first is gone, the second has the name, and its folder's too.
    await store.put(second, text(second));
    expect(await keysOf(store, second)).toEqual([second]);
    expect(await store.head(first)).toBeUndefined();
    await store.delete(second);
    expect(await readdir(join(root, "_eider", "tmp"))).toEqual([]);
  }
}

const BY_CASE = [
  ["Readme", "README"],
  ["t/data/country=NL/1.parquet", "t/data/country=nl/2.parquet"],
  ["t/a/B/c", "t/a/b/c/d"],
] as const;
const BY_FORM = [["n/\u00e9", "n/e\u0301"]] as const;

describe("where names that differ by case or form are one, in simulation", () => {
  const real = { ...fs };
  const fold = (name: string): string => name.normalize("NFC").toLowerCase();
  /** As what is there is really called; what is not there stays. */
  function resolved(path: string): string {
    if (!path.startsWith(`${folder}/`)) return path;
    let found = folder;
    for (const name of path.slice(folder.length + 1).split("/")) {
      let names: string[] = [];
      try {
        names = readdirSync(found);
      } catch {
        // Nothing is below what is not there.
      }
      const there = names.includes(name) ? name : names.find((each) => fold(each) === fold(name));
      found = join(found, there ?? name);
    }
    return found;
  }
  beforeEach(() => {
    const patched = fs as unknown as Record<string, (...args: unknown[]) => unknown>;
    for (const name of ["lstat", "stat", "open", "realpath", "mkdir", "rmdir", "unlink", "readdir"] as const) {
      const call = real[name] as (...args: unknown[]) => unknown;
      patched[name] = (path, ...rest) => call(resolved(String(path)), ...rest);
    }
    for (const name of ["rename", "link"] as const) {
      fs[name] = (from, to) => real[name](resolved(String(from)), resolved(String(to)));
    }
    syncBuiltinESMExports();
  });
  afterEach(() => {
    Object.assign(fs, real);
    syncBuiltinESMExports();
  });

  test("neither is read, replaced nor deleted for the other", async () => {
    await expectApart(join(folder, "one"), [...BY_CASE, ...BY_FORM], true);
  });

  test("a folder that is spelled otherwise is made anew once it is empty", async () => {
    await using store = new FileStore(join(folder, "two"));
    await store.put("Folder/x", text("x"));
    await expect(store.put("folder/y", text("y"))).rejects.toMatchObject(conflict);
    await store.delete("Folder/x");
    await store.put("folder/y", text("y"));
    expect(await keysOf(store)).toEqual(["folder/y"]);
  });

  test.each(conformanceChecks.filter(({ name }) => name.startsWith("keys:")))("$name", async (check) => {
    const root = join(folder, check.name.replaceAll(/\W/g, ""));
    const result = await runCheck(check, async () => new FileStore(root, { durable: false }), { fast: true });
    if (!result.ok) throw result.error;
  });
});

const DISKS = {
  exfat: { tools: ["mkfs.exfat", "mount.exfat-fuse"], packages: ["exfat-fuse", "exfatprogs"] },
  ntfs: { tools: ["mkfs.ntfs", "lowntfs-3g"], packages: ["ntfs-3g"] },
};

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { stdio: "pipe" }).toString();
}

/**
 * Mounts a small disk of the kind through FUSE. Undefined where its programs are not to be had, which is told, and where
 * the kernel mounts no such disk: then only the simulation above has tried what it would show.
 */
async function mount(
  kind: keyof typeof DISKS,
): Promise<{ readonly path: string; readonly unmount: () => void } | undefined> {
  const { tools, packages } = DISKS[kind];
  const has = (): boolean => {
    try {
      for (const tool of tools) run("which", tool);
      return true;
    } catch {
      return false;
    }
  };
  if (!has()) await installDebianPackages(packages);
  if (!has()) {
    const names = packages.join(" ");
    const command = `sudo apt-get install ${names}, then sudo npm test -- packages/storage/test/merged-names.test.ts`;
    reportUnavailable("file systems without case", `mounting one needs Debian's ${names}, and root`, command);
    return undefined;
  }
  const path = join(folder, `${kind}-disk`);
  const image = join(folder, `${kind}.img`);
  await mkdir(path);
  run("truncate", "-s", "20M", image);
  if (kind === "exfat") run("mkfs.exfat", image);
  else run("mkfs.ntfs", "-F", "-q", image);
  let device: string | undefined;
  try {
    device = run("losetup", "-f", "--show", image).trim();
    if (kind === "exfat") run("mount.exfat-fuse", device, path);
    else run("lowntfs-3g", "-o", "ignore_case", device, path);
  } catch (error) {
    if (device !== undefined) run("losetup", "-d", device);
    console.log(`${kind}: this kernel or user mounts no such disk, only the simulation was tried: ${String(error)}`);
    return undefined;
  }
  const mounted = device;
  const unmount = (): void => {
    run("umount", path);
    run("losetup", "-d", mounted);
  };
  return { path, unmount };
}

test("on exFAT, neither of two names is taken for the other", { timeout: 300_000 }, async () => {
  const disk = await mount("exfat");
  if (disk === undefined) return;
  try {
    // No hard links there: creating is refused for another reason.
    await expectApart(join(disk.path, "lake"), BY_CASE, false);
    const warnings: StoreWarning[] = [];
    await using store = new FileStore(join(disk.path, "lake"), { onWarning: (warning) => warnings.push(warning) });
    await expect(store.put("new", text("x"), { ifAbsent: true })).rejects.toMatchObject({ code: "no_hard_links" });
    await store.head("new");
    expect(warnings.map(({ code }) => code)).toEqual(["network_disk"]);
    expect(warnings[0]?.message).toContain("FUSE");
  } finally {
    disk.unmount();
  }
});

test("on a disk that changes the case of names nothing is put", { timeout: 300_000 }, async () => {
  const disk = await mount("ntfs");
  if (disk === undefined) return;
  try {
    await mkdir(join(disk.path, "lake"));
    await using store = new FileStore(join(disk.path, "lake"), quiet);
    await expect(store.put("A", text("x"))).rejects.toMatchObject({ name: "StoreError", code: "names_not_kept" });
    expect(await keysOf(store)).toEqual([]);
  } finally {
    disk.unmount();
  }
});
