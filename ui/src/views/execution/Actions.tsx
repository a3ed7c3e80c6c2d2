import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { act, type Execution, type Explained } from "../../api/executions";
import { send } from "../../api/client";
import { useNeeds } from "../../api/session";
import { Button, Field } from "../../parts/controls";
import { Dialog } from "../../parts/Dialog";
import { hasEnded } from "../../words/states";
import { Answer } from "../Answer";
import css from "./Why.module.css";

type Open = "answer" | "cancel" | "retry" | "fork" | "delete" | null;
interface Props {
  execution: Execution;
  explain: Explained | undefined;
  /** The moment, if it is not live. */
  seq: number | undefined;
  status: string;
}

export function parseJson(text: string): { value: unknown; problem: string } {
  if (!text.trim()) return { value: undefined, problem: "" };
  try {
    return { value: JSON.parse(text), problem: "" };
  } catch (error) {
    return { value: undefined, problem: error instanceof Error ? error.message : "no JSON" };
  }
}

export function Actions({ execution, explain, seq, status }: Props) {
  const [open, setOpen] = useState<Open>(null);
  const needs = useNeeds();
  const client = useQueryClient();
  const [pausing, setPausing] = useState("");
  const id = execution.execution_id;
  const isOver = hasEnded(status);
  const signals = (explain?.standing ?? []).filter((one) => one.signal);
  const refresh = () => void client.invalidateQueries({ queryKey: ["execution", id] });
  const pause = async () => {
    const verb = execution.paused || status === "paused" ? "resume" : "pause";
    setPausing(`${verb === "pause" ? "pausing" : "resuming"}…`);
    await act(id, verb).catch(() => null);
    await client.invalidateQueries({ queryKey: ["execution", id] });
    setPausing("");
  };
  const close = () => setOpen(null);
  return (
    <>
      {signals.length > 0 && !isOver ? (
        <Button kind="primary" onClick={() => setOpen("answer")} why={needs("operator")}>Answer…</Button>
      ) : null}
      {!isOver ? (
        <Button onClick={() => void pause()} why={needs("operator")} disabled={Boolean(pausing)}>
          {pausing || (execution.paused || status === "paused" ? "Resume" : "Pause")}
        </Button>
      ) : null}
      {status === "failed" || status === "partial" ? (
        <Button kind="primary" onClick={() => setOpen("retry")} why={needs("operator")}>Retry…</Button>
      ) : null}
      <Button onClick={() => setOpen("fork")} why={needs("operator")}>{seq ? `Fork from event ${seq}…` : "Fork…"}</Button>
      {!isOver ? (
        <Button kind="danger" onClick={() => setOpen("cancel")} why={needs("operator")}>Cancel…</Button>
      ) : (
        <Button kind="quiet" onClick={() => setOpen("delete")} why={needs("admin")}>Delete…</Button>
      )}
      {open === "answer" ? <Answer id={id} path={execution.path} onClose={close} onDone={refresh} /> : null}
      {open === "cancel" ? <Cancel execution={execution} explain={explain} onClose={close} onDone={refresh} /> : null}
      {open === "retry" ? <Again execution={execution} onClose={close} /> : null}
      {open === "fork" ? <Fork execution={execution} seq={seq} onClose={close} /> : null}
      {open === "delete" ? <Delete id={id} onClose={close} /> : null}
    </>
  );
}

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

