import { setImmediate, setTimeout } from "node:timers/promises";

/** Time that only passes, and waiting for it: a component, so that a simulation decides when and in which order. */
export interface Timer {
  /** Milliseconds since some moment; never steps back. */
  now(): number;
  sleep(milliseconds: number): Promise<void>;
  /** Lets everything go on that waits for nothing but its turn. */
  turn(): Promise<void>;
}

export const realTimer: Timer = {
  now: () => performance.now(),
  sleep: (milliseconds) => setTimeout(milliseconds),
  turn: () => setImmediate(),
};
