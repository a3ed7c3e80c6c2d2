import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { newKey } from "../../api/client";
import { useExecution } from "../../api/executions";
import { attempt, recentOf, type TrialAsked } from "../../api/language";
import css from "../../editor/editor.module.css";
import type { Graph } from "../../graph/draw";
import { GraphView } from "../../graph/view";
import { useDelayed, useTrack } from "../../moments/use";
import { Button, Field, Loading, Trouble } from "../../parts/controls";
import { Dialog } from "../../parts/Dialog";
import { Json } from "../../parts/Json";
import { Mark } from "../../parts/Mark";
import { errorText, plain, plural, shortId } from "../../words/format";
import { parseJson } from "../../words/workload";

type Scope = "all" | "until" | "step";
interface Props {
  text: string;
  path: string;
  steps: readonly string[];
  /** The step of the cursor. */
  step?: string;
  onClose: () => void;
  onStarted: (id: string) => void;
}

/** Runs the text as it is, or a part of it; names the tasks that will really run first. */
export function Try({ text, path, steps, step, onClose, onStarted }: Props) {
  const [scope, setScope] = useState<Scope>("all");
  const [chosen, setChosen] = useState(step ?? steps[0] ?? "");
  const [from, setFrom] = useState("");
  const [payload, setPayload] = useState("{}");
  const [key] = useState(newKey);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const { value, problem } = parseJson(payload);
  const asked: TrialAsked = { content: text, payload: (value ?? {}) as Record<string, never>, ...(scope === "all" ? {} : { [scope]: chosen }), ...(from.trim() ? { from: from.trim() } : {}) };
  const rested = useDelayed(JSON.stringify(asked), 200);
  const preview = useQuery({ queryKey: ["editor", "try", rested], enabled: !problem, retry: false, gcTime: 0, placeholderData: (old) => old, queryFn: () => attempt({ ...(JSON.parse(rested) as TrialAsked), dry_run: true }) });
  const recent = useQuery({ queryKey: ["editor", "recent", path], enabled: Boolean(path), retry: false, queryFn: () => recentOf(path) });
  const act = async () => {
    setBusy(true);
    setError(null);
    try {
      const made = await attempt(asked, key);
      if (made.execution_id) onStarted(made.execution_id);
    } catch (found) {
      setError(found);
      setBusy(false);
    }
  };
  const tasks = preview.data?.tasks ?? [];
  return (
    <Dialog
      open
      onClose={onClose}
      title="Run this text"
      error={error ?? preview.error}
      actions={<Button kind="primary" disabled={busy || Boolean(problem || preview.error)} onClick={() => void act()}>Run</Button>}
    >
      <Field label="What">
        <select value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
          <option value="all">the whole playbook</option>
          <option value="until">up to a step</option>
          <option value="step">one step alone</option>
        </select>
      </Field>
      {scope === "all" ? null : (
        <Field label="Step">
          <select value={chosen} onChange={(event) => setChosen(event.target.value)}>
            {steps.map((one) => <option key={one} value={one}>{plain(one)}</option>)}
          </select>
        </Field>
      )}
      <Field label="Workload (JSON)" hint={problem || "Keys given here replace those of `workload`."}>
        <textarea value={payload} onChange={(event) => setPayload(event.target.value)} spellCheck={false} aria-invalid={Boolean(problem)} />
      </Field>
      <Field label="Continue from an execution" hint="What is recorded there is not done again. Empty: begin anew.">
        <input value={from} onChange={(event) => setFrom(event.target.value)} list="try-from" placeholder="execution id" />
      </Field>
      <datalist id="try-from">{recent.data?.executions.map((one) => <option key={one.execution_id} value={one.execution_id}>{one.status}</option>)}</datalist>
      <div>
        <p>{preview.data ? `${plural(tasks.length, "task")} may really run${preview.data.source ? `, after event ${preview.data.seq} of ${shortId(preview.data.source)}` : ""}:` : preview.error ? "It cannot run as it is." : "Looking up what would run…"}</p>
        <ul className={css.tasks} aria-label="Tasks that may run">
          {tasks.slice(0, 100).map((one) => <li key={`${one.step} ${one.label}`}><code>{plain(one.step)}</code> {plain(one.label)} · {plain(one.kind)}</li>)}
          {tasks.length > 100 ? <li>first 100 of {tasks.length}</li> : null}
        </ul>
      </div>
    </Dialog>
  );
}

/** The graph of the text with the states of its trial. */
export function TriedGraph({ id, graph, step, onStep }: { id: string; graph: Graph; step?: string; onStep: (step: string) => void }) {
  const { track } = useTrack(id);
  return <GraphView graph={graph} track={track} seq={track?.seq ?? 0} isLive step={step} onStep={onStep} />;
}

export function Tried({ id, isOld, onClear }: { id: string; isOld: boolean; onClear: () => void }) {
  const { track, ended } = useTrack(id);
  const status = track ? track.status(track.seq) : "";
  const execution = useExecution(id, `${status} ${ended}`);
  if (execution.error && !execution.data) return <Trouble error={execution.error} again={() => void execution.refetch()} />;
  if (!execution.data) return <Loading rows={3} />;
  const found = execution.data;
  return (
    <div className={css.trial}>
      <div className={css.row} role="status">
        <Mark state={status || found.status} word />
        <Link to="/executions/$id" params={{ id }}>Open {shortId(id)}</Link>
        {isOld ? <span className={css.note}>The text has changed since.</span> : null}
        <Button kind="quiet" onClick={onClear}>Clear</Button>
      </div>
      {found.error ? <p className={css.bad}>{plain(errorText(found.error))}</p> : null}
      {found.result !== undefined && found.result !== null ? <Json value={found.result} /> : null}
    </div>
  );
}
