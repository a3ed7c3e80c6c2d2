// Screens that are one table each, and settings.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { get, type Schemas, send } from "../api/client";
import { useMe, useNeeds } from "../api/session";
import { Button, Command, Copy, Empty, ExecutionId, Facts, Field, Kbd, Loading, TabList, Time, Trouble } from "../parts/controls";
import { Dialog } from "../parts/Dialog";
import { Json } from "../parts/Json";
import { Mark } from "../parts/Mark";
import { type Column, Table } from "../parts/Table";
import { count, duration, now, plain, plural, settings, zoneName } from "../words/format";
import { setTheme } from "./Shell";
import { SHORTCUTS } from "./Shortcuts";
import css from "./page.module.css";

/** A list that is asked for again every few seconds. */
const useList = <T,>(path: string, query: Record<string, unknown> = {}, every = 10_000) =>
  useQuery({ queryKey: ["list", path, query], queryFn: () => get<T>(path, query), refetchInterval: every, placeholderData: (old) => old });

interface ListProps<T> {
  label: string;
  found: { data: unknown; error: unknown; refetch: () => unknown };
  rows: readonly T[];
  columns: Column<T>[];
  rowKey: (row: T) => string;
  text: (row: T) => string;
  empty: ReactNode;
  more?: ReactNode;
  above?: ReactNode;
  panel?: (row: T) => ReactNode;
}

function List<T>({ label, found, rows, columns, rowKey, text, empty, more, above, panel }: ListProps<T>) {
  const { q = "" } = useSearch({ strict: false }) as { q?: string };
  const navigate = useNavigate();
  const [open, setOpen] = useState("");
  const shown = q ? rows.filter((row) => text(row).toLowerCase().includes(q.toLowerCase())) : rows;
  const chosen = rows.find((row) => rowKey(row) === open);
  return (
    <>
      <h1 className="hidden">{label}</h1>
      {above}
      <div className={css.bar}>
        <input data-filter type="search" className={css.filter} placeholder="Filter" aria-label={`Filter ${label.toLowerCase()}`} value={q} onChange={(event) => void navigate({ to: ".", search: { q: event.target.value || undefined }, replace: true } as never)} />
        {more}
      </div>
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      {!found.data && !found.error ? <Loading rows={8} /> : (
        <div className={panel && chosen ? css.overview : undefined} style={panel && chosen ? undefined : { display: "flex", flex: 1, minHeight: 0 }}>
          <div style={{ display: "flex", flex: 1, minWidth: 0, minHeight: 0 }}>
            <Table label={label} rows={shown} columns={columns} rowKey={rowKey} selected={open} onOpen={panel ? (row) => setOpen(open === rowKey(row) ? "" : rowKey(row)) : undefined} empty={q && rows.length ? <Empty title="Nothing fits the filter" /> : empty} />
          </div>
          {panel && chosen ? <div className={css.side}>{panel(chosen)}</div> : null}
        </div>
      )}
    </>
  );
}

/** A button that does one thing after a question. */
function Ask({ label, title, children, command, does, why, kind = "danger", needsReason = false }: { label: string; title: string; children: ReactNode; command?: string; does: (reason: string) => Promise<unknown>; why?: string; kind?: "danger" | "plain"; needsReason?: boolean }) {
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>(null);
  const run = async () => {
    try {
      await does(reason);
      await client.invalidateQueries({ queryKey: ["list"] });
      setOpen(false);
    } catch (found) {
      setError(found);
    }
  };
  return (
    <>
      <Button kind={kind} why={why} onClick={() => setOpen(true)}>{label}</Button>
      {open ? (
        <Dialog open onClose={() => setOpen(false)} title={title} error={error} command={command} actions={<Button kind={kind === "danger" ? "danger" : "primary"} disabled={needsReason && !reason.trim()} onClick={() => void run()}>{label.replace("…", "")}</Button>}>
          {children}
          {needsReason ? <Field label="Reason *"><input value={reason} onChange={(event) => setReason(event.target.value)} /></Field> : null}
        </Dialog>
      ) : null}
    </>
  );
}

