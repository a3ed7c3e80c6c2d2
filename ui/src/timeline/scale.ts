// The scale of the timeline: milliseconds of an execution to pixels, with long gaps folded. Tested in ui/tests/timeline.test.ts.
import type { Span } from "../moments/track";
import { duration } from "../words/format";

export interface Gap {
  from: number;
  to: number;
}
export type Range = [from: number, to: number];
interface Piece extends Gap {
  x: number;
  width: number;
  /** The gap that it stands for; its start is its name. */
  fold?: Gap;
}
export interface Fold extends Piece {
  fold: Gap;
}

const LEAST_GAP = 1_000; // a shorter one is not worth a break in the scale
const LEAST_RANGE = 2;
const MOST_FOLDED = 0.6; // of the width
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND), ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), ...[1, 2, 3, 6, 12, 24].map((n) => n * HOUR)];

/** Times in which no step-run was queued, running or waiting for a child: all of them waited, paused or had ended. */
export function gapsOf(spans: Iterable<Span>, until: number): Gap[] {
  const busy: Range[] = [];
  for (const span of spans) {
    let since = span.scheduled[1];
    for (const [from, to, cause] of span.waits) {
      if (cause === "child") continue;
      if (from > since) busy.push([since, from]);
      since = Math.max(since, to ?? until);
    }
    const end = span.ended?.[1] ?? until;
    if (end > since) busy.push([since, end]);
  }
  busy.sort((a, b) => a[0] - b[0]);
  const gaps: Gap[] = [];
  let reached = 0;
  for (const [from, to] of [...busy, [until, until] as Range]) {
    if (from > reached) gaps.push({ from: reached, to: Math.min(from, until) });
    reached = Math.max(reached, to);
  }
  return gaps;
}

/** The gaps to fold: each is longer than a third of what would be shown without it. The longest go first; never everything. */
export function foldsOf(gaps: readonly Gap[], [from, to]: Range, unfolded: ReadonlySet<number> = new Set()): Gap[] {
  const length = (gap: Gap) => Math.min(gap.to, to) - Math.max(gap.from, from);
  let shown = to - from;
  const found: Gap[] = [];
  for (const gap of [...gaps].sort((a, b) => length(b) - length(a))) {
    const long = length(gap);
    if (long < LEAST_GAP || long <= shown / 3) break;
    if (unfolded.has(gap.from) || long >= shown) continue;
    found.push(gap);
    shown -= long;
  }
  return found.sort((a, b) => a.from - b.from);
}

/** Milliseconds to pixels and back; a folded gap is as wide as its label. */
export class Scale {
  readonly pieces: Piece[] = [];
  readonly #perMs: number;

  constructor(readonly range: Range, folds: readonly Gap[], readonly width: number, foldWidth: number) {
    const [from, to] = range;
    const cut = folds.map((fold) => ({ fold, from: Math.max(from, fold.from), to: Math.min(to, fold.to) })).filter((one) => one.to > one.from);
    const wide = cut.length ? Math.min(foldWidth, (width * MOST_FOLDED) / cut.length) : 0;
    const shown = to - from - cut.reduce((sum, one) => sum + one.to - one.from, 0);
    this.#perMs = (width - wide * cut.length) / Math.max(1, shown);
    let at = from;
    let x = 0;
    const add = (end: number, length: number, fold?: Gap) => {
      this.pieces.push({ from: at, to: end, x, width: length, fold });
      at = end;
      x += length;
    };
    for (const one of cut) {
      if (one.from > at) add(one.from, (one.from - at) * this.#perMs);
      add(one.to, wide, one.fold);
    }
    if (to > at || !this.pieces.length) add(to, (to - at) * this.#perMs);
  }

  get folds(): Fold[] {
    return this.pieces.filter((piece): piece is Fold => piece.fold !== undefined);
  }
  has = (ms: number): boolean => ms >= this.range[0] && ms <= this.range[1];

  /** The place of a time; times outside the range are at its edges. */
  x(ms: number): number {
    const time = Math.max(this.range[0], Math.min(this.range[1], ms));
    let at = 0;
    while (at < this.pieces.length - 1 && time > (this.pieces[at] as Piece).to) at += 1;
    const piece = this.pieces[at] as Piece;
    return piece.x + (piece.to > piece.from ? ((time - piece.from) / (piece.to - piece.from)) * piece.width : 0);
  }
  /** The time at a place, in whole milliseconds. */
  time(x: number): number {
    const place = Math.max(0, Math.min(this.width, x));
    const piece = this.pieces.find((one) => place <= one.x + one.width) ?? (this.pieces.at(-1) as Piece);
    return Math.round(piece.from + (piece.width ? (place - piece.x) / piece.width : 0) * (piece.to - piece.from));
  }

  /** Round times at least `apart` pixels apart, none in a fold or so near to its start that the words would cover it. */
  ticks(apart: number): { ms: number; x: number; text: string }[] {
    const step = STEPS.find((one) => one * this.#perMs >= apart) ?? Math.ceil(apart / this.#perMs / (24 * HOUR)) * 24 * HOUR;
    const found: { ms: number; x: number; text: string }[] = [];
    for (const piece of this.pieces) {
      if (piece.fold) continue;
      for (let ms = Math.ceil(piece.from / step) * step; ms <= piece.to; ms += step) {
        const x = this.x(ms);
        if (x + apart <= piece.x + piece.width + 1) found.push({ ms, x, text: tickText(ms, step) });
      }
    }
    return found;
  }
}

/** A time as exact as the steps of its axis are. */
export function tickText(ms: number, step: number): string {
  if (ms < SECOND || step >= MINUTE || (step >= SECOND && ms < HOUR)) return duration(ms);
  const rest = ((ms % MINUTE) / SECOND).toFixed(step < SECOND ? Math.ceil(-Math.log10(step / SECOND)) : 0);
  return [ms >= HOUR ? `${Math.floor(ms / HOUR)} h` : "", ms >= MINUTE ? `${Math.floor((ms % HOUR) / MINUTE)} min` : "", `${rest} s`].filter(Boolean).join(" ");
}

/** A range as the address holds it, within the whole time; nothing if it is not one. */
export function rangeOf(text: string | undefined, total: number): Range | undefined {
  const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? "") ?? [];
  const found: Range = [Math.min(Number(from), total), Math.min(Number(to), total)];
  return found[1] - found[0] >= LEAST_RANGE ? found : undefined;
}
/** A range for the address; nothing if it is the whole time. */
export function zoomOf([from, to]: Range, total: number): string | undefined {
  const whole: Range = [Math.max(0, Math.round(Math.min(from, to))), Math.min(total, Math.round(Math.max(from, to)))];
  if (whole[1] - whole[0] < LEAST_RANGE) whole[1] = Math.min(total, whole[0] + LEAST_RANGE);
  return whole[0] <= 0 && whole[1] >= total ? undefined : `${whole[0]}-${whole[1]}`;
}
/** A range `times` as long around a time that keeps its place; within the whole time. */
export function zoomed([from, to]: Range, times: number, around: number, total: number): Range {
  if ((to - from) * times >= total * 0.98) return [0, total]; // whole milliseconds would leave a rest
  const middle = around >= from && around <= to ? around : (from + to) / 2;
  const start = Math.max(0, middle - (middle - from) * times);
  return [start, Math.min(total, start + (to - from) * times)];
}
