import { useVirtualizer } from "@tanstack/react-virtual";
import { type PointerEvent, useMemo, useRef, useState } from "react";
import type { Span, Track } from "../moments/track";
import { Button, useTick } from "../parts/controls";
import { Mark, Sign } from "../parts/Mark";
import { sentence, type Told } from "../words/events";
import { duration, now, plain, shortId } from "../words/format";
import { type Hue, type MarkName, stateOf } from "../words/states";
import { useChildTracks } from "./children";
import { criticalPath, foldsOf, type Scale, scaleOf } from "./folds";
import css from "./timeline.module.css";

interface Props {
  track: Track;
  /** Arcs of the net; the critical path follows them. */
  arcs?: readonly { source: string; target: string }[];
  seq: number;
  isLive: boolean;
  ended: boolean;
  step?: string;
  run?: string;
  /** Late reports, repairs and steps that a person completed. */
  marked: readonly (Told & { seq: number })[];
  onRun: (span: Span) => void;
  /** A step-run of a child was chosen. */
  onChild: (child: string, span: Span) => void;
}
/** A step-run of this execution, or of a child that is unfolded below its step-run. */
interface Row {
  span: Span;
  depth: number;
  /** The child it belongs to; empty: this execution. */
  of: string;
  /** When the child began, after this execution. */
  offset: number;
}
const SIGNS: Record<string, [MarkName, Hue]> = { "step.forced": ["forced", "violet"], "step.repaired": ["repaired", "green"], "loop.item.repaired": ["repaired", "green"], "report.late": ["hourglass", "amber"] };
const CAUSES: Record<string, string> = { signal: "a signal", gate: "its gate", join: "siblings", child: "a child", sleep: "time", delay: "the next attempt" };
const ZOOM = 0.6;
const NONE: ReadonlySet<string> = new Set();

/** One row per step-run: queued, running, waiting and pauses between attempts; a drag zooms. */
export function Timeline({ track, arcs, seq, isLive, ended, step, run, marked, onRun, onChild }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const tick = useTick(1_000, isLive && !ended);
  const [range, setRange] = useState<[number, number] | null>(null);
  const [open, setOpen] = useState<readonly string[]>([]);
  const children = useChildTracks(open, !ended);
  const rows = useMemo(() => rowsOf(track, children, open), [track, track.seq, children, open]);
  const marks = useMemo(() => byRun(marked, track), [marked, track, track.seq]);
  const until = isLive && !ended ? Math.max(track.timeOf(track.seq), Math.min(tick, now()) - track.t0) : track.timeOf(track.seq);
  const total = Math.max(1, until);
  const folds = useMemo(() => (range ? [] : foldsOf(track.runs.values(), total)), [track, track.seq, total, range]);
  const scale = scaleOf(range?.[0] ?? 0, range?.[1] ?? total, folds);
  const critical = useMemo(() => (ended && arcs ? criticalPath(track.runs.values(), arcs) : NONE), [ended, arcs, track]);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => 26, overscan: 10 });
  const drag = useDrag((from, to) => setRange([scale.time(from), scale.time(to)]));
  const hasChildren = rows.some((row) => row.span.child);
  const zoom = (by: number) => {
    const [from, to] = range ?? [0, total];
    const here = Math.max(from, Math.min(to, track.timeOf(seq)));
    const next: [number, number] = [Math.max(0, here - (here - from) * by), Math.min(total, here + (to - here) * by)];
    setRange(next[1] - next[0] >= total ? null : next[1] - next[0] < 1 ? range : next);
  };
  const toggle = (child: string) => setOpen(open.includes(child) ? open.filter((one) => one !== child) : [...open, child]);
  return (
    <div className={css.scroller} ref={scroller} role="list" aria-label="Step-runs in time" tabIndex={0} {...drag.on}>
      <div className={css.axis}>
        <span className={css.zoom} role="group" aria-label="Zoom the timeline">
          <Button kind="quiet" aria-label="Zoom in on the moment" title="Zoom in on the moment (or drag over the bars)" onClick={() => zoom(ZOOM)}>+</Button>
          <Button kind="quiet" aria-label="Zoom out of the timeline" disabled={!range} onClick={() => zoom(1 / ZOOM)}>−</Button>
          {range ? <Button kind="quiet" onClick={() => setRange(null)}>Whole</Button> : null}
        </span>
        <Ticks scale={scale} from={range?.[0] ?? 0} to={range?.[1] ?? total} />
      </div>
      <div className={css.body} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index] as Row;
          const { span, depth, of } = row;
          const child = span.child;
          return (
            <div key={`${of} ${span.run}`} role="listitem" className={css.item} style={{ transform: `translateY(${item.start}px)` }}>
              {child ? (
                <button type="button" className={css.toggle} style={{ left: depth * 16 }} aria-expanded={open.includes(child)} aria-label={`Step-runs of the child ${shortId(child)}`} title={`Child ${child}`} onClick={() => toggle(child)}>
                  {open.includes(child) ? "▾" : "▸"}
                </button>
              ) : null}
              <Line
                row={row}
                indent={(hasChildren ? 20 : 0) + row.depth * 16}
                scale={scale}
                until={of ? (children.get(of)?.headAt ?? until) : until}
                seq={of ? Infinity : seq}
                isSelected={!of && (span.run === run || (!run && span.step === step))}
                isCritical={!of && critical.size < track.runs.size && critical.has(span.run)}
                marks={of ? [] : (marks.get(span.run) ?? [])}
                placeOfMark={(at) => scale.place(track.timeOf(at))}
                onClick={() => (of ? onChild(of, span) : onRun(span))}
              />
            </div>
          );
        })}
        <div className={css.nowrail} ref={drag.rail} aria-hidden>
          {scale.folds.map((one) => (
            <span key={one.from} className={css.fold} data-fold style={between(scale.place(one.from), scale.place(one.to))} />
          ))}
          {drag.box ? <span className={css.box} style={between(...drag.box)} /> : null}
          <span className={css.now} style={{ left: percent(scale.place(track.timeOf(seq))) }} hidden={range !== null && (track.timeOf(seq) < range[0] || track.timeOf(seq) > range[1])} />
        </div>
      </div>
    </div>
  );
}

