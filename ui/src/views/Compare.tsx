import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { get, Problem, type Schemas } from "../api/client";
import { Changes } from "../parts/Changes";
import { Command, Copy, Empty, Loading, Time, Trouble, Words } from "../parts/controls";
import { Diff } from "../parts/Diff";
import { Mark } from "../parts/Mark";
import { Card, Lines, Page } from "../parts/Page";
import { Term } from "../parts/Term";
import { noetl } from "../words/command";
import { count, duration, errorText, plain, plural, shortId } from "../words/format";
import { stateOf } from "../words/states";
import css from "./Compare.module.css";

type Compared = Schemas["Compared"];
type Head = Schemas["ComparedHead"];
type Side = "this" | "other";

/** Two executions side by side; the first decision that differs comes first. */
export function ComparePage() {
  const { id, other } = useParams({ strict: false }) as { id: string; other: string };
  const found = useQuery({ queryKey: ["compare", id, other], queryFn: ({ signal }) => get<Compared>(`/api/executions/${encodeURIComponent(id)}/compare`, { with: other }, signal) });
  useEffect(() => {
    document.title = `${shortId(id)} compared · NoETL`;
  }, [id]);
  if (found.error) {
    const isAbsent = found.error instanceof Problem && found.error.status === 404;
    return isAbsent ? (
      <Empty title="Nothing to compare with" action={<Link to="/executions/$id" params={{ id }}>Back to the execution</Link>}>
        <Words text={found.error.message} />
      </Empty>
    ) : (
      <Trouble error={found.error} again={() => void found.refetch()} />
    );
  }
  if (!found.data) return <Loading rows={10} />;
  const { this: now, other: then } = found.data;
  return (
    <Page scrolls title="Compare" actions={<Command text={noetl("compare", id, other !== "last-good" && other)} />} note={other === "last-good" ? "with the last execution of this playbook that completed" : undefined}>
      <div className={css.heads}>
        <HeadCard title="This execution" head={now} />
        <HeadCard title={other === "last-good" ? "Last good one" : "The other one"} head={then} />
      </div>
      <Split found={found.data} />
      <div className={css.pair}>
        <Card title={<Term word="workload">Workload</Term>} note={leftOut(found.data, "workload")}>
          <div className={css.pad}><Changes changes={found.data.workload} none="Both started with the same values." /></div>
        </Card>
        <Card title="Playbook" note={found.data.playbook.differs ? `v${then.version ?? "?"} → v${now.version ?? "?"}` : undefined}>
          {found.data.playbook.text ? <Diff text={found.data.playbook.text} /> : <p className={css.none}>{found.data.playbook.differs ? "The text of one of them is no longer known, or is too long to compare." : "Both ran the same text."}</p>}
          {found.data.playbook.left_out ? <p className={css.none}>{plural(found.data.playbook.left_out, "more line")}.</p> : null}
        </Card>
      </div>
      <Steps found={found.data} />
      <Arcs found={found.data} />
    </Page>
  );
}

const leftOut = (found: Compared, what: string): string | undefined => (found.left_out[what] ? `${count(found.left_out[what] ?? 0)} more not shown` : undefined);

function HeadCard({ title, head }: { title: string; head: Head }) {
  return (
    <Card title={title}>
      <div className={css.head}>
        <Mark state={head.status} word size={18} />
        <Link to="/executions/$id" params={{ id: head.execution_id }} className={css.path} title={head.path}>
          {plain(head.path)} {head.version ? `v${head.version}` : ""}
        </Link>
        <span className={css.id}><code title={head.execution_id}>{shortId(head.execution_id)}</code><Copy text={head.execution_id} label="Copy the id" /></span>
        <span className={css.quiet}>started <Time at={head.started_at} /> · {duration(head.duration_ms)}</span>
        {head.error ? <p className={css.error}>{errorText(head.error)}</p> : null}
      </div>
    </Card>
  );
}

