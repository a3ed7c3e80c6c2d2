import { memo } from "react";
import type { Track } from "../moments/track";
import { useTick } from "../parts/controls";
import { Sign } from "../parts/Mark";
import { count, duration, now, plain, plural } from "../words/format";
import { hasEnded, stateOf } from "../words/states";
import type { Node } from "./draw";
import css from "./graph.module.css";

export interface Figures {
  runs: number;
  failed: number;
  p50_ms: number | null;
  p95_ms: number | null;
  /** Of the slowest step: how long it takes in comparison. */
  share: number;
}

interface Props {
  node: Node;
  track: Track | null;
  /** With the moment, so that memo sees a change of the same track. */
  seq: number;
  head: number;
  isSelected: boolean;
  isDim: boolean;
  isEntry: boolean;
  isFinal: boolean;
  isChanged: boolean;
  note?: string;
  /** How its step-runs went lately. */
  figures?: Figures;
  hint?: string;
  onSelect: (step: string) => void;
  onItems?: (step: string) => void;
}

const lately = ({ runs, failed, p50_ms, p95_ms }: Figures): string =>
  `${plural(runs, "step-run")}, ${failed} failed${p50_ms !== null ? `; p50 ${duration(p50_ms)}, p95 ${duration(p95_ms)}` : ""}`;

/** A step of a playbook that does not run. */
const PLAIN = { ...stateOf(""), word: "", border: "thin" as const };

export const NodeBox = memo(function NodeBox({ node, track, seq, isSelected, isDim, isEntry, isFinal, isChanged, note, figures, hint, onSelect, onItems }: Props) {
  const state = track ? stateOf(track.step(node.name, seq)) : PLAIN;
  const runs = track?.runsOf(node.name, seq) ?? [];
  const last = runs.at(-1);
  const isOpen = Boolean(last && !last.ended && track && seq === track.seq && !hasEnded(track.status(seq)));
  useTick(1_000, isOpen);
  const time = track ? (isOpen ? Math.max(track.timeOf(seq), now() - track.t0) : track.timeOf(seq)) : 0;
  const attempts = last ? last.attempts.filter(([from]) => from <= time).length : 0;
  const begun = last?.started && last.started[0] <= seq ? last.started[1] : null;
  const end = last?.ended && last.ended[0] <= seq ? last.ended[1] : time;
  const tokens = track?.at(`n:${node.name}`, seq) ?? 0;
  const letters = track?.at(`d:${node.name}`, seq) ?? 0;
  const join = track?.join(node.name, seq);
  const ended = last ? (track?.at(`l:${last.run}`, seq) ?? 0) : 0;
  const failed = last ? (track?.at(`f:${last.run}`, seq) ?? 0) : 0;
  const total = last?.items?.total ?? 0;
  const isWaiting = state.mark === "hourglass" || state.mark === "again";
  return (
    <button
      type="button"
      data-step={node.name}
      data-of-step={node.name}
      data-state={state.word}
      aria-pressed={isSelected}
      title={node.description ? `${plain(node.name)}: ${plain(node.description)}` : plain(node.name)}
      className={`${css.node} ${css[state.hue]} ${css[state.border]} ${isSelected ? css.selected : ""} ${isDim ? css.dim : ""} ${isChanged ? css.changed : ""} ${state.word === "running" ? css.running : ""}`}
      style={{ left: node.x, top: node.y, width: node.width, height: node.height }}
      onClick={(event) => ((event.target as HTMLElement).closest("[data-items]") && onItems ? onItems(node.name) : onSelect(node.name))}
    >
      <span className={css.line}>
        {track ? <Sign mark={state.mark} hue={state.hue} label={state.word} size={14} /> : null}
        <span className={css.name} title={node.name}>{plain(node.name)}</span>
        {runs.length > 1 ? <span className={css.small}>×{runs.length}</span> : null}
        {attempts > node.tasks.length && attempts > 1 ? <span className={css.small} title="attempts">⟳{attempts}</span> : null}
        {note ? <span className={css.letters} role="img" aria-label={plain(note)} title={plain(note)}>✕</span> : null}
        {isEntry ? <span className={css.small} title="entry">⌂</span> : null}
        {isFinal ? <span className={css.small} title="final step">⚑</span> : null}
        {node.undoes.length > 0 ? <span className={css.small} title={`undoes ${node.undoes.join(", ")}`}>↶</span> : null}
      </span>
      <span className={`${css.line} ${css.second} ${track ? "" : css.still}`}>
        <span className={css.kinds}>{node.kinds.join(" · ") || "no task"}</span>
        {begun !== null ? <span className={css.small}>{isWaiting ? "waits " : ""}{duration(end - begun)}</span> : null}
        {letters ? <span className={css.letters}>✉{count(letters)}</span> : null}
        {figures?.runs ? (
          <span className={css.small} title={lately(figures)} data-figures>
            {figures.p50_ms !== null ? duration(figures.p50_ms) : "–"}
            {figures.failed ? <span className={css.letters}> ✕ {Math.max(1, Math.round((100 * figures.failed) / figures.runs))} %</span> : null}
          </span>
        ) : null}
      </span>
      {node.loop ? (
        <span className={`${css.line} ${css.second} ${onItems ? css.items : ""}`} data-items={total > 0 ? "" : undefined} title={total > 0 && onItems ? "Show the items" : undefined}>
          {total > 0 ? (
            <>
              <span className={css.progress}>
                <span className={css.filled} style={{ width: `${(ended / total) * 100}%` }} />
              </span>
              <span className={css.small}>{count(ended)}/{count(total)}</span>
              {failed ? <span className={css.letters}>✕{count(failed)}</span> : null}
            </>
          ) : (
            <span className={css.kinds}>loop over {plain(node.loop.over)}</span>
          )}
        </span>
      ) : null}
      {figures?.runs ? (
        <span className={css.heat} aria-hidden>
          <span className={css.took} style={{ width: `${100 * figures.share}%` }} />
          <span className={css.lost} style={{ width: `${(100 * figures.failed) / figures.runs}%` }} />
        </span>
      ) : null}
      {node.gate ? <span className={css.gate} title={`admits when ${node.gate}`}>◇</span> : null}
      {join ? <span className={css.join} title={`join: ${join[0]} of ${join[1]} arrived. ${plain(hint ?? "")}`.trim()}>⋈ {join[0]}/{join[1]}</span> : null}
      {tokens ? <span className={css.tokens} title={`${tokens} tokens wait here`}>{tokens > 3 ? `●×${tokens}` : "●".repeat(tokens)}</span> : null}
    </button>
  );
});
