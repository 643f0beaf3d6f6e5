export { run } from "./program.js";
export type { Terminal } from "./terminal.js";
