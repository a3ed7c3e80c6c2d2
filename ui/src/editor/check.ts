// The check of the text while it is written: one request in flight, stale answers dropped, the last good graph kept.
import { useEffect, useRef, useState } from "react";
import { type Checked, type Diagnosed, language, type TextSymbol } from "../api/language";
import type { Graph } from "../graph/draw";

const PAUSE_MS = 150;
const LARGE = 200_000;
const LARGE_PAUSE_MS = 1_500;

export interface Check {
  /** The text that was checked; null before the first answer. */
  text: string | null;
  diagnostics: readonly Diagnosed[];
  symbols: readonly TextSymbol[];
  graph: Graph | null;
  /** The line at which the text cannot be read, while the graph is an older one. */
  broken: number | null;
  error: unknown;
}
const NONE: Check = { text: null, diagnostics: [], symbols: [], graph: null, broken: null, error: null };

export function useCheck(text: string): Check {
  const [found, setFound] = useState<Check>(NONE);
  const latest = useRef(text);
  const isAsking = useRef(false);
  const isGone = useRef(false);
  latest.current = text;
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  useEffect(() => {
    const ask = async (): Promise<void> => {
      if (isAsking.current) return; // the answer under way asks again for what is newer
      isAsking.current = true;
      const asked = latest.current;
      try {
        const answer = await language.check(asked);
        if (!isGone.current && asked === latest.current) setFound((old) => next(old, asked, answer));
      } catch (error) {
        if (!isGone.current) setFound((old) => ({ ...old, error }));
      }
      isAsking.current = false;
      if (!isGone.current && asked !== latest.current) await ask();
    };
    const timer = setTimeout(() => void ask(), text.length > LARGE ? LARGE_PAUSE_MS : PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return found;
}

function next(old: Check, text: string, answer: Checked): Check {
  const { diagnostics, symbols, graph, whole } = answer;
  const isRead = whole && graph !== null && graph.nodes.length > 0;
  const kept = old.graph;
  const first = diagnostics.find((one) => one.severity === "error") ?? diagnostics[0];
  return {
    text,
    diagnostics,
    symbols: whole || old.symbols.length === 0 ? symbols : old.symbols,
    // The same net keeps its place on the screen while lines move.
    graph: !isRead ? kept : kept && shapeOf(kept) === shapeOf(graph) ? kept : graph,
    broken: isRead ? null : (first?.line ?? 1),
    error: null,
  };
}

const shapeOf = (graph: Graph): string => JSON.stringify(graph, (key, value: unknown) => (key === "line" || key === "column" || key === "hash" ? undefined : value));

export const stepsOf = (symbols: readonly TextSymbol[]): TextSymbol[] => symbols.flatMap((one) => (one.kind === "step" ? [one] : stepsOf(one.children)));
export const stepAt = (symbols: readonly TextSymbol[], pos: number): string | undefined => stepsOf(symbols).find((one) => one.start <= pos && pos <= one.end)?.name;
