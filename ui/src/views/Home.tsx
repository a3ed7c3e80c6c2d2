import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../api/client";
import { type Execution, type Need, type Overview, useOverview } from "../api/overview";
import { useNeeds } from "../api/session";
import { useAsked } from "../moments/use";
import { Button, Command, Empty, ExecutionId, Lasted, Loading, Time, Trouble } from "../parts/controls";
import { Mark, Sign } from "../parts/Mark";
import { Card, Lines, Page } from "../parts/Page";
import { noetl } from "../words/command";
import { clock, count, duration, middle, now, plain, plural } from "../words/format";
import { hasEnded } from "../words/states";
import { Answer } from "./Answer";
import css from "./Home.module.css";
import { Run } from "./Run";

const MOST = 12;

export function Home() {
  const { data, error, refetch } = useOverview();
  if (error && !data) return <Trouble error={error} again={() => void refetch()} />;
  if (!data) return <Loading rows={10} />;
  const isNew = data.recent.length === 0;
  return (
    <Page title="Home" scrolls actions={<Figures data={data} />}>
      {isNew ? (
        <Empty title="Nothing has run yet" example="noetl exec examples/hello --wait" action={<Link to="/playbooks">Choose a playbook to run</Link>}>
          An execution is one run of a playbook. Register one with <code>noetl register examples/hello.yaml</code>, start it here or in a terminal, and see each of its events.
        </Empty>
      ) : (
        <div className={css.columns}>
          <NeedsYou data={data} />
          <div className={css.side}>
            <Throughput data={data} />
            <Recent rows={data.recent} />
          </div>
        </div>
      )}
    </Page>
  );
}

interface Figure {
  value: number;
  isWhole: boolean;
}
const figure = (of: Overview["now"], ...states: string[]): Figure => ({ value: states.reduce((sum, one) => sum + (of.counts[one] ?? 0), 0), isWhole: of.is_whole });

function Figures({ data }: { data: Overview }) {
  const figures: [string, string, Figure, string][] = [
    ["running", "running", figure(data.now, "running"), "status:running"],
    ["waiting", "waiting", figure(data.now, "waiting"), "status:waiting"],
    ["failed", "failed, 24 h", figure(data.day, "failed", "partial"), "status:failed,partial since:24h"],
    ["completed", "completed, 24 h", figure(data.day, "completed"), "status:completed since:24h"],
  ];
  return (
    <div className={css.figures}>
      {figures.map(([state, word, { value, isWhole }, q]) => (
        <Link key={state} to="/executions" search={{ q }} className={css.figure} title={isWhole ? undefined : `At least ${value}: only the newest were counted`}>
          <Mark state={state} size={14} /> <strong>{`${count(value)}${isWhole ? "" : "+"}`}</strong> {word}
        </Link>
      ))}
    </div>
  );
}

interface Line {
  key: string;
  sign: ReactNode;
  title: ReactNode;
  what: ReactNode;
  action: ReactNode;
}

const named = (row: Execution): ReactNode => (
  <>
    <span title={row.path}>{plain(middle(row.path ?? "", 40))}</span> <ExecutionId id={row.execution_id} />
  </>
);

