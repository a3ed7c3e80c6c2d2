import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { get, newKey, type Schemas, send } from "../api/client";
import { Act } from "../parts/Act";
import { Button, Field, Loading, TabList, Trouble } from "../parts/controls";
import { noetl, spelled } from "../words/command";
import { plain, plural } from "../words/format";
import { type Drafts, draftsOf, fieldsOf, fill, type FormField } from "../words/workload";
import css from "./Run.module.css";

type Payload = Record<string, unknown>;
interface Draft {
  side: "form" | "json";
  drafts: Drafts;
  json: string;
  tags: string;
  priority: string;
}

/** Spell the start as a command: `--set` for plain keys, else the whole payload. */
function commandOf(path: string, version: number | undefined, payload: Payload, tags: string[], priority: number): string {
  const keys = Object.keys(payload);
  const isPlain = keys.every((key) => /^[A-Za-z_]\w*$/.test(key));
  const values = keys.length === 0 ? [] : isPlain ? keys.flatMap((key) => ["--set", `${key}=${spelled(payload[key])}`]) : ["--payload", JSON.stringify(payload)];
  return noetl("exec", path, version && "--version", version, ...values, ...tags.flatMap((tag) => ["--tag", tag]), priority !== 0 && "--priority", priority !== 0 && priority);
}

function parsed(text: string): { payload: Payload; problem?: string } {
  try {
    const value: unknown = JSON.parse(text.trim() || "{}");
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { payload: value as Payload };
    return { payload: {}, problem: "The workload is a JSON object." };
  } catch (error) {
    return { payload: {}, problem: `Not JSON: ${(error as Error).message}` };
  }
}

/** Start an execution. The idempotency key is made when the dialog opens, so a double click starts once. */
export function Run({ path, version, onClose }: { path: string; version?: number; onClose: () => void }) {
  const form = useQuery({ queryKey: ["ui_schema", path, version ?? 0], queryFn: ({ signal }) => get<Schemas["UiSchema"]>("/api/catalog/ui_schema", { path, version }, signal), staleTime: Infinity });
  if (form.data) return <Form path={path} version={version} form={form.data} onClose={onClose} />;
  return (
    <Act title={`Run ${plain(path)}`} label="Run" why="Its workload is being read" run={async () => null} onClose={onClose}>
      {form.error ? <Trouble error={form.error} again={() => void form.refetch()} /> : <Loading rows={3} />}
    </Act>
  );
}

