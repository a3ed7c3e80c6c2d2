import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, useDeferredValue, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Span, Track } from "../moments/track";
import { useIsPhone } from "../moments/use";
import { Button, useTick } from "../parts/controls";
import { Sign } from "../parts/Mark";
import { sentence, type Told } from "../words/events";
import { count, duration, now, plain, shortId } from "../words/format";
import type { Hue, MarkName } from "../words/states";
import { Axis } from "./axis";
import { type Group, grouped } from "./group";
import { inOrder, openOf, type Row, rowsOf, useNest } from "./nest";
import { criticalPath } from "./path";
import { Bars, Disclosure, Figures, Lane, Name, Nested, type Shown, wordsOf, wordsOfGroup } from "./row";
import { foldsOf, gapsOf, type Range, rangeOf, Scale, zoomed, zoomOf } from "./scale";
import css from "./timeline.module.css";

/** What of the timeline the address holds. */
export interface TimelineSearch {
  /** The part of the time that is shown, in milliseconds: `1200-3400`. */
  zoom?: string;
  /** Gaps that are not folded, by their starts. */
  unfold?: string;
  /** Rows whose step-runs or children are shown. */
  nest?: string;
}
interface Props {
  id: string;
  track: Track;
  seq: number;
  isLive: boolean;
  ended: boolean;
  step?: string;
  run?: string;
  /** Late reports, repairs and steps that a person completed. */
  marked: readonly (Told & { seq: number })[];
  search: TimelineSearch;
  onSearch: (next: TimelineSearch, replace: boolean) => void;
  onRun: (span: Span) => void;
}
const SIGNS: Record<string, [MarkName, Hue]> = { "step.forced": ["forced", "violet"], "step.repaired": ["repaired", "green"], "loop.item.repaired": ["repaired", "green"], "report.late": ["hourglass", "amber"] };
const MANY = 5_000;
const NONE: readonly Span[] = [];
const FOLD = { desk: 92, phone: 72 };