function NeedsYou({ data }: { data: Overview }) {
  const needs = useNeeds();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [answer, setAnswer] = useState<Execution | null>(null);
  const asks = useAsked();
  const lines = data.needs.map((one): Line | null => {
    if (one.cause === "signal" && one.execution) return signalLine(one.execution, needs("operator"), setAnswer, asks.word(one.execution.execution_id, one.execution.last_seq ?? 0));
    if (one.cause === "slow" && one.execution) {
      const { execution_id: id } = one.execution;
      return slowLine(one, one.execution, () => void navigate({ to: "/executions/$id", params: { id } }));
    }
    if (one.group) {
      const { fingerprint } = one.group;
      return letterLine(one.group, () => void navigate({ to: "/letters/$group", params: { group: fingerprint } }));
    }
    return one.pool ? poolLine(one.pool, () => void navigate({ to: "/workers" })) : null;
  });
  const all = lines.filter((one) => one !== null);
  const of = (cause: Need["cause"]): number => data.needs.filter((one) => one.cause === cause).length;
  const parts = [of("worker") && plural(of("worker"), "pool without a worker", "pools without a worker"), of("signal") && plural(of("signal"), "answer"), of("letters") && plural(of("letters"), "cause of dead letters", "causes of dead letters"), of("slow") && plural(of("slow"), "slow execution")].filter(Boolean);
  return (
    <Card title={all.length > 0 ? `${count(all.length)} need${all.length === 1 ? "s" : ""} you` : "Needs you"} note={parts.join(" · ")}>
      {all.length === 0 ? (
        <div className={css.calm}>
          <p><Sign mark="check" hue="green" /> Nothing waits for a person.</p>
          <p className={css.quiet}>Approvals, causes of dead letters and queues without a worker appear here. Try one:</p>
          <Command text="noetl register examples/release.yaml && noetl exec examples/release" />
        </div>
      ) : (
        <ul className={css.needs} aria-label="Needs you">
          {all.slice(0, MOST).map((one) => (
            <li key={one.key}>
              {one.sign}
              <div className={css.need}>
                <span className={css.title}>{one.title}</span>
                <span className={css.what}>{one.what}</span>
              </div>
              {one.action}
            </li>
          ))}
          {all.length > MOST ? (
            <li className={css.quiet}>
              and {all.length - MOST} more: <Link to="/executions" search={{ q: "needs:signal" }}>answers</Link> <Link to="/letters">dead letters</Link>
            </li>
          ) : null}
        </ul>
      )}
      {answer ? <Answer id={answer.execution_id} path={answer.path ?? ""} onClose={() => setAnswer(null)} onDone={() => void client.invalidateQueries({ queryKey: ["overview"] })} does={asks.does(answer.execution_id)} /> : null}
    </Card>
  );
}

const signalLine = (row: Execution, why: string | undefined, open: (row: Execution) => void, asked: string): Line => ({
  key: row.execution_id,
  sign: <Sign mark="hourglass" hue="amber" label="waits for an answer" />,
  title: named(row),
  what: (
    <>
      waits for the signal {plain((row.signals ?? []).join(", "))}; started <Time at={row.started_at} />
    </>
  ),
  action: asked ? (
    <em role="status">{asked}</em>
  ) : (
    <Button why={why} onClick={() => open(row)} aria-label={`Answer ${row.path} ${row.execution_id}`}>
      Answer…
    </Button>
  ),
});

const slowLine = (one: Need, row: Execution, open: () => void): Line => ({
  key: `slow ${row.execution_id}`,
  sign: <Sign mark="play" hue="blue" label="slow" />,
  title: named(row),
  what: (
    <>
      runs for <Lasted from={row.started_at ?? one.since} to={null} />, usually at most {duration(one.usual_ms)}
    </>
  ),
  action: <Button onClick={open}>Open</Button>,
});

const letterLine = (one: Schemas["LetterGroup"], open: () => void): Line => ({
  key: one.fingerprint,
  sign: <Sign mark="cross" hue="red" label="dead letters" />,
  title: (
    <span title={one.last_error}>
      {count(one.count)} × {plain(one.last_error)}
    </span>
  ),
  what: (
    <>
      at <span title={`${one.path} ${one.step_id}`}>{plain(middle(one.path, 40))} · {plain(one.step_id)}</span>, last <Time at={one.last_seen} />
    </>
  ),
  action: <Button onClick={open} aria-label={`Open ${one.last_error}`}>Open</Button>,
});

const poolLine = (one: Schemas["PoolRow"], open: () => void): Line => ({
  key: `pool ${one.pool}`,
  sign: <Sign mark="dots" hue="grey" label="no worker" />,
  title: <>pool {plain(one.pool || "default")}: no worker</>,
  what: (
    <>
      {plural(one.queued, "step-run")} queued, the oldest <Time at={one.oldest} />. <code>{noetl("worker", "start", one.pool && "--pool", one.pool)}</code>
    </>
  ),
  action: <Button onClick={open}>Workers</Button>,
});