function Form({ path, version, form, onClose }: { path: string; version?: number; form: Schemas["UiSchema"]; onClose: () => void }) {
  const navigate = useNavigate();
  const [key] = useState(newKey);
  const fields = useMemo(() => fieldsOf(form.schema, form.defaults), [form]);
  const [draft, setDraft] = useState<Draft>({ side: fields.length > 0 ? "form" : "json", drafts: draftsOf(fields, {}), json: "{}", tags: "", priority: "" });
  const keychain = useQuery({ queryKey: ["keychain", path, version ?? 0], queryFn: ({ signal }) => get<Schemas["KeychainEntries"]>("/api/keychain", { path, version }, signal) });
  const missing = keychain.data?.entries.filter((one) => !one.stored) ?? [];
  const set = (change: Partial<Draft>) => setDraft((old) => ({ ...old, ...change }));

  const filled = fill(fields, draft.drafts);
  const written = parsed(draft.json);
  const payload = draft.side === "form" ? filled.payload : written.payload;
  const broken = draft.side === "form" ? Object.entries(filled.problems).map(([name, text]) => `${name}: ${text}`)[0] : written.problem;
  const tags = draft.tags.split(/[\s,]+/).filter(Boolean);
  const priority = Number(draft.priority || 0);
  const why = broken ?? (Number.isInteger(priority) ? undefined : "The priority is no whole number.");
  const turn = (side: Draft["side"]) => {
    if (side === "json") set({ side, json: JSON.stringify(filled.payload, null, 2) });
    else if (!written.problem) set({ side, drafts: draftsOf(fields, written.payload) });
  };
  const run = () => send<Schemas["Started"]>("POST", "/api/execute", { path, version, payload, tags, priority }, { "Idempotency-Key": key });
  return (
    <Act
      title={`Run ${plain(path)}${version ? ` v${version}` : ""}`}
      label="Run"
      wide
      why={why}
      command={commandOf(path, version, payload, tags, Number.isInteger(priority) ? priority : 0)}
      run={run}
      onClose={onClose}
      onDone={(started) => void navigate({ to: "/executions/$id", params: { id: started.execution_id } })}
    >
      <p>
        Starts one execution of version {form.version}. {fields.length > 0 ? "Values that you leave alone keep the playbook's default." : "The playbook declares no workload."}
      </p>
      {missing.length > 0 ? (
        <p role="alert" className={css.missing}>
          {plural(missing.length, "credential")} not stored: {missing.map((one) => plain(one.credential)).join(", ")}. Steps that need it will fail. <Link to="/credentials">Credentials</Link>
        </p>
      ) : null}
      <div className={css.sides}>
        <TabList label="How to write the workload" value={draft.side} onChange={turn} tabs={[{ id: "form", label: "Form" }, { id: "json", label: "JSON" }]} />
        <LastTime path={path} onTake={(values) => set({ drafts: draftsOf(fields, values), json: JSON.stringify(values, null, 2) })} />
      </div>
      {draft.side === "form" ? (
        <div className={css.fields}>
          {fields.map((field) => (
            <Value key={field.name} field={field} text={draft.drafts[field.name] ?? ""} problem={filled.problems[field.name]} onChange={(text) => set({ drafts: { ...draft.drafts, [field.name]: text } })} />
          ))}
          {fields.length === 0 ? <p className={css.hint}>Write values as JSON if its steps read some.</p> : null}
        </div>
      ) : (
        <Field label="Workload" hint={written.problem ?? "Values that differ from the defaults; a JSON object."}>
          <textarea value={draft.json} rows={10} spellCheck={false} aria-invalid={Boolean(written.problem)} onChange={(event) => set({ json: event.target.value })} />
        </Field>
      )}
      <div className={css.pair}>
        <Field label="Tags" hint="Separated by spaces; to find the execution by.">
          <input value={draft.tags} onChange={(event) => set({ tags: event.target.value })} />
        </Field>
        <Field label="Priority" hint="Higher is scheduled first.">
          <input value={draft.priority} placeholder="0" inputMode="numeric" onChange={(event) => set({ priority: event.target.value })} />
        </Field>
      </div>
    </Act>
  );
}

function LastTime({ path, onTake }: { path: string; onTake: (values: Payload) => void }) {
  const [error, setError] = useState("");
  const take = async () => {
    const { executions } = await get<Schemas["Executions"]>("/api/executions", { path, limit: 1 });
    const last = executions[0];
    if (!last) return setError("It has not run yet.");
    const { workload } = await get<Schemas["Execution"]>(`/api/executions/${last.execution_id}`);
    onTake((workload ?? {}) as Payload);
    setError("");
  };
  return (
    <>
      {error ? <span className={css.hint}>{error}</span> : null}
      <Button kind="quiet" onClick={() => void take().catch((found: Error) => setError(found.message))}>
        Like last time
      </Button>
    </>
  );
}

function Value({ field, text, problem, onChange }: { field: FormField; text: string; problem?: string; onChange: (text: string) => void }) {
  const label = `${plain(field.name)}${field.required ? " (needed)" : ""}`;
  const hint = problem && text !== "" ? problem : [field.kind === "json" ? "JSON" : field.kind === "text" || field.kind === "long" ? "text" : field.kind, plain(field.about)].filter(Boolean).join(" · ");
  const shared = { value: text, "aria-invalid": Boolean(problem && text !== "") || undefined, spellCheck: false };
  return (
    <Field label={label} hint={hint}>
      {field.kind === "choice" || field.kind === "boolean" ? (
        <select {...shared} onChange={(event) => onChange(event.target.value)}>
          {field.hasDefault ? null : <option value="">choose</option>}
          {(field.kind === "boolean" ? [true, false] : field.choices).map((one) => (
            <option key={JSON.stringify(one)} value={JSON.stringify(one)}>
              {typeof one === "string" ? plain(one) : JSON.stringify(one)}
            </option>
          ))}
        </select>
      ) : field.kind === "json" || field.kind === "long" ? (
        <textarea {...shared} rows={Math.min(8, text.split("\n").length + 1)} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input {...shared} inputMode={field.kind === "text" ? undefined : "decimal"} onChange={(event) => onChange(event.target.value)} />
      )}
    </Field>
  );
}
