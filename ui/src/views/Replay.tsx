import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { type Schemas, send } from "../api/client";
import { useNeeds } from "../api/session";
import { Act } from "../parts/Act";
import { Button, Field, Trouble } from "../parts/controls";
import { Json } from "../parts/Json";
import { Lines } from "../parts/Page";
import { noetl, spelled } from "../words/command";
import { count, plain, plural } from "../words/format";
import css from "./Letters.module.css";

/** One letter, all of a cause, or all of a step of an execution. */
export interface Target {
  group?: string;
  letter?: string;
  execution?: string;
  step?: string;
  count: number;
  executions: number;
}
const routeOf = (on: Target, verb: string): string => (on.letter ? `/api/dlq/${encodeURIComponent(on.letter)}/${verb}` : `/api/dlq/${verb}`);
const bodyOf = (on: Target): Record<string, unknown> => (on.letter ? {} : { group: on.group, execution_id: on.execution, step: on.step });
const wordsOf = (on: Target): string => (on.letter ? "1 letter" : plural(on.count, "letter"));
const flags = (on: Target): string[] => (on.letter ? [on.letter] : on.group ? ["--group", on.group] : ["--execution", on.execution ?? "", "--step", on.step ?? ""]);
const nameOf = (on: Target): string => on.letter ?? on.group ?? `${on.execution} ${on.step}`;

type Line = { path: string; value: string };
const valueOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** Paths to plain values of a payload, as a patch spells them. */
export function pathsOf(payload: unknown, prefix = "", depth = 0): string[] {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload) || depth > 4) return prefix ? [prefix] : [];
  return Object.entries(payload).flatMap(([name, value]) => pathsOf(value, prefix ? `${prefix}.${name}` : name, depth + 1)).slice(0, 200);
}

/** Every place where two payloads differ. */
export function differences(before: unknown, after: unknown, path = ""): { path: string; before: unknown; after: unknown }[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const isMap = (one: unknown): one is Record<string, unknown> => typeof one === "object" && one !== null && !Array.isArray(one);
  if (!isMap(before) || !isMap(after)) return [{ path, before, after }];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => differences(before[name], after[name], path ? `${path}.${name}` : name));
}
const short = (value: unknown): string => (value === undefined ? "–" : plain((JSON.stringify(value) ?? "").slice(0, 200)));

function useDryRun(on: Target, patch: Record<string, unknown>, key: string) {
  const [asked, setAsked] = useState(key);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(key), 300);
    return () => clearTimeout(timer);
  }, [key]);
  const dry = (with_: Record<string, unknown>) => send<Schemas["Replayed"]>("POST", routeOf(on, "replay"), { ...bodyOf(on), patch: with_, dry_run: true });
  const before = useQuery({ queryKey: ["dry", nameOf(on), "{}"], retry: false, queryFn: () => dry({}) });
  const after = useQuery({ queryKey: ["dry", nameOf(on), asked], enabled: asked === key && asked !== "{}", retry: false, queryFn: () => dry(patch) });
  const found = key === "{}" ? before : after;
  return { before, found, isSettled: asked === key && Boolean(found.data) };
}

