/** A progress line on stderr, where stderr is a terminal; nothing elsewhere. */

import { SingleBar } from "cli-progress";
import type { Terminal } from "./terminal.js";
import { formatBytes, formatCount, printable } from "./text.js";

export interface ProgressLine {
  update(state: {
    readonly phase: string;
    readonly bytes: number;
    readonly totalBytes?: number;
    readonly rows?: number;
  }): void;
  /** Erases the line. */
  stop(): void;
}

/** Characters of the bar. */
const BAR = 24;

export function progressLine(terminal: Terminal, name: string): ProgressLine {
  if (!terminal.stderr.isTTY) return { update: () => {}, stop: () => {} };
  let line = printable(name);
  let current = "";
  const bar = new SingleBar({
    stream: terminal.stderr as NodeJS.WriteStream,
    clearOnComplete: true,
    // Hidden, it would stay so after a second Ctrl-C.
    hideCursor: false,
    fps: 10,
    format: () => line,
  });
  bar.start(1, 0);
  return {
    update({ phase, bytes, totalBytes, rows }) {
      const part = totalBytes === undefined || totalBytes === 0 ? undefined : Math.min(bytes / totalBytes, 1);
      const full = Math.round((part ?? 0) * BAR);
      const drawn = part === undefined ? "" : `${"█".repeat(full)}${"░".repeat(BAR - full)} `;
      const counted = rows === undefined ? "" : `, ${formatCount(rows)} rows`;
      line = `${printable(name)}  ${drawn}${phase} ${formatBytes(bytes)}${counted}`;
      bar.update(part ?? 0);
      // Between two phases it is drawn for certain; else so many times a second.
      if (phase !== current) bar.render();
      current = phase;
    },
    stop: () => bar.stop(),
  };
}
