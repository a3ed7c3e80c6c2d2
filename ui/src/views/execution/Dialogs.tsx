// What one can do with an execution: each dialog says first what will happen, as the server tells it without doing it.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { act, type Execution, type Explained, type Told } from "../../api/executions";
import { type Schemas, send } from "../../api/client";
import { type Does, useDelayed } from "../../moments/use";
import { type Change, Changes } from "../../parts/Changes";
import { Button, Field, Trouble } from "../../parts/controls";
import { Dialog } from "../../parts/Dialog";
import { curl, noetl, spelled } from "../../words/command";
import { plain, plural } from "../../words/format";
import { parseJson } from "../../words/workload";
import css from "./Dialogs.module.css";

type Json = Record<string, unknown>;

function useAct(onClose: () => void): { error: unknown; busy: boolean; run: (does: () => Promise<unknown>) => Promise<void> } {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const run = async (does: () => Promise<unknown>) => {
    setBusy(true);
    setError(null);
    try {
      await does();
      onClose();
    } catch (found) {
      setError(found);
    }
    setBusy(false);
  };
  return { error, busy, run };
}

/** What an action would do: the same request with `dry_run`, which changes nothing. */
function Preview({ path, body, isReady = true }: { path: string; body: Json; isReady?: boolean }) {
  const asked = useDelayed(JSON.stringify(body), 200);
  const found = useQuery({
    queryKey: ["preview", path, asked],
    enabled: isReady,
    retry: false,
    staleTime: 0,
    queryFn: () => send<{ preview: Schemas["Preview"] | null }>("POST", path, { ...(JSON.parse(asked) as Json), dry_run: true }),
    placeholderData: (old) => old,
  });
  if (!isReady) return null;
  if (found.error) return <Trouble error={found.error} />;
  const preview = found.data?.preview;
  return (
    <div className={css.preview} role="region" aria-label="What will happen" aria-busy={!preview}>
      {preview ? (
        <>
          <p>{plain(preview.says)}</p>
          <Names label="Ends" names={preview.ends} />
          <Names label="Cancels too" names={preview.children} />
          <Names label="Rolls back, in this order" names={preview.undoes} />
          <Names label="Runs" names={preview.steps} />
        </>
      ) : (
        <p>Asking what would happen…</p>
      )}
    </div>
  );
}

function Names({ label, names }: { label: string; names: readonly string[] | undefined }) {
  if (!names?.length) return null;
  return (
    <p>
      <span className={css.quiet}>{label}:</span> {names.slice(0, 12).map((one, at) => <span key={one}>{at ? ", " : ""}<code>{plain(one)}</code></span>)}
      {names.length > 12 ? ` and ${plural(names.length - 12, "other")}` : ""}
    </p>
  );
}

/** Values of an edited input beside those of the original. */
function Difference({ name, before, after }: { name: string; before: Json; after: Json }) {
  const changes: Change[] = Object.entries(after).map(([key, value]) => ({ path: `${name}.${key}`, before: before[key], after: value }));
  return changes.length ? <Changes changes={changes} /> : null;
}

const patches = (name: string, values: Json): string[] => Object.entries(values).flatMap(([key, value]) => ["--patch", `${name}.${key}=${spelled(value)}`]);

interface Doing {
  onClose: () => void;
  onDone: () => void;
  does: Does;
}

export function Cancel({ execution, onClose, onDone, does }: Doing & { execution: Execution }) {
  const [reason, setReason] = useState("");
  const [compensate, setCompensate] = useState(false);
  const { error, busy, run } = useAct(onClose);
  const id = execution.execution_id;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Cancel the execution"
      error={error}
      command={noetl("cancel", id, compensate && "--compensate", reason && "--reason", reason)}
      actions={
        <Button kind="danger" disabled={busy} onClick={() => void run(async () => { await does("cancelling…", () => act<Told>(id, "cancel", { reason, compensate })); onDone(); })}>Cancel the execution</Button>
      }
    >
      <Preview path={`/api/executions/${id}/cancel`} body={{ compensate }} />
      <label>
        <input type="checkbox" checked={compensate} onChange={(event) => setCompensate(event.target.checked)} /> Roll back completed steps first
      </label>
      <Field label="Reason">
        <input value={reason} onChange={(event) => setReason(event.target.value)} />
      </Field>
    </Dialog>
  );
}

export function Again({ execution, ctx, onClose }: { execution: Execution; ctx: Json; onClose: () => void }) {
  const [latest, setLatest] = useState(false);
  const [text, setText] = useState("{}");
  const { error, busy, run } = useAct(onClose);
  const navigate = useNavigate();
  const id = execution.execution_id;
  const path = `/api/executions/${id}/retry`;
  const { value, problem } = parseJson(text);
  const isChanged = Object.keys(value).length > 0;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Retry from the failed step"
      error={error}
      command={isChanged ? curl("POST", path, { latest, ctx: value }) : noetl("retry", id, latest && "--latest")}
      actions={
        <Button kind="primary" disabled={busy || Boolean(problem)} onClick={() => void run(async () => {
          const made = await act<{ execution_id: string }>(id, "retry", { latest, ctx: value });
          await navigate({ to: "/executions/$id", params: { id: made.execution_id } });
        })}>Retry</Button>
      }
    >
      <Preview path={path} body={{ latest, ctx: value }} isReady={!problem} />
      <label>
        <input type="checkbox" checked={latest} onChange={(event) => setLatest(event.target.checked)} /> Use the latest version of the playbook
      </label>
      <Field label="Changes to ctx (JSON)" hint={problem || undefined}>
        <textarea value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} />
      </Field>
      <Difference name="ctx" before={ctx} after={value} />
    </Dialog>
  );
}

