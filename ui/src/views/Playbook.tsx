import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { get, Problem, type Schemas } from "../api/client";
import { useGraph } from "../api/executions";
import { useList } from "../api/lists";
import { useNeeds } from "../api/session";
import { type Statistics, type StepFigures, useStatistics } from "../api/statistics";
import type { Figures } from "../graph/nodes";
import { StepGrid } from "../heat/grid";
import { Bars, Marks } from "../parts/Bars";
import { Button, Command, Copy, Empty, Facts, Loading, TabList, Time, Trouble } from "../parts/controls";
import { Sign } from "../parts/Mark";
import { Card, Lines, Page } from "../parts/Page";
import { Table } from "../parts/Table";
import { Term } from "../parts/Term";
import { PLAYBOOK_TABS, type PlaybookSearch } from "../routes";
import { noetl } from "../words/command";
import { duration, middle, now, plain, plural } from "../words/format";
import { COLUMNS } from "./Executions";
import css from "./Playbook.module.css";
import { Run } from "./Run";
import { TriggersOf } from "./Schedules";
import { Source, Versions } from "./Versions";

const GraphView = lazy(() => import("../graph/view").then((found) => ({ default: found.GraphView })));
type Version = Schemas["CatalogVersion"];
const WEEK = 7 * 86_400_000;
const LABELS: Record<(typeof PLAYBOOK_TABS)[number], string> = { overview: "Overview", executions: "Executions", versions: "Versions", schedules: "Schedules", yaml: "YAML" };

export function PlaybookPage() {
  const { _splat: path = "" } = useParams({ strict: false }) as { _splat?: string };
  const search = useSearch({ strict: false }) as PlaybookSearch;
  const navigate = useNavigate();
  const needs = useNeeds();
  const [isRunning, setRunning] = useState(false);
  const versions = useQuery({ queryKey: ["versions", path], queryFn: ({ signal }) => get<Schemas["Versions"]>("/api/catalog/versions", { path }, signal) });
  const all = versions.data?.versions ?? [];
  const latest = all.reduce<Version | undefined>((found, one) => (found && found.version > one.version ? found : one), undefined);
  const shown = all.find((one) => one.version === search.v) ?? latest;
  const tab = search.tab ?? "overview";
  const go = (change: PlaybookSearch, replace = false) => void navigate({ to: "/playbooks/$", params: { _splat: path }, search: { ...search, ...change }, replace });
  useEffect(() => {
    document.title = `${path} · NoETL`;
  }, [path]);

  if (versions.error) {
    const isAbsent = versions.error instanceof Problem && versions.error.status === 404;
    return isAbsent ? (
      <Empty title="No such playbook" example={noetl("register", `${path.split("/").at(-1)}.yaml`)} action={<Link to="/playbooks">All playbooks</Link>}>
        Nothing is registered under {plain(path)}.
      </Empty>
    ) : (
      <Trouble error={versions.error} again={() => void versions.refetch()} />
    );
  }
  if (!shown || !latest) return <Loading rows={8} />;
  const version = shown.version === latest.version ? undefined : shown.version;
  return (
    <Page
      title={<span title={path}>{plain(middle(path, 60))}</span>}
      note={
        <>
          registered <Time at={shown.registered_at} />
        </>
      }
      actions={
        <>
          <label className={css.version}>
            <span className="hidden">Version</span>
            <select value={shown.version} onChange={(event) => go({ v: Number(event.target.value) === latest.version ? undefined : Number(event.target.value) })}>
              {[...all]
                .sort((a, b) => b.version - a.version)
                .map((one) => (
                  <option key={one.version} value={one.version}>
                    v{one.version}
                    {one.version === latest.version ? " (latest)" : ""}
                  </option>
                ))}
            </select>
          </label>
          <Button onClick={() => void navigate({ to: "/edit/$", params: { _splat: path } })}>Edit</Button>
          <Button kind="primary" why={needs("operator")} onClick={() => setRunning(true)}>
            Run…
          </Button>
        </>
      }
    >
      <div className={css.tabs}>
        <TabList
          label="Parts of the playbook"
          value={tab}
          onChange={(next) => go({ tab: next === "overview" ? undefined : next })}
          tabs={PLAYBOOK_TABS.map((id) => ({ id, label: LABELS[id], badge: id === "versions" && all.length > 1 ? all.length : undefined }))}
        />
      </div>
      {tab === "overview" ? <Overview path={path} shown={shown} version={version} step={search.step} onStep={(step) => go({ step: step === search.step ? undefined : step }, true)} onRun={() => setRunning(true)} /> : null}
      {tab === "executions" ? <Past path={path} /> : null}
      {tab === "versions" ? <Versions path={path} all={all} shown={shown.version} since={search.since} onChoose={(v, since) => go({ v: v === latest.version ? undefined : v, since }, true)} /> : null}
      {tab === "schedules" ? <TriggersOf path={path} /> : null}
      {tab === "yaml" ? <Source path={path} version={shown.version} playbook={shown.playbook} step={search.step} /> : null}
      {isRunning ? <Run path={path} version={version} onClose={() => setRunning(false)} /> : null}
    </Page>
  );
}

