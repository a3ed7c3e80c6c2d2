import { Link } from "@tanstack/react-router";
import type { CSSProperties } from "react";
import { type Choice, type Explained, type Run, useCause, useEvents, useRun } from "../../api/executions";
import { decidedAt, type Graph } from "../../graph/draw";
import type { Track } from "../../moments/track";
import { Button, Command, Copy, Countdown, Facts, Loading, TabList, Time, Trouble, Words } from "../../parts/controls";
import { Json } from "../../parts/Json";
import { Mark } from "../../parts/Mark";
import { Splitter, useWidth } from "../../parts/Splitter";
import { Term } from "../../parts/Term";
import type { ExecutionSearch } from "../../routes";
import { noetl } from "../../words/command";
import { clock, duration, errorText, plain, plural, shortId } from "../../words/format";
import { stateOf } from "../../words/states";
import { Arc } from "./Arc";
import { RunLogs } from "./Logs";
import css from "./Panel.module.css";
import { YamlTab } from "./Yaml";

type Tab = NonNullable<ExecutionSearch["tab"]>;
const TABS: { id: Tab; label: string }[] = [
  { id: "why", label: "Why" },
  { id: "input", label: "Input" },
  { id: "outcome", label: "Outcome" },
  { id: "attempts", label: "Attempts" },
  { id: "logs", label: "Logs" },
  { id: "events", label: "Events" },
  { id: "yaml", label: "YAML" },
];

interface Props {
  id: string;
  graph: Graph;
  track: Track;
  seq: number;
  /** The moment after the scrubber has rested. */
  rested: number;
  search: ExecutionSearch;
  explain: Explained | undefined;
  onSearch: (next: Partial<ExecutionSearch>, replace?: boolean) => void;
  onClose: () => void;
  onMove: (seq: number) => void;
}

/** What is selected, at the moment: its latest step-run, or the one that was picked. */
export function Panel({ id, graph, track, seq, rested, search, explain, onSearch, onClose, onMove }: Props) {
  const [width, setWidth] = useWidth("panel", 420);
  const step = search.step ?? "";
  const node = graph.nodes.find((one) => one.name === step);
  const runs = track.runsOf(step, seq);
  const span = runs.find((one) => one.run === search.run) ?? runs.at(-1);
  const spanState = span ? (span.ended && span.ended[0] <= seq ? span.state : span.ended ? track.step(step, seq) : span.state) : "";
  const found = useRun(id, span && span.scheduled[0] <= rested ? span.run : undefined, rested, search.item);
  const isItem = search.item !== undefined && Boolean(span?.items);
  const state = isItem ? (found.data && found.data.item === search.item ? found.data.state : "") : spanState;
  const tab: Tab = search.tab ?? (stateOf(state).word === "failed" || state === "done" || isItem ? "outcome" : "why");
  return (
    <aside className={css.panel} aria-label={`Step ${step}`} style={{ "--width": `${width}px` } as CSSProperties}>
      <Splitter label="Width of the panel" value={width} least={320} most={960} onChange={setWidth} />
      <header className={css.head}>
        <Mark state={state} size={18} />
        <h2 className={css.title} title={step}>{plain(step)}{isItem ? ` item ${search.item}` : ""}</h2>
        <span className={css.state}>{stateOf(state).word}</span>
        <Button kind="quiet" aria-label="Close the panel" title="Close (Esc)" onClick={onClose}>✕</Button>
      </header>
      <div className={css.sub}>
        {runs.length > 1 ? (
          <select aria-label="Step-run" value={span?.run} onChange={(event) => onSearch({ run: event.target.value, item: undefined })}>
            {runs.map((one) => <option key={one.run} value={one.run}>{one.run} · {stateOf(one.state).word}</option>)}
          </select>
        ) : span ? <span><Term word="step-run" /> <code>{plain(span.run)}</code></span> : <span>not reached</span>}
        {isItem && found.data?.key ? <span>key <code>{plain(found.data.key)}</code></span> : null}
        {isItem ? <button type="button" className={css.link} onClick={() => onSearch({ item: undefined })}>the whole loop</button> : null}
        {span?.items ? <button type="button" className={css.link} onClick={() => onSearch({ pane: "items", run: span.run })}>all {plural(span.items.total, "item")}{span.items.failed ? `, ${span.items.failed} failed` : ""}</button> : null}
        {span?.worker ? <span title={span.worker}>worker {plain(span.worker.length > 24 ? shortId(span.worker) : span.worker)}</span> : null}
        {node?.line ? <Link to="/edit/$" params={{ _splat: graph.path }} search={{ step } as never} title="Open the step in the editor">line {node.line}</Link> : null}
      </div>
      {node?.description ? <p className={css.desc}>{plain(node.description)}</p> : null}
      <TabList label="Step" tabs={TABS} value={tab} onChange={(next) => onSearch({ tab: next }, true)} />
      <div className={css.body} role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "why" ? (
          <WhyTab id={id} graph={graph} track={track} seq={seq} step={step} explain={explain} arc={search.arc} onMove={onMove} />
        ) : tab === "yaml" ? (
          <YamlTab graph={graph} step={step} onStep={(next) => onSearch({ step: next, run: undefined, item: undefined, arc: undefined })} />
        ) : tab === "events" ? (
          <StepEvents id={id} step={step} seq={seq} onMove={onMove} />
        ) : !span ? (
          <p className={css.none}>This step has not been reached {seq < track.seq ? "at this moment" : "yet"}.</p>
        ) : tab === "logs" ? (
          <RunLogs id={id} run={span.run} item={isItem ? search.item : undefined} head={track.seq} seq={seq} isOpen={!span.ended} />
        ) : found.error ? (
          <Trouble error={found.error} again={() => void found.refetch()} />
        ) : !found.data ? (
          <Loading rows={4} />
        ) : tab === "input" ? (
          <InputTab run={found.data} />
        ) : tab === "attempts" ? (
          <AttemptsTab run={found.data} onMove={onMove} />
        ) : (
          <OutcomeTab run={found.data} step={step} />
        )}
      </div>
    </aside>
  );
}

