import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { get, newKey, type Schemas, send } from "../api/client";
import { useNeeds } from "../api/session";
import { Button, Empty, ExecutionId, Facts, Field, Loading, Time, Trouble } from "../parts/controls";
import { Dialog } from "../parts/Dialog";
import { Json } from "../parts/Json";
import { Sign } from "../parts/Mark";
import { count, plain, plural } from "../words/format";
import { parseJson } from "./execution/Actions";
import css from "./Letters.module.css";

type Group = Schemas["LetterGroup"];
type Target = { group?: string; letter?: string; count: number; executions: number };

/** Causes on the left; on the right the letters of one cause, and what to do with them. */
export function Letters() {
  const { group } = useParams({ strict: false }) as { group?: string };
  const { letter } = useSearch({ strict: false }) as { letter?: string };
  const navigate = useNavigate();
  const needs = useNeeds();
  const [act, setAct] = useState<{ verb: "replay" | "discard"; on: Target } | null>(null);
  const groups = useQuery({ queryKey: ["letters", "groups"], queryFn: () => get<Schemas["LetterGroups"]>("/api/dlq/groups", { limit: 1_000 }), refetchInterval: 10_000 });
  const chosen = groups.data?.groups.find((one) => one.fingerprint === group);
  const letters = useQuery({ queryKey: ["letters", "of", group], enabled: Boolean(group), queryFn: () => get<Schemas["Letters"]>("/api/dlq", { group, status: ["pending", "replaying"], limit: 500 }), refetchInterval: 5_000 });
  const rows = letters.data?.letters ?? [];
  const open = rows.find((one) => one.message_id === letter)?.message_id ?? letter ?? rows[0]?.message_id;
  useEffect(() => {
    const first = groups.data?.groups[0];
    if (!group && first) void navigate({ to: "/letters/$group", params: { group: first.fingerprint }, replace: true });
  }, [group, groups.data, navigate]);
  if (groups.error) return <Trouble error={groups.error} again={() => void groups.refetch()} />;
  if (!groups.data) return <Loading rows={8} />;
  const total = groups.data.groups.reduce((sum, one) => sum + one.count, 0);
  if (total === 0 && !group) {
    return (
      <Empty title="No dead letters" example="noetl explain dead letters">
        Work that fails for good is kept here with its input, so that it can be repaired and run again.
      </Empty>
    );
  }
  return (
    <div className={css.page}>
      <section className={css.groups} aria-label="Causes">
        <h1 className={css.title}>{plural(groups.data.groups.length, "cause")}, {plural(total, "letter")}</h1>
        <ul>
          {groups.data.groups.map((one: Group) => (
            <li key={one.fingerprint}>
              <Link to="/letters/$group" params={{ group: one.fingerprint }} className={css.group} aria-current={one.fingerprint === group ? "true" : undefined}>
                <span className={css.count}>{count(one.count)}</span>
                <span className={css.cause}>
                  <span className={css.error} title={one.last_error}>{plain(one.last_error)}</span>
                  <span className={css.where} title={`${one.path}, ${one.step_id}`}>{plain(one.path)} · {plain(one.step_id)}</span>
                </span>
                <Time at={one.last_seen} />
              </Link>
            </li>
          ))}
        </ul>
      </section>
      <section className={css.one} aria-label="Letters">
        {chosen ? (
          <header className={css.head}>
            <Sign mark="cross" hue="red" />
            <div className={css.cause}>
              <h2 title={chosen.last_error}>{plain(chosen.last_error)}</h2>
              <span className={css.where}>{plain(chosen.path)} · {plain(chosen.step_id)}.{plain(chosen.task)} · {plural(chosen.count, "letter")} in {plural(chosen.executions, "execution")}</span>
            </div>
            <Button kind="primary" why={needs("operator")} onClick={() => setAct({ verb: "replay", on: { group, count: chosen.count, executions: chosen.executions } })}>Replay {count(chosen.count)}…</Button>
            <Button kind="danger" why={needs("operator")} onClick={() => setAct({ verb: "discard", on: { group, count: chosen.count, executions: chosen.executions } })}>Discard…</Button>
          </header>
        ) : letters.data && rows.length === 0 ? (
          <Empty title="Nothing is pending here" action={<Link to="/letters">Other causes</Link>}>Every letter of this cause was replayed or discarded.</Empty>
        ) : null}
        {rows.length > 0 ? (
          <div className={css.body}>
            <ul className={css.letters} aria-label="Letters of this cause" tabIndex={0}>
              {rows.map((one) => (
                <li key={one.message_id}>
                  <Link to="/letters/$group" params={{ group: group ?? "" }} search={{ letter: one.message_id }} className={css.letter} aria-current={one.message_id === open ? "true" : undefined}>
                    <span>{one.loop_index !== null && one.loop_index !== undefined ? `item ${one.loop_index}` : plain(one.run_id)}</span>
                    <span className={css.where}>{one.status === "pending" ? plural(one.attempts, "attempt") : one.status}</span>
                  </Link>
                </li>
              ))}
              {letters.data?.next ? <li className={css.where}>first {rows.length}</li> : null}
            </ul>
            {open ? <Detail id={open} onAct={(verb) => setAct({ verb, on: { letter: open, count: 1, executions: 1 } })} /> : null}
          </div>
        ) : null}
      </section>
      {act?.verb === "replay" ? <Replay on={act.on} onClose={() => setAct(null)} /> : null}
      {act?.verb === "discard" ? <Discard on={act.on} onClose={() => setAct(null)} /> : null}
    </div>
  );
}

