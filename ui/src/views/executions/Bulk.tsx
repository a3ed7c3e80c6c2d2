import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Schemas, send } from "../../api/client";
import { Act } from "../../parts/Act";
import { ExecutionId, Field, Loading, Trouble } from "../../parts/controls";
import { Mark } from "../../parts/Mark";
import { curl, noetl } from "../../words/command";
import { count, plain, plural } from "../../words/format";
import type { Filter } from "../../words/query";
import { stateOf } from "../../words/states";
import css from "../Executions.module.css";

type Told = Schemas["ManyTold"];
interface Props {
  act: "cancel" | "retry";
  /** Ids of the marked executions. */
  ids: string[];
  /** The filter of the list; empty: no filter. */
  q: string;
  filter: Filter;
  onClose: () => void;
  onDone: (told: Told) => void;
}
const WORDS = {
  cancel: { verb: "Cancel", says: "Active step-runs and children end. What was done stays done." },
  retry: { verb: "Retry", says: "Each one continues from its failed step, in a new execution." },
};

/** Cancel or retry many executions: the server says first which ones, and which it refuses. */
export function Bulk({ act, ids, q, filter, onClose, onDone }: Props) {
  const [reason, setReason] = useState("");
  const [latest, setLatest] = useState(false);
  const [all, setAll] = useState(false);
  const path = `/api/executions/${act}`;
  const chosen = all ? { query: { ...filter.query, needs_signal: filter.needsSignal || undefined } } : { ids };
  const body = { ...chosen, ...(act === "retry" ? { latest } : {}) };
  const preview = useQuery({
    queryKey: ["preview", path, body],
    retry: false,
    gcTime: 0,
    queryFn: () => send<Told>("POST", path, { ...body, dry_run: true }),
    placeholderData: (old) => old,
  });
  const { verb, says } = WORDS[act];
  const total = preview.data?.count ?? 0;
  const asked = { ...body, ...(reason ? { reason } : {}) };
  const only = !all && ids.length === 1 ? ids[0] : undefined;
  const command = only ? noetl(act, only, act === "cancel" && reason && "--reason", act === "cancel" && reason, latest && "--latest") : curl("POST", path, asked);
  return (
    <Act
      title={`${verb} executions`}
      label={preview.data ? `${verb} ${plural(total, "execution")}` : verb}
      kind={act === "cancel" ? "danger" : "primary"}
      why={!preview.data || preview.isPlaceholderData ? "The server is asked what would happen" : total === 0 ? "None of them can be changed" : undefined}
      command={command}
      run={() => send<Told>("POST", path, asked)}
      onClose={onClose}
      onDone={onDone}
    >
      <p>{says}</p>
      {q && filter.problems.length === 0 ? (
        <label>
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} /> All that fit the filter <code>{plain(q)}</code>, not only the {ids.length} marked
        </label>
      ) : null}
      {act === "retry" ? (
        <label>
          <input type="checkbox" checked={latest} onChange={(event) => setLatest(event.target.checked)} /> Use the latest version of each playbook
        </label>
      ) : null}
      {preview.error ? <Trouble error={preview.error} again={() => void preview.refetch()} /> : preview.data ? <Preview told={preview.data} verb={verb} /> : <Loading rows={3} />}
      <Field label="Reason">
        <input value={reason} onChange={(event) => setReason(event.target.value)} />
      </Field>
    </Act>
  );
}

const MOST = 10;

function Preview({ told, verb }: { told: Told; verb: string }) {
  return (
    <div role="region" aria-label="What will happen" className={css.preview}>
      <p>
        <strong>{verb} {plural(told.count, "execution")}</strong>
        {Object.entries(told.by_status).map(([status, number]) => (
          <span key={status} className={css.part}>
            <Mark state={status} size={14} /> {count(number)} {stateOf(status).word}
          </span>
        ))}
      </p>
      {told.is_whole === false ? <p>More than 1,000 fit; these are the newest 1,000.</p> : null}
      <ul className={css.listed}>
        {told.executions.slice(0, MOST).map((id) => (
          <li key={id}>
            <ExecutionId id={id} />
          </li>
        ))}
        {told.count > MOST ? <li>and {count(told.count - MOST)} more</li> : null}
      </ul>
      {told.refused.length > 0 ? (
        <>
          <p>Left out:</p>
          <ul className={css.refused} aria-label="Left out">
            {told.refused.slice(0, MOST).map((one) => (
              <li key={one.execution_id}>
                <ExecutionId id={one.execution_id} /> <span>{plain(one.reason)}</span>
              </li>
            ))}
            {told.refused.length > MOST ? <li>and {told.refused.length === 100 ? "at least " : ""}{told.refused.length - MOST} more</li> : null}
          </ul>
        </>
      ) : null}
    </div>
  );
}