function Cancel({ execution, explain, onClose, onDone }: { execution: Execution; explain: Explained | undefined; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [compensate, setCompensate] = useState(false);
  const { error, busy, run } = useAct(onClose);
  const id = execution.execution_id;
  const open = explain?.standing ?? [];
  return (
    <Dialog
      open
      onClose={onClose}
      title="Cancel the execution"
      error={error}
      command={`noetl cancel ${id}${compensate ? " --compensate" : ""}`}
      actions={
        <Button kind="danger" disabled={busy} onClick={() => void run(async () => { await act(id, "cancel", { reason, compensate }); onDone(); })}>Cancel the execution</Button>
      }
    >
      <p>
        Ends {open.length === 1 ? "1 thing that has" : `${open.length} things that have`} not ended
        {execution.children?.length ? ` and up to ${execution.children.length} children` : ""}. {compensate ? "Then completed steps are rolled back, newest first." : "What was done stays done."}
      </p>
      <ul className={css.words}>
        {open.slice(0, 8).map((one) => <li key={one.name}>{one.step || one.name} waits for {one.waits_for}</li>)}
      </ul>
      <label>
        <input type="checkbox" checked={compensate} onChange={(event) => setCompensate(event.target.checked)} /> Roll back completed steps first
      </label>
      <Field label="Reason">
        <input value={reason} onChange={(event) => setReason(event.target.value)} />
      </Field>
    </Dialog>
  );
}

function Again({ execution, onClose }: { execution: Execution; onClose: () => void }) {
  const [latest, setLatest] = useState(false);
  const [text, setText] = useState("{}");
  const { error, busy, run } = useAct(onClose);
  const navigate = useNavigate();
  const id = execution.execution_id;
  const { value, problem } = parseJson(text);
  return (
    <Dialog
      open
      onClose={onClose}
      title="Retry from the failed step"
      error={error}
      command={`noetl retry ${id}${latest ? " --latest" : ""}`}
      actions={
        <Button kind="primary" disabled={busy || Boolean(problem)} onClick={() => void run(async () => {
          const made = await act<{ execution_id: string }>(id, "retry", { latest, ctx: value ?? {} });
          await navigate({ to: "/executions/$id", params: { id: made.execution_id } });
        })}>Retry</Button>
      }
    >
      <p>Starts a new execution that keeps what was done before the first failed step, and continues from there. This one stays as it is.</p>
      <label>
        <input type="checkbox" checked={latest} onChange={(event) => setLatest(event.target.checked)} /> Use the latest version of the playbook
      </label>
      <Field label="Changes to ctx (JSON)" hint={problem || undefined}>
        <textarea value={text} onChange={(event) => setText(event.target.value)} spellCheck={false} />
      </Field>
    </Dialog>
  );
}

function Fork({ execution, seq, onClose }: { execution: Execution; seq: number | undefined; onClose: () => void }) {
  const [start, setStart] = useState(seq ? String(seq) : "");
  const [ctx, setCtx] = useState("{}");
  const [workload, setWorkload] = useState("{}");
  const { error, busy, run } = useAct(onClose);
  const navigate = useNavigate();
  const id = execution.execution_id;
  const one = parseJson(ctx);
  const two = parseJson(workload);
  return (
    <Dialog
      open
      onClose={onClose}
      title={seq ? `Fork from event ${seq}` : "Fork"}
      error={error}
      command={`noetl fork ${id} ${start || "STEP"}`}
      actions={
        <Button kind="primary" disabled={busy || !start || Boolean(one.problem || two.problem)} onClick={() => void run(async () => {
          const made = await act<{ execution_id: string }>(id, "fork", { start, ctx: one.value ?? {}, workload: two.value ?? {} });
          await navigate({ to: "/executions/$id", params: { id: made.execution_id } });
        })}>Fork</Button>
      }
    >
      <p>Starts a new execution with everything that happened up to there, and goes on with your changes. This one stays as it is.</p>
      <Field label="From" hint="A step (before its last run), or the number of an event (after it).">
        <input value={start} onChange={(event) => setStart(event.target.value)} list="fork-steps" />
      </Field>
      <datalist id="fork-steps">{Object.keys(execution.steps ?? {}).map((step) => <option key={step} value={step} />)}</datalist>
      <Field label="Changes to workload (JSON)" hint={two.problem || `now ${JSON.stringify(execution.workload ?? {}).slice(0, 160)}`}>
        <textarea value={workload} onChange={(event) => setWorkload(event.target.value)} spellCheck={false} />
      </Field>
      <Field label="Changes to ctx (JSON)" hint={one.problem || undefined}>
        <textarea value={ctx} onChange={(event) => setCtx(event.target.value)} spellCheck={false} />
      </Field>
    </Dialog>
  );
}

function Delete({ id, onClose }: { id: string; onClose: () => void }) {
  const { error, busy, run } = useAct(onClose);
  const navigate = useNavigate();
  return (
    <Dialog
      open
      onClose={onClose}
      title="Delete the execution"
      error={error}
      command={`noetl delete ${id}`}
      actions={<Button kind="danger" disabled={busy} onClick={() => void run(async () => { await send("DELETE", `/api/executions/${id}`); await navigate({ to: "/executions", search: {} }); })}>Delete for good</Button>}
    >
      <p>Its log, its dead letters and its stored results go with it. This cannot be undone.</p>
    </Dialog>
  );
}