/** One row per step-run, or per step where there are very many: queued, running, waiting and pauses between attempts. */
export function Timeline({ id, track, seq, isLive, ended, step, run, marked, search, onSearch, onRun }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const tick = useTick(1_000, isLive && !ended);
  const until = isLive && !ended ? Math.max(track.timeOf(track.seq), Math.min(tick, now()) - track.t0) : track.timeOf(track.seq);
  const total = Math.max(1, until);
  const all = useMemo(() => inOrder(track), [track, track.seq]);
  const { scale, lane, isZoomed, unfolded } = useScale(all, total, search);
  const shown = useMemo(() => (isZoomed ? all.filter((span) => isIn(span, scale.range, until)) : all), [all, isZoomed, scale, until]);
  const open = useMemo(() => openOf(search.nest), [search.nest]);
  const nested = useNest(id, track, open);
  const entries = useMemo(() => grouped(shown), [shown]);
  // Of very many step-runs the path may follow a frame later than the rows.
  const known = useDeferredValue(all, all.length > MANY ? NONE : all);
  const critical = useMemo(() => criticalPath(known), [known]);
  const rows = useMemo(() => rowsOf(entries, track.t0, open, nested, critical).filter((row) => !isZoomed || row.kind !== "run" || isIn(row.span, scale.range, until)), [entries, track, open, nested, critical, isZoomed, scale, until]);
  const isGrouped = entries.length < shown.length;
  const isTree = useMemo(() => isGrouped || all.some((span) => span.children > 0), [all, isGrouped]);
  const toggle = (key: string) => onSearch({ nest: [...open].filter((one) => one !== key).concat(open.has(key) ? [] : key).join(",") || undefined }, true);
  const marks = useMemo(() => byRun(marked, track), [marked, track, track.seq]);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => 26, overscan: 10 });
  const here = track.timeOf(seq);
  const common: Shown = { scale, until, here, up: isLive ? undefined : seq };
  // A button that goes away leaves the focus here.
  const change = (next: TimelineSearch) => {
    onSearch(next, true);
    scroller.current?.focus({ preventScroll: true });
  };
  const zoom = (range: Range) => onSearch({ zoom: zoomOf(range, total) }, true);
  const whole = () => onSearch({ zoom: undefined }, true);
  const by = (times: number) => zoom(zoomed(scale.range, times, here, total));
  const shift = (part: number) => {
    const [from, to] = scale.range;
    const far = Math.max(-from, Math.min(total - to, (to - from) * part));
    zoom([from + far, to + far]);
  };
  const pressed = (event: KeyboardEvent) => {
    const keys: Record<string, () => void> = { "+": () => by(0.5), "=": () => by(0.5), "-": () => by(2), "0": whole };
    if (isZoomed) Object.assign(keys, { Escape: whole, ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25) });
    const does = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!does) return;
    event.preventDefault(); // the page has another meaning for Escape
    does();
  };
  return (
    <div className={`${css.timeline} ${isGrouped ? css.grouped : ""}`} onKeyDown={pressed}>
      <div className={css.tools}>
        <Legend />
        <span className={css.fill} />
        {isZoomed ? <span className={css.range} role="status">{count(shown.length)} of {count(all.length)} step-runs, {duration(scale.range[1] - scale.range[0])}</span> : null}
        {isGrouped && !isZoomed ? <span className={`${css.range} ${css.key}`}>{count(all.length)} step-runs, by step: shortest · median · longest</span> : null}
        {unfolded.size ? <Button kind="quiet" className={css.tool} onClick={() => change({ unfold: undefined })}>Fold gaps</Button> : null}
        {isZoomed ? <Button kind="quiet" className={css.tool} onClick={() => change({ zoom: undefined })} title="Show the whole time (0, or Escape)">Whole time</Button> : null}
      </div>
      <div className={css.scroller} ref={scroller} role="group" aria-label="Timeline: + and - zoom, 0 shows the whole time" tabIndex={0}>
        <Axis scale={scale} lane={lane} onZoom={zoom} onWhole={whole} onUnfold={(gap) => change({ unfold: [...unfolded, gap].join(".") })} />
        <div className={`${css.body} ${isTree ? css.tree : ""}`} style={{ height: virtual.getTotalSize() }} role="list" aria-label="Step-runs in time">
          <div className={css.rail} aria-hidden>
            {scale.folds.map((one) => <span key={one.fold.from} className={css.ground} style={{ left: one.x, width: one.width }} />)}
          </div>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index] as Row;
            return (
              <div key={row.key} role="listitem" className={css.item} data-depth={row.depth} style={{ transform: `translateY(${item.start}px)`, "--depth": row.depth } as CSSProperties}>
                {row.kind === "group" ? (
                  <button type="button" data-of-step={row.group.step} data-critical={row.isCritical || undefined} className={`${css.row} ${row.group.step === step ? css.selected : ""} ${(row.group.spans[0] as Span).scheduled[0] <= seq ? "" : css.later}`} title={wordsOfGroup(row.group, row.isCritical)} onClick={() => onRun(lastOf(row.group, seq))}>
                    <Name state={track.step(row.group.step, seq)} title={row.group.step}>{plain(row.group.step)}</Name>
                    <span className={css.lane}>
                      <Lane spans={row.group.spans} scale={scale} until={until} />
                      <Signs events={marks.size ? row.group.spans.flatMap((span) => marks.get(span.run) ?? []) : []} track={track} scale={scale} />
                      <Figures group={row.group} />
                    </span>
                  </button>
                ) : row.kind === "run" && !row.execution ? (
                  <button type="button" data-of-step={row.span.step} data-critical={row.isCritical || undefined} className={`${css.row} ${row.span.run === run || (!run && row.span.step === step) ? css.selected : ""} ${row.span.scheduled[0] <= seq ? "" : css.later}`} title={wordsOf(row.span, until, row.isCritical)} onClick={() => onRun(row.span)}>
                    <Name state={stateAt(row.span, seq)} title={row.span.run}>{plain(row.span.run)}</Name>
                    <span className={css.lane}>
                      <Bars span={row.span} scale={scale} until={until} isCritical={row.isCritical} />
                      <Signs events={marks.get(row.span.run) ?? []} track={track} scale={scale} />
                    </span>
                  </button>
                ) : (
                  <Nested row={row} {...common} />
                )}
                {row.kind === "run" && row.span.children ? <Disclosure isOpen={row.isOpen} label={`Children of ${row.span.run}`} onToggle={() => toggle(row.key)} /> : null}
                {row.kind === "group" ? <Disclosure isOpen={row.isOpen} label={`${count(row.group.spans.length)} step-runs of ${plain(row.group.step)}`} onToggle={() => toggle(row.key)} /> : null}
                {row.kind === "child" && !row.isSole ? <Disclosure isOpen={row.isOpen} label={`Step-runs of ${plain(row.child.path)} ${shortId(row.child.id)}`} onToggle={() => toggle(row.child.id)} /> : null}
              </div>
            );
          })}
          <div className={css.rail} aria-hidden>
            {scale.folds.map((one) => <span key={one.fold.from} className={css.band} style={{ left: one.x, width: one.width }} />)}
            {scale.has(here) ? <span className={css.now} data-moment style={{ left: scale.x(here) }} /> : null}
          </div>
        </div>
      </div>
    </div>
  );
}

