// The timeline: gaps, folds, places of times, the critical path. tests/scenarios/test_screen_tracks.py runs this.
import { describe, expect, it } from "vitest";
import { type Span, Track } from "../src/moments/track";
import { keyOf, openOf, rowsOf } from "../src/timeline/nest";
import { criticalPath, lastChild } from "../src/timeline/path";
import { foldsOf, gapsOf, rangeOf, Scale, tickText, zoomed, zoomOf } from "../src/timeline/scale";
import { span } from "./spans";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("gaps", () => {
  it("are times in which no step-run was queued or running", () => {
    expect(gapsOf([span("a#1", 0, 10), span("b#1", 5, 20), span("c#1", 50, 60)], 100)).toEqual([{ from: 20, to: 50 }, { from: 60, to: 100 }]);
    expect(gapsOf([], 100)).toEqual([{ from: 0, to: 100 }]);
    expect(gapsOf([span("a#1", 0, 100)], 100)).toEqual([]);
  });

  it("are waits for signals, time and attempts, but not for workers or children", () => {
    const waits = (cause: string): Span["waits"] => [[10, 90, cause]];
    for (const cause of ["signal", "sleep", "delay"]) expect(gapsOf([span("a#1", 0, 100, { waits: waits(cause) })], 100)).toEqual([{ from: 10, to: 90 }]);
    expect(gapsOf([span("a#1", 0, 100, { waits: waits("child") })], 100)).toEqual([]);
    expect(gapsOf([span("a#1", 0, null, { started: null, state: "scheduled" })], 100)).toEqual([]);
  });

  it("last until now while a step-run waits, and end where another one works", () => {
    const asked = span("ask#1", 0, null, { waits: [[10, null, "signal"]] });
    expect(gapsOf([asked], 100)).toEqual([{ from: 10, to: 100 }]);
    expect(gapsOf([asked, span("log#1", 0, 40)], 100)).toEqual([{ from: 40, to: 100 }]);
    expect(gapsOf([span("meet#1", 50, 60, { waits: [[20, 50, "join"]] })], 60)).toEqual([{ from: 0, to: 50 }]);
  });
});

describe("folds", () => {
  const gap = (from: number, to: number) => ({ from, to });

  it("are gaps longer than a third of what is shown", () => {
    expect(foldsOf([gap(10_000, 50_000)], [0, 100_000])).toEqual([gap(10_000, 50_000)]);
    expect(foldsOf([gap(10_000, 43_000)], [0, 100_000])).toEqual([]);
  });

  it("make room for shorter ones that are then longer than a third of the rest", () => {
    expect(foldsOf([gap(10_000, 20_000), gap(30_000, 90_000)], [0, 100_000])).toEqual([gap(30_000, 90_000)]);
    expect(foldsOf([gap(10_000, 30_000), gap(30_500, 90_000)], [0, 100_000])).toEqual([gap(10_000, 30_000), gap(30_500, 90_000)]);
  });

  it("leave something to be shown, and what was unfolded", () => {
    expect(foldsOf([gap(0, 100_000)], [0, 100_000])).toEqual([]);
    expect(foldsOf([gap(0, 100_000)], [10_000, 20_000])).toEqual([]);
    expect(foldsOf([gap(10_000, 50_000)], [0, 100_000], new Set([10_000]))).toEqual([]);
    expect(foldsOf([gap(10, 900)], [0, 1_000])).toEqual([]); // under a second
  });
});

