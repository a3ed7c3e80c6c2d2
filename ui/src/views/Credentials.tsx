import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { get, type Schemas, send } from "../api/client";
import { mayBe, useMe, useNeeds } from "../api/session";
import { Act } from "../parts/Act";
import { Button, Empty, Facts, Field, Loading, Time, Trouble } from "../parts/controls";
import { Filter, Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { noetl } from "../words/command";
import { middle, plain, plural } from "../words/format";
import css from "./tables.module.css";
import { fits, useTable } from "./useTable";

type Row = Schemas["CredentialRow"];
const KINDS = ["generic", "postgres", "mysql", "sqlite", "snowflake", "oauth2", "bearer", "basic", "api_key", "http", "service_account", "s3", "gcs", "azure", "nats", "secret"];
/** Fields that a kind usually has; any other can be added. */
const FIELDS: Record<string, string[]> = { postgres: ["host", "port", "user", "password", "database"], mysql: ["host", "port", "user", "password", "database"], bearer: ["token"], basic: ["user", "password"], api_key: ["key"], secret: ["value"], s3: ["access_key_id", "secret_access_key", "region"] };

const COLUMNS: Column<Row>[] = [
  { id: "name", head: "Name", width: "minmax(160px, 3fr)", cell: (row) => <span title={row.name} className={css.name}>{plain(middle(row.name))}</span> },
  { id: "kind", head: "Type", width: "120px", cell: (row) => plain(row.kind) },
  { id: "version", head: "Version", width: "72px", right: true, cell: (row) => row.version },
  { id: "updated", head: "Changed", isTime: true, width: "112px", cell: (row) => <Time at={row.updated_at} /> },
  { id: "created", head: "Created", isTime: true, width: "112px", cell: (row) => <Time at={row.created_at} /> },
];

/** Names, types and use of credentials. Values go in and never come out. */
export function Credentials() {
  const { q, id, setQuery, choose } = useTable("/credentials");
  const { data: me } = useMe();
  const needs = useNeeds();
  const client = useQueryClient();
  const [isNew, setNew] = useState(false);
  const isEditor = mayBe(me, "editor");
  const found = useQuery({ queryKey: ["list", "credentials"], enabled: isEditor, queryFn: ({ signal }) => get<Schemas["CredentialRows"]>("/api/credentials", {}, signal), refetchInterval: 10_000 });
  const all = found.data?.credentials ?? [];
  const rows = all.filter((row) => fits(q, row.name, row.kind));
  if (me && !isEditor) return <Empty title="Needs editor">Your role does not read credentials. A playbook's page says which ones it needs and whether they are stored.</Empty>;
  return (
    <Page
      title="Credentials"
      note="Values are stored encrypted and never shown."
      actions={
        <>
          <Filter text={q} onChange={setQuery} label="Filter credentials" hint="name, type" />
          <Button kind="primary" why={needs("editor")} onClick={() => setNew(true)}>
            New credential…
          </Button>
        </>
      }
    >
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      <Split panel={id ? <One key={id} name={id} onClose={() => choose(undefined)} /> : null}>
        {found.isPending ? (
          <Loading />
        ) : (
          <Table
            label="Credentials"
            rows={rows}
            columns={COLUMNS}
            rowKey={(row) => row.name}
            selected={id}
            onOpen={(row) => choose(row.name)}
            empty={q ? <Empty title="No credential fits">Nothing here contains “{plain(q)}”.</Empty> : <Empty title="No credentials yet" example="noetl credential put pg_main --kind postgres --data @pg_main.json">Playbooks refer to credentials by name (<code>auth: pg_main</code>); workers get the value for a task only.</Empty>}
          />
        )}
      </Split>
      {isNew ? <Put onClose={() => setNew(false)} onDone={(name) => { void client.invalidateQueries({ queryKey: ["list"] }); choose(name); }} /> : null}
    </Page>
  );
}

function One({ name, onClose }: { name: string; onClose: () => void }) {
  const needs = useNeeds();
  const client = useQueryClient();
  const [deed, setDeed] = useState<"replace" | "test" | "delete" | null>(null);
  const [tested, setTested] = useState<Schemas["CredentialTested"] | null>(null);
  const address = `/api/credentials/${encodeURIComponent(name)}`;
  const found = useQuery({ queryKey: ["list", "credential", name], queryFn: ({ signal }) => get<Schemas["CredentialDetail"]>(address, {}, signal) });
  const refresh = () => void client.invalidateQueries({ queryKey: ["list"] });
  const one = found.data;
  const why = needs("editor");
  return (
    <Panel
      title={plain(name)}
      label={`credential ${name}`}
      onClose={onClose}
      actions={
        <>
          <Button why={why} onClick={() => setDeed("test")}>Test…</Button>
          <Button why={why} onClick={() => setDeed("replace")}>Replace…</Button>
          <Button kind="danger" why={why} onClick={() => setDeed("delete")}>Delete…</Button>
        </>
      }
    >
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {tested ? <p role="status" className={tested.ok === false ? css.bad : css.note}>{plain([tested.ok ? "It connects." : tested.ok === false ? "It does not connect." : "Nothing to connect to.", tested.reached, tested.message].filter(Boolean).join(" "))}</p> : null}
      {one ? (
        <Facts
          rows={[
            ["Type", plain(one.kind)],
            ["Version", one.version],
            ["Fields", one.fields ? plain(one.fields.join(", ")) : "of a type that names none"],
            ["Changed", <Time key="u" at={one.updated_at} />],
            ["Last used", one.used_at ? <Time key="l" at={one.used_at} /> : "not yet"],
            ["Last used by", one.used_by ? plain(one.used_by) : ""],
            ["Playbooks", one.playbooks?.length ? <span key="p" className={css.stack}>{one.playbooks.slice(0, 50).map((path) => <Link key={path} to="/playbooks/$" params={{ _splat: path }}>{plain(path)}</Link>)}</span> : "none names it"],
          ]}
        />
      ) : found.error ? null : (
        <Loading rows={4} />
      )}
      {deed === "test" ? (
        <Act title={`Test ${plain(name)}`} label="Test" command={noetl("credential", "test", name)} run={() => send<Schemas["CredentialTested"]>("POST", `${address}/test`, {})} onClose={() => setDeed(null)} onDone={setTested}>
          <p>The server connects with it and changes nothing there.</p>
        </Act>
      ) : null}
      {deed === "replace" ? <Put name={name} kind={one?.kind} fields={one?.fields ?? undefined} onClose={() => setDeed(null)} onDone={refresh} /> : null}
      {deed === "delete" ? (
        <Act title={`Delete ${plain(name)}`} label="Delete" kind="danger" command={noetl("credential", "delete", name)} run={() => send("DELETE", address)} onClose={() => setDeed(null)} onDone={() => { onClose(); refresh(); }}>
          <p>Its value is gone. {one?.playbooks?.length ? `${plural(one.playbooks.length, "playbook")} that name it will fail at the steps that use it.` : "No registered playbook names it."}</p>
        </Act>
      ) : null}
    </Panel>
  );
}

/** Write-only: the fields are emptied with the dialog, and nothing of them is kept in the page. */
function Put({ name: given = "", kind: known, fields, onClose, onDone }: { name?: string; kind?: string; fields?: string[]; onClose: () => void; onDone: (name: string) => void }) {
  const [name, setName] = useState(given);
  const [kind, setKind] = useState(known ?? "generic");
  const [extra, setExtra] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  const [added, setAdded] = useState<string[]>(fields ?? []);
  const names = [...new Set([...(fields ? [] : (FIELDS[kind] ?? [])), ...added])];
  const data = Object.fromEntries(names.filter((one) => values[one]).map((one) => [one, values[one]]));
  const why = !name.trim() ? "Name it first" : Object.keys(data).length === 0 ? "Fill a field first" : undefined;
  return (
    <Act title={given ? `Replace ${plain(given)}` : "New credential"} label={given ? "Replace" : "Store"} why={why} command={noetl("credential", "put", name || "NAME", "--kind", kind, "--data", "@FILE")} run={() => send("PUT", `/api/credentials/${encodeURIComponent(name.trim())}`, { kind, data })} onClose={onClose} onDone={() => onDone(name.trim())}>
      <p>{given ? "Stores a new version with these fields alone; the old value is gone." : "Stores the fields encrypted. They cannot be read back."}</p>
      {given ? null : (
        <Field label="Name" hint="As auth in a playbook refers to it.">
          <input value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
      )}
      <Field label="Type">
        <select value={kind} onChange={(event) => setKind(event.target.value)}>
          {[...new Set([kind, ...KINDS])].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </Field>
      {names.map((one) => (
        <Field key={one} label={plain(one)}>
          <input type="password" autoComplete="new-password" value={values[one] ?? ""} onChange={(event) => setValues({ ...values, [one]: event.target.value })} />
        </Field>
      ))}
      <form
        className={css.add}
        onSubmit={(event) => {
          event.preventDefault();
          if (extra.trim()) setAdded([...added, extra.trim()]);
          setExtra("");
        }}
      >
        <input aria-label="Name of a field" placeholder="name of a field" value={extra} onChange={(event) => setExtra(event.target.value)} />
        <Button type="submit" disabled={!extra.trim()}>Add the field</Button>
      </form>
    </Act>
  );
}