export function Workers() {
  const needs = useNeeds();
  const workers = useList<Schemas["WorkerRows"]>("/api/workers", {}, 2_000);
  const queue = useList<Schemas["QueueState"]>("/api/queue", {}, 2_000);
  type Row = Schemas["WorkerRow"];
  const columns: Column<Row>[] = [
    { id: "status", head: "Status", width: "104px", cell: (row) => <span className={row.status === "ready" ? css.good : row.status === "gone" ? css.none : css.warn}>{row.status === "ready" ? "✓" : "○"} {row.status}</span> },
    { id: "id", head: "Worker", width: "minmax(160px, 2fr)", cell: (row) => <span title={row.worker_id}>{plain(row.worker_id)}</span> },
    { id: "pool", head: "Pool", width: "120px", cell: (row) => plain(row.pool || "default") },
    { id: "tags", head: "Tags", width: "minmax(80px, 1fr)", cell: (row) => plain(row.tags.join(", ")) },
    { id: "active", head: "Active", width: "96px", right: true, cell: (row) => `${row.active} of ${row.capacity}` },
    { id: "version", head: "Version", width: "80px", cell: (row) => row.version },
    { id: "seen", head: "Seen", width: "96px", cell: (row) => <Time at={row.seen_at} /> },
  ];
  return (
    <List
      label="Workers"
      found={workers}
      rows={workers.data?.workers ?? []}
      columns={columns}
      rowKey={(row) => row.worker_id}
      text={(row) => `${row.worker_id} ${row.pool} ${row.tags.join(" ")} ${row.status}`}
      empty={<Empty title="No workers" example="noetl worker --server http://127.0.0.1:8082">Work waits until a worker takes it. Start one:</Empty>}
      above={
        <ul className={css.pools} aria-label="Pools">
          {(queue.data?.pools ?? []).map((pool) => (
            <li key={pool.pool}>
              <strong>pool {plain(pool.pool || "default")}</strong>
              <span>{plural(pool.workers, "worker")}</span>
              <span className={css.meter} title={`${pool.leased} of ${pool.capacity} slots busy`}><span style={{ width: `${pool.capacity ? (pool.leased / pool.capacity) * 100 : 0}%` }} /></span>
              <span>{pool.leased} of {pool.capacity} busy</span>
              <span className={pool.queued ? css.warn : css.none}>{count(pool.queued)} queued{pool.oldest ? `, oldest ${duration(now() - pool.oldest)}` : ""}</span>
              {pool.workers === 0 ? <Command text={`noetl worker --pool ${pool.pool || "default"}`} /> : null}
            </li>
          ))}
        </ul>
      }
      panel={(row) => (
        <>
          <section>
            <h3>{plain(row.worker_id)}</h3>
            <Facts rows={[["host", plain(row.host)], ["since", <Time key="t" at={row.registered_at} />], ["capacity", row.capacity], ["version", row.version]]} />
          </section>
          <span className={css.actions}>
            <Ask label="Drain…" kind="plain" title={`Drain ${row.worker_id}`} why={needs("operator")} command={`noetl worker drain ${row.worker_id}`} does={() => send("POST", `/api/workers/${encodeURIComponent(row.worker_id)}/drain`, {})}>It finishes what it has and takes nothing new.</Ask>
            <Ask label="Remove…" title={`Remove ${row.worker_id}`} why={needs("admin")} does={() => send("DELETE", `/api/workers/${encodeURIComponent(row.worker_id)}`)}>Its leases end, and other workers take its work.</Ask>
          </span>
        </>
      )}
    />
  );
}

