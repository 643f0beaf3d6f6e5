import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** One place of the sources and the fault to put there. */
export interface PlantedFault {
  readonly fault: string;
  /** The check that must notice. */
  readonly check: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly from: string;
  readonly to: string;
}

/** Copies of this package's sources with one fault each, and their removal. */
export class Plantation {
  #folder: Promise<string> | undefined;
  #count = 0;

  /** The package's module as it would be with the fault, or another one of its modules. */
  async plant<M = typeof import("../src/index.js")>(fault: PlantedFault, entry = "index.ts"): Promise<M> {
    // Below the package, so that its dependencies are found.
    this.#folder ??= mkdtemp(fileURLToPath(new URL("./planted-", import.meta.url)));
    const copy = join(await this.#folder, String(++this.#count));
    await cp(fileURLToPath(new URL("../src", import.meta.url)), copy, { recursive: true });
    const path = join(copy, fault.file);
    const parts = (await readFile(path, "utf8")).split(fault.from);
    if (parts.length !== 2) throw new Error(`${fault.file} has ${parts.length - 1} times: ${fault.from}`);
    await writeFile(path, parts.join(fault.to));
    return import(join(copy, entry));
  }

  async remove(): Promise<void> {
    if (this.#folder !== undefined) await rm(await this.#folder, { recursive: true, force: true });
  }
}
