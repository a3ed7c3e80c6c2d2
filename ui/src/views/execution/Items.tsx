import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type Item, type Items, useItemRows, useItems } from "../../api/executions";
import { useNeeds } from "../../api/session";
import { STATES } from "../../heat/draw";
import { HeatMap } from "../../heat/view";
import type { Span, Track } from "../../moments/track";
import { Button, Empty, Loading, Trouble } from "../../parts/controls";
import { Mark } from "../../parts/Mark";
import { type Column, Table } from "../../parts/Table";
import type { ExecutionSearch } from "../../routes";
import { count, duration, plain } from "../../words/format";
import { Replay } from "../Replay";
import css from "./Items.module.css";

export const loopsOf = (track: Track): Span[] => [...track.runs.values()].filter((span) => span.items);

interface Props {
  id: string;
  track: Track;
  search: ExecutionSearch;
  isLive: boolean;
  ended: boolean;
  onSearch: (next: Partial<ExecutionSearch>, replace?: boolean) => void;
}

/** The items of the selected loop, or of the last one: counts, a heat map or the slowest, and what to do with failed ones. */
export function ItemsPane({ id, track, search, isLive, ended, onSearch }: Props) {
  const loops = loopsOf(track);
  const span = loops.find((one) => one.run === search.run) ?? loops.filter((one) => one.step === search.step).at(-1) ?? loops.at(-1);
  const [isRetried, setRetried] = useState(false); // items of a loop that has ended are looked at for a while
  useEffect(() => {
    if (!isRetried) return;
    const timer = setTimeout(() => setRetried(false), 30_000);
    return () => clearTimeout(timer);
  }, [isRetried]);
  const isOpen = (Boolean(span && !span.ended) && !ended) || isRetried;
  const found = useItems(id, span?.run, isOpen, `${span?.ended?.[0] ?? ""} ${track.at(`d:${span?.step ?? ""}`, track.seq)}`);
  if (!span) return <Empty title="No loop has begun">A step with a <code>loop</code> shows each of its items here.</Empty>;
  if (found.error && !found.data) return <Trouble error={found.error} again={() => void found.refetch()} />;
  if (!found.data) return <Loading rows={3} />;
  const choose = (index: number) => onSearch({ step: span.step, run: span.run, item: index, arc: undefined, tab: "outcome" });
  return (
    <div className={css.pane}>
      <Head id={id} span={span} loops={loops} found={found.data} search={search} isLive={isLive} onSearch={onSearch} onRetried={() => setRetried(true)} />
      {search.sort === "slow" ? (
        <Slowest id={id} span={span} search={search} mark={found.data.seq} onItem={choose} />
      ) : (
        <HeatMap id={id} run={span.run} found={found.data} failedOnly={search.only === "failed"} item={search.run === undefined || search.run === span.run ? search.item : undefined} onItem={choose} />
      )}
    </div>
  );
}

function Head({ id, span, loops, found, search, isLive, onSearch, onRetried }: { id: string; span: Span; loops: Span[]; found: Items; search: ExecutionSearch; isLive: boolean; onSearch: Props["onSearch"]; onRetried: () => void }) {
  const needs = useNeeds();
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const failed = found.counts.failed ?? 0;
  const ended = ["done", "failed", "skipped", "repaired"].reduce((sum, state) => sum + (found.counts[state] ?? 0), 0);
  return (
    <div className={css.head}>
      {loops.length > 1 ? (
        <select aria-label="Loop" value={span.run} onChange={(event) => onSearch({ step: loops.find((one) => one.run === event.target.value)?.step, run: event.target.value, item: undefined, arc: undefined })}>
          {loops.map((one) => <option key={one.run}>{one.run}</option>)}
        </select>
      ) : <code>{plain(span.run)}</code>}
      <span>{count(ended)} of {count(found.total)} ended</span>
      {STATES.filter((state) => found.counts[state]).map((state) => (
        <span key={state} className={css.count} title={state}>
          <Mark state={state} size={14} /> {count(found.counts[state] ?? 0)}
        </span>
      ))}
      {isLive ? null : <span className={css.note}>items as they are now</span>}
      <span className={css.fill} />
      <Button aria-pressed={search.only === "failed"} onClick={() => onSearch({ only: search.only ? undefined : "failed" }, true)}>failed only</Button>
      <span role="group" aria-label="Order" className={css.order}>
        <Button aria-pressed={search.sort !== "slow"} onClick={() => onSearch({ sort: undefined }, true)}>by index</Button>
        <Button aria-pressed={search.sort === "slow"} onClick={() => onSearch({ sort: "slow" }, true)}>slowest</Button>
      </span>
      <Button why={needs("operator") ?? (failed ? undefined : "No item has failed")} onClick={() => setOpen(true)}>Retry failed items…</Button>
      {open ? <Replay on={{ execution: id, step: span.step, count: failed, executions: 1 }} onClose={() => setOpen(false)} onDone={() => { onRetried(); void client.invalidateQueries(); }} /> : null}
    </div>
  );
}

const MOST = 200;
const COLUMNS: Column<Item>[] = [
  { id: "state", head: "State", width: "112px", cell: (row) => <Mark state={row.state} word size={14} /> },
  { id: "index", head: "Item", width: "72px", right: true, cell: (row) => row.index },
  { id: "key", head: "Key", width: "minmax(80px, 1fr)", cell: (row) => <code title={row.key ?? ""}>{plain(row.key ?? "")}</code> },
  { id: "lasted", head: "Duration", width: "96px", right: true, cell: (row) => duration(row.duration_ms) },
  { id: "error", head: "Error", width: "minmax(120px, 3fr)", cell: (row) => <span className={css.error} title={row.error ?? ""}>{plain(row.error ?? "")}</span> },
];

function Slowest({ id, span, search, mark, onItem }: { id: string; span: Span; search: ExecutionSearch; mark: unknown; onItem: (index: number) => void }) {
  const found = useItemRows(id, span.run, { sort: "slow", limit: MOST, state: search.only }, mark);
  if (found.error) return <Trouble error={found.error} again={() => void found.refetch()} />;
  if (!found.data) return <Loading rows={3} />;
  return (
    <Table
      label="Items, the slowest first"
      rows={found.data.rows ?? []}
      columns={COLUMNS}
      rowKey={(row) => String(row.index)}
      selected={search.item === undefined ? undefined : String(search.item)}
      onOpen={(row) => onItem(row.index)}
      empty={<p className={css.none}>No item has ended.</p>}
      footer={found.data.next ? <p className={css.none}>The slowest {MOST} items.</p> : undefined}
    />
  );
}