const TRIGGERS = ["schedules", "webhooks", "subscriptions", "triggers", "notifications"] as const;
export function Schedules() {
  const needs = useNeeds();
  const [kind, setKind] = useState<(typeof TRIGGERS)[number]>("schedules");
  const found = useList<Record<string, Record<string, unknown>[]>>(`/api/${kind}`);
  const rows = (Object.values(found.data ?? {}).find(Array.isArray) ?? []) as Record<string, unknown>[];
  const word = kind.slice(0, -1);
  const id = (row: Record<string, unknown>) => String(row[`${word}_id`] ?? row.id ?? row.name ?? "");
  const columns: Column<Record<string, unknown>>[] = [
    { id: "state", head: "State", width: "104px", cell: (row) => <Mark state={row.paused ? "paused" : "running"} word /> },
    { id: "id", head: "Id", width: "minmax(120px, 1fr)", cell: (row) => plain(id(row)) },
    { id: "path", head: "Playbook", width: "minmax(160px, 2fr)", cell: (row) => <Link to="/playbooks/$" params={{ _splat: String(row.path ?? "") }}>{plain(String(row.path ?? row.pattern ?? ""))}</Link> },
    { id: "when", head: "When", width: "minmax(140px, 2fr)", cell: (row) => <code>{plain(String(row.cron ?? row.every ?? row.source ?? row.on ?? ""))}</code> },
    { id: "next", head: `Next (${zoneName()})`, width: "120px", cell: (row) => <Time at={row.next_at as number | null} /> },
    { id: "by", head: "By", width: "112px", cell: (row) => plain(String(row.owner || row.created_by || "")) },
  ];
  return (
    <List
      label="Schedules and triggers"
      found={found}
      rows={rows}
      columns={columns}
      rowKey={id}
      text={(row) => JSON.stringify(row)}
      above={<div className={css.tabsbar}><TabList label="Kinds of triggers" value={kind} onChange={setKind} tabs={TRIGGERS.map((one) => ({ id: one, label: one[0]?.toUpperCase() + one.slice(1) }))} /></div>}
      empty={<Empty title={`No ${kind}`} example={kind === "schedules" ? "noetl schedule create nightly orders/nightly --cron '0 2 * * *'" : `noetl ${word} create --help`}>A {word} starts playbooks or tells about them. Make one:</Empty>}
      panel={(row) => (
        <>
          <section>
            <h3>{plain(id(row))}</h3>
            {kind === "schedules" ? <NextRuns id={id(row)} /> : null}
          </section>
          <span className={css.actions}>
            <Ask kind="plain" label={row.paused ? "Resume…" : "Pause…"} title={`${row.paused ? "Resume" : "Pause"} ${id(row)}`} why={needs("operator")} command={`noetl ${word} ${row.paused ? "resume" : "pause"} ${id(row)}`} does={() => send("POST", `/api/${kind}/${encodeURIComponent(id(row))}/${row.paused ? "resume" : "pause"}`, {})}>{row.paused ? "It works again from now on." : "It does nothing until it is resumed."}</Ask>
          </span>
          <Json value={row} depth={1} />
        </>
      )}
    />
  );
}

function NextRuns({ id }: { id: string }) {
  const found = useQuery({ queryKey: ["list", "next", id], queryFn: () => get<Schemas["NextRuns"]>(`/api/schedules/${encodeURIComponent(id)}/next`) });
  return <ol>{(found.data?.runs ?? []).slice(0, 5).map((one) => <li key={one.at}>{one.local} (<Time at={one.start_at} />)</li>)}</ol>;
}

