import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Schemas, send } from "../api/client";
import { Act } from "../parts/Act";
import { Field, Trouble } from "../parts/controls";
import { noetl } from "../words/command";
import { exact, now, plain, plural, settings, zoneName } from "../words/format";
import css from "./Schedules.module.css";

type Row = Schemas["ScheduleRow"];
const DAY = 86_400_000;

const pad = (value: number): string => String(value).padStart(2, "0");
/** Spell and read the value of a date field in the zone of the UI. */
function fieldOf(at: number): string {
  if (settings.get("zone") === "utc") return new Date(at).toISOString().slice(0, 16);
  const date = new Date(at);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}
const timeOf = (field: string): number => Date.parse(settings.get("zone") === "utc" ? `${field}Z` : field);
const iso = (at: number): string => new Date(at).toISOString().replace(".000Z", "+00:00");

/** Start the executions of past times: first the count, then the start. */
export function Backfill({ row, onClose, onDone }: { row: Row; onClose: () => void; onDone: () => void }) {
  const [from, setFrom] = useState(() => fieldOf(now() - DAY));
  const [to, setTo] = useState(() => fieldOf(now()));
  const [atOnce, setAtOnce] = useState("1");
  const asked = { since: timeOf(from), until: timeOf(to), at_once: Number(atOnce) };
  const problem = Number.isNaN(asked.since) || Number.isNaN(asked.until) ? "Choose both times." : asked.since >= asked.until ? "The first time is after the last one." : !(asked.at_once >= 1 && asked.at_once <= 100) ? "Between 1 and 100 at once." : undefined;
  const path = `/api/schedules/${encodeURIComponent(row.schedule_id)}/backfill`;
  const preview = useQuery({
    queryKey: ["backfill", row.schedule_id, asked.since, asked.until],
    enabled: !problem,
    retry: false,
    queryFn: () => send<Schemas["BackfillMade"]>("POST", path, { ...asked, dry_run: true }),
  });
  const count = preview.data?.count ?? 0;
  return (
    <Act
      title={`Backfill ${plain(row.schedule_id)}`}
      label={problem || !preview.data ? "Start" : `Start ${plural(count, "execution")}`}
      why={problem ?? (preview.data && count > 0 ? undefined : "Nothing to start")}
      command={problem ? undefined : noetl("schedule", "backfill", row.schedule_id, "--from", iso(asked.since), "--to", iso(asked.until), "--at-once", asked.at_once)}
      run={() => send("POST", path, asked)}
      onClose={onClose}
      onDone={onDone}
    >
      <p>Starts one execution of {plain(row.path)} for each time of the schedule in the past range. A time that has already run is not started again.</p>
      <div className={css.pair}>
        <Field label="From" hint={zoneName()}>
          <input type="datetime-local" value={from} onChange={(event) => setFrom(event.target.value)} />
        </Field>
        <Field label="To, not included" hint={zoneName()}>
          <input type="datetime-local" value={to} onChange={(event) => setTo(event.target.value)} />
        </Field>
      </div>
      <Field label="At once" hint="Executions that run at the same time.">
        <input inputMode="numeric" value={atOnce} onChange={(event) => setAtOnce(event.target.value)} />
      </Field>
      {preview.error ? <Trouble error={preview.error} /> : null}
      <p role="status" className={css.preview}>
        {problem ?? (preview.data ? (count > 0 ? `${plural(count, "time")}: ${exact(preview.data.first).slice(0, 19)} to ${exact(preview.data.last).slice(0, 19)}` : "No time of the schedule is in this range.") : "…")}
      </p>
    </Act>
  );
}

export function Create({ onClose, onDone, path: given = "" }: { onClose: () => void; onDone: (made: Row) => void; path?: string }) {
  const [draft, setDraft] = useState({ name: "", path: given, form: "cron", when: "30 2 * * *", timezone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC", catch_up: "skip", overlap: "skip", payload: "" });
  const set = (change: Partial<typeof draft>) => setDraft({ ...draft, ...change });
  const known = useQuery({ queryKey: ["catalog", "offers", draft.path], queryFn: ({ signal }) => get<Schemas["CatalogPage"]>("/api/catalog", { search: draft.path || undefined, limit: 20 }, signal) });
  let payload: unknown = {};
  let problem: string | undefined = !draft.name ? "Name it." : !draft.path ? "Choose a playbook." : !draft.when ? "Say when." : undefined;
  try {
    payload = JSON.parse(draft.payload || "{}");
  } catch {
    problem = "The payload is not JSON.";
  }
  const body = { name: draft.name, path: draft.path, [draft.form]: draft.when, timezone: draft.timezone, catch_up: draft.catch_up, overlap: draft.overlap, payload };
  return (
    <Act
      title="New schedule"
      label="Create"
      why={problem}
      wide
      command={noetl("schedule", "create", draft.name || "NAME", draft.path || "PATH", `--${draft.form}`, draft.when, "--timezone", draft.timezone, "--catch-up", draft.catch_up, "--overlap", draft.overlap, draft.payload && "--payload", draft.payload)}
      run={() => send<Row>("POST", "/api/schedules", body)}
      onClose={onClose}
      onDone={onDone}
    >
      <p>Starts the latest version of a playbook at the given times.</p>
      <div className={css.pair}>
        <Field label="Name">
          <input value={draft.name} onChange={(event) => set({ name: event.target.value })} />
        </Field>
        <Field label="Playbook">
          <input value={draft.path} list="schedule-paths" onChange={(event) => set({ path: event.target.value })} />
        </Field>
        <datalist id="schedule-paths">
          {(known.data?.playbooks ?? []).map((one) => (
            <option key={one.path} value={one.path} />
          ))}
        </datalist>
        <Field label="Kind">
          <select value={draft.form} onChange={(event) => set({ form: event.target.value, when: event.target.value === "cron" ? "30 2 * * *" : "1h" })}>
            <option value="cron">cron expression</option>
            <option value="every">interval</option>
          </select>
        </Field>
        <Field label="When" hint={draft.form === "cron" ? "minute hour day month weekday" : "such as 15m or 6h"}>
          <input value={draft.when} onChange={(event) => set({ when: event.target.value })} />
        </Field>
        <Field label="Time zone">
          <input value={draft.timezone} onChange={(event) => set({ timezone: event.target.value })} />
        </Field>
        <Field label="Missed times" hint="After the server was down.">
          <select value={draft.catch_up} onChange={(event) => set({ catch_up: event.target.value })}>
            <option value="skip">skip them</option>
            <option value="last">start the last one</option>
            <option value="all">start all</option>
          </select>
        </Field>
        <Field label="While one runs">
          <select value={draft.overlap} onChange={(event) => set({ overlap: event.target.value })}>
            <option value="skip">skip the new one</option>
            <option value="queue">queue the new one</option>
            <option value="allow">run both</option>
            <option value="cancel_running">cancel the running one</option>
          </select>
        </Field>
      </div>
      <Field label="Payload" hint="Workload values as a JSON object.">
        <textarea rows={3} value={draft.payload} spellCheck={false} placeholder="{}" onChange={(event) => set({ payload: event.target.value })} />
      </Field>
    </Act>
  );
}
