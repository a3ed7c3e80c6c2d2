import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import type { Schemas } from "../api/client";
import { useList } from "../api/lists";
import { useNeeds } from "../api/session";
import { Bars } from "../parts/Bars";
import { Button, Empty, Loading, Tags, Time, Trouble } from "../parts/controls";
import { Filter, Page } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { noetl } from "../words/command";
import { duration, middle, plain } from "../words/format";
import { parseCatalogQuery } from "../words/query";
import { figuresOf } from "../words/shares";
import css from "./Playbooks.module.css";
import { Run } from "./Run";

type Row = Schemas["CatalogEntry"];
const RECENT = 20;
const pairs = (labels: Record<string, string>) => Object.entries(labels).map(([key, value]) => `${key}=${value}`);
const only = (row: Row, one: string) => `${(row.tags ?? []).includes(one) ? "tag" : "label"}:${/\s/.test(one) ? `"${one}"` : one}`;

export function Playbooks() {
  const search = useSearch({ strict: false }) as { q?: string; tag?: string };
  // A tag in the address is a word of the filter.
  const q = [search.tag ? `tag:${search.tag}` : "", search.q ?? ""].filter(Boolean).join(" ");
  const navigate = useNavigate();
  const needs = useNeeds();
  const [run, setRun] = useState<string | null>(null);
  const { rows, more, isPending, error, again } = useList<Row>("/api/catalog", "playbooks", { ...parseCatalogQuery(q), recent: RECENT, limit: 100 });
  const setQuery = useCallback((next: string) => void navigate({ to: "/playbooks", search: { q: next || undefined }, replace: true }), [navigate]);
  const why = needs("operator");
  const columns: Column<Row>[] = [
    {
      id: "path",
      head: "Playbook",
      width: "minmax(200px, 3fr)",
      cell: (row) => (
        <Link to="/playbooks/$" params={{ _splat: row.path }} title={row.path} className={css.path}>
          {plain(middle(row.path))}
        </Link>
      ),
    },
    { id: "about", head: "Description", width: "minmax(120px, 3fr)", cell: (row) => <span title={row.description} className={css.about}>{plain(row.description ?? "")}</span> },
    { id: "tags", head: "Tags", width: "minmax(136px, 2fr)", cell: (row) => <Tags tags={[...(row.tags ?? []), ...pairs(row.labels ?? {})]} onPick={(one) => setQuery(only(row, one))} /> },
    { id: "version", name: "Version", head: <span className="hidden">Version</span>, width: "48px", cell: (row) => `v${row.version}` },
    { id: "recent", name: "Last 20", head: <span title="Height is the duration">Last 20</span>, width: "156px", cell: (row) => <Bars rows={row.recent ?? []} /> },
    { id: "p50", head: "p50", width: "72px", right: true, cell: (row) => duration(figuresOf(row.recent ?? []).p50) },
    { id: "p95", head: "p95", width: "72px", right: true, cell: (row) => duration(figuresOf(row.recent ?? []).p95) },
    { id: "started", head: "Last started", isTime: true, width: "112px", cell: (row) => <Time at={row.recent?.[0]?.started_at} /> },
    {
      id: "run",
      name: "Run…",
      head: <span className="hidden">Actions</span>,
      width: "72px",
      cell: (row) => (
        <Button className={css.small} why={why} aria-label={`Run ${row.path}`} onClick={() => setRun(row.path)}>
          Run…
        </Button>
      ),
    },
  ];
  return (
    <Page title="Playbooks" actions={<><Filter text={q} onChange={setQuery} label="Filter playbooks" hint="words, tag:nightly, label:team=data" /><Button onClick={() => void navigate({ to: "/edit" })}>Write a playbook</Button></>}>
      {error ? <Trouble error={error} again={again} /> : null}
      {isPending ? (
        <Loading rows={10} />
      ) : (
        <Table
          label="Playbooks"
          rows={rows}
          columns={columns}
          rowKey={(row) => row.path}
          copies={(row) => ({ path: `/playbooks/${row.path}`, command: noetl("exec", row.path) })}
          onOpen={(row) => void navigate({ to: "/playbooks/$", params: { _splat: row.path } })}
          onEnd={more}
          empty={
            q ? (
              <Empty title="No playbook fits" action={<Button onClick={() => setQuery("")}>Show all</Button>}>
                Nothing here fits “{plain(q)}”. Words are searched in path, name, description, tags and labels; <code>tag:</code> and <code>label:</code> must be equal.
              </Empty>
            ) : (
              <Empty title="No playbooks yet" example="noetl register examples/hello.yaml">
                A playbook is a YAML file with steps. Register one, and it can be run from here, on a schedule or by a webhook.
              </Empty>
            )
          }
        />
      )}
      {run !== null ? <Run path={run} onClose={() => setRun(null)} /> : null}
    </Page>
  );
}
