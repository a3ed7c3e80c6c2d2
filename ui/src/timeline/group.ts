// Step-runs of a step as one row, for executions of very many. Tested in ui/tests/group.test.ts.
import type { Span } from "../moments/track";
import type { Scale } from "./scale";

export interface Group {
  step: string;
  /** In the order in which they were scheduled. */
  spans: Span[];
  failed: number;
  /** How many have not ended. */
  open: number;
  /** Of those that ended, in milliseconds: the shortest, the one in the middle, the longest. */
  times: { min: number; median: number; max: number } | null;
}
/** What the pixels of a lane show, from the weakest to the one that covers the others. */
export const LOOKS = ["queued", "ran", "wait", "bad"] as const;
export type Look = (typeof LOOKS)[number];
export interface Stretch {
  look: Look;
  x: number;
  width: number;
}

const GROUPED_FROM = 200; // step-runs of an execution; fewer are read one by one
const LEAST = 10; // step-runs of a step

/** The step-runs in order; where there are very many, those of a step that ran often are one entry at the place of its first. */
export function grouped(spans: readonly Span[]): (Span | Group)[] {
  if (spans.length < GROUPED_FROM) return [...spans];
  const bySteps = new Map<string, Span[]>();
  for (const span of spans) {
    const known = bySteps.get(span.step);
    if (known) known.push(span);
    else bySteps.set(span.step, [span]);
  }
  const entries: (Span | Group)[] = [];
  for (const span of spans) {
    const all = bySteps.get(span.step) as Span[];
    if (all.length < LEAST) entries.push(span);
    else if (all[0] === span) entries.push(groupOf(span.step, all));
  }
  return entries;
}

function groupOf(step: string, spans: Span[]): Group {
  const lasted = new Float64Array(spans.length);
  let ended = 0;
  let failed = 0;
  for (const span of spans) {
    if (span.ended) lasted[ended++] = span.ended[1] - span.scheduled[1];
    if (span.state === "failed") failed += 1;
  }
  const sorted = lasted.subarray(0, ended).sort();
  const middle = ((sorted[(ended - 1) >> 1] ?? 0) + (sorted[ended >> 1] ?? 0)) / 2;
  return { step, spans, failed, open: spans.length - ended, times: ended ? { min: sorted[0] as number, median: middle, max: sorted[ended - 1] as number } : null };
}

/** What a lane shows of many step-runs: each pixel the strongest look of those that it covers. */
export function stretchesOf(spans: readonly Span[], scale: Scale, until: number): Stretch[] {
  const pixels = new Uint8Array(Math.max(1, Math.ceil(scale.width)));
  const paint = (from: number, to: number, look: Look) => {
    if (to < scale.range[0] || from > scale.range[1]) return;
    const strength = LOOKS.indexOf(look) + 1;
    const left = scale.x(from);
    const first = Math.min(pixels.length - 1, Math.floor(left));
    const last = Math.min(pixels.length, Math.max(Math.ceil(to === from ? left : scale.x(to)), first + 1));
    for (let x = first; x < last; x += 1) if ((pixels[x] as number) < strength) pixels[x] = strength;
  };
  for (const span of spans) {
    const end = span.ended?.[1] ?? until;
    const begun = span.started?.[1] ?? end;
    if (begun > span.scheduled[1] || !span.started) paint(span.scheduled[1], begun, "queued");
    if (span.started) paint(begun, end, span.state === "failed" ? "bad" : "ran");
    for (const [from, to] of span.waits) paint(from, to ?? until, "wait");
  }
  const found: Stretch[] = [];
  for (let x = 0, from = 0; x <= pixels.length; x += 1) {
    if (pixels[x] === pixels[from] && x < pixels.length) continue;
    const look = LOOKS[(pixels[from] as number) - 1];
    if (look) found.push({ look, x: from, width: x - from });
    from = x;
  }
  return found;
}
