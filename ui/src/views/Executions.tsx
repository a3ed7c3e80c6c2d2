import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { get, type Schemas } from "../api/client";
import { useLive } from "../api/live";
import { mayBe, useMe } from "../api/session";
import { Button, Copy, Empty, ExecutionId, Lasted, Loading, Tags, Time, Trouble } from "../parts/controls";
import { useDelayed } from "../moments/use";
import { Mark } from "../parts/Mark";
import { type Column, Table } from "../parts/Table";
import { noetl } from "../words/command";
import { errorText, middle, plain } from "../words/format";
import { KEYS, parseQuery } from "../words/query";
import { EXECUTION_STATES, hasEnded, stateOf } from "../words/states";
import { savedViews } from "../words/views";
import css from "./Executions.module.css";
import { Bulk } from "./executions/Bulk";
import { Views } from "./executions/Views";

type Row = Schemas["ExecutionRow"];
type Page = Schemas["Executions"];
const PAGE = 100;
const MOST = 2_000;
/** What changes a row: starts, ends, and work that begins to wait or goes on. */
const CHANGES = ["playbook.started", "playbook.finished", "playbook.paused", "playbook.resumed", "execution.cancelled", "execution.queued", "execution.admitted", "step.suspended", "signal.received", "timer.fired", "child.finished"];

export function waitsFor(row: Row): string {
  if (row.needs_signal) return row.signals?.length ? `waits for the signal ${row.signals.join(", ")}` : "waits for a signal";
  return errorText(row.error);
}

export const COLUMNS: Column<Row>[] = [
  { id: "mark", head: "Status", width: "104px", cell: (row) => <Mark state={row.status} word /> },
  { id: "id", head: "Execution", width: "88px", cell: (row) => <ExecutionId id={row.execution_id} /> },
  {
    id: "path",
    head: "Playbook",
    width: "minmax(160px, 2fr)",
    cell: (row) => (
      <Link to="/playbooks/$" params={{ _splat: row.path ?? "" }} title={row.path} className={css.path}>
        {plain(middle(row.path ?? ""))}
      </Link>
    ),
  },
  { id: "started", head: "Started", isTime: true, width: "104px", cell: (row) => <Time at={row.started_at} /> },
  { id: "lasted", head: "Duration", width: "96px", right: true, cell: (row) => <Lasted from={row.started_at ?? 0} to={hasEnded(row.status) ? row.ended_at ?? row.started_at : null} /> },
  { id: "why", head: "Waits for, or error", width: "minmax(160px, 3fr)", cell: (row) => <span title={waitsFor(row)} className={row.error ? css.error : css.waits}>{plain(waitsFor(row))}</span> },
  { id: "tags", head: "Tags", width: "minmax(80px, 1fr)", cell: (row) => <Tags tags={row.tags ?? []} /> },
];

/** Rows in view change in place; new ones wait until they are asked for. */
function useRows(query: Record<string, unknown>, needsSignal: boolean) {
  const client = useQueryClient();
  const key = useMemo(() => ["executions", query, needsSignal], [query, needsSignal]);
  const [fresh, setFresh] = useState(0);
  const changed = useRef(new Set<string>());
  const pages = useInfiniteQuery({
    queryKey: key,
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => get<Page>("/api/executions", { ...query, needs_signal: needsSignal || undefined, cursor: pageParam, limit: PAGE }, signal),
    getNextPageParam: (last: Page) => last.next ?? last.scanned_to ?? undefined,
    maxPages: MOST / PAGE,
    refetchOnWindowFocus: false,
  });
  const rows = useMemo(() => {
    const seen = new Map<string, Row>();
    for (const page of pages.data?.pages ?? []) for (const row of page.executions) seen.set(row.execution_id, row);
    return [...seen.values()];
  }, [pages.data]);
  const known = useRef(new Set<string>());
  known.current = new Set(rows.map((row) => row.execution_id));
  useEffect(() => setFresh(0), [key]);

  useLive("executions", {
    path: "/api/executions/stream",
    query: (after) => ({ type: CHANGES, after }),
    events: CHANGES,
    take: (event, data) => {
      const id = String((data as { execution_id?: string }).execution_id ?? "");
      if (known.current.has(id)) changed.current.add(id);
      else if (event === "playbook.started") setFresh((now) => now + 1);
    },
  });
  useEffect(() => {
    const timer = setInterval(() => {
      if (changed.current.size === 0) return;
      const ids = [...changed.current].slice(0, 100);
      for (const id of ids) changed.current.delete(id);
      void get<Page>("/api/executions", { ids, limit: 100 }).then((found) => {
        const byId = new Map(found.executions.map((row) => [row.execution_id, row]));
        client.setQueryData(key, (old: { pages: Page[]; pageParams: unknown[] } | undefined) =>
          old && { ...old, pages: old.pages.map((page) => ({ ...page, executions: page.executions.map((row) => byId.get(row.execution_id) ?? row) })) },
        );
      });
    }, 1_000);
    return () => clearInterval(timer);
  }, [client, key]);
  const showNew = () => {
    setFresh(0);
    void pages.refetch();
  };
  return { pages, rows, fresh, showNew };
}