const percent = (part: number): string => `${(part * 100).toFixed(3)}%`;
const between = (from: number, to: number) => ({ left: percent(from), width: percent(Math.max(0, to - from)) });

function Ticks({ scale, from, to }: { scale: Scale; from: number; to: number }) {
  const parts = [0, 0.25, 0.5, 0.75, 1].filter((part) => !scale.folds.some((one) => Math.abs(part - (scale.place(one.from) + scale.place(one.to)) / 2) < 0.09));
  return (
    <div className={css.ticks} aria-hidden>
      {parts.map((part) => (
        <span key={part} style={{ left: percent(part) }} className={part === 1 ? css.lasttick : undefined}>
          {duration(scale.time(part), to - from)}
        </span>
      ))}
      {scale.folds.map((one) => (
        <span key={`fold ${one.from}`} className={css.foldtick} style={{ left: percent((scale.place(one.from) + scale.place(one.to)) / 2) }} title={`Nothing ran for ${duration(one.to - one.from)}`}>
          <i aria-hidden>//</i> {duration(one.to - one.from)}
        </span>
      ))}
    </div>
  );
}

interface LineProps {
  row: Row;
  indent: number;
  scale: Scale;
  until: number;
  seq: number;
  isSelected: boolean;
  isCritical: boolean;
  marks: Props["marked"];
  placeOfMark: (seq: number) => number;
  onClick: () => void;
}

