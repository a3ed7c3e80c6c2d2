import { useQueryClient } from "@tanstack/react-query";
import { act, type Execution, type Explained, type Told } from "../../api/executions";
import { useNeeds } from "../../api/session";
import type { Does } from "../../moments/use";
import { Button } from "../../parts/controls";
import { hasEnded } from "../../words/states";
import { Answer } from "../Answer";
import { Again, Cancel, Complete, Delete, Fork, Patch } from "./Dialogs";

export type Open = "answer" | "cancel" | "retry" | "fork" | "complete" | "patch" | "delete" | null;
interface Props {
  execution: Execution;
  explain: Explained | undefined;
  /** As it is now, where it is known. */
  ctx: Record<string, unknown>;
  /** The moment, if it is not live. */
  seq: number | undefined;
  status: string;
  /** The dialog that is open; other parts of the page open some too. */
  open: Open;
  setOpen: (open: Open) => void;
  does: Does;
  /** Something was asked for that has not happened yet. */
  isBusy: boolean;
}

export function Actions({ execution, explain, ctx, seq, status, open, setOpen, does, isBusy }: Props) {
  const needs = useNeeds();
  const client = useQueryClient();
  const id = execution.execution_id;
  const isOver = hasEnded(status);
  const signals = (explain?.standing ?? []).filter((one) => one.signal);
  const isPaused = execution.paused || status === "paused";
  const refresh = () => void client.invalidateQueries({ queryKey: ["execution", id] });
  const pause = () =>
    void does(isPaused ? "resuming…" : "pausing…", () => act<Told>(id, isPaused ? "resume" : "pause"))
      .then(refresh)
      .catch(() => null); // the page shows it
  const close = () => setOpen(null);
  return (
    <>
      {signals.length > 0 && !isOver ? (
        <Button kind="primary" onClick={() => setOpen("answer")} why={needs("operator")}>Answer…</Button>
      ) : null}
      {!isOver ? (
        <Button onClick={pause} why={needs("operator")} disabled={isBusy}>{isPaused ? "Resume" : "Pause"}</Button>
      ) : null}
      {status === "failed" || status === "partial" ? (
        <Button kind="primary" onClick={() => setOpen("retry")} why={needs("operator")}>Retry…</Button>
      ) : null}
      <Button onClick={() => setOpen("fork")} why={needs("operator")}>{seq ? `Fork from event ${seq}…` : "Fork…"}</Button>
      {!isOver ? (
        <>
          <Button kind="quiet" onClick={() => setOpen("patch")} why={needs("editor")}>Change ctx…</Button>
          <Button kind="quiet" onClick={() => setOpen("complete")} why={needs("admin")}>Complete a step…</Button>
        </>
      ) : null}
      {!isOver ? (
        <Button kind="danger" onClick={() => setOpen("cancel")} why={needs("operator")}>Cancel…</Button>
      ) : (
        <Button kind="quiet" onClick={() => setOpen("delete")} why={needs("admin")}>Delete…</Button>
      )}
      {open === "answer" ? <Answer id={id} path={execution.path} onClose={close} onDone={refresh} does={does} /> : null}
      {open === "cancel" ? <Cancel execution={execution} onClose={close} onDone={refresh} does={does} /> : null}
      {open === "retry" ? <Again execution={execution} ctx={ctx} onClose={close} /> : null}
      {open === "fork" ? <Fork execution={execution} ctx={ctx} seq={seq} onClose={close} /> : null}
      {open === "complete" ? <Complete execution={execution} explain={explain} onClose={close} onDone={refresh} does={does} /> : null}
      {open === "patch" ? <Patch execution={execution} ctx={ctx} onClose={close} onDone={refresh} does={does} /> : null}
      {open === "delete" ? <Delete id={id} onClose={close} /> : null}
    </>
  );
}

