import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { get, newKey, type Schemas, send } from "../api/client";
import { useList } from "../api/lists";
import { useNeeds } from "../api/session";
import { Act } from "../parts/Act";
import { Button, Empty, ExecutionId, Facts, Loading, TabList, Time, Trouble } from "../parts/controls";
import { Json } from "../parts/Json";
import { Mark, Sign } from "../parts/Mark";
import { Card, Filter, Lines, Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { noetl } from "../words/command";
import { exact, middle, plain, plural } from "../words/format";
import { Backfill, Create } from "./Schedule";
import css from "./Schedules.module.css";
import { fits, useTable } from "./useTable";

type Schedule = Schemas["ScheduleRow"];
const KINDS = ["schedules", "webhooks", "triggers", "subscriptions", "notifications"] as const;
type Kind = (typeof KINDS)[number];
type Raw = Record<string, unknown> & { path: string; paused?: boolean; owner?: string; problem?: string; error?: string; payload?: object };
interface About {
  label: string;
  /** The word of its commands and of its identifier. */
  noun: string;
  head: string;
  what: (row: Raw) => string;
  empty: string;
  example: string;
  /** What a pause does. */
  pause: string;
  deletes: "operator" | "editor";
}
const text = (value: unknown): string => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value));

export const times = (row: Partial<Schedule>): string =>
  row.cron ? `cron ${row.cron}` : row.every ? `every ${row.every}` : row.calendar ? `on ${row.calendar.dates.slice(0, 3).join(", ")}${row.calendar.dates.length > 3 ? ` and ${row.calendar.dates.length - 3} more` : ""} at ${(row.calendar.at ?? ["00:00"]).join(", ")}` : "";

const ABOUT: Record<Kind, About> = {
  schedules: { label: "Schedules", noun: "schedule", head: "Times", what: (row) => `${times(row as unknown as Schedule)} · ${text(row.timezone)}`, empty: "A schedule starts a playbook at given times.", example: 'noetl schedule create nightly examples/hello --cron "30 2 * * *"', pause: "Nothing fires until it is resumed. What it misses is not started.", deletes: "operator" },
  webhooks: { label: "Webhooks", noun: "webhook", head: "Address", what: (row) => `${text(row.url)} · ${text(row.auth)}`, empty: "A webhook starts a playbook when another system calls its address with a proof.", example: "noetl webhook create orders examples/hello --auth hmac --credential shop_hook", pause: "Deliveries are refused until it is resumed.", deletes: "operator" },
  triggers: { label: "After executions", noun: "trigger", head: "Starts after", what: (row) => `${text(row.after)} ${((row.status as string[]) ?? []).join(", ") || "any end"}`, empty: "A trigger starts a playbook when executions of others end.", example: "noetl trigger create alarm examples/hello --after 'etl/*' --status failed", pause: "Ends of executions start nothing until it is resumed.", deletes: "operator" },
  subscriptions: { label: "Subscriptions", noun: "subscription", head: "Reads", what: (row) => text(row.reads), empty: "A subscription polls a table, folder, channel or URL and starts a playbook per message.", example: "noetl subscription create inbox examples/hello --source folder --folder /data/in", pause: "It is not polled until it is resumed, and goes on where it was.", deletes: "operator" },
  notifications: { label: "Notifications", noun: "notification", head: "Tells", what: (row) => `${((row.on as string[]) ?? []).join(", ")} → ${text(row.channel)}`, empty: "A notification tells people when executions fail, wait for an approval or are late.", example: "noetl notification create team 'orders/*' --on failed --channel slack --credential slack", pause: "No message is sent until it is resumed.", deletes: "editor" },
};
const idOf = (kind: Kind, row: Raw): string => text(row[`${ABOUT[kind].noun}_id`]);

function State({ row }: { row: Raw }) {
  const problem = row.problem || row.error;
  if (problem) {
    return (
      <span className={css.state} title={problem}>
        <Sign mark="cross" hue="red" size={14} /> {plain(problem)}
      </span>
    );
  }
  return <span className={css.state}>{row.paused ? <Mark state="paused" word size={14} /> : <><Sign mark="check" hue="green" size={14} /> active</>}</span>;
}

