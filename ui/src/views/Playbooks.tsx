import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { get, type Schemas } from "../api/client";
import { Empty, Loading, Time, Trouble } from "../parts/controls";
import { type Column, Table } from "../parts/Table";
import { plain } from "../words/format";
import { useDelayed } from "../moments/use";
import css from "./page.module.css";

type Entry = Schemas["CatalogEntry"];

const COLUMNS: Column<Entry>[] = [
  { id: "path", head: "Playbook", width: "minmax(240px, 3fr)", cell: (row) => <Link to="/playbooks/$" params={{ _splat: row.path }} className={css.strong} title={row.path}>{plain(row.path)}</Link> },
  { id: "version", head: "Version", width: "80px", right: true, cell: (row) => `v${row.version}` },
  { id: "versions", head: "Versions", width: "80px", right: true, cell: (row) => row.versions },
  { id: "at", head: "Registered", width: "minmax(120px, 1fr)", cell: (row) => <Time at={row.registered_at} /> },
  { id: "hash", head: "Content", width: "120px", cell: (row) => <code title={row.playbook}>{row.playbook.slice(0, 12)}</code> },
];

export function Playbooks() {
  const { q = "" } = useSearch({ strict: false }) as { q?: string };
  const navigate = useNavigate();
  const [text, setText] = useState(q);
  const asked = useDelayed(text.trim(), 150);
  const pages = useInfiniteQuery({
    queryKey: ["catalog", asked],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => get<Schemas["CatalogPage"]>("/api/catalog", { search: asked, cursor: pageParam, limit: 100 }, signal),
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: (old) => old,
  });
  const rows = pages.data?.pages.flatMap((page) => page.playbooks) ?? [];
  return (
    <>
      <h1 className="hidden">Playbooks</h1>
      <div className={css.bar}>
        <input data-filter type="search" className={css.filter} placeholder="Find a playbook" aria-label="Find a playbook" value={text} onChange={(event) => { setText(event.target.value); void navigate({ to: "/playbooks", search: { q: event.target.value || undefined }, replace: true }); }} />
      </div>
      {pages.error ? <Trouble error={pages.error} again={() => void pages.refetch()} /> : null}
      {pages.isPending ? <Loading rows={10} /> : (
        <Table
          label="Playbooks"
          rows={rows}
          columns={COLUMNS}
          rowKey={(row) => row.path}
          onOpen={(row) => void navigate({ to: "/playbooks/$", params: { _splat: row.path } })}
          onEnd={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
          empty={asked ? <Empty title="No playbook has this name" /> : <Empty title="No playbooks yet" example="noetl register examples/hello.yaml">A playbook is a YAML file with steps. Register one in the catalog, then run it here.</Empty>}
        />
      )}
    </>
  );
}
