import { Link } from "@tanstack/react-router";
import type { Execution, Explained } from "../../api/executions";
import { useNeeds } from "../../api/session";
import type { Span } from "../../moments/track";
import { Button, useTick, Words } from "../../parts/controls";
import { Sign } from "../../parts/Mark";
import type { ExecutionSearch } from "../../routes";
import { clock, duration, errorText, now, plain } from "../../words/format";
import { hasEnded, stateOf } from "../../words/states";
import css from "./Why.module.css";

interface Props {
  execution: Execution;
  explain: Explained | undefined;
  status: string;
  /** The time of the moment, if it is not live. */
  at?: number;
  failures: { seq: number; span: Span }[];
  /** Loops with failed items. */
  loops: Span[];
  onStep: (step: string, more?: Partial<ExecutionSearch>) => void;
  onRetry: () => void;
}

/** Says unprompted what an execution waits for, or why it failed. */
export function Why({ execution, explain, status, at, failures, loops, onStep, onRetry }: Props) {
  const open = explain?.standing ?? [];
  useTick(1_000, open.length > 0);
  const then = at ?? now();
  const first = open.find((one) => one.what !== "execution") ?? open[0];
  if (hasEnded(status)) {
    if (status !== "failed" && status !== "partial") return null;
    return <Failed execution={execution} explain={explain} status={status} failures={failures} loops={loops} onStep={onStep} onRetry={onRetry} />;
  }
  if (!first && at === undefined) return null;
  if (!first) return <div className={css.why} role="region" aria-label="Why">{explain ? "Nothing waited at this event." : "…"}</div>; // the page keeps its places
  return (
    <div className={css.why} role="region" aria-label="Why">
      <Sign mark="hourglass" hue="amber" />
      <span className={css.words}>
        <button type="button" className={css.step} onClick={() => onStep(first.step, { tab: "why" })}>
          {plain(first.step || first.name)}
        </button>
        <span>waits for <Words text={first.waits_for} /></span>
        {first.since ? <span className={css.since}>since {clock(first.since)} ({duration(then - first.since)})</span> : null}
        {first.until ? <span className={first.until - then < 300_000 ? css.soon : css.since}>times out {clock(first.until)} (in {duration(first.until - then)}{first.what === "run" && first.until - then < 300_000 ? ", then the step fails" : ""})</span> : null}
      </span>
      {open.length > 1 ? (
        <span title={open.slice(1).map((one) => `${one.step} waits for ${one.waits_for}`).join("\n")}>
          +{open.length - 1}: {plain(open[1]?.step ?? "")} waits for {plain((open[1]?.waits_for ?? "").slice(0, 60))}
        </span>
      ) : null}
    </div>
  );
}

/** The first failed step, its error, what helps, and what to do next. */
function Failed({ execution, explain, status, failures, loops, onStep, onRetry }: Props) {
  const needs = useNeeds();
  const found = explain?.failure ?? undefined;
  const loop = loops[0];
  const span = failures.find((one) => one.span.step === found?.step)?.span ?? failures[0]?.span ?? loop;
  const items = loop?.items;
  const error = errorText(found?.error ?? execution.error) || (items ? `${items.failed} of ${items.total} items failed` : "some work failed");
  return (
    <div className={`${css.why} ${css.bad}`} role="region" aria-label="Why">
      <Sign mark={stateOf(status).mark} hue={stateOf(status).hue} />
      <div className={css.words}>
        {span ? (
          <button type="button" className={css.step} onClick={() => onStep(span.step, { run: span.run, tab: "outcome" })}>
            {plain(span.run)}
          </button>
        ) : null}
        <span className={css.error} title={error}>{error}</span>
        {found?.fix ? <span className={css.fix}><Words text={found.fix} /></span> : null}
      </div>
      {loop ? (
        <button type="button" className={css.step} onClick={() => onStep(loop.step, { run: loop.run, pane: "items", only: "failed" })}>
          Failed items
        </button>
      ) : null}
      {failures.length > 1 ? <span className={css.since}>+{failures.length - 1} more (n)</span> : null}
      <Link to="/executions/$id/compare/$other" params={{ id: execution.execution_id, other: "last-good" }}>
        What changed since the last good one?
      </Link>
      {status === "failed" ? <Button onClick={onRetry} why={needs("operator")}>Retry from here…</Button> : null}
    </div>
  );
}
