import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Schemas, send } from "../api/client";
import { mayBe, useMe, useNeeds } from "../api/session";
import { Act } from "../parts/Act";
import { Button, Empty, Facts, Field, Loading, TabList, Time, Trouble } from "../parts/controls";
import { Sign } from "../parts/Mark";
import { Filter, Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { noetl } from "../words/command";
import { middle, plain } from "../words/format";
import css from "./tables.module.css";
import { fits, useTable } from "./useTable";

type User = Schemas["UserRow"];
type Group = Schemas["GroupRow"];
type Grant = Schemas["GrantRow"];
const ROLES = ["viewer", "operator", "editor", "admin"];
const spell = (grants: readonly Grant[]): string => grants.map((one) => (one.namespace ? `${one.role} in ${one.namespace}` : one.role)).join(", ") || "no role";

function State({ row }: { row: User }) {
  return (
    <span className={css.state}>
      <Sign mark={row.disabled ? "slash" : "check"} hue={row.disabled ? "grey" : "green"} size={14} /> {row.disabled ? "disabled" : "active"}
    </span>
  );
}

const USERS: Column<User>[] = [
  { id: "state", head: "State", width: "88px", cell: (row) => <State row={row} /> },
  { id: "name", head: "Name", width: "minmax(140px, 2fr)", cell: (row) => <span title={row.name} className={css.name}>{plain(middle(row.name))}</span> },
  { id: "roles", head: "Roles", width: "minmax(120px, 2fr)", cell: (row) => <span title={spell(row.grants)}>{plain(spell(row.grants))}</span> },
  { id: "groups", head: "Groups", width: "minmax(96px, 1fr)", cell: (row) => <span title={row.groups.join(", ")}>{plain(row.groups.join(", "))}</span> },
  { id: "how", head: "Signs in with", width: "112px", cell: (row) => plain(row.provider) || (row.has_password ? "password" : "nothing yet") },
  { id: "last", head: "Last sign-in", isTime: true, width: "104px", cell: (row) => <Time at={row.signed_in_at} /> },
];
const GROUPS: Column<Group>[] = [
  { id: "name", head: "Name", width: "minmax(140px, 2fr)", cell: (row) => <span title={row.name} className={css.name}>{plain(middle(row.name))}</span> },
  { id: "roles", head: "Roles", width: "minmax(120px, 2fr)", cell: (row) => <span title={spell(row.grants)}>{plain(spell(row.grants))}</span> },
  { id: "members", head: "Members", width: "minmax(120px, 2fr)", cell: (row) => <span title={row.members.join(", ")}>{plain(row.members.join(", "))}</span> },
  { id: "created", head: "Created", isTime: true, width: "104px", cell: (row) => <Time at={row.created_at} /> },
];

export function People() {
  const { q, id, tab, go, setQuery, choose } = useTable("/people");
  const { data: me } = useMe();
  const needs = useNeeds();
  const isAdmin = mayBe(me, "admin");
  const isGroups = tab === "groups";
  const [isNew, setNew] = useState(false);
  const users = useQuery({ queryKey: ["list", "users"], enabled: isAdmin, queryFn: ({ signal }) => get<Schemas["UserRows"]>("/api/users", {}, signal), refetchInterval: 10_000 });
  const groups = useQuery({ queryKey: ["list", "groups"], enabled: isAdmin, queryFn: ({ signal }) => get<Schemas["GroupRows"]>("/api/groups", {}, signal), refetchInterval: 10_000 });
  const found = isGroups ? groups : users;
  const user = isGroups ? undefined : users.data?.users.find((row) => row.name === id);
  const group = isGroups ? groups.data?.groups.find((row) => row.name === id) : undefined;
  if (me && !isAdmin) return <Empty title="Needs admin">Your role does not read people and groups.</Empty>;
  const none = <Empty title="Nobody fits">Nothing here contains “{plain(q)}”.</Empty>;
  return (
    <Page
      title="People"
      actions={
        <>
          <Filter text={q} onChange={setQuery} label={isGroups ? "Filter groups" : "Filter people"} hint="name, role, group" />
          <Button kind="primary" why={needs("admin")} onClick={() => setNew(true)}>
            {isGroups ? "New group…" : "New person…"}
          </Button>
        </>
      }
    >
      <div className={css.tabs}>
        <TabList label="People and groups" value={isGroups ? "groups" : "people"} onChange={(next) => go({ tab: next === "groups" ? next : undefined, id: undefined, q: undefined })} tabs={[{ id: "people", label: "People" }, { id: "groups", label: "Groups" }]} />
      </div>
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      <Split panel={user ? <One row={user} onClose={() => choose(undefined)} /> : group ? <OneGroup row={group} onClose={() => choose(undefined)} /> : null}>
        {found.isPending ? (
          <Loading />
        ) : isGroups ? (
          <Table key="groups" label="Groups" rows={(groups.data?.groups ?? []).filter((row) => fits(q, row.name, spell(row.grants), ...row.members))} columns={GROUPS} rowKey={(row) => row.name} selected={id} onOpen={(row) => choose(row.name)} empty={q ? none : <Empty title="No groups yet" example="noetl group set analysts --role viewer --namespace orders/">A group gives its members roles.</Empty>} />
        ) : (
          <Table key="people" label="People" rows={(users.data?.users ?? []).filter((row) => fits(q, row.name, spell(row.grants), ...row.groups))} columns={USERS} rowKey={(row) => row.name} selected={id} onOpen={(row) => choose(row.name)} empty={q ? none : <Empty title="No people yet" example="noetl user create ada --role operator">A person signs in with a password or at your company's provider, and has roles.</Empty>} />
        )}
      </Split>
      {isNew ? <Edit kind={isGroups ? "group" : "user"} groups={groups.data?.groups ?? []} onClose={() => setNew(false)} onDone={choose} /> : null}
    </Page>
  );
}

interface EditProps {
  kind: "user" | "group";
  row?: User | Group;
  groups?: Group[];
  onClose: () => void;
  onDone?: (name: string) => void;
}

/** Create someone, or replace roles and groups. */
function Edit({ kind, row, onClose, onDone }: EditProps) {
  const client = useQueryClient();
  const first = row?.grants[0];
  const [draft, setDraft] = useState({ name: row?.name ?? "", role: first?.role ?? "viewer", namespaces: (row?.grants ?? []).map((one) => one.namespace).filter(Boolean).join(" "), groups: row && "groups" in row ? row.groups.join(" ") : "", password: "" });
  const set = (change: Partial<typeof draft>) => setDraft({ ...draft, ...change });
  const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);
  const spaces = words(draft.namespaces);
  const grants = draft.role ? (spaces.length ? spaces.map((namespace) => ({ role: draft.role, namespace })) : [{ role: draft.role, namespace: "" }]) : [];
  const name = draft.name.trim();
  const address = `/api/${kind}s/${encodeURIComponent(name)}`;
  const run = () =>
    kind === "group" ? send("PUT", address, { grants }) : row ? send("PATCH", address, { grants, groups: words(draft.groups) }) : send("POST", "/api/users", { name, password: draft.password, grants, groups: words(draft.groups) });
  const verb = kind === "group" || row ? "set" : "create";
  return (
    <Act
      title={row ? `Roles of ${plain(row.name)}` : kind === "group" ? "New group" : "New person"}
      label={row ? "Replace" : "Create"}
      why={name ? undefined : "Name it first"}
      command={noetl(kind, verb, name || "NAME", draft.role && "--role", draft.role, ...spaces.flatMap((one) => ["--namespace", one]), ...(kind === "user" ? words(draft.groups).flatMap((one) => ["--group", one]) : []), kind === "user" && !row && !draft.password && "--no-password")}
      run={run}
      onClose={onClose}
      onDone={() => { void client.invalidateQueries({ queryKey: ["list"] }); onDone?.(name); }}
    >
      <p>{row ? "Replaces all roles at once; sessions have the new ones within a second." : kind === "group" ? "Members get these roles beside their own." : "They sign in with the password, or at the provider under this name."}</p>
      {row && row.grants.length > 1 && new Set(row.grants.map((one) => one.role)).size > 1 ? <p className={css.warn}>It has several roles now ({plain(spell(row.grants))}); this form writes one.</p> : null}
      {row ? null : (
        <Field label="Name">
          <input value={draft.name} autoFocus onChange={(event) => set({ name: event.target.value })} />
        </Field>
      )}
      <Field label="Role">
        <select value={draft.role} onChange={(event) => set({ role: event.target.value })}>
          <option value="">none</option>
          {ROLES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </Field>
      <Field label="Paths" hint="Prefixes such as team-a/, separated by spaces; none means all.">
        <input value={draft.namespaces} onChange={(event) => set({ namespaces: event.target.value })} />
      </Field>
      {kind === "user" ? (
        <Field label="Groups" hint="Separated by spaces.">
          <input value={draft.groups} onChange={(event) => set({ groups: event.target.value })} />
        </Field>
      ) : null}
      {kind === "user" && !row ? (
        <Field label="Password" hint="Empty: they cannot sign in with one.">
          <input type="password" autoComplete="new-password" value={draft.password} onChange={(event) => set({ password: event.target.value })} />
        </Field>
      ) : null}
    </Act>
  );
}

function One({ row, onClose }: { row: User; onClose: () => void }) {
  const needs = useNeeds();
  const client = useQueryClient();
  const [deed, setDeed] = useState<"roles" | "switch" | "delete" | null>(null);
  const refresh = () => void client.invalidateQueries({ queryKey: ["list"] });
  const address = `/api/users/${encodeURIComponent(row.name)}`;
  const why = needs("admin");
  const word = row.disabled ? "Enable" : "Disable";
  return (
    <Panel
      title={plain(row.name)}
      label={`person ${row.name}`}
      onClose={onClose}
      actions={
        <>
          <Button why={why} onClick={() => setDeed("roles")}>Roles…</Button>
          <Button why={why} onClick={() => setDeed("switch")}>{word}…</Button>
          <Button kind="danger" why={why} onClick={() => setDeed("delete")}>Delete…</Button>
        </>
      }
    >
      <State row={row} />
      <Facts rows={[["Roles", plain(spell(row.grants))], ["Groups", plain(row.groups.join(", ")) || "none"], ["Signs in with", plain(row.provider) || (row.has_password ? "password" : "nothing yet")], ["Last sign-in", row.signed_in_at ? <Time key="s" at={row.signed_in_at} /> : "not yet"], ["Created", <Time key="c" at={row.created_at} />], ["Created by", plain(row.created_by)]]} />
      {deed === "roles" ? <Edit kind="user" row={row} onClose={() => setDeed(null)} /> : null}
      {deed === "switch" ? (
        <Act title={`${word} ${plain(row.name)}`} label={word} kind={row.disabled ? "primary" : "danger"} command={noetl("user", word.toLowerCase(), row.name)} run={() => send("PATCH", address, { disabled: !row.disabled })} onClose={() => setDeed(null)} onDone={refresh}>
          <p>{row.disabled ? "They can sign in again, with the roles they had." : "Their sessions end within a second, and they cannot sign in."}</p>
        </Act>
      ) : null}
      {deed === "delete" ? (
        <Act title={`Delete ${plain(row.name)}`} label="Delete" kind="danger" command={noetl("user", "delete", row.name)} run={() => send("DELETE", address)} onClose={() => setDeed(null)} onDone={() => { onClose(); refresh(); }}>
          <p>Their sessions end. What they did stays in the audit trail under their name.</p>
        </Act>
      ) : null}
    </Panel>
  );
}

function OneGroup({ row, onClose }: { row: Group; onClose: () => void }) {
  const needs = useNeeds();
  const client = useQueryClient();
  const [deed, setDeed] = useState<"roles" | "delete" | null>(null);
  const why = needs("admin");
  return (
    <Panel
      title={plain(row.name)}
      label={`group ${row.name}`}
      onClose={onClose}
      actions={
        <>
          <Button why={why} onClick={() => setDeed("roles")}>Roles…</Button>
          <Button kind="danger" why={why} onClick={() => setDeed("delete")}>Delete…</Button>
        </>
      }
    >
      <Facts rows={[["Roles", plain(spell(row.grants))], ["Members", plain(row.members.join(", ")) || "none"], ["Created", <Time key="c" at={row.created_at} />], ["Created by", plain(row.created_by)]]} />
      {deed === "roles" ? <Edit kind="group" row={row} onClose={() => setDeed(null)} /> : null}
      {deed === "delete" ? (
        <Act title={`Delete ${plain(row.name)}`} label="Delete" kind="danger" command={noetl("group", "delete", row.name)} run={() => send("DELETE", `/api/groups/${encodeURIComponent(row.name)}`)} onClose={() => setDeed(null)} onDone={() => { onClose(); void client.invalidateQueries({ queryKey: ["list"] }); }}>
          <p>Its members lose the roles that it gives.</p>
        </Act>
      ) : null}
    </Panel>
  );
}
