import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useGraph } from "../api/executions";
import { get, newKey, type Schemas, send } from "../api/client";
import { useNeeds } from "../api/session";
import { GraphView } from "../graph/view";
import { Button, Copy, Empty, Facts, Field, Loading, TabList, Time, Trouble } from "../parts/controls";
import { Dialog } from "../parts/Dialog";
import { Mark } from "../parts/Mark";
import { Table } from "../parts/Table";
import { duration, plain } from "../words/format";
import { hasEnded } from "../words/states";
import { parseJson } from "./execution/Actions";
import { COLUMNS } from "./Executions";
import { Playbooks } from "./Playbooks";
import css from "./page.module.css";

type Tab = "overview" | "executions" | "versions" | "schedules" | "yaml";

/** The router gives `/playbooks` to the route of one playbook too, with an empty path. */
export function PlaybookPage() {
  const { _splat: path = "" } = useParams({ strict: false }) as { _splat?: string };
  return path ? <OnePlaybook key={path} path={path} /> : <Playbooks />;
}

function OnePlaybook({ path }: { path: string }) {
  const { v, tab = "overview", step } = useSearch({ strict: false }) as { v?: number; tab?: Tab; step?: string };
  const navigate = useNavigate();
  const needs = useNeeds();
  const [running, setRunning] = useState(false);
  const versions = useQuery({ queryKey: ["versions", path], queryFn: () => get<Schemas["Versions"]>("/api/catalog/versions", { path }) });
  const shown = versions.data?.versions.find((one) => one.version === v) ?? versions.data?.versions[0];
  const graph = useGraph(shown?.playbook);
  const recent = useQuery({ queryKey: ["recent", path], queryFn: () => get<Schemas["Executions"]>("/api/executions", { path, limit: 50 }), refetchInterval: 10_000 });
  const set = (search: Record<string, unknown>) => void navigate({ to: "/playbooks/$", params: { _splat: path }, search: (old: Record<string, unknown>) => ({ ...old, ...search }), replace: true } as never);
  if (versions.error) return <Trouble error={versions.error} again={() => void versions.refetch()} />;
  if (!versions.data || !shown) return <Loading rows={8} />;
  const rows = recent.data?.executions ?? [];
  return (
    <>
      <header className={css.head}>
        <h1>{plain(path)}</h1>
        <select aria-label="Version" value={shown.version} onChange={(event) => set({ v: Number(event.target.value) })}>
          {versions.data.versions.map((one) => <option key={one.version} value={one.version}>v{one.version}</option>)}
        </select>
        <span className={css.none}>registered <Time at={shown.registered_at} /></span>
        <Bars rows={rows} />
        <span className={css.fill} />
        <Button kind="primary" onClick={() => setRunning(true)} why={needs("operator")}>Run…</Button>
      </header>
      <div className={css.tabsbar}>
        <TabList label="Playbook" value={tab} onChange={(next) => set({ tab: next })} tabs={[{ id: "overview", label: "Overview" }, { id: "executions", label: "Executions", badge: rows.length || undefined }, { id: "versions", label: "Versions", badge: versions.data.versions.length }, { id: "yaml", label: "YAML" }]} />
      </div>
      {tab === "overview" ? (
        <div className={css.overview}>
          <div>{graph.error ? <Trouble error={graph.error} /> : graph.data ? <GraphView graph={graph.data} track={null} seq={0} step={step} onStep={(next) => set({ step: next })} /> : <Loading rows={6} />}</div>
          <Side path={path} version={shown.version} rows={rows} step={step} graph={graph.data} />
        </div>
      ) : tab === "executions" ? (
        <Table label="Executions of this playbook" rows={rows} columns={COLUMNS} rowKey={(row) => row.execution_id} onOpen={(row) => void navigate({ to: "/executions/$id", params: { id: row.execution_id } })} empty={<Empty title="It has not run yet" example={`noetl exec ${path}`} />} />
      ) : tab === "versions" ? (
        <VersionList path={path} versions={versions.data.versions} version={shown.version} onVersion={(next) => set({ v: next })} />
      ) : (
        <Yaml path={path} version={shown.version} line={graph.data?.nodes.find((node) => node.name === step)?.line ?? undefined} />
      )}
      {running ? <Run path={path} version={shown.version} isLatest={shown.version === versions.data.versions[0]?.version} last={rows[0]} onClose={() => setRunning(false)} /> : null}
    </>
  );
}

function Bars({ rows }: { rows: readonly Schemas["ExecutionRow"][] }) {
  const shown = rows.slice(0, 10).reverse();
  if (shown.length === 0) return null;
  const times = rows.filter((row) => hasEnded(row.status) && row.ended_at).map((row) => (row.ended_at ?? 0) - (row.started_at ?? 0)).sort((a, b) => a - b);
  const at = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))];
  return (
    <span className={css.actions}>
      {shown.map((row) => <Mark key={row.execution_id} state={row.status} size={14} />)}
      {times.length > 1 ? <span className={css.none}>p50 {duration(at(0.5))} · p95 {duration(at(0.95))} of {times.length}</span> : null}
    </span>
  );
}