function WhyTab({ id, graph, track, seq, step, explain, arc, onMove }: { id: string; graph: Graph; track: Track; seq: number; step: string; explain: Explained | undefined; arc?: string; onMove: (seq: number) => void }) {
  const open = (explain?.standing ?? []).filter((one) => one.step === step);
  const out = graph.edges.filter((edge) => edge.source === step && edge.arc >= 0);
  const decided = Math.max(0, ...out.map((edge) => decidedAt(track, edge, seq)));
  const choices = (explain?.choices ?? []).filter((one: Choice) => one.step === step && one.seq <= seq);
  return (
    <div className={css.stack}>
      {open.map((one) => (
        <section key={one.name} className={css.card}>
          <strong>Waits for <Words text={one.waits_for} /></strong>
          <Facts rows={[["since", <Time key="s" at={one.since} />], ["until", one.until ? <span key="u">{clock(one.until)}{seq < track.seq ? "" : <> (<Countdown at={one.until} />)</>}{one.what === "run" ? ", then the step fails" : ""}</span> : ""], ["answered by", one.answered_by ? plain(one.answered_by) : ""]]} />
          <p className={css.moved}>Moved by: <Words text={one.moved_by} /></p>
          {one.deadlines.length > 1 ? (
            <ul className={css.deadlines} aria-label="Deadlines">
              {one.deadlines.map((late) => <li key={late.what}>{plain(late.what)}: {late.at ? <>{clock(late.at)}{seq < track.seq ? "" : <> (<Countdown at={late.at} />)</>}</> : duration(late.ms)}</li>)}
            </ul>
          ) : null}
          {one.cause === "worker" && typeof one.refs?.pool === "string" ? (
            <div>
              <Link to="/workers" search={{ q: one.refs.pool || undefined }}>Workers of the pool {plain(one.refs.pool || "default")}</Link>
              <Command text={noetl("worker", "start", one.refs.pool && "--pool", one.refs.pool)} />
            </div>
          ) : null}
        </section>
      ))}
      {open.length === 0 && choices.length === 0 && out.length === 0 ? <p className={css.none}>Nothing waits here, and no arc leaves this step.</p> : null}
      {out.length > 0 ? (
        <section>
          <h3><Term word="arc">Arcs</Term> {decided ? <button type="button" className={css.link} onClick={() => onMove(decided)}>decided at event {decided}</button> : null}</h3>
          {out.map((edge) => <Arc key={edge.arc} id={id} edge={edge} track={track} seq={seq} isSelected={arc === String(edge.arc)} />)}
        </section>
      ) : null}
      {choices.slice(-3).reverse().map((one) => (
        <section key={one.seq} className={css.choice}>
          <button type="button" className={css.link} onClick={() => onMove(one.seq)}>event {one.seq}</button> {plain(one.decided)}
          <ul>{one.because.map((text) => <li key={text}>{plain(text)}</li>)}</ul>
        </section>
      ))}
    </div>
  );
}

function InputTab({ run }: { run: Run }) {
  return (
    <div className={css.stack}>
      {run.value !== null && run.value !== undefined ? <section><h3>Item</h3><Json value={run.value} /></section> : null}
      <section>
        <h3>Arguments of the step-run</h3>
        {Object.keys(run.args ?? {}).length ? <Json value={run.args} path={["args"]} /> : <p className={css.none}>It was called without arguments.</p>}
      </section>
      {run.input !== null && run.input !== undefined ? <section><h3>Input as rendered</h3><Json value={run.input} /></section> : <p className={css.none}>The input of its task was rendered on the worker.</p>}
    </div>
  );
}

