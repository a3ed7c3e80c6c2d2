// Rows of the timeline: step-runs, groups of them, and children below them, loaded when opened. What is open is in the address.
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Child, childrenOf, MOST_CHILDREN } from "../api/children";
import { get } from "../api/client";
import { type Mark, type Span, Track, type TrackPart } from "../moments/track";
import { hasEnded } from "../words/states";
import type { Group } from "./group";
import { criticalPath, lastChild } from "./path";

interface Below {
  key: string;
  depth: number;
}
export type Row = Below &
  (
    | { kind: "run"; span: Span; execution: string; isOpen: boolean; isCritical: boolean }
    | { kind: "group"; group: Group; isOpen: boolean; isCritical: boolean }
    | { kind: "child"; child: Child; from: number; to: number | null; isOpen: boolean; isSole: boolean; isCritical: boolean }
    | { kind: "more"; execution: string; count: number }
    | { kind: "note"; error: unknown }
  );
interface Nest {
  lists: ReadonlyMap<string, Loaded<Child[]>>;
  tracks: ReadonlyMap<string, Loaded<Track>>;
}
interface Loaded<T> {
  data?: T;
  error: unknown;
}
const NONE: ReadonlySet<string> = new Set();
const NOTHING: Nest = { lists: new Map(), tracks: new Map() }; // the same one while a slider moves
/** A step-run of the execution of the page has an empty execution. */
export const keyOf = (execution: string, run: string): string => `${execution}/${run}`;
const GROUP = "=";
/** A group of the execution of the page; neither a step-run nor the id of a child begins like it. */
export const groupKey = (step: string): string => GROUP + encodeURIComponent(step);
export const openOf = (nest: string | undefined): Set<string> => new Set((nest ?? "").split(",").filter(Boolean));

/** Load what is open: the children of step-runs, and the step-runs of children. */
export function useNest(id: string, track: Track, open: ReadonlySet<string>): Nest {
  const opened = [...open].filter((key) => !key.startsWith(GROUP));
  const runs = opened.filter((key) => key.includes("/"));
  const lists = useQueries({
    queries: runs.map((key) => {
      const [execution, run] = [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)];
      return childrenOf(execution || id, run, !execution && !track.runs.get(run)?.ended);
    }),
    combine: (found) => new Map(runs.map((key, at) => [key, found[at] as Loaded<Child[]>])),
  });
  const sole = [...lists.values()].flatMap((list) => (list.data?.length === 1 ? [(list.data[0] as Child).id] : []));
  const ids = [...new Set([...sole, ...opened.filter((key) => !key.includes("/"))])];
  const tracks = useQueries({
    queries: ids.map((child) => ({
      queryKey: ["track", child],
      staleTime: 1_000,
      refetchInterval: (query: { state: { data?: Track } }) => (query.state.data && hasEnded(query.state.data.status(query.state.data.seq)) ? false : 2_000),
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const made = new Track();
        made.apply(await get<TrackPart>(`/api/executions/${encodeURIComponent(child)}/track`, {}, signal));
        return made;
      },
    })),
    combine: (found) => new Map(ids.map((child, at) => [child, found[at] as Loaded<Track>])),
  });
  return useMemo(() => (open.size ? { lists, tracks } : NOTHING), [open, lists, tracks]);
}

/**
 * The rows of step-runs and groups with what is open below them, at times of the first execution. The critical path goes on in
 * the child that a critical step-run waited for; it is not known where only some of many children are listed.
 */
export function rowsOf(entries: readonly (Span | Group)[], t0: number, open: ReadonlySet<string>, { lists, tracks }: Nest, critical: ReadonlySet<string> = NONE): Row[] {
  const rows: Row[] = [];
  const addRuns = (of: readonly Span[], execution: string, depth: number, path: ReadonlySet<string>) => {
    for (const span of of) {
      const key = keyOf(execution, span.run);
      const isOpen = span.children > 0 && open.has(key);
      const isCritical = path.has(span.run);
      rows.push({ kind: "run", key, depth, span, execution, isOpen, isCritical });
      if (isOpen) addChildren(key, execution, span, depth + 1, isCritical && span.children <= MOST_CHILDREN);
    }
  };
  const addChildren = (key: string, execution: string, span: Span, depth: number, leads: boolean) => {
    const list = lists.get(key);
    if (!list?.data) return void rows.push({ kind: "note", key: `${key} note`, depth, error: list?.error });
    const isSole = list.data.length === 1;
    const last = leads ? lastChild(list.data) : undefined;
    for (const child of list.data) {
      const isCritical = child === last;
      const found = tracks.get(child.id);
      const isOpen = isSole || open.has(child.id);
      const ended = found?.data && hasEnded(found.data.status(found.data.seq)) ? found.data.t0 + found.data.timeOf(found.data.seq) : child.ended;
      const status = found?.data ? found.data.status(found.data.seq) : child.status;
      rows.push({ kind: "child", key: `${key} ${child.id}`, depth, child: { ...child, status }, from: child.started - t0, to: ended === null ? null : ended - t0, isOpen, isSole, isCritical });
      if (!isOpen) continue;
      const spans = found?.data ? shifted(found.data, found.data.t0 - t0) : undefined;
      if (spans) addRuns(spans, child.id, depth + 1, isCritical ? criticalPath(spans) : NONE);
      else rows.push({ kind: "note", key: `${child.id} note`, depth: depth + 1, error: found?.error });
    }
    if (span.children > MOST_CHILDREN) rows.push({ kind: "more", key: `${key} more`, depth, execution, count: span.children - MOST_CHILDREN });
  };
  for (const entry of entries) {
    if (!("spans" in entry)) {
      addRuns([entry], "", 0, critical);
      continue;
    }
    const key = groupKey(entry.step);
    rows.push({ kind: "group", key, depth: 0, group: entry, isOpen: open.has(key), isCritical: entry.spans.some((span) => critical.has(span.run)) });
    if (open.has(key)) addRuns(entry.spans, "", 1, critical);
  }
  return rows;
}

/** The step-runs of a track in order, at times that count from elsewhere. */
function shifted(track: Track, by: number): Span[] {
  const mark = (one: Mark | null): Mark | null => one && [one[0], one[1] + by];
  const end = (ms: number | null) => (ms === null ? null : ms + by);
  return inOrder(track).map((span) => ({
    ...span,
    scheduled: mark(span.scheduled) as Mark,
    started: mark(span.started),
    ended: mark(span.ended),
    attempts: span.attempts.map(([from, to, ok]) => [from + by, end(to), ok]),
    waits: span.waits.map(([from, to, cause]) => [from + by, end(to), cause]),
  }));
}
export const inOrder = (track: Track): Span[] => [...track.runs.values()].sort((a, b) => a.scheduled[0] - b.scheduled[0]);
