/**
 * Tracing by `node:diagnostics_channel`: subscribe to `tracing:eider:append:start` and its siblings, or hand the
 * channel to OpenTelemetry. Contexts carry names, ids and counts, never row values.
 */

import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";

type Channel = "append" | "maintain";

const channels: Readonly<Record<Channel, TracingChannel>> = {
  append: tracingChannel("eider:append"),
  maintain: tracingChannel("eider:maintain"),
};

/** Runs `work`, telling the channel's subscribers when it starts, ends or fails. */
export function traced<T>(
  channel: Channel,
  context: Readonly<Record<string, unknown>>,
  work: () => Promise<T>,
): Promise<T> {
  return channels[channel].tracePromise(work, { ...context });
}
