import { useEffect, useRef, useState } from "react";
import type { Track } from "../moments/track";
import { type Edge, edgeKey, type Graph } from "./draw";
import css from "./graph.module.css";

/** More than these at a time tell nothing, and cost much. */
const MOST = 10;
const pathOf = (edge: Edge): string => `path("M ${(edge.points as [number, number][]).map(([x, y]) => `${x} ${y}`).join(" L ")}")`;

/** Tokens that arcs send while one looks: each slides along its arc once. */
export function Sliding({ graph, track, seq }: { graph: Graph; track: Track; seq: number }) {
  const before = useRef(seq);
  const [tokens, setTokens] = useState<{ key: string; path: string }[]>([]);
  useEffect(() => {
    const from = before.current;
    before.current = seq;
    if (from === 0 || seq <= from || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const count = (edge: Edge, at: number): number => track.at(`a:${edgeKey(edge)}`, at);
    const fired = graph.edges.filter((edge) => edge.arc >= 0 && count(edge, seq) > count(edge, from));
    setTokens((old) => (old.length + fired.length < MOST ? [...old, ...fired.map((edge) => ({ key: `${edgeKey(edge)} ${seq}`, path: pathOf(edge) }))] : old));
  }, [graph, track, seq]);
  const end = (key: string) => setTokens((old) => old.filter((one) => one.key !== key));
  return tokens.map(({ key, path }) => <span key={key} data-sliding aria-hidden className={css.sliding} style={{ offsetPath: path }} onAnimationEnd={() => end(key)} />);
}