describe("a scale", () => {
  const fold = { from: 4 * MINUTE, to: 4 * MINUTE + 2 * HOUR };
  const whole: [number, number] = [0, fold.to + 6 * MINUTE];
  const scale = new Scale(whole, [fold], 1_080, 80);

  it("gives a fold its width and shares the rest by time", () => {
    expect([0, 2 * MINUTE, fold.from, fold.to, whole[1]].map((ms) => scale.x(ms))).toEqual([0, 200, 400, 480, 1_080]);
    expect(scale.x(fold.from + HOUR)).toBe(440);
    expect(scale.folds).toEqual([{ from: fold.from, to: fold.to, x: 400, width: 80, fold }]);
  });

  it("finds the time of a place, and the place of that time", () => {
    for (let x = 0; x <= 1_080; x += 27) expect(scale.x(scale.time(x))).toBeCloseTo(x, 1);
    expect([scale.time(-5), scale.time(2_000)]).toEqual(whole);
    expect([scale.x(-5), scale.x(whole[1] * 2)]).toEqual([0, 1_080]);
  });

  it("rises with time, whatever is folded", () => {
    const places = Array.from({ length: 500 }, (_, at) => scale.x((whole[1] * at) / 499));
    for (let at = 1; at < places.length; at += 1) expect(places[at]).toBeGreaterThan(places[at - 1] as number);
  });

  it("shows a part of the time, with the part of a fold that lies in it", () => {
    const part = new Scale([fold.from - MINUTE, fold.from + HOUR], [fold], 180, 80);
    expect([part.x(fold.from), part.x(fold.from + HOUR)]).toEqual([100, 180]);
    expect(new Scale([0, MINUTE], [fold], 600, 80).folds).toEqual([]);
    expect([new Scale([0, 0], [], 600, 80).x(0), new Scale([0, 10], [], 0, 80).x(5)]).toEqual([0, 0]);
  });

  it("keeps room for the bars when many folds share a narrow screen", () => {
    const two = new Scale([0, 300_000], [{ from: 1_000, to: 100_000 }, { from: 101_000, to: 299_000 }], 100, 80);
    expect(two.folds.map((one) => one.width)).toEqual([30, 30]);
    expect(two.x(300_000)).toBeCloseTo(100);
  });

  it("has ticks at round times outside its folds", () => {
    expect(scale.ticks(90).map((tick) => [tick.text, tick.x])).toEqual([
      ["0 ms", 0], ["1 min 00 s", 100], ["2 min 00 s", 200], ["3 min 00 s", 300],
      ["2 h 04 min", 480], ["2 h 05 min", 580], ["2 h 06 min", 680], ["2 h 07 min", 780], ["2 h 08 min", 880], ["2 h 09 min", 980],
    ]);
    expect(tickText(61_020, 20)).toBe("1 min 1.02 s");
    expect(tickText(HOUR + 5_000, 5_000)).toBe("1 h 0 min 5 s");
    expect(tickText(2_500, 500)).toBe("2.5 s");
  });
});

describe("a zoomed range", () => {
  it("is what the address says, within the whole time", () => {
    expect(rangeOf("100-900", 1_000)).toEqual([100, 900]);
    expect(rangeOf("100-9000", 1_000)).toEqual([100, 1_000]);
    for (const wrong of [undefined, "", "900-100", "5-5", "2000-3000", "a-b", "1-2-3"]) expect(rangeOf(wrong, 1_000)).toBeUndefined();
    expect([zoomOf([900.4, 99.6], 1_000), zoomOf([0, 1_000], 1_000), zoomOf([5, 5], 1_000)]).toEqual(["100-900", undefined, "5-7"]);
  });

  it("halves and doubles around a moment, or around its middle", () => {
    expect(zoomed([0, 1_000], 0.5, 250, 1_000)).toEqual([125, 625]);
    expect(zoomed([0, 1_000], 0.5, 5_000, 1_000)).toEqual([250, 750]);
    expect(zoomed([126, 625], 2, 250, 1_000)).toEqual([0, 1_000]);
  });
});