function Overview({ path, shown, version, step, onStep, onRun }: { path: string; shown: Version; version?: number; step?: string; onStep: (step: string) => void; onRun: () => void }) {
  const [since] = useState(() => Math.round(now() - WEEK));
  const lately = useStatistics(path, since);
  return (
    <div className={css.overview}>
      {lately.error ? <Trouble error={lately.error} again={() => void lately.refetch()} /> : <Lately path={path} found={lately.data} onRun={onRun} />}
      <div className={css.columns}>
        <Steps playbook={shown.playbook} step={step} found={lately.data} onStep={onStep} />
        <div className={css.side}>
          <Workload path={path} version={version} />
          <Needs path={path} version={version} />
          <Card title="Identity">
            <div className={css.pad}>
              <Facts
                rows={[
                  ["Version", `v${shown.version}`],
                  ["Content hash", <span key="h" className={css.hash}><code title={shown.playbook}>{shown.playbook.slice(0, 12)}</code><Copy text={shown.playbook} label="Copy the hash" /></span>],
                ]}
              />
            </div>
          </Card>
        </div>
      </div>
    </div>
  );
}

/** How it went in the last seven days. */
function Lately({ path, found, onRun }: { path: string; found: Statistics | undefined; onRun: () => void }) {
  if (!found) return <div className={css.lately} />;
  if (found.executions === 0) {
    return (
      <div className={css.lately}>
        <span className={css.quiet}>It has not run in the last 7 days.</span>
        <Command text={noetl("exec", path)} />
        <Button onClick={onRun}>Run…</Button>
      </div>
    );
  }
  return (
    <div className={css.lately}>
      <Marks rows={found.grid?.rows ?? []} most={20} />
      {found.p50_ms !== null ? (
        <>
          <span><span className={css.quiet}>p50</span> {duration(found.p50_ms)}</span>
          <span><span className={css.quiet}>p95</span> {duration(found.p95_ms)}</span>
        </>
      ) : null}
      {found.good !== null ? <span>{Math.floor(100 * found.good)} % <span className={css.quiet}>completed</span></span> : null}
      <span className={css.quiet}>
        {found.is_whole ? plural(found.executions, "execution") : `the newest ${plural(found.executions, "execution")}`}, 7 days
      </span>
    </div>
  );
}

const figuresOf = (steps: readonly StepFigures[] | null | undefined): Record<string, Figures> => {
  const slowest = Math.max(1, ...(steps ?? []).map((one) => one.p50_ms ?? 0));
  return Object.fromEntries((steps ?? []).map((one) => [one.step, { ...one, share: (one.p50_ms ?? 0) / slowest }]));
};

