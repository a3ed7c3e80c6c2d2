// Step-runs for tests.
import type { Span } from "../src/moments/track";

/** A step-run from one time to another; the rest is as the server sends it. */
export function span(run: string, from: number, to: number | null, more: Partial<Span> = {}): Span {
  return {
    run, step: run.replace(/#\d+$/, ""), scheduled: [from + 1, from], started: [from + 2, from], ended: to === null ? null : [to + 1, to], state: "done",
    worker: "", role: "step", attempts: [], waits: [], child: null, children: 0, of: null, after: null, items: null, ...more,
  };
}