/** A step-run: its name, its bars, and how long it took. */
function Line({ row: { span, of, offset }, indent, scale, until, seq, isSelected, isCritical, marks, placeOfMark, onClick }: LineProps) {
  const isThere = span.scheduled[0] <= seq;
  const end = span.ended?.[1] ?? until;
  const begun = span.started?.[1] ?? end;
  const bar = (from: number, to: number) => {
    const left = scale.place(from + offset);
    const right = scale.place(to + offset);
    return { left: percent(left), width: `max(2px, ${percent(right - left)})` };
  };
  const words = [
    `${span.run}: ${stateOf(span.state).word}`,
    `queued ${duration(begun - span.scheduled[1])}`,
    span.started ? `ran ${duration(end - begun)}` : "",
    ...span.waits.map(([from, to, cause]) => `waited ${duration((to ?? until) - from)} for ${CAUSES[cause] ?? cause}`),
    isCritical ? "on the critical path: the end waited for it" : "",
  ].filter(Boolean).join(", ");
  return (
    <button type="button" data-of-step={of ? undefined : span.step} data-critical={isCritical || undefined} className={`${css.row} ${isSelected ? css.selected : ""} ${isThere ? "" : css.later}`} title={words} onClick={onClick}>
      <span className={css.name} style={{ paddingLeft: indent }}>
        <Mark state={isThere ? (span.ended && span.ended[0] <= seq ? span.state : span.ended ? "running" : span.state) : ""} size={14} />
        <span title={span.run}>{plain(span.run)}</span>
      </span>
      <span className={css.lane}>
        {isCritical ? <span className={css.critical} style={bar(span.scheduled[1], end)} /> : null}
        <span className={`${css.bar} ${css.queued}`} style={bar(span.scheduled[1], begun)} />
        {span.started ? <span className={`${css.bar} ${css.ran} ${css[stateOf(span.state).hue]}`} style={bar(begun, end)} /> : null}
        {span.waits.map(([from, to, cause], at) => (
          <span key={at} className={`${css.bar} ${cause === "delay" ? css.pause : css.wait}`} style={bar(from, to ?? until)} />
        ))}
        {span.attempts.filter(([, , ok]) => ok === false).map(([from, to], at) => (
          <span key={at} className={`${css.bar} ${css.bad}`} style={bar(from, to ?? until)}>✕</span>
        ))}
        {marks.map((one) => (
          <span key={one.seq} className={css.mark} style={{ left: percent(placeOfMark(one.seq)) }}>
            <Sign mark={SIGNS[one.event_type]?.[0] ?? "dots"} hue={SIGNS[one.event_type]?.[1] ?? "grey"} label={`event ${one.seq}: ${sentence(one)}`} size={16} />
          </span>
        ))}
        <span className={css.length} style={{ left: percent(scale.place(end + offset)) }}>{duration(end - span.scheduled[1])}</span>
      </span>
    </button>
  );
}

/** A drag over the lanes: the part of the width that it spans; it starts no click. */
function useDrag(onDone: (from: number, to: number) => void) {
  const rail = useRef<HTMLDivElement>(null);
  const from = useRef<number | null>(null);
  const [box, setBox] = useState<[number, number] | null>(null);
  const part = (event: PointerEvent): number => {
    const place = rail.current?.getBoundingClientRect();
    return place?.width ? (event.clientX - place.left) / place.width : -1;
  };
  const within = (value: number) => Math.max(0, Math.min(1, value));
  const on = {
    onPointerDown: (event: PointerEvent) => {
      const at = part(event);
      from.current = event.button === 0 && event.pointerType === "mouse" && at >= 0 && at <= 1 && !(event.target as HTMLElement).closest(`.${css.axis}`) ? at : null;
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      if (from.current === null) return;
      const at = within(part(event));
      const isFar = Math.abs(at - from.current) * (rail.current?.clientWidth ?? 0) > 4;
      if (!box && !isFar) return;
      if (!box) event.currentTarget.setPointerCapture(event.pointerId);
      setBox(at < from.current ? [at, from.current] : [from.current, at]);
    },
    onPointerUp: () => {
      if (box && box[1] - box[0] > 0.005) onDone(...box);
      from.current = null;
      setBox(null);
    },
    onPointerCancel: () => {
      from.current = null;
      setBox(null);
    },
  };
  return { rail, box, on };
}

/** Step-runs in the order in which they were scheduled, each followed by those of its unfolded child. */
function rowsOf(track: Track, children: ReadonlyMap<string, Track>, open: readonly string[]): Row[] {
  const found: Row[] = [];
  const add = (from: Track, of: string, depth: number) => {
    for (const span of [...from.runs.values()].sort((a, b) => a.scheduled[0] - b.scheduled[0])) {
      found.push({ span, depth, of, offset: from.t0 - track.t0 });
      const child = span.child && open.includes(span.child) ? children.get(span.child) : undefined;
      if (child && span.child && depth < 8) add(child, span.child, depth + 1);
    }
  };
  add(track, "", 0);
  return found;
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