/** The net, as it is drawn, or step by step with the way on from each. */
function Steps({ playbook, step, found, onStep }: { playbook: string; step?: string; found: Statistics | undefined; onStep: (step: string) => void }) {
  const [isGraph, setGraph] = useState(true);
  const figures = useMemo(() => figuresOf(found?.steps), [found?.steps]);
  const graph = useGraph(playbook);
  if (graph.error) return <Trouble error={graph.error} again={() => void graph.refetch()} />;
  if (!graph.data) return <Loading rows={6} />;
  const { nodes, edges, entry } = graph.data;
  const known = nodes.filter((node) => node.known);
  return (
    <Card title={isGraph ? "Graph" : "Steps"} note={found?.steps_read ? `${plural(known.length, "step")}; times of the last ${plural(found.steps_read, "execution")}` : plural(known.length, "step")} actions={<Button kind="quiet" onClick={() => setGraph(!isGraph)}>{isGraph ? "As a list" : "As a graph"}</Button>}>
      {isGraph ? (
        <div className={css.graph}>
          <Suspense fallback={<Loading rows={6} />}>
            <GraphView graph={graph.data} track={null} seq={0} step={step} figures={figures} onStep={onStep} />
          </Suspense>
        </div>
      ) : (
      <ol className={css.steps}>
        {known.slice(0, 500).map((node) => (
          <li key={node.name} className={node.name === step ? css.chosen : ""}>
            <button type="button" className={css.step} aria-pressed={node.name === step} onClick={() => onStep(node.name)}>
              <span className={css.name}>
                {node.name === entry ? <span title="entry">⌂ </span> : null}
                {plain(node.name)}
              </span>
              <span className={css.kinds}>{[...new Set(node.kinds)].join(" · ")}</span>
              {node.loop ? <span className={css.quiet} title={node.loop.over}>loop, {node.loop.mode}</span> : null}
              {node.join ? <span className={css.quiet}>⋈ {node.join}</span> : null}
              {node.gate ? <span className={css.quiet} title={node.gate}>◇ gate</span> : null}
            </button>
            {figures[node.name]?.runs ? <StepLine one={figures[node.name] as Figures} /> : null}
            {node.description ? <p className={css.about}>{plain(node.description)}</p> : null}
            <ul className={css.arcs}>
              {edges
                .filter((edge) => edge.source === node.name)
                .map((edge) => (
                  <li key={`${edge.arc}${edge.kind}`}>
                    <span aria-hidden>{edge.kind === "back" ? "↺" : edge.kind === "compensation" ? "↶" : "→"}</span> {edge.kind === "failure" ? <span className={css.failure}>▲ failure</span> : null} {plain(edge.target)} {edge.when ? <code title={edge.when}>{plain(edge.when)}</code> : null}
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ol>
      )}
    </Card>
  );
}

const StepLine = ({ one }: { one: Figures }) => (
  <p className={css.about}>
    p50 {duration(one.p50_ms)} · p95 {duration(one.p95_ms)} · {plural(one.runs, "step-run")}{one.failed ? <span className={css.failure}> · ✕ {one.failed} failed</span> : null}
  </p>
);

function Workload({ path, version }: { path: string; version?: number }) {
  const form = useQuery({ queryKey: ["ui_schema", path, version ?? 0], queryFn: ({ signal }) => get<Schemas["UiSchema"]>("/api/catalog/ui_schema", { path, version }, signal), staleTime: Infinity });
  const properties = Object.entries(((form.data?.schema as { properties?: Record<string, { type?: unknown }> } | undefined)?.properties ?? {}));
  const defaults = (form.data?.defaults ?? {}) as Record<string, unknown>;
  return (
    <Card title={<Term word="workload">Workload</Term>}>
      {form.error ? (
        <Trouble error={form.error} />
      ) : (
        <Lines
          label="Workload"
          heads={["name", "type", "default"]}
          rows={properties.map(([name, one]) => {
            const text = name in defaults ? JSON.stringify(defaults[name]) : "";
            return { key: name, cells: [<code key="n" title={name} className={css.value}>{plain(name)}</code>, String(one.type ?? "any"), <code key="d" title={text.slice(0, 2_000)} className={css.value}>{plain(text.slice(0, 200))}</code>] };
          })}
          empty={form.data ? "It takes no values." : <Loading rows={2} />}
        />
      )}
    </Card>
  );
}

function Needs({ path, version }: { path: string; version?: number }) {
  const keychain = useQuery({ queryKey: ["keychain", path, version ?? 0], queryFn: ({ signal }) => get<Schemas["KeychainEntries"]>("/api/keychain", { path, version }, signal) });
  return (
    <Card title="Credentials it needs">
      {keychain.error ? (
        <Trouble error={keychain.error} />
      ) : (
        <Lines
          label="Credentials"
          heads={["name", "kind", "state"]}
          rows={(keychain.data?.entries ?? []).map((one) => ({
            key: one.name,
            cells: [
              <code key="n" title={one.credential}>{plain(one.credential || one.name)}</code>,
              one.kind ?? "",
              <span key="s" className={css.stored}>
                <Sign mark={one.stored ? "check" : "cross"} hue={one.stored ? "green" : "red"} size={14} /> {one.stored ? "stored" : "missing"}
              </span>,
            ],
          }))}
          empty={keychain.data ? "None." : <Loading rows={1} />}
        />
      )}
    </Card>
  );
}

function Past({ path }: { path: string }) {
  const navigate = useNavigate();
  const [since] = useState(() => Math.round(now() - WEEK));
  const lately = useStatistics(path, since);
  const { rows, more, isPending, error, again } = useList<Schemas["ExecutionRow"]>("/api/executions", "executions", { path, limit: 100 }, { every: 3_000 });
  if (error) return <Trouble error={error} again={again} />;
  if (isPending) return <Loading rows={10} />;
  return (
    <>
      {rows.length > 0 ? (
        <div className={css.past}>
          <Bars rows={rows} most={50} />
          <span className={css.quiet}>last {Math.min(50, rows.length)}; height is the duration</span>
          <span className={css.space} />
          <Link to="/executions" search={{ q: `path:${path.includes(" ") ? `"${path}"` : path}` }}>
            Filter in Executions
          </Link>
        </div>
      ) : null}
      {lately.data?.grid?.rows.length ? (
        <StepGrid grid={lately.data.grid} onOpen={(id, step) => void navigate({ to: "/executions/$id", params: { id }, search: { step } })} />
      ) : null}
      <Table
        label="Executions"
        rows={rows}
        columns={COLUMNS.filter((one) => one.id !== "path")}
        rowKey={(row) => row.execution_id}
        onOpen={(row) => void navigate({ to: "/executions/$id", params: { id: row.execution_id } })}
        onEnd={more}
        empty={
          <Empty title="No executions yet" example={noetl("exec", path)}>
            Each start of this playbook is one row here.
          </Empty>
        }
      />
    </>
  );
}
