import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { get, type Schemas } from "../api/client";
import { useLive } from "../api/live";
import { Empty, ExecutionId, Lasted, Loading, Time, Trouble } from "../parts/controls";
import { Mark } from "../parts/Mark";
import { clock, count, duration, now, plain, plural } from "../words/format";
import { hasEnded, stateOf } from "../words/states";
import { waitsFor } from "./Executions";
import css from "./Home.module.css";

const CHANGES = ["playbook.started", "playbook.finished", "step.suspended", "signal.received"];
type Overview = Schemas["Overview"];
type Need = Schemas["NeedsYou"];

export function Home() {
  const found = useQuery({ queryKey: ["overview"], queryFn: () => get<Overview>("/api/overview"), refetchInterval: 30_000 });
  useLive("home", {
    path: "/api/executions/stream",
    query: (after) => ({ type: CHANGES, after }),
    events: CHANGES,
    take: () => refresh(() => void found.refetch()),
  });
  if (found.error && !found.data) return <Trouble error={found.error} again={() => void found.refetch()} />;
  if (!found.data) return <Loading rows={10} />;
  const { now: open, day, needs, recent, buckets, bucket_ms } = found.data;
  const of = (counted: Schemas["Counted"], ...names: string[]) => `${count(names.reduce((sum, name) => sum + (counted.counts[name] ?? 0), 0))}${counted.is_whole ? "" : "+"}`;
  return (
    <div className={css.page}>
      <div className={css.top}>
        <h1>{needs.length ? `${plural(needs.length, "thing")} ${needs.length === 1 ? "needs" : "need"} you` : "Nothing needs you"}</h1>
        <ul className={css.counts}>
          <Count state="running" value={of(open, "running")} q="status:running" words="running now" />
          <Count state="waiting" value={of(open, "waiting")} q="status:waiting" words="waiting now" />
          <Count state="failed" value={of(day, "failed", "partial")} q="status:failed,partial since:24h" words="failed or partial, 24 h" />
          <Count state="completed" value={of(day, "completed")} q="status:completed since:24h" words="completed, 24 h" />
        </ul>
      </div>
      <div className={css.grid}>
        <Card title="Needs you">
          {needs.length === 0 ? <p className={css.none}>No approval waits, no dead letter is pending, nothing is slower than usual, every queue has a worker.</p> : null}
          <ul className={css.list}>
            {needs.map((need, at) => (
              <NeedRow key={at} need={need} />
            ))}
          </ul>
        </Card>
        <Card title="Started in the last 24 hours">
          <Throughput buckets={buckets} width={bucket_ms} />
          {day.is_whole ? null : <p className={css.none}>Only the newest executions are counted.</p>}
        </Card>
        <Card title="Recent executions" more={<Link to="/executions">All</Link>} wide>
          {recent.length === 0 ? (
            <Empty title="Nothing has run yet" example="noetl register examples/hello.yaml && noetl exec examples/hello" action={<Link to="/playbooks">Choose a playbook</Link>}>
              Register a playbook and run it, here or in a terminal.
            </Empty>
          ) : null}
          <ul className={css.list}>
            {recent.map((row) => (
              <li key={row.execution_id}>
                <Mark state={row.status} />
                <ExecutionId id={row.execution_id} />
                <span className={css.words}>
                  <Link to="/executions/$id" params={{ id: row.execution_id }} className={css.path}>{plain(row.path ?? "")}</Link>{" "}
                  <span className={css.none} title={waitsFor(row)}>{plain(waitsFor(row))}</span>
                </span>
                <Lasted from={row.started_at ?? 0} to={hasEnded(row.status) ? row.ended_at ?? row.started_at : null} />
                <span className={css.when}><Time at={row.started_at} /></span>
              </li>
            ))}
          </ul>
        </Card>
      </div>
    </div>
  );
}

/** One thing that needs a person: an answer, a cause of dead letters, a queue without a worker, something slow. */
function NeedRow({ need }: { need: Need }) {
  const { execution: row, group, pool } = need;
  if (row) {
    const isSignal = need.cause === "signal";
    const words = isSignal ? waitsFor(row) : `runs for ${duration(now() - (row.started_at ?? 0))}, usually ${duration(need.usual_ms)}`;
    return (
      <li>
        <Mark state={isSignal ? "waiting" : "running"} />
        <span className={css.words} title={words}>
          <Link to="/executions/$id" params={{ id: row.execution_id }}>{plain(row.path ?? "")}</Link> {plain(words)}
        </span>
        <Time at={need.since} />
        <Link to="/executions/$id" params={{ id: row.execution_id }} className={css.go}>{isSignal ? "Answer…" : "Open"}</Link>
      </li>
    );
  }
  if (group) {
    return (
      <li>
        <Mark state="failed" />
        <span className={css.words} title={group.last_error}>
          <b>{count(group.count)} ×</b> {plain(group.last_error)} <span className={css.none}>at {plain(group.path)}, {plain(group.step_id)}</span>
        </span>
        <Time at={group.last_seen} />
        <Link to="/letters/$group" params={{ group: group.fingerprint }} className={css.go}>Open</Link>
      </li>
    );
  }
  return (
    <li>
      <Mark state="pending" />
      <span className={css.words}>pool {plain(pool?.pool || "default")}: no worker, {plural(pool?.queued ?? 0, "piece")} of work queued</span>
      <Time at={need.since} />
      <Link to="/workers" className={css.go}>Workers</Link>
    </li>
  );
}

let waiting = false;
function refresh(run: () => void): void {
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    run();
  }, 2_000);
}

function Count({ state, value, q, words }: { state: string; value: string; q: string; words: string }) {
  return (
    <li>
      <Link to="/executions" search={{ q }} className={css.count}>
        <Mark state={state} />
        <b>{value}</b>
        <span>{words}</span>
      </Link>
    </li>
  );
}

function Card({ title, more, wide = false, children }: { title: string; more?: ReactNode; wide?: boolean; children: ReactNode }) {
  return (
    <section className={`${css.card} ${wide ? css.wide : ""}`}>
      <header>
        <h2>{title}</h2>
        {more}
      </header>
      {children}
    </section>
  );
}

function Throughput({ buckets, width }: { buckets: Overview["buckets"]; width: number }) {
  const bins = buckets.map((one) => {
    const all = Object.entries(one.counts);
    const good = all.filter(([name]) => stateOf(name).hue === "green").reduce((sum, [, value]) => sum + value, 0);
    const bad = all.filter(([name]) => name === "failed" || name === "partial" || name === "cancelled").reduce((sum, [, value]) => sum + value, 0);
    return { at: one.at, good, bad };
  });
  const most = Math.max(1, ...bins.map((bin) => bin.good + bin.bad));
  const total = bins.reduce((sum, bin) => sum + bin.good + bin.bad, 0);
  return (
    <figure className={css.chart}>
      <div className={css.bars} role="img" aria-label={`${total} executions ended of those that started in 24 hours`}>
        {bins.map((bin) => (
          <span key={bin.at} className={css.bar} title={`${clock(bin.at)} to ${clock(bin.at + width)}: ${bin.good} completed, ${bin.bad} other`}>
            <span className={css.badbar} style={{ height: `${(bin.bad / most) * 100}%` }} />
            <span className={css.goodbar} style={{ height: `${(bin.good / most) * 100}%` }} />
          </span>
        ))}
      </div>
      <figcaption>
        <span>24 h ago</span>
        <span className={css.key}><i className={css.goodbar} /> completed <i className={css.badbar} /> failed, partial, cancelled</span>
        <span>now</span>
      </figcaption>
    </figure>
  );
}
