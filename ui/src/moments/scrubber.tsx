import { useQuery } from "@tanstack/react-query";
import { type PointerEvent, useEffect, useRef, useState } from "react";
import { eventsPage, PAGE } from "../api/executions";
import { Button } from "../parts/controls";
import { sentence } from "../words/events";
import { clock, count, duration, plain } from "../words/format";
import css from "./scrubber.module.css";
import type { Track } from "./track";
import { useDelayed } from "./use";

interface Props {
  id: string;
  track: Track;
  seq: number;
  isLive: boolean;
  /** Whether no event follows. */
  ended: boolean;
  /** What the event was, once it is known. */
  event: string;
  vs?: number;
  onMove: (seq: number) => void;
  onLive: () => void;
  onCompare: (seq: number | undefined) => void;
}

const BARS = 240;

/** A slider over events, with how dense they are and where something failed. */
export function Scrubber({ id, track, seq, isLive, ended, event, vs, onMove, onLive, onCompare }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [by, setBy] = useState<"events" | "time">("events");
  const head = track.seq;
  const total = track.timeOf(head);
  const isByTime = by === "time" && total > 0;
  useEffect(() => {
    const found = canvas.current;
    const pen = found?.getContext("2d");
    if (!found || !pen) return;
    const width = found.clientWidth * devicePixelRatio;
    const height = found.clientHeight * devicePixelRatio;
    found.width = width;
    found.height = height;
    const style = getComputedStyle(found);
    const bins = new Array<number>(BARS).fill(0);
    const failed = new Array<number>(BARS).fill(0);
    const marks = isByTime ? track.times.map((ms) => ms / total) : track.marks.map((one) => one / head);
    for (const one of marks) bins[Math.min(BARS - 1, Math.floor(one * BARS))]! += 1;
    for (const one of track.failures) failed[Math.min(BARS - 1, Math.floor((isByTime ? track.timeOf(one.seq) / total : one.seq / head) * BARS))]! += 1;
    const most = Math.max(1, ...bins);
    const step = width / BARS;
    bins.forEach((value, at) => {
      const tall = value ? Math.max(2, (value / most) * (height - 2)) : 1;
      pen.fillStyle = style.getPropertyValue(failed[at] ? "--red" : value ? "--text-3" : "--line");
      pen.fillRect(at * step, height - (failed[at] ? height : tall), Math.max(1, step - 1), failed[at] ? height : tall);
    });
  });
  const value = isByTime ? track.timeOf(seq) : seq;
  const [over, setOver] = useState<{ seq: number; part: number } | null>(null);
  const under = (pointer: PointerEvent<HTMLInputElement>) => {
    const box = pointer.currentTarget.getBoundingClientRect();
    const part = Math.max(0, Math.min(1, (pointer.clientX - box.left) / box.width));
    return { part, seq: isByTime ? track.seqAt(part * total) : Math.max(1, Math.round(part * head)) };
  };
  return (
    <section className={`${css.bar} ${isLive ? "" : css.past}`} aria-label="Moments">
      <div className={css.buttons}>
        <Button kind="quiet" aria-label="First event" title="First event (Home)" onClick={() => onMove(1)}>|◀</Button>
        <Button kind="quiet" aria-label="Previous event" title="Previous event (,)" onClick={() => onMove(Math.max(1, seq - 1))}>◀</Button>
        <Button kind="quiet" aria-label="Next event" title="Next event (.)" onClick={() => onMove(Math.min(head, seq + 1))}>▶</Button>
        <Button kind="quiet" aria-label="Last event" title="Last event (End)" onClick={() => onMove(head)}>▶|</Button>
      </div>
      <div className={css.slider}>
        <canvas ref={canvas} className={css.canvas} aria-hidden />
        <input
          type="range"
          data-own-arrows
          min={isByTime ? 0 : 1}
          max={isByTime ? total : Math.max(1, head)}
          value={value}
          aria-label="Moment"
          aria-valuetext={`event ${seq} of ${head}: ${event}`}
          onPointerDown={(pressed) => {
            if (!pressed.shiftKey) return;
            pressed.preventDefault();
            onCompare(under(pressed).seq);
          }}
          onPointerMove={(moved) => setOver(moved.buttons ? null : under(moved))}
          onPointerLeave={() => setOver(null)}
          onChange={(changed) => {
            const next = Number(changed.target.value);
            onMove(isByTime ? track.seqAt(next) : next);
          }}
        />
        {vs ? <span className={css.vs} style={{ left: `${((isByTime ? track.timeOf(vs) / total : (vs - 1) / Math.max(1, head - 1)) * 100).toFixed(2)}%` }} title={`compared with event ${vs}`} /> : null}
        {over ? <Tip id={id} track={track} seq={over.seq} part={over.part} /> : null}
      </div>
      <div className={css.words}>
        <span>
          event <b>{count(seq)}</b> of {count(head)}
        </span>
        <span className={css.event} title={event}>{plain(event)}</span>
        <span>{clock(track.t0 + track.timeOf(seq), true)}</span>
        <span>+{duration(track.timeOf(seq))}</span>
      </div>
      <Button kind="quiet" aria-pressed={isByTime} onClick={() => setBy(isByTime ? "events" : "time")} title="Slide over events, or over time">
        by {isByTime ? "time" : "events"}
      </Button>
      <Button kind="quiet" aria-pressed={Boolean(vs)} onClick={() => onCompare(vs ? undefined : seq)} title="Keep this moment, and show what changed since (Shift-click on the slider)">
        {vs ? `since ${vs} ✕` : "Diff from here"}
      </Button>
      <Button className={isLive && !ended ? css.live : css.notlive} onClick={onLive} aria-pressed={isLive} title={ended ? "Show the last event (l)" : "Follow the last event (l)"}>
        {ended ? "■ END" : "● LIVE"}
      </Button>
    </section>
  );
}

/** What happened at the event under the pointer. */
function Tip({ id, track, seq, part }: { id: string; track: Track; seq: number; part: number }) {
  const rested = useDelayed(seq, 60);
  const page = useQuery(eventsPage(id, Math.floor((rested - 1) / PAGE), track.seq));
  const event = page.data?.events.find((one) => one.seq === seq);
  return (
    <span className={css.tip} role="tooltip" style={{ left: `${part * 100}%`, transform: `translateX(${-part * 100}%)` }}>
      event {count(seq)}: {event ? sentence(event) : "…"} · +{duration(track.timeOf(seq))}
    </span>
  );
}