export function Fork({ execution, ctx, seq, onClose }: { execution: Execution; ctx: Json; seq: number | undefined; onClose: () => void }) {
  const [start, setStart] = useState(seq ? String(seq) : "");
  const [text, setText] = useState("{}");
  const [workload, setWorkload] = useState("{}");
  const { error, busy, run } = useAct(onClose);
  const navigate = useNavigate();
  const id = execution.execution_id;
  const one = parseJson(text);
  const two = parseJson(workload);
  const isReady = Boolean(start) && !one.problem && !two.problem;
  const body = { start, ctx: one.value, workload: two.value };
  return (
    <Dialog
      open
      onClose={onClose}
      title={seq ? `Fork from event ${seq}` : "Fork"}
      error={error}
      command={noetl("fork", id, "--from", start || "STEP", ...patches("workload", two.value), ...patches("ctx", one.value))}
      actions={
        <Button kind="primary" disabled={busy || !isReady} onClick={() => void run(async () => {
          const made = await act<{ execution_id: string }>(id, "fork", body);
          await navigate({ to: "/executions/$id", params: { id: made.execution_id } });
        })}>Fork</Button>
      }
    >
      <Field label="From" hint="A step (before its last run), or the number of an event (after it).">
        <input value={start} onChange={(event) => setStart(event.target.value)} list="fork-steps" />
      </Field>
      <datalist id="fork-steps">{Object.keys(execution.steps ?? {}).map((step) => <option key={step} value={step} />)}</datalist>
      <Preview path={`/api/executions/${id}/fork`} body={body} isReady={isReady} />
      <Field label="Changes to workload (JSON)" hint={two.problem || `now ${JSON.stringify(execution.workload ?? {}).slice(0, 160)}`}>
        <textarea value={workload} onChange={(event) => setWorkload(event.target.value)} spellCheck={false} />
      </Field>
      <Field label="Changes to ctx (JSON)" hint={one.problem || undefined}>
        <textarea value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} />
      </Field>
      <Difference name="workload" before={(execution.workload ?? {}) as Json} after={two.value} />
      <Difference name="ctx" before={ctx} after={one.value} />
    </Dialog>
  );
}

/** Complete a step by hand: its work is not done, and the execution goes on with this result. */
export function Complete({ execution, explain, onClose, onDone, does }: Doing & { execution: Execution; explain: Explained | undefined }) {
  const steps = [...new Set((explain?.standing ?? []).map((one) => one.step).filter(Boolean))];
  const [chosen, setChosen] = useState("");
  const [text, setText] = useState("");
  const [reason, setReason] = useState("");
  const { error, busy, run } = useAct(onClose);
  const id = execution.execution_id;
  const step = chosen || steps[0] || "";
  const path = `/api/admin/executions/${id}/steps/${encodeURIComponent(step)}/force-complete`;
  let result: unknown = null;
  let problem = "";
  try {
    result = text.trim() ? JSON.parse(text) : null;
  } catch (found) {
    problem = found instanceof Error ? found.message : "no JSON";
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title="Complete a step by hand"
      error={error}
      command={curl("POST", path, { result, reason })}
      actions={
        <Button kind="danger" why={reason.trim() ? undefined : "give a reason: the audit trail keeps it"} disabled={busy || !step || Boolean(problem)} onClick={() => void run(async () => { await does(`completing ${step}…`, () => send<Told>("POST", path, { result, reason })); onDone(); })}>Complete the step</Button>
      }
    >
      <Field label="Step">
        <select value={step} onChange={(event) => setChosen(event.target.value)}>
          {steps.map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
      </Field>
      <Preview path={path} body={{}} isReady={Boolean(step)} />
      <Field label="Result (JSON)" hint={problem || "What the steps after it read; null if it is empty."}>
        <textarea value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} />
      </Field>
      <Field label="Reason">
        <input value={reason} onChange={(event) => setReason(event.target.value)} />
      </Field>
    </Dialog>
  );
}

/** Change values of ctx while it runs. */
export function Patch({ execution, ctx, onClose, onDone, does }: Doing & { execution: Execution; ctx: Json }) {
  const [text, setText] = useState("{}");
  const { error, busy, run } = useAct(onClose);
  const id = execution.execution_id;
  const path = `/api/executions/${id}/ctx`;
  const { value, problem } = parseJson(text);
  const isEmpty = Object.keys(value).length === 0;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Change ctx"
      error={error}
      command={curl("PATCH", path, { writes: value })}
      actions={<Button kind="primary" disabled={busy || isEmpty || Boolean(problem)} onClick={() => void run(async () => { await does("changing ctx…", () => send<Told>("PATCH", path, { writes: value })); onDone(); })}>Change</Button>}
    >
      <p>Conditions and templates that are evaluated from now on read the new values. What has been decided stays decided.</p>
      <Field label="New values (JSON)" hint={problem || "A key may be a path, such as limits.days."}>
        <textarea value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} />
      </Field>
      <Difference name="ctx" before={ctx} after={value} />
    </Dialog>
  );
}

export function Delete({ id, onClose }: { id: string; onClose: () => void }) {
  const { error, busy, run } = useAct(onClose);
  const navigate = useNavigate();
  return (
    <Dialog
      open
      onClose={onClose}
      title="Delete the execution"
      error={error}
      command={noetl("delete", id)}
      actions={<Button kind="danger" disabled={busy} onClick={() => void run(async () => { await send("DELETE", `/api/executions/${id}`); await navigate({ to: "/executions", search: {} }); })}>Delete for good</Button>}
    >
      <p>Its log, its dead letters and its stored results go with it. This cannot be undone.</p>
    </Dialog>
  );
}
