import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { type EventRow, eventsPage, PAGE, useEvents } from "../../api/executions";
import { address } from "../../api/client";
import { Empty } from "../../parts/controls";
import { Json } from "../../parts/Json";
import { summary } from "../../words/events";
import { clock, plain } from "../../words/format";
import css from "./Events.module.css";

const GROUPS: [string, string[]][] = [
  ["steps", ["step.*"]],
  ["tasks", ["task.*"]],
  ["decisions", ["next.evaluated", "policy.admit.evaluated", "policy.task.evaluated"]],
  ["loops", ["loop.*"]],
  ["tokens", ["token.*"]],
  ["people", ["signal.received", "ctx.patched", "step.forced", "playbook.paused", "playbook.resumed", "execution.cancelled"]],
  ["logs", ["task.logged"]],
];

export function EventsPane({ id, head, seq, step, onMove }: { id: string; head: number; seq: number; step?: string; onMove: (seq: number) => void }) {
  const [group, setGroup] = useState("");
  const [mine, setMine] = useState(false);
  const types = GROUPS.find(([name]) => name === group)?.[1];
  const isFiltered = Boolean(types) || (mine && Boolean(step));
  const filtered = useEvents(id, { type: types, step: mine ? step : undefined, limit: 1_000, head: undefined, ...(isFiltered ? {} : { limit: 1 }) }, isFiltered);
  const scroller = useRef<HTMLDivElement>(null);
  const total = isFiltered ? (filtered.data?.events.length ?? 0) : head;
  const virtual = useVirtualizer({ count: total, getScrollElement: () => scroller.current, estimateSize: () => 24, overscan: 20 });
  const items = virtual.getVirtualItems();
  // Numbers of events have no gaps, so row n is event n: only the pages in view are asked for.
  const pages = useMemo(() => (isFiltered ? [] : [...new Set(items.map((item) => Math.floor(item.index / PAGE)))]), [items, isFiltered]);
  const found = useQueries({
    queries: pages.map((page) => eventsPage(id, page, head)),
  });
  const bySeq = new Map<number, EventRow>();
  for (const one of found) for (const event of one.data?.events ?? []) bySeq.set(event.seq, event);
  const at = isFiltered ? (filtered.data?.events.findIndex((event) => event.seq === seq) ?? -1) : seq - 1;
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [at, virtual]);
  const chosen = isFiltered ? filtered.data?.events[at] : bySeq.get(seq);
  return (
    <div className={css.pane}>
      <div className={css.list}>
        <div className={css.chips} role="group" aria-label="Kinds of events">
          {GROUPS.map(([name]) => (
            <button key={name} type="button" className={css.chip} aria-pressed={group === name} onClick={() => setGroup(group === name ? "" : name)}>{name}</button>
          ))}
          {step ? <button type="button" className={css.chip} aria-pressed={mine} onClick={() => setMine(!mine)}>only {plain(step)}</button> : null}
          <span className={css.fill} />
          <a href={address(`/api/executions/${id}/events`, { limit: 1_000 })} download={`${id}.json`}>Download</a>
        </div>
        <div className={css.scroller} ref={scroller} tabIndex={0} aria-label="Events" role="listbox">
          <div className={css.body} style={{ height: virtual.getTotalSize() }}>
            {items.map((item) => {
              const event = isFiltered ? filtered.data?.events[item.index] : bySeq.get(item.index + 1);
              const number = event?.seq ?? item.index + 1;
              return (
                <div
                  key={item.key}
                  role="option"
                  aria-selected={number === seq}
                  data-of-step={event?.step ?? undefined}
                  className={`${css.row} ${number > seq ? css.later : ""}`}
                  style={{ transform: `translateY(${item.start}px)` }}
                  onClick={() => onMove(number)}
                >
                  <span className={css.seq}>{number}</span>
                  <span className={css.time}>{event ? clock(event.timestamp, true) : ""}</span>
                  <span className={css.type} title={event?.event_type}>{event?.event_type ?? "…"}</span>
                  <span className={css.step} title={event?.step_run_id ?? event?.step ?? undefined}>{plain(event?.step_run_id ?? event?.step ?? "")}</span>
                  <span className={css.words} title={event ? summary(event) : ""}>{event ? summary(event) : ""}</span>
                </div>
              );
            })}
          </div>
          {isFiltered && total === 0 ? <Empty title="No such event">Choose another kind.</Empty> : null}
        </div>
      </div>
      <div className={css.detail} tabIndex={0} role="region" aria-label="The event">
        {chosen ? <Json value={chosen} /> : <p className={css.none}>Choose an event; the page shows that moment.</p>}
      </div>
    </div>
  );
}
