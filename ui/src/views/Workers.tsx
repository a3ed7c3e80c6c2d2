import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { get, type Schemas, send } from "../api/client";
import { useNeeds } from "../api/session";
import { Act } from "../parts/Act";
import { Button, Command, Empty, Facts, Loading, Tags, Time, Trouble } from "../parts/controls";
import { Mark, Stated } from "../parts/Mark";
import { Card, Filter, Lines, Page, Panel, Split } from "../parts/Page";
import { type Column, Table } from "../parts/Table";
import { Term } from "../parts/Term";
import { noetl } from "../words/command";
import { count, duration, exact, middle, plain, plural, shortId } from "../words/format";
import type { Hue, MarkName } from "../words/states";
import css from "./tables.module.css";
import { fits, useTable } from "./useTable";

type Row = Schemas["WorkerRow"];
type Pool = Schemas["PoolRow"];
const LOOKS: Record<string, [MarkName, Hue]> = { ready: ["check", "green"], draining: ["half", "amber"], drained: ["bars", "grey"], dead: ["cross", "red"], gone: ["cross", "red"] };

const Status = ({ of }: { of: string }) => <Stated of={of} looks={LOOKS} className={css.state} />;

const COLUMNS: Column<Row>[] = [
  { id: "status", head: "Status", width: "96px", cell: (row) => <Status of={row.status} /> },
  { id: "id", head: "Worker", width: "minmax(140px, 2fr)", cell: (row) => <span title={row.worker_id}>{plain(middle(row.worker_id))}</span> },
  { id: "pool", head: <Term word="pool">Pool</Term>, width: "minmax(80px, 1fr)", cell: (row) => <span title={row.pool}>{plain(row.pool || "default")}</span> },
  { id: "tags", head: "Tags", width: "minmax(80px, 1fr)", cell: (row) => <Tags tags={row.tags} /> },
  { id: "active", head: "Busy", width: "80px", right: true, cell: (row) => `${count(row.active)}/${count(row.capacity)}` },
  { id: "seen", head: "Seen", isTime: true, width: "96px", cell: (row) => <Time at={row.seen_at} /> },
];

export function Workers() {
  const { q, id, setQuery, choose } = useTable("/workers");
  const workers = useQuery({ queryKey: ["list", "workers"], queryFn: ({ signal }) => get<Schemas["WorkerRows"]>("/api/workers", {}, signal), refetchInterval: 2_000 });
  const queue = useQuery({ queryKey: ["list", "queue"], queryFn: ({ signal }) => get<Schemas["QueueState"]>("/api/queue", {}, signal), refetchInterval: 2_000 });
  const all = workers.data?.workers ?? [];
  const rows = all.filter((row) => fits(q, row.worker_id, row.pool, row.host, ...row.tags, row.status));
  const chosen = all.find((row) => row.worker_id === id);
  return (
    <Page title={<Term word="worker">Workers</Term>} note={workers.data ? plural(all.length, "worker") : undefined} actions={<Filter text={q} onChange={setQuery} label="Filter workers" hint="name, pool, tag, status" />}>
      {queue.error ? <Trouble error={queue.error} again={() => void queue.refetch()} /> : null}
      <div className={css.pools}>
        {(queue.data?.pools ?? []).map((pool) => (
          <PoolLine key={pool.pool} pool={pool} />
        ))}
      </div>
      {queue.data && queue.data.flows.length + queue.data.limits.length > 0 ? <Queue state={queue.data} /> : null}
      {workers.error ? <Trouble error={workers.error} again={() => void workers.refetch()} /> : null}
      <Split panel={chosen ? <One row={chosen} onClose={() => choose(undefined)} /> : null}>
        {workers.isPending ? (
          <Loading />
        ) : (
          <Table
            label="Workers"
            rows={rows}
            columns={COLUMNS}
            rowKey={(row) => row.worker_id}
            selected={id}
            onOpen={(row) => choose(row.worker_id)}
            empty={q ? <Empty title="No worker fits">Nothing here contains “{plain(q)}”.</Empty> : <Empty title="No workers" example={noetl("worker", "start", "--server", location.origin)}>Queued step-runs wait until a worker takes them. Start one:</Empty>}
          />
        )}
      </Split>
    </Page>
  );
}

