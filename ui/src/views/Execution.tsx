import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { type Explained, useEvents, useExecution, useExplain, useGraph, useMoment } from "../api/executions";
import { GraphView } from "../graph/view";
import { Scrubber } from "../moments/scrubber";
import { type Track, upperBound } from "../moments/track";
import { useAsked, useDelayed, useIsPhone, useTrack } from "../moments/use";
import { Copy, Lasted, Loading, TabList, Tags, Time, Trouble } from "../parts/controls";
import { openActions, useKeys } from "../parts/keys";
import { useLights } from "../parts/lights";
import { Mark } from "../parts/Mark";
import { useTab } from "../parts/tab";
import { type ExecutionSearch, PANES } from "../routes";
import { Timeline } from "../timeline/view";
import { noetl } from "../words/command";
import { MARKED } from "../words/events";
import { clock, duration, plain, shortId } from "../words/format";
import { hasEnded, stateOf } from "../words/states";
import { Actions, type Open } from "./execution/Actions";
import { ArcNow } from "./execution/Arc";
import { ChildrenPane } from "./execution/Children";
import { EventsPane } from "./execution/Events";
import { ItemsPane, loopsOf } from "./execution/Items";
import { LogsPane } from "./execution/Logs";
import { Panel } from "./execution/Panel";
import { ResultPane, StatePane } from "./execution/State";
import { Why } from "./execution/Why";
import css from "./Execution.module.css";

const NONE: never[] = [];
const LABELS = { timeline: "Timeline", events: "Events", state: "State", logs: "Logs", children: "Children", result: "Result", items: "Items" };

