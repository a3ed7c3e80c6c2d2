import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { Span } from "../moments/track";
import { Mark } from "../parts/Mark";
import { count, duration, errorText, plain, shortId } from "../words/format";
import { stateOf } from "../words/states";
import { type Group, LOOKS, stretchesOf } from "./group";
import type { Row } from "./nest";
import type { Scale } from "./scale";
import css from "./timeline.module.css";

const CAUSES: Record<string, string> = { signal: "a signal", gate: "its gate", join: "siblings", child: "a child", sleep: "time", delay: "the next attempt" };

/** What all rows share. */
export interface Shown {
  scale: Scale;
  /** Of what has not ended: the end so far. */
  until: number;
  /** The moment in milliseconds. */
  here: number;
  /** The moment of the way back from a child, if it is not live. */
  up: number | undefined;
}

/** What a bar says, in words. */
export function wordsOf(span: Span, until: number, isCritical: boolean): string {
  const end = span.ended?.[1] ?? until;
  const begun = span.started?.[1] ?? end;
  const waits = span.waits.map(([from, to, cause]) => `waited ${duration((to ?? until) - from)} for ${CAUSES[cause] ?? cause}`);
  return [`${span.run}: ${stateOf(span.state).word}`, `queued ${duration(begun - span.scheduled[1])}`, span.started ? `ran ${duration(end - begun)}` : "", ...waits, isCritical ? "on the critical path" : ""].filter(Boolean).join(", ");
}

/** The name of a row, with its mark. */
export function Name({ state, title, children }: { state: string; title: string; children: ReactNode }) {
  return (
    <span className={css.name}>
      <Mark state={state} size={14} />
      <span title={title}>{children}</span>
    </span>
  );
}

/** Opens and closes what is below a row. */
export function Disclosure({ isOpen, label, onToggle }: { isOpen: boolean; label: string; onToggle: () => void }) {
  return (
    <button type="button" className={css.disclosure} data-nest aria-expanded={isOpen} aria-label={label} title={label} onClick={onToggle}>
      <svg width="8" height="8" viewBox="0 0 8 8" fill="currentColor" aria-hidden>
        <path d={isOpen ? "M0 1.5h8L4 7z" : "M1.5 0v8L7 4z"} />
      </svg>
    </button>
  );
}

function Part({ scale, from, to, look, children }: { scale: Scale; from: number; to: number; look: string | undefined; children?: ReactNode }) {
  if (to < scale.range[0] || from > scale.range[1]) return null;
  const x = Math.min(scale.x(from), Math.max(0, scale.width - 2));
  return <span data-bar className={`${css.bar} ${look ?? ""}`} style={{ left: x, width: Math.max(2, scale.x(to) - x) }}>{children}</span>;
}

/** A step-run in time: queued, running, waiting, pauses and failed attempts. */
export function Bars({ span, scale, until, isCritical }: { span: Span; scale: Scale; until: number; isCritical: boolean }) {
  const end = span.ended?.[1] ?? until;
  const begun = span.started?.[1] ?? end;
  return (
    <>
      <Part scale={scale} from={span.scheduled[1]} to={begun} look={css.queued} />
      {span.started ? <Part scale={scale} from={begun} to={end} look={`${css.ran} ${css[stateOf(span.state).hue]}`} /> : null}
      {span.waits.map(([from, to, cause], at) => <Part key={at} scale={scale} from={from} to={to ?? until} look={cause === "delay" ? css.pause : css.wait} />)}
      {span.attempts.filter(([, , ok]) => ok === false).map(([from, to], at) => <Part key={at} scale={scale} from={from} to={to ?? until} look={css.bad}>✕</Part>)}
      {isCritical ? <Part scale={scale} from={span.scheduled[1]} to={end} look={css.critical} /> : null}
      <span className={css.length} style={{ left: scale.x(end) }}>{duration(end - span.scheduled[1])}</span>
    </>
  );
}