/** What others did to a step-run, at its time. */
function Signs({ events, track, scale }: { events: Props["marked"]; track: Track; scale: Scale }) {
  return events
    .filter((one) => scale.has(track.timeOf(one.seq)))
    .map((one) => (
      <span key={one.seq} className={css.mark} style={{ left: scale.x(track.timeOf(one.seq)) }}>
        <Sign mark={SIGNS[one.event_type]?.[0] ?? "dots"} hue={SIGNS[one.event_type]?.[1] ?? "grey"} label={`event ${one.seq}: ${sentence(one)}`} size={16} />
      </span>
    ));
}

/** The scale of what is shown, as wide as its lane. */
function useScale(spans: readonly Span[], total: number, search: TimelineSearch) {
  const [element, lane] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element) return;
    setWidth(element.getBoundingClientRect().width);
    const watch = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    watch.observe(element);
    return () => watch.disconnect();
  }, [element]);
  const fold = useIsPhone() ? FOLD.phone : FOLD.desk;
  const gaps = useMemo(() => gapsOf(spans, total), [spans, total]);
  const unfolded = useMemo(() => new Set((search.unfold ?? "").split(".").filter((one) => /^\d+$/.test(one)).map(Number)), [search.unfold]);
  const zoom = rangeOf(search.zoom, total);
  const [from, to] = zoom ?? [0, total];
  const scale = useMemo(() => new Scale([from, to], foldsOf(gaps, [from, to], unfolded), width, fold), [from, to, gaps, unfolded, width, fold]);
  return { scale, lane, isZoomed: zoom !== undefined, unfolded };
}

const stateAt = (span: Span, seq: number): string => (span.scheduled[0] > seq ? "" : span.ended && span.ended[0] > seq ? "running" : span.state);
/** The last step-run of a group at a moment, or its first one. */
const lastOf = ({ spans }: Group, seq: number): Span => spans.findLast((span) => span.scheduled[0] <= seq) ?? (spans[0] as Span);
const isIn = (span: Span, [from, to]: Range, until: number): boolean => Math.min(span.scheduled[1], span.waits[0]?.[0] ?? Infinity) <= to && (span.ended?.[1] ?? until) >= from;

const LEGEND: [look: string, word: string, title: string][] = [
  ["queued", "queued", "Waited for a worker"],
  ["ran", "ran", "A worker ran it"],
  ["wait", "waited", "Waited for a signal, a timer, siblings or a child"],
  ["pause", "retry pause", "Waited for the next attempt"],
  ["bad", "failed attempt", "An attempt that failed"],
  ["critical", "critical path", "The chain of step-runs that determined the duration: each was started by the one before, at a join by the last to arrive. To make the execution faster, make one of them faster."],
];

function Legend() {
  return (
    <ul className={css.legend} aria-label="Legend">
      {LEGEND.map(([look, word, title]) => (
        <li key={look} title={title}>
          <span className={`${css.swatch} ${css[look]} ${css.blue}`} aria-hidden>{look === "bad" ? "✕" : ""}</span>
          {word}
        </li>
      ))}
    </ul>
  );
}

/** Marks by the step-run they belong to: that of the event, else the step's last one before it. */
function byRun(marked: Props["marked"], track: Track): Map<string, Props["marked"][number][]> {
  const found = new Map<string, Props["marked"][number][]>();
  for (const one of marked) {
    const of = typeof one.payload.of === "string" ? one.payload.of : one.step_run_id;
    const run = of && track.runs.has(of) ? of : track.runsOf(one.entity_id, one.seq).at(-1)?.run;
    if (run) found.set(run, [...(found.get(run) ?? []), one]);
  }
  return found;
}