function OutcomeTab({ run, step }: { run: Run; step: string }) {
  const end = run.ended_at;
  return (
    <div className={css.stack}>
      <Facts
        rows={[
          ["scheduled", <Time key="a" at={run.scheduled_at} />],
          ["queued", run.started_at ? duration(run.started_at - run.scheduled_at) : ""],
          ["ran", run.started_at && end ? duration(end - run.started_at) : ""],
          ["completed by", run.by ? plain(run.by) : ""],
          ["reason", run.reason ? plain(run.reason) : ""],
          ["signal", run.signal ? <code key="s">{plain(run.signal)}</code> : ""],
          ["until", run.until ? clock(run.until) : ""],
          ["child", run.child ? <Link key="c" to="/executions/$id" params={{ id: run.child }} search={((old: ExecutionSearch) => ({ up: old.at })) as never} title="Open it (d)">{shortId(run.child)}</Link> : ""],
          ["items", run.loop && run.item === null ? Object.entries(run.loop).map(([name, value]) => `${name} ${value}`).join(", ") : ""],
        ]}
      />
      {run.error ? (
        <section className={css.error}>
          <strong>{errorText(run.error)}</strong>
          <Json value={run.error} />
        </section>
      ) : null}
      {run.letter ? <LetterOf letter={run.letter} /> : null}
      {run.ref ? (
        <section>
          <h3><Term word="stored result">Stored result</Term></h3>
          <a href={`/api/results/resolve?ref=${encodeURIComponent(run.ref)}`} download>Download</a> <Copy text={run.ref} label="Copy the reference" />
        </section>
      ) : null}
      {end && !run.error ? (
        <section>
          <h3>Result</h3>
          <Json value={run.result} path={[step]} />
        </section>
      ) : !end ? <p className={css.none}>It has not ended.</p> : null}
    </div>
  );
}

/** The dead letter of a step-run or an item, and how many others have its cause. */
function LetterOf({ letter }: { letter: NonNullable<Run["letter"]> }) {
  const cause = useCause(letter.fingerprint).data;
  const others = cause ? cause.count - (letter.status === "pending" ? 1 : 0) : 0;
  return (
    <p>
      ✉ A <Link to="/letters/$group" params={{ group: letter.fingerprint }} search={{ letter: letter.message_id }}>dead letter</Link> ({letter.status}) after {plural(letter.attempts, "attempt")}.
      {others > 0 ? (
        <>
          {" "}
          <Link to="/letters/$group" params={{ group: letter.fingerprint }}>Same cause as {plural(others, "other")}</Link>.
        </>
      ) : null}
    </p>
  );
}

function AttemptsTab({ run, onMove }: { run: Run; onMove: (seq: number) => void }) {
  if (run.attempts.length === 0) return <p className={css.none}>{run.ended_at ? "The log keeps no attempts of an item that succeeded at once." : "No attempt has started."}</p>;
  return (
    <ol className={css.attempts}>
      {run.attempts.map((one) => (
        <li key={`${one.task} ${one.attempt} ${one.seq}`}>
          <p className={css.arcline}>
            <Mark state={one.ok === null ? "running" : one.ok ? "done" : "failed"} size={14} />
            <strong>{plain(one.task)}</strong>
            <span className={css.state}>{one.kind} · attempt {one.attempt}{one.started_at && one.ended_at ? ` · ${duration(one.ended_at - one.started_at)}` : ""}</span>
            <button type="button" className={css.link} onClick={() => onMove(one.seq)}>event {one.seq}</button>
          </p>
          {one.error ? <p className={css.errortext}>{errorText(one.error)}</p> : null}
          {one.decision ? <p className={css.state}>Policy: {one.decision.do}{one.decision.rule !== null ? ` (rule ${one.decision.rule})` : ""}{one.decision.delay_ms ? ` in ${duration(one.decision.delay_ms)}` : ""}</p> : null}
        </li>
      ))}
    </ol>
  );
}

function StepEvents({ id, step, seq, onMove }: { id: string; step: string; seq: number; onMove: (seq: number) => void }) {
  const events = useEvents(id, { step, limit: 500 });
  if (!events.data) return <Loading rows={4} />;
  const shown = events.data.events;
  return (
    <>
      <ol className={css.events}>
        {shown.map((event) => (
          <li key={event.seq}>
            <button type="button" className={`${css.event} ${event.seq > seq ? css.later : ""}`} aria-current={event.seq === seq} onClick={() => onMove(event.seq)}>
              <span className={css.seq}>{event.seq}</span>
              <span>{event.event_type}</span>
              <span className={css.state}>{clock(event.timestamp, true)}</span>
            </button>
          </li>
        ))}
      </ol>
      {events.data.next ? <p className={css.none}>First {shown.length} events of the step.</p> : null}
      <Command text={`noetl events ${id} --step ${step}`} />
    </>
  );
}
