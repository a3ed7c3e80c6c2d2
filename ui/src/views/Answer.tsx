import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, newKey, type Schemas, send } from "../api/client";
import type { Does } from "../moments/use";
import { Act } from "../parts/Act";
import { Field, Loading, Time, Trouble } from "../parts/controls";
import { noetl, spelled } from "../words/command";
import { plain } from "../words/format";

/** Answer a signal that an execution waits for: a decision with a comment, or any data. */
export function Answer({ id, path, onClose, onDone, does }: { id: string; path: string; onClose: () => void; onDone: () => void; does: Does }) {
  const [key] = useState(newKey);
  const [chosen, setChosen] = useState("");
  const [approved, setApproved] = useState(true);
  const [comment, setComment] = useState("");
  const [json, setJson] = useState("{}");
  const explain = useQuery({ queryKey: ["explain", id], queryFn: ({ signal }) => get<Schemas["Explained"]>(`/api/executions/${id}/explain`, {}, signal) });
  const waits = (explain.data?.standing ?? []).filter((one) => one.signal);
  const wait = waits.find((one) => one.signal === chosen) ?? waits[0];
  let data: unknown = { approved, ...(comment ? { comment } : {}) };
  let problem = explain.data && !wait ? "It waits for no signal any more." : explain.data ? undefined : "It is being read.";
  if (wait && !wait.decision) {
    try {
      data = JSON.parse(json || "null");
    } catch (error) {
      problem = `Not JSON: ${(error as Error).message}`;
    }
  }
  const name = wait?.signal ?? "";
  const command = wait?.decision ? noetl(approved ? "approve" : "reject", id, comment && "--comment", comment, waits.length > 1 && "--signal", waits.length > 1 && name) : noetl("signal", id, name, spelled(data));
  const word = !wait?.decision ? "answering…" : approved ? "approving…" : "declining…";
  return (
    <Act title={`Answer ${plain(path)}`} label={wait?.decision ? (approved ? "Approve" : "Decline") : "Send"} kind={wait?.decision && !approved ? "danger" : "primary"} why={problem} command={wait ? command : undefined} run={() => does(word, () => send<Schemas["Told"]>("POST", `/api/executions/${id}/signal`, { name, data }, { "Idempotency-Key": key }))} onClose={onClose} onDone={onDone}>
      {explain.error ? <Trouble error={explain.error} again={() => void explain.refetch()} /> : null}
      {explain.isPending ? <Loading rows={2} /> : null}
      {wait ? (
        <>
          <p>
            Sends the signal <code>{plain(name)}</code> to the step <code>{plain(wait.step)}</code>, which waits since <Time at={wait.since} />
            {wait.until ? <> and gives up <Time at={wait.until} /></> : null}.
          </p>
          {waits.length > 1 ? (
            <Field label="Signal">
              <select value={name} onChange={(event) => setChosen(event.target.value)}>
                {waits.map((one) => (
                  <option key={one.name} value={one.signal ?? ""}>
                    {one.signal} of {one.step}
                  </option>
                ))}
              </select>
            </Field>
          ) : null}
          {wait.decision ? (
            <>
              <Field label="Decision">
                <select value={approved ? "yes" : "no"} onChange={(event) => setApproved(event.target.value === "yes")}>
                  <option value="yes">approve</option>
                  <option value="no">decline</option>
                </select>
              </Field>
              <Field label="Comment">
                <input value={comment} onChange={(event) => setComment(event.target.value)} />
              </Field>
            </>
          ) : (
            <Field label="Data" hint="JSON; the step's result.">
              <textarea value={json} rows={4} spellCheck={false} onChange={(event) => setJson(event.target.value)} />
            </Field>
          )}
        </>
      ) : null}
    </Act>
  );
}