function columnsOf(kind: Kind, hasPath: boolean): Column<Raw>[] {
  const about = ABOUT[kind];
  const columns: Column<Raw>[] = [
    { id: "id", head: "Name", width: "minmax(140px, 2fr)", cell: (row) => <span title={idOf(kind, row)} className={css.name}>{plain(middle(idOf(kind, row)))}</span> },
    { id: "what", head: about.head, width: "minmax(160px, 3fr)", cell: (row) => <span title={about.what(row)}>{plain(about.what(row))}</span> },
  ];
  if (hasPath) columns.push({ id: "path", head: "Playbook", width: "minmax(140px, 2fr)", cell: (row) => (kind === "notifications" ? <span title={row.path}>{plain(row.path)}</span> : <Link to="/playbooks/$" params={{ _splat: row.path }} title={row.path}>{plain(middle(row.path))}</Link>) });
  if (kind === "schedules") columns.push({ id: "next", head: "Next", isTime: true, width: "104px", cell: (row) => (row.paused ? "" : <Time at={row.next_at as number | null} />) });
  if (kind === "subscriptions") columns.push({ id: "received", head: "Messages", width: "88px", right: true, cell: (row) => text(row.received) }, { id: "lag", head: "Lag", width: "72px", right: true, cell: (row) => text(row.lag) });
  columns.push({ id: "state", head: "State", width: "minmax(96px, 1fr)", cell: (row) => <State row={row} /> });
  return columns;
}

export function Schedules() {
  const { q, id, tab, go, setQuery, choose } = useTable("/schedules");
  const kind: Kind = KINDS.find((one) => one === tab) ?? "schedules";
  const about = ABOUT[kind];
  const needs = useNeeds();
  const [isNew, setNew] = useState(false);
  const list = useList<Raw>(`/api/${kind}`, kind, { limit: 100 });
  const rows = list.rows.filter((row) => fits(q, idOf(kind, row), row.path, about.what(row)));
  const chosen = list.rows.find((row) => idOf(kind, row) === id);
  return (
    <Page
      title="Schedules and triggers"
      actions={
        <>
          <Filter text={q} onChange={setQuery} label={`Filter ${about.label.toLowerCase()}`} hint="name, playbook" />
          {kind === "schedules" ? (
            <Button kind="primary" why={needs("operator")} onClick={() => setNew(true)}>
              New schedule…
            </Button>
          ) : null}
        </>
      }
    >
      <div className={css.tabs}>
        <TabList label="Kinds of triggers" value={kind} onChange={(next) => go({ tab: next === "schedules" ? undefined : next, id: undefined, q: undefined })} tabs={KINDS.map((one) => ({ id: one, label: ABOUT[one].label }))} />
      </div>
      {list.error ? <Trouble error={list.error} again={list.again} /> : null}
      <Split panel={chosen ? <One kind={kind} row={chosen} onClose={() => choose(undefined)} /> : null}>
        {list.isPending ? (
          <Loading />
        ) : (
          <Table
            key={kind}
            label={about.label}
            rows={rows}
            columns={columnsOf(kind, true)}
            rowKey={(row) => idOf(kind, row)}
            selected={id}
            onOpen={(row) => choose(idOf(kind, row))}
            onEnd={list.more}
            empty={
              q ? (
                <Empty title="None fits">Nothing here contains “{plain(q)}”.</Empty>
              ) : (
                <Empty title={`No ${kind === "triggers" ? "triggers" : about.label.toLowerCase()} yet`} example={about.example}>
                  {about.empty}
                </Empty>
              )
            }
          />
        )}
      </Split>
      {isNew ? <Create onClose={() => setNew(false)} onDone={(made) => { list.again(); choose(made.schedule_id); }} /> : null}
    </Page>
  );
}

type Deed = "pause" | "resume" | "delete" | "run" | "backfill";