function Side({ path, version, step, graph }: { path: string; version: number; rows: readonly Schemas["ExecutionRow"][]; step?: string; graph?: Schemas["Graph"] }) {
  const schema = useQuery({ queryKey: ["ui_schema", path, version], queryFn: () => get<Schemas["UiSchema"]>("/api/catalog/ui_schema", { path, version }) });
  const keychain = useQuery({ queryKey: ["keychain", path, version], queryFn: () => get<Schemas["KeychainEntries"]>("/api/keychain", { path, version }) });
  const fields = Object.entries((schema.data?.schema.properties ?? {}) as Record<string, { type?: string; description?: string }>);
  const node = graph?.nodes.find((one) => one.name === step);
  return (
    <div className={css.side}>
      {node ? (
        <section>
          <h3>{plain(node.name)}</h3>
          <Facts rows={[["kinds", node.kinds.join(", ")], ["about", plain(node.description)], ["line", node.line ?? ""], ["gate", node.gate ? <code key="g">{plain(node.gate)}</code> : ""], ["loop over", node.loop ? <code key="l">{plain(node.loop.over)}</code> : ""], ["join", node.join ?? ""]]} />
        </section>
      ) : <p className={css.none}>Choose a step to see what it does.</p>}
      <section>
        <h3>Workload</h3>
        {fields.length === 0 ? <p className={css.none}>It takes none.</p> : null}
        <Facts rows={fields.map(([name, one]) => [name, <span key={name}>{one.type ?? "any"} <code>{plain(JSON.stringify(schema.data?.defaults[name]) ?? "")}</code></span>])} />
      </section>
      <section>
        <h3>Needs</h3>
        {(keychain.data?.entries ?? []).length === 0 ? <p className={css.none}>No credentials.</p> : null}
        <Facts rows={(keychain.data?.entries ?? []).map((one) => [one.name, <span key={one.name} className={one.stored ? css.good : css.warn}>{one.stored ? "✓ stored" : "not stored here"}</span>])} />
      </section>
    </div>
  );
}

function VersionList({ path, versions, version, onVersion }: { path: string; versions: readonly Schemas["CatalogVersion"][]; version: number; onVersion: (version: number) => void }) {
  const diff = useQuery({ queryKey: ["versions", "diff", path, version], enabled: version > 1 && versions.length > 1, retry: false, queryFn: () => get<Schemas["Difference"]>("/api/catalog/diff", { path, version }) });
  return (
    <div className={css.versions}>
      <ul aria-label="Versions">
        {versions.map((one) => (
          <li key={one.version}>
            <button type="button" className={css.item} aria-pressed={one.version === version} onClick={() => onVersion(one.version)}>
              <span>v{one.version} <code>{one.playbook.slice(0, 8)}</code></span> <Time at={one.registered_at} />
            </button>
          </li>
        ))}
      </ul>
      <div className={css.text} tabIndex={0} role="region" aria-label="Changes">
        {version === 1 || versions.length === 1 ? <p className={css.none}>This is the only version before which there is none to compare with.</p> : null}
        {diff.error ? <Trouble error={diff.error} /> : null}
        {diff.data?.text.split("\n").map((line, at) => (
          <div key={at} className={line.startsWith("+") ? css.plus : line.startsWith("-") ? css.minus : line.startsWith("@") ? css.hunk : undefined}>{plain(line) || " "}</div>
        ))}
      </div>
    </div>
  );
}

function Yaml({ path, version, line }: { path: string; version: number; line?: number }) {
  const found = useQuery({ queryKey: ["yaml", path, version], queryFn: () => get<Schemas["CatalogVersion"]>("/api/catalog/playbook", { path, version }) });
  if (found.error) return <Trouble error={found.error} />;
  if (!found.data) return <Loading rows={8} />;
  const text = found.data.content ?? "";
  return (
    <div className={css.text} tabIndex={0} role="region" aria-label="YAML">
      <Copy text={text} label="Copy the YAML">Copy</Copy>
      <div className={css.numbered}>
        {text.split("\n").flatMap((one, at) => [<span key={`${at}n`}>{at + 1}</span>, <span key={at} className={at + 1 === line ? css.item : undefined} aria-current={at + 1 === line}>{plain(one) || " "}</span>])}
      </div>
    </div>
  );
}

type Property = { type?: string; title?: string; description?: string; enum?: unknown[] };