/** What a row of many step-runs says, in words. */
export function wordsOfGroup({ step, spans, failed, open, times }: Group, isCritical: boolean): string {
  const lasted = times ? `shortest ${duration(times.min)}, median ${duration(times.median)}, longest ${duration(times.max)}` : "";
  return [`${step}: ${count(spans.length)} step-runs`, failed ? `${count(failed)} failed` : "", open ? `${count(open)} not ended` : "", lasted, isCritical ? "on the critical path" : ""].filter(Boolean).join(", ");
}

/** How many step-runs a row stands for, and their shortest, median and longest time. */
export function Figures({ group }: { group: Group }) {
  return (
    <span className={css.figures}>
      <span className={css.times}>×{count(group.spans.length)}</span>
      {group.failed ? <span className={css.failures}>✕ {count(group.failed)}</span> : null}
      {group.times ? <span>{[group.times.min, group.times.median, group.times.max].map(duration).join(" · ")}</span> : null}
    </span>
  );
}

/** Many step-runs in one lane: one path for each look, however many there are. */
export function Lane({ spans, scale, until }: { spans: readonly Span[]; scale: Scale; until: number }) {
  const paths = useMemo(() => {
    const found = new Map<string, string>();
    for (const { look, x, width } of stretchesOf(spans, scale, until)) found.set(look, `${found.get(look) ?? ""}M${x} 0h${width}v14h-${width}z`);
    return found;
  }, [spans, scale, until]);
  return (
    <svg className={css.many} width={scale.width} height="14" aria-hidden data-lane>
      {LOOKS.map((look) => (paths.has(look) ? <path key={look} data-look={look} className={css[`many-${look}`]} d={paths.get(look)} /> : null))}
    </svg>
  );
}

/** A row of a child, of one of its step-runs, or of what is not shown. All but notes lead to the page of the child. */
export function Nested({ row, scale, until, here, up }: { row: Exclude<Row, { kind: "group" }> } & Shown) {
  if (row.kind === "note") return <p className={css.note}>{row.error ? errorText(row.error) : "Loading…"}</p>;
  if (row.kind === "more") {
    return row.execution ? (
      <Link className={css.note} to="/executions/$id" params={{ id: row.execution }} search={{ pane: "children", up }}>{count(row.count)} more…</Link>
    ) : (
      <Link className={css.note} to="." search={((old: object) => ({ ...old, pane: "children" })) as never}>{count(row.count)} more…</Link>
    );
  }
  if (row.kind === "run") {
    const { span, isCritical } = row;
    const isThere = span.scheduled[1] <= here;
    return (
      <Link className={`${css.row} ${isThere ? "" : css.later}`} to="/executions/$id" params={{ id: row.execution }} search={{ step: span.step, run: span.run, up }} data-critical={isCritical || undefined} title={`${wordsOf(span, until, isCritical)}. Opens the child.`}>
        <Name state={isThere ? span.state : ""} title={span.run}>{plain(span.run)}</Name>
        <span className={css.lane}>
          <Bars span={span} scale={scale} until={until} isCritical={isCritical} />
        </span>
      </Link>
    );
  }
  const { child, from, isCritical } = row;
  const to = row.to ?? until;
  const name = `${child.item === null ? "" : `[${child.item}] `}${plain(child.path)} ${shortId(child.id)}`;
  return (
    <Link className={`${css.row} ${css.child} ${from <= here ? "" : css.later}`} to="/executions/$id" params={{ id: child.id }} search={{ up }} data-critical={isCritical || undefined} title={`Child ${name}${child.status ? `: ${stateOf(child.status).word}, ${duration(to - from)}` : ""}${isCritical ? ", on the critical path" : ""}. Opens its page.`}>
      <Name state={child.status} title={name}>{name}</Name>
      <span className={css.lane}>
        <Part scale={scale} from={from} to={to} look={`${css.childbar} ${css[stateOf(child.status).hue]}`} />
        {isCritical ? <Part scale={scale} from={from} to={to} look={css.critical} /> : null}
        <span className={css.length} style={{ left: scale.x(to) }}>{duration(to - from)}</span>
      </span>
    </Link>
  );
}