function One({ kind, row, onClose }: { kind: Kind; row: Raw; onClose: () => void }) {
  const about = ABOUT[kind];
  const id = idOf(kind, row);
  const needs = useNeeds();
  const client = useQueryClient();
  const [deed, setDeed] = useState<Deed | null>(null);
  const why = needs("operator");
  const refresh = () => void client.invalidateQueries();
  const owned = row.owner ? `It is declared in ${row.owner}; change it there` : undefined;
  const shown = Object.entries(row).filter(([name, value]) => !["payload", "spec", "position", "path", "paused", "owner", `${about.noun}_id`].includes(name) && !name.endsWith("_at") && value !== "" && value !== null && typeof value !== "object");
  return (
    <Panel
      title={plain(id)}
      label={`${about.noun} ${id}`}
      onClose={onClose}
      actions={
        <>
          {row.paused ? <Button why={why} onClick={() => setDeed("resume")}>Resume…</Button> : <Button why={why} onClick={() => setDeed("pause")}>Pause…</Button>}
          {kind === "schedules" ? <Button why={why} onClick={() => setDeed("run")}>Run now…</Button> : null}
          {kind === "schedules" ? <Button why={why} onClick={() => setDeed("backfill")}>Backfill…</Button> : null}
          <Button kind="danger" why={needs(about.deletes) ?? owned} onClick={() => setDeed("delete")}>Delete…</Button>
        </>
      }
    >
      <State row={row} />
      <Facts
        rows={[
          ["Playbook", kind === "notifications" ? plain(row.path) : <Link key="p" to="/playbooks/$" params={{ _splat: row.path }}>{plain(row.path)}</Link>],
          [about.head, plain(about.what(row))],
          ["Declared in", row.owner ? <Link key="o" to="/playbooks/$" params={{ _splat: row.owner }} search={{ tab: "yaml" }}>{plain(row.owner)}</Link> : ""],
          ...shown.map(([name, value]): [string, string] => [name.replaceAll("_", " "), plain(text(value))]),
          ["created", row.created_at ? <Time key="c" at={row.created_at as number} /> : ""],
        ]}
      />
      {kind === "schedules" ? <Firings id={id} /> : null}
      {row.payload && Object.keys(row.payload).length > 0 ? (
        <Card title="Payload">
          <div className={css.pad}>
            <Json value={row.payload} />
          </div>
        </Card>
      ) : null}
      {deed === "pause" || deed === "resume" ? (
        <Act title={`${deed === "pause" ? "Pause" : "Resume"} ${plain(id)}`} label={deed === "pause" ? "Pause" : "Resume"} command={noetl(about.noun, deed, id)} run={() => send("POST", `/api/${kind}/${encodeURIComponent(id)}/${deed}`)} onClose={() => setDeed(null)} onDone={refresh}>
          <p>{deed === "pause" ? about.pause : "It goes on from now."}</p>
        </Act>
      ) : null}
      {deed === "delete" ? (
        <Act title={`Delete ${plain(id)}`} label="Delete" kind="danger" command={noetl(about.noun, "delete", id)} run={() => send("DELETE", `/api/${kind}/${encodeURIComponent(id)}`)} onClose={() => setDeed(null)} onDone={() => { onClose(); refresh(); }}>
          <p>The {about.noun} is removed with what it remembers. Executions that it started stay.</p>
        </Act>
      ) : null}
      {deed === "run" ? <RunNow row={row as unknown as Schedule} onClose={() => setDeed(null)} /> : null}
      {deed === "backfill" ? <Backfill row={row as unknown as Schedule} onClose={() => setDeed(null)} onDone={refresh} /> : null}
    </Panel>
  );
}

