// The scale of the timeline: what folds, where times are, which step-runs the end waited for.
import { describe, expect, it } from "vitest";
import type { Span } from "../src/moments/track";
import { criticalPath, foldsOf, scaleOf } from "../src/timeline/folds";

let seq = 0;
const span = (step: string, from: number, to: number | null, waits: Span["waits"] = []): Span => ({
  run: `${step}#1`, step, scheduled: [++seq, from], started: [++seq, from], ended: to === null ? null : [++seq, to], state: "done", worker: "", role: "",
  attempts: [], waits, child: null, of: null, items: null,
});

describe("folds", () => {
  it("folds a long wait for a person, and not the work around it", () => {
    expect(foldsOf([span("ask", 0, 101_000, [[1_000, 100_000, "signal"]])], 101_000)).toEqual([{ from: 1_000, to: 100_000 }]);
  });
  it("folds a wait that has not ended", () => {
    expect(foldsOf([span("ask", 0, null, [[1_000, null, "signal"]])], 61_000)).toEqual([{ from: 1_000, to: 61_000 }]);
  });
  it("keeps a wait in which another step runs, queue time, and what is short", () => {
    expect(foldsOf([span("ask", 0, 90_000, [[0, 90_000, "signal"]]), span("work", 0, 90_000)], 90_000)).toEqual([]);
    expect(foldsOf([{ ...span("late", 0, 90_000), started: [9, 80_000] }], 90_000)).toEqual([]);
    expect(foldsOf([span("nap", 0, 900, [[10, 890, "sleep"]])], 900)).toEqual([]);
  });
});

describe("scale", () => {
  const scale = scaleOf(0, 101_000, [{ from: 1_000, to: 100_000 }]);
  it("gives a fold little room and the rest to the work", () => {
    expect([0, 1_000, 100_000, 101_000].map((ms) => Number(scale.place(ms).toFixed(3)))).toEqual([0, 0.475, 0.525, 1]);
  });
  it("finds the time of every place, and the place of every time", () => {
    for (const ms of [0, 1, 999, 1_000, 50_000, 100_000, 100_500, 101_000]) expect(scale.time(scale.place(ms))).toBeCloseTo(ms, 6);
    for (const part of [0, 0.1, 0.475, 0.5, 0.9, 1]) expect(scale.place(scale.time(part))).toBeCloseTo(part, 9);
  });
  it("keeps times outside of a zoomed part at its edges", () => {
    const near = scaleOf(200, 400, []);
    expect([100, 200, 300, 400, 500].map(near.place)).toEqual([0, 0, 0.5, 1, 1]);
  });
});

describe("critical path", () => {
  it("goes back over the branch that came last to a join", () => {
    seq = 0;
    const start = span("start", 0, 10);
    const quick: Span = { ...span("quick", 10, 20), scheduled: [4, 10], ended: [6, 20] };
    const slow: Span = { ...span("slow", 10, 90), scheduled: [5, 10], ended: [9, 90] };
    const meet: Span = { ...span("meet", 90, 95), scheduled: [10, 90], ended: [12, 95] };
    const edges = [["start", "quick"], ["start", "slow"], ["quick", "meet"], ["slow", "meet"]].map(([source, target]) => ({ source: source as string, target: target as string }));
    expect([...criticalPath([start, quick, slow, meet], edges)]).toEqual(["meet#1", "slow#1", "start#1"]);
  });
});
