// The look-up of a track over what the server projects: tests/scenarios/test_screen_tracks.py writes the cases and runs this.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Span, Track, type TrackPart, upperBound } from "../src/moments/track";

interface Moment {
  seq: number;
  ms: number;
  status: string;
  steps: Record<string, string>;
  tokens: Record<string, number>;
  joins: Record<string, [number, number]>;
  series: Record<string, number>;
  runs: Record<string, string[]>;
}
interface Case {
  parts: TrackPart[];
  moments: Moment[];
  /** Every step-run at the end, as a short answer has it. */
  rows: Span[];
}
const folder = process.env.NOETL_TRACKS ?? "";
const names = folder ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];

describe("a track", () => {
  it("has cases", () => expect(names.length).toBeGreaterThan(0));

  it.each(names)("of %s shows what the fold has at every event, forwards and backwards", (name) => {
    const { parts, moments } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Case;
    const whole = new Track();
    for (const part of parts) expect(whole.apply(part)).toBe(true);
    const steps = new Set(moments.flatMap((one) => Object.keys(one.steps)));
    const places = new Set(moments.flatMap((one) => [...Object.keys(one.tokens), ...Object.keys(one.joins)]));
    for (const one of [...moments, ...moments.toReversed()]) {
      const { seq } = one;
      expect(whole.status(seq)).toBe(one.status);
      expect(Object.fromEntries([...steps].map((step) => [step, whole.step(step, seq)]).filter(([, state]) => state))).toEqual(one.steps);
      expect(Object.fromEntries([...places].map((step) => [step, whole.at(`n:${step}`, seq)]).filter(([, count]) => count))).toEqual(one.tokens);
      expect(Object.fromEntries([...places].map((step) => [step, whole.join(step, seq)]).filter(([, found]) => found))).toEqual(one.joins);
      for (const [key, value] of Object.entries(one.series)) expect([key, whole.at(key, seq)]).toEqual([key, value]);
      if (seq > 0) expect(whole.timeOf(seq)).toBe(one.ms);
      for (const [step, runs] of Object.entries(one.runs)) expect(whole.runsOf(step, seq).map((span) => span.run)).toEqual(runs);
    }
  });

  it.each(names)("of %s has every step-run, whether it came in a row or in columns", (name) => {
    const { parts, rows } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Case;
    const whole = new Track();
    for (const part of parts) whole.apply(part);
    expect([...whole.runs.keys()].sort()).toEqual(rows.map((row) => row.run).sort());
    for (const row of rows) expect(whole.runs.get(row.run)).toEqual(row);
  });

  it("of the cases came in columns too", () => {
    const parts = names.flatMap((name) => (JSON.parse(readFileSync(join(folder, name), "utf8")) as Case).parts);
    expect(parts.some((part) => part.plain?.run.length)).toBe(true);
    expect(parts.some((part) => part.runs.length)).toBe(true);
  });

  it.each(names)("of %s asks for the whole when a part does not continue it", (name) => {
    const { parts } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Case;
    const late = parts.at(-1) as TrackPart;
    if (late.after === 0) return;
    const empty = new Track();
    expect(empty.apply(late)).toBe(false);
    expect(empty.seq).toBe(0);
  });
});

describe("upperBound", () => {
  it("finds the first greater value", () => {
    const sorted = [1, 3, 3, 7];
    expect([0, 1, 2, 3, 6, 7, 8].map((value) => upperBound(sorted, value))).toEqual([0, 1, 1, 3, 3, 4, 4]);
    expect(upperBound([], 1)).toBe(0);
  });
});