function RunNow({ row, onClose }: { row: Schedule; onClose: () => void }) {
  const navigate = useNavigate();
  const [key] = useState(newKey);
  const payload = row.payload ?? {};
  const has = Object.keys(payload).length > 0;
  return (
    <Act
      title={`Run ${plain(row.path)} now`}
      label="Run"
      command={noetl("exec", row.path, row.version && "--version", row.version, has && "--payload", has && JSON.stringify(payload))}
      run={() => send<Schemas["Started"]>("POST", "/api/execute", { path: row.path, version: row.version ?? undefined, payload }, { "Idempotency-Key": key })}
      onClose={onClose}
      onDone={(made) => void navigate({ to: "/executions/$id", params: { id: made.execution_id } })}
    >
      <p>Starts one execution with the payload of {plain(row.schedule_id)}. The times of the schedule stay as they are, and its overlap rule does not count this one.</p>
    </Act>
  );
}

function Firings({ id }: { id: string }) {
  const path = `/api/schedules/${encodeURIComponent(id)}`;
  const next = useQuery({ queryKey: ["list", path, "next"], queryFn: ({ signal }) => get<Schemas["NextRuns"]>(`${path}/next`, { count: 5 }, signal), refetchInterval: 10_000 });
  const past = useQuery({ queryKey: ["list", path, "firings"], queryFn: ({ signal }) => get<Schemas["FiringRows"]>(`${path}/firings`, { limit: 20 }, signal), refetchInterval: 10_000 });
  return (
    <>
      <Card title="Next five" note={next.data?.timezone}>
        {next.error ? <Trouble error={next.error} /> : null}
        <Lines
          label="Next firings"
          heads={["when", "at"]}
          rows={next.data?.paused ? [] : (next.data?.runs ?? []).slice(0, 5).map((one) => ({ key: String(one.at), cells: [<Time key="t" at={one.at} />, <span key="l" title={exact(one.at)} className={css.nowrap}>{one.local.slice(0, 19).replace("T", " ")}</span>] }))}
          empty={next.data?.paused ? "It is paused." : next.data ? "No time is left." : <Loading rows={3} />}
        />
      </Card>
      <Card title="Last firings">
        {past.error ? <Trouble error={past.error} /> : null}
        <Lines
          label="Last firings"
          heads={["at", "state", "execution"]}
          rows={(past.data?.firings ?? []).map((one) => ({
            key: `${one.at}${one.state}`,
            cells: [
              <span key="t" title={exact(one.at)} className={css.nowrap}>{one.local.slice(0, 19).replace("T", " ")}</span>,
              <span key="s" title={one.detail}>{plain([one.state, one.reason, (one.count ?? 1) > 1 ? plural(one.count ?? 1, "time") : ""].filter(Boolean).join(", "))}</span>,
              one.execution_id ? <ExecutionId key="e" id={one.execution_id} /> : null,
            ],
          }))}
          empty={past.data ? "It has not fired yet." : <Loading rows={3} />}
        />
      </Card>
    </>
  );
}

/** What starts one playbook without a person. */
export function TriggersOf({ path }: { path: string }) {
  return (
    <div className={css.all}>
      {KINDS.filter((one) => one !== "notifications").map((kind) => (
        <Of key={kind} kind={kind} path={path} />
      ))}
    </div>
  );
}

function Of({ kind, path }: { kind: Kind; path: string }) {
  const about = ABOUT[kind];
  const { rows, isPending, error, again } = useList<Raw>(`/api/${kind}`, kind, { path, limit: 100 });
  return (
    <Card title={about.label}>
      {error ? <Trouble error={error} again={again} /> : null}
      <Lines
        label={about.label}
        heads={["name", about.head.toLowerCase(), kind === "schedules" ? "next" : "", "state"]}
        rows={rows.map((row) => ({
          key: idOf(kind, row),
          cells: [
            <Link key="n" to="/schedules" search={{ tab: kind === "schedules" ? undefined : kind, id: idOf(kind, row) }}>{plain(idOf(kind, row))}</Link>,
            plain(about.what(row)),
            kind === "schedules" && !row.paused ? <Time key="t" at={row.next_at as number | null} /> : null,
            <State key="s" row={row} />,
          ],
        }))}
        empty={isPending ? <Loading rows={1} /> : <>{about.empty} <code>{about.example.replace("examples/hello", path)}</code></>}
      />
    </Card>
  );
}