/** A pool in one line: how busy, what waits, and the command that helps. */
function PoolLine({ pool }: { pool: Pool }) {
  const share = pool.capacity > 0 ? Math.min(1, pool.leased / pool.capacity) : 0;
  return (
    <div className={css.pool}>
      <strong>pool {plain(pool.pool || "default")}</strong>
      <span>{plural(pool.workers, "worker")}</span>
      <svg viewBox="0 0 96 8" width="96" height="8" role="img" aria-label={`${pool.leased} of ${pool.capacity} slots busy`} className={css.meter}>
        <rect width="96" height="8" rx="2" className={css.room} />
        <rect width={96 * share} height="8" rx="2" className={css.used} />
      </svg>
      <span>
        {count(pool.leased)}/{count(pool.capacity)} busy
      </span>
      <span className={pool.queued > 0 ? css.warn : css.quiet}>
        {count(pool.queued)} queued
        {pool.oldest ? <>, the oldest <Time at={pool.oldest} /></> : null}
      </span>
      {pool.dead > 0 ? <Link to="/letters">{plural(pool.dead, "dead step-run")}</Link> : null}
      {pool.workers === 0 && pool.queued > 0 && !pool.unmet?.length ? (
        <>
          <span className={css.warn}>no worker takes from it</span>
          <Command text={noetl("worker", "start", pool.pool && "--pool", pool.pool)} />
        </>
      ) : null}
      {(pool.unmet ?? []).map((one) => (
        <Fragment key={one.tags.join(",")}>
          <span className={css.warn}>
            {count(one.queued)} of them {one.queued === 1 ? "needs" : "need"} {one.tags.length === 1 ? "the tag" : "the tags"} {plain(one.tags.join(", "))}, no ready worker has {one.tags.length === 1 ? "it" : "them together"}
          </span>
          <Command text={noetl("worker", "start", pool.pool && "--pool", pool.pool, "--tags", one.tags.join(","))} />
        </Fragment>
      ))}
    </div>
  );
}

function Queue({ state }: { state: Schemas["QueueState"] }) {
  const limits = state.limits.filter((one) => one.waiting > 0 || one.running > 0);
  return (
    <div className={css.queue}>
      {state.flows.length > 0 ? (
        <Card title="What waits" note={state.flows.length > 20 ? `first 20 of ${state.flows.length}` : undefined}>
          <Lines
            label="What waits"
            heads={["playbook", "pool", "priority", "queued", "oldest"]}
            rows={state.flows.slice(0, 20).map((one) => ({ key: `${one.pool} ${one.priority} ${one.flow}`, cells: [<span key="f" title={one.flow}>{plain(middle(one.flow))}</span>, plain(one.pool || "default"), one.priority, count(one.queued), <Time key="t" at={one.oldest} />] }))}
          />
        </Card>
      ) : null}
      {limits.length > 0 ? (
        <Card title="Limits in use">
          <Lines
            label="Limits in use"
            heads={["limit", "running", "waiting", "oldest"]}
            rows={limits.slice(0, 20).map((one) => ({ key: `${one.of} ${one.group}`, cells: [<span key="g" title={one.group}>{plain(middle(one.group))}</span>, `${count(one.running)}${one.limit ? ` of ${count(one.limit)}` : ""} ${one.of}`, count(one.waiting), <Time key="t" at={one.oldest} />] }))}
          />
        </Card>
      ) : null}
    </div>
  );
}

