/** The demo's data: files that the npm package `vega-datasets` ships, so that nothing is downloaded. */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Source, TableOptions } from "eider";

const main = createRequire(import.meta.url).resolve("vega-datasets");
const folder = join(dirname(main), "..", "data");

export interface Dataset {
  readonly table: string;
  readonly file: string;
  readonly options?: TableOptions;
  /** How the file becomes rows, where it is not simply appended as `{ file }`. */
  readonly rows?: (path: string) => Promise<Source>;
}

export const datasets: readonly Dataset[] = [
  { table: "flights", file: "flights-3m.parquet", options: { partitionBy: ["month(date)"] } },
  { table: "flights_sample", file: "flights-200k.json" },
  { table: "birdstrikes", file: "birdstrikes.csv" },
  { table: "movies", file: "movies.json" },
  // One GeoJSON object: the rows are its features, so they are taken out and appended as rows.
  { table: "earthquakes", file: "earthquakes.json", rows: geoJsonFeatures },
  { table: "weather", file: "seattle-weather.csv" },
];

/** Where a dataset's file is. */
export function pathOf(dataset: Dataset): string {
  return join(folder, dataset.file);
}

async function geoJsonFeatures(path: string): Promise<Source> {
  const collection = JSON.parse(await readFile(path, "utf8")) as { features: Record<string, unknown>[] };
  return collection.features;
}
