// The lines of an execution: all that were written so far, then new ones as they are.
import { useEffect, useReducer, useRef, useState } from "react";
import { LOG_TYPES, type LogLine, LogReader } from "../words/logs";
import { get, type Schemas } from "./client";

const PAGE = 1_000;
const MOST = 20_000;
const REST_MS = 300;

interface Read {
  lines: LogLine[];
  after: number;
  isWhole: boolean;
  reader: LogReader;
}
const nothing = (): Read => ({ lines: [], after: 0, isWhole: false, reader: new LogReader() });

/** Read the lines up to the head, and on when it moves; at most 20,000 unless more are asked for. */
export function useLogs(id: string, head: number, query: { step?: string; run?: string; iteration?: number }) {
  const key = JSON.stringify([id, query]);
  const read = useRef(nothing());
  const [, shown] = useReducer((now: number) => now + 1, 0);
  const [most, setMost] = useState(MOST);
  const [error, setError] = useState<unknown>(null);
  const of = useRef(key);
  if (of.current !== key) {
    of.current = key;
    read.current = nothing();
  }
  const latest = useRef(head);
  latest.current = head;
  const isMoved = head > read.current.after;
  useEffect(() => {
    const found = read.current;
    if (found.lines.length >= most || (found.isWhole && !isMoved)) return;
    const stop = new AbortController();
    const next = async () => {
      for (;;) {
        const known = latest.current;
        const page = await get<Schemas["Events"]>(`/api/executions/${encodeURIComponent(id)}/events`, { ...query, type: LOG_TYPES, after: found.after, limit: PAGE }, stop.signal);
        const lines = page.events.flatMap((event) => found.reader.read(event));
        found.lines = lines.length ? [...found.lines, ...lines] : found.lines;
        found.isWhole = !page.next;
        found.after = page.next ?? Math.max(found.after, known, page.events.at(-1)?.seq ?? 0);
        shown();
        if (found.lines.length >= most || (found.isWhole && latest.current <= found.after)) return;
        if (found.isWhole) await new Promise((rested) => setTimeout(rested, REST_MS)); // it moved meanwhile
        if (stop.signal.aborted) return;
      }
    };
    // The first page at once; later ones after a rest, so that a busy execution is asked a few times a second.
    const timer = setTimeout(() => next().then(() => setError(null), (wrong: unknown) => stop.signal.aborted || setError(wrong)), found.after ? REST_MS : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
    // `key` stands for the query. A head that moves does not stop a request: the loop above sees it.
  }, [id, key, most, isMoved]);
  const { lines, isWhole } = read.current;
  return { lines, isWhole, error, isCut: lines.length >= most, more: () => setMost(most + MOST) };
}
