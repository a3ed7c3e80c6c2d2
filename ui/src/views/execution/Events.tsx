import { useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { allEvents, type EventRow, eventsPage, PAGE, useEvent, useEvents } from "../../api/executions";
import { useDelayed } from "../../moments/use";
import { Button, Empty } from "../../parts/controls";
import { Json } from "../../parts/Json";
import { Filter } from "../../parts/Page";
import { summary } from "../../words/events";
import { clock, count, errorText, plain, plural } from "../../words/format";
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

const MOST = 1_000;

export function EventsPane({ id, head, seq, step, onMove }: { id: string; head: number; seq: number; step?: string; onMove: (seq: number) => void }) {
  const [group, setGroup] = useState("");
  const [mine, setMine] = useState(false);
  const [text, setText] = useState("");
  const [kept, setKept] = useState<number[]>([]);
  const types = GROUPS.find(([name]) => name === group)?.[1];
  const asked = { type: types, step: mine ? step : undefined, text: text || undefined };
  const isFiltered = Boolean(types) || (mine && Boolean(step)) || text !== "";
  const filtered = useEvents(id, { ...asked, limit: MOST }, isFiltered, useDelayed(head, 500));
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
          <Filter text={text} onChange={setText} label="Filter events" hint="words" />
          {isFiltered && filtered.data ? <span role="status">{filtered.data.next ? `first ${count(total)} that fit` : `${plural(total, "event")} of ${count(head)}`}</span> : null}
          <span className={css.fill} />
          <Download id={id} asked={isFiltered ? asked : {}} />
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
      <div className={css.detail} tabIndex={0} role="region" aria-label="Open events">
        {kept.map((one) => (
          <Kept key={one} id={id} seq={one} onClose={() => setKept(kept.filter((other) => other !== one))} />
        ))}
        {chosen && !kept.includes(chosen.seq) ? (
          <OneEvent event={chosen}>
            <Button kind="quiet" title="It stays open while you choose others" onClick={() => setKept([...kept, chosen.seq])}>Keep open</Button>
          </OneEvent>
        ) : null}
        {chosen || kept.length > 0 ? null : <p className={css.none}>Choose an event; the page shows that moment.</p>}
      </div>
    </div>
  );
}

function OneEvent({ event, children }: { event: EventRow; children: ReactNode }) {
  return (
    <article aria-label={`Event ${event.seq}`} className={css.one}>
      <header className={css.title}>
        <strong>event {event.seq}</strong> {event.event_type}
        <span className={css.fill} />
        {children}
      </header>
      <Json value={event} />
    </article>
  );
}

/** An event that stays open beside the chosen one. */
function Kept({ id, seq, onClose }: { id: string; seq: number; onClose: () => void }) {
  const { data } = useEvent(id, seq);
  return data ? (
    <OneEvent event={data}>
      <Button kind="quiet" aria-label={`Close event ${seq}`} onClick={onClose}>✕</Button>
    </OneEvent>
  ) : null;
}

/** Save every event that fits, one JSON object in a line; the server gives them a thousand at a time. */
export async function saveEvents(id: string, asked: Record<string, unknown>, hear: (read: number) => void): Promise<void> {
  const lines: string[] = [];
  let read = 0;
  for await (const events of allEvents(id, asked)) {
    lines.push(events.map((one) => `${JSON.stringify(one)}\n`).join(""));
    read += events.length;
    hear(read);
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  link.download = `${id}.jsonl`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function Download({ id, asked }: { id: string; asked: Record<string, unknown> }) {
  const [read, setRead] = useState<number | null>(null);
  const [error, setError] = useState("");
  const save = () => {
    setError("");
    setRead(0);
    saveEvents(id, asked, setRead)
      .catch((found: unknown) => setError(errorText(found)))
      .finally(() => setRead(null));
  };
  return (
    <Button kind="quiet" disabled={read !== null} title={error || "Every event that fits, as JSON lines"} onClick={save}>
      {error ? "✕ Download" : read === null ? "Download" : `Reading ${count(read)}…`}
    </Button>
  );
}