function Detail({ id, onAct }: { id: string; onAct: (verb: "replay" | "discard") => void }) {
  const needs = useNeeds();
  const found = useQuery({ queryKey: ["letter", id], queryFn: () => get<Schemas["Letter"]>(`/api/dlq/${encodeURIComponent(id)}`) });
  if (found.error) return <Trouble error={found.error} />;
  if (!found.data) return <Loading rows={6} />;
  const one = found.data;
  return (
    <div className={css.detail} tabIndex={0} role="region" aria-label="The letter">
      <div className={css.actions}>
        <Button why={needs("operator")} onClick={() => onAct("replay")} disabled={one.status !== "pending"}>Replay this one…</Button>
        <Button why={needs("operator")} onClick={() => onAct("discard")} disabled={one.status !== "pending"}>Discard this one…</Button>
      </div>
      <Facts
        rows={[
          ["execution", <ExecutionId key="e" id={one.execution_id} />],
          ["step-run", <Link key="r" to="/executions/$id" params={{ id: one.execution_id }} search={{ step: one.step_id, run: one.run_id, tab: "outcome" }}>{plain(one.run_id)}</Link>],
          ["item", one.loop_index ?? ""],
          ["attempts", one.attempts],
          ["replays", one.replays || ""],
          ["reason", one.reason],
          ["last seen", <Time key="t" at={one.last_seen} />],
          ["status", one.status],
        ]}
      />
      <section>
        <h3>Error</h3>
        <p className={css.errortext}>{plain(one.last_error)}</p>
        {one.last_stack ? <pre className={css.pre} tabIndex={0}>{plain(one.last_stack)}</pre> : null}
      </section>
      <section>
        <h3>Payload</h3>
        <Json value={one.payload} />
      </section>
      {one.context_excerpt ? (
        <section>
          <h3>Context</h3>
          <pre className={css.pre} tabIndex={0}>{plain(one.context_excerpt)}</pre>
        </section>
      ) : null}
    </div>
  );
}

const routeOf = (on: Target, verb: string): string => (on.letter ? `/api/dlq/${encodeURIComponent(on.letter)}/${verb}` : `/api/dlq/${verb}`);
const words = (on: Target): string => (on.letter ? "1 letter" : `${plural(on.count, "letter")} in ${plural(on.executions, "execution")}`);

