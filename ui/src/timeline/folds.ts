// The scale of the timeline: long waits fold, a part of it fills the width. Pure functions of spans.
import type { Span } from "../moments/track";

export interface Fold {
  from: number;
  to: number;
}
/** A stretch of time with its place in the width, both ends from 0 to 1. */
interface Piece extends Fold {
  left: number;
  right: number;
  isFold: boolean;
}
export interface Scale {
  folds: Fold[];
  /** The place of a time in the width, from 0 to 1. */
  place: (ms: number) => number;
  /** The time at a place. */
  time: (part: number) => number;
}
const LEAST_MS = 10_000;
const FOLDED = 0.05;

/** Waits longer than a third of the whole in which nothing was queued or ran. */
export function foldsOf(spans: Iterable<Span>, total: number): Fold[] {
  const busy: [number, number][] = [];
  for (const span of spans) {
    const end = span.ended?.[1] ?? total;
    const waits = span.waits.filter(([, , cause]) => cause !== "delay").map(([from, to]) => [from, to ?? total] as const);
    let from = span.scheduled[1];
    for (const [begins, ends] of [...waits, [end, end] as const]) {
      if (begins > from) busy.push([from, begins]);
      from = Math.max(from, ends);
    }
  }
  busy.sort((a, b) => a[0] - b[0]);
  const found: Fold[] = [];
  let at = 0;
  for (const [from, to] of [...busy, [total, total] as const]) {
    if (from - at > total / 3 && from - at > LEAST_MS) found.push({ from: at, to: from });
    at = Math.max(at, to);
  }
  return found;
}

/** The scale of the times `from` to `to`; a fold is five hundredths of the width, the rest is shared by time. */
export function scaleOf(from: number, to: number, folds: readonly Fold[]): Scale {
  const inside = folds.map((one) => ({ from: Math.max(from, one.from), to: Math.min(to, one.to) })).filter((one) => one.to > one.from);
  const open = Math.max(1, to - from - inside.reduce((sum, one) => sum + one.to - one.from, 0));
  const room = 1 - inside.length * FOLDED;
  const pieces: Piece[] = [];
  let at = from;
  let left = 0;
  const add = (until: number, isFold: boolean) => {
    const right = left + (isFold ? FOLDED : ((until - at) / open) * room);
    if (until > at) pieces.push({ from: at, to: until, left, right, isFold });
    at = until;
    left = right;
  };
  for (const one of inside) {
    add(one.from, false);
    add(one.to, true);
  }
  add(to, false);
  return {
    folds: inside,
    place: (ms) => {
      const piece = pieces.find((one) => ms <= one.to) ?? pieces.at(-1);
      if (!piece || ms <= from) return 0;
      return Math.min(1, piece.left + ((ms - piece.from) / (piece.to - piece.from)) * (piece.right - piece.left));
    },
    time: (part) => {
      const piece = pieces.find((one) => part <= one.right) ?? pieces.at(-1);
      if (!piece || part <= 0) return from;
      return Math.min(to, piece.from + ((part - piece.left) / (piece.right - piece.left || 1)) * (piece.to - piece.from));
    },
  };
}

/** The step-runs that the end waited for: from the last one back to whichever ended last among those before it. */
export function criticalPath(spans: Iterable<Span>, edges: readonly { source: string; target: string }[]): Set<string> {
  const ended = [...spans].filter((one) => one.ended).sort((a, b) => (a.ended?.[0] ?? 0) - (b.ended?.[0] ?? 0));
  const before = new Map<string, Set<string>>();
  for (const { source, target } of edges) before.set(target, (before.get(target) ?? new Set()).add(source));
  const found = new Set<string>();
  let last = ended.at(-1);
  for (let at = ended.length - 1; last && at >= 0; at -= 1) {
    const one = ended[at] as Span;
    if (found.size > 0 && !((one.ended?.[0] ?? 0) <= last.scheduled[0] && before.get(last.step)?.has(one.step))) continue;
    found.add(one.run);
    last = one;
  }
  return found;
}