function Run({ path, version, isLatest, last, onClose }: { path: string; version: number; isLatest: boolean; last?: Schemas["ExecutionRow"]; onClose: () => void }) {
  const navigate = useNavigate();
  const [key] = useState(newKey);
  const [side, setSide] = useState<"form" | "json">("form");
  const [values, setValues] = useState<Record<string, string>>({});
  const [json, setJson] = useState<string | null>(null);
  const [tags, setTags] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const schema = useQuery({ queryKey: ["ui_schema", path, version], queryFn: () => get<Schemas["UiSchema"]>("/api/catalog/ui_schema", { path, version }) });
  const keychain = useQuery({ queryKey: ["keychain", path, version], queryFn: () => get<Schemas["KeychainEntries"]>("/api/keychain", { path, version }) });
  const properties = Object.entries((schema.data?.schema.properties ?? {}) as Record<string, Property>);
  const required = (schema.data?.schema.required ?? []) as string[];
  const defaults = schema.data?.defaults ?? {};
  const problems: string[] = [];
  const filled: Record<string, unknown> = {};
  for (const [name, property] of properties) {
    const text = values[name];
    if (text === undefined) continue;
    if (property.type === "string") filled[name] = text;
    else {
      const { value, problem } = parseJson(text);
      if (problem) problems.push(`${name}: ${problem}`);
      else if (value !== undefined) filled[name] = value;
    }
  }
  const whole = json !== null ? parseJson(json) : { value: filled, problem: problems[0] ?? "" };
  const payload = (side === "json" ? whole.value : filled) as Record<string, unknown> | undefined;
  const problem = side === "json" ? whole.problem : (problems[0] ?? "");
  const missing = (keychain.data?.entries ?? []).filter((one) => !one.stored);
  const start = async () => {
    setBusy(true);
    setError(null);
    try {
      const made = await send<Schemas["Started"]>("POST", "/api/execute", { path, version: isLatest ? undefined : version, payload: payload ?? {}, tags: tags.split(/[\s,]+/).filter(Boolean) }, { "Idempotency-Key": key });
      await navigate({ to: "/executions/$id", params: { id: made.execution_id } });
    } catch (found) {
      setError(found);
      setBusy(false);
    }
  };
  const like = async () => {
    if (!last) return;
    const found = await get<Schemas["Execution"]>(`/api/executions/${last.execution_id}`);
    setJson(JSON.stringify(found.workload, null, 2));
    setSide("json");
  };
  const flags = Object.entries(payload ?? {}).map(([name, value]) => ` --set ${name}='${typeof value === "string" ? value : JSON.stringify(value)}'`).join("");
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Run ${path} v${version}`}
      error={error}
      command={`noetl exec ${path}${isLatest ? "" : ` --version ${version}`}${flags}`}
      actions={<Button kind="primary" disabled={busy || Boolean(problem)} onClick={() => void start()}>Run</Button>}
    >
      <div className={css.actions}>
        <Button kind="quiet" aria-pressed={side === "form"} onClick={() => { setSide("form"); setJson(null); }}>Form</Button>
        <Button kind="quiet" aria-pressed={side === "json"} onClick={() => { setJson(JSON.stringify({ ...defaults, ...filled }, null, 2)); setSide("json"); }}>JSON</Button>
        {last ? <Button kind="quiet" onClick={() => void like()}>Like last time</Button> : null}
      </div>
      {side === "json" ? (
        <Field label="Workload (JSON)" hint={problem || undefined}>
          <textarea rows={10} value={json ?? ""} onChange={(event) => setJson(event.target.value)} spellCheck={false} />
        </Field>
      ) : (
        <div className={css.form}>
          {schema.isPending ? <Loading rows={2} /> : properties.length === 0 ? <p className={css.none}>It takes no workload.</p> : null}
          {properties.map(([name, property]) => {
            const fallback = defaults[name];
            const text = values[name] ?? (typeof fallback === "string" ? fallback : fallback === undefined ? "" : JSON.stringify(fallback));
            const change = (value: string) => setValues({ ...values, [name]: value });
            const isSimple = ["string", "integer", "number"].includes(property.type ?? "");
            return (
              <Field key={name} label={`${name}${required.includes(name) ? " *" : ""}`} hint={property.description ?? (isSimple || property.type === "boolean" ? property.type : `${property.type ?? "any value"}, as JSON`)}>
                {property.enum ? (
                  <select value={text} onChange={(event) => change(event.target.value)}>
                    {property.enum.map((one) => <option key={String(one)} value={typeof one === "string" ? one : JSON.stringify(one)}>{String(one)}</option>)}
                  </select>
                ) : property.type === "boolean" ? (
                  <select value={text} onChange={(event) => change(event.target.value)}><option value="true">true</option><option value="false">false</option></select>
                ) : isSimple ? (
                  <input name={name} value={text} inputMode={property.type === "string" ? "text" : "decimal"} onChange={(event) => change(event.target.value)} />
                ) : (
                  <textarea value={text} onChange={(event) => change(event.target.value)} spellCheck={false} />
                )}
              </Field>
            );
          })}
          {problem ? <p role="alert" className={css.error}>{problem}</p> : null}
        </div>
      )}
      <Field label="Tags" hint="Words to find the execution by, with spaces between them.">
        <input value={tags} onChange={(event) => setTags(event.target.value)} />
      </Field>
      {missing.length > 0 ? <p className={css.warn}>Not stored on this server: {missing.map((one) => one.name).join(", ")}. A worker's environment may hold them.</p> : null}
    </Dialog>
  );
}