function Replay({ on, onClose }: { on: Target; onClose: () => void }) {
  const client = useQueryClient();
  const needs = useNeeds();
  const [key] = useState(newKey);
  const [rows, setRows] = useState<{ path: string; value: string }[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [preview, setPreview] = useState<Schemas["Replayed"] | null>(null);
  const patch = useMemo(() => Object.fromEntries(rows.filter((row) => row.path.trim()).map((row) => {
    const { value, problem } = parseJson(row.value);
    return [row.path.trim(), problem ? row.value : value];
  })), [rows]);
  const body = (dry_run: boolean) => ({ ...(on.letter ? {} : { group: on.group }), patch, dry_run });
  useEffect(() => {
    const timer = setTimeout(() => {
      send<Schemas["Replayed"]>("POST", routeOf(on, "replay"), body(true))
        .then((found) => { setPreview(found); setError(null); })
        .catch((found: unknown) => { setPreview(null); setError(found); });
    }, 250);
    return () => clearTimeout(timer);
  }, [patch]);
  const run = async () => {
    setBusy(true);
    try {
      await send("POST", routeOf(on, "replay"), body(false), { "Idempotency-Key": key });
      await client.invalidateQueries({ queryKey: ["letters"] });
      await client.invalidateQueries({ queryKey: ["letter"] });
      onClose();
    } catch (found) {
      setError(found);
    }
    setBusy(false);
  };
  const flags = Object.entries(patch).map(([path, value]) => ` --patch ${path}='${typeof value === "string" ? value : JSON.stringify(value)}'`).join("");
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={`Replay ${words(on)}`}
      error={error}
      command={`noetl dlq replay ${on.letter ?? `--group ${on.group}`}${flags}`}
      actions={<Button kind="primary" disabled={busy || !preview} onClick={() => void run()}>Replay {preview ? count(preview.count) : ""}</Button>}
    >
      <p>The work runs again with its recorded input. Patch fields of the input first if they were wrong.</p>
      <div className={css.patch}>
        {rows.map((row, at) => (
          <div key={at} className={css.patchrow}>
            <input aria-label="Field" placeholder="args.number" value={row.path} onChange={(event) => setRows(rows.with(at, { ...row, path: event.target.value }))} />
            <span aria-hidden>=</span>
            <input aria-label="Value" placeholder='"A-1", 3 or JSON' value={row.value} onChange={(event) => setRows(rows.with(at, { ...row, value: event.target.value }))} />
            <Button kind="quiet" aria-label="Remove the field" onClick={() => setRows(rows.toSpliced(at, 1))}>✕</Button>
          </div>
        ))}
        <span>
          <Button why={needs("editor") && "a patch needs editor"} onClick={() => setRows([...rows, { path: "", value: "" }])}>Patch a field</Button>
        </span>
      </div>
      {preview ? (
        <div className={css.preview}>
          <strong>{plural(preview.count, "letter")} would be replayed{preview.preview && preview.preview.length < preview.count ? `; the first ${preview.preview.length}` : ""}:</strong>
          {(preview.preview ?? []).slice(0, 20).map((one) => (
            <div key={one.message_id} className={css.previewed}>
              <span>{one.loop_index !== null ? `item ${one.loop_index}` : plain(one.step_id)}</span>
              <Json value={one.payload} depth={1} />
            </div>
          ))}
        </div>
      ) : null}
    </Dialog>
  );
}

function Discard({ on, onClose }: { on: Target; onClose: () => void }) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      await send("POST", routeOf(on, "discard"), { ...(on.letter ? {} : { group: on.group }), reason });
      await client.invalidateQueries({ queryKey: ["letters"] });
      await client.invalidateQueries({ queryKey: ["letter"] });
      onClose();
    } catch (found) {
      setError(found);
    }
    setBusy(false);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Discard ${words(on)}`}
      error={error}
      command={`noetl dlq discard ${on.letter ?? `--group ${on.group}`} --reason '${reason}'`}
      actions={<Button kind="danger" disabled={busy || !reason.trim()} onClick={() => void run()}>Discard</Button>}
    >
      <p>Their work is not done. They stay in the log with your reason, and nothing runs again.</p>
      <Field label="Reason *">
        <input value={reason} onChange={(event) => setReason(event.target.value)} required autoFocus />
      </Field>
    </Dialog>
  );
}