describe("the critical path", () => {
  const path = (...spans: Span[]) => [...criticalPath(spans)];
  const fork = [span("fork#1", 0, 10), span("left#1", 10, 50, { after: "fork#1" }), span("right#1", 10, 30, { after: "fork#1" })];

  it("goes back over the last token of a join", () => {
    expect(path(...fork, span("meet#1", 50, 60, { after: "left#1" }))).toEqual(["meet#1", "left#1", "fork#1"]);
    expect(path(...fork)).toEqual(["left#1", "fork#1"]);
    expect(path()).toEqual([]);
  });

  it("ends at the first of those that still run", () => {
    expect(path(...fork, span("a#1", 60, null, { after: "right#1" }), span("b#1", 70, null, { after: "left#1" }))).toEqual(["a#1", "right#1", "fork#1"]);
  });

  it("leads from a final step or a compensation to the end before it", () => {
    expect(path(...fork, span("report#1", 60, 70, { role: "final" }))).toEqual(["report#1", "left#1", "fork#1"]);
    expect(path(...fork, span("fork!1", 51, 60, { role: "compensation", of: "fork#1" }))).toEqual(["fork!1", "left#1", "fork#1"]);
  });

  it("leaves out what was stopped at the end and what was retried after it", () => {
    const stopped = span("right#1", 10, 50, { after: "fork#1", state: "cancelled", ended: [99, 50] });
    expect(path(...fork.slice(0, 2), stopped, span("left#1!1", 100, 200, { role: "replay" }))).toEqual(["left#1", "fork#1"]);
    expect(path(fork[0] as Span, stopped)).toEqual(["right#1", "fork#1"]);
  });

  it("ends in a circle of names, and where older step-runs are not kept", () => {
    expect(path(span("a#1", 0, 10, { after: "b#1" }), span("b#1", 0, 5, { after: "a#1" }))).toEqual(["a#1", "b#1"]);
    expect(path(span("a#9", 0, 10, { after: "a#8" }))).toEqual(["a#9"]);
  });
});

describe("the critical path below a step-run", () => {
  const child = (id: string, started: number, ended: number | null) => ({ id, path: id, item: null, started, ended, status: ended === null ? "running" : "completed" });
  const track = (...runs: Span[]) => {
    const made = new Track();
    made.apply({ after: 0, seq: 9, t0: 0, head_at: 9, every: 1, times: [0], runs, dropped: 0, series: {}, thinned: [], states: [""] });
    return { data: made, error: null };
  };
  const shown = (span: Span, children: ReturnType<typeof child>[], tracks: [string, ReturnType<typeof track>][], critical: string[]) => {
    const lists = new Map([[keyOf("", span.run), { data: children, error: null }]]);
    const rows = rowsOf([span], 0, openOf([keyOf("", span.run), ...tracks.map(([id]) => id)].join(",")), { lists, tracks: new Map(tracks) }, new Set(critical));
    return rows.filter((row) => "isCritical" in row && row.isCritical).map((row) => (row.kind === "run" ? row.span.run : row.kind === "child" ? row.child.id : row.kind));
  };

  it("leads over the child that ended last, and over its step-runs", () => {
    const call = span("call#1", 0, 50, { children: 2 });
    const tracks: [string, ReturnType<typeof track>][] = [
      ["early", track(span("x#1", 0, 10))],
      ["late", track(span("y#1", 0, 10), span("z#1", 0, 30))],
    ];
    expect(shown(call, [child("early", 0, 10), child("late", 0, 30)], tracks, ["call#1"])).toEqual(["call#1", "late", "z#1"]);
    expect(shown(call, [child("early", 0, 10), child("late", 0, 30)], tracks, [])).toEqual([]); // its step-run is not on it
  });

  it("is that of the first while several run, and of none where only some of many are listed", () => {
    expect(lastChild([child("a", 5, null), child("b", 3, null), child("c", 0, 9)])?.id).toBe("b");
    expect(lastChild([])).toBeUndefined();
    expect(shown(span("call#1", 0, 50, { children: 51 }), [child("a", 0, 10)], [], ["call#1"])).toEqual(["call#1"]);
  });
});