/** Run letters again: patches beside what a dry run says would change, then the count, then the replay. */
export function Replay({ on, onClose, onDone }: { on: Target; onClose: () => void; onDone: () => void }) {
  const needs = useNeeds();
  const [lines, setLines] = useState<Line[]>([]);
  const patch = useMemo(() => Object.fromEntries(lines.filter((one) => one.path.trim()).map((one) => [one.path.trim(), valueOf(one.value)])), [lines]);
  const { before, found, isSettled } = useDryRun(on, patch, JSON.stringify(patch));
  const total = found.data?.count ?? 0;
  const known = new Map((before.data?.preview ?? []).map((one) => [one.message_id, one.payload]));
  const shown = found.data?.preview ?? [];
  const changes = shown.slice(0, 100).flatMap((one) => differences(known.get(one.message_id), one.payload).map((change) => ({ ...change, letter: one })));
  const set = (at: number, change: Partial<Line>) => setLines(lines.map((one, index) => (index === at ? { ...one, ...change } : one)));
  return (
    <Act
      title={on.execution ? `Retry the failed items of ${plain(on.step ?? "")}` : `Replay ${wordsOf(on)}`}
      label={isSettled ? `Replay ${count(total)}` : "Replay"}
      wide
      why={found.error ? "The dry run was refused" : isSettled ? (total > 0 ? undefined : "Nothing would be replayed") : "The dry run is under way"}
      command={noetl("dlq", "replay", ...flags(on), ...Object.entries(patch).flatMap(([path, value]) => ["--patch", `${path}=${spelled(value)}`]))}
      run={() => send<Schemas["Replayed"]>("POST", routeOf(on, "replay"), { ...bodyOf(on), patch })}
      onClose={onClose}
      onDone={onDone}
    >
      <p>The work runs again with its recorded input{on.executions > 1 ? `, in ${plural(on.executions, "execution")}` : ""}. If the input was wrong, change values of it first.</p>
      <div className={css.patch} role="group" aria-label="Patch">
        {lines.map((one, at) => (
          <div key={at} className={css.patchrow}>
            <input aria-label="Path" placeholder="item.sku" list="patch-paths" value={one.path} spellCheck={false} onChange={(event) => set(at, { path: event.target.value })} />
            <span aria-hidden>=</span>
            <input aria-label="Value" placeholder="A-1, 3 or JSON" value={one.value} spellCheck={false} onChange={(event) => set(at, { value: event.target.value })} />
            <Button kind="quiet" aria-label={`Remove ${one.path || "the row"}`} onClick={() => setLines(lines.filter((_, index) => index !== at))}>
              ✕
            </Button>
          </div>
        ))}
        <datalist id="patch-paths">
          {pathsOf(before.data?.preview?.[0]?.payload).map((path) => (
            <option key={path} value={path} />
          ))}
        </datalist>
        <Button why={needs("editor") && "A patch needs editor"} onClick={() => setLines([...lines, { path: "", value: "" }])}>
          Change a value
        </Button>
      </div>
      {found.error ? <Trouble error={found.error} /> : null}
      <p role="status" className={css.preview}>
        {found.data ? `Dry run: ${plural(total, "letter")} would be replayed${changes.length > 0 ? `, ${plural(changes.length, "value")} changed${shown.length < total ? ` in the first ${shown.length}` : ""}` : ""}.` : "Dry run…"}
      </p>
      {changes.length > 0 ? (
        <Lines
          label="What the patch changes"
          wraps
          heads={["letter", "path", "before", "after"]}
          rows={changes.slice(0, 100).map((one) => ({
            key: `${one.letter.message_id} ${one.path}`,
            cells: [one.letter.loop_index !== null ? `item ${one.letter.loop_index}` : plain(one.letter.step_id), <code key="p">{plain(one.path)}</code>, <code key="b" className={css.less}>{short(one.before)}</code>, <code key="a" className={css.more}>{short(one.after)}</code>],
          }))}
        />
      ) : shown[0] ? (
        <details>
          <summary>Input of {shown[0].loop_index !== null ? `item ${shown[0].loop_index}` : plain(shown[0].step_id)}</summary>
          <Json value={shown[0].payload} />
        </details>
      ) : null}
    </Act>
  );
}

export function Discard({ on, onClose, onDone }: { on: Target; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  return (
    <Act
      title={`Discard ${wordsOf(on)}`}
      label={`Discard ${count(on.count)}`}
      kind="danger"
      why={reason.trim() ? undefined : "Write a reason first"}
      command={noetl("dlq", "discard", ...flags(on), "--reason", reason || "…")}
      run={() => send<Schemas["Discarded"]>("POST", routeOf(on, "discard"), { ...bodyOf(on), reason: reason.trim() })}
      onClose={onClose}
      onDone={onDone}
    >
      <p>The work stays undone. The letters are closed with your reason and can be found under the status discarded; nothing runs.</p>
      <Field label="Reason" hint="Kept with the letters and in the audit trail.">
        <input value={reason} autoFocus onChange={(event) => setReason(event.target.value)} />
      </Field>
    </Act>
  );
}
