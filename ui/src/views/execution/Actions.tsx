import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { act, type Execution, type Explained, type Told } from "../../api/executions";
import { useNeeds } from "../../api/session";
import type { Does } from "../../moments/use";
import { Button } from "../../parts/controls";
import { type Item, Menu } from "../../parts/Menu";
import { count, errorText } from "../../words/format";
import { hasEnded } from "../../words/states";
import { Answer } from "../Answer";
import { Again, Cancel, Complete, Delete, Fork, Patch } from "./Dialogs";
import { saveEvents } from "./Events";

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
  /** What does the same as looking at this page, in a terminal. */
  command: string;
}

/** What one can do: buttons for what is done often, a menu for the rest. */
export function Actions({ execution, explain, ctx, seq, status, open, setOpen, does, isBusy, command }: Props) {
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
  const [saved, setSaved] = useState<{ read: number } | { error: unknown } | null>(null);
  const save = () => {
    setSaved({ read: 0 });
    saveEvents(id, {}, (read) => setSaved({ read })).then(() => setSaved(null), (error: unknown) => setSaved({ error }));
  };
  const copy = (text: string) => void navigator.clipboard?.writeText(text);
  const rare: Item[] = [
    ...(isOver
      ? []
      : [
          { label: "Change ctx…", does: () => setOpen("patch"), why: needs("editor") },
          { label: "Complete a step…", does: () => setOpen("complete"), why: needs("admin") },
        ]),
    { label: "Copy the link", does: () => copy(location.href), shortcut: "c" },
    { label: "Copy as a command", does: () => copy(command), shortcut: "Shift C" },
    { label: "Download the events", does: save, why: saved && "read" in saved ? `${count(saved.read)} read` : undefined },
    ...(isOver ? [{ label: "Delete…", does: () => setOpen("delete"), why: needs("admin"), isDanger: true }] : []),
  ];
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
      {!isOver ? <Button kind="danger" onClick={() => setOpen("cancel")} why={needs("operator")}>Cancel…</Button> : null}
      <Menu label="More actions" items={rare} />
      {saved && "error" in saved ? <span role="alert">{errorText(saved.error)}</span> : null}
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

