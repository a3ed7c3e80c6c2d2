// The timeline of very many step-runs: groups by step, and their lanes. tests/scenarios/test_screen_tracks.py runs this.
import { describe, expect, it } from "vitest";
import { type Group, grouped, stretchesOf } from "../src/timeline/group";
import { groupKey, openOf, rowsOf } from "../src/timeline/nest";
import { Scale } from "../src/timeline/scale";
import { span } from "./spans";

const rounds = (count: number, steps = ["a", "b"]) =>
  Array.from({ length: count }, (_, round) => steps.map((step, at) => span(`${step}#${round + 1}`, (round * steps.length + at) * 10, (round * steps.length + at) * 10 + 5 + at))).flat();
const isGroup = (one: object): one is Group => "spans" in one;
const nothing = { lists: new Map(), tracks: new Map() };

describe("step-runs", () => {
  it("are rows of their own while they can be read one by one", () => {
    const few = rounds(99);
    expect(grouped(few)).toEqual(few);
  });

  it("are a row for each step that ran often, at the place of its first", () => {
    const once = span("begin#1", 0, 1);
    const found = grouped([once, ...rounds(100), span("end#1", 3_000, 3_001)]);
    expect(found.map((one) => (isGroup(one) ? `${one.step} ×${one.spans.length}` : one.run))).toEqual(["begin#1", "a ×100", "b ×100", "end#1"]);
  });

  it("are counted with their shortest, median and longest time, and those that failed or did not end", () => {
    const lasted = [5, 1, 9, 4, ...Array.from({ length: 200 }, () => 4)];
    const spans = lasted.map((ms, at) => span(`a#${at + 1}`, at * 10, at * 10 + ms, at === 2 ? { state: "failed" } : {}));
    const [group] = grouped([...spans, span("a#205", 5_000, null, { state: "running" })]) as Group[];
    expect(group).toMatchObject({ step: "a", failed: 1, open: 1, times: { min: 1, median: 4, max: 9 } });
    const waiting = Array.from({ length: 200 }, (_, at) => span(`a#${at + 1}`, at, null, { started: null, state: "scheduled" }));
    expect((grouped(waiting) as Group[])[0]).toMatchObject({ open: 200, times: null });
    const even = [1, 3].flatMap((ms) => Array.from({ length: 100 }, (_, at) => span(`a#${ms}${at}`, 0, ms)));
    expect((grouped(even) as Group[])[0]?.times?.median).toBe(2);
  });

  it("are rows below their step when it is opened, at most as many as there are", () => {
    const entries = grouped(rounds(25_000));
    const keys = (open: string) => rowsOf(entries, 0, openOf(open), nothing).map((row) => (row.kind === "run" ? `${row.depth} ${row.span.run}` : row.key));
    expect(keys("")).toEqual([groupKey("a"), groupKey("b")]);
    const opened = keys(groupKey("a"));
    expect(opened.length).toBe(25_002);
    expect(opened.slice(0, 2)).toEqual([groupKey("a"), "1 a#1"]);
    expect(opened.at(-1)).toBe(groupKey("b"));
  });

  it("have keys that are neither a step-run's nor a child's, whatever the name of the step", () => {
    expect(groupKey("a/b,c")).toMatch(/^=[^/,]+$/);
  });
});

describe("a lane of many", () => {
  const scale = new Scale([0, 100], [], 100, 0);
  it("joins what touches and leaves gaps", () => {
    const spans = [span("a#1", 0, 10), span("a#2", 10, 20), span("a#3", 50, 60)];
    expect(stretchesOf(spans, scale, 100)).toEqual([{ look: "ran", x: 0, width: 20 }, { look: "ran", x: 50, width: 10 }]);
  });

  it("shows the worst of what lies on a pixel, and what is shorter than one", () => {
    const spans = [span("a#1", 0, 20), span("a#2", 5, 5, { state: "failed" }), span("a#3", 12, 18, { waits: [[14, 16, "signal"]] })];
    expect(stretchesOf(spans, scale, 100)).toEqual([
      { look: "ran", x: 0, width: 5 }, { look: "bad", x: 5, width: 1 }, { look: "ran", x: 6, width: 8 }, { look: "wait", x: 14, width: 2 }, { look: "ran", x: 16, width: 4 },
    ]);
  });

  it("has what lasts until now, and nothing outside the zoom", () => {
    const waiting = span("a#1", 90, null, { started: null, state: "scheduled" });
    expect(stretchesOf([waiting], scale, 95)).toEqual([{ look: "queued", x: 90, width: 5 }]);
    expect(stretchesOf([waiting, span("a#2", 0, 10)], new Scale([20, 60], [], 100, 0), 95)).toEqual([]);
  });

  it("has at most as many stretches as pixels, however many step-runs there are", () => {
    expect(stretchesOf(rounds(25_000), new Scale([0, 500_000], [], 1_000, 0), 500_000).length).toBeLessThanOrEqual(1_000);
  });
});