export function Outbox() {
  const needs = useNeeds();
  const found = useList<Schemas["OutboxRows"]>("/api/outbox");
  type Row = Schemas["OutboxRow"];
  const columns: Column<Row>[] = [
    { id: "state", head: "State", width: "104px", cell: (row) => <Mark state={row.state === "delivered" ? "done" : row.state === "dead" ? "failed" : "pending"} /> },
    { id: "n", head: "Number", width: "80px", right: true, cell: (row) => row.number },
    { id: "topic", head: "Topic", width: "minmax(120px, 1fr)", cell: (row) => plain(row.topic) },
    { id: "target", head: "Target", width: "minmax(160px, 2fr)", cell: (row) => <span title={row.address}>{plain(`${row.target} ${row.address}`)}</span> },
    { id: "attempts", head: "Attempts", width: "80px", right: true, cell: (row) => row.attempts },
    { id: "execution", head: "Execution", width: "96px", cell: (row) => (row.execution_id ? <ExecutionId id={row.execution_id} /> : null) },
    { id: "error", head: "Error", width: "minmax(120px, 2fr)", cell: (row) => <span title={row.error} className={css.error}>{plain(row.error ?? "")}</span> },
    { id: "at", head: "Created", width: "104px", cell: (row) => <Time at={row.created_at} /> },
  ];
  return (
    <List
      label="Outbox"
      found={found}
      rows={found.data?.messages ?? []}
      columns={columns}
      rowKey={(row) => String(row.number)}
      text={(row) => `${row.topic} ${row.target} ${row.address} ${row.state} ${row.error}`}
      empty={<Empty title="The outbox is empty" example="noetl outbox list">Messages that playbooks and notifications send wait here until they are delivered.</Empty>}
      more={<span className={css.none}>{count(found.data?.pending ?? 0)} pending, {count(found.data?.dead ?? 0)} dead</span>}
      panel={(row) => (
        <>
          <Facts rows={[["state", row.state], ["key", plain(row.key)], ["address", plain(row.address)], ["error", plain(row.error ?? "")]]} />
          <span className={css.actions}>
            <Ask kind="plain" label="Retry…" title={`Send message ${row.number} again`} why={needs("operator")} command={`noetl outbox retry ${row.number}`} does={() => send("POST", `/api/outbox/${row.number}/retry`, {})}>It is sent again at once.</Ask>
            <Ask label="Discard…" needsReason title={`Discard message ${row.number}`} why={needs("operator")} command={`noetl outbox discard ${row.number}`} does={(reason) => send("POST", `/api/outbox/${row.number}/discard`, { reason })}>It is not sent any more.</Ask>
          </span>
        </>
      )}
    />
  );
}

export function Credentials() {
  const needs = useNeeds();
  const [adding, setAdding] = useState(false);
  const found = useList<Schemas["CredentialRows"]>("/api/credentials");
  type Row = Schemas["CredentialRow"];
  const columns: Column<Row>[] = [
    { id: "name", head: "Name", width: "minmax(160px, 2fr)", cell: (row) => <strong>{plain(row.name)}</strong> },
    { id: "kind", head: "Type", width: "minmax(120px, 1fr)", cell: (row) => plain(row.kind) },
    { id: "version", head: "Version", width: "80px", right: true, cell: (row) => `v${row.version}` },
    { id: "at", head: "Changed", width: "120px", cell: (row) => <Time at={row.updated_at} /> },
  ];
  return (
    <>
      <List
        label="Credentials"
        found={found}
        rows={found.data?.credentials ?? []}
        columns={columns}
        rowKey={(row) => row.name}
        text={(row) => `${row.name} ${row.kind}`}
        empty={<Empty title="No credentials" example="noetl credential put pg_main --kind postgres">Passwords and keys that playbooks need. Values are encrypted and never shown again.</Empty>}
        more={<Button kind="primary" why={needs("editor")} onClick={() => setAdding(true)}>Store…</Button>}
        panel={(row) => (
          <>
            <CredentialDetail name={row.name} />
            <Ask label="Delete…" title={`Delete ${row.name}`} why={needs("editor")} command={`noetl credential delete ${row.name}`} does={() => send("DELETE", `/api/credentials/${encodeURIComponent(row.name)}`)}>Playbooks that name it fail until it is stored again.</Ask>
          </>
        )}
      />
      {adding ? <StoreCredential onClose={() => setAdding(false)} /> : null}
    </>
  );
}

function CredentialDetail({ name }: { name: string }) {
  const found = useQuery({ queryKey: ["list", "credential", name], queryFn: () => get<Schemas["CredentialDetail"]>(`/api/credentials/${encodeURIComponent(name)}`) });
  if (!found.data) return <Loading rows={3} />;
  const one = found.data;
  return (
    <section>
      <h3>{plain(one.name)}</h3>
      <Facts rows={[["fields", one.fields ? one.fields.join(", ") : "no key of this server opens it"], ["used by", (one.playbooks ?? []).map((path) => <div key={path}><Link to="/playbooks/$" params={{ _splat: path }}>{plain(path)}</Link></div>)], ["last used", one.used_at ? <Time key="t" at={one.used_at} /> : "never"], ["stored", <Time key="c" at={one.created_at} />]]} />
    </section>
  );
}

