import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Schemas, send } from "../api/client";
import { mayBe, useMe, useNeeds } from "../api/session";
import { Act } from "../parts/Act";
import { Button, Command, Copy, Empty, Facts, Field, Loading, Time, Trouble } from "../parts/controls";
import { Dialog } from "../parts/Dialog";
import { Sign } from "../parts/Mark";
import { Filter, Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { Term } from "../parts/Term";
import { noetl } from "../words/command";
import { middle, now, plain } from "../words/format";
import css from "./tables.module.css";
import { fits, useTable } from "./useTable";

type Row = Schemas["TokenRow"];
const DAYS: [string, number | null][] = [["1 day", 1], ["30 days", 30], ["90 days", 90], ["1 year", 365], ["does not expire", null]];

function State({ row }: { row: Row }) {
  const word = row.revoked_at ? "revoked" : row.expires_at && row.expires_at < now() ? "expired" : "valid";
  return (
    <span className={css.state}>
      <Sign mark={word === "valid" ? "check" : "slash"} hue={word === "valid" ? "green" : "grey"} size={14} /> {word}
    </span>
  );
}

const COLUMNS: Column<Row>[] = [
  { id: "state", head: "State", width: "88px", cell: (row) => <State row={row} /> },
  { id: "name", head: "Name", width: "minmax(140px, 2fr)", cell: (row) => <span title={row.name} className={css.name}>{plain(middle(row.name)) || <span className={css.quiet}>no name</span>}</span> },
  { id: "id", head: "Id", width: "96px", cell: (row) => <code>{plain(row.token_id)}</code> },
  { id: "role", head: "Role", width: "88px", cell: (row) => plain(row.role) },
  { id: "in", head: "Paths", width: "minmax(80px, 1fr)", cell: (row) => <span title={row.namespaces.join(", ")}>{plain(row.namespaces.join(", ")) || "all"}</span> },
  { id: "expires", head: "Expires", isTime: true, width: "104px", cell: (row) => (row.expires_at ? <Time at={row.expires_at} /> : "never") },
  { id: "used", head: "Last used", isTime: true, width: "104px", cell: (row) => <Time at={row.used_at} /> },
];

export function Tokens() {
  const { q, id, setQuery, choose } = useTable("/tokens");
  const { data: me } = useMe();
  const needs = useNeeds();
  const client = useQueryClient();
  const isAdmin = mayBe(me, "admin");
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<Schemas["TokenMade"] | null>(null);
  const found = useQuery({ queryKey: ["list", "tokens"], enabled: isAdmin, queryFn: ({ signal }) => get<Schemas["TokenRows"]>("/api/tokens", {}, signal), refetchInterval: 10_000 });
  const all = found.data?.tokens ?? [];
  const rows = all.filter((row) => fits(q, row.name, row.token_id, row.role, row.created_by));
  const chosen = all.find((row) => row.token_id === id);
  if (me && !isAdmin) return <Empty title="Needs admin">Your role does not read tokens.</Empty>;
  return (
    <Page
      title={<Term word="API token">Tokens</Term>}
      actions={
        <>
          <Filter text={q} onChange={setQuery} label="Filter tokens" hint="name, id, role" />
          <Button kind="primary" why={needs("admin")} onClick={() => setNew(true)}>
            New token…
          </Button>
        </>
      }
    >
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      <Split panel={chosen ? <One row={chosen} onClose={() => choose(undefined)} /> : null}>
        {found.isPending ? (
          <Loading />
        ) : (
          <Table
            label="Tokens"
            rows={rows}
            columns={COLUMNS}
            rowKey={(row) => row.token_id}
            selected={id}
            onOpen={(row) => choose(row.token_id)}
            empty={q ? <Empty title="No token fits">Nothing here contains “{plain(q)}”.</Empty> : <Empty title="No tokens yet" example="noetl token create --role operator --name ci">A token lets a program or a browser in with one role.</Empty>}
          />
        )}
      </Split>
      {isNew ? <Create onClose={() => setNew(false)} onDone={(token) => { setMade(token); void client.invalidateQueries({ queryKey: ["list"] }); }} /> : null}
      {made ? (
        <Dialog open onClose={() => setMade(null)} title={`Token ${plain(made.name) || made.token_id}`}>
          <div className={css.secret}>
            <strong>This secret is shown once.</strong>
            <Command text={made.secret} />
            <span>Closing this dialog forgets it. A lost token is revoked, and a new one created.</span>
            <Copy text={made.secret} label="Copy the secret">
              Copy the secret
            </Copy>
          </div>
        </Dialog>
      ) : null}
    </Page>
  );
}

function Create({ onClose, onDone }: { onClose: () => void; onDone: (made: Schemas["TokenMade"]) => void }) {
  const [draft, setDraft] = useState({ name: "", role: "viewer", days: "30", namespaces: "", pool: "" });
  const set = (change: Partial<typeof draft>) => setDraft({ ...draft, ...change });
  const namespaces = draft.namespaces.split(/[\s,]+/).filter(Boolean);
  const days = draft.days === "" ? null : Number(draft.days);
  const isWorker = draft.role === "worker";
  return (
    <Act
      title="New token"
      label="Create"
      command={noetl("token", "create", "--role", draft.role, draft.name && "--name", draft.name, ...namespaces.flatMap((one) => ["--namespace", one]), days !== null && "--expires", days !== null && `${days}d`)}
      run={() => send<Schemas["TokenMade"]>("POST", "/api/tokens", { role: draft.role, name: draft.name, expires_s: days === null ? null : days * 86_400, namespaces, pool: isWorker && draft.pool ? draft.pool : null })}
      onClose={onClose}
      onDone={onDone}
    >
      <p>Creates a secret that signs in with this role. It is shown once.</p>
      <Field label="Name" hint="Where it is used.">
        <input value={draft.name} autoFocus onChange={(event) => set({ name: event.target.value })} />
      </Field>
      <Field label="Role">
        <select value={draft.role} onChange={(event) => set({ role: event.target.value })}>
          {["viewer", "operator", "editor", "admin", "worker"].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </Field>
      <Field label="Expires">
        <select value={draft.days} onChange={(event) => set({ days: event.target.value })}>
          {DAYS.map(([label, value]) => (
            <option key={label} value={value ?? ""}>
              {label}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Paths" hint="Prefixes such as team-a/, separated by spaces; none means all.">
        <input value={draft.namespaces} onChange={(event) => set({ namespaces: event.target.value })} />
      </Field>
      {isWorker ? (
        <Field label="Pool" hint="The pool that the worker takes work from.">
          <input value={draft.pool} onChange={(event) => set({ pool: event.target.value })} />
        </Field>
      ) : null}
    </Act>
  );
}

function One({ row, onClose }: { row: Row; onClose: () => void }) {
  const needs = useNeeds();
  const client = useQueryClient();
  const [isAsked, setAsked] = useState(false);
  return (
    <Panel
      title={plain(row.name) || row.token_id}
      label={`token ${row.token_id}`}
      onClose={onClose}
      actions={
        <Button kind="danger" why={needs("admin") ?? (row.revoked_at ? "It is revoked" : undefined)} onClick={() => setAsked(true)}>
          Revoke…
        </Button>
      }
    >
      <State row={row} />
      <Facts
        rows={[
          ["Id", <code key="i">{plain(row.token_id)}</code>],
          ["Role", plain(row.role)],
          ["Paths", plain(row.namespaces.join(", ")) || "all"],
          ["Pool", row.pool ? plain(row.pool) : ""],
          ["Created", <Time key="c" at={row.created_at} />],
          ["Created by", plain(row.created_by)],
          ["Expires", row.expires_at ? <Time key="e" at={row.expires_at} /> : "never"],
          ["Last used", row.used_at ? <Time key="u" at={row.used_at} /> : "not yet"],
          ["Revoked", row.revoked_at ? <Time key="r" at={row.revoked_at} /> : ""],
        ]}
      />
      {isAsked ? (
        <Act title={`Revoke ${plain(row.name) || row.token_id}`} label="Revoke" kind="danger" command={noetl("token", "revoke", row.token_id)} run={() => send("DELETE", `/api/tokens/${encodeURIComponent(row.token_id)}`)} onClose={() => setAsked(false)} onDone={() => void client.invalidateQueries({ queryKey: ["list"] })}>
          <p>Programs and browsers that use it are refused within a second. It cannot be made valid again.</p>
        </Act>
      ) : null}
    </Panel>
  );
}