/** The first decision that differs, with the values that both read. */
function Split({ found }: { found: Compared }) {
  const split = found.split;
  if (!split) {
    return (
      <Card title="Where they part">
        <p className={css.none}>
          Routers and gates decided alike as far as both went{found.unaligned.length ? `; ${found.unaligned.map(plain).join(", ")} decided too often to compare one by one` : ""}. What differs is the outcome of a step, below.
        </p>
      </Card>
    );
  }
  const side = (which: Side): ReactNode => {
    const one = split[which];
    const at = { id: found[which].execution_id };
    return (
      <div>
        <h3>{which === "this" ? "This execution" : "The other one"}</h3>
        <p>
          <Link to="/executions/$id" params={at} search={{ at: one.seq, step: split.step, tab: "why" }}>event {one.seq}</Link>{one.event ? `, after ${one.event}` : ""}
        </p>
        {one.gate ? (
          <div className={css.arcs}>
            <span>{one.gate.admits ? "→ admits" : "✕ parks the tokens"}</span>
            {one.gate.when ? <code>{plain(one.gate.when)}</code> : null}
            {one.gate.errors.map((error) => <span key={error} className={css.error}>{plain(error)}</span>)}
            <Read values={one.gate.read} />
          </div>
        ) : null}
        <ul className={css.arcs}>
          {one.arcs.map((arc) => (
            <li key={arc.arc} className={arc.arc === split.arc ? css.first : ""} data-taken={arc.taken}>
              <span>{arc.taken ? "→" : "✕"} {plain(arc.target)}</span> <span className={css.quiet}>{arc.taken ? "taken" : "not taken"}</span>
              {arc.when ? <code>{plain(arc.when)}</code> : <span className={css.quiet}>{" "}· no condition</span>}
              {arc.error ? <span className={css.error}>{plain(arc.error)}</span> : null}
              {arc.read ? <Read values={arc.read} /> : null}
            </li>
          ))}
        </ul>
      </div>
    );
  };
  return (
    <Card title="Where they part" note={<>the {split.this.gate ? <Term word="gate" /> : <Term word="router" />} of <code>{plain(split.step)}</code>, decision {split.number}</>}>
      <div className={css.sides}>{side("this")}{side("other")}</div>
    </Card>
  );
}

const Read = ({ values }: { values: Record<string, unknown> }) =>
  Object.entries(values).map(([name, value]) => <code key={name} className={css.read}>{plain(name)} = {plain(JSON.stringify(value) ?? "").slice(0, 300)}</code>);

function Steps({ found }: { found: Compared }) {
  const cell = (id: string, step: string, side: Compared["steps"][number]["this"]) =>
    side.state === "" ? (
      <span className={css.quiet}>not reached</span>
    ) : (
      <span className={css.cell}>
        <Link to="/executions/$id" params={{ id }} search={{ step }} title={stateOf(side.state).word}><Mark state={side.state} word size={14} /></Link>
        {side.runs > 1 ? <span className={css.quiet}>×{side.runs}</span> : null}
        {side.attempts > side.runs ? <span className={css.quiet}>{side.attempts} attempts</span> : null}
        {side.duration_ms !== null ? <span className={css.quiet}>{duration(side.duration_ms)}</span> : null}
      </span>
    );
  return (
    <Card title="Steps" note={leftOut(found, "steps") ?? plural(found.steps.filter((one) => one.differs).length, "differs", "differ")}>
      <Lines
        label="Steps"
        heads={["step", "this execution", "the other one", ""]}
        rows={found.steps.map((one) => ({
          key: one.step,
          cells: [<code key="s">{plain(one.step)}</code>, cell(found.this.execution_id, one.step, one.this), cell(found.other.execution_id, one.step, one.other), one.differs ? <strong key="d">differs</strong> : ""],
        }))}
        empty="Neither of them reached a step."
      />
    </Card>
  );
}

function Arcs({ found }: { found: Compared }) {
  if (found.arcs.length === 0) return null;
  const times = (side: Compared["arcs"][number]["this"]) => (side.target === "" ? "not in its playbook" : side.taken ? `taken ${side.taken === 1 ? "once" : `${side.taken} times`}` : side.refused ? "evaluated, not taken" : "not evaluated");
  return (
    <Card title={<><Term word="arc">Arcs</Term> that differ</>} note={leftOut(found, "arcs")}>
      <Lines
        label="Arcs"
        heads={["arc", "this execution", "the other one"]}
        rows={found.arcs.map((one) => ({ key: `${one.source}#${one.arc}`, cells: [<code key="a">{plain(one.source)} → {plain(one.this.target || one.other.target)}</code>, times(one.this), times(one.other)] }))}
      />
    </Card>
  );
}