export function ExecutionPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const search = useSearch({ strict: false }) as ExecutionSearch;
  const navigate = useNavigate();
  const isPhone = useIsPhone();
  const { track, error, reload, ended } = useTrack(id);
  // While the scrubber moves, the moment is ahead of the address, which follows when it rests.
  const [moving, setMoving] = useState<number | null>(null);
  const asked = moving ?? search.at;
  const head = track?.seq ?? 0;
  const isLive = asked === undefined;
  const seq = Math.max(1, Math.min(asked ?? head, head));

  const set = useCallback(
    (next: Partial<ExecutionSearch>, replace = false) =>
      void navigate({ to: "/executions/$id", params: { id }, search: (old: ExecutionSearch) => ({ ...old, ...next }), replace } as never),
    [navigate, id],
  );
  const move = useCallback((next: number) => setMoving(Math.max(1, Math.min(next, head))), [head]);
  useEffect(() => {
    if (moving === null) return;
    const timer = setTimeout(() => {
      set({ at: moving }, true);
      setMoving(null);
    }, 120);
    return () => clearTimeout(timer);
  }, [moving, set]);
  const live = () => {
    setMoving(null);
    set({ at: undefined }, true);
  };

  const status = track ? track.status(head) : "";
  const execution = useExecution(id, `${status} ${ended}`);
  const graph = useGraph(execution.data?.playbook);
  const rested = useDelayed(seq, 80);
  const moment = useMoment(id, track ? rested : 0);
  const explain = useExplain(id, useDelayed(track ? `${track.changes} ${ended}` : "", 300));
  // What waited at the moment; actions act on now.
  const past = useExplain(id, track && search.at !== undefined ? "past" : "", useDelayed(seq, 500));
  const told = isLive ? explain.data : past.data;

  const marked = useEvents(id, { type: MARKED, limit: 500 }, Boolean(track) && (search.pane ?? "timeline") === "timeline", useDelayed(`${head} ${ended}`, 300));

  const shownStatus = track ? track.status(seq) : (execution.data?.status ?? "");
  useTab(execution.data ? `${execution.data.path ?? ""} ${shortId(id)}` : "", shownStatus);
  useLights();

  const select = (step: string | undefined, more: Partial<ExecutionSearch> = {}) => set({ step, run: undefined, item: undefined, arc: undefined, ...more });
  const failures = track?.failures ?? [];
  const loops = [...(track?.runs.values() ?? [])].filter((span) => (span.items?.failed ?? 0) > 0 && span.state !== "failed");
  const stepFailure = (by: number) => {
    const list = [...failures.map((one) => one.span.run), ...loops.map((one) => one.run)];
    const next = list.length ? list[(Math.max(by > 0 ? -1 : 0, list.indexOf(search.run ?? "")) + by + list.length) % list.length] : undefined;
    const span = next ? track?.runs.get(next) : undefined;
    if (span) select(span.step, { run: span.run, tab: "outcome", ...(span.state === "failed" ? {} : { pane: "items", only: "failed" }) });
  };
  const among = (marks: number[], by: number) => {
    const at = by > 0 ? marks[upperBound(marks, seq)] : marks[upperBound(marks, seq - 1) - 1];
    if (at !== undefined) move(at);
  };
  const pane = search.pane ?? "timeline";
  const [open, setOpen] = useState<Open>(null);
  const asks = useAsked();
  const doing = asks.word(id, head);
  const [jump, setJump] = useState(0);
  const showError = () => {
    set({ pane: "logs", level: undefined, of: undefined, attempt: undefined, find: undefined }, true);
    setJump(jump + 1);
  };
  const at = isLive ? undefined : seq;
  const openChild = (child: string) => void navigate({ to: "/executions/$id", params: { id: child }, search: { up: at } });
  const command = isLive ? noetl("explain", id) : noetl("replay", id, "--to", seq);
  const showItems = (step: string) => select(step, { pane: "items" });
  useKeys({
    ",": () => move(seq - 1),
    ".": () => move(seq + 1),
    "<": () => among(track?.marks ?? [], -1),
    ">": () => among(track?.marks ?? [], 1),
    "[": () => search.step && among(track?.marksOf(search.step) ?? [], -1),
    "]": () => search.step && among(track?.marksOf(search.step) ?? [], 1),
    Home: () => move(1),
    End: () => move(head),
    l: live,
    n: () => stepFailure(1),
    p: () => stepFailure(-1),
    w: () => select(search.step ?? explain.data?.standing[0]?.step ?? failures[0]?.span.step, { tab: "why" }),
    a: openActions,
    e: showError,
    d: () => {
      const span = search.run ? track?.runs.get(search.run) : track?.runsOf(search.step ?? "", seq).at(-1);
      if (span?.child) openChild(span.child);
    },
    u: () => {
      if (execution.data?.parent) void navigate({ to: "/executions/$id", params: { id: execution.data.parent }, search: { at: search.up, pane: "children" } });
    },
    "Shift+C": () => void navigator.clipboard?.writeText(command),
    c: () => void navigator.clipboard?.writeText(location.href),
    Escape: () => select(undefined),
    ...Object.fromEntries(PANES.map((one, at) => [String(at + 1), () => set({ pane: one }, true)])),
  });
  const eventWords = useMemo(() => {
    if (!moment.data || moment.data.seq !== seq) return "";
    return moment.data.event ?? "";
  }, [moment.data, seq]);

  if (execution.error && !execution.data) return <Trouble error={execution.error} again={() => void execution.refetch()} />;
  if (!execution.data) return <Loading rows={10} />;
  const found = execution.data;
  const isPanel = Boolean(search.step ?? search.arc);
  return (
    <div className={css.page}>
      <header className={css.head}>
        <div className={css.about}>
        <span data-execution-status={shownStatus}>
          <Mark state={shownStatus} word size={18} />
        </span>
        <span className={css.asked} role="status">{doing}</span>
        <h1 className={css.title}>
          <Link to="/playbooks/$" params={{ _splat: found.path ?? "" }} title={found.path}>
            {plain(found.path ?? "")}
          </Link>
        </h1>
        <span className={css.break} />
        <span className={css.id}>
          <code title={id}>{shortId(id)}</code>
          <Copy text={id} label="Copy the id" />
        </span>
        <span className={css.facts}>
          started <Time at={found.started_at} /> · <Lasted from={found.started_at ?? 0} to={hasEnded(found.status) ? (found.ended_at ?? found.started_at) : null} />
          {found.parent ? (
            <>
              {" · child of "}
              <Link to="/executions/$id" params={{ id: found.parent }} search={{ at: search.up, pane: "children" }} title={search.up ? `Its parent at event ${search.up} (u)` : "Its parent (u)"}>{shortId(found.parent)}</Link>
            </>
          ) : null}
          {found.trace_url ? (
            <>
              {" · "}
              <a href={found.trace_url} target="_blank" rel="noreferrer" title={`Trace ${found.trace_id}`}>trace</a>
            </>
          ) : null}
        </span>
        <Tags tags={found.tags ?? []} />
        </div>
        <span className={css.actions} data-actions>
          <Actions execution={found} explain={explain.data} ctx={moment.data?.ctx ?? {}} seq={isLive ? undefined : seq} status={status || found.status} open={open} setOpen={setOpen} does={asks.does(id)} isBusy={doing !== ""} command={command} />
        </span>
      </header>
      {!isLive && track ? (
        <p className={css.past} role="status">
          As of event {seq} · {clock(track.t0 + track.timeOf(seq), true)} · {duration(track.timeOf(head) - track.timeOf(seq))} before the {hasEnded(status) ? "end" : "last event"}. Actions still act on now.{" "}
          <button type="button" className={css.linkbutton} onClick={live}>Back to live (l)</button>
        </p>
      ) : null}
      <Why execution={found} explain={told} at={isLive || !track ? undefined : track.t0 + track.timeOf(seq)} status={isLive ? status || found.status : shownStatus} failures={failures} loops={[...(track?.runs.values() ?? [])].filter((span) => (span.items?.failed ?? 0) > 0)} onStep={(step, more) => select(step, more)} onRetry={() => setOpen("retry")} />
      {error ? <Trouble error={error} again={reload} /> : null}
      {asks.error && !open ? <Trouble error={asks.error} /> : null}
      <div className={css.middle}>
        {graph.error ? (
          <Trouble error={graph.error} again={() => void graph.refetch()} />
        ) : !graph.data ? (
          <Loading rows={6} />
        ) : isPhone ? (
          <ol className={css.steps} aria-label="Steps">
            {graph.data.nodes.map((node) => (
              <li key={node.name}>
                <button type="button" className={css.step} aria-pressed={node.name === search.step} onClick={() => select(node.name)}>
                  <Mark state={track?.step(node.name, seq) ?? ""} />
                  <span className={css.stepname}>{plain(node.name)}</span>
                  <span className={css.facts}>{stateOf(track?.step(node.name, seq)).word}</span>
                  <span className={css.stepbar} aria-hidden>
                    <span style={shareOf(track, node.name, seq)} />
                  </span>
                </button>
              </li>
            ))}
          </ol>
        ) : (
          <GraphView graph={graph.data} track={track} seq={seq} isLive={isLive} vs={search.vs} step={search.step} arc={search.arc} onStep={(step) => select(step)} show={search.show} onShow={(show) => set({ show }, true)} hints={joinHints(told)} onItems={showItems} onArc={(edge) => select(edge.source, { arc: String(edge.arc), tab: "why" })} arcNow={(edge) => (track ? <ArcNow id={id} edge={edge} track={track} seq={seq} /> : null)} />
        )}
        {isPanel && track && graph.data ? (
          <Panel id={id} graph={graph.data} track={track} seq={seq} rested={rested} search={search} explain={told} onSearch={set} onClose={() => select(undefined)} onMove={move} />
        ) : null}
      </div>
      {track ? <Scrubber id={id} track={track} seq={seq} isLive={isLive} ended={ended} event={eventWords} vs={search.vs} onMove={move} onLive={live} onCompare={(vs) => set({ vs, pane: vs ? "state" : search.pane }, true)} /> : null}
      <div className={css.bottom}>
        <TabList label="Panes" value={pane} onChange={(next) => set({ pane: next }, true)} tabs={PANES.filter((one) => one !== "items" || pane === one || (track && loopsOf(track).length > 0)).map((one, at) => ({ id: one, label: LABELS[one], key: String(at + 1), badge: one === "events" && head ? head : one === "children" ? found.children?.length || undefined : undefined }))} />
        <div className={css.pane} role="tabpanel" aria-labelledby={`tab-${pane}`}>
          {!track ? <Loading rows={4} /> : pane === "timeline" ? (
            <Timeline id={id} track={track} seq={seq} isLive={isLive} ended={ended} step={search.step} run={search.run} marked={marked.data?.events ?? NONE} search={search} onSearch={set} onRun={(span) => select(span.step, { run: span.run })} />
          ) : pane === "events" ? (
            <EventsPane id={id} head={head} seq={seq} step={search.step} onMove={move} />
          ) : pane === "state" ? (
            <StatePane id={id} moment={moment.data} seq={rested} vs={search.vs} />
          ) : pane === "logs" ? (
            <LogsPane id={id} head={head} seq={seq} isOpen={!ended} search={search} jump={jump} onSearch={set} />
          ) : pane === "children" ? (
            <ChildrenPane id={id} at={at} isOpen={!ended} onStep={select} onOpen={openChild} />
          ) : pane === "items" ? (
            <ItemsPane id={id} track={track} search={search} isLive={isLive} ended={ended} onSearch={set} />
          ) : (
            <ResultPane execution={found} />
          )}
        </div>
      </div>
    </div>
  );
}

/** Where the last step-run of a step lies in the time of the execution, as a bar. */
function shareOf(track: Track | null, step: string, seq: number): { left: string; width: string } | undefined {
  const span = track?.runsOf(step, seq).at(-1);
  if (!track || !span) return undefined;
  const total = Math.max(1, track.timeOf(track.seq));
  const end = span.ended && span.ended[0] <= seq ? span.ended[1] : track.timeOf(seq);
  return { left: `${(span.scheduled[1] / total) * 100}%`, width: `${Math.max(1, ((end - span.scheduled[1]) / total) * 100)}%` };
}

/** What a join waits for, by its step. */
function joinHints(explain: Explained | undefined): Record<string, string> {
  const found: Record<string, string> = {};
  for (const one of explain?.standing ?? []) {
    if (one.cause !== "join") continue;
    const still = one.refs?.steps.length ? `Can still come: ${one.refs.steps.join(", ")}.` : "";
    found[one.step] = `Waits for ${one.waits_for}. ${still} Moved by: ${one.moved_by}.`;
  }
  return found;
}