function One({ row, onClose }: { row: Row; onClose: () => void }) {
  const needs = useNeeds();
  const client = useQueryClient();
  const [deed, setDeed] = useState<"drain" | "remove" | null>(null);
  const refresh = () => void client.invalidateQueries({ queryKey: ["list"] });
  const address = `/api/workers/${encodeURIComponent(row.worker_id)}`;
  return (
    <Panel
      title={plain(row.worker_id)}
      label={`worker ${row.worker_id}`}
      onClose={onClose}
      actions={
        <>
          <Button why={needs("operator") ?? (row.status === "ready" ? undefined : `It is ${row.status}`)} onClick={() => setDeed("drain")}>Drain…</Button>
          <Button kind="danger" why={needs("admin")} onClick={() => setDeed("remove")}>Remove…</Button>
        </>
      }
    >
      <Status of={row.status} />
      <Held id={row.worker_id} />
      <Finished id={row.worker_id} />
      <Facts
        rows={[
          ["Pool", plain(row.pool || "default")],
          ["Tags", row.tags.length ? plain(row.tags.join(", ")) : "none"],
          ["Busy", `${count(row.active)} of ${count(row.capacity)}`],
          ["Host", plain(row.host)],
          ["Version", plain(row.version)],
          ["Registered", exact(row.registered_at)],
          ["Seen", <Time key="s" at={row.seen_at} />],
        ]}
      />
      {deed === "drain" ? (
        <Act title={`Drain ${plain(row.worker_id)}`} label="Drain" command={noetl("worker", "drain", row.worker_id)} run={() => send("POST", `${address}/drain`)} onClose={() => setDeed(null)} onDone={refresh}>
          <p>It finishes the {plural(row.active, "step-run")} that it holds, takes no more, and ends.</p>
        </Act>
      ) : null}
      {deed === "remove" ? (
        <Act title={`Remove ${plain(row.worker_id)}`} label="Remove" kind="danger" command={`curl -X DELETE -H "Authorization: Bearer $NOETL_TOKEN" ${location.origin}${address}`} run={() => send("DELETE", address)} onClose={() => setDeed(null)} onDone={() => { onClose(); refresh(); }}>
          <p>It is struck off the list. If its process still runs, it registers again; use Drain to stop one that works.</p>
        </Act>
      ) : null}
    </Panel>
  );
}

/** What a worker has leased, as of now. */
function Held({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["worker", id],
    queryFn: ({ signal }) => get<Schemas["WorkerDetails"]>(`/api/workers/${encodeURIComponent(id)}`, {}, signal),
    refetchInterval: 2_000,
  });
  if (error) return <Trouble error={error} again={() => void refetch()} />;
  if (!data) return <Loading rows={2} />;
  if (data.holds.length === 0) return <p className={css.quiet}>It holds no work now.</p>;
  return (
    <>
      <h3 className={css.held}>Holds {data.holds.length === 200 ? "200 step-runs or more" : plural(data.holds.length, "step-run")}</h3>
      <Lines
        label="What it holds"
        heads={["step-run", "execution", "attempt", "lease until"]}
        rows={data.holds.map((one, at) => ({
          key: `${one.execution_id} ${one.run} ${at}`,
          cells: [
            <Link key="r" to="/executions/$id" params={{ id: one.execution_id }} search={{ step: one.run.replace(/#[^#]*$/, ""), run: one.run }} title={one.run}>{plain(middle(one.run))}</Link>,
            <span key="e" title={one.execution_id}>{shortId(one.execution_id)}</span>,
            one.attempt,
            <Time key="t" at={one.lease_until} />,
          ],
        }))}
      />
    </>
  );
}

/** What a worker ended lately. */
function Finished({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["worker", id, "finished"],
    queryFn: ({ signal }) => get<Schemas["FinishedRuns"]>(`/api/workers/${encodeURIComponent(id)}/finished`, {}, signal),
    refetchInterval: 10_000,
  });
  if (error) return <Trouble error={error} again={() => void refetch()} />;
  if (!data) return <Loading rows={2} />;
  if (data.runs.length === 0) return <p className={css.quiet}>It finished nothing in the newest {count(data.looked)} events.</p>;
  return (
    <>
      <h3 className={css.held}>Finished lately</h3>
      <Lines
        label="Finished lately"
        heads={["step-run", "playbook", "took", "ended"]}
        rows={data.runs.map((one) => ({
          key: `${one.execution_id} ${one.run}`,
          cells: [
            <span key="r" className={css.state}>
              <Mark state={one.state} />
              <Link to="/executions/$id" params={{ id: one.execution_id }} search={{ step: one.run.replace(/#\d+$/, ""), run: one.run }} title={one.run}>{plain(middle(one.run, 20))}</Link>
            </span>,
            <span key="p" title={one.path}>{plain(middle(one.path, 20))}</span>,
            duration(one.ended_at - one.started_at),
            <Time key="t" at={one.ended_at} />,
          ],
        }))}
      />
    </>
  );
}
