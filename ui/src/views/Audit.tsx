import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { get, type Schemas } from "../api/client";
import { useList } from "../api/lists";
import { mayBe, useMe } from "../api/session";
import { Command, Empty, Facts, Loading, Time, Trouble } from "../parts/controls";
import { Json } from "../parts/Json";
import { Sign } from "../parts/Mark";
import { Card, Filter, Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { Term } from "../parts/Term";
import { noetl } from "../words/command";
import { count, exact, middle, plain } from "../words/format";
import css from "./tables.module.css";
import { useTable } from "./useTable";

type Row = Schemas["AuditRow"];

/** What an entry is about, as a link to it where the UI has a page. */
function Entity({ row }: { row: Row }): ReactNode {
  const what = row.action.split(".")[0];
  const text = plain(middle(row.entity));
  if (what === "execution") return <Link to="/executions/$id" params={{ id: row.entity }} title={row.entity}>{text}</Link>;
  if (what === "playbook") return <Link to="/playbooks/$" params={{ _splat: row.entity.split("@")[0] ?? "" }} title={row.entity}>{text}</Link>;
  if (what === "credential") return <Link to="/credentials" search={{ id: row.entity }} title={row.entity}>{text}</Link>;
  if (what === "token") return <Link to="/tokens" search={{ id: row.entity }} title={row.entity}>{text}</Link>;
  if (what === "user" || what === "group") return <Link to="/people" search={{ tab: what === "group" ? "groups" : undefined, id: row.entity }} title={row.entity}>{text}</Link>;
  if (what === "schedule") return <Link to="/schedules" search={{ id: row.entity }} title={row.entity}>{text}</Link>;
  if (what === "webhook" || what === "trigger" || what === "subscription" || what === "notification") return <Link to="/schedules" search={{ tab: `${what}s`, id: row.entity }} title={row.entity}>{text}</Link>;
  if (what === "worker") return <Link to="/workers" search={{ id: row.entity }} title={row.entity}>{text}</Link>;
  return <span title={row.entity}>{text}</span>;
}

const COLUMNS: Column<Row>[] = [
  { id: "at", head: "When", isTime: true, width: "104px", cell: (row) => <Time at={row.at} /> },
  { id: "actor", head: "Actor", width: "minmax(96px, 1fr)", cell: (row) => <span title={row.actor}>{plain(row.actor)}</span> },
  { id: "action", head: "Action", width: "minmax(128px, 1fr)", cell: (row) => <code>{plain(row.action)}</code> },
  { id: "entity", head: "Object", width: "minmax(140px, 2fr)", cell: (row) => <Entity row={row} /> },
  { id: "change", head: "Change", width: "minmax(140px, 2fr)", cell: (row) => <span title={`${row.before} → ${row.after}`}>{plain([row.before, row.after].filter(Boolean).join(" → "))}</span> },
];

/** `actor:NAME entity:ID`; a word alone is an entity. */
export function filterOf(q: string): { actor?: string; entity?: string } {
  const actor = /\bactor:(\S+)/.exec(q)?.[1];
  const entity = /\bentity:(\S+)/.exec(q)?.[1] ?? (q.replace(/\b(actor|entity):\S*/g, "").trim() || undefined);
  return { actor, entity };
}

export function Audit() {
  const { q, id, setQuery, choose } = useTable("/audit");
  const { data: me } = useMe();
  const isAdmin = mayBe(me, "admin");
  const filter = filterOf(q);
  const { rows, more, isPending, error, again } = useList<Row>("/api/audit", "entries", { ...filter, limit: 100 }, { enabled: isAdmin });
  const chosen = rows.find((row) => String(row.number) === id);
  if (me && !isAdmin) return <Empty title="Needs admin">Your role does not read the audit trail.</Empty>;
  return (
    <Page title={<Term word="audit trail">Audit</Term>} note={<Chain />} actions={<Filter text={q} onChange={setQuery} label="Filter entries" hint="actor:ada entity:orders/nightly" />}>
      {error ? <Trouble error={error} again={again} /> : null}
      <Split
        panel={
          chosen ? (
            <Panel title={plain(chosen.action)} label={`entry ${chosen.number}`} onClose={() => choose(undefined)}>
              <Facts rows={[["Number", chosen.number], ["When", exact(chosen.at)], ["Actor", plain(chosen.actor)], ["Object", <Entity key="e" row={chosen} />], ["Before", plain(chosen.before ?? "")], ["After", plain(chosen.after ?? "")]]} />
              <Card title="Detail">
                <div className={css.pad}>
                  <Json value={chosen.detail} />
                </div>
              </Card>
              <Command text={noetl("audit", "list", "--entity", chosen.entity)} />
            </Panel>
          ) : null
        }
      >
        {isPending ? (
          <Loading />
        ) : (
          <Table
            label="Audit"
            rows={rows}
            columns={COLUMNS}
            rowKey={(row) => String(row.number)}
            selected={id}
            onOpen={(row) => choose(String(row.number))}
            onEnd={more}
            empty={q ? <Empty title="No entry fits">An actor or an object is found by its whole name.</Empty> : <Empty title="Nothing has been changed yet" example="noetl audit list">Every change that a person or a token makes is written here, in a chain of hashes.</Empty>}
          />
        )}
      </Split>
    </Page>
  );
}

/** Whether the chain of hashes holds. */
function Chain() {
  const found = useQuery({ queryKey: ["audit", "verify"], queryFn: ({ signal }) => get<Schemas["AuditVerified"]>("/api/audit/verify", {}, signal), staleTime: 60_000, retry: false });
  if (!found.data) return null;
  return (
    <span className={css.state} title={`Head ${found.data.head.hash}`}>
      <Sign mark={found.data.is_intact ? "check" : "cross"} hue={found.data.is_intact ? "green" : "red"} size={14} />
      {found.data.is_intact ? `chain of ${count(found.data.entries)} entries is intact` : `chain is broken: ${plain(found.data.broken?.detail ?? "")}`}
    </span>
  );
}
