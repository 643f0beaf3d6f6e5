/** A progress line on stderr, where stderr is a terminal; nothing elsewhere. */

import { SingleBar } from "cli-progress";
import type { Progress } from "eider";
import { formatBytes, formatCount } from "./output.js";
import type { Terminal } from "./terminal.js";

export interface ProgressLine {
  update(progress: Progress): void;
  stop(): void;
}

export function progressLine(terminal: Terminal, name: string): ProgressLine {
  if (!terminal.stderr.isTTY) return { update: () => {}, stop: () => {} };
  const bar = new SingleBar({
    stream: terminal.stderr as NodeJS.WriteStream,
    clearOnComplete: true,
    hideCursor: true,
    fps: 5,
    format: "{name} {bar} {phase} {read}, {rows} rows",
  });
  bar.start(1, 0, { name, phase: "read", read: "", rows: "0" });
  return {
    update({ phase, bytes, totalBytes, rows }) {
      const part = totalBytes === undefined || totalBytes === 0 ? 0 : Math.min(bytes / totalBytes, 1);
      bar.update(part, { phase, read: formatBytes(bytes), rows: formatCount(rows) });
    },
    stop: () => bar.stop(),
  };
}
