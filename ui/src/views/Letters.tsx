import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { get, type Schemas } from "../api/client";
import { useList } from "../api/lists";
import { useNeeds } from "../api/session";
import { Button, Empty, ExecutionId, Facts, Loading, TabList, Time, Trouble } from "../parts/controls";
import { Json } from "../parts/Json";
import { Sign } from "../parts/Mark";
import { Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { Term } from "../parts/Term";
import { LETTER_STATES, type LettersSearch } from "../routes";
import { count, middle, plain, plural } from "../words/format";
import css from "./Letters.module.css";
import { Discard, Replay, type Target } from "./Replay";

type Group = Schemas["LetterGroup"];
type Row = Schemas["LetterRow"];
const FILTERS = ["path", "step", "kind", "execution"] as const;
const MOST = 1_000;

/** Causes on the left; on the right the letters of one cause, one of them open, and what to do with them. */
export function Letters() {
  const { group } = useParams({ strict: false }) as { group?: string };
  const search = useSearch({ strict: false }) as LettersSearch;
  const navigate = useNavigate();
  const client = useQueryClient();
  const needs = useNeeds();
  const [act, setAct] = useState<{ verb: "replay" | "discard"; on: Target } | null>(null);
  const status = search.status ?? "pending";
  const filter = { path: search.path, step: search.step, kind: search.kind, execution_id: search.execution };
  const groups = useQuery({
    queryKey: ["letters", "groups", status, filter],
    queryFn: ({ signal }) => get<Schemas["LetterGroups"]>("/api/dlq/groups", { ...filter, status, limit: MOST }, signal),
    refetchInterval: 10_000,
  });
  const all = groups.data?.groups ?? [];
  const chosen = all.find((one) => one.fingerprint === group);
  const go = (change: LettersSearch, to: string | undefined = group, replace = false) => {
    const next = { ...search, ...change };
    if (to) void navigate({ to: "/letters/$group", params: { group: to }, search: next, replace });
    else void navigate({ to: "/letters", search: next, replace });
  };
  const total = all.reduce((sum, one) => sum + one.count, 0);
  const hasFilter = FILTERS.some((name) => search[name]);
  const target: Target | null = chosen ? { group: chosen.fingerprint, count: chosen.count, executions: chosen.executions } : null;
  const refresh = () => void client.invalidateQueries();
  return (
    <Page
      title={<Term word="dead letter">Dead letters</Term>}
      note={groups.data ? `${all.length === MOST ? `first ${count(MOST)} causes` : plural(all.length, "cause")}, ${plural(total, "letter")}` : undefined}
      actions={
        <div className={css.filters}>
          {FILTERS.map((name) => (
            <input key={name} aria-label={`Filter by ${name}`} placeholder={name} defaultValue={search[name] ?? ""} data-filter={name === "path" ? "" : undefined} onBlur={(event) => (event.target.value || undefined) !== search[name] && go({ [name]: event.target.value || undefined }, undefined, true)} onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()} />
          ))}
          <select aria-label="Status" value={status} onChange={(event) => go({ status: event.target.value === "pending" ? undefined : (event.target.value as LettersSearch["status"]), letter: undefined }, undefined)}>
            {LETTER_STATES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </div>
      }
    >
      {groups.error ? <Trouble error={groups.error} again={() => void groups.refetch()} /> : null}
      {groups.isPending ? <Loading rows={8} /> : null}
      {groups.data && all.length === 0 && !group ? (
        <Empty
          title={hasFilter || status !== "pending" ? "No dead letter fits" : "No dead letters"}
          example={hasFilter || status !== "pending" ? undefined : "noetl register examples/import_orders.yaml && noetl exec examples/import_orders --wait"}
          action={hasFilter || status !== "pending" ? <Link to="/letters">Show all that are pending</Link> : undefined}
        >
          Work that fails for good is kept here with its input, so that it can be repaired and run again.
        </Empty>
      ) : null}
      {groups.data && (all.length > 0 || group) ? (
        <div className={css.page}>
          <nav className={css.groups} aria-label="Causes">
            {all.map((one) => (
              <Cause key={one.fingerprint} one={one} isHere={one.fingerprint === group} search={{ ...search, letter: undefined }} />
            ))}
          </nav>
          <section className={css.one} aria-label="Letters of the cause">
            {chosen ? (
              <header className={css.head}>
                <div className={css.headtext}>
                  <h2 title={chosen.last_error}>{plain(chosen.last_error)}</h2>
                  <span className={css.where}>
                    <Link to="/playbooks/$" params={{ _splat: chosen.path }} search={{ step: chosen.step_id }}>{plain(chosen.path)}</Link> · {plain(chosen.step_id)}.{plain(chosen.task)} · {plural(chosen.count, "letter")} in {plural(chosen.executions, "execution")} · first <Time at={chosen.first_seen} />
                  </span>
                </div>
                {status === "pending" ? (
                  <div className={css.actions}>
                    <Button kind="primary" why={needs("operator")} onClick={() => target && setAct({ verb: "replay", on: target })}>
                      Replay {count(chosen.count)}…
                    </Button>
                    <Button kind="danger" why={needs("operator")} onClick={() => target && setAct({ verb: "discard", on: target })}>
                      Discard {count(chosen.count)}…
                    </Button>
                  </div>
                ) : null}
              </header>
            ) : null}
            {group ? (
              <Of group={group} status={status} filter={filter} letter={search.letter} onLetter={(letter) => go({ letter })} onAct={(verb, letter) => setAct({ verb, on: { letter, count: 1, executions: 1 } })} />
            ) : (
              <Empty title="Choose a cause">Letters with the same error at the same task are one cause. Repair one, and all of them can be replayed.</Empty>
            )}
          </section>
        </div>
      ) : null}
      {act?.verb === "replay" ? <Replay on={act.on} onClose={() => setAct(null)} onDone={refresh} /> : null}
      {act?.verb === "discard" ? <Discard on={act.on} onClose={() => setAct(null)} onDone={refresh} /> : null}
    </Page>
  );
}

function Cause({ one, isHere, search }: { one: Group; isHere: boolean; search: LettersSearch }) {
  return (
    <Link to="/letters/$group" params={{ group: one.fingerprint }} search={search} className={css.cause} aria-current={isHere ? "true" : undefined}>
      <Sign mark="cross" hue="red" size={14} />
      <span className={css.causetext}>
        <span className={css.error} title={one.last_error}>
          {plain(one.last_error)}
        </span>
        <span className={css.where} title={`${one.path} ${one.step_id}.${one.task}`}>
          {plain(middle(one.path, 32))} · {plain(one.step_id)}
        </span>
      </span>
      <span className={css.figures}>
        <strong>{count(one.count)}</strong>
        <span className={css.where}>
          <Time at={one.last_seen} />
        </span>
      </span>
    </Link>
  );
}

const COLUMNS: Column<Row>[] = [
  { id: "item", head: "Item", width: "minmax(88px, 1fr)", cell: (row) => <span title={row.run_id}>{row.loop_key ? plain(row.loop_key) : row.loop_index !== null && row.loop_index !== undefined ? `item ${row.loop_index}` : plain(row.run_id)}</span> },
  { id: "execution", head: "Execution", width: "88px", cell: (row) => <ExecutionId id={row.execution_id} /> },
  { id: "error", head: "Error", width: "minmax(120px, 3fr)", cell: (row) => <span title={row.last_error}>{plain(row.last_error)}</span> },
  { id: "attempts", head: "Attempts", width: "80px", right: true, cell: (row) => row.attempts },
  { id: "seen", head: "Last seen", isTime: true, width: "96px", cell: (row) => <Time at={row.last_seen} /> },
];

interface OfProps {
  group: string;
  status: string;
  filter: Record<string, string | undefined>;
  letter?: string;
  onLetter: (letter: string | undefined) => void;
  onAct: (verb: "replay" | "discard", letter: string) => void;
}

function Of({ group, status, filter, letter, onLetter, onAct }: OfProps) {
  const { rows, more, isPending, error, again } = useList<Row>("/api/dlq", "letters", { ...filter, group, status, limit: 100 });
  if (error) return <Trouble error={error} again={again} />;
  if (isPending) return <Loading rows={6} />;
  return (
    <Split panel={letter ? <Entry key={letter} id={letter} onClose={() => onLetter(undefined)} onAct={(verb) => onAct(verb, letter)} /> : null}>
      <Table
        label="Letters"
        rows={rows}
        columns={letter ? COLUMNS.filter((one) => one.id !== "error") : COLUMNS}
        rowKey={(row) => row.message_id}
        selected={letter}
        onOpen={(row) => onLetter(row.message_id)}
        onEnd={more}
        empty={
          <Empty title={`None is ${status} here`} action={<Link to="/letters">Other causes</Link>}>
            {status === "pending" ? "Every letter of this cause was replayed or discarded." : undefined}
          </Empty>
        }
      />
    </Split>
  );
}

const TABS = [
  { id: "payload", label: "Payload" },
  { id: "error", label: "Error" },
  { id: "stack", label: "Stack" },
  { id: "context", label: "Context" },
] as const;
type Tab = (typeof TABS)[number]["id"];

function contextOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function Entry({ id, onClose, onAct }: { id: string; onClose: () => void; onAct: (verb: "replay" | "discard") => void }) {
  const needs = useNeeds();
  const [tab, setTab] = useState<Tab>("payload");
  const found = useQuery({ queryKey: ["letter", id], queryFn: ({ signal }) => get<Schemas["Letter"]>(`/api/dlq/${encodeURIComponent(id)}`, {}, signal) });
  const one = found.data;
  const why = needs("operator") ?? (one && one.status !== "pending" ? `It is ${one.status}` : undefined);
  return (
    <Panel
      title={one ? (one.loop_index !== null && one.loop_index !== undefined ? `Item ${one.loop_index} of ${plain(one.step_id)}` : plain(one.run_id)) : "Letter"}
      label="The letter"
      onClose={onClose}
      actions={
        <>
          <Button why={why} onClick={() => onAct("replay")}>Replay…</Button>
          <Button kind="danger" why={why} onClick={() => onAct("discard")}>Discard…</Button>
        </>
      }
    >
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {one ? (
        <>
          <p className={css.errortext}>{plain(one.last_error)}</p>
          <Facts
            rows={[
              ["Execution", <ExecutionId key="e" id={one.execution_id} />],
              ["Step-run", <Link key="r" to="/executions/$id" params={{ id: one.execution_id }} search={{ step: one.step_id, run: one.run_id, item: one.loop_index ?? undefined, tab: "outcome" }}>{plain(one.run_id)}{one.task ? `, ${plain(one.task)}` : ""}</Link>],
              ["Key", one.loop_key ? plain(one.loop_key) : ""],
              ["Attempts", `${one.attempts}${one.replays ? `, replayed ${plural(one.replays, "time")}` : ""}`],
              ["Reason", plain(one.reason)],
              ["Status", one.status],
              ["First seen", <Time key="f" at={one.first_seen} />],
              ["Last seen", <Time key="l" at={one.last_seen} />],
              ["Closed by", one.closed_by ? plain(one.closed_by) : ""],
              ["Note", one.note ? plain(one.note) : ""],
            ]}
          />
          <TabList label="Parts of the letter" value={tab} onChange={setTab} tabs={[...TABS]} />
          {tab === "payload" ? <Json value={one.payload} /> : null}
          {tab === "error" ? <Json value={one.error} /> : null}
          {tab === "stack" ? one.last_stack ? <pre className={css.pre}>{plain(one.last_stack)}</pre> : <p className={css.where}>The tool gave no stack.</p> : null}
          {tab === "context" ? <Json value={contextOf(one.context_excerpt ?? "")} /> : null}
        </>
      ) : found.error ? null : (
        <Loading rows={6} />
      )}
    </Panel>
  );
}
