import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Schemas, send } from "../api/client";
import { mayBe, useMe, useNeeds } from "../api/session";
import { Act } from "../parts/Act";
import { Button, Empty, ExecutionId, Facts, Field, Loading, Time, Trouble } from "../parts/controls";
import { Json } from "../parts/Json";
import { Stated } from "../parts/Mark";
import { Card, Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { Term } from "../parts/Term";
import { noetl } from "../words/command";
import { count, plain, plural } from "../words/format";
import type { Hue, MarkName } from "../words/states";
import css from "./tables.module.css";
import { useTable } from "./useTable";

type Row = Schemas["OutboxRow"];
const STATES = ["pending", "delivered", "dead", "discarded"] as const;
const LOOKS: Record<string, [MarkName, Hue]> = { pending: ["dots", "grey"], delivered: ["check", "green"], dead: ["cross", "red"], discarded: ["slash", "grey"] };

const State = ({ of }: { of: string }) => <Stated of={of} looks={LOOKS} className={css.state} />;

const COLUMNS: Column<Row>[] = [
  { id: "state", head: "State", width: "104px", cell: (row) => <State of={row.state} /> },
  { id: "number", head: "No.", width: "72px", right: true, cell: (row) => row.number },
  { id: "to", head: "To", width: "minmax(160px, 3fr)", cell: (row) => <span title={row.address}>{plain(row.address || row.target)}</span> },
  { id: "topic", head: "Topic", width: "minmax(80px, 1fr)", cell: (row) => <span title={row.topic}>{plain(row.topic)}</span> },
  { id: "attempts", head: "Attempts", width: "80px", right: true, cell: (row) => row.attempts },
  { id: "created", head: "Created", isTime: true, width: "96px", cell: (row) => <Time at={row.created_at} /> },
  { id: "error", head: "Last error", width: "minmax(120px, 2fr)", cell: (row) => <span title={row.error} className={css.bad}>{plain(row.error ?? "")}</span> },
];

export function Outbox() {
  const { id, tab, go, choose } = useTable("/outbox");
  const state = STATES.find((one) => one === tab);
  const found = useQuery({ queryKey: ["list", "outbox", state], queryFn: ({ signal }) => get<Schemas["OutboxRows"]>("/api/outbox", { state, limit: 500 }, signal), refetchInterval: 10_000 });
  const rows = found.data?.messages ?? [];
  return (
    <Page
      title={<Term word="outbox">Outbox</Term>}
      note={found.data ? `${plural(found.data.pending, "message")} pending, ${count(found.data.dead)} dead${rows.length === 500 ? "; the newest 500" : ""}` : undefined}
      actions={
        <select aria-label="State" className={css.select} value={state ?? ""} onChange={(event) => go({ tab: event.target.value || undefined, id: undefined })}>
          <option value="">all states</option>
          {STATES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      }
    >
      {found.error ? <Trouble error={found.error} again={() => void found.refetch()} /> : null}
      <Split panel={id ? <One key={id} number={id} known={rows.find((row) => String(row.number) === id)} onClose={() => choose(undefined)} /> : null}>
        {found.isPending ? (
          <Loading />
        ) : (
          <Table
            label="Outbox"
            rows={rows}
            columns={COLUMNS}
            rowKey={(row) => String(row.number)}
            selected={id}
            onOpen={(row) => choose(String(row.number))}
            empty={
              state ? (
                <Empty title={`No message is ${state}`} />
              ) : (
                <Empty title="The outbox is empty" example="noetl notification create team 'orders/*' --on failed --channel webhook --url https://example.com/alarm">
                  Messages to other systems wait here until they are delivered: notifications, and what playbooks send. Create a notification, and its messages appear.
                </Empty>
              )
            }
          />
        )}
      </Split>
    </Page>
  );
}

function One({ number, known, onClose }: { number: string; known?: Row; onClose: () => void }) {
  const { data: me } = useMe();
  const needs = useNeeds();
  const client = useQueryClient();
  const [deed, setDeed] = useState<"retry" | "discard" | null>(null);
  const [reason, setReason] = useState("");
  const whole = useQuery({ queryKey: ["list", "outbox", "one", number], enabled: mayBe(me, "operator"), queryFn: ({ signal }) => get<Row>(`/api/outbox/${encodeURIComponent(number)}`, {}, signal) });
  const row = whole.data ?? known;
  const refresh = () => void client.invalidateQueries({ queryKey: ["list"] });
  const why = needs("operator") ?? (row && (row.state === "delivered" || row.state === "discarded") ? `It is ${row.state}` : undefined);
  return (
    <Panel
      title={`Message ${plain(number)}`}
      label={`message ${number}`}
      onClose={onClose}
      actions={
        <>
          <Button why={why} onClick={() => setDeed("retry")}>Retry…</Button>
          <Button kind="danger" why={why} onClick={() => setDeed("discard")}>Discard…</Button>
        </>
      }
    >
      {whole.error ? <Trouble error={whole.error} again={() => void whole.refetch()} /> : null}
      {row ? (
        <>
          <State of={row.state} />
          {row.error ? <p className={css.bad}>{plain(row.error)}</p> : null}
          <Facts
            rows={[
              ["To", plain(row.address || row.target)],
              ["By", plain(row.target)],
              ["Topic", plain(row.topic)],
              ["Key", plain(row.key)],
              ["Execution", row.execution_id ? <ExecutionId key="e" id={row.execution_id} /> : ""],
              ["Credential", row.auth ? plain(row.auth) : ""],
              ["Attempts", row.attempts],
              ["Created", <Time key="c" at={row.created_at} />],
              ["Next attempt", row.state === "pending" ? <Time key="n" at={row.available_at} /> : ""],
              ["Delivered", row.delivered_at ? <Time key="d" at={row.delivered_at} /> : ""],
            ]}
          />
          {whole.data ? <Card title="Payload"><div className={css.pad}><Json value={whole.data.payload} /></div></Card> : <p className={css.quiet}>{needs("operator") ? "The payload needs operator." : ""}</p>}
        </>
      ) : null}
      {deed === "retry" ? (
        <Act title={`Retry message ${number}`} label="Retry" command={noetl("outbox", "retry", number)} run={() => send("POST", `/api/outbox/${number}/retry`)} onClose={() => setDeed(null)} onDone={refresh}>
          <p>It is delivered again at once. A receiver that has it already sees the same key.</p>
        </Act>
      ) : null}
      {deed === "discard" ? (
        <Act title={`Discard message ${number}`} label="Discard" kind="danger" why={reason.trim() ? undefined : "Write a reason first"} command={noetl("outbox", "discard", number, "--reason", reason || "…")} run={() => send("POST", `/api/outbox/${number}/discard`, { reason: reason.trim() })} onClose={() => setDeed(null)} onDone={refresh}>
          <p>It will not be delivered. The reason is kept in the audit trail.</p>
          <Field label="Reason">
            <input value={reason} onChange={(event) => setReason(event.target.value)} />
          </Field>
        </Act>
      ) : null}
    </Panel>
  );
}