const DAY = 86_400_000;
const dayAfter = (day: string): string => new Date(Date.parse(day) + DAY).toISOString().slice(0, 10);
/** The last day that a filter shows, if it ends at a date. */
const dayOf = (q: string): string => {
  const day = /until:(\d{4}-\d\d-\d\d)(?=\s|$)/.exec(q)?.[1];
  return day && !Number.isNaN(Date.parse(day)) ? new Date(Date.parse(day) - DAY).toISOString().slice(0, 10) : "";
};

export function Executions() {
  const search = useSearch({ strict: false }) as { q?: string; view?: string };
  // A view in the address without its filter is one of this browser.
  const q = search.q ?? savedViews().find((one) => one.name === search.view)?.q ?? "";
  const navigate = useNavigate();
  const { data: me } = useMe();
  const filter = useMemo(() => parseQuery(q), [q]);
  const { pages, rows, fresh, showNew } = useRows(filter.query, filter.needsSignal);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const [act, setAct] = useState<"cancel" | "retry" | null>(null);
  const isOperator = mayBe(me, "operator");
  const setQuery = (next: string) => void navigate({ to: "/executions", search: { q: next || undefined, view: next ? search.view : undefined }, replace: true });
  const chosen = rows.filter((row) => marked.has(row.execution_id));
  const last = pages.data?.pages.at(-1);
  const further = last?.scanned_to ? (
    <p className={css.further}>
      Searched back to <Time at={last.scanned_at} />. <Button disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>Search further back</Button>
    </p>
  ) : null;
  return (
    <>
      <h1 className="hidden">Executions</h1>
      <div className={css.bar}>
        <QueryBar text={q} onChange={setQuery} />
        <input
          type="date"
          className={css.date}
          aria-label="Jump to a date"
          title="Executions that started before the end of a day (UTC)"
          value={dayOf(q)}
          onChange={(event) => setQuery([event.target.value ? `until:${dayAfter(event.target.value)}` : "", q.replace(/\s*until:\S*/, "").trim()].filter(Boolean).join(" "))}
        />
        <Views q={q} view={search.view} onOpen={(one) => void navigate({ to: "/executions", search: { q: one.q || undefined, view: one.view } })} />
        {fresh > 0 ? (
          <Button kind="primary" onClick={showNew}>
            ● {fresh} new
          </Button>
        ) : null}
      </div>
      <div className={css.chips} role="group" aria-label="Status">
        {EXECUTION_STATES.map((status) => {
          const asked = (filter.query.status as string[] | undefined) ?? [];
          const on = asked.includes(status);
          return (
            <button
              key={status}
              type="button"
              className={css.chip}
              aria-pressed={on}
              onClick={() => {
                const next = on ? asked.filter((one) => one !== status) : [...asked, status];
                const rest = q.replace(/\s*status:\S*/, "").trim();
                setQuery([next.length ? `status:${next.join(",")}` : "", rest].filter(Boolean).join(" "));
              }}
            >
              <Mark state={status} size={14} /> {stateOf(status).word}
            </button>
          );
        })}
      </div>
      {filter.problems.length > 0 ? (
        <p role="alert" className={css.problem}>
          {filter.problems.join(" ")}
        </p>
      ) : null}
      {pages.error ? <Trouble error={pages.error} again={() => void pages.refetch()} /> : null}
      {pages.isPending ? (
        <Loading rows={12} />
      ) : (
        <Table
          label="Executions"
          rows={rows}
          columns={COLUMNS}
          rowKey={(row) => row.execution_id}
          copies={(row) => ({ path: `/executions/${row.execution_id}`, command: noetl("explain", row.execution_id) })}
          onOpen={(row) => void navigate({ to: "/executions/$id", params: { id: row.execution_id } })}
          marked={isOperator ? marked : undefined}
          onMark={isOperator ? setMarked : undefined}
          onEnd={last?.next && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
          footer={further}
          empty={q ? <Empty title={further ? "None of the newest executions fits" : "No execution fits"}>{further ? "Older ones have not been searched yet." : "Take words out of the filter, or look further back."}</Empty> : <Empty title="No executions yet" example="noetl exec examples/hello" action={<Link to="/playbooks">Choose a playbook to run</Link>}>An execution is one run of a playbook. Start one here or in a terminal.</Empty>}
        />
      )}
      {chosen.length > 0 ? (
        <div className={css.bulk} role="toolbar" aria-label="Marked executions">
          <strong>{chosen.length} marked</strong>
          <Button onClick={() => setAct("retry")} disabled={!chosen.some((row) => row.status === "failed" || row.status === "partial")}>
            Retry from the failed step…
          </Button>
          <Button kind="danger" onClick={() => setAct("cancel")} disabled={chosen.every((row) => hasEnded(row.status))}>
            Cancel…
          </Button>
          <Button disabled={chosen.length !== 2} why={chosen.length === 2 ? undefined : "mark two executions"} onClick={() => void navigate({ to: "/executions/$id/compare/$other", params: { id: chosen[0]?.execution_id ?? "", other: chosen[1]?.execution_id ?? "" } })}>
            Compare
          </Button>
          <Copy text={chosen.map((row) => row.execution_id).join("\n")} label="Copy ids">
            Copy ids
          </Copy>
          <Button kind="quiet" onClick={() => setMarked(new Set())}>
            Unmark
          </Button>
        </div>
      ) : null}
      {act ? <Bulk act={act} ids={chosen.map((row) => row.execution_id)} q={q} filter={filter} onClose={() => setAct(null)} onDone={() => setMarked(new Set())} /> : null}
    </>
  );
}

/** Words that can stand at the end of a filter: keys, then values of the key. */
function useOffers(word: string): string[] {
  const [, key = "", value = ""] = /^(\w+):(.*)$/.exec(word) ?? [];
  const asked = useDelayed(value.replace(/\*$/, ""), 100);
  const catalog = useQuery({ queryKey: ["offers", asked], enabled: key === "path" || key === "tag", staleTime: 60_000, queryFn: ({ signal }) => get<Schemas["CatalogPage"]>("/api/catalog", { search: key === "path" ? asked || undefined : undefined, limit: 100 }, signal) });
  const rows = catalog.data?.playbooks ?? [];
  const values: Record<string, string[]> = {
    status: EXECUTION_STATES,
    needs: ["signal"],
    since: ["1h", "24h", "7d", "30d"],
    until: ["1h", "24h", "7d", "30d"],
    path: [...new Set(rows.flatMap((row) => [row.path, ...(row.path.includes("/") ? [`${row.path.replace(/\/[^/]*$/, "")}/*`] : [])]))],
    tag: [...new Set(rows.flatMap((row) => row.tags ?? []))],
  };
  if (key) return (values[key] ?? []).map((one) => `${key}:${one}`).filter((one) => one.startsWith(word)).slice(0, 12);
  return word ? KEYS.filter((one) => one.startsWith(word)).map((one) => (one === "needs" ? "needs:signal" : `${one}:`)) : [];
}

function QueryBar({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [draft, setDraft] = useState(text);
  useEffect(() => setDraft(text), [text]);
  const word = /(\S*)$/.exec(draft)?.[1] ?? "";
  const offers = useOffers(word);
  return (
    <form
      className={css.query}
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(draft.trim());
      }}
    >
      <input
        data-filter
        type="text"
        aria-label="Filter executions"
        placeholder='status:failed path:orders/nightly tag:nightly since:24h needs:signal "words of an error"'
        value={draft}
        list="query-offers"
        onChange={(event) => setDraft(event.target.value)}
        onBlur={() => draft.trim() !== text && onChange(draft.trim())}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      />
      <datalist id="query-offers">
        {offers.map((one) => (
          <option key={one} value={draft.slice(0, draft.length - word.length) + one} />
        ))}
      </datalist>
      {text ? (
        <button type="button" className={css.clear} aria-label="Clear the filter" onClick={() => onChange("")}>
          ✕
        </button>
      ) : null}
    </form>
  );
}
