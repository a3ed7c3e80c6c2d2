import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import type { Span, Track } from "../moments/track";
import { useTick } from "../parts/controls";
import { Mark, Sign } from "../parts/Mark";
import { sentence, type Told } from "../words/events";
import { duration, now, plain } from "../words/format";
import { type Hue, type MarkName, stateOf } from "../words/states";
import css from "./timeline.module.css";

interface Props {
  track: Track;
  seq: number;
  isLive: boolean;
  ended: boolean;
  step?: string;
  run?: string;
  /** Late reports, repairs and steps that a person completed. */
  marked: readonly (Told & { seq: number })[];
  onRun: (span: Span) => void;
}
const SIGNS: Record<string, [MarkName, Hue]> = { "step.forced": ["forced", "violet"], "step.repaired": ["repaired", "green"], "loop.item.repaired": ["repaired", "green"], "report.late": ["hourglass", "amber"] };
const CAUSES: Record<string, string> = { signal: "a signal", gate: "its gate", join: "siblings", child: "a child", sleep: "time", delay: "the next attempt" };

/** One row per step-run: queued, running, waiting and pauses between attempts. */
export function Timeline({ track, seq, isLive, ended, step, run, marked, onRun }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const tick = useTick(1_000, isLive && !ended);
  const rows = useMemo(() => [...track.runs.values()].sort((a, b) => a.scheduled[0] - b.scheduled[0]), [track, track.seq]);
  const marks = useMemo(() => byRun(marked, track), [marked, track, track.seq]);
  const until = isLive && !ended ? Math.max(track.timeOf(track.seq), Math.min(tick, now()) - track.t0) : track.timeOf(track.seq);
  const total = Math.max(1, until);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => 26, overscan: 10 });
  const here = track.timeOf(seq);
  const place = (ms: number) => `${(Math.max(0, Math.min(total, ms)) / total) * 100}%`;
  const bar = (from: number, to: number) => ({ left: place(from), width: `max(2px, ${(Math.max(0, Math.min(total, to) - from) / total) * 100}%)` });
  return (
    <div className={css.scroller} ref={scroller} role="list" aria-label="Step-runs in time" tabIndex={0}>
      <div className={css.axis} aria-hidden>
        <span />
        <div className={css.ticks}>
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <span key={part} style={{ left: `${part * 100}%` }} className={part === 1 ? css.lasttick : undefined}>
              {duration(total * part)}
            </span>
          ))}
        </div>
      </div>
      <div className={css.body} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const span = rows[item.index] as Span;
          const isThere = span.scheduled[0] <= seq;
          const end = span.ended?.[1] ?? until;
          const begun = span.started?.[1] ?? end;
          const words = [`${span.run}: ${stateOf(span.state).word}`, `queued ${duration(begun - span.scheduled[1])}`, span.started ? `ran ${duration(end - begun)}` : "", ...span.waits.map(([from, to, cause]) => `waited ${duration((to ?? until) - from)} for ${CAUSES[cause] ?? cause}`)].filter(Boolean).join(", ");
          return (
            <div key={span.run} role="listitem" className={css.item} style={{ transform: `translateY(${item.start}px)` }}>
              <button type="button" data-of-step={span.step} className={`${css.row} ${span.run === run || (!run && span.step === step) ? css.selected : ""} ${isThere ? "" : css.later}`} title={words} onClick={() => onRun(span)}>
                <span className={css.name}>
                  <Mark state={isThere ? (span.ended && span.ended[0] <= seq ? span.state : span.ended ? "running" : span.state) : ""} size={14} />
                  <span title={span.run}>{plain(span.run)}</span>
                </span>
                <span className={css.lane}>
                  <span className={`${css.bar} ${css.queued}`} style={bar(span.scheduled[1], begun)} />
                  {span.started ? <span className={`${css.bar} ${css.ran} ${css[stateOf(span.state).hue]}`} style={bar(begun, end)} /> : null}
                  {span.waits.map(([from, to, cause], at) => (
                    <span key={at} className={`${css.bar} ${cause === "delay" ? css.pause : css.wait}`} style={bar(from, to ?? until)} />
                  ))}
                  {span.attempts.filter(([, , ok]) => ok === false).map(([from, to], at) => (
                    <span key={at} className={`${css.bar} ${css.bad}`} style={bar(from, to ?? until)}>✕</span>
                  ))}
                  {(marks.get(span.run) ?? []).map((one) => (
                    <span key={one.seq} className={css.mark} style={{ left: place(track.timeOf(one.seq)) }}>
                      <Sign mark={SIGNS[one.event_type]?.[0] ?? "dots"} hue={SIGNS[one.event_type]?.[1] ?? "grey"} label={`event ${one.seq}: ${sentence(one)}`} size={16} />
                    </span>
                  ))}
                  <span className={css.length} style={{ left: place(end) }}>{duration(end - span.scheduled[1])}</span>
                </span>
              </button>
            </div>
          );
        })}
        <div className={css.nowrail} aria-hidden>
          <span className={css.now} style={{ left: place(here) }} />
        </div>
      </div>
    </div>
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
