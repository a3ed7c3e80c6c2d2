// The critical path: the chain of step-runs that determined how long an execution took. Tested in ui/tests/timeline.test.ts.
import type { Span } from "../moments/track";

/**
 * Walk back from the step-run that ended last to the one whose token started it, the last token to arrive at a join. While
 * several still run, the one that began first is the last. Retried dead letters come after the end and do not count.
 */
export function criticalPath(spans: Iterable<Span>): Set<string> {
  const all = [...spans].filter((span) => span.role !== "replay");
  const byRun = new Map(all.map((span) => [span.run, span]));
  const found = new Set<string>();
  let at = all.reduce<Span | undefined>((last, span) => (!last || isLater(span, last) ? span : last), undefined);
  while (at && !found.has(at.run)) {
    found.add(at.run);
    at = at.after ? byRun.get(at.after) : at.role === "step" ? undefined : before(all, at);
  }
  return found;
}

function isLater(one: Span, other: Span): boolean {
  if (!one.ended || !other.ended) return one.ended ? false : Boolean(other.ended) || one.scheduled[0] < other.scheduled[0];
  if (one.ended[1] !== other.ended[1]) return one.ended[1] > other.ended[1];
  const isStopped = (span: Span) => span.state === "cancelled"; // with the one that ended it all
  return isStopped(one) === isStopped(other) ? one.ended[0] > other.ended[0] : isStopped(other);
}

/** Final steps and compensations need no token: the last end before them started them. */
function before(all: readonly Span[], at: Span): Span | undefined {
  return all.reduce<Span | undefined>((last, span) => (span.ended && span.ended[0] <= at.scheduled[0] && (!last?.ended || span.ended[0] > last.ended[0]) ? span : last), undefined);
}

/** The child that its step-run waited for: the last to end; while several still run, the one that began first. */
export function lastChild<T extends { started: number; ended: number | null }>(children: readonly T[]): T | undefined {
  const running = children.filter((one) => one.ended === null);
  if (running.length) return running.reduce((first, one) => (one.started < first.started ? one : first));
  return children.reduce<T | undefined>((last, one) => (!last || (one.ended as number) > (last.ended as number) ? one : last), undefined);
}