function StoreCredential({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [kind, setKind] = useState("generic");
  const [fields, setFields] = useState([{ name: "", value: "" }]);
  const [error, setError] = useState<unknown>(null);
  const data = Object.fromEntries(fields.filter((one) => one.name).map((one) => [one.name, one.value]));
  const store = async () => {
    try {
      await send("PUT", `/api/credentials/${encodeURIComponent(name)}`, { kind, data });
      await client.invalidateQueries({ queryKey: ["list"] });
      onClose();
    } catch (found) {
      setError(found);
    }
  };
  return (
    <Dialog open onClose={onClose} title="Store a credential" error={error} command={`noetl credential put ${name || "NAME"} --kind ${kind}`} actions={<Button kind="primary" disabled={!name || Object.keys(data).length === 0} onClick={() => void store()}>Store</Button>}>
      <Field label="Name"><input value={name} onChange={(event) => setName(event.target.value)} /></Field>
      <Field label="Type"><input value={kind} onChange={(event) => setKind(event.target.value)} /></Field>
      {fields.map((one, at) => (
        <div key={at} className={css.actions}>
          <Field label="Field"><input value={one.name} onChange={(event) => setFields(fields.with(at, { ...one, name: event.target.value }))} /></Field>
          <Field label="Value"><input type="password" autoComplete="off" value={one.value} onChange={(event) => setFields(fields.with(at, { ...one, value: event.target.value }))} /></Field>
        </div>
      ))}
      <span><Button onClick={() => setFields([...fields, { name: "", value: "" }])}>Another field</Button></span>
    </Dialog>
  );
}

export function Audit() {
  const found = useList<Schemas["AuditRows"]>("/api/audit", { limit: 500 });
  type Row = Schemas["AuditRow"];
  const columns: Column<Row>[] = [
    { id: "n", head: "Number", width: "72px", right: true, cell: (row) => row.number },
    { id: "at", head: `At (${zoneName()})`, width: "120px", cell: (row) => <Time at={row.at} /> },
    { id: "actor", head: "Who", width: "minmax(120px, 1fr)", cell: (row) => plain(row.actor) },
    { id: "action", head: "Action", width: "160px", cell: (row) => <code>{plain(row.action)}</code> },
    { id: "entity", head: "On", width: "minmax(160px, 2fr)", cell: (row) => (row.action.startsWith("execution.") && /^\d+$/.test(row.entity) ? <Link to="/executions/$id" params={{ id: row.entity }}>{row.entity}</Link> : <span title={row.entity}>{plain(row.entity)}</span>) },
    { id: "change", head: "Change", width: "minmax(120px, 1fr)", cell: (row) => plain([row.before, row.after].filter(Boolean).join(" → ")) },
  ];
  return <List label="Audit" found={found} rows={found.data?.entries ?? []} columns={columns} rowKey={(row) => String(row.number)} text={(row) => JSON.stringify(row)} empty={<Empty title="No entries" />} panel={(row) => <Json value={row} />} more={found.data?.next ? <span className={css.none}>the last {found.data.entries.length}</span> : null} />;
}

const ROLES = ["viewer", "operator", "editor", "admin", "worker"];
export function Tokens() {
  const [adding, setAdding] = useState(false);
  const found = useList<Schemas["TokenRows"]>("/api/tokens");
  type Row = Schemas["TokenRow"];
  const columns: Column<Row>[] = [
    { id: "state", head: "State", width: "96px", cell: (row) => (row.revoked_at ? <span className={css.none}>revoked</span> : row.expires_at && row.expires_at < now() ? <span className={css.none}>expired</span> : <span className={css.good}>✓ valid</span>) },
    { id: "name", head: "Name", width: "minmax(140px, 2fr)", cell: (row) => <strong title={row.name}>{plain(row.name || row.token_id)}</strong> },
    { id: "role", head: "Role", width: "96px", cell: (row) => row.role },
    { id: "scope", head: "Namespaces", width: "minmax(100px, 1fr)", cell: (row) => plain(row.namespaces.join(", ") || "all") },
    { id: "by", head: "Created by", width: "112px", cell: (row) => plain(row.created_by) },
    { id: "used", head: "Used", width: "104px", cell: (row) => (row.used_at ? <Time at={row.used_at} /> : "never") },
    { id: "ends", head: "Ends", width: "104px", cell: (row) => (row.expires_at ? <Time at={row.expires_at} /> : "never") },
    { id: "do", head: "", width: "88px", cell: (row) => (row.revoked_at ? null : <span className={css.actions}><Ask label="Revoke…" title={`Revoke ${row.name || row.token_id}`} command={`noetl token revoke ${row.token_id}`} does={() => send("DELETE", `/api/tokens/${row.token_id}`)}>What uses it stops within a second: clients, workers, and browsers that signed in with it.</Ask></span>) },
  ];
  return (
    <>
      <List label="Tokens" found={found} rows={found.data?.tokens ?? []} columns={columns} rowKey={(row) => row.token_id} text={(row) => `${row.name} ${row.role} ${row.token_id}`} empty={<Empty title="No tokens" example="noetl token create --role operator --name me" />} more={<Button kind="primary" onClick={() => setAdding(true)}>Create…</Button>} />
      {adding ? <NewToken onClose={() => setAdding(false)} /> : null}
    </>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [role, setRole] = useState("operator");
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [made, setMade] = useState<Schemas["TokenMade"] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const create = async () => {
    try {
      setMade(await send<Schemas["TokenMade"]>("POST", "/api/tokens", { role, name, expires_s: Number(days) > 0 ? Number(days) * 86_400 : undefined }));
      await client.invalidateQueries({ queryKey: ["list"] });
    } catch (found) {
      setError(found);
    }
  };
  return (
    <Dialog open onClose={onClose} title={made ? "Copy the token now" : "Create a token"} error={error} command={made ? undefined : `noetl token create --role ${role} --name ${name || "NAME"}`} actions={made ? null : <Button kind="primary" onClick={() => void create()} disabled={!name}>Create</Button>}>
      {made ? (
        <>
          <p>It is shown once and stored nowhere.</p>
          <Command text={made.secret} />
        </>
      ) : (
        <>
          <Field label="Name"><input value={name} onChange={(event) => setName(event.target.value)} /></Field>
          <Field label="Role"><select value={role} onChange={(event) => setRole(event.target.value)}>{ROLES.map((one) => <option key={one}>{one}</option>)}</select></Field>
          <Field label="Days until it ends" hint="0: it does not end"><input value={days} inputMode="numeric" onChange={(event) => setDays(event.target.value)} /></Field>
        </>
      )}
    </Dialog>
  );
}

export function People() {
  const users = useList<Schemas["UserRows"]>("/api/users");
  const groups = useList<Schemas["GroupRows"]>("/api/groups");
  type Row = Schemas["UserRow"];
  const grants = (of: readonly Schemas["GrantRow"][]) => of.map((one) => (one.namespace ? `${one.role} in ${one.namespace}` : one.role)).join(", ");
  const columns: Column<Row>[] = [
    { id: "state", head: "State", width: "96px", cell: (row) => (row.disabled ? <span className={css.none}>disabled</span> : <span className={css.good}>✓ active</span>) },
    { id: "name", head: "Name", width: "minmax(140px, 2fr)", cell: (row) => <strong>{plain(row.name)}</strong> },
    { id: "roles", head: "Roles", width: "minmax(140px, 2fr)", cell: (row) => <span title={grants(row.grants)}>{plain(grants(row.grants))}</span> },
    { id: "groups", head: "Groups", width: "minmax(100px, 1fr)", cell: (row) => plain(row.groups.join(", ")) },
    { id: "how", head: "Signs in with", width: "128px", cell: (row) => (row.provider ? "a provider" : row.has_password ? "a password" : "nothing") },
    { id: "seen", head: "Signed in", width: "104px", cell: (row) => (row.signed_in_at ? <Time at={row.signed_in_at} /> : "never") },
  ];
  return (
    <List
      label="People"
      found={users}
      rows={users.data?.users ?? []}
      columns={columns}
      rowKey={(row) => row.name}
      text={(row) => JSON.stringify(row)}
      empty={<Empty title="No users" example="noetl user create ada --role operator">People sign in with a name and a password, or with your OpenID Connect provider.</Empty>}
      more={<span className={css.none}>{plural(groups.data?.groups.length ?? 0, "group")}: {plain((groups.data?.groups ?? []).map((one) => `${one.name} (${grants(one.grants)})`).join("; ")) || "none"}</span>}
      panel={(row) => (
        <>
          <Facts rows={[["name", plain(row.name)], ["roles", plain(grants(row.grants)) || "none"], ["groups", plain(row.groups.join(", "))], ["created", <Time key="c" at={row.created_at} />], ["by", plain(row.created_by)]]} />
          <Ask kind={row.disabled ? "plain" : "danger"} label={row.disabled ? "Enable…" : "Disable…"} title={`${row.disabled ? "Enable" : "Disable"} ${row.name}`} command={`noetl user ${row.disabled ? "enable" : "disable"} ${row.name}`} does={() => send("PATCH", `/api/users/${encodeURIComponent(row.name)}`, { disabled: !row.disabled })}>{row.disabled ? "They can sign in again." : "Their sessions end within a second, and they cannot sign in."}</Ask>
        </>
      )}
    />
  );
}

export function About() {
  const health = useQuery({ queryKey: ["list", "ready"], queryFn: () => get<Schemas["Health"]>("/ready") });
  const { data: me } = useMe();
  return (
    <div className={css.sections}>
      <h1>About</h1>
      {health.error ? <Trouble error={health.error} again={() => void health.refetch()} /> : null}
      <section>
        <Facts rows={[["version", health.data?.version ?? ""], ["server", health.data?.server ?? ""], ["state", health.data?.status ?? ""], ...Object.entries(health.data?.checks ?? {}).map(([name, value]): [string, ReactNode] => [name, String(value)]), ["you", me ? `${me.name}, ${me.role || me.grants.map((one) => `${one.role} in ${one.namespace}`).join(", ")}` : ""], ["session ends", me?.expires_at ? <Time key="e" at={me.expires_at} /> : ""]]} />
      </section>
      <section>
        <p>
          <a href="/docs">The API</a> · <a href="/api/openapi.json">OpenAPI</a> · <Copy text={JSON.stringify({ ...health.data, page: navigator.userAgent })} label="Copy the versions">Copy the versions</Copy>
        </p>
      </section>
    </div>
  );
}

export function Settings() {
  const [, setRound] = useState(0);
  const change = (name: string, value: string) => {
    settings.set(name, value);
    if (name === "density") document.documentElement.dataset.density = value;
    if (name === "theme" && value !== "system") setTheme(value as "light" | "dark");
    setRound((now) => now + 1);
  };
  const choice = (label: string, name: string, of: [string, string][], hint?: string) => (
    <Field label={label} hint={hint}>
      <select value={settings.get(name) ?? of[0]?.[0]} onChange={(event) => change(name, event.target.value)}>
        {of.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
      </select>
    </Field>
  );
  return (
    <div className={css.sections}>
      <h1>Settings</h1>
      <p className={css.none}>They are kept in this browser.</p>
      {choice("Theme", "theme", [["system", "as the system"], ["light", "light"], ["dark", "dark"]])}
      {choice("Density", "density", [["normal", "rows of 32 pixels"], ["compact", "rows of 26 pixels"]])}
      {choice("Times", "zone", [["local", `in ${Intl.DateTimeFormat().resolvedOptions().timeZone}`], ["utc", "in UTC"]])}
      {choice("Shortcuts of one letter", "letters", [["on", "on"], ["off", "off"]], "Off where a voice or switch control types letters.")}
      <section>
        <h2>Shortcuts</h2>
        {SHORTCUTS.map(([name, keys]) => (
          <section key={name}>
            <h3>{name}</h3>
            <Facts rows={keys.map(([key, does]): [string, ReactNode] => [key, <span key={key}><Kbd>{key}</Kbd> {does}</span>])} />
          </section>
        ))}
      </section>
    </div>
  );
}