const WIDTH = 480;
const HEIGHT = 96;

/** Starts in 24 hours by how they ended: good ones grow up, bad ones down, so that shape tells them apart. */
function Throughput({ data }: { data: Overview }) {
  const buckets = data.buckets.map(({ at, counts }) => ({ at, good: counts.completed ?? 0, bad: (counts.failed ?? 0) + (counts.partial ?? 0) }));
  const good = Math.max(1, ...buckets.map((one) => one.good));
  const bad = Math.max(0, ...buckets.map((one) => one.bad));
  const total = good + bad;
  const zero = HEIGHT * (good / total);
  const slot = WIDTH / buckets.length;
  const sum = (name: "good" | "bad") => buckets.reduce((all, one) => all + one[name], 0);
  const words = `In 24 hours ${plural(sum("good"), "execution")} completed and ${count(sum("bad"))} failed.`;
  return (
    <Card title="Throughput" note={data.day.is_whole ? "24 h" : "24 h; the newest executions alone"}>
      <div className={css.chart}>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={words} preserveAspectRatio="none">
          <title>{words}</title>
          {buckets.map((one, at) => (
            <g key={one.at}>
              <title>{`from ${clock(one.at).slice(0, 5)}: ${one.good} completed, ${one.bad} failed`}</title>
              <rect x={at * slot} y={0} width={slot} height={HEIGHT} className={css.slot} />
              {one.good ? <rect x={at * slot + 1} y={zero - Math.max(2, (one.good / total) * HEIGHT)} width={slot - 2} height={Math.max(2, (one.good / total) * HEIGHT)} className={css.good} /> : null}
              {one.bad ? <rect x={at * slot + 1} y={zero} width={slot - 2} height={Math.max(2, (one.bad / total) * HEIGHT)} className={css.bad} /> : null}
            </g>
          ))}
          <path d={`M0 ${zero}H${WIDTH}`} className={css.axis} />
        </svg>
        <div className={css.legend}>
          <span>24 h ago</span>
          <span><span className={css.keygood} aria-hidden /> ▲ completed, at most {count(Math.max(...buckets.map((one) => one.good)))} in {duration(data.bucket_ms).replace(" 00 s", "")}</span>
          <span><span className={css.keybad} aria-hidden /> ▼ failed</span>
          <span>now</span>
        </div>
      </div>
    </Card>
  );
}

function Recent({ rows }: { rows: Execution[] }) {
  const needs = useNeeds();
  const [run, setRun] = useState<string | null>(null);
  return (
    <Card title="Recent executions" actions={<Link to="/executions">All</Link>}>
      <Lines
        label="Recent executions"
        heads={[<span key="s" className="hidden">status</span>, "execution", "playbook", "started", "duration", <span key="r" className="hidden">run</span>]}
        rows={rows.map((row) => ({
          key: row.execution_id,
          cells: [
            <Mark key="m" state={row.status} />,
            <ExecutionId key="i" id={row.execution_id} />,
            <Link key="p" to="/playbooks/$" params={{ _splat: row.path ?? "" }} title={row.path} className={css.path}>{plain(middle(row.path ?? "", 24))}</Link>,
            <Time key="t" at={row.started_at} />,
            <Lasted key="l" from={row.started_at ?? now()} to={hasEnded(row.status) ? row.ended_at ?? row.started_at : null} />,
            <Button key="r" kind="quiet" className={css.again} why={needs("operator")} title="Run it with other input" aria-label={`Run ${row.path} with other input`} onClick={() => setRun(row.path ?? "")}>Run…</Button>,
          ],
        }))}
      />
      {run !== null ? <Run path={run} onClose={() => setRun(null)} /> : null}
    </Card>
  );
}
