// One table for every state that the UI shows: word, hue, mark, look of a node's border, and which one wins in a summary.

export type Hue = "grey" | "blue" | "amber" | "green" | "red" | "violet";
export type MarkName =
  | "hollow" | "dots" | "play" | "hourglass" | "again" | "bars" | "check" | "half" | "cross" | "slash" | "dash" | "undo" | "forced" | "repaired";
export type Border = "thin" | "thick" | "dotted" | "dashed" | "dashdot";

export interface State {
  word: string;
  hue: Hue;
  mark: MarkName;
  border: Border;
  /** The higher one is shown where one mark stands for several things. */
  order: number;
}

const state = (word: string, hue: Hue, mark: MarkName, border: Border, order: number): State => ({ word, hue, mark, border, order });

const not_reached = state("not reached", "grey", "hollow", "dotted", 0);
const scheduled = state("scheduled", "grey", "dots", "thin", 4);
const running = state("running", "blue", "play", "thick", 8);
const waiting = state("waiting", "amber", "hourglass", "thick", 7);
const done = state("done", "green", "check", "thin", 3);
const skipped = state("skipped", "grey", "dash", "dotted", 1);
const cancelled = state("cancelled", "grey", "slash", "thin", 2);

export const STATES: Record<string, State> = {
  "": not_reached,
  not_reached,
  pending: { ...scheduled, word: "pending" },
  scheduled,
  queued: { ...scheduled, word: "queued" },
  running,
  started: running,
  waiting,
  suspended: { ...waiting, word: "suspended" },
  parked: { ...waiting, word: "parked" },
  joining: { ...waiting, word: "joining" },
  retrying: state("retrying", "amber", "again", "dashed", 6),
  paused: state("paused", "grey", "bars", "thin", 5),
  completed: { ...done, word: "completed" },
  done,
  partial: state("partial", "amber", "half", "thin", 9),
  failed: state("failed", "red", "cross", "thick", 10),
  cancelled,
  skipped,
  absorbed: { ...skipped, word: "absorbed" },
  undone: state("undone", "violet", "undo", "dashdot", 2),
  compensated: state("undone", "violet", "undo", "dashdot", 2),
  forced: state("forced", "green", "forced", "thin", 3),
  repaired: state("repaired", "green", "repaired", "thin", 3),
};

export const stateOf = (name: string | null | undefined): State => STATES[name ?? ""] ?? { ...not_reached, word: name ?? "" };

/** States of executions, in the order of filters. */
export const EXECUTION_STATES = ["pending", "running", "waiting", "paused", "completed", "partial", "failed", "cancelled"];
const ENDED = new Set(["completed", "partial", "failed", "cancelled"]);
export const hasEnded = (status: string): boolean => ENDED.has(status);

export interface Stroke {
  d: string;
  /** `ground` is drawn in the colour behind the mark. */
  paint: "line" | "fill" | "ground" | "ground-line";
}

const CIRCLE = "M8 2a6 6 0 1 1 0 12a6 6 0 1 1 0-12z";
const DIAMOND = "M8 1.2L14.8 8L8 14.8L1.2 8z";
const SQUARE = "M3 3h10v10H3z";
const CHECK = "M5.2 8.3l2 2l3.8-4.4";
const line = (d: string): Stroke => ({ d, paint: "line" });
const fill = (d: string): Stroke => ({ d, paint: "fill" });

/** Marks on a square of 16 × 16: drawn as SVG and, from the same paths, on canvas. */
export const MARKS: Record<MarkName, Stroke[]> = {
  hollow: [line(CIRCLE)],
  dots: [line(CIRCLE), fill("M4.6 7.2h1.6v1.6H4.6zM7.2 7.2h1.6v1.6H7.2zM9.8 7.2h1.6v1.6H9.8z")],
  play: [fill(CIRCLE), { d: "M6.4 5v6l5-3z", paint: "ground" }],
  hourglass: [line(DIAMOND), fill("M5.8 5h4.4L8 8zM5.8 11h4.4L8 8z")],
  again: [line(DIAMOND), line("M10 6.4A2.6 2.6 0 1 0 10.6 8.4"), fill("M10.9 4.6v2.6H8.3z")],
  bars: [line(SQUARE), fill("M5.8 5.4h1.6v5.2H5.8zM8.6 5.4h1.6v5.2H8.6z")],
  check: [line(CIRCLE), line(CHECK)],
  half: [line(CIRCLE), fill("M8 2a6 6 0 0 0 0 12z")],
  cross: [fill("M5.3 1.6h5.4l3.7 3.7v5.4l-3.7 3.7H5.3l-3.7-3.7V5.3z"), { d: "M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6", paint: "ground-line" }],
  slash: [line(SQUARE), line("M4.6 11.4l6.8-6.8")],
  dash: [line(CIRCLE), line("M5.2 8h5.6")],
  undo: [line("M4.5 2.5h7a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2z"), line("M5.4 10.6c3.6.6 5-1 5-3H6.2M7.8 5.8L6 7.6l1.8 1.8")],
  forced: [line(CIRCLE), line(CHECK), fill("M11 10h4v5h-4z")],
  repaired: [line(CIRCLE), line(CHECK), fill("M13 9.6a2.4 2.4 0 1 1 0 4.8a2.4 2.4 0 1 1 0-4.8z")],
};
